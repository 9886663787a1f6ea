"""Operators that scale elements by all those on some axes: normalisation of layers and of root mean squares, logarithms of shares."""

from __future__ import annotations

from functools import cache
from math import prod

from layoutproof.graph.model import Shape
from layoutproof.graph.operators.elementwise import broadcast, repeated
from layoutproof.graph.operators.page import Nest, access, axis_of, function, lowest, number, require, variables
from layoutproof.ir.primfunc import PrimFunc


@cache
def layer_norm(shape: Shape, axis: int, scale: Shape, bias: Shape | None, epsilon: float, dtype: str = "float32") -> PrimFunc:
    """`Y = (X - m) / sqrt(v + epsilon) * W + B`, `m` and `v` the mean and the variance over all axes from `axis` on.

    Raises LayoutproofError for an axis that is not there, and for a scale or a bias that is not repeated to `shape`.
    """
    spatial, reduced, place = _split("layer_norm", shape, axis)
    for given in (scale, bias if bias is not None else ()):
        require(broadcast("layer_norm", shape, given) == shape, "layer_norm", f"{list(given)} is not repeated to {list(shape)}")
    axes = variables(shape)
    x, y = access("X", list(axes)), access("Y", list(axes))
    total, mean, squares = (access(array, place) for array in ("S", "M", "Q"))
    count = number(prod(reduced.values()), dtype)
    value = f"({x} - {mean}) / T.sqrt({squares} / {count} + {number(epsilon, dtype)}) * {repeated('W', scale, shape)}"
    nests = (
        Nest("total", spatial, f"{total} = {total} + {x}", reduced, f"{total} = {number(0, dtype)}"),
        Nest("mean", spatial, f"{mean} = {total} / {count}"),
        Nest("squares", spatial, f"{squares} = {squares} + ({x} - {mean}) * ({x} - {mean})", reduced, f"{squares} = {number(0, dtype)}"),
        Nest("layer_norm", axes, f"{y} = {value}" if bias is None else f"{y} = {value} + {repeated('B', bias, shape)}"),
    )
    arrays = {"X": shape, "W": scale, **({"B": bias} if bias is not None else {}), "Y": shape}
    outer = tuple(spatial.values())
    return function("layer_norm", arrays, *nests, dtype=dtype, temporaries={"S": outer, "M": outer, "Q": outer})


@cache
def rms_norm(shape: Shape, axis: int, scale: Shape, epsilon: float, dtype: str = "float32") -> PrimFunc:
    """`Y = X / sqrt(q + epsilon) * W`, `q` the mean of the squares over all axes from `axis` on. Raises as `layer_norm` does."""
    spatial, reduced, place = _split("rms_norm", shape, axis)
    require(broadcast("rms_norm", shape, scale) == shape, "rms_norm", f"{list(scale)} is not repeated to {list(shape)}")
    axes = variables(shape)
    x, squares = access("X", list(axes)), access("Q", place)
    root = f"T.sqrt({squares} / {number(prod(reduced.values()), dtype)} + {number(epsilon, dtype)})"
    nests = (
        Nest("squares", spatial, f"{squares} = {squares} + {x} * {x}", reduced, f"{squares} = {number(0, dtype)}"),
        Nest("rms_norm", axes, f"{access('Y', list(axes))} = {x} / {root} * {repeated('W', scale, shape)}"),
    )
    arrays = {"X": shape, "W": scale, "Y": shape}
    return function("rms_norm", arrays, *nests, dtype=dtype, temporaries={"Q": tuple(spatial.values())})


@cache
def log_softmax(shape: Shape, axis: int = -1, dtype: str = "float32") -> PrimFunc:
    """`X - m - log(sum(exp(X - m)))` along an axis, `m` the largest there. Raises LayoutproofError for an axis that is not there."""
    along = axis_of("log_softmax", axis, len(shape))
    axes = variables(shape)
    place = [name for k, name in enumerate(axes) if k != along]
    spatial, reduced = {name: axes[name] for name in place}, {f"v{along}": shape[along]}
    x, top, total = access("X", list(axes)), access("L", place), access("S", place)
    nests = (
        Nest("largest", spatial, f"{top} = T.max({top}, {x})", reduced, f"{top} = {lowest(dtype)}"),
        Nest("total", spatial, f"{total} = {total} + T.exp({x} - {top})", reduced, f"{total} = {number(0, dtype)}"),
        Nest("log_softmax", axes, f"{access('Y', list(axes))} = {x} - {top} - T.log({total})"),
    )
    outer = tuple(spatial.values())
    return function("log_softmax", {"X": shape, "Y": shape}, *nests, dtype=dtype, temporaries={"L": outer, "S": outer})


@cache
def lp_norm(shape: Shape, axis: int, order: int, dtype: str = "float32") -> PrimFunc:
    """`X / n` along an axis, `n` the sum of absolute values (order 1) or the root of the sum of squares (2) there; 0 where `n` is 0.

    Raises LayoutproofError for an axis that is not there, and for another order.
    """
    require(order in (1, 2), "lp_norm", f"there is no norm of order {order}; there are 1 and 2")
    along = axis_of("lp_norm", axis, len(shape))
    axes = variables(shape)
    place = [name for k, name in enumerate(axes) if k != along]
    spatial, reduced = {name: axes[name] for name in place}, {f"v{along}": shape[along]}
    x, total, zero = access("X", list(axes)), access("S", place), number(0, dtype)
    norm = total if order == 1 else f"T.sqrt({total})"
    nests = (
        Nest("total", spatial, f"{total} = {total} + {f'T.abs({x})' if order == 1 else f'{x} * {x}'}", reduced, f"{total} = {zero}"),
        Nest("lp_norm", axes, f"{access('Y', list(axes))} = T.if_then_else({total} == {zero}, {zero}, {x} / {norm})"),
    )
    return function("lp_norm", {"X": shape, "Y": shape}, *nests, dtype=dtype, temporaries={"S": tuple(spatial.values())})


def _split(operator: str, shape: Shape, axis: int) -> tuple[dict[str, int], dict[str, int], list[str]]:
    """The axes before one, those from it on, and the place that the first are."""
    first = axis_of(operator, axis, len(shape))
    axes = variables(shape)
    spatial = {name: axes[name] for name in list(axes)[:first]}
    return spatial, {name: axes[name] for name in list(axes)[first:]}, list(spatial)
