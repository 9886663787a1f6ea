"""The cheapest tree of a directed graph that leads from one place to all others.

Each place is entered by the cheapest edge that leads to it. Where these run in a circle, the circle becomes one place, which costs to
enter by an edge what that edge costs more than the one that it takes the place of; and so on. Source: J. Edmonds, "Optimum branchings",
1967.
"""

from __future__ import annotations

from collections.abc import Mapping

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
