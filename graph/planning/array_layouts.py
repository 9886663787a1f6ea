"""Layouts as planning sees them: canonical maps, what padding holds, bytes of an array; and layout rewrites in compact
form, a pad and a bijection or a bijection and a crop.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod

from layoutproof.graph.model.graph import Shape, Value
from layoutproof.graph.model.layout_maps import box_of, inverse_of, is_bijective, is_identity
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Binary, IntImm
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.visit import free_variables, walk


def filled_shape(index_map: IndexMap, shape: Shape) -> Shape | None:
    """The least box around a shape on which the map is a bijection onto the shape's physical box; None where none is
    found.

    Only boxes that start where the shape does are looked at: extents rounded up to multiples of the numbers that the
    map divides by.
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
            if (
                divides
                and isinstance(node, Binary)
                and isinstance(node.rhs, IntImm)
                and variable in free_variables(node.lhs)
            ):
                found.add(-(-extent // node.rhs.value) * node.rhs.value)
    return sorted(found)


Layout = str
"""The text of a map over `i0, i1, ...`, with what its padding holds: `lambda i0: [i0//4, i0%4] holding 0.0`.

Equal texts are equal layouts, and of unequal ones nothing is assumed. Without a claim padding may hold anything and is
not read.
"""

PadNumber = int | float
_HOLDING = " holding "


def layout_of(index_map: IndexMap, pad: PadNumber | None = None) -> Layout:
    """The layout that a map states, with what its padding holds."""
    return holding(_text_of(index_map), pad)


@lru_cache(maxsize=4096)
def _text_of(index_map: IndexMap) -> Layout:
    return index_map_text(index_map.rename([f"i{axis}" for axis in range(len(index_map.inputs))]))


@lru_cache(maxsize=4096)
def map_of_layout(layout: Layout) -> IndexMap:
    """The map of a layout."""
    return parse_index_map(bare(layout))


def holding(layout: Layout, pad: PadNumber | None) -> Layout:
    """The same map with padding that holds a number, or with no claim about padding."""
    return bare(layout) if pad is None else f"{bare(layout)}{_HOLDING}{pad!r}"


def bare(layout: Layout) -> Layout:
    """The layout without what its padding holds."""
    return layout.partition(_HOLDING)[0]


def pad_of(layout: Layout) -> PadNumber | None:
    """What the padding of a layout holds; None without a claim."""
    text = layout.partition(_HOLDING)[2]
    if not text:
        return None
    return int(text) if text.lstrip("-").isdigit() else float(text)


def implies(source: Layout, target: Layout) -> bool:
    """Whether data in one layout can be used in the other as it is: equal, or with fewer claims about padding."""
    return source == target or (bare(source) == target)


@lru_cache(maxsize=64)
def plain(rank: int) -> Layout:
    """The layout of an array that is stored as it is indexed."""
    return index_map_text(IndexMap.identity(rank))


def is_plain(layout: Layout) -> bool:
    """Whether the layout is that of an array which is stored as it is indexed."""
    return layout == plain(len(map_of_layout(layout).inputs))


def settled(layout: Layout, shape: Shape) -> Layout:
    """The plain layout, where this one is proved equal on a shape; else itself. A claim about no padding goes."""
    if box_of(map_of_layout(layout), shape) == shape and is_identity(map_of_layout(layout), shape):
        return plain(len(shape))
    return bare(layout) if is_bijective(map_of_layout(layout), shape) else layout


@lru_cache(maxsize=4096)
def is_movable(layout: Layout, shape: Shape) -> bool:
    """Whether rewrites to a layout and back are known: a bijection of the shape's box, or of a larger, padded one."""
    return layout == plain(len(shape)) or filled_shape(map_of_layout(layout), shape) is not None


def physical(value: Value, layout: Layout) -> Shape:
    """The shape in which a value is stored."""
    return _physical(value.shape, layout)


@lru_cache(maxsize=4096)
def _physical(shape: Shape, layout: Layout) -> Shape:
    return shape if layout == plain(len(shape)) else box_of(map_of_layout(layout), shape)


def stored_bytes(value: Value, layout: Layout) -> int:
    """The bytes that a value takes in a layout, padding included."""
    return prod(physical(value, layout)) * value.dtype.bytes


def padding_bytes(value: Value, layout: Layout) -> int:
    """The bytes of a value's padding in a layout."""
    return stored_bytes(value, layout) - prod(value.shape) * value.dtype.bytes


def between(shape: Shape, source: Layout, target: Layout) -> IndexMap | None:
    """The map from a place in one layout to the place in another; None where the first has no inverse that is known."""
    if source == plain(len(shape)):
        return map_of_layout(target)
    back = inverse_of(map_of_layout(source), shape)
    if back is None:
        return None
    return back if target == plain(len(shape)) else map_of_layout(target).compose(back)
