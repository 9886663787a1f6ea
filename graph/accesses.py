"""Who reads and writes what, as layouts see it: for each store the access it makes and those that its value, indices and guards make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import Binary, BinaryOp, Expr, IntImm, Var, binary, const
from layoutproof.ir.kept import Kept
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, For, IfThenElse, Let, Stmt
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import children, loads_in
from layoutproof.lowering.affine import Affine, affine_of, expression_of


@dataclass(frozen=True, slots=True)
class Access:
    """An element of a buffer, its indices over the variables around it."""

    buffer: Buffer
    indices: tuple[Expr, ...]

    def __str__(self) -> str:
        return f"{self.buffer.name}[{', '.join(expr_text(index, 'plain') for index in self.indices)}]"


@dataclass(frozen=True, slots=True)
class Statement:
    """One store with everything that it reads. `extents` are those of the variables around it, where they are numbers."""

    store: Access
    loads: tuple[Access, ...]
    extents: Mapping[Var, int]

    @property
    def accesses(self) -> tuple[Access, ...]:
        """All of them, the store first."""
        return (self.store, *self.loads)


_FOUND: Kept[tuple[Statement, ...]] = Kept(1024)


def statements_of(func: PrimFunc) -> tuple[Statement, ...]:
    """The stores of a function in program order."""
    return _FOUND.get(func, (), lambda: tuple(_below(func.body, (), {})))


def _below(stmt: Stmt, guards: tuple[Expr, ...], extents: Mapping[Var, int]) -> Iterator[Statement]:
    if isinstance(stmt, BufferStore):
        reads = [*loads_in(stmt.value), *(load for index in stmt.indices for load in loads_in(index))]
        reads += [load for guard in guards for load in loads_in(guard)]
        yield Statement(Access(stmt.buffer, stmt.indices), tuple(dict.fromkeys(_access(load) for load in reads)), extents)
        return
    if isinstance(stmt, Let):
        guards = (*guards, stmt.value)
    elif isinstance(stmt, IfThenElse):
        guards = (*guards, stmt.condition)
    elif isinstance(stmt, For):
        extents = {**extents, **_sized(stmt.var, stmt.extent)}
    elif isinstance(stmt, Block):
        guards = (*guards, stmt.where)
        extents = {**extents, **{v: n for i in stmt.iter_vars for v, n in _sized(i.var, i.domain.extent).items()}}
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from _below(child, guards, extents)


def _sized(variable: Var, extent: Expr) -> dict[Var, int]:
    return {variable: extent.value} if isinstance(extent, IntImm) else {}


def _access(load: BufferLoad) -> Access:
    return Access(load.buffer, load.indices)


def normal(expr: Expr) -> Affine:
    """Index arithmetic as a sum of terms; what a quotient or remainder by a number leaves whole stands outside of it.

    `(v + 64) // 8` is `v // 8 + 8`, `(v + 64) % 8` is `v % 8`.
    """
    if isinstance(expr, Binary) and isinstance(expr.rhs, IntImm) and expr.rhs.value > 0:
        if expr.op is BinaryOp.FLOORDIV:
            whole, rest = normal(expr.lhs).split(expr.rhs.value)
            return whole + _term(BinaryOp.FLOORDIV, rest, expr.rhs)
        if expr.op is BinaryOp.FLOORMOD:
            return _term(BinaryOp.FLOORMOD, normal(expr.lhs).split(expr.rhs.value)[1], expr.rhs)
    if isinstance(expr, Binary) and expr.op in (BinaryOp.ADD, BinaryOp.SUB):
        left, right = normal(expr.lhs), normal(expr.rhs)
        return left + right if expr.op is BinaryOp.ADD else left - right
    return affine_of(expr)


def _term(op: BinaryOp, dividend: Affine, divisor: IntImm) -> Affine:
    if dividend.is_constant:
        value = dividend.constant // divisor.value if op is BinaryOp.FLOORDIV else dividend.constant % divisor.value
        return Affine({}, value)
    return Affine({binary(op, expression_of(dividend, divisor.dtype), const(divisor.value, divisor.dtype)): 1})
