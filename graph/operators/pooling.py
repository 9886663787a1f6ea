"""Pooling over windows of images in NCHW."""

from __future__ import annotations

from functools import cache

from layoutproof.graph.model import Shape
from layoutproof.graph.operators.convolution import Halo, Pair, moved, scaled, window_steps
from layoutproof.graph.operators.page import Nest, function, require
from layoutproof.ir.primfunc import PrimFunc


@cache
def max_pool2d(data: Shape, window: Pair, strides: Pair = (1, 1), halo: Halo = (0, 0, 0, 0), dtype: str = "float32") -> PrimFunc:
    """The largest element of each window; what lies outside does not count. Raises LayoutproofError for shapes that do not fit."""
    shape = _shape("max_pool2d", data, window, strides, halo)
    lowest = f'T.min_value("{dtype}")'
    value = f"T.max(Y[n, c, y, x], {_element(data, window, strides, halo, lowest)})"
    return _pool("max_pool2d", data, shape, window, value, lowest, dtype)


@cache
def avg_pool2d(
    data: Shape,
    window: Pair,
    strides: Pair = (1, 1),
    halo: Halo = (0, 0, 0, 0),
    count_halo: bool = False,
    dtype: str = "float32",
) -> PrimFunc:
    """The mean of each window: over the elements that it has or, as `count_halo`, over its size with zeros outside.

    Raises LayoutproofError for shapes that do not fit.
    """
    shape = _shape("avg_pool2d", data, window, strides, halo)
    zero = f"T.{dtype}(0)"
    value = f"S[n, c, y, x] + {_element(data, window, strides, halo, zero)}"
    axes = dict(zip("ncyx", shape, strict=True))
    total = Nest("window_sum", axes, f"S[n, c, y, x] = {value}", dict(zip("rs", window, strict=True)), f"S[n, c, y, x] = {zero}")
    count = f"T.{dtype}({window[0] * window[1]})"
    if any(halo) and not count_halo:
        inside = [
            _inside(place, stride, size, before, extent)
            for place, stride, size, before, extent in zip("yx", strides, window, halo[:2], data[2:], strict=True)
        ]
        count = f'T.Cast("{dtype}", ({inside[0]}) * ({inside[1]}))'
    mean = Nest("mean", axes, f"Y[n, c, y, x] = S[n, c, y, x] / {count}")
    return function("avg_pool2d", {"X": data, "Y": shape}, total, mean, dtype=dtype, temporaries={"S": shape})


def _inside(place: str, stride: int, size: int, before: int, extent: int) -> str:
    """How many rows or columns of a window lie in the image."""
    start = moved(place if stride == 1 else f"{place} * {stride}", -before)
    return f"T.min({start} + {size}, {extent}) - T.max({start}, 0)"


def _shape(operator: str, data: Shape, window: Pair, strides: Pair, halo: Halo) -> Shape:
    require(len(data) == 4, operator, f"images have four axes, not {len(data)}")
    sizes = (data[2] + halo[0] + halo[2], data[3] + halo[1] + halo[3])
    steps = tuple(window_steps(size, extent, stride) for size, extent, stride in zip(sizes, window, strides, strict=True))
    require(
        min(halo) >= 0 and min(steps) >= 1, operator, f"windows of {window[0]} by {window[1]} leave nothing of {sizes[0]} by {sizes[1]}"
    )
    # A window that lies in the halo alone would be a mean of nothing.
    require(all(before < window[k % 2] for k, before in enumerate(halo)), operator, "the halo is as large as the window")
    return (*data[:2], *steps)


def _element(data: Shape, window: Pair, strides: Pair, halo: Halo, outside: str) -> str:
    places = [
        moved(scaled(place, stride, inner), -before) for place, stride, inner, before in zip("yx", strides, "rs", halo[:2], strict=True)
    ]
    element = f"X[n, c, {places[0]}, {places[1]}]"
    conditions = [f"0 <= {place}" for place, before in zip(places, halo[:2], strict=True) if before]
    conditions += [f"{place} < {extent}" for place, after, extent in zip(places, halo[2:], data[2:], strict=True) if after]
    return f"T.if_then_else({' and '.join(conditions)}, {element}, {outside})" if conditions else element


def _pool(name: str, data: Shape, shape: Shape, window: Pair, value: str, start: str, dtype: str) -> PrimFunc:
    axes, reduced = dict(zip("ncyx", shape, strict=True)), dict(zip("rs", window, strict=True))
    nest = Nest(name, axes, f"Y[n, c, y, x] = {value}", reduced, f"Y[n, c, y, x] = {start}")
    return function(name, {"X": data, "Y": shape}, nest, dtype=dtype)
