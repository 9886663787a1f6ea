"""The cheapest choice: by elimination where the network is narrow enough, which most are; else by z3's optimiser.

Elimination tries everything that may matter, so what it finds is cheapest. z3 answers for itself; where it does not finish, its bound says
how far from the cheapest the best choice may be that is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from layoutproof.graph import codes
from layoutproof.graph.planning.descent import improved
from layoutproof.graph.planning.greedy import greedy
from layoutproof.graph.planning.layouts import Layout, implies
from layoutproof.graph.planning.moves import Move, may_chain
from layoutproof.graph.planning.network import Network, TooWide, weight_of
from layoutproof.graph.planning.problem import Choice, Problem, cost_of
from layoutproof.ir.diagnostic import error
from layoutproof.verify.settings import scaled
from layoutproof.verify.smt.optimise import cheapest_assignment

RLIMIT = 400_000_000
"""Units of z3's work after which the search ends with what it has."""

IMPOSSIBLE = "no choice of layouts was found: of a value that is made in one layout and needed in another no rewrite is known"


@dataclass(frozen=True, slots=True)
class Cheapest:
    """A choice, and a cost below which it is proved that no choice is; the choice's own cost where it is cheapest."""

    choice: Choice
    least: int


def cheapest(problem: Problem, *, rlimit: int = RLIMIT) -> Cheapest:
    """The choice of least cost; where that is not found in time, the best one that is, and how little any may cost.

    Raises LayoutproofError where no choice is possible.
    """
    try:
        found = Network(problem).solve()
    except TooWide:
        return asked(problem, rlimit=rlimit)
    if found is None:
        raise error(codes.NO_PLAN, IMPOSSIBLE)
    return Cheapest(*found)


def asked(problem: Problem, *, rlimit: int = RLIMIT) -> Cheapest:
    """What z3's optimiser finds, or a walk through the graph with what can be mended of it, where that is cheaper. Raises as `cheapest`."""
    encoded = _Encoded(problem)
    encoded.encode()
    found = cheapest_assignment(encoded.chosen, encoded.clauses, encoded.costs, rlimit=scaled(rlimit))
    if found is None:
        raise error(codes.NO_PLAN, IMPOSSIBLE)
    known: list[Choice] = [improved(problem, greedy(problem)), improved(problem, [0] * len(problem.calls))]
    if found.true is not None:
        known.insert(0, [next(k for k, number in enumerate(group) if number in found.true) for group in encoded.chosen])
    best = min(known, key=lambda choice: cost_of(problem, choice))
    return Cheapest(best, min(found.least // encoded.weight, cost_of(problem, best)))


@dataclass(slots=True)
class _Encoded:
    """A problem as clauses over numbered variables, with costs: `chosen` has those of each call's variants."""

    problem: Problem
    clauses: list[list[int]] = field(default_factory=lambda: list[list[int]]())
    costs: dict[int, int] = field(default_factory=lambda: dict[int, int]())
    chosen: list[list[int]] = field(default_factory=lambda: list[list[int]]())
    weight: int = 1
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def encode(self) -> None:
        """Make the clauses."""
        problem = self.problem
        self.weight = weight_of(problem)
        for call in problem.calls:
            self.chosen.append([next(self.numbers) for _ in call.variants])
            self.costs |= {literal: call.cost(k) * self.weight for k, literal in enumerate(self.chosen[-1])}
        made, needed = self.uses(made=True), self.uses(made=False)
        for name, layout in problem.fixed.items():
            made.setdefault(name, {})[layout] = []
        for name, asked in problem.outputs:
            if asked is not None:
                needed.setdefault(name, {})[asked] = []
        for name, costs in problem.moves.items():
            rewritten = {move: next(self.numbers) for move in costs}
            self.costs |= {rewritten[move]: cost * self.weight + 1 for move, cost in costs.items()}
            if name in needed:
                encode = self.chains if may_chain(costs, made[name], needed[name]) else self.direct
                encode(rewritten, made[name], needed[name])

    def uses(self, *, made: bool) -> dict[str, dict[Layout, list[int]]]:
        """For each value and layout, the choices that make it so, or need it so; none where it is so in any case."""
        found: dict[str, dict[Layout, list[int]]] = {}
        for call, literals in zip(self.problem.calls, self.chosen, strict=True):
            for variant, literal in zip(call.variants, literals, strict=True):
                names, layouts = (call.results, variant.results) if made else (call.operands, variant.operands)
                for name, layout in dict.fromkeys(zip(names, layouts, strict=True)):
                    found.setdefault(name, {}).setdefault(layout, []).append(literal)
        return found

    def direct(self, rewritten: Mapping[Move, int], made: Literals, needed: Literals) -> None:
        """Each rewrite starts from the layout that the value is made in."""
        for source, makers in made.items():
            for target, users in needed.items():
                if not implies(source, target):
                    for maker in makers or [0]:
                        for user in users or [0]:
                            self.clauses.append([rewritten[source, target], *(-literal for literal in (maker, user) if literal)])

    def chains(self, rewritten: Mapping[Move, int], made: Literals, needed: Literals) -> None:
        """A rewrite may start from what another one made: the value is there after so many rewrites, or after one less."""
        layouts = list(dict.fromkeys(layout for move in rewritten for layout in move))
        there = {layout: next(self.numbers) for layout in layouts}
        for layout, literal in there.items():
            makers = [made[source] for source in layouts if source in made and implies(source, layout)]
            if [] not in makers:
                self.clauses.append([-literal, *(maker for each in makers for maker in each)])
        for _ in range(len(layouts) - 1):
            before, there = there, {layout: next(self.numbers) for layout in layouts}
            for target, literal in there.items():
                ways = [before[source] for source in layouts if implies(source, target)]
                for source in layouts:
                    if (source, target) in rewritten:
                        used = next(self.numbers)
                        self.clauses += [[-used, before[source]], [-used, rewritten[source, target]]]
                        ways.append(used)
                self.clauses.append([-literal, *ways])
        for target, users in needed.items():
            self.clauses += [[there[target], *([-user] if user else [])] for user in users or [0]]


Literals = Mapping[Layout, list[int]]
