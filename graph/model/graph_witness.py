"""What a rewrite of a graph claims: the place of each old value in the new graph, and how each new function came from
an old one. Values that bijective layout operators connect have one root.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from layoutproof.graph import codes
from layoutproof.graph.model.graph import Array, Graph, LayoutTransform, Shape
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, IntImm
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import free_variables
from layoutproof.verify.checker import StepRecord
from layoutproof.verify.maps.map_facts import prove_equal_maps, report_on
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict


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


MapFact = tuple[str, str | None, Shape]
"""What was asked of maps: of one as text on a shape, or of two whether they are the same."""

Asked = dict[MapFact, None]
"""Where a caller keeps what it asked, each once, whether the answer was remembered or not."""


def report_of(index_map: IndexMap, shape: Shape, asked: Asked | None = None) -> MapReport:
    """What is proved of a map on a shape. Raises LayoutproofError for a map that does not take such indices or leaves
    the box.
    """
    text = stated(index_map)
    if asked is not None:
        asked[text, None, shape] = None
    return _report(text, shape)


def stated(index_map: IndexMap) -> str:
    """The text of a map, which is what is asked about. Raises LayoutproofError for one that speaks of more than its
    indices: a text does not tell two variables of one name apart.
    """
    text = index_map_text(index_map)
    if not {v for output in index_map.outputs for v in free_variables(output)} <= set(index_map.inputs):
        raise error(codes.TRANSFORM_MAP, f"`{text}` is over other variables than the indices that it takes")
    return text


@lru_cache(maxsize=4096)
def _report(text: str, shape: Shape) -> MapReport:
    return report_on(parse_index_map(text), shape)


def box_of(index_map: IndexMap, shape: Shape, asked: Asked | None = None) -> Shape:
    """The physical box of a map on a shape. Raises LayoutproofError as `report_of` does."""
    extents = [
        extent.value for extent in report_of(index_map, shape, asked).physical_shape if isinstance(extent, IntImm)
    ]
    assert len(extents) == index_map.rank  # of numbers every extent is a number
    return tuple(extents)


def is_bijective(index_map: IndexMap, shape: Shape) -> bool:
    """Whether the map is proved to fill its box, each cell once."""
    report = report_of(index_map, shape)
    return report.injective.status is Status.PROVED and report.bijective.status is Status.PROVED


def prove_same(first: IndexMap, second: IndexMap, shape: Shape, asked: Asked | None = None) -> Verdict:
    """Whether two maps, of one rank, take each index of a shape to one place. Raises as `prove_equal_maps` does."""
    texts = stated(first), stated(second)
    if asked is not None:
        asked[*texts, shape] = None
    return _same(*texts, shape)


_SAME = Claim(ClaimKind.OTHER, "both maps take every index to the same cell", about=("equal-maps",))


@lru_cache(maxsize=4096)
def _same(first: str, second: str, shape: Shape) -> Verdict:
    a, b = parse_index_map(first), parse_index_map(second)
    if a.rank != b.rank:
        origin = [0] * len(shape)
        example = {"index": origin, "first": list(a.evaluate(origin)), "second": list(b.evaluate(origin))}
        return Verdict(Status.REFUTED, _SAME, "symbolic", counterexample=example)
    return prove_equal_maps(a, b, shape)


def is_stored_alike(first: IndexMap, second: IndexMap, shape: Shape) -> bool:
    """Whether two maps are proved equal, with equal boxes: of an axis of extent 1, `c % 2` and `c % 4` have not."""
    return box_of(first, shape) == box_of(second, shape) and prove_same(first, second, shape).status is Status.PROVED


def is_identity(index_map: IndexMap, shape: Shape, asked: Asked | None = None) -> bool:
    """Whether the map is proved to leave every index where it is."""
    identity = IndexMap.identity(len(shape)).rename([v.name for v in index_map.inputs])
    return index_map.rank == len(shape) and prove_same(index_map, identity, shape, asked).status is Status.PROVED


def inverse_of(index_map: IndexMap, shape: Shape) -> IndexMap | None:
    """The map back from the box, right on the image; None where none is known."""
    return report_of(index_map, shape).inverse
