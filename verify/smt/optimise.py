"""The cheapest assignment of truth values that satisfies clauses, by z3's optimiser: plain numbers in, plain numbers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.verify.smt.session import z3_module


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The variables that are true, and whether nothing cheaper is proved to exist."""

    true: frozenset[int]
    optimal: bool


def cheapest_assignment(
    exactly_one: Sequence[Sequence[int]], clauses: Sequence[Sequence[int]], costs: Mapping[int, int], *, rlimit: int
) -> Cheapest | None:
    """Truth values of variables 1, 2, ... such that of each group exactly one is true and each clause holds, of least total cost.

    A clause is a list of variables, negative where they are to be false. `costs` are those of variables that are true; none is below 0.
    The same question gives the same answer. None where there is no such assignment, or none was found within `rlimit` of z3's units.
    """
    z3 = z3_module()
    context = z3.Context()
    names: dict[int, Any] = {}

    def literal(number: int) -> Any:
        variable = names.setdefault(abs(number), z3.Bool(f"b{abs(number)}", context))
        return variable if number > 0 else z3.Not(variable)

    optimiser = z3.Optimize(ctx=context)
    optimiser.set("rlimit", rlimit)
    for group in exactly_one:
        optimiser.add(z3.PbEq([(literal(number), 1) for number in group], 1, context))
    for clause in clauses:
        optimiser.add(z3.Or([literal(number) for number in clause]))
    for number, cost in costs.items():
        if cost > 0:
            optimiser.add_soft(literal(-number), str(cost))
    status = optimiser.check()
    if status == z3.unsat:
        return None
    try:
        model = optimiser.model()
    except z3.Z3Exception:
        return None
    true = frozenset(number for number, variable in names.items() if z3.is_true(model.eval(variable, model_completion=True)))
    satisfied = all(len(true & set(group)) == 1 for group in exactly_one) and all(_holds(clause, true) for clause in clauses)
    return Cheapest(true, status == z3.sat) if satisfied else None


def _holds(clause: Sequence[int], true: frozenset[int]) -> bool:
    return any((abs(number) in true) is (number > 0) for number in clause)
