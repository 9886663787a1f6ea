"""Values that bijective layout operators connect, as one: each is its root, stored by a map."""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.graph.model import Graph, LayoutTransform
from layoutproof.graph.witness import Place
from layoutproof.ir.index_map import IndexMap


def roots_of(graph: Graph) -> Mapping[str, Place]:
    """For each value of a well-formed graph the one that it comes from by layout transforms alone, and where that one's elements are."""
    found: dict[str, Place] = {}
    for value in graph.values():
        found[value.name] = Place(value.name, IndexMap.identity(len(value.shape)))
    for step in graph.steps:
        if isinstance(step, LayoutTransform):
            before = found[step.operand]
            found[step.result.name] = Place(before.value, step.index_map.compose(before.index_map))
    return found


def rooted(place: Place, roots: Mapping[str, Place]) -> Place:
    """The same place, said of the root."""
    root = roots[place.value]
    if root.value == place.value:
        return place
    return Place(root.value, place.index_map.compose(root.index_map), place.pad)
