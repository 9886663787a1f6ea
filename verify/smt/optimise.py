"""The cheapest assignment of truth values that satisfies clauses, by z3's optimiser, with numbers as interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from layoutproof.verify.smt.solver import z3_module


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The variables that are true, if an assignment was found, and a lower bound of the cost, its own if optimal."""

    true: frozenset[int] | None
    least: int


def cheapest_assignment(
    exactly_one: Sequence[Sequence[int]], clauses: Sequence[Sequence[int]], costs: Mapping[int, int], *, rlimit: int
) -> Cheapest | None:
    """Truth values of variables 1, 2, ... of least cost: one true in each group, and each clause holds.

    A clause is a list of variables, negative where they are to be false. `costs` are those of variables that are true;
    none is below 0. The result is deterministic. None where there is no such assignment; if `rlimit` is spent, the best
    known one, and a lower bound. Ctrl-C ends it as it ends Python.
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
    objective = None
    for number, cost in costs.items():
        if cost > 0:
            objective = optimiser.add_soft(literal(-number), str(cost))
    status = _checked(optimiser, context)
    if status == z3.unsat:
        return None
    true = _model(z3, optimiser, names)
    if true is not None and not (
        all(len(true & set(g)) == 1 for g in exactly_one) and all(_holds(clause, true) for clause in clauses)
    ):
        true = None
    bound = None if objective is None else objective.lower()
    least = max(0, bound.as_long()) if bound is not None and z3.is_int_value(bound) else 0
    if true is None:
        return Cheapest(None, least)
    found = sum(costs.get(number, 0) for number in true)
    return Cheapest(true, found if status == z3.sat else min(least, found))


def _checked(optimiser: Any, context: Any) -> Any:
    """The optimiser's answer, asked in a thread so that a signal that raises reaches Python at once and stops z3."""
    optimiser.set("ctrl_c", False)  # else z3 handles the signal itself, and answers as if its budget were spent
    with ThreadPoolExecutor(max_workers=1) as pool:
        asked = pool.submit(optimiser.check)
        try:
            return asked.result()
        except BaseException:
            # z3 ignores an interrupt before its search has begun.
            while not asked.done():
                context.interrupt()
                wait([asked], timeout=0.05)
            raise


def _model(z3: Any, optimiser: Any, names: Mapping[int, Any]) -> frozenset[int] | None:
    """The variables that are true in the optimiser's model, if it has one."""
    try:
        model = optimiser.model()
    except z3.Z3Exception:
        return None
    return frozenset(
        number for number, variable in names.items() if z3.is_true(model.eval(variable, model_completion=True))
    )


def _holds(clause: Sequence[int], true: frozenset[int]) -> bool:
    return any((abs(number) in true) is (number > 0) for number in clause)
