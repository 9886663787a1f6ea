"""The accesses of a function as layout flow needs them: for each store, the loads of its value, indices and guards; and
which axes are digits of another axis.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import Binary, Expr, IntImm, Var, binary, const
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import Kept, PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, For, IfThenElse, Let, Stmt
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import children, loads_in, stores_in
from layoutproof.lowering.arith.affine import Affine, affine_of, expression_of

Extents = Mapping[Var, int]
UNBOUNDED: Extents = MappingProxyType({})
"""Variables of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Access:
    """An element of a buffer, with indices over variables; `extents` are those of variables that start at zero."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    extents: Extents = field(default_factory=lambda: UNBOUNDED, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.buffer.name}[{', '.join(expr_text(index, 'plain') for index in self.indices)}]"


@dataclass(frozen=True, slots=True)
class Statement:
    """One store with all that it reads. `extents` are the constant ones of the variables around it."""

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


def update_of(func: PrimFunc, block: Block) -> Statement | None:
    """The first store of a block's body with all that it reads, or None; the init is ignored."""
    store = next(stores_in(block.body), None)
    if store is None:
        return None
    target = Access(store.buffer, store.indices)
    begun = (
        ()
        if block.init is None
        else (each for each in stores_in(block.init) if Access(each.buffer, each.indices) == target)
    )
    return [statement for statement in statements_of(func) if statement.store == target][len(tuple(begun))]


def _below(stmt: Stmt, guards: tuple[Expr, ...], extents: Mapping[Var, int]) -> Iterator[Statement]:
    if isinstance(stmt, BufferStore):
        reads = [*loads_in(stmt.value), *(load for index in stmt.indices for load in loads_in(index))]
        reads += [load for guard in guards for load in loads_in(guard)]
        loads = dict.fromkeys(Access(load.buffer, load.indices, extents) for load in reads)
        yield Statement(Access(stmt.buffer, stmt.indices, extents), tuple(loads), extents)
        return
    if isinstance(stmt, Let):
        guards = (*guards, stmt.value)
    elif isinstance(stmt, IfThenElse):
        guards = (*guards, stmt.condition)
    elif isinstance(stmt, For):
        extents = {**extents, **_sized(stmt.var, stmt.start, stmt.extent)}
    elif isinstance(stmt, Block):
        guards = (*guards, stmt.where)
        extents = {
            **extents,
            **{v: n for i in stmt.iter_vars for v, n in _sized(i.var, i.domain.start, i.domain.extent).items()},
        }
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from _below(child, guards, extents)


def _sized(variable: Var, start: Expr, extent: Expr) -> dict[Var, int]:
    return (
        {variable: extent.value}
        if isinstance(extent, IntImm) and isinstance(start, IntImm) and start.value == 0
        else {}
    )


def normal(expr: Expr, extents: Extents = UNBOUNDED) -> Affine:
    """Index arithmetic as a sum of terms; what a quotient or remainder by a number leaves whole stands outside of it.

    `(v + 64) // 8` is `v // 8 + 8`, `(v + 64) % 8` and `v % 16 % 8` are `v % 8`, and `(h * 8 + d) // 8` is `h` where
    `d` is below 8.
    """
    if isinstance(expr, Binary) and isinstance(expr.rhs, IntImm) and expr.rhs.value > 0:
        if expr.op is BinaryOp.FLOORDIV:
            whole, rest = normal(expr.lhs, extents).split(expr.rhs.value)
            return whole + _term(BinaryOp.FLOORDIV, rest, expr.rhs, extents)
        if expr.op is BinaryOp.FLOORMOD:
            return _term(BinaryOp.FLOORMOD, normal(expr.lhs, extents).split(expr.rhs.value)[1], expr.rhs, extents)
    if isinstance(expr, Binary) and expr.op in (BinaryOp.ADD, BinaryOp.SUB):
        left, right = normal(expr.lhs, extents), normal(expr.rhs, extents)
        return left + right if expr.op is BinaryOp.ADD else left - right
    return affine_of(expr)


def _term(op: BinaryOp, dividend: Affine, divisor: IntImm, extents: Extents) -> Affine:
    bounds = _bounds(dividend, extents)
    if bounds is not None and bounds[0] // divisor.value == bounds[1] // divisor.value:
        quotient = Affine({}, bounds[0] // divisor.value)
        return quotient if op is BinaryOp.FLOORDIV else dividend - quotient.scaled(divisor.value)
    if op is BinaryOp.FLOORMOD and dividend.constant == 0 and list(dividend.terms.values()) == [1]:
        (term,) = dividend.terms
        if (
            isinstance(term, Binary)
            and term.op is op
            and isinstance(term.rhs, IntImm)
            and term.rhs.value % divisor.value == 0
        ):
            return _term(op, normal(term.lhs, extents).split(divisor.value)[1], divisor, extents)
    return Affine({binary(op, expression_of(dividend, divisor.dtype), const(divisor.value, divisor.dtype)): 1})


def _bounds(form: Affine, extents: Extents) -> tuple[int, int] | None:
    """The least and the largest that a sum can be; None where that is not known."""
    low = high = form.constant
    for term, factor in form.terms.items():
        found = _term_bounds(term, extents)
        if found is None:
            return None
        low, high = low + min(factor * end for end in found), high + max(factor * end for end in found)
    return low, high


def _term_bounds(term: Expr, extents: Extents) -> tuple[int, int] | None:
    if isinstance(term, Var):
        return (0, extents[term] - 1) if term in extents else None
    if not isinstance(term, Binary) or not isinstance(term.rhs, IntImm) or term.rhs.value <= 0:
        return None
    if term.op is BinaryOp.FLOORMOD:
        return 0, term.rhs.value - 1
    found = _bounds(normal(term.lhs, extents), extents) if term.op is BinaryOp.FLOORDIV else None
    return None if found is None else (found[0] // term.rhs.value, found[1] // term.rhs.value)


@dataclass(frozen=True, slots=True)
class Digit:
    """One digit of an axis: its place divided by `step`, of which the remainder by `extent` is taken."""

    axis: int
    step: int
    extent: int

    def of(self, whole: Expr) -> Expr:
        """The digit of a place."""
        shifted = whole if self.step == 1 else binary(BinaryOp.FLOORDIV, whole, const(self.step, whole.dtype))
        return binary(BinaryOp.FLOORMOD, shifted, const(self.extent, whole.dtype))


def digits_of(known: Access, unknown: Access) -> Mapping[int, Digit]:
    """For axes of one array, the digits of another's axes that they are, where all digits of such an axis are there."""
    found: dict[int, Digit] = {}
    for axis, (index, extent) in enumerate(zip(unknown.indices, unknown.buffer.shape, strict=True)):
        if isinstance(extent, IntImm):
            parts = _parts(known, index, axis)
            if len(parts) > 1 and _are_all(parts.values(), extent.value):
                found.update(parts)
    return found


def _parts(known: Access, index: Expr, axis: int) -> dict[int, Digit]:
    """The axes of an array that are digits of an index, of one variable or of a sum of multiples."""
    form = normal(index, known.extents)
    if form.constant != 0 or not all(isinstance(term, Var) and term in known.extents for term in form.terms):
        return {}
    steps = {term: factor for term, factor in form.terms.items() if isinstance(term, Var)}
    if list(steps.values()) == [1]:
        (variable,) = steps
        return {
            place: Digit(axis, *part)
            for place, other in enumerate(known.indices)
            if (part := _part(other, variable, known.extents))
        }
    places = {variable: [place for place, other in enumerate(known.indices) if other == variable] for variable in steps}
    if any(len(found) != 1 for found in places.values()):
        return {}
    return {places[variable][0]: Digit(axis, step, known.extents[variable]) for variable, step in steps.items()}


def _part(index: Expr, variable: Var, extents: Extents) -> tuple[int, int] | None:
    """The step and extent of the digit of a variable that an index is: `v // 8`, `v % 8`, `v // 8 % 4`; else None."""
    form = normal(index, extents)
    if form.constant != 0 or list(form.terms.values()) != [1]:
        return None
    (term,) = form.terms
    rest, extent = _operation(term, BinaryOp.FLOORMOD, extents[variable])
    whole, step = _operation(rest, BinaryOp.FLOORDIV, 1)
    return (step, min(extent, -(-extents[variable] // step))) if whole == variable else None


def _operation(term: Expr, op: BinaryOp, otherwise: int) -> tuple[Expr, int]:
    """An operation's operand and its number; a term of another kind, and the number that stands for it."""
    if isinstance(term, Binary) and term.op is op and isinstance(term.rhs, IntImm):
        return term.lhs, term.rhs.value
    return term, otherwise


def _are_all(parts: Collection[Digit], extent: int) -> bool:
    """Whether digits are all of an axis: each begins where the one before it ends."""
    ordered = sorted(parts, key=lambda part: part.step)
    steps = [prod(part.extent for part in ordered[:k]) for k in range(len(ordered) + 1)]
    return [part.step for part in ordered] == steps[:-1] and steps[-1] == extent
