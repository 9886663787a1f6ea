"""Short forms for tests that ask many questions about values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from layoutproof.ir.expr import Expr, Var
from layoutproof.verify.values.fast_math import ALL, FastMathSet
from layoutproof.verify.values.fast_math_search import search_fast_math
from layoutproof.verify.values.prover import StoredValue, invariant_answer
from layoutproof.verify.values.question import Given, Property, Question, ValueAnswer
from layoutproof.verify.values.solving import DEFAULT, ValueBudget


def make_question(
    new: Expr,
    old: Expr,
    given: Iterable[Given] = (),
    conditions: Iterable[Expr] = (),
    computed: Iterable[Var] = (),
    old_is_computed: bool = True,
    loose: Iterable[Var] = (),
) -> Question:
    """A question; the values of `loose` variables may differ in the sign of a zero."""
    plain = Question(new, old, tuple(given), tuple(conditions), frozenset(computed), old_is_computed)
    return plain.loosened(frozenset(loose))


def prove_same(
    new: Expr,
    old: Expr,
    *,
    given: Iterable[Given] = (),
    conditions: Iterable[Expr] = (),
    computed: Iterable[Var] = (),
    old_is_computed: bool = True,
    loose: Iterable[Var] = (),
    allowed: FastMathSet = ALL,
    budget: ValueBudget = DEFAULT,
) -> ValueAnswer:
    """Whether `new` has the value of `old`."""
    question = make_question(new, old, given, conditions, computed, old_is_computed, loose)
    return search_fast_math(question, allowed, budget)


def prove_no_op(
    value: Expr,
    current: Var,
    *,
    given: Iterable[Given] = (),
    conditions: Iterable[Expr] = (),
    computed: Iterable[Var] = (),
    allowed: FastMathSet = ALL,
    budget: ValueBudget = DEFAULT,
) -> ValueAnswer:
    """Whether storing `value` over `current`, the value that is there, changes nothing."""
    return search_fast_math(make_question(value, current, given, conditions, computed, False), allowed, budget)


def prove_invariant(
    known: Property, writes: Sequence[StoredValue], allowed: FastMathSet = ALL, budget: ValueBudget = DEFAULT
) -> ValueAnswer:
    """Whether every write keeps the property."""
    return invariant_answer(lambda question, usable: search_fast_math(question, usable, budget), known, writes, allowed)
