"""A question evaluated at points, and as SMT-LIB text whose `unsat` is its proof.

What `nsz` means is written out in both: the old program may take any choice of signs for the zeros that its
operations yield, and the new value must be one of the results. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import product

import numpy as np

from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.visit import walk
from layoutproof.verify.smt.encode_values import ComputedFloat, ValueEncoder, conjunction, disjunction, model_name, same
from layoutproof.verify.values.fast_math import FastMath, FastMathSet
from layoutproof.verify.values.law_table import axioms_of
from layoutproof.verify.values.numbers import Mask, Points, Values, widened
from layoutproof.verify.values.question import (
    AtLeast,
    AtMost,
    Holds,
    Identical,
    NotInfinite,
    NotNan,
    NotNegativeZero,
    Property,
    Question,
    condition_on,
)
from layoutproof.verify.values.terms import Number, chooses_zero_sign, is_identical

# The signs of this many zeros are all tried, one for each operation below the root.
MOST_CHOICES = 4


class Claim:
    """One question at many points. `values` gives every variable, variants included, its values."""

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
        for var, variant in self.question.variants:
            holds = holds & _equal_up_to_zero(self.values[variant.name], self.values[var.name])
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

    def considered(self, fast_math: FastMathSet) -> Mask:
        """Where every hypothesis holds, those of `nnan` and `ninf` included."""
        mask = self._assumed
        if FastMath.NNAN in fast_math:
            mask = mask & ~self._some_value_is(np.isnan)
        if FastMath.NINF in fast_math:
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

    def fails(self, fast_math: FastMathSet) -> Mask:
        """Where the hypotheses hold and the claim does not; without `reassoc`, as the old expression is grouped."""
        considered = self.considered(fast_math)
        if self.question.goal is not None:
            return (
                considered
                & ~self._new.trapped
                & ~self._satisfied(self.question.goal, self.question.new, self._new_value)
            )
        wrong = ~self._agree_up_to_zero if FastMath.NSZ in fast_math else ~_identical(self._new_value, self._old_value)
        return considered & (self._new.trapped | wrong)

    @cached_property
    def _agree_up_to_zero(self) -> Mask:
        agree = _equal_up_to_zero(self._new_value, self._old_value)
        for signs in sign_choices(self.question):
            points = Points(self.values, self.size, signs)
            agree = agree | _equal_up_to_zero(self._new_value, points.value(self.question.old))
        return agree

    def model(self, point: int) -> dict[str, Number]:
        """The values of the variables at a point; a variant only where it differs from its variable."""
        found: dict[str, Number] = {}
        for var in self.question.variables:
            found[var.name] = _number(self.values[var.name], point)
        for var, variant in self.question.variants:
            if is_identical(found[var.name], found[variant.name]):
                del found[variant.name]
        return found


def sign_choices(question: Question) -> list[tuple[bool | None, ...]]:
    """The choices of zero signs of the old expression, the root's own apart, which the comparison up to zero covers.

    All of them where there are at most `MOST_CHOICES` operations; else the two that make all alike: fewer behaviours of
    the old program, so that a proof stays a proof; but what refutes must then be left (`choices_are_complete`).
    """
    count = free_operations(question)
    if count <= MOST_CHOICES:
        return [tuple(signs) for signs in product((False, True), repeat=count)] if count else []
    return [(sign,) * count for sign in (False, True)]


def choices_are_complete(question: Question, fast_math: FastMathSet) -> bool:
    """Whether every behaviour of the old expression under these fast-math assumptions is looked at, so that a point may
    refute.
    """
    return FastMath.NSZ not in fast_math or free_operations(question) <= MOST_CHOICES


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


class Formula:
    """The negated claim of a question under a set of fast-math assumptions, over an encoder. `axioms` names those of
    the math functions that were used.

    Raises NotValue for an expression that cannot be encoded.
    """

    def __init__(self, question: Question, fast_math: FastMathSet) -> None:
        self.question = question
        self.fast_math = fast_math
        self.encoder = ValueEncoder()
        old, computed, old_traps = self._evaluated(question.old)
        # Where the old side evaluates each variable; what follows evaluates them elsewhere too.
        self._read = {var: tuple(paths) for var, paths in self.encoder.read.items() if question.old_is_computed}
        new, _, new_traps = self._evaluated(question.new)
        self._assertions = [f"(not {trap})" for trap in old_traps]
        self._assertions += self._hypotheses()
        self._assertions += self._excused(computed)
        self._assertions.append(self._violation(new, old, new_traps))
        axioms = axioms_of((question.old, question.new), self.encoder)
        self.axioms = tuple(axiom.name for axiom in axioms)
        self._assertions += [axiom.assertion for axiom in axioms]

    def text(self, comment: str = "") -> str:
        """The query; `unsat` proves the claim."""
        return self.encoder.script(self._assertions, comment)

    def _evaluated(self, expr: Expr) -> tuple[str, list[ComputedFloat], list[str]]:
        enc = self.encoder
        enc.traps, enc.computed = [], []
        return enc.value(expr), enc.computed, enc.traps

    def _hypotheses(self) -> list[str]:
        found: list[str] = []
        for given in self.question.given:
            term, _, traps = self._evaluated(given.var)
            found += [self._satisfied(given.property, given.var, term), *(f"(not {t})" for t in traps)]
        for condition in self.question.conditions:
            term, _, traps = self._evaluated(condition)
            found += [term, *(f"(not {t})" for t in traps)]
        for var, variant in self.question.variants:
            found.append(equal_up_to_zero(self.encoder.value(var), self.encoder.value(variant), var.dtype))
        return found

    def _satisfied(self, known: Property, expr: Expr, term: str) -> str:
        """The property of a term; what traps in it is left to the caller."""
        dtype = expr.dtype
        match known:
            case NotNan():
                return f"(not (fp.isNaN {term}))" if dtype.is_float else "true"
            case NotInfinite():
                return f"(not (fp.isInfinite {term}))" if dtype.is_float else "true"
            case NotNegativeZero():
                return f"(not (and (fp.isZero {term}) (fp.isNegative {term})))" if dtype.is_float else "true"
            case AtLeast(bound):
                return f"(not {self.encoder.value(placed(bound, expr, '<'))})"
            case AtMost(bound):
                return f"(not {self.encoder.value(placed(bound, expr, '>'))})"
            case Identical(other):
                return same(term, self.encoder.value(other))
            case Holds():
                return self.encoder.value(condition_on(known, expr))

    def _excused(self, computed: list[ComputedFloat]) -> list[str]:
        """The hypotheses of `nnan` and `ninf`: on what the old program computes, where it does."""
        tests = [
            t for flag, t in ((FastMath.NNAN, "fp.isNaN"), (FastMath.NINF, "fp.isInfinite")) if flag in self.fast_math
        ]
        found: list[str] = []
        names = {v.name for v in self.question.variables}
        for var in sorted(self.question.computed, key=lambda v: v.name):
            if var.dtype.is_float and var.name in names:
                found += [self._unless(var, f"({test} {self.encoder.value(var)})") for test in tests]
        for value in computed if self.question.old_is_computed else ():
            for test in tests:
                bad = f"({test} {value.term})"
                found.append(f"(not {bad})" if value.where is None else f"(not (and {value.where} {bad}))")
        return list(dict.fromkeys(found))

    def _unless(self, var: Var, bad: str) -> str:
        """Not `bad` where the old side evaluates a variable; nowhere if it does not mention it."""
        paths = self._read.get(var, (None,))
        sometimes = [path for path in dict.fromkeys(paths) if path is not None]
        return f"(not {bad})" if None in paths else f"(not {conjunction([disjunction(sometimes), bad])})"

    def _violation(self, new: str, old: str, new_traps: list[str]) -> str:
        question = self.question
        if question.goal is not None:
            self.encoder.traps = []
            claim = self._satisfied(question.goal, question.new, new)
            return conjunction(
                [*(f"(not {t})" for t in new_traps), disjunction([*self.encoder.traps, f"(not {claim})"])]
            )
        if FastMath.NSZ not in self.fast_math:
            return disjunction([*new_traps, f"(not {same(new, old)})"])
        dtype = question.old.dtype
        behaviours = [old, *(self._with_signs(signs) for signs in sign_choices(question))]
        differs = [f"(not {equal_up_to_zero(new, behaviour, dtype)})" for behaviour in dict.fromkeys(behaviours)]
        return disjunction([*new_traps, conjunction(differs)])

    def _with_signs(self, signs: tuple[bool | None, ...]) -> str:
        """The old expression where its operations, in evaluation order, choose these signs for their zeros."""
        chosen = iter(signs)

        def sign_zero(expr: Expr, term: str) -> str:
            if not chooses_zero_sign(expr):
                return term
            negative = next(chosen, None)
            if negative is None:
                return term
            name = self.encoder.define(term, self.encoder.sort(expr.dtype))
            return f"(ite (fp.isZero {name}) {self.encoder.real(-0.0 if negative else 0.0, expr.dtype)} {name})"

        self.encoder.sign_zero = sign_zero
        try:
            return self._evaluated(self.question.old)[0]
        finally:
            self.encoder.sign_zero = None


def placed(bound: Expr, expr: Expr, comparison: str) -> Expr:
    """`expr < bound` or `expr > bound`."""
    return expr < bound if comparison == "<" else expr > bound


def equal_up_to_zero(a: str, b: str, dtype: DType) -> str:
    """Equal where a zero's sign does not count: identical, or both zeros."""
    return f"(or {same(a, b)} (and (fp.isZero {a}) (fp.isZero {b})))" if dtype.is_float else same(a, b)


def values_of(question: Question, model: Mapping[str, int]) -> dict[str, Values]:
    """A solver's model as one point; what it leaves open is 0, or for a variant the value of its variable."""
    found = {v.name: _number_of_bits(model.get(model_name(v), 0), v.dtype) for v in question.variables}
    for var, variant in question.variants:
        if model_name(variant) not in model:
            found[variant.name] = found[var.name]
    return found


def _number_of_bits(bits: int, dtype: DType) -> Values:
    if dtype.is_bool:
        return np.array([bool(bits)])
    raw = np.array([bits], dtype=f"uint{dtype.bits}").view(numpy_dtype(dtype))
    return widened(raw) if dtype.is_float else raw
