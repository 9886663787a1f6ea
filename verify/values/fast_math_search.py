"""The search for the least fast-math assumptions under which a claim about values holds: cheap engines first, each
fast-math assumption set in turn, smaller sets first.

What refutes a claim under one set of fast-math assumptions is evaluated under all the others: fast-math assumptions
only weaken a claim, so most sets are never put to a solver. Only exact engines prove: structure, the laws, all values
of a small type, solvers' `unsat`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
    const,
)
from layoutproof.ir.intrinsics import Call, Limit, Reinterpret, Undef
from layoutproof.ir.operators import CompareOp
from layoutproof.ir.visit import free_variables, substitute, walk
from layoutproof.verify.program.questions import Because, SmtQuery
from layoutproof.verify.smt.encode_values import INTERPRETED
from layoutproof.verify.values.common_parts import without_shared_parts
from layoutproof.verify.values.fast_math import ALL, IEEE, FastMath, FastMathSet, names_of, smallest_first
from layoutproof.verify.values.formula import Claim, choices_are_complete
from layoutproof.verify.values.knowledge import always_computed
from layoutproof.verify.values.laws import TRANSPARENT, satisfies_by_laws, simplified
from layoutproof.verify.values.numbers import Mask, NotEvaluated, Values, every_value
from layoutproof.verify.values.question import (
    ENUMERATION,
    LAWS,
    REALS,
    STRUCTURE,
    TRIALS,
    Given,
    Identical,
    Question,
    ValueAnswer,
    anything_will_do,
    has_undef,
    operand_of,
    substitute_in_property,
    with_fresh_symbols,
)
from layoutproof.verify.values.solving import Decision, Solving, ValueBudget, differ_as_reals, equal_as_reals
from layoutproof.verify.values.terms import (
    Number,
    can_trap_below,
    comparable,
    constant_value,
    ordered,
    regrouped,
    regroups,
)
from layoutproof.verify.values.trials import points_of
from layoutproof.verify.verdict.verdict import Status

# What a value is made of. A load has the value of a moment, an opaque call any: neither is equal to its like.
_SCALAR = (
    Var,
    IntImm,
    FloatImm,
    Limit,
    Binary,
    Compare,
    Logical,
    Not,
    Select,
    IfThenElseExpr,
    Cast,
    Reinterpret,
    Call,
    Undef,
    Ramp,
    Broadcast,
)
# A question that solvers gave up on is hardly easier under other fast-math assumptions.
_MOST_UNKNOWN = 2
# The fast-math assumptions that leave executions out of account.
_RESTRICTING = frozenset({FastMath.NNAN, FastMath.NINF})


def search_fast_math(question: Question, allowed: FastMathSet, budget: ValueBudget) -> ValueAnswer:
    """Proved under the least fast-math assumptions found, refuted under all that are allowed, or unknown."""
    return search_with(Solving(budget), question, allowed)


def search_with(solving: Solving, question: Question, allowed: FastMathSet) -> ValueAnswer:
    """`search_fast_math` with given solvers, which count what they spend."""
    if question.new.dtype != question.old.dtype:
        reason = f"a value is a {question.new.dtype} after and a {question.old.dtype} before"
        return ValueAnswer(Status.UNKNOWN, reason=reason)
    strange = next(
        (node for side in (question.new, question.old) for node in walk(side) if not isinstance(node, _SCALAR)), None
    )
    if strange is not None:
        return ValueAnswer(Status.UNKNOWN, reason=f"{type(strange).__name__} is not a value to compare")
    if question.goal is None and not question.variants and comparable(question.new) == comparable(question.old):
        return ValueAnswer(Status.PROVED)
    if has_undef(question.old) and not anything_will_do(question):
        return ValueAnswer(
            Status.UNKNOWN, reason="the old value is partly undefined, and differs from the new one in structure"
        )
    if question.new.dtype.lanes != 1:
        return ValueAnswer(Status.UNKNOWN, reason="vectors are compared by structure only, and differ in it")
    question = with_fresh_symbols(question)
    if anything_will_do(question):
        # Any value is what the old program may have stored; what is left to claim is that the new one can be evaluated.
        evaluated = Select(Compare(CompareOp.EQ, question.new, question.new), const(0), const(0))
        question = replace(question, new=evaluated if can_trap_below(question.new) else const(0), old=const(0))
    prepared, known = _prepared(question)
    # Where there are no floats, no fast-math assumption says anything.
    usable = allowed if _has_floats(prepared) else IEEE
    return with_known_values(Search(prepared, usable, solving).answer(), known)


def _has_floats(question: Question) -> bool:
    sides = (question.new, question.old, *question.conditions, *question.variables)
    return any(isinstance(node, Expr) and node.dtype.is_float for side in sides for node in walk(side))


def _prepared(question: Question) -> tuple[Question, dict[Var, Expr]]:
    """The question with known values put in and operands in order; and which values were put in."""
    put_in: dict[Var, Expr] = {}
    variants = {var for pair in question.variants for var in pair}
    while True:
        known = next(
            (g for g in question.given if g.var not in variants | put_in.keys() and _can_be_put_in(question, g)), None
        )
        if known is None:
            break
        assert isinstance(known.property, Identical)
        put_in[known.var] = known.property.value
        question = _with_value(question, known, known.property.value)
    ordered_conditions = tuple(ordered(c) for c in question.conditions)
    return replace(
        question, new=ordered(question.new), old=ordered(question.old), conditions=ordered_conditions
    ), put_in


def _can_be_put_in(question: Question, given: Given) -> bool:
    """Whether a fact gives another value for a variable, of which fast-math assumptions say the same wherever it
    stands.
    """
    if not isinstance(given.property, Identical) or given.var in free_variables(given.property.value):
        return False
    value = given.property.value
    if not isinstance(value, Var) or not question.computed & {given.var, value}:
        return True
    return {given.var, value} <= always_computed(replace(question, computed=frozenset({given.var, value})))


def _with_value(question: Question, known: Given, value: Expr) -> Question:
    values: dict[Var, Expr] = {known.var: value}
    # What is known of a variable is known of the one that it is identical to; one whose value is a literal is not
    # computed.
    var = value if isinstance(value, Var) else known.var
    computed = question.computed - {known.var}
    return replace(
        question,
        computed=computed | {var} if known.var in always_computed(question) and isinstance(value, Var) else computed,
        new=substitute(question.new, values),
        old=substitute(question.old, values),
        conditions=tuple(substitute(c, values) for c in question.conditions),
        given=tuple(
            Given(var if g.var == known.var else g.var, substitute_in_property(g.property, values))
            for g in question.given
            if g is not known or (var == known.var and any(o.var == var for o in question.given if o is not known))
        ),
    )


def with_known_values(answer: ValueAnswer, known: dict[Var, Expr]) -> ValueAnswer:
    """An answer whose model gives the variables that were replaced by literals their values too."""
    if answer.model is None:
        return answer
    literals = {v.name: value for v, e in known.items() if (value := constant_value(e)) is not None}
    return replace(answer, model={**literals, **answer.model})


@dataclass
class Search:
    """One question on its way through the engines."""

    question: Question
    allowed: FastMathSet
    solving: Solving
    refuted: dict[FastMathSet, Claim] = field(default_factory=dict)
    reasons: dict[FastMathSet, str] = field(default_factory=dict)
    queries: list[SmtQuery] = field(default_factory=list)
    because: frozenset[Because] = frozenset()

    def answer(self) -> ValueAnswer:
        """The first set that is proved, smaller ones first; refuted when the largest is."""
        for fast_math in smallest_first(self.allowed):
            if fast_math in self.refuted:
                continue
            proof = self._by_laws(fast_math)
            if proof is None and self._is_tried(fast_math):
                continue
            if proof is None:
                proof = self._exactly(fast_math)
            if proof is not None and self._is_inhabited(fast_math):
                return self._proved(fast_math, proof)
            if self.allowed in self.refuted:
                break
        return self._not_proved()

    # Engines

    def _by_laws(self, fast_math: FastMathSet) -> ValueAnswer | None:
        """Both sides rewritten by the laws to one expression; or the goal read off."""
        if self.question.goal is not None:
            laws = satisfies_by_laws(self.question, fast_math)
            return None if laws is None else ValueAnswer(Status.PROVED, fast_math, LAWS, laws=laws)
        found = simplified(self.question, fast_math)
        if found is None:
            return None
        new, old = comparable(found.new), comparable(found.old)
        if FastMath.REASSOC in fast_math and self.question.old_is_computed:
            new, old = regrouped(new), regrouped(old)
        if new != old:
            return None
        return ValueAnswer(Status.PROVED, fast_math, LAWS if found.laws else STRUCTURE, laws=found.laws)

    @cached_property
    def _tried(self) -> Claim | None:
        """The question at the points of the trials."""
        values, size = points_of(self.question, self.solving.budget.trials)
        return _evaluated(self.question, values, size)

    def _is_tried(self, fast_math: FastMathSet) -> bool:
        """Whether a trial refutes the claim under these fast-math assumptions; remembered."""
        if self._tried is not None:
            self._learn(self._tried)
        return fast_math in self.refuted

    def _exactly(self, fast_math: FastMathSet) -> ValueAnswer | None:
        """Enumeration, a solver, or exact reals."""
        if fast_math == ALL and self.question.goal is None:
            query = equal_as_reals(self.question, self.solving)
            if query is not None:
                return ValueAnswer(Status.PROVED, fast_math, REALS, queries=(query,))
        if FastMath.REASSOC in fast_math:
            # Regrouping was tried by comparing; what holds without it was asked before.
            return None
        small = self._enumerated
        if small is not None:
            self._learn(small)
            return None if small.fails(fast_math).any() else ValueAnswer(Status.PROVED, fast_math, ENUMERATION)
        if FastMath.NSZ not in fast_math and self._doubts_zero_signs_only:
            # Nothing else can fail, and no fast-math assumption but `nsz` speaks of it: not worth a solver.
            return None
        if len(self.reasons) >= _MOST_UNKNOWN:
            return None
        shared = self._without_shared_parts(fast_math)
        return shared if shared is not None else self._take(self.solving.decide(self.question, fast_math), fast_math)

    @cached_property
    def _doubts_zero_signs_only(self) -> bool:
        """Whether the structure proves the claim up to the signs of zeros that may differ before."""
        if FastMath.NSZ not in self.allowed or not self.question.variants or self.question.goal is not None:
            return False
        found = simplified(self.question, frozenset({FastMath.NSZ}))
        return found is not None and TRANSPARENT in found.laws and found.new == found.old

    def _without_shared_parts(self, fast_math: FastMathSet) -> ValueAnswer | None:
        """The proof of the question that is left when the parts that both sides have are taken out."""
        rest = without_shared_parts(self.question, fast_math)
        if rest is None:
            return None
        tried = _evaluated(rest, *points_of(rest, self.solving.budget.trials))
        if tried is not None and tried.fails(fast_math).any():
            return None
        decision = self.solving.decide(rest, fast_math)
        self.because |= decision.because
        return self._take(decision, fast_math) if decision.status is Status.PROVED else None

    @cached_property
    def _enumerated(self) -> Claim | None:
        """The question at every value of its one variable, of 16 bits at most; None for others."""
        variables = self.question.variables
        if len(variables) != 1 or variables[0].dtype.bits > 16 or self._calls_library:
            return None
        values = every_value(variables[0])
        return _evaluated(self.question, {variables[0].name: values}, len(values))

    @property
    def _calls_library(self) -> bool:
        """Whether a function without an exact meaning is called anywhere: its value at a point proves nothing."""
        asked = self.question
        known = [*(g.property for g in asked.given), *([asked.goal] if asked.goal is not None else [])]
        parts = (asked.new, asked.old, *asked.conditions, *map(operand_of, known))
        return any(
            isinstance(n, Call) and n.function not in INTERPRETED
            for part in parts
            if part is not None
            for n in walk(part)
        )

    def _take(self, decision: Decision, fast_math: FastMathSet) -> ValueAnswer | None:
        self.because |= decision.because
        if decision.status is Status.PROVED:
            assert decision.query is not None
            return ValueAnswer(
                Status.PROVED, fast_math, decision.engine, queries=(decision.query,), laws=decision.axioms
            )
        if decision.claim is not None:
            assert decision.query is not None
            self.queries.append(decision.query)
            self._learn(decision.claim)
        else:
            self.reasons[fast_math] = decision.reason if decision.reason is not None else "no engine decides it"
        return None

    def _learn(self, claim: Claim) -> None:
        """Remember under which sets a point of the claim refutes it."""
        for fast_math in smallest_first(self.allowed):
            if (
                fast_math not in self.refuted
                and choices_are_complete(self.question, fast_math)
                and _refutes(claim, fast_math)
            ):
                self.refuted[fast_math] = claim

    # Answers

    def _proved(self, fast_math: FastMathSet, proof: ValueAnswer) -> ValueAnswer:
        open_sets = [s for s in self.reasons if s < fast_math]
        reason = None
        if open_sets:
            reason = f"less may do, which was not decided: {self.reasons[open_sets[0]]}"
        model = self._model(self.refuted.get(IEEE), IEEE) if IEEE in self.refuted else None
        return replace(proof, model=model, reason=reason, because=self.because)

    def _is_inhabited(self, fast_math: FastMathSet) -> bool:
        """Whether fast-math assumptions leave any execution in consideration. (Hypotheses may leave none.)"""
        if not fast_math & _RESTRICTING or (self._tried is not None and bool(self._tried.considered(fast_math).any())):
            return True
        self.reasons[fast_math] = f"nothing that the old program computes is left under {' '.join(names_of(fast_math))}"
        return False

    def _not_proved(self) -> ValueAnswer:
        claim = self.refuted.get(self.allowed)
        if claim is not None:
            return ValueAnswer(
                Status.REFUTED,
                IEEE,
                TRIALS if not self.queries else self.queries[-1].engine,
                model=self._model(claim, self.allowed),
                queries=tuple(self.queries),
                because=self.because,
            )
        reason = next(iter(self.reasons.values()), _no_reason(IEEE in self.refuted))
        model = self._model(self.refuted[IEEE], IEEE) if IEEE in self.refuted else None
        return ValueAnswer(
            Status.UNKNOWN,
            IEEE,
            "solvers",
            reason=reason,
            model=model,
            queries=tuple(self.queries),
            because=self.because,
        )

    def _model(self, claim: Claim | None, fast_math: FastMathSet) -> dict[str, Number] | None:
        if claim is None:
            return None
        return claim.model(_first(claim, fast_math))


def _evaluated(question: Question, values: dict[str, Values], size: int) -> Claim | None:
    """The claim at points, or None where an expression is none that can be evaluated."""
    try:
        return Claim(question, values, size)
    except NotEvaluated:
        return None


def _no_reason(refuted: bool) -> str:
    return (
        "refuted bit for bit; nothing decides it under more fast-math assumptions" if refuted else "nothing decides it"
    )


def _refutes(claim: Claim, fast_math: FastMathSet) -> bool:
    return bool(_failing(claim, fast_math).any())


def _first(claim: Claim, fast_math: FastMathSet) -> int:
    return int(np.argmax(_failing(claim, fast_math)))


def _failing(claim: Claim, fast_math: FastMathSet) -> Mask:
    """The points that refute the claim under a set of fast-math assumptions; none if regrouping or real arithmetic
    might help.
    """
    fails = claim.fails(fast_math)
    question = claim.question
    if FastMath.REASSOC not in fast_math or question.goal is not None or not fails.any():
        return fails
    if question.old_is_computed and regroups(question.old):
        return np.zeros_like(fails)
    return differ_as_reals(claim, fails) if fast_math == ALL else fails
