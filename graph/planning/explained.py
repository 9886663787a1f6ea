"""Why the rewrites of a plan are left: who makes and who uses what is rewritten, and the cost of the cheapest plan
without the rewrite.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from layoutproof.graph.planning.array_layouts import Layout
from layoutproof.graph.planning.costs import bytes_moved
from layoutproof.graph.planning.elimination import Network, TooWide
from layoutproof.graph.planning.planning_problem import Choice, PlannedCall, Problem, cost_of, rewrites_of
from layoutproof.graph.planning.variants import Candidates

MOST_BEHIND = 3
"""The number of reasons that are told of what lies behind a call."""
MOST_SEEN = 256
"""The number of layouts of arrays that are looked at to find these."""


@dataclass(frozen=True, slots=True)
class Remaining:
    """A rewrite that is left: the value, from which layout to which, the bytes that it reads and writes, why it could
    not go, its cost.

    `more` is how much more than this plan the cheapest one costs that does without it: less than 0 where this plan is
    not the cheapest. None where there is no such plan, which `needed` says, or where that was not found out.
    """

    value: str
    source: Layout
    target: Layout
    bytes: int
    why: str
    cost: int
    more: int | None = None
    needed: bool = False

    def to_dict(self) -> dict[str, str | int | bool | None]:
        """As JSON has it."""
        found: dict[str, str | int | bool | None] = {
            "value": self.value,
            "from": self.source,
            "to": self.target,
            "bytes": self.bytes,
            "why": self.why,
            "needed": self.needed,
            "more": self.more,
        }
        return found if self.cost == self.bytes else {**found, "cost": self.cost}


@dataclass(slots=True)
class Explained:
    """A choice, looked at rewrite by rewrite."""

    problem: Problem
    choice: Choice
    candidates: Candidates
    makers: dict[str, PlannedCall] = field(init=False, default_factory=lambda: dict[str, PlannedCall]())
    takers: dict[tuple[str, Layout], dict[str, PlannedCall]] = field(init=False)
    users: dict[str, list[PlannedCall]] = field(init=False, default_factory=lambda: dict[str, list[PlannedCall]]())
    calls: dict[str, tuple[PlannedCall, int]] = field(
        init=False, default_factory=lambda: dict[str, tuple[PlannedCall, int]]()
    )
    inputs: frozenset[str] = field(init=False)
    cut: frozenset[str] = field(init=False)
    cost: int = field(init=False)

    def __post_init__(self) -> None:
        self.inputs = frozenset(value.name for value in self.candidates.graph.inputs)
        self.cut = frozenset(self.candidates.left_out())
        self.cost = cost_of(self.problem, self.choice)
        self.takers = {}
        inner = self.problem.inner
        for call, number in zip(self.problem.calls[inner], self.choice[inner], strict=True):
            self.makers |= dict.fromkeys(call.results, call)
            self.calls[call.results[0]] = call, number
            for name in dict.fromkeys(call.operands):
                self.users.setdefault(name, []).append(call)
            for item in zip(call.operands, call.variants[number].operands, strict=True):
                self.takers.setdefault(item, {})[call.results[0]] = call

    def remaining(self) -> tuple[Remaining, ...]:
        """The rewrites that are left, the largest first."""
        left = list(rewrites_of(self.problem, self.choice))
        try:
            # Where variants were left out, there are no claims about plans that have them.
            network = Network(self.problem) if left and not self.cut else None
            found = [self.explained(network, *rewrite) for rewrite in left]
        except TooWide:
            found = [self.explained(None, *rewrite) for rewrite in left]
        return tuple(sorted(found, key=lambda each: -each.bytes))

    def explained(self, network: Network | None, name: str, source: Layout, target: Layout) -> Remaining:
        """One rewrite. Raises TooWide."""
        needed, more = False, None
        if network is not None:
            without = network.without(name, (source, target))
            needed = without is None
            more = None if without is None else without - self.cost
        size = bytes_moved(self.candidates.values[name], source, target)
        why = "; ".join(self.reasons(name, source, target, needed, more))
        return Remaining(name, source, target, size, why, self.problem.costs[name, source, target], more, needed)

    def reasons(self, name: str, source: Layout, target: Layout, needed: bool, more: int | None) -> Iterator[str]:
        """Why a rewrite could not go: what holds on the side that makes it, and on the sides that take it."""
        maker = self.makers.get(name)
        sides = [self.side(maker, name, target, "make")] if maker is not None else []
        takers = list(self.takers.get((name, target), {}).values())
        sides += [self.side(taker, name, source, "take") for taker in takers]
        told = [f"{name} is an input"] if name in self.inputs else []
        told += [reason for reason, _ in sides if reason]
        if (name, target) in self.problem.outputs:
            told.append(f"{name} is an output")
        elif not takers:
            told.append("other rewrites start from it")
        yield from dict.fromkeys(told)
        could = list(dict.fromkeys(call for _, call in sides if call))
        if could and not needed:
            price = (
                ""
                if more is None
                else " at higher cost"
                if more > 0
                else " at the same cost"
                if more == 0
                else " at lower cost"
            )
            yield f"{', '.join(could)} could use the other layout{price}"
        taking = {taker.results[0] for taker in takers}
        behind = list(
            dict.fromkeys(self.behind([(call, name, source if call in taking else target) for call in could]))
        )
        yield from behind[:MOST_BEHIND]
        if len(behind) > MOST_BEHIND:
            yield f"and {len(behind) - MOST_BEHIND} more"

    def behind(self, start: list[tuple[str, str, Layout]]) -> Iterator[str]:
        """What prevents calls from having another layout: what their other arrays would meet, and so on."""
        work, seen = start, set[tuple[str, str, Layout]]()
        while work and len(seen) < MOST_SEEN:
            item = work.pop(0)
            if item in seen:
                continue
            seen.add(item)
            for name, layout in self.changed(*item):
                maker = self.makers.get(name)
                if name in self.problem.free:
                    continue
                yield from (f"behind {item[0]}, {end}" for end in self.ends(name, layout))
                for call, verb in [(maker, "make"), *((taker, "take") for taker in self.users.get(name, ()))]:
                    if call is not None and call.results[0] != item[0]:
                        reason, could = self.side(call, name, layout, verb)
                        if could:
                            work.append((could, name, layout))
                        elif not self.has(call, name, layout):
                            yield f"behind {item[0]}, {reason}"

    def ends(self, name: str, layout: Layout) -> Iterator[str]:
        """Why a value of the interface cannot have a layout."""
        if name in self.inputs and self.problem.fixed.get(name) not in (None, layout):
            yield f"{name} is an input"
        if any(output == name and asked not in (None, layout) for output, asked in self.problem.outputs):
            yield f"{name} is an output"

    def changed(self, result: str, name: str, layout: Layout) -> Iterator[tuple[str, Layout]]:
        """The other arrays of a call that would have another layout if one had this one, with that layout."""
        call, number = self.calls[result]
        now = self.layouts(call, number)
        for other in range(len(call.variants)):
            then = self.layouts(call, other)
            if (name, layout) in then:
                yield from sorted(item for item in then - now if item[0] != name)
                return

    def has(self, call: PlannedCall, name: str, layout: Layout) -> bool:
        """Whether an array of a call has a layout as it is."""
        return (name, layout) in self.layouts(call, self.calls[call.results[0]][1])

    def side(self, call: PlannedCall, name: str, layout: Layout, verb: str) -> tuple[str, str]:
        """Why a call cannot make, or take, a value in a layout, where that is so; else the call, which could."""
        result = call.results[0]
        if result in self.candidates.frozen:
            return f"the layouts of {result} are frozen", ""
        if any((name, layout) in self.layouts(call, number) for number in range(len(call.variants))):
            return "", result
        stop = self.candidates.stops.get((result, name, layout))
        it = "it" if name == result else name
        if stop is not None:
            return f"{result} cannot {verb} {it} so: {stop}", ""
        if result in self.cut:
            return f"not all variants of {result} were tried", ""
        return f"{result} cannot {verb} {it} so", ""

    @staticmethod
    def layouts(call: PlannedCall, number: int) -> frozenset[tuple[str, Layout]]:
        """The layouts that a variant of a call gives its arrays."""
        variant = call.variants[number]
        return frozenset(zip((*call.operands, *call.results), (*variant.operands, *variant.results), strict=True))
