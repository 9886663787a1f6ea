"""When a cell is padding, as an expression. Of a map with the inverse g: `g(p)` leaves the domain, or `f(g(p))` is not
`p`. Of a map that is linear over bits: a relation of the image is broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import gcd

from layoutproof.ir.expr import Binary, Compare, Expr, IntImm, compare, const, logical_and
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.verify.algebra.lift import number
from layoutproof.verify.algebra.polynomials import ONE, Poly, add, constant, constant_of, plus, power_of_two, scale
from layoutproof.verify.algebra.rendering import Renderer, join
from layoutproof.verify.algebra.ring import Ring
from layoutproof.verify.maps.bits import Linear
from layoutproof.verify.maps.elimination import digitise
from layoutproof.verify.maps.inverse import Inversion


class Sense(StrEnum):
    """How a form is compared with 0."""

    NEGATIVE = "<"
    NONNEGATIVE = ">="
    NONZERO = "!="


@dataclass(frozen=True, slots=True)
class Condition:
    """`poly sense 0`."""

    poly: Poly
    sense: Sense

    def reduced(self) -> Condition:
        """The condition without common factors; of the two signs of `!=`, the one whose latest term is positive."""
        names = [c for m, c in self.poly.items() if m != ONE]
        offset = self.poly.get(ONE, 0)
        if not names:
            return self
        common = gcd(*names)
        if self.sense is Sense.NONZERO:
            common = gcd(common, offset)
            if self.poly[max(m for m in self.poly if m != ONE)] < 0:
                common = -common
        poly = {m: c // common for m, c in self.poly.items() if m != ONE}
        # g*Q + c >= 0 exactly where Q + c//g >= 0, since Q is an integer.
        return Condition(plus(poly, offset // common), self.sense)

    def decided(self, ring: Ring) -> bool | None:
        """Its value where the ranges decide it."""
        low, high = ring.range_of(self.poly)
        if self.sense is Sense.NONZERO:
            if constant_of(self.poly) == 0 or low == high == 0:
                return False
            return True if (low is not None and low > 0) or (high is not None and high < 0) else None
        negative = self.sense is Sense.NEGATIVE
        if ring.is_nonnegative(self.poly):
            return not negative
        below = scale(self.poly, -1)
        below = add(below, {ONE: 1}, -1)
        if ring.is_nonnegative(below):
            return negative
        return None


@dataclass(slots=True)
class Term:
    """`factor * expr`, with the bounds of `expr`."""

    factor: int
    expr: Expr
    low: int | None
    high: int | None


def condition_expr(renderer: Renderer, condition: Condition) -> Expr:
    """The condition as an expression over cells and symbols."""
    terms, offset = _ranged_terms(renderer, condition.poly)
    if condition.sense is Sense.NONZERO:
        return _linear(CompareOp.NE, terms, offset)
    if all(t.low is not None and t.high is not None for t in terms):
        terms.sort(key=lambda t: -abs(t.factor))
        return bound_expr(terms, -offset, condition.sense is Sense.NONNEGATIVE)
    return _linear(CompareOp.GE if condition.sense is Sense.NONNEGATIVE else CompareOp.LT, terms, offset)


def _ranged_terms(renderer: Renderer, poly: Poly) -> tuple[list[Term], int]:
    found: list[Term] = []
    offset = 0
    for factor, expr in renderer.terms(poly):
        if expr is None:
            offset = factor
        else:
            low, high = renderer.ranges[expr]
            found.append(Term(factor, expr, low, high))
    return found, offset


def _linear(op: CompareOp, terms: list[Term], offset: int) -> Expr:
    """`sum(terms) + offset op 0`, every term on the side where its factor is positive."""
    left: list[tuple[int, Expr | None]] = [(t.factor, t.expr) for t in terms if t.factor > 0]
    right: list[tuple[int, Expr | None]] = [(-t.factor, t.expr) for t in terms if t.factor < 0]
    if not left:
        left, right, offset, op = right, left, -offset, op.mirrored
    if right and offset > 0:
        left.append((offset, None))
    elif offset:
        right.append((-offset, None))
    return compare(op, join(left), join(right))


def _span(terms: list[Term]) -> tuple[int, int]:
    low = high = 0
    for term in terms:
        assert term.low is not None and term.high is not None
        ends = (term.factor * term.low, term.factor * term.high)
        low, high = low + min(ends), high + max(ends)
    return low, high


def bound_expr(terms: list[Term], threshold: int, at_least: bool) -> Expr:
    """`sum(terms) >= threshold` (or `<`), with leading terms fixed that have only one possible value. The terms are
    sorted by their factors, large ones first.
    """
    facts: list[Expr] = []
    while len(terms) > 1:
        first, rest = terms[0], terms[1:]
        low, high = _span(rest)
        assert first.low is not None and first.high is not None
        if _rest_is_idle(first, threshold, low, high):
            threshold -= low
            terms = [first]
            break
        wanted_large = at_least == (first.factor > 0)
        best, next_best = (first.high, first.high - 1) if wanted_large else (first.low, first.low + 1)
        reach = first.factor * next_best + (high if at_least else low)
        if first.low != first.high and ((reach >= threshold) if at_least else (reach < threshold)):
            break
        if first.low != first.high:
            facts.append(Compare(CompareOp.EQ, first.expr, number(best, first.expr.dtype)))
        threshold -= first.factor * best
        terms = rest
        low, high = _span(terms)
        if (low >= threshold) if at_least else (high < threshold):
            return logical_and(*facts)
    facts.append(
        _single(terms[0], threshold, at_least) if len(terms) == 1 else _linear(_op(at_least), terms, -threshold)
    )
    return logical_and(*facts)


def _op(at_least: bool) -> CompareOp:
    return CompareOp.GE if at_least else CompareOp.LT


def _rest_is_idle(first: Term, threshold: int, low: int, high: int) -> bool:
    """Whether `first + rest >= threshold` depends on `first` alone: no multiple of its factor is as near as `rest`."""
    size = abs(first.factor)
    return (threshold - low + size - 1) // size == (threshold - high + size - 1) // size


def _single(term: Term, threshold: int, at_least: bool) -> Expr:
    """`factor * x >= threshold` (or `<`) as a bound on x, as an equality where one value is left."""
    factor = term.factor
    if factor < 0:
        factor, threshold, at_least = -factor, 1 - threshold, not at_least
    bound = -(-threshold // factor)
    if at_least and term.high is not None and bound == term.high and term.low != term.high:
        return Compare(CompareOp.EQ, term.expr, number(bound, term.expr.dtype))
    if not at_least and term.low is not None and bound - 1 == term.low and term.low != term.high:
        return Compare(CompareOp.EQ, term.expr, number(bound - 1, term.expr.dtype))
    return Compare(_op(at_least), term.expr, number(bound, term.expr.dtype))


def violations(inversion: Inversion) -> tuple[Condition, ...]:
    """A cell has no preimage exactly where a digit or an input is out of range, or the map does not lead back.

    If every lower digit is in range, the top one is where the whole is below its extent: only the whole is asked.
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


# Maps over bits


def _exclusive_or(linear: Linear, wanted: Sequence[tuple[int, int]], cells: Sequence[Expr]) -> Expr:
    """The value whose bit k is the XOR of the places in `wanted[k][0]` and of the constant `wanted[k][1]`.

    Places of one axis at one distance are one shift and one mask.
    """
    masks: dict[tuple[int, int], int] = {}
    ones = 0
    for k, (used, offset) in enumerate(wanted):
        ones |= offset << k
        for position, (axis, bit) in enumerate(linear.places):
            if used >> position & 1:
                masks[axis, bit - k] = masks.get((axis, bit - k), 0) | 1 << k
    terms: list[Expr] = []
    for (axis, distance), mask in sorted(masks.items(), key=lambda item: (item[0][0], abs(item[0][1]))):
        shifted = (
            cells[axis] if distance == 0 else cells[axis] >> distance if distance > 0 else cells[axis] << -distance
        )
        reach = (1 << linear.widths[axis]) - 1
        reach = reach >> distance if distance >= 0 else reach << -distance
        terms.append(shifted if reach & ~mask == 0 else shifted & mask)
    if ones or not terms:
        terms.append(const(ones))
    result = terms[0]
    for term in terms[1:]:
        result = result ^ term
    return result


def input_exprs(linear: Linear, extents: Sequence[int], cells: Sequence[Expr]) -> list[Expr]:
    """Each input over the cells; for a map of full rank."""
    result: list[Expr] = []
    first = 0
    for extent in extents:
        size = extent.bit_length() - 1
        result.append(_exclusive_or(linear, [linear.solved[first + k] for k in range(size)], cells))
        first += size
    return result


def padding_exprs(linear: Linear, box: Sequence[int], cells: Sequence[Expr]) -> list[Expr]:
    """Conditions, any of which makes a cell padding: bits the axis never has, or a broken relation of the image."""
    result: list[Expr] = []
    for axis, (width, extent) in enumerate(zip(linear.widths, box, strict=True)):
        if extent > 1 << width:
            result.append(cells[axis] >= 1 << width)
    fixed: dict[int, tuple[int, int]] = {}
    for used, offset in linear.relations:
        if power_of_two(used):
            axis, bit = linear.places[used.bit_length() - 1]
            mask, value = fixed.get(axis, (0, 0))
            fixed[axis] = (mask | 1 << bit, value | offset << bit)
        else:
            parity = _exclusive_or(linear, [(used, 0)], cells)
            result.append(compare(CompareOp.NE, parity & 1 if not _is_bit(parity) else parity, const(offset)))
    for axis, (mask, value) in fixed.items():
        result.append(compare(CompareOp.NE, cells[axis] & mask, const(value)))
    return result


def _is_bit(expr: Expr) -> bool:
    """Whether every term of the XOR is masked to one bit already."""
    if isinstance(expr, Binary) and expr.op is BinaryOp.BITXOR:
        return _is_bit(expr.lhs) and _is_bit(expr.rhs)
    return (
        isinstance(expr, Binary) and expr.op is BinaryOp.BITAND and isinstance(expr.rhs, IntImm) and expr.rhs.value == 1
    )
