"""What a rewrite of a graph claims: the place of each old value in the new graph, and how each new function came from
an old one. Values that bijective layout operators connect have one root.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from layoutproof.graph.model.graph import Array, Graph, LayoutTransform
from layoutproof.ir.expr import Expr
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.verify.step_record import StepRecord


@dataclass(frozen=True, slots=True)
class Place:
    """Where a new value holds an old one: element `x` at `index_map(x)`, every other cell `pad` (None: anything)."""

    value: str
    index_map: IndexMap
    pad: Expr | None = None


@dataclass(frozen=True, slots=True)
class Interface:
    """The calling convention of a new graph. `inputs` are given by these maps, with any padding; others as before.

    `outputs` are its results, in order: old outputs, each stored by a map. None: the old ones, as before.
    """

    inputs: Mapping[str, IndexMap] = field(default_factory=lambda: dict[str, IndexMap]())
    outputs: tuple[tuple[str, IndexMap], ...] | None = None

    def given(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The arrays of the old graph as the new one takes them; padding holds zeros."""
        return {
            name: self.inputs[name].map_array(array) if name in self.inputs else array for name, array in arrays.items()
        }

    def taken(self, old: Graph, arrays: tuple[Array, ...]) -> list[tuple[str, Array]]:
        """What the new graph gives as the old values that it is, in order."""
        values = old.by_name()
        outputs = (
            self.outputs
            if self.outputs is not None
            else tuple((n, IndexMap.identity(len(values[n].shape))) for n in old.outputs)
        )
        return [
            (name, index_map.unmap_array(array, values[name].shape))
            for (name, index_map), array in zip(outputs, arrays, strict=True)
        ]


AS_IT_WAS = Interface()


class Steps(Protocol):
    """Steps from `original` to `func`, each from the program of the one before. A schedule is one."""

    @property
    def original(self) -> PrimFunc:
        """The program of the first step."""

    @property
    def func(self) -> PrimFunc:
        """The program that the last step leads to."""

    @property
    def records(self) -> tuple[StepRecord, ...]:
        """The steps, as certificates have them."""


@dataclass(frozen=True)
class Chain:
    """Steps that were read from a file, or lead to a function that a user gave."""

    original: PrimFunc
    records: tuple[StepRecord, ...]

    @property
    def func(self) -> PrimFunc:
        """The program that the last step leads to."""
        return self.records[-1].rewrite.new if self.records else self.original


@dataclass(frozen=True)
class GraphRewrite:
    """The claim that `old` becomes `new`, which `prove_graph_rewrite` decides.

    `places` are of every new value; `schedules`, by the names of new functions, make them from old ones.
    """

    old: Graph
    new: Graph
    places: Mapping[str, Place]
    schedules: Mapping[str, Steps]


def roots_of(graph: Graph) -> Mapping[str, Place]:
    """For each value of a well-formed graph the one from which layout transforms make it, and its elements' places."""
    found: dict[str, Place] = {}
    for value in graph.values():
        found[value.name] = Place(value.name, IndexMap.identity(len(value.shape)))
    for step in graph.steps:
        if isinstance(step, LayoutTransform):
            before = found[step.operand]
            found[step.result.name] = Place(before.value, step.index_map.compose(before.index_map))
    return found


def rooted(place: Place, roots: Mapping[str, Place]) -> Place:
    """The same place, in terms of the root."""
    root = roots[place.value]
    if root.value == place.value:
        return place
    return Place(root.value, place.index_map.compose(root.index_map), place.pad)
