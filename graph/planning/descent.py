"""A choice made better step by step: each call in turn takes the variant that is cheapest beside the others', until none changes."""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.graph.planning.layouts import Layout
from layoutproof.graph.planning.moves import cheapest_moves
from layoutproof.graph.planning.problem import Choice, Problem

MOST_ROUNDS = 20


def improved(problem: Problem, choice: Choice) -> Choice:
    """The choice that it becomes; it costs no more. Nothing says that none costs less."""
    found = list(choice)
    around = _Around(problem)
    for _ in range(MOST_ROUNDS):
        before = list(found)
        for number, call in enumerate(problem.calls):
            names = dict.fromkeys((*call.operands, *call.results))
            costs = []
            for k in range(len(call.variants)):
                found[number] = k
                costs.append(call.cost(k) + sum(around.cost(name, found) for name in names))
            # Of those that are alike it keeps the one that it has, so that there is an end to it.
            found[number] = min(range(len(costs)), key=lambda k: (costs[k], k != before[number]))
        if found == before:
            break
    return found


class _Around:
    """Who makes and who uses each value, and what its rewrites cost under a choice."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.makers = {name: (number, place) for number, call in enumerate(problem.calls) for place, name in enumerate(call.results)}
        self.users: dict[str, dict[int, None]] = {}
        for number, call in enumerate(problem.calls):
            for name in call.operands:
                self.users.setdefault(name, {})[number] = None
        self.always: Mapping[str, frozenset[Layout]] = {
            name: frozenset(layout for output, layout in problem.outputs if output == name and layout is not None)
            for name, _ in problem.outputs
        }

    def cost(self, name: str, choice: Choice) -> int:
        """What the rewrites of a value cost."""
        costs = self.problem.moves.get(name)
        if costs is None:
            return 0
        maker = self.makers.get(name)
        made = self.problem.fixed[name] if maker is None else self.problem.calls[maker[0]].variants[choice[maker[0]]].results[maker[1]]
        needed = self.always.get(name, frozenset()).union(*(self.problem.calls[n].needs(choice[n], name) for n in self.users.get(name, ())))
        return sum(costs[move] for move in cheapest_moves(costs, made, sorted(needed)))
