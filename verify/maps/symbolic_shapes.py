"""Symbolic shapes: small instances of a question, and z3 for products and quotients of symbols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, IntImm, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.semantics import Trap
from layoutproof.ir.visit import free_variables, nodes_of, substitute
from layoutproof.verify.maps.problem import Problem
from layoutproof.verify.program.questions import Because
from layoutproof.verify.smt.index_arithmetic import IntEncoder, NotInteger
from layoutproof.verify.smt.solver import Answer, Query

MAX_INSTANCES = 400
_SMALL = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17)
_LARGEST = 4096
_TRIED = 1_500
_LARGE = (20, 24, 30, 32, 48, 64, 100, 128, 256, 1000, 1024)


@dataclass(frozen=True, slots=True)
class Instance:
    """Values of the symbols that satisfy the side condition, with the extents they give."""

    values: Mapping[str, int]
    extents: tuple[int, ...]

    @property
    def points(self) -> int:
        """The number of logical indices."""
        return prod(self.extents)


def constants_of(problem: Problem) -> list[int]:
    """The numbers in the question: extents just below, at and above them are good tests."""
    return _constants(problem, _LARGEST)


def _constants(problem: Problem, largest: int | None) -> list[int]:
    exprs = [*problem.index_map.outputs, problem.where, *problem.shape]
    found = {node.value for expr in exprs for node in nodes_of(expr, IntImm)}
    return sorted(n for n in found if 1 < n and (largest is None or n <= largest))


@lru_cache(maxsize=64)
def _choices(values: tuple[int, ...], count: int) -> tuple[tuple[int, ...], ...]:
    """Every choice of `count` values, those with small ones first."""
    return tuple(sorted(product(values, repeat=count), key=lambda t: (max(t), sum(t), t)))


def instances(problem: Problem, limit: int = MAX_INSTANCES, points: int | None = _LARGEST) -> Iterator[Instance]:
    """Small nonempty instances, smallest values first, deterministic: at most `limit`, of at most `points` indices."""
    if not problem.symbols:
        yield Instance({}, problem.numbers(range(len(problem.extents))))
        return
    special = constants_of(problem)[:6]
    values = sorted({*_SMALL, *(v + d for v in special for d in (-1, 0, 1)), *(2 * v for v in special)})
    values = values[: max(3, int(_TRIED ** (1 / len(problem.symbols))))]
    found = 0
    for choice in _choices(tuple(values), len(problem.symbols)):
        candidate = instance_at(problem, dict(zip(problem.symbols, choice, strict=True)))
        if candidate is not None and (points is None or candidate.points <= points):
            yield candidate
            found += 1
            if found >= limit:
                return


def lopsided_instances(problem: Problem, points: int) -> Iterator[Instance]:
    """Instances with one symbol larger than the others, deterministic: some hundreds, of at most `points` indices."""
    telling = [n + d for n in _constants(problem, None)[-8:] for d in (-1, 0, 1)]
    for large in dict.fromkeys([*_LARGE, *telling]):
        for name in problem.symbols:
            for small in (1, 0, 2, 3):
                values = {other: large if other == name else small for other in problem.symbols}
                candidate = instance_at(problem, values) if large > small else None
                if candidate is not None and candidate.points <= points:
                    yield candidate


def instance_at(problem: Problem, values: Mapping[str, int]) -> Instance | None:
    """The instance with these values, where they satisfy the side condition and every extent is at least 1."""
    try:
        if not evaluate(problem.where, values):
            return None
        extents = tuple(int(evaluate(e, values)) for e in problem.shape)
    except Trap:
        return None
    return Instance(dict(values), extents) if all(e >= 1 for e in extents) else None


def at_instance(problem: Problem, expr: Expr, instance: Instance) -> Expr:
    """An expression with the symbols replaced by the instance's values."""
    names = set(problem.symbols)
    return substitute(
        expr, {v: const(instance.values[v.name], v.dtype) for v in free_variables(expr) if v.name in names}
    )


def concrete_map(problem: Problem, instance: Instance) -> IndexMap:
    """The map with the symbols replaced by the instance's values."""
    given = problem.index_map
    return IndexMap(given.inputs, tuple(at_instance(problem, o, instance) for o in given.outputs), given.separators)


# Z3


@dataclass(slots=True)
class Statement:
    """A question stated in one z3 query: the symbols, and points of the domain."""

    problem: Problem
    query: Query
    symbols: IntEncoder

    def assume_symbols(self) -> None:
        """Symbols are at least 0, and the side condition holds."""
        for name in self.problem.symbols:
            self.query.add(self.symbols.variable(name) >= 0)
        self.query.add(self.symbols.condition(self.problem.where))

    def point(self, tag: str) -> IntEncoder:
        """An encoder for a point of the domain, whose inputs are called `<name><tag>`."""
        problem = self.problem
        values: dict[str, Any] = {name: self.symbols.variable(name) for name in problem.symbols}
        for v, extent in zip(problem.index_map.inputs, problem.shape, strict=True):
            term = values[v.name] = self.query.integer(f"{v.name}{tag}")
            self.query.add(term >= 0, term < self.symbols.integer(extent))
        return IntEncoder(self.query, values)


def make_statement(problem: Problem) -> Statement:
    """A fresh query with the assumptions on symbols. Raises NotInteger."""
    query = Query()
    statement = Statement(problem, query, IntEncoder(query))
    statement.assume_symbols()
    return statement


@dataclass(frozen=True, slots=True)
class Point:
    """A logical index of an instance."""

    instance: Instance
    index: tuple[int, ...]


def divisors_are_nonzero(problem: Problem, axis: int, rlimit: int) -> bool | Point:
    """Whether z3 proves that no divisor of an output is zero on the domain; else a point where one is, if found."""
    try:
        statement = make_statement(problem)
        point = statement.point("")
        point.integer(problem.index_map.outputs[axis])
    except NotInteger:
        return False
    if not point.divisors:
        return True
    return _nowhere(statement, statement.query.z3.Or([d == 0 for d in point.divisors]), rlimit)


def is_nonnegative_by_z3(problem: Problem, axis: int, rlimit: int) -> bool | Point:
    """Whether z3 proves that an output is never negative on the domain; else a point where it is, if found."""
    try:
        statement = make_statement(problem)
        output = statement.point("").integer(problem.index_map.outputs[axis])
    except NotInteger:
        return False
    return _nowhere(statement, output < 0, rlimit)


def _nowhere(statement: Statement, goal: Any, rlimit: int) -> bool | Point:
    """Whether the goal, about the statement's only point, holds nowhere; else z3's point, if it is in the domain."""
    problem = statement.problem
    statement.query.add(goal)
    outcome = statement.query.solve(rlimit=rlimit)
    if outcome.answer is not Answer.SAT:
        return outcome.answer is Answer.UNSAT
    # A name without a value in the model may have any value.
    instance = instance_at(problem, {name: outcome.model.get(name, 0) for name in problem.symbols})
    if instance is None:
        return False
    index = tuple(outcome.model.get(v.name, 0) for v in problem.index_map.inputs)
    return Point(instance, index) if all(0 <= i < e for i, e in zip(index, instance.extents, strict=True)) else False


def outputs_are_equal_by_z3(problem: Problem, different: Expr, rlimit: int) -> bool:
    """Whether z3 proves that a condition (that something differs) holds nowhere on the domain."""
    try:
        statement = make_statement(problem)
        condition = statement.point("").condition(different)
    except NotInteger:
        return False
    statement.query.add(condition)
    return statement.query.solve(rlimit=rlimit).answer is Answer.UNSAT


def prove_injective_by_z3(
    problem: Problem, axes: tuple[int, ...], inputs: tuple[int, ...], rlimit: int
) -> tuple[bool, str, frozenset[Because]]:
    """Whether z3 proves that points with equal outputs are equal; otherwise why not, and that reason for code."""
    try:
        statement = make_statement(problem)
        first, second = statement.point("_1"), statement.point("_2")
        outputs = [(first.integer(o), second.integer(o)) for o in (problem.index_map.outputs[a] for a in axes)]
    except NotInteger as reason:
        return False, str(reason), frozenset()
    names = [problem.index_map.inputs[k].name for k in inputs]
    z3 = statement.query.z3
    statement.query.add(*(a == b for a, b in outputs))
    statement.query.add(z3.Or([first.variable(n) != second.variable(n) for n in names]))
    outcome = statement.query.solve(rlimit=rlimit)
    if outcome.answer is Answer.UNSAT:
        return True, "", frozenset()
    unused = "z3 found a model, which was not turned into a counterexample"
    return False, outcome.reason if outcome.reason is not None else unused, outcome.because


def condition_is_satisfiable(problem: Problem, rlimit: int) -> bool | None:
    """Whether symbols satisfy the side condition with every extent at least 1; None where that is not known."""
    if not problem.symbols:
        try:
            return bool(evaluate(problem.where, {}))
        except Trap:
            return None
    if next(instances(problem, 1, None), None) is not None:
        return True
    try:
        statement = make_statement(problem)
        statement.query.add(*(statement.symbols.integer(e) >= 1 for e in problem.shape))
    except NotInteger:
        return None
    outcome = statement.query.solve(rlimit=rlimit)
    if outcome.answer is Answer.UNSAT:
        return False
    return True if outcome.answer is Answer.SAT else None
