"""Proves that two expressions have the same value: structure first, then the table of laws, then trials, enumeration
and solvers; and that an invariant of a buffer's contents is kept by every write. Part of the trust base.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr, Var
from layoutproof.verify.program.questions import Because, SmtQuery
from layoutproof.verify.settings import scaled
from layoutproof.verify.values.fast_math import ALL, IEEE, FastMath, FastMathSet
from layoutproof.verify.values.fast_math_search import search_with
from layoutproof.verify.values.question import (
    STRUCTURE,
    AtLeast,
    AtMost,
    Given,
    NotInfinite,
    NotNan,
    NotNegativeZero,
    Property,
    Question,
    ValueAnswer,
)
from layoutproof.verify.values.solving import DEFAULT, QUICK, Solving, ValueBudget
from layoutproof.verify.values.terms import constant_value, is_identical, literal
from layoutproof.verify.verdict.verdict import Status


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A value that is written to the buffer.

    `own` are the variables in it that were read from the same buffer: they satisfy the property by induction. `given`,
    `conditions` and `computed` are as in `Question`. `value_is_computed`: the old program computes this very value,
    and fast-math assumptions restrict the operations in it.
    """

    value: Expr
    own: frozenset[Var] = frozenset()
    given: tuple[Given, ...] = ()
    computed: frozenset[Var] = frozenset()
    conditions: tuple[Expr, ...] = ()
    value_is_computed: bool = False


def candidates(dtype: DType, initial: Sequence[Expr]) -> tuple[Property, ...]:
    """Properties worth trying for a buffer of scalar type `dtype` that starts with the values `initial`; none that a
    constant one lacks.

    For floats: never -0.0, never NaN, never infinite; for all numbers: not below the least, not above the greatest
    initial constant.
    """
    if not (dtype.is_float or dtype.is_integer):
        return ()
    constants = [value for value in map(constant_value, initial) if value is not None]
    found: list[Property] = []
    if dtype.is_float:
        if not any(is_identical(value, -0.0) for value in constants):
            found.append(NotNegativeZero())
        if not any(value != value for value in constants):
            found.append(NotNan())
        if not any(math.isinf(value) for value in constants):
            found.append(NotInfinite())
    numbers = [value for value in constants if value == value]
    if numbers and len(constants) == len(initial):
        found += [AtLeast(literal(min(numbers), dtype)), AtMost(literal(max(numbers), dtype))]
    return tuple(found)


def invariant_answer(
    ask: Callable[[Question, FastMathSet], ValueAnswer],
    known: Property,
    writes: Sequence[StoredValue],
    allowed: FastMathSet,
) -> ValueAnswer:
    """Whether every write keeps the property. `refuted` means: not inductive, with the values of one write in `model`.

    `ask` answers the question of each write; the fast-math assumptions of all add up. Only `nnan` and `ninf` are used:
    the program stores what plain IEEE arithmetic gives.
    """
    usable = allowed & {FastMath.NNAN, FastMath.NINF}
    answers: list[ValueAnswer] = []
    for write in writes:
        answer = ask(question_of(known, write), usable)
        if answer.status is not Status.PROVED:
            return answer
        answers.append(answer)
    fast_math = IEEE.union(*(a.fast_math for a in answers))
    engines = list(dict.fromkeys(a.engine for a in answers))
    return ValueAnswer(
        Status.PROVED,
        fast_math,
        ", ".join(engines) or STRUCTURE,
        model=next((a.model for a in answers if a.model is not None), None),
        queries=tuple(q for a in answers for q in a.queries),
        laws=tuple(dict.fromkeys(law for a in answers for law in a.laws)),
        because=frozenset[Because]().union(*(a.because for a in answers)),
    )


def question_of(known: Property, write: StoredValue) -> Question:
    """Does one write keep the property, where the values of the same buffer that it reads have it?"""
    given = (*write.given, *(Given(v, known) for v in sorted(write.own, key=lambda v: v.name)))
    value = write.value
    return Question(value, value, given, write.conditions, write.computed, write.value_is_computed, goal=known)


# How `Question.renamed` calls variables.
_CANONICAL = re.compile(r"\bv\d+\b")


MOST_REMEMBERED = 4096
"""Answers that one prover remembers: some tens of megabytes with the texts of their questions."""


@dataclass(slots=True)
class _Remembered:
    """An answer to a question in canonical form, and what solvers spent on it."""

    answer: ValueAnswer
    cost: int


# The question in canonical form, what may be used, the budget, and whether solvers were asked at all.
_Key = tuple[Question, FastMathSet, ValueBudget, bool]


class ValueProver:
    """Answers questions within a budget and remembers them, whatever their variables are called.

    `allowed` are the fast-math assumptions that may be used where a question does not say. Every question is answered
    in its canonical form, so that names do not matter. Answers that a clock cut short are not remembered, and an engine
    that did not answer in time is not asked again.

    `for_check` gives a prover whose questions have a budget together, with the `queries` that solvers answered for what
    it proved. What it answers does not depend on what others asked: a remembered answer costs what it cost, once for
    each check.
    """

    def __init__(self, allowed: FastMathSet = ALL, budget: ValueBudget = DEFAULT) -> None:
        self.allowed = allowed
        self.budget = budget
        self.hits = 0
        self.spent = 0
        self.queries: dict[SmtQuery, None] = {}
        self._limit: int | None = None
        self._remembered: dict[_Key, _Remembered] = {}
        self._asked: dict[tuple[Question, FastMathSet, ValueBudget], bool] = {}
        self._hung: set[str] = set()

    def for_check(self, budget: ValueBudget | None = None) -> ValueProver:
        """A prover for the questions of one check, which together spend `check` units of the budget: it shares what is
        remembered. Of a prover that is for a check it is for a part of that one, with units of its own: what hung for
        one is not asked for the other.
        """
        prover = ValueProver(self.allowed, self.budget if budget is None else budget)
        prover._limit = scaled(prover.budget.check)
        prover._remembered = self._remembered
        if self._limit is not None:
            prover._hung = self._hung
        return prover

    def under(self, allowed: FastMathSet) -> ValueProver:
        """A prover for a part of this one's check that may use these fast-math assumptions only."""
        prover = self.for_check(self.budget)
        prover.allowed = allowed
        return prover

    def prove_invariant(
        self, known: Property, writes: Sequence[StoredValue], allowed: FastMathSet | None = None
    ) -> ValueAnswer:
        """Whether every write keeps the property, within the budget `QUICK`: most that are tried do not hold."""
        usable = self.allowed if allowed is None else allowed
        return invariant_answer(
            lambda question, fast_math: self.answer(question, fast_math, QUICK), known, writes, usable
        )

    def answer(
        self, question: Question, allowed: FastMathSet | None = None, budget: ValueBudget | None = None
    ) -> ValueAnswer:
        """The answer to a question, remembered or new; fast-math assumptions of `allowed` are tried smallest set
        first.
        """
        canonical, variables = question.renamed()
        allowed = self.allowed if allowed is None else allowed
        asked = (canonical, allowed, self.budget if budget is None else _tighter(budget, self.budget))
        # A question that was asked before in this check has the answer that it had.
        closed = self._asked.get(asked, self._limit is not None and self.spent >= self._limit)
        found = self._remembered.get((*asked, closed))
        if found is None:
            found = self._found(*asked, closed)
        else:
            self.hits += 1
            if asked not in self._asked:
                self.spent += found.cost
        if not found.answer.depends_on_clock:
            self._asked[asked] = closed
        answer = _with_names(found.answer, canonical.variables, variables)
        if self._limit is not None and answer.is_proved:
            self.queries.update(dict.fromkeys(answer.queries))
        return answer

    def _found(self, question: Question, allowed: FastMathSet, budget: ValueBudget, closed: bool) -> _Remembered:
        solving = Solving(budget, closed=closed, hung=self._hung)
        found = _Remembered(search_with(solving, question, allowed), solving.spent)
        self.spent += found.cost
        self._hung |= solving.hung
        if not found.answer.depends_on_clock:
            self._remembered[(question, allowed, budget, closed)] = found
            if len(self._remembered) > MOST_REMEMBERED:
                # The oldest goes; asked again, it gives and costs the same.
                del self._remembered[next(iter(self._remembered))]
        return found


def _tighter(budget: ValueBudget, than: ValueBudget) -> ValueBudget:
    """A budget that gives no more than another does, with that one's engines and clock."""
    return replace(
        than,
        rlimit=min(budget.rlimit, than.rlimit),
        polls=min(budget.polls, than.polls),
        question=min(budget.question, than.question),
    )


def _with_names(answer: ValueAnswer, before: tuple[Var, ...], after: tuple[Var, ...]) -> ValueAnswer:
    """An answer that speaks of other names for the same variables."""
    names = {a.name: b.name for a, b in zip(before, after, strict=True) if a.name != b.name}
    if not names:
        return answer
    legend = "; " + ", ".join(f"{old} is {new}" for old, new in names.items()) + "\n"
    return replace(
        answer,
        model=None if answer.model is None else {names.get(name, name): value for name, value in answer.model.items()},
        reason=None
        if answer.reason is None
        else _CANONICAL.sub(lambda name: names.get(name[0], name[0]), answer.reason),
        queries=tuple(replace(query, text=legend + query.text) for query in answer.queries),
    )
