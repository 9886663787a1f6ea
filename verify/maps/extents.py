"""The physical shape: digit axes have their written extent, every other axis the least one that holds the image.

The least and the largest value of an output are exact: from a corner of the box where the output is monotone in every
input, from digits that reach their ends together, by enumeration of the axis's inputs, or from isl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from layoutproof.verify.algebra.enumeration import MAX_POINTS, Table, TooLarge, over_box, total
from layoutproof.verify.algebra.polynomials import (
    ONE,
    AtomKind,
    GiveUp,
    Monomial,
    Poly,
    add,
    constant,
    multiply,
    plus,
    power_of_two,
    scale,
    tuple_without,
)
from layoutproof.verify.algebra.ring import Ring
from layoutproof.verify.maps.elimination import Digits, digitise
from layoutproof.verify.maps.problem import Problem

Directions = dict[int, int]  # +1 rising, -1 falling, 0 both, for each input atom


def directions(ring: Ring, poly: Poly) -> Directions:
    """The direction in which the form moves with each unknown; 0 where it is not known to be monotone."""
    result: Directions = {}
    for monomial, c in poly.items():
        unknown = [a for a in monomial if ring.atoms[a].support]
        if not unknown:
            continue
        others_ok = all((low := ring.atoms[a].low) is not None and low >= 0 for a in monomial)
        if len(unknown) > 1 and not all(ring.atoms[a].kind is AtomKind.NAME for a in unknown):
            others_ok = False
        for number in unknown:
            _one_direction(ring, number, (1 if c > 0 else -1) if others_ok or len(monomial) == 1 else 0, result)
    return result


def _one_direction(ring: Ring, number: int, sign: int, result: Directions) -> None:
    atom = ring.atoms[number]
    if atom.kind is AtomKind.NAME:
        result[number] = sign if result.get(number, sign) == sign else 0
    elif atom.kind is AtomKind.FLOOR and not ring.support(atom.parts[1]):
        inner = directions(ring, atom.parts[0])
        for name, direction in inner.items():
            _one_direction(ring, name, sign * direction, result)
    else:
        for name in ring.atoms_below([{(number,): 1}]):
            if ring.atoms[name].kind is AtomKind.NAME and ring.atoms[name].support:
                result[name] = 0


def corner_value(
    ring: Ring, poly: Poly, ends: Mapping[int, Poly], largest: bool
) -> tuple[Poly, dict[int, Poly]] | None:
    """The exact extreme of a form monotone in every unknown, and where; `ends` has each unknown's last value."""
    corner: dict[int, Poly] = {}
    for atom, direction in directions(ring, poly).items():
        if direction == 0 or atom not in ends:
            return None
        corner[atom] = ends[atom] if (direction > 0) == largest else {}
    try:
        return ring.substitute(poly, corner), corner
    except GiveUp:
        return None


def digit_extreme(problem: Problem, poly: Poly, largest: bool) -> Poly | None:
    """The exact extreme of a form over digits: at all their ends, or at the ends of the inputs they are digits of.

    The second needs each digit to weigh at least as much as all lower ones, so that the form moves with the input.
    """
    ring = problem.ring
    sizes = {
        atom: e
        for atom, e in zip(problem.atoms, problem.extent_polys, strict=True)
        if atom is not None and e is not None
    }
    try:
        cut = digitise(ring, [poly], list(sizes), sizes)
        if cut is None:
            return None
        (form,), digits = cut
        ends = {atom: plus(extent, -1) for atom, extent in sizes.items()}
        found = _at_digit_ends(ring, form, digits, sizes, ends, largest)
        return found if found is not None else _at_input_ends(ring, form, digits, ends, largest)
    except GiveUp:
        return None


def _at_digit_ends(
    ring: Ring, form: Poly, digits: Sequence[Digits], sizes: Mapping[int, Poly], ends: Mapping[int, Poly], largest: bool
) -> Poly | None:
    form, settled = _without_xors(ring, form, largest)
    found = corner_value(ring, form, ends, largest)
    if found is None:
        return None
    value, corner = found
    values: dict[int, Poly] = {**settled, **corner}
    for d in reversed(digits):  # digits of digits come later
        values[d.atom] = ring.substitute(d.total, {a: values.get(a, {}) for a in d.atoms})
        if not ring.is_nonnegative(add(plus(sizes[d.atom], -1), values[d.atom], -1)):
            return None
    return value


def _without_xors(ring: Ring, form: Poly, largest: bool) -> tuple[Poly, dict[int, Poly]]:
    """The form with XORs of two own digits replaced by their extreme, and the digits' values that reach it.

    Two digits of powers of two reach the larger one's last value, with the other at 0, and 0 with both at 0.
    """
    result = dict(form)
    settled: dict[int, Poly] = {}
    for monomial, c in form.items():
        if len(monomial) != 1 or ring.atoms[monomial[0]].kind is not AtomKind.XOR:
            continue
        names = [
            m[0]
            for part in ring.atoms[monomial[0]].parts
            for m in part
            if len(part) == 1 and len(m) == 1 and part[m] == 1
        ]
        if (
            len(names) != 2
            or len(ring.atoms[monomial[0]].parts) != 2
            or not all(_is_whole_digit(ring, a) for a in names)
        ):
            continue
        if set(names) & ring.atoms_below([{m: k for m, k in form.items() if m != monomial}]):
            continue
        highs = {a: ring.atoms[a].high or 0 for a in names}
        top = max(names, key=lambda a: highs[a])
        rises = (c > 0) == largest
        settled.update({a: constant(highs[a]) if rises and a == top else {} for a in names})
        del result[monomial]
        result = plus(result, c * highs[top] if rises else 0)
    return result, settled


def _is_whole_digit(ring: Ring, number: int) -> bool:
    """Whether the atom is an unknown that goes through `[0, 2**k)`."""
    atom = ring.atoms[number]
    whole = atom.high is not None and power_of_two(atom.high + 1)
    return atom.kind is AtomKind.NAME and bool(atom.support) and atom.low == 0 and whole


def _at_input_ends(
    ring: Ring, form: Poly, digits: Sequence[Digits], ends: Mapping[int, Poly], largest: bool
) -> Poly | None:
    moves = directions(ring, form)
    values: dict[int, Poly] = {}
    nested = {a for d in digits for a in d.atoms} & {d.atom for d in digits}
    if nested or not all(_is_linear(ring, monomial) for monomial in form):
        return None  # a digit's digits are not at their ends where the input is
    for d in digits:
        signs = {moves[a] for a in d.atoms if a in moves}
        if len(signs) != 1 or 0 in signs:
            return None
        (sign,) = signs
        below: Poly = {}  # what the lower digits add at most
        for atom in d.atoms:
            weight = scale(_weight(form, atom), sign)
            if not ring.is_nonnegative(add(weight, below, -1)):
                return None
            below = add(below, multiply(weight, ends[atom]))
        last = ends[d.atom] if (sign > 0) == largest else {}
        values.update(_digits_of(ring, d, last))
    for atom, sign in moves.items():
        if atom not in values:
            if sign == 0 or atom not in ends:
                return None
            values[atom] = ends[atom] if (sign > 0) == largest else {}
    return ring.substitute(form, values)


def _is_linear(ring: Ring, monomial: Monomial) -> bool:
    """Whether at most one unknown is in the term, as a name: not inside a division, not multiplied by another."""
    unknown = [ring.atoms[a] for a in monomial if ring.atoms[a].support]
    return not unknown or (len(unknown) == 1 and unknown[0].kind is AtomKind.NAME)


def _weight(form: Poly, atom: int) -> Poly:
    """The factor of a name, in a form that is linear in it."""
    return {tuple_without(m, atom): c for m, c in form.items() if atom in m}


def _digits_of(ring: Ring, digits: Digits, value: Poly) -> dict[int, Poly]:
    quotients = [ring.floor(value, factor) for factor in digits.factors]
    found: dict[int, Poly] = {}
    for k, atom in enumerate(digits.atoms):
        if k + 1 == len(digits.atoms):
            found[atom] = quotients[k]
        else:
            radix = ring.floor(digits.factors[k + 1], digits.factors[k])
            found[atom] = add(quotients[k], multiply(radix, quotients[k + 1]), -1)
    return found


def input_ends(problem: Problem) -> dict[int, Poly]:
    """The last value of each input that has more than one."""
    pairs = zip(problem.atoms, problem.extent_polys, strict=True)
    return {atom: plus(extent, -1) for atom, extent in pairs if atom is not None and extent is not None}


def symbolic_extreme(problem: Problem, axis: int, largest: bool) -> Poly | None:
    """The exact least or largest value of an output by monotone corners or digits, if they show it."""
    poly = problem.outputs[axis]
    if poly is None:
        return None
    if not poly or (len(poly) == 1 and ONE in poly):
        return poly
    found = corner_value(problem.ring, poly, input_ends(problem), largest)
    if found is not None:
        return found[0]
    if largest:
        top = largest_xor(problem.ring, poly)
        if top is not None:
            return top
    return digit_extreme(problem, poly, largest)


def largest_xor(ring: Ring, poly: Poly) -> Poly | None:
    """The exact maximum of `x ^ y` for two different inputs, each from 0 to its last value; None for any other form."""
    if len(poly) != 1:
        return None
    ((monomial, c),) = poly.items()
    atom = ring.atoms[monomial[0]] if len(monomial) == 1 and c == 1 else None
    if atom is None or atom.kind is not AtomKind.XOR or len(atom.parts) != 2:
        return None
    tops: list[int] = []
    for part in atom.parts:
        names = [ring.atoms[m[0]] for m in part if len(m) == 1]
        if len(part) != 1 or len(names) != 1 or names[0].kind is not AtomKind.NAME or part != {next(iter(part)): 1}:
            return None
        if names[0].low != 0 or names[0].high is None or not names[0].support:
            return None
        tops.append(names[0].high)
    result = 0
    for k in reversed(range(max(tops).bit_length())):
        x, y = tops[0] >> k & 1, tops[1] >> k & 1
        if x and y:
            # One keeps the bit, the other drops it and is then free in all lower ones.
            return constant(result | (1 << (k + 1)) - 1)
        result |= (x | y) << k
    return constant(result)


def axis_inputs(problem: Problem, axis: int) -> list[int]:
    """The inputs an output is written with, those of extent 1 included."""
    return list(problem.reading.uses[axis])


def tabulated_extreme(problem: Problem, axis: int) -> tuple[int, int, tuple[int, ...]] | None:
    """The least and the largest value by trying every point, and the point of the least over the axis's own inputs.

    None where there are too many points, or too many for values that do not fit 62 bits.
    """
    inputs = axis_inputs(problem, axis)
    extents = problem.numbers(inputs)
    if prod(extents) > MAX_POINTS:
        return None
    names = [problem.index_map.inputs[k].name for k in inputs]
    try:
        values = over_box(total(problem.index_map.outputs[axis]), names, extents)
    except TooLarge:
        return None
    least = int(values.argmin())
    return int(values[least]), int(values.max()), Table(extents, []).point(least)
