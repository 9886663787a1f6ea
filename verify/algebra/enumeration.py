"""Exact enumeration with arrays, for concrete domains of up to 2**20 points, and to refute claims about others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from layoutproof.ir.evaluate import Overflow, evaluate
from layoutproof.ir.expr import (
    FALSE,
    Binary,
    Expr,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Select,
    const,
    equal,
    logical_and,
    logical_or,
)
from layoutproof.ir.interval import Interval, interval_of
from layoutproof.ir.operators import DIVISIONS, BinaryOp, LogicalOp
from layoutproof.ir.visit import children, free_variables, rewrite_bottom_up, walk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from layoutproof.ir.late import np


MAX_POINTS = 1 << 20
MAX_CELLS = 1 << 22
MAX_EXACT_POINTS = 1 << 16
MAX_EXACT_STEPS = 1 << 22
_SAFE = 1 << 62

Ints: TypeAlias = "NDArray[np.int64]"

_SHIFTS = {BinaryOp.SHL, BinaryOp.SHR}


class TooLarge(Exception):
    """The domain has more points than are tried, or numbers past 64 bits."""


# Traps


def trap_condition(expr: Expr) -> Expr:
    """Where evaluating `expr` divides by zero or shifts by a bad amount; the constant false where it never does."""
    terms = _traps(expr)
    return logical_or(*terms) if terms else FALSE


def _traps(expr: Expr) -> list[Expr]:
    if isinstance(expr, IfThenElseExpr):
        then = [logical_and(expr.condition, t) for t in _traps(expr.then)]
        otherwise = [logical_and(Not(expr.condition), t) for t in _traps(expr.otherwise)]
        return [*_traps(expr.condition), *then, *otherwise]
    if isinstance(expr, Logical):
        reached = expr.lhs if expr.op is LogicalOp.AND else Not(expr.lhs)
        return [*_traps(expr.lhs), *(logical_and(reached, t) for t in _traps(expr.rhs))]
    found = [t for child in children(expr) if isinstance(child, Expr) for t in _traps(child)]
    if isinstance(expr, Binary) and not (isinstance(expr.rhs, IntImm) and _harmless(expr.op, expr.rhs.value)):
        if expr.op in DIVISIONS:
            found.append(equal(expr.rhs, 0))
        elif expr.op in _SHIFTS:
            found.append(logical_or(expr.rhs < 0, expr.rhs > 62))
    return found


def _harmless(op: BinaryOp, value: int) -> bool:
    return value != 0 if op in DIVISIONS else 0 <= value <= 62


def total(expr: Expr) -> Expr:
    """`expr` with 1 for divisors and shift amounts that would trap: equal where it does not trap, and total."""

    def visit(node: Any) -> Any:
        if isinstance(node, Binary) and node.op in DIVISIONS | _SHIFTS:
            right = node.rhs
            if isinstance(right, IntImm) and _harmless(node.op, right.value):
                return node
            bad = equal(right, 0) if node.op in DIVISIONS else logical_or(right < 0, right > 62)
            return Binary(node.op, node.lhs, Select(bad, const(1, right.dtype), right))
        return node

    result = rewrite_bottom_up(expr, visit)
    assert isinstance(result, Expr)
    return result


# Values


def fits_arrays(expr: Expr, extents: Mapping[str, int]) -> bool:
    """Whether no step of evaluating `expr` leaves 62 bits where each name lies in `[0, extent)`."""
    ranges = {v: Interval(0, max(0, extents[v.name] - 1)) for v in free_variables(expr) if v.name in extents}
    for node in walk(expr):
        if isinstance(node, Expr) and node.dtype.is_integer:
            around = interval_of(node, ranges)
            if around.low < -_SAFE or around.high > _SAFE:
                return False
    return True


def grid(extents: Sequence[int]) -> tuple[Ints, ...]:
    """One array per axis, shaped so that they broadcast over the box."""
    rank = len(extents)
    return tuple(
        np.arange(e, dtype=np.int64).reshape([1] * k + [e] + [1] * (rank - k - 1)) for k, e in enumerate(extents)
    )


def _exactly(expr: Expr, env: Mapping[str, Any], points: int) -> NDArray[Any]:
    """The values by Python's integers, as int64 where all of them fit. Raises TooLarge past a budget."""
    steps = points * sum(1 for _ in walk(expr))
    if points > MAX_EXACT_POINTS or steps > MAX_EXACT_STEPS:
        raise TooLarge(f"values of more than 62 bits, at {points} points")
    exact = {name: a.astype(object) if isinstance(a, np.ndarray) else a for name, a in env.items()}
    try:
        values = np.asarray(evaluate(expr, exact))
    except (Overflow, OverflowError) as reason:
        raise TooLarge("values of more than 62 bits") from reason
    try:
        return values.astype(np.int64)
    except OverflowError:
        return values.astype(object)


def over_box(expr: Expr, names: Sequence[str], extents: Sequence[int]) -> NDArray[Any]:
    """The values of `expr` at every point of the box, flat and row-major: int64, or Python integers if that is narrow.

    The expression must not trap. Raises TooLarge past 2**22 points, and past 2**16 where an intermediate value may
    leave 62 bits.
    """
    if prod(extents) > MAX_CELLS:
        raise TooLarge(f"{prod(extents)} points")
    bounds = dict(zip(names, extents, strict=True))
    env: dict[str, Any] = dict(zip(names, grid(extents), strict=True))
    values = np.asarray(evaluate(expr, env)) if fits_arrays(expr, bounds) else _exactly(expr, env, prod(extents))
    return np.broadcast_to(values, tuple(extents)).reshape(-1) if extents else values.reshape(-1)


@dataclass(slots=True)
class Table:
    """Every value of some outputs over the box of some inputs: `columns[k]` is output k at each point, row-major."""

    extents: tuple[int, ...]
    columns: list[Ints]

    @property
    def points(self) -> int:
        """The number of points of the domain."""
        return prod(self.extents)

    def point(self, position: int) -> tuple[int, ...]:
        """The index at a row-major position."""
        result: list[int] = []
        for extent in reversed(self.extents):
            position, digit = divmod(position, extent)
            result.append(digit)
        return tuple(reversed(result))

    def flat(self, box: Sequence[int]) -> Ints:
        """The row-major offset in `box` of every point's image; Python integers past 62 bits. Raises TooLarge."""
        wide = prod(box) > _SAFE
        if wide and self.points > MAX_EXACT_POINTS:
            raise TooLarge(f"a box of more than 2**62 cells, reached from {self.points} points")
        offsets: NDArray[Any] = np.zeros(self.points, dtype=object if wide else np.int64)
        for extent, column in zip(box, self.columns, strict=True):
            offsets = offsets * extent + column
        return offsets


def tabulate(outputs: Sequence[Expr], names: Sequence[str], extents: Sequence[int]) -> Table:
    """All values. The outputs must not trap on the box. Raises TooLarge past 2**20 points or 64 bits."""
    if prod(extents) > MAX_POINTS:
        raise TooLarge(f"{prod(extents)} points; at most {MAX_POINTS} are tried one by one")
    try:
        return Table(tuple(extents), [over_box(total(o), names, extents).astype(np.int64, copy=False) for o in outputs])
    except OverflowError as reason:
        raise TooLarge("a value of more than 64 bits") from reason


def duplicate(offsets: Ints) -> tuple[int, int] | None:
    """Two positions with the same offset, the first such in order of offsets; None where all differ."""
    order = np.argsort(offsets, kind="stable")
    ordered = offsets[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    return None if not len(same) else (int(order[same[0]]), int(order[same[0] + 1]))


def first_where(condition: Expr, names: Sequence[str], extents: Sequence[int]) -> tuple[int, ...] | None:
    """The first point of the box, row-major, at which a condition holds. Raises TooLarge."""
    hits = np.flatnonzero(over_box(total(condition), names, extents))
    return None if not len(hits) else Table(tuple(extents), []).point(int(hits[0]))
