"""Runs of statements that differ by a constant step, written as loops again: `A[0] = 1; A[2] = 1; A[4] = 1` becomes
`for u in T.unroll(3): A[u * 2] = 1`.

What a compiler unrolled has as many statements as the loop had iterations, which is many to look at one by one. The
loops found here are a proposal: `rolled` has them written out again and compared with what was given, by
`verify/lockstep/identity.py`, which is exact, and gives up what is not the same.

A statement is known by its form, in which each integer `e + c` is `e` and a hole, and by the constants in its holes.
Groups of statements of one form whose constants grow by the same step are an unrolled loop. The loop is a statement
again, with the constants of its first iteration, so that nests come back from inside out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from layoutproof.ir.dtype import INT32, DType
from layoutproof.ir.expr import Binary, Expr, IntImm, Var
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, For, ForKind, IfThenElse, Seq, Stmt, seq
from layoutproof.ir.visit import children, descend, map_children, mapped, names_in, substitute, walk
from layoutproof.verify.lockstep.identity import MOST_ITERATIONS, constant_value, is_same_unrolled, is_written_out

FEWEST = 48
"""Programs with fewer stores are looked at as they are."""
_FEW = 256
_LONGEST = 64  # statements in one iteration
_ROLLED = BufferStore | For | IfThenElse | Seq  # what an iteration may be made of; all else stays as it is


def rolled(function: PrimFunc) -> PrimFunc:
    """The same program with loops for runs of statements, if it has many and gets much shorter by that; else itself."""
    stores = sum(isinstance(node, BufferStore) for node in walk(function.body))
    if stores < FEWEST:
        return function
    body = trampoline(_Rolling(names_in(function.body) | {p.name for p in function.params}).visit, function.body)
    assert isinstance(body, Stmt)
    left = sum(isinstance(node, BufferStore) for node in walk(body))
    found = replace(function, body=body)
    return found if 2 * left <= stores and is_same_unrolled(function, found) else function


def are_few(functions: Sequence[PrimFunc]) -> bool:
    """Whether programs are short enough to be compared statement by statement too."""
    return all(sum(isinstance(node, BufferStore) for node in walk(f.body)) <= _FEW for f in functions)


def unrolled(function: PrimFunc) -> PrimFunc:
    """The same program with its `unroll` loops written out, those with constant bounds; itself where that is long."""

    def visit(node: Node) -> Node | Steps[Node, Node]:
        return node if isinstance(node, BufferStore) or not isinstance(node, Stmt) else descend(node, visit, written)

    def written(stmt: Node) -> Node:
        if not (isinstance(stmt, For) and is_written_out(stmt)):
            return stmt
        assert isinstance(stmt.start, IntImm) and isinstance(stmt.extent, IntImm)
        numbers = range(stmt.start.value, stmt.start.value + stmt.extent.value)
        return seq(*(_computed(substitute(stmt.body, {stmt.var: IntImm(k, stmt.var.dtype)})) for k in numbers))

    few = trampoline(_iterations, function.body) <= MOST_ITERATIONS
    body = trampoline(visit, function.body) if few else function.body
    assert isinstance(body, Stmt)
    return function if body is function.body else replace(function, body=body)


def _iterations(stmt: Stmt) -> Steps[Stmt, int]:
    """How many statements there are once `unroll` loops are written out, or more."""
    inside = 0
    for part in children(stmt):
        if isinstance(part, Stmt):
            inside += yield part
    if isinstance(stmt, For) and isinstance(stmt.extent, IntImm) and is_written_out(stmt):
        return max(stmt.extent.value, 1) * max(inside, 1)
    return max(inside, 1)


@dataclass(frozen=True, slots=True)
class _Form:
    """A statement without its constants, and those. `height` is how many loops that were found stand in one another
    in it, `given` the statement where it is none of them. What cannot be part of a loop has no constants.
    """

    shape: Stmt
    constants: tuple[int, ...] | None
    height: int
    given: Stmt | None


class _Rolling:
    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._hole = self._free("hole")
        self._names: list[str] = []

    def _free(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _name(self, height: int) -> str:
        while len(self._names) <= height:
            self._names.append(self._free(f"u{len(self._names)}"))
        return self._names[height]

    def visit(self, node: Node) -> Node | Steps[Node, Node]:
        """The statement with each sequence in it rolled."""
        if isinstance(node, BufferStore) or not isinstance(node, Stmt):
            return node
        return self._sequence(node) if isinstance(node, Seq) else mapped(node)

    def _sequence(self, stmt: Seq) -> Steps[Node, Node]:
        items = []
        for part in stmt.body:
            made = yield part
            assert isinstance(made, Stmt)
            items.append(self._form_of(made))
        found = _rolled_items(items, self._loop)
        return seq(*(item.given if item.given is not None else self._filled(item) for item in found))

    def _form_of(self, stmt: Stmt) -> _Form:
        if any(isinstance(node, Stmt) and not isinstance(node, _ROLLED) for node in walk(stmt)):
            return _Form(stmt, None, 0, stmt)
        constants: list[int] = []

        def holed(base: Expr | None, constant: int, dtype: DType) -> Expr:
            constants.append(constant)
            hole = Var(self._hole, dtype)
            return hole if base is None else Binary(BinaryOp.ADD, base, hole)

        shape = _with_integers(stmt, holed)
        height = 1 + max((self._height(node) for node in walk(stmt) if isinstance(node, For)), default=-1)
        return _Form(shape, tuple(constants), height, stmt)

    def _height(self, loop: For) -> int:
        return self._names.index(loop.var.name) if loop.var.name in self._names else -1

    def _loop(self, items: Sequence[_Form], steps: Sequence[int], count: int) -> _Form | None:
        """The loop of `count` iterations whose first is `items`, with constants that grow by `steps`."""
        height = max(item.height for item in items)
        wanted = iter(steps)
        dtypes = {d for (d, step) in zip(self._dtypes(items), steps, strict=True) if step}
        if len(dtypes) > 1:
            return None
        var = Var(self._name(height), dtypes.pop() if dtypes else INT32)
        body = seq(*(self._with_holes(item.shape, lambda hole: _moved(hole, var, next(wanted))) for item in items))
        dtype = var.dtype
        shape = For(var, IntImm(0, dtype), IntImm(count, dtype), ForKind.UNROLLED, body, span=items[0].shape.span)
        return _Form(shape, tuple(chain.from_iterable(item.constants or () for item in items)), height + 1, None)

    def _dtypes(self, items: Sequence[_Form]) -> list[DType]:
        """The types of the holes, in their order."""
        holes: list[Var] = []

        def noted(hole: Var) -> Expr:
            holes.append(hole)
            return hole

        for item in items:
            self._with_holes(item.shape, noted)
        return [hole.dtype for hole in holes]

    def _with_holes(self, stmt: Stmt, change: Callable[[Var], Expr]) -> Stmt:
        def visit(node: Node) -> Node | Steps[Node, Node]:
            return change(node) if isinstance(node, Var) and node.name == self._hole else descend(node, visit)

        found = trampoline(visit, stmt)
        assert isinstance(found, Stmt)
        return found

    def _filled(self, item: _Form) -> Stmt:
        """A statement with its constants in their places."""
        constants = iter(item.constants or ())

        def step(node: Node) -> Node | Steps[Node, Node]:
            return mapped(node) if isinstance(node, Stmt) else visit(node)

        def visit(node: Node) -> Node:
            if isinstance(node, Binary) and isinstance(node.rhs, Var) and node.rhs.name == self._hole:
                base = visit(node.lhs)
                assert isinstance(base, Expr)
                value = next(constants)
                return Binary(BinaryOp.ADD, base, IntImm(value, base.dtype)) if value else base
            if isinstance(node, Var) and node.name == self._hole:
                return IntImm(next(constants), node.dtype)
            return map_children(node, visit)

        found = trampoline(step, item.shape)
        assert isinstance(found, Stmt)
        return found


def _moved(hole: Var, var: Var, step: int) -> Expr:
    """What stands in a hole in a loop: a multiple of its variable, and a hole for the constant."""
    if step == 0:
        return hole
    times = var if step == 1 else Binary(BinaryOp.MUL, var, IntImm(step, var.dtype))
    return Binary(BinaryOp.ADD, times, hole)


def _with_integers(stmt: Stmt, holed: Callable[[Expr | None, int, DType], Expr]) -> Stmt:
    """The statement with each integer `e + c` in it, that is no part of another one, replaced; bounds of loops stay."""

    def step(node: Node) -> Node | Steps[Node, Node]:
        return loop(node) if isinstance(node, For) else mapped(node) if isinstance(node, Stmt) else visit(node)

    def loop(node: For) -> Steps[Node, Node]:
        body = yield node.body
        assert isinstance(body, Stmt)
        return node if body is node.body else replace(node, body=body)

    def visit(node: Node) -> Node:
        if not (isinstance(node, Expr) and node.dtype.is_integer and node.dtype.lanes == 1):
            return map_children(node, visit)
        base, constant = _split(node)
        inside = None if base is None else map_children(base, _loads)
        return holed(inside, constant, node.dtype)

    def _loads(node: Node) -> Node:
        # Inside arithmetic only what is loaded has integers of its own.
        plain = isinstance(node, Expr) and isinstance(node, Binary | Var | IntImm)
        return map_children(node, _loads) if plain else map_children(node, visit)

    found = trampoline(step, stmt)
    assert isinstance(found, Stmt)
    return found


def _computed(stmt: Stmt) -> Stmt:
    """The statement with sums and products of constants computed, and nothing added to what is left."""

    def visit(node: Node) -> Node:
        made = map_children(node, visit)
        if not isinstance(made, Binary):
            return made
        value = constant_value(made, {})
        if value is not None:
            return IntImm(value, made.dtype)
        base, constant = _split(made)
        return base if base is not None and constant == 0 and made.dtype.is_integer else made

    root: Node = stmt
    found = trampoline(lambda node: mapped(node) if isinstance(node, Stmt) else visit(node), root)
    assert isinstance(found, Stmt)
    return found


def _split(expr: Expr) -> tuple[Expr | None, int]:
    if isinstance(expr, IntImm):
        return None, expr.value
    if isinstance(expr, Binary) and isinstance(expr.rhs, IntImm):
        if expr.op is BinaryOp.ADD:
            return expr.lhs, expr.rhs.value
        if expr.op is BinaryOp.SUB:
            return expr.lhs, -expr.rhs.value
    return expr, 0


Loop = Callable[[Sequence[_Form], Sequence[int], int], _Form | None]


def _rolled_items(items: Sequence[_Form], loop: Loop) -> Sequence[_Form]:
    """The statements with loops for runs: short iterations first, and again while something is found."""
    period = 1
    while period <= min(_LONGEST, len(items) // 2):
        found = list(_runs(items, period, loop))
        items, period = (found, 1) if len(found) < len(items) else (items, period + 1)
    return items


def _runs(items: Sequence[_Form], period: int, loop: Loop) -> Iterator[_Form]:
    """The statements with loops for runs whose iterations have `period` statements."""
    place = 0
    while place < len(items):
        count, steps = _run(items, place, period)
        made = loop(items[place : place + period], steps, count) if count > 1 else None
        yield items[place] if made is None else made
        place += 1 if made is None else count * period


def _run(items: Sequence[_Form], place: int, period: int) -> tuple[int, Sequence[int]]:
    """How many groups of statements follow one another in equal steps, and the steps."""
    steps = _steps(items, place, period)
    if steps is None:
        return 1, ()
    count = 2
    while _steps(items, place + (count - 1) * period, period) == steps:
        count += 1
    return count, steps


def _steps(items: Sequence[_Form], place: int, period: int) -> list[int] | None:
    """By how much the constants of a group grow to the next one; None where that is of another form."""
    if place + 2 * period > len(items):
        return None
    steps: list[int] = []
    for k in range(place, place + period):
        mine, theirs = items[k], items[k + period]
        if mine.shape != theirs.shape:
            return None
        if mine.constants is None or theirs.constants is None:
            return None
        steps += [b - a for a, b in zip(mine.constants, theirs.constants, strict=True)]
    return steps
