"""What z3 says of maps with symbolic shapes: products and quotients of symbols. Part of the trusted computing base."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.semantics import Trap
from layoutproof.ir.visit import free_variables, fresh, substitute
from layoutproof.verify.maps.examples import Instance, instance_at, instances
from layoutproof.verify.maps.problem import Problem
from layoutproof.verify.program.questions import Because
from layoutproof.verify.smt.index_arithmetic import IntEncoder, NotInteger
from layoutproof.verify.smt.solver import Answer, Query


def with_signs(
    maps: Sequence[IndexMap], shape: Sequence[Expr], where: Expr | None, negative: Collection[str]
) -> tuple[list[IndexMap], list[Expr], Expr | None]:
    """A question with the difference of two symbols, each at least 0, in place of each name that may be `negative`."""
    exprs = [*shape, *(o for m in maps for o in m.outputs), *([] if where is None else [where])]
    found = {v for e in exprs for v in free_variables(e)}
    taken = {v.name for v in (*found, *(v for m in maps for v in m.inputs))}
    values: dict[Var, Expr] = {}
    for v in found:
        if v.name in negative:
            more, less = (Var(fresh(f"{v.name}_{end}", taken), v.dtype) for end in ("more", "less"))
            values[v] = more - less
    changed: list[IndexMap] = []
    for m in maps:
        outer = {v: value for v, value in values.items() if v not in m.inputs}
        changed.append(replace(m, outputs=tuple(substitute(o, outer) for o in m.outputs)))
    return changed, [substitute(e, values) for e in shape], None if where is None else substitute(where, values)


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
