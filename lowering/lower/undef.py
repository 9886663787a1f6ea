"""Removal of compile-time statements: assumptions, and stores of undefined values.

A store of an undefined value may be left out: the cell may hold anything, so also what it held. (Unless it held
nothing: a temporary that is read later gets a zero.) The `undef` that remains inside other values (the untaken side of
a choice) becomes zero, which is one of its possible values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.diagnostic import Span, error
from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.expr import Binary, Cast, Expr, IfThenElseExpr, IntImm, Select, Var, const
from layoutproof.ir.intrinsics import Assume, Undef
from layoutproof.ir.layout_record import Cell, layout_records
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import (
    NOTHING,
    Allocate,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    Let,
    Stmt,
)
from layoutproof.ir.visit import map_expressions, mapped, walk
from layoutproof.lowering import codes
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.witness_maps import rewrite_of


@dataclass(frozen=True)
class RemoveAssume(Pass):
    """Take out assumptions, which are compile-time statements, and loops, branches and blocks that only held one."""

    primitive: ClassVar[str] = "remove_assume"

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function without assumptions."""

        def visit(node: Node) -> Node | Steps[Node, Node]:
            if not isinstance(node, Stmt):
                return node
            return NOTHING if isinstance(node, Evaluate) and isinstance(node.value, Assume) else rebuilt(node)

        body = trampoline(visit, func.body)
        assert isinstance(body, Stmt)
        return rewrite_of(func, func.with_body(body))


def rebuilt(stmt: Stmt) -> Steps[Node, Node]:
    """`stmt` with other nodes directly in it; what has become empty and has no effect of its own goes."""
    new: Node = yield from mapped(stmt)
    if new is stmt:
        return stmt
    if isinstance(new, For | Let | Allocate | DeclBuffer) and new.body == NOTHING:
        return NOTHING
    if isinstance(new, Block) and new.body == NOTHING and new.init is None:
        return NOTHING
    if isinstance(new, IfThenElse):
        if new.otherwise == NOTHING:
            new = replace(new, otherwise=None)
        if new.then == NOTHING and new.otherwise is None:
            return NOTHING
    return new


@dataclass(frozen=True)
class RemoveStoreUndef(Pass):
    """Take out stores of undefined values."""

    primitive: ClassVar[str] = "remove_store_undef"

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function without `undef`. Raises LayoutproofError for an undefined value in an index, a range or a
        condition.
        """
        removal = _Removal(_needs_a_store(func))
        body = trampoline(removal.node, func.body)
        assert isinstance(body, Stmt)
        return rewrite_of(func, func.with_body(body), removal.kept)


def _needs_a_store(func: PrimFunc) -> frozenset[Var]:
    """Temporaries that are read and whose padding is not declared `undef`: reading them unwritten would be a fault."""
    declared = {
        name for name, record in layout_records(func).items() if any(s.padding is Cell.PAD_UNDEF for s in record.steps)
    }
    read = {node.buffer.data for node in walk(func.body) if isinstance(node, BufferLoad)}
    return frozenset(v for v in read - {b.data for b in func.buffers} if v.name not in declared)


@dataclass(frozen=True, slots=True)
class Taint:
    """Variables of lets: those whose value is wholly undefined, and those that an undefined value takes part in."""

    undefined: set[Var]
    tainted: set[Var]

    def names(self, expr: Expr) -> bool:
        """Whether a tainted variable occurs in the expression: two such expressions may depend on each other."""
        return any(isinstance(node, Var) and node in self.tainted for node in walk(expr))


@dataclass(slots=True)
class _Removal:
    """`filled` are temporaries that must be written before they are read: there an undefined value becomes zero."""

    filled: frozenset[Var]
    taint: Taint = field(default_factory=lambda: Taint(set(), set()))
    kept: list[int] = field(default_factory=list[int])
    stores: int = 0

    def node(self, node: Node) -> Node | Steps[Node, Node]:
        return self.statement(node) if isinstance(node, Stmt) else node

    def statement(self, stmt: Stmt) -> Stmt | Steps[Node, Node]:
        self.check(stmt)
        if isinstance(stmt, BufferStore):
            return self.store(stmt)
        if isinstance(stmt, Let):
            return self.let(stmt)
        if isinstance(stmt, Evaluate):
            return (
                replace(stmt, value=self.defined(stmt.value))
                if self.is_tainted(stmt.value) and not isinstance(stmt.value, Assume)
                else stmt
            )
        return rebuilt(stmt)

    def let(self, stmt: Let) -> Steps[Node, Node]:
        if is_undefined(stmt.value, self.taint):
            self.taint.undefined.add(stmt.var)
        if self.is_tainted(stmt.value):
            self.taint.tainted.add(stmt.var)
        body = yield stmt.body
        assert isinstance(body, Stmt)
        wholly = stmt.var in self.taint.undefined
        if body == NOTHING or (wholly and not any(node == stmt.var for node in walk(body))):
            return body
        return replace(stmt, value=self.defined(stmt.value), body=body)

    def store(self, stmt: BufferStore) -> Stmt:
        number = self.stores
        self.stores += 1
        if is_undefined(stmt.value, self.taint) and stmt.buffer.data not in self.filled:
            return NOTHING
        self.kept.append(number)
        return replace(stmt, value=self.defined(stmt.value)) if self.is_tainted(stmt.value) else stmt

    def is_tainted(self, expr: Expr) -> bool:
        """Whether an undefined value takes part in the expression."""
        return any(
            isinstance(node, Undef) or (isinstance(node, Var) and node in self.taint.tainted) for node in walk(expr)
        )

    def defined(self, expr: Expr) -> Expr:
        """The expression with zero for every undefined value."""
        return map_expressions(expr, lambda e: zero(e.dtype) if isinstance(e, Undef) else e)

    def check(self, stmt: Stmt) -> None:
        """Refuse an undefined value in an index, a loop's range or a condition."""
        for what, expr in _control(stmt):
            if self.is_tainted(expr):
                raise error(codes.UNDEF_IN_CONTROL, f"an undefined value reaches {what}", _place(expr, stmt))


def _control(stmt: Stmt) -> list[tuple[str, Expr]]:
    """The expressions directly in a statement that must be defined, each with a word for it."""
    found: list[tuple[str, Expr]] = []
    if isinstance(stmt, BufferStore):
        found += [(f"an index of {stmt.buffer.name}", i) for i in stmt.indices]
    if isinstance(stmt, For):
        found += [(f"the range of loop {stmt.var.name}", e) for e in (stmt.start, stmt.extent)]
    if isinstance(stmt, IfThenElse):
        found.append(("the condition of a branch", stmt.condition))
    if isinstance(stmt, Block):
        found.append((f"the guard of block {stmt.name}", stmt.where))
        found += [(f"the iteration variable {v.var.name}", v.binding) for v in stmt.iter_vars]
    for value in _values(stmt):
        for node in walk(value):
            if isinstance(node, BufferLoad):
                found += [(f"an index of {node.buffer.name}", i) for i in node.indices]
            elif isinstance(node, Select | IfThenElseExpr):
                found.append(("the condition of a choice", node.condition))
    return found


def _values(stmt: Stmt) -> list[Expr]:
    if isinstance(stmt, BufferStore):
        return [*stmt.indices, stmt.value]
    if isinstance(stmt, Let | Evaluate):
        # An assumption `A[i] == undef` is a contract, not a condition that is evaluated.
        return [stmt.value.condition] if isinstance(stmt.value, Assume) else [stmt.value]
    if isinstance(stmt, IfThenElse):
        return [stmt.condition]
    return [stmt.start, stmt.extent] if isinstance(stmt, For) else []


def _place(expr: Expr, stmt: Stmt) -> Span | None:
    return expr.span if expr.span is not None else stmt.span


def zero(dtype: DType) -> Expr:
    """The zero of a type, in every lane."""
    return const(False if dtype.is_bool else 0, dtype)


def is_undefined(expr: Expr, taint: Taint) -> bool:
    """Whether the value may be any value of its type, whatever else it depends on; `taint` says what lets hold.

    `0 * undef` of integers is 0, a choice depends on its condition, and a broadcast has one value in all lanes: none of
    those may.
    """
    if isinstance(expr, Undef):
        return True
    if isinstance(expr, Var):
        return expr in taint.undefined
    rule = _UNDEFINED.get(type(expr))
    return rule is not None and rule(expr, taint)


def _binary(expr: Binary, taint: Taint) -> bool:
    # Of floats nothing is claimed: `1.0 + undef` is not any float. And `x - x` is 0, whatever x is.
    if not expr.dtype.is_integer or (taint.names(expr.lhs) and taint.names(expr.rhs)):
        return False
    left, right = is_undefined(expr.lhs, taint), is_undefined(expr.rhs, taint)
    if expr.op in (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.BITXOR):
        return left or right
    if expr.op is BinaryOp.MUL:
        other = expr.rhs if left else expr.lhs
        # Multiplying by an odd number only renames the values of a type that wraps.
        return (left or right) and isinstance(other, IntImm) and other.value % 2 != 0
    return False


def _choice(expr: Select | IfThenElseExpr, taint: Taint) -> bool:
    return is_undefined(expr.then, taint) and is_undefined(expr.otherwise, taint)


def _cast(expr: Cast, taint: Taint) -> bool:
    # Only where every value of the target comes from some value of the source.
    source, target = expr.value.dtype, expr.dtype
    onto = source.kind == target.kind or (source.is_integer and target.is_integer)
    return onto and source.bits >= target.bits and target.kind is not Kind.BOOL and is_undefined(expr.value, taint)


_UNDEFINED: Mapping[type[Expr], Callable[[Any, Taint], bool]] = {
    Binary: _binary,
    Select: _choice,
    IfThenElseExpr: _choice,
    Cast: _cast,
}
