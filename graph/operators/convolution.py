"""Convolutions of images in NCHW by filters in OIHW, with halo, strides, dilation and groups."""

from __future__ import annotations

from functools import cache

from layoutproof.graph.model import Shape
from layoutproof.graph.operators.page import Nest, function, require
from layoutproof.ir.primfunc import PrimFunc

Pair = tuple[int, int]
Halo = tuple[int, int, int, int]
"""Rows before, columns before, rows after, columns after."""


@cache
def conv2d(
    data: Shape,
    weight: Shape,
    strides: Pair = (1, 1),
    halo: Halo = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
    dtype: str = "float32",
) -> PrimFunc:
    """`Y[n, k, y, x]` is the sum over `c`, `r`, `s` of `X[n, c, y*stride + r*dilation - top, ...] * W[k, c, r, s]`; outside `X` is zero.

    `data` is N, C, H, W and `weight` K, C/groups, R, S: with groups, filter `k` sees the channels of its group alone. A halo is filled
    first, into an array of its own. Raises LayoutproofError for shapes that do not fit.
    """
    name = "conv2d" if groups == 1 else "depthwise_conv2d" if groups == data[1] else "grouped_conv2d"
    require(len(data) == 4 and len(weight) == 4, name, f"images and filters have four axes, not {len(data)} and {len(weight)}")
    (n, channels, height, width), (filters, inner, rows, columns) = data, weight
    fits = groups >= 1 and channels == inner * groups and filters % groups == 0
    require(fits, name, f"{filters} filters of {inner} channels do not fit {channels} channels in groups of {groups}")
    high, wide = height + halo[0] + halo[2], width + halo[1] + halo[3]
    shape = (n, filters, window_steps(high, rows, strides[0], dilation[0]), window_steps(wide, columns, strides[1], dilation[1]))
    require(min(halo) >= 0 and min(shape) >= 1, name, f"filters of {rows} by {columns} leave nothing of {high} by {wide}")
    image = "P" if any(halo) else "X"
    group = "k" if filters == groups else f"k // {filters // groups}"
    channel = "c" if groups == 1 else group if inner == 1 else f"{group} * {inner} + c"
    row, column = scaled("y", strides[0], "r", dilation[0]), scaled("x", strides[1], "s", dilation[1])
    main = Nest(
        "conv2d",
        {"n": n, "k": filters, "y": shape[2], "x": shape[3]},
        f"Y[n, k, y, x] = Y[n, k, y, x] + {image}[n, {channel}, {row}, {column}] * W[k, c, r, s]",
        {"c": inner, "r": rows, "s": columns},
        f"Y[n, k, y, x] = T.{dtype}(0)",
    )
    arrays = {"X": data, "W": weight, "Y": shape}
    if not any(halo):
        return function(name, arrays, main, dtype=dtype)
    around = (n, channels, high, wide)
    return function(name, arrays, _halo(data, halo, dtype), main, dtype=dtype, temporaries={"P": around})


def _halo(data: Shape, halo: Halo, dtype: str) -> Nest:
    n, channels, height, width = data
    top, left, bottom, right = halo
    conditions = [f"{top} <= y"] * (top > 0) + [f"y < {height + top}"] * (bottom > 0)
    conditions += [f"{left} <= x"] * (left > 0) + [f"x < {width + left}"] * (right > 0)
    element = f"X[n, c, {moved('y', -top)}, {moved('x', -left)}]"
    value = f"T.if_then_else({' and '.join(conditions)}, {element}, T.{dtype}(0))"
    return Nest("halo", {"n": n, "c": channels, "y": height + top + bottom, "x": width + left + right}, f"P[n, c, y, x] = {value}")


def window_steps(extent: int, window: int, stride: int, dilation: int = 1) -> int:
    """How often a window fits that is moved by `stride`."""
    return (extent - (window - 1) * dilation - 1) // stride + 1


def scaled(place: str, stride: int, inside: str, dilation: int = 1) -> str:
    """`place * stride + inside * dilation`, as people write it."""
    return f"{place if stride == 1 else f'{place} * {stride}'} + {inside if dilation == 1 else f'{inside} * {dilation}'}"


def moved(place: str, distance: int) -> str:
    """`place + distance`, as people write it."""
    return place if distance == 0 else f"{place} {'-' if distance < 0 else '+'} {abs(distance)}"
