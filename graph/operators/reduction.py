"""Operators that take some axes away: sums, means, extremes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import prod
from typing import Final

from layoutproof.graph.model import Shape
from layoutproof.graph.operators.page import Nest, access, axis_of, function, refused, require, variables
from layoutproof.ir.primfunc import PrimFunc

REDUCTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "sum": ("{acc} + {x}", "T.{dtype}(0)"),
    "max": ("T.max({acc}, {x})", 'T.min_value("{dtype}")'),
    "min": ("T.min({acc}, {x})", 'T.max_value("{dtype}")'),
}


@cache
def reduce(kind: str, shape: Shape, axes: tuple[int, ...], keep: bool = False, dtype: str = "float32") -> PrimFunc:
    """One element for each place of the axes that stay; as `keep`, the others stay too, with extent 1. Kinds: `sum max min mean`.

    Raises LayoutproofError for another kind, and for axes that are not there.
    """
    if kind != "mean" and kind not in REDUCTIONS:
        raise refused(kind, f"there is no such reduction; there are mean, {', '.join(REDUCTIONS)}")
    gone = {axis_of(kind, axis, len(shape)) for axis in axes}
    require(len(gone) == len(axes) > 0, kind, f"the axes {list(axes)} are not different axes")
    result = tuple(1 if axis in gone else extent for axis, extent in enumerate(shape) if keep or axis not in gone)
    whole = variables(shape)
    reduced = {f"v{axis}": shape[axis] for axis in sorted(gone)}
    spatial = {name: extent for name, extent in whole.items() if name not in reduced}
    place = ["0" if axis in gone else f"v{axis}" for axis in range(len(shape)) if keep or axis not in gone]
    accumulated = "S" if kind == "mean" else "Y"
    update, start = REDUCTIONS["sum" if kind == "mean" else kind]
    into = access(accumulated, place)
    value = update.format(acc=into, x=access("X", list(whole)))
    nest = Nest(f"{kind}_of" if kind != "mean" else "total", spatial, f"{into} = {value}", reduced, f"{into} = {start.format(dtype=dtype)}")
    if kind != "mean":
        return function(kind, {"X": shape, "Y": result}, nest, dtype=dtype)
    count = f"T.{dtype}({prod(reduced.values())})"
    mean = Nest("mean", spatial, f"{access('Y', place)} = {into} / {count}")
    return function(kind, {"X": shape, "Y": result}, nest, mean, dtype=dtype, temporaries={"S": result})
