"""The choice that a greedy walk makes, for comparison: each call adapts to what the calls before it made."""

from __future__ import annotations

from layoutproof.graph.planning.layouts import Layout, implies
from layoutproof.graph.planning.problem import Choice, Problem, Variant


def greedy(problem: Problem) -> Choice:
    """For each call, in order, the variant whose operands have to be rewritten least; the first of those that are alike."""
    made: dict[str, Layout] = dict(problem.fixed)
    choice: list[int] = []
    for call in problem.calls:
        costs = [_cost(problem, call.operands, variant, made) + call.cost(k) for k, variant in enumerate(call.variants)]
        number = costs.index(min(costs))
        made |= dict(zip(call.results, call.variants[number].results, strict=True))
        choice.append(number)
    return choice


def _cost(problem: Problem, operands: tuple[str, ...], variant: Variant, made: dict[str, Layout]) -> int:
    asked = dict.fromkeys(zip(operands, variant.operands, strict=True))
    rewritten = [(name, layout) for name, layout in asked if name not in problem.free and not implies(made[name], layout)]
    return sum(problem.costs[name, made[name], layout] for name, layout in rewritten)
