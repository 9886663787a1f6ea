"""The symbolic engine for index maps: it inverts by elimination and checks the inverse by rewriting. A proposal of
`elimination` counts only when `g(f(x))` rewrites to `x`, which proves injectivity. Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layoutproof.verify.algebra.polynomials import GiveUp, Poly
from layoutproof.verify.algebra.ring import Ring
from layoutproof.verify.maps.elimination import Digits, Equation, Solver, digitise


@dataclass(frozen=True, slots=True)
class Inversion:
    """A checked inverse: `totals[x]` is the input (or digit) atom x as a form over cells, right on the image.

    `outputs` are over `unknowns`, the inputs that were not cut and the digits of those that were.
    """

    ring: Ring
    outputs: Sequence[Poly]
    cells: Sequence[Poly]
    extents: Mapping[int, Poly]
    digits: Sequence[Digits]
    unknowns: Sequence[int]
    totals: Mapping[int, Poly]


def try_invert(
    ring: Ring, outputs: Sequence[Poly], cells: Sequence[Poly], inputs: Sequence[int], extents: Mapping[int, Poly]
) -> Inversion | None:
    """The checked inverse of `outputs[k] = cells[k]` on the box, if elimination finds it: then it is injective."""
    try:
        found = _attempt(ring, outputs, cells, inputs, extents, [])
        if found is not None:
            return found
        sizes = dict(extents)
        cut = digitise(ring, list(outputs), list(inputs), sizes)
        if cut is None:
            return None
        return _attempt(ring, cut[0], cells, inputs, sizes, cut[1])
    except GiveUp:
        return None


def _attempt(
    ring: Ring,
    outputs: Sequence[Poly],
    cells: Sequence[Poly],
    inputs: Sequence[int],
    extents: Mapping[int, Poly],
    digits: Sequence[Digits],
) -> Inversion | None:
    cut = {d.atom for d in digits}
    unknowns = [a for a in [*inputs, *(a for d in digits for a in d.atoms)] if a not in cut]
    equations = [Equation(output, cell) for output, cell in zip(outputs, cells, strict=True)]
    values = Solver(ring, equations).solve(unknowns)
    if values is None:
        return None
    if not _leads_back(ring, outputs, cells, values):
        return None
    totals = dict(values)
    for d in reversed(digits):
        totals[d.atom] = ring.substitute(d.total, totals)
    return Inversion(ring, outputs, cells, extents, digits, unknowns, totals)


def checked_inverse(
    ring: Ring, outputs: Sequence[Poly], cells: Sequence[Poly], extents: Mapping[int, Poly], values: Mapping[int, Poly]
) -> Inversion | None:
    """A proposal for every input, if `g(f(x))` rewrites to `x`; else None."""
    if not _leads_back(ring, outputs, cells, values):
        return None
    return Inversion(ring, outputs, cells, extents, [], list(values), values)


def _leads_back(ring: Ring, outputs: Sequence[Poly], cells: Sequence[Poly], values: Mapping[int, Poly]) -> bool:
    back = {m[0]: output for output, cell in zip(outputs, cells, strict=True) for m in cell}
    done: dict[int, Poly] = {}
    return all(ring.substitute(value, back, done) == {(atom,): 1} for atom, value in values.items())
