"""A question evaluated at points: where its hypotheses hold under a set of licences, and where its claim then fails.

What `nsz` means is written out here: the old program's behaviours at a point are those with any choice of signs for the zeros that
its operations yield. The claim is that for the one result of the new program there is such a behaviour that is equal up to the sign
of zero; a sign that the new program happens to have chooses nothing for the old one, so the new side is evaluated as IEEE says. The
hypotheses of `nnan` and `ninf` speak of the old program as IEEE evaluates it. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import product

import numpy as np

from layoutproof.ir.expr import Expr
from layoutproof.ir.visit import walk
from layoutproof.verify.values.licences import Licence, Licences
from layoutproof.verify.values.numbers import Mask, Points, Values
from layoutproof.verify.values.properties import (
    AtLeast,
    AtMost,
    Holds,
    Identical,
    NotInfinite,
    NotNan,
    NotNegativeZero,
    Property,
    condition_on,
)
from layoutproof.verify.values.question import Question
from layoutproof.verify.values.terms import Number, chooses_zero_sign, is_identical

# The signs of this many zeros are all tried, one for each operation below the root.
MOST_CHOICES = 4


class Claim:
    """One question at many points. `values` gives every variable, twins included, its values."""

    def __init__(self, question: Question, values: Mapping[str, Values], size: int) -> None:
        self.question = question
        self.values = values
        self.size = size
        self._old = Points(values, size)
        self._new = Points(values, size)
        with np.errstate(all="ignore"):
            self._old_value = self._old.value(question.old)
            self._new_value = self._new.value(question.new)
            self._assumed = self._hypotheses()

    def _hypotheses(self) -> Mask:
        holds = ~self._old.trapped
        for given in self.question.given:
            holds = holds & self._satisfied(given.property, given.var)
        for condition in self.question.conditions:
            points = Points(self.values, self.size)
            value = points.value(condition)
            holds = holds & value & ~points.trapped
        for var, twin in self.question.twins:
            holds = holds & _equal_up_to_zero(self.values[twin.name], self.values[var.name])
        return holds

    def _satisfied(self, known: Property, expr: Expr, value: Values | None = None) -> Mask:
        points = Points(self.values, self.size)
        x = points.value(expr) if value is None else value
        result: Mask
        match known:
            case NotNan():
                result = ~_is_nan(x)
            case NotInfinite():
                result = ~np.isinf(x) if expr.dtype.is_float else _all(self.size)
            case NotNegativeZero():
                result = ~((x == 0.0) & np.signbit(x)) if expr.dtype.is_float else _all(self.size)
            case AtLeast(bound):
                result = ~(x < points.value(bound))
            case AtMost(bound):
                result = ~(x > points.value(bound))
            case Identical(other):
                result = _identical(x, points.value(other))
            case Holds():
                result = points.value(condition_on(known, expr))
        return result & ~points.trapped

    @property
    def new_traps(self) -> Mask:
        """Where the new value has none."""
        return self._new.trapped

    def considered(self, licences: Licences) -> Mask:
        """Where every hypothesis holds, those of `nnan` and `ninf` included."""
        mask = self._assumed
        if Licence.NNAN in licences:
            mask = mask & ~self._some_value_is(np.isnan)
        if Licence.NINF in licences:
            mask = mask & ~self._some_value_is(np.isinf)
        return mask

    def _some_value_is(self, test: np.ufunc) -> Mask:
        found = ~_all(self.size)
        for var in self.question.computed:
            if var.dtype.is_float and var.name in self.values:
                where = self._old.read.get(var.name) if self.question.old_is_computed else None
                bad = test(self.values[var.name])
                found = found | (bad if where is None else bad & where)
        if self.question.old_is_computed:
            for computed in self._old.computed:
                found = found | (computed.where & test(computed.values))
        return found

    def fails(self, licences: Licences) -> Mask:
        """Where the hypotheses hold and the claim does not. `reassoc` is not looked at: the old expression is grouped as written."""
        considered = self.considered(licences)
        if self.question.goal is not None:
            return considered & ~self._new.trapped & ~self._satisfied(self.question.goal, self.question.new, self._new_value)
        wrong = ~self._agree_up_to_zero if Licence.NSZ in licences else ~_identical(self._new_value, self._old_value)
        return considered & (self._new.trapped | wrong)

    @cached_property
    def _agree_up_to_zero(self) -> Mask:
        agree = _equal_up_to_zero(self._new_value, self._old_value)
        for signs in sign_choices(self.question):
            points = Points(self.values, self.size, signs)
            agree = agree | _equal_up_to_zero(self._new_value, points.value(self.question.old))
        return agree

    def model(self, point: int) -> dict[str, Number]:
        """The values of the variables at a point, as Python has them; a twin is left out where it is its variable's value."""
        found: dict[str, Number] = {}
        for var in self.question.variables:
            found[var.name] = _number(self.values[var.name], point)
        for var, twin in self.question.twins:
            if is_identical(found[var.name], found[twin.name]):
                del found[twin.name]
        return found


def sign_choices(question: Question) -> list[tuple[bool | None, ...]]:
    """The choices of zero signs of the old expression, the root's own apart, which the comparison up to zero covers.

    All of them where there are at most `MOST_CHOICES` operations; else the two that make all alike: fewer behaviours of the old program,
    so that a proof stays a proof; but what refutes must then be left (`choices_are_complete`).
    """
    count = free_operations(question)
    if count <= MOST_CHOICES:
        return [tuple(signs) for signs in product((False, True), repeat=count)] if count else []
    return [(sign,) * count for sign in (False, True)]


def choices_are_complete(question: Question, licences: Licences) -> bool:
    """Whether every behaviour of the old expression under these licences is looked at, so that a point may refute."""
    return Licence.NSZ not in licences or free_operations(question) <= MOST_CHOICES


def free_operations(question: Question) -> int:
    """How many operations below the root of the old expression may choose a zero's sign."""
    if not question.old_is_computed or question.goal is not None:
        return 0
    count = sum(isinstance(node, Expr) and chooses_zero_sign(node) for node in walk(question.old))
    return count - 1 if chooses_zero_sign(question.old) else count


def _all(size: int) -> Mask:
    return np.ones(size, dtype=np.bool_)


def _is_nan(values: Values) -> Mask:
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=np.bool_)


def _identical(a: Values, b: Values) -> Mask:
    if a.dtype.kind != "f":
        return np.asarray(a == b)
    return np.asarray((np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b))))


def _equal_up_to_zero(a: Values, b: Values) -> Mask:
    if a.dtype.kind != "f":
        return np.asarray(a == b)
    return np.asarray((np.isnan(a) & np.isnan(b)) | (a == b))


def _number(values: Values, point: int) -> Number:
    value = values[point].item()
    return value if isinstance(value, float | int) else float(value)
