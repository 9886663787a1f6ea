"""What copies of a statement have in common, and the statement of which they are copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from layoutproof.importers.mlir.model import add, mul, sub
from layoutproof.importers.mlir.values import number
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import INT64
from layoutproof.ir.expr import Binary, Expr, IntImm, Var
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.stmt import Allocate, AttrStmt, Block, DeclBuffer, For, Let, Stmt
from layoutproof.ir.visit import map_children, rewrite_bottom_up, substitute

Form = tuple[object, ...]
# Their variables and buffers are not told apart by number: copies of them are only what is equal.
_OPAQUE = (Block, AttrStmt, DeclBuffer)


@dataclass(frozen=True, slots=True)
class Shape:
    """A statement without the constants of the sums in its indices, and these constants, of each sum, in order."""

    form: Form
    constants: tuple[tuple[int, ...], ...]

    def steps(self, following: Shape) -> tuple[int, ...]:
        """By how much each sum grows, of statements of one form."""
        return tuple(sum(b) - sum(a) for a, b in zip(self.constants, following.constants, strict=True))


def shape_of(stmt: Stmt) -> Shape:
    """The shape of a statement."""
    found = _Forms(sums=True)
    return Shape(found.of(stmt), tuple(found.constants))


@dataclass(slots=True)
class _Forms:
    """Nested tuples, equal for nodes that are equal up to the names of what they bind: variables and memories are
    numbered. With `sums` also up to the constants of sums, which are collected.
    """

    sums: bool
    bound: dict[Node, int] = field(default_factory=dict)
    constants: list[tuple[int, ...]] = field(default_factory=list)

    def of(self, value: object) -> Form:
        if isinstance(value, tuple):
            return tuple(self.of(each) for each in value)
        if not isinstance(value, Node) or isinstance(value, _OPAQUE):
            return (value,)
        if self.sums and is_index(value):
            parts = list(terms(value))
            form = tuple((sign, self.node(each)) for sign, each in parts if not isinstance(each, IntImm))
            self.constants.append(tuple(sign * each.value for sign, each in parts if isinstance(each, IntImm)))
            return ("sum", form)
        return self.node(value)

    def node(self, node: Node) -> Form:
        if node in self.bound:
            return ("bound", self.bound[node])
        match node:
            case For():
                start = self.of(node.start), self.of(node.extent)
                self.bound[node.var] = len(self.bound)
                return ("For", node.kind, node.thread, node.annotations, start, self.of(node.body))
            case Let():
                value = self.of(node.value)
                self.bound[node.var] = len(self.bound)
                return ("Let", node.var.dtype, value, self.of(node.body))
            case Allocate():
                return self._allocate(node)
            case Binary() if self.sums:
                return (
                    node.op,
                    *((each,) if isinstance(each, IntImm) else self.of(each) for each in (node.lhs, node.rhs)),
                )
        if isinstance(node, _LEAVES):
            return (node,)
        key = node._key()
        return (type(node), *(self.of(each) for each in (key if isinstance(key, tuple) else (key,))))

    def _allocate(self, node: Allocate) -> Form:
        buffer = node.buffer
        self.bound[buffer] = self.bound[buffer.data] = len(self.bound)
        said = buffer.dtype, buffer.shape, buffer.strides, buffer.elem_offset, buffer.scope, node.annotations
        return ("Allocate", said, self.of(node.body))


_LEAVES = (Var, Buffer)
_SUMS = (BinaryOp.ADD, BinaryOp.SUB)


def is_index(node: Node) -> bool:
    """Whether a node is a number whose constant may grow from copy to copy."""
    return isinstance(node, Expr) and node.dtype == INT64


def terms(expr: Node, sign: int = 1) -> Iterator[tuple[int, Node]]:
    """The terms of a sum, with their signs."""
    if isinstance(expr, Binary) and expr.op in _SUMS:
        yield from terms(expr.lhs, sign)
        yield from terms(expr.rhs, sign if expr.op is BinaryOp.ADD else -sign)
    else:
        yield sign, expr


def growth(copies: Sequence[Shape], chosen: int) -> list[tuple[int, ...]] | None:
    """By how much each constant of each sum grows from copy to copy, as far as the `chosen` one has constants; None
    where that is not clear: a constant of 0 is left out.
    """
    found = []
    for place, mine in enumerate(copies[chosen].constants):
        others = [(chosen - k, each.constants[place]) for k, each in enumerate(copies) if k != chosen]
        steps = next((each for each in (_steps(mine, other, by) for by, other in others) if each is not None), None)
        if steps is None:
            return None
        found.append(steps)
    return found


def _steps(mine: tuple[int, ...], other: tuple[int, ...], copies: int) -> tuple[int, ...] | None:
    """By how much constants grow, if they grew from others in so many copies."""
    left_out = len(mine) - len(other)
    if left_out == 1:
        # The one that was 0.
        place = next((k for k in range(len(mine)) if mine[:k] + mine[k + 1 :] == other), 0)
        other = (*other[:place], 0, *other[place:])
    elif left_out != 0:
        return None
    if any((a - b) % copies for a, b in zip(mine, other, strict=True)):
        return None
    return tuple((a - b) // copies for a, b in zip(mine, other, strict=True))


@dataclass(slots=True)
class Grown:
    """A statement in which constants grow with `var`, from copy to copy by `steps`; copy `number` is given."""

    var: Var
    steps: Sequence[tuple[int, ...]]
    number: int
    _left: Iterator[tuple[int, ...]] = field(init=False)

    def of(self, stmt: Stmt) -> Stmt:
        """The statement."""
        self._left = iter(self.steps)
        found = self._visit(stmt)
        assert isinstance(found, Stmt)
        return found

    def _visit(self, node: Node) -> Node:
        if isinstance(node, (*_OPAQUE, Buffer)):
            return node
        if is_index(node):
            assert isinstance(node, Expr)
            inside = self._sum(node)
            return self._growing(inside, next(self._left))
        if isinstance(node, Binary):
            return map_children(node, self._factor)
        # The variable that is bound is no number that grows.
        if isinstance(node, For):
            start, extent = self._expr(node.start), self._expr(node.extent)
            return replace(node, start=start, extent=extent, body=self._stmt(node.body))
        if isinstance(node, Let):
            return replace(node, value=self._expr(node.value), body=self._stmt(node.body))
        return map_children(node, self._visit)

    def _expr(self, expr: Expr) -> Expr:
        found = self._visit(expr)
        assert isinstance(found, Expr)
        return found

    def _stmt(self, stmt: Stmt) -> Stmt:
        found = self._visit(stmt)
        assert isinstance(found, Stmt)
        return found

    def _sum(self, expr: Expr) -> Expr:
        """A sum, with what grows inside its terms."""
        if isinstance(expr, Binary) and expr.op in _SUMS:
            return replace(expr, lhs=self._sum(expr.lhs), rhs=self._sum(expr.rhs))
        if isinstance(expr, IntImm | Var):
            return expr
        found = map_children(expr, self._factor if isinstance(expr, Binary) else self._visit)
        assert isinstance(found, Expr)
        return found

    def _factor(self, node: Node) -> Node:
        """An operand of another operation than a sum: a constant is a factor or a divisor, which does not grow."""
        return node if isinstance(node, IntImm) else self._visit(node)

    def _growing(self, expr: Expr, steps: tuple[int, ...]) -> Expr:
        """A sum with the constants that grow."""
        left = iter(steps)

        def visit(part: Expr, sign: int) -> Expr:
            if isinstance(part, Binary) and part.op in _SUMS:
                other = sign if part.op is BinaryOp.ADD else -sign
                return replace(part, lhs=visit(part.lhs, sign), rhs=visit(part.rhs, other))
            by = sign * next(left) if isinstance(part, IntImm) else 0
            if by == 0 or not isinstance(part, IntImm):
                return part
            return add(mul(self.var, number(by)), number(part.value - by * self.number))

        return visit(expr, 1) if any(steps) else expr


def is_copy(body: Sequence[Stmt], var: Var, value: int, copy: Sequence[Stmt]) -> bool:
    """Whether statements are others where a variable has a value: equal but for folded constants and bound names."""
    made = [_Forms(sums=False).of(_folded(substitute(stmt, {var: number(value)}))) for stmt in body]
    return made == [_Forms(sums=False).of(_folded(stmt)) for stmt in copy]


def _folded(stmt: Stmt) -> Stmt:
    """A statement with sums and products of constants folded, as they are where operations are translated."""
    return rewrite_bottom_up(stmt, _fold)


def _fold(node: Node) -> Node:
    if isinstance(node, Binary) and node.dtype == INT64 and node.op in _FOLDS:
        if isinstance(node.lhs, IntImm) or isinstance(node.rhs, IntImm):
            return _FOLDS[node.op](node.lhs, node.rhs)
    return node


_FOLDS = {BinaryOp.ADD: add, BinaryOp.SUB: sub, BinaryOp.MUL: mul}
