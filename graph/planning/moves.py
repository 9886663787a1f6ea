"""The rewrites of one value: from the layout that it is made in to those that it is needed in, for the least cost.

A rewrite may start from a layout that another one made: three channels in blocks of eight are cheaper to read once they are plain. What
holds a number in its padding may be read as if nothing was said of it, for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from math import inf

from layoutproof.graph.planning.layouts import Layout, bare, implies
from layoutproof.graph.planning.trees import Edge, Edges, cheapest_tree

Move = tuple[Layout, Layout]
"""A rewrite of a value, from and to."""


def cheapest_moves(costs: Mapping[Move, int], source: Layout, needed: Collection[Layout]) -> tuple[Move, ...]:
    """The rewrites after which a value that is made in one layout is there in all that are needed, each after what it starts from.

    Of least cost, and of those the fewest. `costs` has every rewrite that there is, none of them below 0. Raises KeyError where there are
    none that lead to what is needed.
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
    """Whether, from one of some layouts, a rewrite to one that is needed may better start from another one, which is then there too."""
    for source in sources:
        for target in needed:
            start = None if implies(source, target) else _start(costs, source, target)
            if not implies(source, target) and (start is None or start[1] != source or _helpful(costs, source, [target])):
                return True
    return False


def _start(costs: Mapping[Move, int], source: Layout, target: Layout) -> tuple[int, Layout] | None:
    """What a rewrite costs, from a layout or from it with nothing said of its padding, and from which; None where there is none."""
    found = [(costs[each, target], each) for each in dict.fromkeys((source, bare(source))) if (each, target) in costs]
    return min(found, key=lambda item: item[0]) if found else None


def _helpful(costs: Mapping[Move, int], source: Layout, wanted: Iterable[Layout]) -> list[Layout]:
    """The layouts from which another that is needed, or helps, is cheaper to make than from the source. From others nothing need start."""
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


def _searched(costs: Mapping[Move, int], source: Layout, wanted: Collection[Layout], helpful: Collection[Layout]) -> tuple[Move, ...]:
    """The cheapest rewrites by way of any layouts that help: for each set of these, the cheapest that lead to all of them."""
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
    """Layouts without those in whose place another one does as well: made for no more, and starting everything for no more."""

    def price(source: Layout, target: Layout) -> float:
        start = (0, source) if implies(source, target) else _start(costs, source, target)
        return inf if start is None else start[0]

    def dominates(one: Layout, other: Layout) -> bool:
        rest = [layout for layout in known if layout not in (one, other)]
        return all(price(one, layout) <= price(other, layout) and price(layout, one) <= price(layout, other) for layout in rest)

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
