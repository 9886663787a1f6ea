"""Bank conflicts for all sizes of a layout that has one symbol: exact counts for every value of it, where offsets are
affine in it.

The offset of an access is `a + b*n`. With a period `P` of elements, in which banks and segments repeat, the words that
two lanes want at `n + P` differ by what they differ at `n` and `(b1 - b2)*P` elements. So whether two lanes want one
bank depends on `n % P` alone; whether they want one word too, from the `n` on after which words of lanes with other `b`
are apart. Sizes below that one are counted one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import Source, error
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Binary, Cast, Expr, IntImm, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.notation import WrittenLayout, whole
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.verify.layouts.conflicts import Memory, count_conflicts, count_transactions
from layoutproof.verify.layouts.offsets import concrete_extents, offset_map

MAX_POINTS, MAX_SIZES = 1 << 12, 1 << 13


@dataclass(frozen=True, slots=True)
class Counts:
    """What one size gives: rounds of all phases, the most of one, the widest vector, up to the period, transactions."""

    phases: int
    rounds: int
    worst: int
    vector: int
    transactions: int

    def to_dict(self) -> dict[str, int]:
        """As JSON has it."""
        return {
            "phases": self.phases,
            "rounds": self.rounds,
            "conflicts": self.rounds - self.phases,
            "worst": self.worst,
            "widest_vector": self.vector,
            "transactions": self.transactions,
        }


@dataclass(frozen=True, slots=True)
class SymbolicCounts:
    """The counts of every `symbol >= least`: from `regular` on those of its remainder by `period`, below as listed."""

    access: WrittenLayout
    symbol: str
    least: int
    regular: int
    period: int
    classes: tuple[tuple[Counts, tuple[int, ...]], ...]
    exceptions: tuple[tuple[int, Counts], ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "access": self.access.text,
            "symbol": self.symbol,
            "least": self.least,
            "period": self.period,
            "classes": [{"remainders": list(rest), **counts.to_dict()} for counts, rest in self.classes],
            "exceptions": [{"size": size, **counts.to_dict()} for size, counts in self.exceptions],
        }

    def at(self, size: int) -> Counts:
        """The counts of one size."""
        found = dict(self.exceptions).get(size)
        return found if found is not None else next(c for c, rest in self.classes if size % self.period in rest)


@dataclass(frozen=True, slots=True)
class SymbolicReport:
    """A layout with a symbol, and the counts of each access pattern."""

    layout: WrittenLayout
    memory: Memory
    patterns: tuple[SymbolicCounts, ...]

    @property
    def has_conflicts(self) -> bool:
        """Whether some size has a phase of more than one round."""
        every = [c for p in self.patterns for c in (*(c for c, _ in p.classes), *(c for _, c in p.exceptions))]
        return any(counts.worst > 1 for counts in every)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"layout": self.layout.text, "accesses": [pattern.to_dict() for pattern in self.patterns]}


def symbols_of(layout: WrittenLayout) -> tuple[Var, ...]:
    """The symbols of a layout's shape and map."""
    inputs = layout.index_map.inputs
    every = [v for e in (*layout.extents(), *layout.index_map.outputs) for v in free_variables(e)]
    return tuple(dict.fromkeys(v for v in every if v not in inputs))


def judge_symbolic(
    layout: WrittenLayout, accesses: Sequence[WrittenLayout], memory: Memory, segment: int = 32
) -> SymbolicReport:
    """Count each pattern for all values of the layout's symbol.

    Raises LayoutproofError for several symbols, offsets that are not affine in it, and sizes that are too many to list.
    """
    symbols = symbols_of(layout)
    if len(symbols) != 1:
        names = ", ".join(v.name for v in symbols)
        message = f"conflicts are counted for all values of one symbol, not of {names}: give numbers for the others"
        raise error(codes.NOTATION_INCOMPLETE, message, whole(Source("<layout>", layout.text)))
    return SymbolicReport(layout, memory, tuple(_counted(layout, a, symbols[0], memory, segment) for a in accesses))


def _counted(layout: WrittenLayout, access: WrittenLayout, symbol: Var, memory: Memory, segment: int) -> SymbolicCounts:
    shape = concrete_extents(access.extents(), "an access pattern")
    offset = offset_map(layout.index_map, layout.extents()).compose(access.index_map)
    period = max(1, max(memory.banks * memory.width, segment) // memory.element)
    if period & (period - 1) or segment & (segment - 1):
        raise error(codes.NOTATION_INCOMPLETE, f"a segment of {segment} bytes is no power of two")
    terms = [affine_in(offset.outputs[0], symbol, values) for values in _points(offset, shape)]
    least = _least(layout, access, symbol, shape)
    # Two lanes with other multiples of the symbol want one word at most this far: see above.
    spread = max(a for a, _ in terms) - min(a for a, _ in terms) + memory.vector + period
    regular = max(least, -(-spread // period) * period + 2 * period)
    if regular + period - least > MAX_SIZES:
        raise error(codes.TOO_MANY_CELLS, f"the counts repeat from {symbol.name} = {regular} on only: too many to list")
    counts: dict[int, Counts] = {}
    for size in range(least, regular + period):
        found = _at(offset, symbol, size, shape, memory, segment)
        # How far beyond the period offsets are aligned does not repeat with it.
        counts[size] = replace(found, vector=min(found.vector, period))
    classes: dict[Counts, list[int]] = {}
    for size in range(regular, regular + period):
        classes.setdefault(counts[size], []).append(size % period)
    known = {rest: c for c, rests in classes.items() for rest in rests}
    other = tuple((size, counts[size]) for size in range(least, regular) if counts[size] != known[size % period])
    every = sorted(((c, tuple(sorted(rests))) for c, rests in classes.items()), key=lambda pair: pair[0].rounds)
    return SymbolicCounts(access, symbol.name, least, regular, period, tuple(every), other)


def _points(offset: IndexMap, shape: Sequence[int]) -> Iterator[dict[Var, Expr]]:
    if prod(shape) > MAX_POINTS:
        message = f"{prod(shape)} accesses are too many to count for all sizes: at most {MAX_POINTS}"
        raise error(codes.TOO_MANY_CELLS, message)
    for point in product(*map(range, shape)):
        yield {v: const(k, v.dtype) for v, k in zip(offset.inputs, point, strict=True)}


def _at(offset: IndexMap, symbol: Var, size: int, shape: Sequence[int], memory: Memory, segment: int) -> Counts:
    value = const(size, symbol.dtype)
    fixed = IndexMap(offset.inputs, (substitute(offset.outputs[0], {symbol: value}),))
    found, global_memory = count_conflicts(fixed, shape, memory), count_transactions(fixed, shape, memory, segment)
    return Counts(found.phases, found.rounds, found.worst, found.vector, global_memory.transactions)


def affine_in(expr: Expr, symbol: Var, values: dict[Var, Expr]) -> tuple[int, int]:
    """Constant and multiple of the symbol, at values of the other variables.

    Raises LayoutproofError for an expression that is not affine in it.
    """
    if expr == symbol:
        return 0, 1
    if symbol not in free_variables(expr):
        return int(evaluate(substitute(expr, values), {})), 0
    if isinstance(expr, Cast):
        return affine_in(expr.value, symbol, values)
    if isinstance(expr, Binary) and expr.op in (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL):
        (a, b), (c, d) = affine_in(expr.lhs, symbol, values), affine_in(expr.rhs, symbol, values)
        if expr.op is BinaryOp.ADD:
            return a + c, b + d
        if expr.op is BinaryOp.SUB:
            return a - c, b - d
        if not b or not d:
            return a * c, a * d + b * c
    message = f"`{expr_text(expr, 'plain')}` is not affine in {symbol.name}: conflicts are counted for numbers only"
    raise error(codes.NOTATION_INCOMPLETE, message)


def _least(layout: WrittenLayout, access: WrittenLayout, symbol: Var, shape: Sequence[int]) -> int:
    """The least value of the symbol at which every access is inside the layout. Raises LayoutproofError."""
    least = 1
    values = access.index_map.output_values(shape)
    for axis, (reached, extent) in enumerate(zip(values, layout.extents(), strict=True)):
        low, high = int(reached.min()), int(reached.max())
        size, step = (extent.value, 0) if isinstance(extent, IntImm) else affine_in(extent, symbol, {})
        if low < 0 or step < 0 or (step == 0 and high >= size):
            what = (
                f"axis {axis} of the access pattern goes from {low} to {high}, of {expr_text(extent, 'plain')} indices"
            )
            raise error(codes.NOTATION_INCOMPLETE, what, whole(Source("--access", access.text)))
        if step:
            least = max(least, -(-(high + 1 - size) // step))
    return least
