"""The first engine for an index map: invert it by elimination, then check the inverse by rewriting.

A proposal from `solve.py` counts only when `g(f(x))` rewrites to `x`: that proves that the map is injective. The cells without a preimage
are then exactly those where `g(p)` leaves the domain or `f(g(p))` is not `p`, which needs no set subtraction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layoutproof.verify.conditions import Condition, Sense
from layoutproof.verify.polynomial import GiveUp, Poly, add, constant, plus
from layoutproof.verify.ring import Ring
from layoutproof.verify.solve import Digits, Equation, Solver, digitise


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

    def violations(self) -> tuple[Condition, ...]:
        """A cell has no preimage exactly where one of these holds."""
        return _violations(self)


def try_invert(
    ring: Ring, outputs: Sequence[Poly], cells: Sequence[Poly], inputs: Sequence[int], extents: Mapping[int, Poly]
) -> Inversion | None:
    """The checked inverse of `outputs[k] = cells[k]` on the box of the inputs; None where this engine does not find one.

    With a result the map is proved injective on the box.
    """
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


def _violations(inversion: Inversion) -> tuple[Condition, ...]:
    """Where a digit or an input is out of its range, or an output does not lead back to the cell.

    Once every lower digit is in range, the top digit is below its extent where the whole is, so only the whole is asked.
    """
    ring, totals, extents = inversion.ring, inversion.totals, inversion.extents
    tops = {d.atoms[-1] for d in inversion.digits}
    found: list[Condition] = []
    for atom in inversion.unknowns:
        found.append(Condition(totals[atom], Sense.NEGATIVE))
        if atom not in tops:
            found.append(Condition(add(totals[atom], extents[atom], -1), Sense.NONNEGATIVE))
    found.extend(Condition(add(totals[d.atom], extents[d.atom], -1), Sense.NONNEGATIVE) for d in inversion.digits)
    values = {atom: totals[atom] for atom in inversion.unknowns}
    done: dict[int, Poly] = {}
    for output, cell in zip(inversion.outputs, inversion.cells, strict=True):
        found.append(Condition(add(ring.substitute(output, values, done), cell, -1), Sense.NONZERO))
    return _through_digits(ring, _without_repeats(ring, found), inversion.cells)


def _through_digits(ring: Ring, conditions: tuple[Condition, ...], cells: Sequence[Poly]) -> tuple[Condition, ...]:
    """The conditions without those that plainly never hold once the cells are written in digits."""
    if all(c.sense is not Sense.NONZERO for c in conditions):
        return conditions
    atoms = [m[0] for cell in cells for m in cell]
    sizes: dict[int, Poly] = {}
    for index in atoms:
        atom = ring.atoms[index]
        if atom.high is not None:
            sizes[index] = constant(atom.high + 1)
        elif atom.greatest is not None:
            sizes[index] = plus(atom.greatest, 1)
    cut = digitise(ring, [c.poly for c in conditions], list(sizes), sizes)
    if cut is None:
        return conditions
    decided = [Condition(poly, c.sense).decided(ring) for poly, c in zip(cut[0], conditions, strict=True)]
    return tuple(c for c, known in zip(conditions, decided, strict=True) if known is not False)


def _without_repeats(ring: Ring, conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    kept: list[Condition] = []
    for given in conditions:
        condition = given.reduced()
        decided = condition.decided(ring)
        if decided is False or condition in kept:
            continue
        if decided is True:
            return (Condition(plus({}, 0), Sense.NONNEGATIVE),)
        kept.append(condition)
    return tuple(kept)
