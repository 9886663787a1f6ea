"""Operators that take some axes away: sums, products, means, extremes, norms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from math import prod
from typing import Final

from layoutproof.graph.model import Shape
from layoutproof.graph.operators.page import FLOATS, Nest, access, axis_of, function, highest, lowest, number, refused, require, variables
from layoutproof.ir.primfunc import PrimFunc


@dataclass(frozen=True, slots=True)
class Kind:
    """A reduction: how an element is taken in, what it starts with, and what is done with the whole of `n` elements at last."""

    update: str
    start: str
    last: str | None = None


REDUCTIONS: Final[Mapping[str, Kind]] = {
    "sum": Kind("{acc} + {x}", "zero"),
    "max": Kind("T.max({acc}, {x})", "lowest"),
    "min": Kind("T.min({acc}, {x})", "highest"),
    "prod": Kind("{acc} * {x}", "one"),
    "l1": Kind("{acc} + T.abs({x})", "zero"),
    "sum_square": Kind("{acc} + {x} * {x}", "zero"),
    "mean": Kind("{acc} + {x}", "zero", "{acc} / {n}"),
    "l2": Kind("{acc} + {x} * {x}", "zero", "T.sqrt({acc})"),
    "log_sum": Kind("{acc} + {x}", "zero", "T.log({acc})"),
    "any": Kind("{acc} or {x}", "zero"),
    "all": Kind("{acc} and {x}", "one"),
    "log_sum_exp": Kind("{acc} + T.exp({x} - {top})", "zero", "T.log({acc}) + {top}"),
}

_STARTS: Final[Mapping[str, Callable[[str], str]]] = {
    "zero": partial(number, 0),
    "one": partial(number, 1),
    "lowest": lowest,
    "highest": highest,
}


@cache
def reduce(kind: str, shape: Shape, axes: tuple[int, ...], keep: bool = False, dtype: str = "float32") -> PrimFunc:
    """One element for each place of the axes that stay; as `keep`, the others stay too, with extent 1. Kinds: those of `REDUCTIONS`.

    Raises LayoutproofError for another kind, for axes that are not there, and for a type that the kind is not for.
    """
    known = REDUCTIONS.get(kind)
    if known is None:
        raise refused(kind, f"there is no such reduction; there are {', '.join(REDUCTIONS)}")
    gone = {axis_of(kind, axis, len(shape)) for axis in axes}
    require(len(gone) == len(axes) > 0, kind, f"the axes {list(axes)} are not different axes")
    truth = kind in ("any", "all")
    require(truth == (dtype == "bool") and (dtype in FLOATS or known.last is None), kind, f"it is not for elements of type {dtype}")
    result = tuple(1 if axis in gone else extent for axis, extent in enumerate(shape) if keep or axis not in gone)
    whole = variables(shape)
    reduced = {f"v{axis}": shape[axis] for axis in sorted(gone)}
    spatial = {name: extent for name, extent in whole.items() if name not in reduced}
    place = ["0" if axis in gone else f"v{axis}" for axis in range(len(shape)) if keep or axis not in gone]
    accumulated = "S" if known.last is not None else "Y"
    into, x, top = access(accumulated, place), access("X", list(whole)), access("L", place)
    nests, temporaries = list[Nest](), dict[str, Shape]()
    if "{top}" in known.update:
        nests.append(Nest("largest", spatial, f"{top} = T.max({top}, {x})", reduced, f"{top} = {lowest(dtype)}"))
        temporaries["L"] = result
    start = _STARTS[known.start](dtype)
    block = f"{kind}_of" if known.last is None else "total"
    nests.append(Nest(block, spatial, f"{into} = {known.update.format(acc=into, x=x, top=top)}", reduced, f"{into} = {start}"))
    if known.last is not None:
        count = number(prod(reduced.values()), dtype)
        nests.append(Nest(kind, spatial, f"{access('Y', place)} = {known.last.format(acc=into, n=count, top=top)}"))
        temporaries["S"] = result
    return function(kind, {"X": shape, "Y": result}, *nests, dtype=dtype, temporaries=temporaries)


@cache
def cumulative(shape: Shape, axis: int, exclusive: bool, backwards: bool, dtype: str = "float32") -> PrimFunc:
    """The sum of all elements up to each one along an axis, without that one as `exclusive`, from the end as `backwards`.

    Raises LayoutproofError for an axis that is not there.
    """
    along = axis_of("cumulative", axis, len(shape))
    axes = variables(shape)
    here = list(axes)[along]
    later, earlier = ("q", here) if backwards else (here, "q")
    counted = f"{earlier} {'<' if exclusive else '<='} {later}"
    x = access("X", ["q" if k == along else name for k, name in enumerate(axes)])
    y, zero = access("Y", list(axes)), number(0, dtype)
    store = f"{y} = {y} + T.if_then_else({counted}, {x}, {zero})"
    return function(
        "cumulative", {"X": shape, "Y": shape}, Nest("cumulative", axes, store, {"q": shape[along]}, f"{y} = {zero}"), dtype=dtype
    )
