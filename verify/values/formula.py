"""A question as SMT-LIB text whose `unsat` is its proof, and a solver's model read back as values.

`nsz` is encoded by its behaviours: the old expression is written once for every choice of zero signs below its root, and the negated
claim says that the new value is equal, up to the sign of zero, to none of them. Nothing is chosen on the new side. Part of the trust
base.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.numpy_types import numpy_dtype
from layoutproof.verify.smt.encode_values import ComputedFloat, ValueEncoder, conjunction, disjunction, model_name, same
from layoutproof.verify.values.axioms import axioms_of
from layoutproof.verify.values.claims import sign_choices
from layoutproof.verify.values.licences import Licence, Licences
from layoutproof.verify.values.numbers import Values
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
from layoutproof.verify.values.terms import chooses_zero_sign
from layoutproof.verify.values.trials import widened


class Formula:
    """The negated claim of a question under a set of licences, over an encoder. `axioms` names those of the math functions that were used.

    Raises NotValue for an expression that cannot be encoded.
    """

    def __init__(self, question: Question, licences: Licences) -> None:
        self.question = question
        self.licences = licences
        self.encoder = ValueEncoder()
        old, computed, old_traps = self._evaluated(question.old)
        # Where the old side evaluates each variable; what follows evaluates them elsewhere too.
        self._read = {var: tuple(paths) for var, paths in self.encoder.read.items() if question.old_is_computed}
        new, _, new_traps = self._evaluated(question.new)
        self._assertions = [f"(not {trap})" for trap in old_traps]
        self._assertions += self._hypotheses()
        self._assertions += self._licensed(computed)
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
        for var, twin in self.question.twins:
            found.append(equal_up_to_zero(self.encoder.value(var), self.encoder.value(twin), var.dtype))
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

    def _licensed(self, computed: list[ComputedFloat]) -> list[str]:
        """The hypotheses of `nnan` and `ninf`: on what the old program computes, where it does."""
        tests = [t for licence, t in ((Licence.NNAN, "fp.isNaN"), (Licence.NINF, "fp.isInfinite")) if licence in self.licences]
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
        """That something bad is not so where the old side evaluates a variable, or, where it does not mention it, at all."""
        paths = self._read.get(var, (None,))
        sometimes = [path for path in dict.fromkeys(paths) if path is not None]
        return f"(not {bad})" if None in paths else f"(not {conjunction([disjunction(sometimes), bad])})"

    def _violation(self, new: str, old: str, new_traps: list[str]) -> str:
        question = self.question
        if question.goal is not None:
            self.encoder.traps = []
            claim = self._satisfied(question.goal, question.new, new)
            return conjunction([*(f"(not {t})" for t in new_traps), disjunction([*self.encoder.traps, f"(not {claim})"])])
        if Licence.NSZ not in self.licences:
            return disjunction([*new_traps, f"(not {same(new, old)})"])
        dtype = question.old.dtype
        behaviours = [old, *(self._with_signs(signs) for signs in sign_choices(question))]
        differs = [f"(not {equal_up_to_zero(new, behaviour, dtype)})" for behaviour in dict.fromkeys(behaviours)]
        return disjunction([*new_traps, conjunction(differs)])

    def _with_signs(self, signs: tuple[bool | None, ...]) -> str:
        """The old expression's value where its operations choose these signs for their zeros, in the order of evaluation."""
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
    """A solver's model as one point; what it leaves open is 0, or for a twin the value of its variable."""
    found = {v.name: _number_of_bits(model.get(model_name(v), 0), v.dtype) for v in question.variables}
    for var, twin in question.twins:
        if model_name(twin) not in model:
            found[twin.name] = found[var.name]
    return found


def _number_of_bits(bits: int, dtype: DType) -> Values:
    if dtype.is_bool:
        return np.array([bool(bits)])
    raw = np.array([bits], dtype=f"uint{dtype.bits}").view(numpy_dtype(dtype))
    return widened(raw) if dtype.is_float else raw
