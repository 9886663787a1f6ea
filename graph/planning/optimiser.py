"""The cheapest choice of variants: exactly, by elimination or by z3's optimiser where the network is too wide; a greedy
walk for comparison, and local improvement of a choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from layoutproof.graph import codes
from layoutproof.graph.planning.array_layouts import Layout, implies, map_of_layout
from layoutproof.graph.planning.elimination import Network, TooWide, weight_of
from layoutproof.graph.planning.planning_problem import (
    Choice,
    Move,
    PlannedCall,
    Problem,
    cheapest_moves,
    cost_of,
    may_chain,
)
from layoutproof.ir.diagnostic import error
from layoutproof.verify.settings import scaled
from layoutproof.verify.smt.optimise import cheapest_assignment


def greedy(problem: Problem) -> Choice:
    """For each call, in order, the variant that takes the operand it follows as it comes; of several, the cheapest."""
    made: dict[str, Layout] = dict(problem.fixed)
    choice: list[int] = []
    for call in problem.calls:
        choice.append(_followed(problem, call, made))
        made |= dict(zip(call.results, call.variants[choice[-1]].results, strict=True))
    return choice


def _followed(problem: Problem, call: PlannedCall, made: dict[str, Layout]) -> int:
    for name in _leaders(problem, call, made):
        fitting = [
            k for k in range(len(call.variants)) if all(implies(made[name], layout) for layout in call.needs(k, name))
        ]
        if fitting:
            return min(fitting, key=lambda k: (_cost(problem, call, k, made), k))
    return 0


def _leaders(problem: Problem, call: PlannedCall, made: dict[str, Layout]) -> list[str]:
    """The operands in the order in which a call tries to follow them: those in blocks first."""
    names = [name for name in dict.fromkeys(call.operands) if name not in problem.free]
    return sorted(names, key=lambda name: not _in_blocks(made[name]))


def _in_blocks(layout: Layout) -> bool:
    index_map = map_of_layout(layout)
    return index_map.rank > len(index_map.inputs)


def _cost(problem: Problem, call: PlannedCall, number: int, made: dict[str, Layout]) -> int:
    """What the rewrites of a variant's operands cost, with the padding that it fills."""
    cost = call.cost(number)
    for name in dict.fromkeys(call.operands):
        moves = problem.moves.get(name)
        if moves is not None:
            cost += sum(moves[move] for move in cheapest_moves(moves, made[name], sorted(call.needs(number, name))))
    return cost


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
        self.makers = {
            name: (number, place)
            for number, call in enumerate(problem.calls)
            for place, name in enumerate(call.results)
        }
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
        made = (
            self.problem.fixed[name]
            if maker is None
            else self.problem.calls[maker[0]].variants[choice[maker[0]]].results[maker[1]]
        )
        needed = self.always.get(name, frozenset()).union(
            *(self.problem.calls[n].needs(choice[n], name) for n in self.users.get(name, ()))
        )
        return sum(costs[move] for move in cheapest_moves(costs, made, sorted(needed)))


RLIMIT = 400_000_000
"""Units of z3's work after which the search ends with what it has."""

IMPOSSIBLE = (
    "no choice of layouts was found: of a value that is made in one layout and needed in another no rewrite is known"
)


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
    """The result of z3's optimiser, or of a greedy walk with local improvements if cheaper. Raises as `cheapest`."""
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
                            self.clauses.append(
                                [rewritten[source, target], *(-literal for literal in (maker, user) if literal)]
                            )

    def chains(self, rewritten: Mapping[Move, int], made: Literals, needed: Literals) -> None:
        """A rewrite may start from the result of another one: the value exists after so many rewrites, or one fewer."""
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
