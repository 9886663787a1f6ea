"""The public questions about index maps, with maps, shapes and conditions as texts or functions: `check_map` answers
all at once, `prove_injective` gives one verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_condition, parse_shape
from layoutproof.ir.visit import free_variables
from layoutproof.verify.maps import injective
from layoutproof.verify.maps.layout_text import read_layout, total_map
from layoutproof.verify.maps.map_facts import Box, report_on
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.maps.problem import check_rank, coerce_shape
from layoutproof.verify.verdict.verdict import Verdict

MapLike = IndexMap | Callable[..., Any] | str
ShapeLike = str | Sequence[int | str | Expr]


def read_shape(shape: ShapeLike) -> tuple[Expr, ...]:
    """The extents as expressions, concrete ones as constants. Raises LayoutproofError."""
    if isinstance(shape, str):
        return parse_shape(shape)
    if (
        not hasattr(shape, "__iter__")
        or isinstance(shape, Mapping | AbstractSet | bytes | bytearray)
        or getattr(shape, "ndim", 1) != 1
    ):
        raise error(
            codes.SHAPE, f"the shape is {shape!r}: a sequence of extents, or text such as 'n,64,c', is expected"
        )
    result: list[int | Expr] = []
    for item in shape:
        result.extend(parse_shape(item) if isinstance(item, str) else (item,))
    return coerce_shape(result)


def read_map(index_map: MapLike, shape: Sequence[Expr], symbols: Sequence[Var]) -> IndexMap:
    """The map from an IndexMap, text or a function. Raises LayoutproofError for a wrong number of indices."""
    rank = len(shape)
    if isinstance(index_map, str):
        index_map = total_map(read_layout(index_map, shape, symbols=symbols, name="<index map>"), "<index map>")
    elif not isinstance(index_map, IndexMap):
        if not callable(index_map):
            raise error(
                codes.MAP_FORM,
                f"the index map is {index_map!r}: an IndexMap, a function or the text of a lambda is expected",
            )
        index_map = IndexMap.from_func(index_map, rank if _takes_any_number(index_map) else None)
    check_rank(index_map, rank)
    return index_map


def _takes_any_number(function: Callable[..., Any]) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & 0x04)


def read_question(
    index_map: MapLike, shape: ShapeLike | None, where: Expr | str | None = None
) -> tuple[IndexMap, tuple[Expr, ...], Expr | None]:
    """A map, a shape and a condition on its symbols. Raises LayoutproofError for what cannot be read."""
    if shape is None:
        index_map, extents = _with_own_shape(index_map)
    else:
        extents = read_shape(shape)
    names = {v.name: v for extent in extents for v in free_variables(extent)}
    condition = parse_condition(where, names) if isinstance(where, str) else where
    return read_map(index_map, extents, list(names.values())), extents, condition


def _with_own_shape(index_map: MapLike) -> tuple[IndexMap, tuple[Expr, ...]]:
    """A text that says its shape, read. Raises LayoutproofError for any other map."""
    layout = read_layout(index_map, name="<index map>") if isinstance(index_map, str) else None
    if layout is None or layout.shape is None:
        raise error(codes.SHAPE, "the index map does not say its shape: a shape such as (16, 64) or 'n,64' is needed")
    return total_map(layout, "<index map>"), layout.shape


def check_map(
    index_map: MapLike,
    shape: ShapeLike | None = None,
    where: Expr | str | None = None,
    *,
    box: Box = "digits",
    physical_shape: ShapeLike | None = None,
) -> MapReport:
    """Everything about an index map on a logical shape.

    A text may be in any notation (`"(4,(2,4)):(2,(1,8))"`), and need no shape then. `shape` has integers, names and
    expressions such as `4*n`, or is text (`"n,64,64,c"`); names are at least 0, and `where` says more. With
    `box="digits"` an axis written `e % k` has extent k; with `"tight"` every axis is as small as the image allows;
    `physical_shape` is taken as it is once it is proved to hold the image. Raises LayoutproofError for bad input, for
    a map that goes below zero or divides by zero (naming the logical index), and for a physical shape that is too
    small. Source: TVM's RFC `buffer-physical-layout`.
    """
    given = read_question(index_map, shape, where)
    return report_on(*given, box=box, physical_shape=None if physical_shape is None else read_shape(physical_shape))


def prove_injective(index_map: MapLike, shape: ShapeLike | None = None, where: Expr | str | None = None) -> Verdict:
    """Whether no two logical indices share a cell. Raises as `check_map` does."""
    return injective.prove_injective(*read_question(index_map, shape, where))


def prove_bijective(index_map: MapLike, shape: ShapeLike | None = None, where: Expr | str | None = None) -> Verdict:
    """Whether every cell of the physical box holds exactly one logical index. Raises as `check_map` does."""
    return check_map(index_map, shape, where).bijective
