"""Every execution is a solution of what the kernel writes down of it: no fact of a question is false of a value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from tests.oracle.integers.items import item_of
from tests.oracle.integers.truth import solution
from tests.shares import one_in
from tests.verify.kernel.core_interpreter import COMPARED, CoreRun, Env

from layoutproof.ir.semantics import Trap
from layoutproof.verify.kernel.encoding import Context
from layoutproof.verify.kernel.integers import Case, Question
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import Expr, fits, integer_bounds, is_affine_condition

TYPES = ("int8", "uint8", "int16", "int32", "int32", "int32", "uint32", "int64", "uint64")
SYMBOLS = (("n", "int32"), ("m", "int64"), ("u", "uint32"))
LOOPS = {"i": "int32", "j": "int64", "k": "uint8"}
INTEGER = ("+", "-", "*", "//", "%", "truncdiv", "truncmod", "min", "max", "&", "|", "^", "<<", ">>")


class Wraps(Exception):
    """An operation has no result, or one that is none of its type: then nothing is claimed."""


class Run(CoreRun):
    """Values of expressions alone. Loads find what `data` has next; only beside data does arithmetic wrap."""

    def __init__(self, data: Random) -> None:
        self.data, self.exact = data, True

    def at(self, e: Expr, env: Env) -> list[Any]:
        """The value, which is one of the type."""
        if e[0] == "load":
            low, high = integer_bounds(e[1])
            return [self.data.choice((low, high, 0, self.data.randint(low, high)))]
        if e[0] in COMPARED and not is_affine_condition(e):
            self.exact, before = False, self.exact
            found = super().at(e, env)
            self.exact = before
            return found
        if e[0] in ("+", "-", "*") and self.exact:
            a, b = (self.at(part, env)[0] for part in e[2:])
            value = a + b if e[0] == "+" else a - b if e[0] == "-" else a * b
            if not fits(value, e[1]):
                raise Wraps
            return [value]
        return super().at(e, env)


@dataclass
class Drawn:
    """Random expressions of integers of all widths, and conditions on them."""

    random: Random
    loads: bool

    def integer(self, dtype: str, depth: int) -> Expr:
        """An expression of an integer type."""
        leaf = self.leaf(dtype)
        if depth == 0 or self.random.random() < 0.15:
            return leaf
        kind = self.random.random()
        if kind < 0.15:
            other = self.random.choice(TYPES)
            return ("cast", dtype, self.integer(other, depth - 1))
        if kind < 0.25:
            sides = (self.integer(dtype, depth - 1), self.integer(dtype, depth - 1))
            return (self.random.choice(("select", "if")), dtype, self.condition(depth - 1), *sides)
        operator = self.random.choice(INTEGER)
        b = self.constant(dtype) if self.random.random() < 0.6 else self.integer(dtype, depth - 1)
        return (operator, dtype, self.integer(dtype, depth - 1), b)

    def condition(self, depth: int) -> Expr:
        """A truth value."""
        kind = self.random.random()
        if depth > 0 and kind < 0.4:
            operator = self.random.choice(("and", "or", "not"))
            return (operator, "bool", *(self.condition(depth - 1) for _ in range(1 if operator == "not" else 2)))
        if kind < 0.45:
            return ("const", "bool", self.random.random() < 0.5)
        if kind < 0.5:
            return (self.random.choice(("==", "!=")), "bool", self.condition(0), self.condition(0))
        dtype = self.random.choice(TYPES)
        sides = (self.integer(dtype, max(depth - 1, 0)), self.integer(dtype, max(depth - 1, 0)))
        return (self.random.choice(sorted(COMPARED)), "bool", *sides)

    def leaf(self, dtype: str) -> Expr:
        """A variable, a load or a number."""
        names = [name for name, kind in (*SYMBOLS, *LOOPS.items()) if kind == dtype]
        if self.loads and self.random.random() < 0.2:
            return ("load", dtype, "A", ())
        return ("var", dtype, self.random.choice(names)) if names else self.constant(dtype)

    def constant(self, dtype: str) -> Expr:
        """A number, small ones and those with few bits set more often."""
        low, high = integer_bounds(dtype)
        near = self.random.choice((1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 0, -1, -2, -3, -4, low, high, high // 2 + 1))
        return ("const", dtype, near if low <= near <= high else 1)

    def value(self, dtype: str) -> int:
        """A value of a variable."""
        low, high = integer_bounds(dtype)
        value = self.random.choice(
            (0, 1, 2, 3, 5, 8, 12, -1, -2, -3, -7, -8, low, high, self.random.randint(low, high))
        )
        return value if low <= value <= high else self.random.randint(0, 9)


def contradiction(drawn: Drawn) -> str | None:
    """What the facts about some random expressions exclude although it is their value; None: nothing is."""
    random = drawn.random
    symbols = {name: drawn.value(dtype) for name, dtype in SYMBOLS}
    context = Context(SYMBOLS)
    values = {f"${name}": value for name, value in symbols.items()}
    fixed: list[Poly] = []
    integers = [drawn.integer(random.choice(TYPES), 3) for _ in range(2)]
    conditions = [drawn.condition(2)]
    said: list[str] = [f"{symbols}"]
    run = Run(random)
    for tag in ("i", "j"):
        loops = {name: drawn.value(dtype) for name, dtype in LOOPS.items()}
        env = {**context.symbols, **{name: Poly.var(f"{tag}{k}") for k, name in enumerate(loops)}}
        values |= {f"{tag}{k}": value for k, value in enumerate(loops.values())}
        for e in integers:
            value = run.at(e, {**symbols, **loops})[0]
            fixed.append(context.number(e, env) - value)
            said.append(f"{value} at {loops}: {e}")
        for e in conditions:
            truth = bool(run.at(e, {**symbols, **loops})[0])
            context.require(e, env, truth)
            said.append(f"{truth} at {loops}: {e}")
    asked = Question(tuple(context.facts), (*context.zeros, *fixed), tuple(context.choices))
    question = at(asked, values)
    return "\n".join(said) if solution(item_of(question, None)) == "none" else None


def at(question: Question, values: dict[str, int]) -> Question:
    """The question with values for names, without the facts and zeros that this makes plain."""

    def put(poly: Poly) -> Poly:
        total = Poly()
        for monomial, factor in poly.terms:
            term = Poly.const(factor * math.prod(values[name] for name in monomial if name in values))
            total += reduce(mul, (Poly.var(name) for name in monomial if name not in values), term)
        return total

    def case(facts: Sequence[Poly], zeros: Sequence[Poly]) -> Case:
        left = tuple(p for p in map(put, facts) if not p.is_constant or p.constant < 0)
        return Case(left, tuple(p for p in map(put, zeros) if p != Poly()))

    given = case(question.facts, question.zeros)
    choices = tuple(tuple(case(c.facts, c.zeros) for c in cases) for cases in question.choices)
    return Question(given.facts, given.zeros, tuple(cases for cases in choices if Case() not in cases))


@one_in(7)
@pytest.mark.parametrize("loads", [False, True])
def test_every_execution_is_a_solution(loads: bool) -> None:
    """Random expressions at random values, of two instances in one question: quotients, remainders, shifts, masks,
    minima, choices, conversions and conditions, of all widths and signs.
    """
    assert_no_contradiction(Random(f"encoding {loads}"), loads, 250)


@pytest.mark.campaign
@pytest.mark.parametrize("loads", [False, True])
def test_many_executions_are_solutions(loads: bool) -> None:
    """The same with other expressions each time."""
    assert_no_contradiction(Random(), loads, 20_000)


def assert_no_contradiction(random: Random, loads: bool, count: int) -> None:
    """`count` of them whose arithmetic has results that fit."""
    seen: Counter[str] = Counter()
    while seen["solution"] < count:
        try:
            found = contradiction(Drawn(random, loads))
        except (Wraps, Trap):
            seen["fault"] += 1
            continue
        assert found is None, found
        seen["solution"] += 1
    assert seen["fault"] < 20 * count


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        ("_truncated", lambda self, _, a, b: self._quotient(a, Poly.const(b))),
        ("_least", lambda self, a, b: self._operation("+", a, b)),
        ("_key", lambda self, e, env: (e[0], e[1])),
    ],
)
def test_a_wrong_encoding_is_noticed(method: str, wrong: Callable[..., object]) -> None:
    """Truncated quotients as floored ones, minima as sums, and one name for the results of all equal operators."""
    with patch.object(Context, method, wrong), pytest.raises(AssertionError, match=" at "):
        assert_no_contradiction(Random("wrong"), False, 400)
