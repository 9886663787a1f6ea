"""Facts about the index maps of layouts on boxes of known extents, each asked once."""

from __future__ import annotations

from functools import lru_cache

from layoutproof.graph import codes
from layoutproof.graph.model.graph import Shape
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import IntImm
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.visit import free_variables
from layoutproof.verify.maps.equal_maps import prove_equal_maps
from layoutproof.verify.maps.injective import is_onto
from layoutproof.verify.maps.map_facts import report_on
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

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
    return _is_onto(stated(index_map), shape, box_of(index_map, shape))


@lru_cache(maxsize=4096)
def _is_onto(text: str, shape: Shape, box: Shape) -> bool:
    return is_onto(parse_index_map(text), shape, box)


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
