"""Operators that make images larger or smaller, and that move between channels and places."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import gcd
from typing import Final

from layoutproof.graph.model import Shape
from layoutproof.graph.operators.convolution import moved
from layoutproof.graph.operators.page import Nest, access, axis_of, function, number, require, variables
from layoutproof.ir.primfunc import PrimFunc

Line = tuple[int, int, int]
"""Of a place `v` of the result, the place `(a * v + b) / c` of the operand, as a, b, c."""
SAME: Final[Line] = (1, 0, 1)
LARGEST: Final = 2**31 - 1


@cache
def resize_nearest(shape: Shape, new: Shape, lines: tuple[Line, ...], dtype: str = "float32") -> PrimFunc:
    """`Y[v, ...] = X[(a * v + b) // c, ...]`, a line for each axis; what is outside is the element at the edge.

    Raises LayoutproofError for lines that do not fit.
    """
    _check("resize_nearest", shape, new, lines)
    axes = variables(new)
    indices = [_nearest(name, line, size, extent) for name, line, size, extent in zip(axes, lines, new, shape, strict=True)]
    store = f"{access('Y', list(axes))} = {access('X', indices)}"
    return function("resize_nearest", {"X": shape, "Y": new}, Nest("resize_nearest", axes, store), dtype=dtype)


@cache
def resize_linear(shape: Shape, axis: int, size: int, line: Line, dtype: str = "float32") -> PrimFunc:
    """Along one axis, what lies on a straight line between the two neighbours of a place; what is outside is the element at the edge.

    Raises LayoutproofError for a line that does not fit.
    """
    return _blended("resize_linear", shape, axis, size, line, ["T.{t}(1) - {w}", "{w}"], 0, dtype)


@cache
def resize_cubic(shape: Shape, axis: int, size: int, line: Line, sharpness: float = -0.75, dtype: str = "float32") -> PrimFunc:
    """Along one axis, what lies on a cubic through the four neighbours of a place, as Keys has it; outside is the element at the edge.

    Raises LayoutproofError for a line that does not fit.
    """
    a = number(sharpness, dtype)
    near = f"(({a} + T.{{t}}(2)) * {{d}} - ({a} + T.{{t}}(3))) * {{d}} * {{d}} + T.{{t}}(1)"
    far = f"(({a} * {{d}} - T.{{t}}(5) * {a}) * {{d}} + T.{{t}}(8) * {a}) * {{d}} - T.{{t}}(4) * {a}"
    distances = ["({w} + T.{t}(1))", "{w}", "(T.{t}(1) - {w})", "(T.{t}(2) - {w})"]
    texts = [text.replace("{d}", distance) for text, distance in zip((far, near, near, far), distances, strict=True)]
    return _blended("resize_cubic", shape, axis, size, line, texts, -1, dtype)


def _blended(name: str, shape: Shape, axis: int, size: int, line: Line, weights: Sequence[str], first: int, dtype: str) -> PrimFunc:
    """Neighbours along an axis, the one at `first` from a place on, each times a weight over `{w}`, how far the place is past its own."""
    along = axis_of(name, axis, len(shape))
    new = (*shape[:along], size, *shape[along + 1 :])
    _check(name, shape, new, [line if k == along else SAME for k in range(len(shape))])
    axes = variables(new)
    a, b, c = _reduced(line)
    place = moved(f"v{along}" if a == 1 else f"v{along} * {a}", b) if a else str(b)
    past = f'(T.Cast("{dtype}", ({place}) % {c}) / {number(c, dtype)})'
    terms = []
    for k, weight in enumerate(weights):
        index = _nearest(f"v{along}", (a, b + (first + k) * c, c), size, shape[along])
        element = access("X", [index if each == f"v{along}" else each for each in axes])
        terms.append(f"{element} * ({weight.format(w=past, t=dtype)})")
    store = f"{access('Y', list(axes))} = {' + '.join(terms)}"
    return function(name, {"X": shape, "Y": new}, Nest(name, axes, store), dtype=dtype)


def _nearest(name: str, line: Line, size: int, extent: int) -> str:
    """The place on an axis of the operand, no further than its ends."""
    a, b, c = _floored(line)
    index = moved(name if a == 1 else f"{name} * {a}", b) if a else str(b)
    if c > 1:
        index = f"({index}) // {c}" if " " in index else f"{index} // {c}"
    if b < 0:
        index = f"T.max({index}, 0)"
    return f"T.min({index}, {extent - 1})" if (a * (size - 1) + b) // c >= extent else index


def _reduced(line: Line) -> Line:
    divisor = gcd(*line)
    return (line[0] // divisor, line[1] // divisor, line[2] // divisor)


def _floored(line: Line) -> Line:
    """The line with the same places, rounded down: `(4 * v + 1) // 8` is `v // 2`."""
    a, b, c = line
    divisor = gcd(a, c)
    return (a // divisor, b // divisor, c // divisor)


def _check(name: str, shape: Shape, new: Shape, lines: Sequence[Line]) -> None:
    fits = len(shape) == len(new) == len(lines) and min((*new, *shape), default=1) >= 1
    require(fits, name, f"{list(new)} and {len(lines)} lines do not fit an array of {list(shape)}")
    for (a, b, c), size in zip(lines, new, strict=True):
        small = a >= 0 and c >= 1 and a * size + abs(b) + 2 * c <= LARGEST
        require(small, name, f"the places ({a} * v + {b}) / {c} of {size} elements cannot be computed in 32 bits")


@cache
def depth_to_space(shape: Shape, block: int, channel_first: bool = False, dtype: str = "float32") -> PrimFunc:
    """Blocks of channels laid out as squares of places: N, C, H, W becomes N, C / block**2, H * block, W * block.

    The parts of a channel's number are the row, the column, the channel that is left; or, as `channel_first`, that channel comes first.
    Raises LayoutproofError for channels that are no whole blocks.
    """
    fits = len(shape) == 4 and block >= 1 and shape[1] % block**2 == 0
    require(fits, "depth_to_space", f"an array of {list(shape)} has no blocks of {block} by {block} channels")
    n, channels, rows, columns = shape
    new = (n, channels // block**2, rows * block, columns * block)
    row, column = (f"{place} % {block}" for place in ("y", "x"))
    channel = f"c * {block**2} + {row} * {block} + {column}" if channel_first else f"({row} * {block} + {column}) * {new[1]} + c"
    store = f"Y[n, c, y, x] = X[n, {channel}, y // {block}, x // {block}]"
    return function(
        "depth_to_space", {"X": shape, "Y": new}, Nest("depth_to_space", dict(zip("ncyx", new, strict=True)), store), dtype=dtype
    )


@cache
def space_to_depth(shape: Shape, block: int, channel_first: bool = False, dtype: str = "float32") -> PrimFunc:
    """Squares of places laid out as blocks of channels: N, C, H, W becomes N, C * block**2, H / block, W / block.

    The parts of a channel's number are as `depth_to_space` has them. Raises LayoutproofError for images that are no whole squares.
    """
    fits = len(shape) == 4 and block >= 1 and shape[2] % block == shape[3] % block == 0
    require(fits, "space_to_depth", f"an array of {list(shape)} has no squares of {block} by {block} places")
    n, channels, rows, columns = shape
    new = (n, channels * block**2, rows // block, columns // block)
    axes = {"n": n, "r": block, "s": block, "c": channels, "y": new[2], "x": new[3]}
    channel = f"c * {block**2} + r * {block} + s" if channel_first else f"(r * {block} + s) * {channels} + c"
    store = f"Y[n, {channel}, y, x] = X[n, c, y * {block} + r, x * {block} + s]"
    return function("space_to_depth", {"X": shape, "Y": new}, Nest("space_to_depth", axes, store), dtype=dtype)
