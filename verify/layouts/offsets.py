"""A map as one offset: its cells in the row-major order of the physical box."""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, IntImm, const
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.notation import scaled
from layoutproof.ir.text import expr_text
from layoutproof.verify.maps.box import physical_box
from layoutproof.verify.maps.map_report import size_exprs
from layoutproof.verify.maps.problem import Shape, coerce_shape, make_problem


def offset_map(index_map: IndexMap, shape: Shape) -> IndexMap:
    """The map to one offset; a map with one output is its own. Raises LayoutproofError where the box is not known."""
    if index_map.rank == 1:
        return index_map if not index_map.separators else IndexMap(index_map.inputs, index_map.outputs)
    problem = make_problem(index_map, shape)
    sizes = physical_box(problem, "digits", None)
    unknown = next((size for size in sizes if isinstance(size, str)), None)
    if unknown is not None:
        text = index_map_text(index_map)
        raise error(codes.NOTATION_INCOMPLETE, f"the physical box of `{text}` is not known: {unknown}")
    extents = size_exprs(problem, [size for size in sizes if not isinstance(size, str)])
    offset: Expr = const(0)
    for axis, (output, extent) in enumerate(zip(index_map.outputs, extents, strict=True)):
        offset = output if axis == 0 else scaled(offset, extent) + output
    return IndexMap(index_map.inputs, (offset,))


def concrete_extents(shape: Shape, what: str) -> tuple[int, ...]:
    """The extents as numbers. Raises LayoutproofError where one is a symbol."""
    found: list[int] = []
    for extent in coerce_shape(shape):
        if not isinstance(extent, IntImm):
            raise error(codes.NOT_WRITTEN, f"{what} has numbers for extents, not `{expr_text(extent, 'plain')}`")
        found.append(extent.value)
    return tuple(found)


def index_text(index: Sequence[int]) -> str:
    """`(1, 2)`, or `3`."""
    return str(index[0]) if len(index) == 1 else f"({', '.join(map(str, index))})"
