"""Layout rewrites in compact form: a map that leaves padding as a pad and a bijection, and the way back as a bijection and a crop."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod

from layoutproof.graph.maps import box_of, is_bijective
from layoutproof.graph.model import Shape
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Binary, BinaryOp, IntImm
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.visit import free_variables, walk


def filled_shape(index_map: IndexMap, shape: Shape) -> Shape | None:
    """The least box around a shape on which the map is a bijection onto the shape's physical box; None where none is found.

    Only boxes that start where the shape does are looked at: extents rounded up to multiples of the numbers that the map divides by.
    """
    return _filled(index_map_text(index_map), shape)


@lru_cache(maxsize=4096)
def _filled(text: str, shape: Shape) -> Shape | None:
    index_map = parse_index_map(text)
    box = box_of(index_map, shape)
    choices = [_rounded(index_map, axis, extent) for axis, extent in enumerate(shape)]
    for larger in sorted(product(*choices), key=prod):
        if prod(larger) == prod(box) and _fills(index_map, larger, box):
            return larger
    return None


def _fills(index_map: IndexMap, shape: Shape, box: Shape) -> bool:
    try:
        return box_of(index_map, shape) == box and is_bijective(index_map, shape)
    except LayoutproofError:
        # Along an axis that is turned around more elements would lie below zero.
        return False


def _rounded(index_map: IndexMap, axis: int, extent: int) -> list[int]:
    """The extent itself, and its multiples of divisors that stand over the axis."""
    variable = index_map.inputs[axis]
    found = {extent}
    for output in index_map.outputs:
        for node in walk(output):
            divides = isinstance(node, Binary) and node.op in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD)
            if divides and isinstance(node, Binary) and isinstance(node.rhs, IntImm) and variable in free_variables(node.lhs):
                found.add(-(-extent // node.rhs.value) * node.rhs.value)
    return sorted(found)
