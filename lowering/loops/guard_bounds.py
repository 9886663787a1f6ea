"""What a guard says of one loop: the least and the largest iteration that it may let through, from its integer set.

Conjunctions and disjunctions of comparisons of sums are bounds themselves, symbols included; a disjunction's are those of its hull. Of
other conditions over constant ranges, such as remainders, every point is looked at. Nothing here is a verdict: the checker proves what
a pass makes of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

from layoutproof.ir.dtype import DType
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Binary, BinaryOp, Compare, CompareOp, Expr, IntImm, Logical, LogicalOp, Not, Var, binary, const
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import For
from layoutproof.ir.visit import free_variables
from layoutproof.lowering.affine import Affine, affine_of, expression_of
from layoutproof.lowering.effects import is_pure
from layoutproof.lowering.known import Scope, conjuncts

MAX_POINTS = 4096
"""Points that are looked at one by one, at most, for one condition."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Ends of a variable: it is at least each of `lows` and less than each of `ends`."""

    lows: tuple[Affine, ...] = ()
    ends: tuple[Affine, ...] = ()

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(self.lows + other.lows, self.ends + other.ends)


@dataclass(frozen=True, slots=True)
class GuardReader:
    """Reads guards for the bounds of `loop`. `inner` are the loops between it and the guard, outermost first; `scope` is outside of it,
    `whole` is the range that the loop has.
    """

    loop: For
    inner: Sequence[For]
    scope: Scope
    whole: Bounds

    def bounds(self, condition: Expr, holds: bool = True) -> Bounds:
        """What follows for the loop's variable where `condition` has the truth value `holds`; none where nothing is known to."""
        match condition:
            case Not():
                return self.bounds(condition.operand, not holds)
            case Logical() if (condition.op is LogicalOp.AND) == holds:
                return self.bounds(condition.lhs, holds) + self.bounds(condition.rhs, holds)
            case Logical():
                return self.hull(self.bounds(condition.lhs, holds), self.bounds(condition.rhs, holds))
            case Compare() if _splits(condition, holds):
                below, above = (Compare(op, condition.lhs, condition.rhs) for op in (CompareOp.LT, CompareOp.GT))
                return self.hull(self.bounds(below), self.bounds(above))
            case _:
                if not is_pure(condition):
                    return Bounds()
                found = sum((self.of_form(form) for form in conjuncts(condition, holds)), Bounds())
                return found if found.lows or found.ends else self.of_points(condition, holds)

    def says_all(self, condition: Expr) -> bool:
        """Whether the bounds that a condition gives say all that it says: it is a comparison with a range of the variable, whatever inner
        loops do.
        """
        if isinstance(condition, Not):
            positive = condition.operand
            return isinstance(positive, Compare) and self.says_all(Compare(positive.op.negated, positive.lhs, positive.rhs))
        if not isinstance(condition, Compare) or not is_pure(condition):
            return False
        forms = conjuncts(condition)
        spoken_of = {v for form in forms for term in form.terms for v in free_variables(term)}
        if not forms or spoken_of & {loop.var for loop in self.inner}:
            return False
        return all(len(found.lows) + len(found.ends) == 1 for found in map(self.of_outer_form, forms))

    def hull(self, one: Bounds, other: Bounds) -> Bounds:
        """What holds where either does."""
        one, other = one + self.whole, other + self.whole
        if self.is_empty(one) or self.is_empty(other):
            return other if self.is_empty(one) else one
        low = self.extreme([self.extreme(b.lows, BinaryOp.MAX) for b in (one, other)], BinaryOp.MIN)
        end = self.extreme([self.extreme(b.ends, BinaryOp.MIN) for b in (one, other)], BinaryOp.MAX)
        return Bounds((low,), (end,))

    def is_empty(self, bounds: Bounds) -> bool:
        """Whether some end is known to be past another."""
        return any(self.scope.is_nonnegative(low - end) for low in bounds.lows for end in bounds.ends)

    def extreme(self, ends: Sequence[Affine], op: BinaryOp) -> Affine:
        """The least or the largest of some ends, as one; those that are known not to be it are left out."""
        return reduce(lambda a, b: self._one_of(a, b, op), ends)

    def _one_of(self, a: Affine, b: Affine, op: BinaryOp) -> Affine:
        least, largest = (a, b) if op is BinaryOp.MIN else (b, a)
        if self.scope.is_nonnegative(largest - least):
            return a
        if self.scope.is_nonnegative(least - largest):
            return b
        dtype = self.loop.var.dtype
        return Affine({binary(op, written(a, dtype), written(b, dtype)): 1})

    def of_form(self, form: Affine) -> Bounds:
        """What `form >= 0` says: inner loops are taken where they leave most room."""
        for loop in reversed(self.inner):
            coefficient = form.terms.get(loop.var, 0)
            rest = Affine({t: c for t, c in form.terms.items() if t != loop.var}, form.constant)
            if any(loop.var in free_variables(term) for term in rest.terms):
                return Bounds()
            first = affine_of(loop.start)
            end = first + affine_of(loop.extent) + Affine({}, -1) if coefficient > 0 else first
            form = rest + end.scaled(coefficient)
        return self.of_outer_form(form)

    def of_outer_form(self, form: Affine) -> Bounds:
        """`form >= 0` without inner loops: the variable by itself, or in one quotient by a constant."""
        variable = self.loop.var
        using = [term for term in form.terms if variable in free_variables(term)]
        if len(using) != 1:
            return Bounds()
        term, coefficient = using[0], form.terms[using[0]]
        rest = Affine({t: c for t, c in form.terms.items() if t != term}, form.constant)
        low = _ceiling(rest.scaled(-1), coefficient, variable) if coefficient > 0 else None
        high = _floor(rest, -coefficient, variable) if coefficient < 0 else None
        if term == variable:
            return Bounds(() if low is None else (low,), () if high is None else (high + Affine({}, 1),))
        if isinstance(term, Binary) and term.op is BinaryOp.FLOORDIV and isinstance(term.rhs, IntImm) and term.rhs.value > 0:
            divisor, dividend = term.rhs.value, affine_of(term.lhs)
            if low is not None:
                return self.of_outer_form(dividend - low.scaled(divisor))
            if high is not None:
                return self.of_outer_form(high.scaled(divisor) + Affine({}, divisor - 1) - dividend)
        return Bounds()

    def of_points(self, condition: Expr, holds: bool) -> Bounds:
        """The ends of the points where a condition has a truth value, looked at one by one where all ranges are constants."""
        points = self.points(condition)
        if points is None:
            return Bounds()
        found = [point[self.loop.var.name] for point in points if _value(condition, point) is not (not holds)]
        if not found:
            # Nothing passes: an empty range.
            return Bounds((Affine({}, 0),), (Affine({}, 0),))
        return Bounds((Affine({}, min(found)),), (Affine({}, max(found) + 1),))

    def points(self, condition: Expr) -> list[dict[str, int]] | None:
        """Every point of the loop and the inner loops that a condition speaks of; None where they are too many or not known."""
        loops = [loop for loop in (self.loop, *self.inner) if loop is self.loop or loop.var in free_variables(condition)]
        if set(free_variables(condition)) - {loop.var for loop in loops}:
            return None
        ranges = []
        count = 1
        for loop in loops:
            if not isinstance(loop.start, IntImm) or not isinstance(loop.extent, IntImm):
                return None
            ranges.append(range(loop.start.value, loop.start.value + loop.extent.value))
            count *= len(ranges[-1])
        if count > MAX_POINTS:
            return None
        return [dict(zip((loop.var.name for loop in loops), values, strict=True)) for values in product(*ranges)]


def written(form: Affine, dtype: DType) -> Expr:
    """The form as an expression; where all terms are subtracted, from the constant."""
    if form.terms and form.constant > 0 and all(c < 0 for c in form.terms.values()):
        return const(form.constant, dtype) - expression_of(Affine(form.scaled(-1).terms), dtype)
    return expression_of(form, dtype)


def _splits(condition: Compare, holds: bool) -> bool:
    """Whether a comparison has the truth value on either side of a point: `!=`, or `==` that does not hold."""
    return condition.lhs.dtype.is_integer and (condition.op if holds else condition.op.negated) is CompareOp.NE


def _value(condition: Expr, point: Mapping[str, int]) -> bool | None:
    """The condition's truth value at a point; None where it has none, so that the point stays."""
    try:
        return bool(evaluate(condition, point))
    except Trap:
        return None


def _floor(dividend: Affine, divisor: int, like: Var) -> Affine:
    """`dividend // divisor`."""
    whole, rest = dividend.split(divisor)
    if rest.is_constant:
        return whole
    return whole + Affine({binary(BinaryOp.FLOORDIV, written(rest, like.dtype), IntImm(divisor, like.dtype)): 1})


def _ceiling(dividend: Affine, divisor: int, like: Var) -> Affine:
    """`dividend / divisor`, rounded up."""
    return _floor(dividend + Affine({}, divisor - 1), divisor, like)
