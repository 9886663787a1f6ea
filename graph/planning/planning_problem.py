"""The planning problem as plain data: calls with their variants, values with their sizes; and the cheapest rewrites of
one value, a minimum-cost arborescence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from math import inf

from layoutproof.graph.planning.array_layouts import Layout, bare, implies
from layoutproof.ir.primfunc import PrimFunc

Edge = tuple[int, int]
Edges = dict[Edge, int]
"""The cost of each edge, from and to."""


def cheapest_tree(places: int, edges: Mapping[Edge, int]) -> tuple[Edge, ...] | None:
    """The edges of the cheapest tree from place 0 to all of `places`; None where some place is not reached."""
    return _tree(set(range(places)), dict(edges))


def _tree(places: set[int], edges: Edges) -> tuple[Edge, ...] | None:
    entering: dict[int, Edge] = {}
    for place in sorted(places - {0}):
        found = [edge for edge in edges if edge[1] == place]
        if not found:
            return None
        entering[place] = min(found, key=lambda edge: (edges[edge], edge))
    circle = _circle(entering)
    if circle is None:
        return tuple(entering.values())
    whole = max(places) + 1
    joined: Edges = {}
    meant: dict[Edge, Edge] = {}
    for edge, cost in edges.items():
        source, target = (whole if place in circle else place for place in edge)
        more = cost - edges[entering[edge[1]]] if target == whole else cost
        if source != target and ((source, target) not in joined or more < joined[source, target]):
            joined[source, target], meant[source, target] = more, edge
    outer = _tree((places - circle) | {whole}, joined)
    if outer is None:
        return None
    taken = [meant[edge] for edge in outer]
    entered = next(edge[1] for edge in taken if edge[1] in circle)
    return (*taken, *(entering[place] for place in sorted(circle) if place != entered))


def _circle(entering: Mapping[int, Edge]) -> set[int] | None:
    """Places that enter one another in a circle; None where none do."""
    for start in entering:
        place, seen = start, list[int]()
        while place in entering and place not in seen:
            seen.append(place)
            place = entering[place][0]
        if place in seen:
            return set(seen[seen.index(place) :])
    return None


Move = tuple[Layout, Layout]
"""A rewrite of a value, from and to."""


def cheapest_moves(costs: Mapping[Move, int], source: Layout, needed: Collection[Layout]) -> tuple[Move, ...]:
    """The rewrites after which a value that is made in one layout is there in all that are needed, each after what it
    starts from.

    Of least cost, and of those the fewest. `costs` has every rewrite that there is, none of them below 0. Raises
    KeyError where there are none that lead to what is needed.
    """
    wanted = [layout for layout in dict.fromkeys(needed) if not implies(source, layout)]
    if not wanted:
        return ()
    helpful = _helpful(costs, source, wanted)
    direct = [_start(costs, source, layout) for layout in wanted]
    if not helpful and None not in direct:
        return tuple((each[1], layout) for each, layout in zip(direct, wanted, strict=True) if each is not None)
    return _searched(costs, source, wanted, helpful)


def may_chain(costs: Mapping[Move, int], sources: Iterable[Layout], needed: Collection[Layout]) -> bool:
    """Whether a rewrite to a needed layout may better start from another one, which is then there, than from these."""
    for source in sources:
        for target in needed:
            start = None if implies(source, target) else _start(costs, source, target)
            if not implies(source, target) and (
                start is None or start[1] != source or _helpful(costs, source, [target])
            ):
                return True
    return False


def _start(costs: Mapping[Move, int], source: Layout, target: Layout) -> tuple[int, Layout] | None:
    """The cost of a rewrite from a layout, or from it without claims about padding, and which; None without one."""
    found = [(costs[each, target], each) for each in dict.fromkeys((source, bare(source))) if (each, target) in costs]
    return min(found, key=lambda item: item[0]) if found else None


def _helpful(costs: Mapping[Move, int], source: Layout, wanted: Iterable[Layout]) -> list[Layout]:
    """The layouts from which another needed or helpful one is cheaper to make than from the source."""
    known = dict.fromkeys(layout for move in costs for layout in move)
    found: dict[Layout, None] = {}
    work = [*wanted]
    while work:
        target = work.pop()
        direct = _start(costs, source, target)
        for middle in known:
            there = (0, middle) if implies(middle, target) else _start(costs, middle, target)
            if middle in (source, target) or middle in found or there is None:
                continue
            if direct is None or there[0] < direct[0]:
                found[middle] = None
                work.append(middle)
    return list(found)


def _searched(
    costs: Mapping[Move, int], source: Layout, wanted: Collection[Layout], helpful: Collection[Layout]
) -> tuple[Move, ...]:
    """The cheapest rewrites by way of helpful layouts: for each set of them, the cheapest that lead to all."""
    extra = _undominated(costs, [layout for layout in helpful if layout not in wanted], [source, *wanted, *helpful])
    # Costs count first, then the number of rewrites.
    weight = len(wanted) + len(extra) + 1
    best: tuple[int, tuple[Move, ...]] | None = None
    for number in range(len(extra) + 1):
        for chosen in combinations(extra, number):
            layouts = [source, *wanted, *chosen]
            edges: Edges = {}
            for one, other in permutations(range(len(layouts)), 2):
                start = _start(costs, layouts[one], layouts[other])
                if other != 0 and implies(layouts[one], layouts[other]):
                    edges[one, other] = 0
                elif other != 0 and start is not None:
                    edges[one, other] = start[0] * weight + 1
            tree = cheapest_tree(len(layouts), edges)
            if tree is None:
                continue
            cost = sum(edges[edge] for edge in tree)
            if best is None or cost < best[0]:
                best = cost, tuple(_in_order(costs, layouts, tree))
    if best is None:
        raise KeyError(source)
    return best[1]


def _undominated(costs: Mapping[Move, int], layouts: Sequence[Layout], known: Collection[Layout]) -> list[Layout]:
    """Layouts without those that another replaces: made for no more, and starting everything for no more."""

    def price(source: Layout, target: Layout) -> float:
        start = (0, source) if implies(source, target) else _start(costs, source, target)
        return inf if start is None else start[0]

    def dominates(one: Layout, other: Layout) -> bool:
        rest = [layout for layout in known if layout not in (one, other)]
        return all(
            price(one, layout) <= price(other, layout) and price(layout, one) <= price(layout, other) for layout in rest
        )

    found: list[Layout] = []
    for layout in layouts:
        if not any(dominates(other, layout) for other in found):
            found = [other for other in found if not dominates(layout, other)] + [layout]
    return found


def _in_order(costs: Mapping[Move, int], layouts: Sequence[Layout], tree: Iterable[Edge]) -> Iterator[Move]:
    """The rewrites of a tree, each after what it starts from; what is there for nothing is none."""
    left, there = list(tree), {0}
    while left:
        edge = next(each for each in left if each[0] in there)
        left.remove(edge)
        there.add(edge[1])
        source, target = layouts[edge[0]], layouts[edge[1]]
        start = _start(costs, source, target)
        if not implies(source, target) and start is not None:
            yield start[1], target


@dataclass(frozen=True, slots=True)
class Variant:
    """Layouts of the operands and of the results of a call, in order, and of the temporaries that change, by name.

    Where results have padding that holds something, the function fills it, or, `through`, computes it from that of its
    operands. `function` is what a user gave in the operator's place.
    """

    operands: tuple[Layout, ...]
    results: tuple[Layout, ...]
    temporaries: tuple[tuple[str, Layout], ...] = ()
    through: bool = False
    function: PrimFunc | None = None


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call, by the roots of its values. `variants` are what may be chosen, in terms of the roots; there is at least
    one.

    `own` are the same in terms of the function's arrays, which differ where layout operators stand between. `costs` is
    what a variant costs by itself, the bytes of padding that it fills; nothing where it is empty.
    """

    operands: tuple[str, ...]
    results: tuple[str, ...]
    variants: tuple[Variant, ...]
    own: tuple[Variant, ...]
    costs: tuple[int, ...] = ()

    def cost(self, number: int) -> int:
        """What a variant costs by itself."""
        return self.costs[number] if self.costs else 0

    def needs(self, number: int, name: str) -> frozenset[Layout]:
        """The layouts in which a variant takes a value."""
        return frozenset(
            layout
            for operand, layout in zip(self.operands, self.variants[number].operands, strict=True)
            if operand == name
        )


@dataclass(frozen=True)
class Problem:
    """All of it. `fixed` says in which layouts values come in that no call makes; `free` are constants, which come in
    any.

    `outputs` are the values that go out, in order, each with the layout that it goes out in, None where that is chosen.
    `costs` has the cost of each rewrite that can be needed: (value, from, to). The first `entering` calls stand for
    inputs that are freed, the last `leaving` for outputs that are.
    """

    calls: tuple[PlannedCall, ...]
    fixed: Mapping[str, Layout]
    free: frozenset[str]
    outputs: tuple[tuple[str, Layout | None], ...]
    costs: Mapping[tuple[str, Layout, Layout], int]
    entering: int = 0
    leaving: int = 0

    @property
    def inner(self) -> slice:
        """Where the calls of the graph stand among the calls."""
        return slice(self.entering, len(self.calls) - self.leaving)

    @cached_property
    def moves(self) -> Mapping[str, Mapping[Move, int]]:
        """The cost of each rewrite, by values."""
        found: dict[str, dict[Move, int]] = {}
        for (name, source, target), cost in self.costs.items():
            found.setdefault(name, {})[source, target] = cost
        return found


Choice = Sequence[int]
"""The number of the variant of each call."""


def rewrites_of(problem: Problem, choice: Choice) -> Iterator[tuple[str, Layout, Layout]]:
    """The rewrites that a choice leaves, each once: (value, from, to), in an order in which they can be made."""
    made: dict[str, Layout] = dict(problem.fixed)
    needed: dict[str, dict[Layout, None]] = {}
    for call, number in zip(problem.calls, choice, strict=True):
        variant = call.variants[number]
        made |= dict(zip(call.results, variant.results, strict=True))
        for name, layout in zip(call.operands, variant.operands, strict=True):
            needed.setdefault(name, {})[layout] = None
    for name, asked in problem.outputs:
        if asked is not None:
            needed.setdefault(name, {})[asked] = None
    for name, layouts in needed.items():
        if name not in problem.free:
            yield from ((name, *move) for move in cheapest_moves(problem.moves.get(name, {}), made[name], layouts))


def cost_of(problem: Problem, choice: Choice) -> int:
    """What a choice costs."""
    own = sum(call.cost(number) for call, number in zip(problem.calls, choice, strict=True))
    return own + sum(problem.costs[rewrite] for rewrite in rewrites_of(problem, choice))
