"""Inductive invariants of a buffer's contents: which are worth trying, and the proof that one is kept by every write.

An invariant of all cells of a buffer holds if every value stored has the property, given that the values read from the same buffer
have it. The value that a cell starts with is a write too, which reads nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr, Var
from layoutproof.verify.search import Because
from layoutproof.verify.values.answer import STRUCTURE, ValueAnswer
from layoutproof.verify.values.budget import DEFAULT, ValueBudget
from layoutproof.verify.values.licences import ALL, IEEE, Licence, Licences
from layoutproof.verify.values.properties import AtLeast, AtMost, Given, NotInfinite, NotNan, NotNegativeZero, Property
from layoutproof.verify.values.question import Question
from layoutproof.verify.values.search import search_licences
from layoutproof.verify.values.terms import constant_value, is_identical, literal
from layoutproof.verify.verdict import Status


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A value that is written to the buffer.

    `own` are the variables in it that were read from the same buffer: they satisfy the property by induction. `given`, `conditions` and
    `computed` are as in `prove_same`. `value_is_computed`: the old program computes this very value, and licences restrict the operations
    in it.
    """

    value: Expr
    own: frozenset[Var] = frozenset()
    given: tuple[Given, ...] = ()
    computed: frozenset[Var] = frozenset()
    conditions: tuple[Expr, ...] = ()
    value_is_computed: bool = False


def candidates(dtype: DType, initial: Sequence[Expr]) -> tuple[Property, ...]:
    """Properties worth trying for a buffer of scalar type `dtype` that starts with the values `initial`; none that a constant one lacks.

    For floats: never -0.0, never NaN, never infinite; for all numbers: not below the least, not above the greatest initial constant.
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


def prove_invariant(known: Property, writes: Sequence[StoredValue], allowed: Licences = ALL, budget: ValueBudget = DEFAULT) -> ValueAnswer:
    """Whether every write keeps the property. `refuted` means: not inductive, with the values of one write in `model`.

    Of the licences only `nnan` and `ninf` are used: what is stored is what the program with plain IEEE arithmetic stores.
    """
    return prove_invariant_with(lambda question, allowed: search_licences(question, allowed, budget), known, writes, allowed)


def prove_invariant_with(
    ask: Callable[[Question, Licences], ValueAnswer], known: Property, writes: Sequence[StoredValue], allowed: Licences
) -> ValueAnswer:
    """`prove_invariant` with someone else to answer the question of each write. The licences of all writes add up."""
    usable = allowed & {Licence.NNAN, Licence.NINF}
    answers: list[ValueAnswer] = []
    for write in writes:
        answer = ask(question_of(known, write), usable)
        if answer.status is not Status.PROVED:
            return answer
        answers.append(answer)
    licences = IEEE.union(*(a.licences for a in answers))
    engines = list(dict.fromkeys(a.engine for a in answers))
    return ValueAnswer(
        Status.PROVED,
        licences,
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
