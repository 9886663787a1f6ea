"""Axes that are digits of another axis: what a reshape makes of an axis that it splits, and of axes that it joins."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod

from layoutproof.graph.accesses import Access, Extents, normal
from layoutproof.ir.expr import Binary, BinaryOp, Expr, IntImm, Var, binary, const


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
    """By axes of one array, the digits that they are of axes of another, where all digits of such an axis are among them."""
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
        return {place: Digit(axis, *part) for place, other in enumerate(known.indices) if (part := _part(other, variable, known.extents))}
    places = {variable: [place for place, other in enumerate(known.indices) if other == variable] for variable in steps}
    if any(len(found) != 1 for found in places.values()):
        return {}
    return {places[variable][0]: Digit(axis, step, known.extents[variable]) for variable, step in steps.items()}


def _part(index: Expr, variable: Var, extents: Extents) -> tuple[int, int] | None:
    """The step and the extent of what an index is of a variable: `v // 8`, `v % 8`, `v // 8 % 4`; None for anything else."""
    form = normal(index, extents)
    if form.constant != 0 or list(form.terms.values()) != [1]:
        return None
    (term,) = form.terms
    rest, extent = _operation(term, BinaryOp.FLOORMOD, extents[variable])
    whole, step = _operation(rest, BinaryOp.FLOORDIV, 1)
    return (step, min(extent, -(-extents[variable] // step))) if whole == variable else None


def _operation(term: Expr, op: BinaryOp, otherwise: int) -> tuple[Expr, int]:
    """What an operation is done on, and the number that it is done by; a term of another kind, and the number that stands for that."""
    if isinstance(term, Binary) and term.op is op and isinstance(term.rhs, IntImm):
        return term.lhs, term.rhs.value
    return term, otherwise


def _are_all(parts: Collection[Digit], extent: int) -> bool:
    """Whether digits are all of an axis: each begins where the one before it ends."""
    ordered = sorted(parts, key=lambda part: part.step)
    steps = [prod(part.extent for part in ordered[:k]) for k in range(len(ordered) + 1)]
    return [part.step for part in ordered] == steps[:-1] and steps[-1] == extent
