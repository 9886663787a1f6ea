"""Operators on the spatial axes of signals, images and volumes: pooling, resizing, depth to space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import gcd
from typing import Final

from layoutproof.graph.model.graph import Shape
from layoutproof.graph.operators.convolution import (
    INSIDES,
    PLACES,
    Halo,
    Pair,
    Sliding,
    by,
    moved,
    scaled,
    window_steps,
)
from layoutproof.graph.operators.operator_text import (
    Nest,
    access,
    axis_of,
    cached_by_number,
    function,
    lowest,
    number,
    require,
    variables,
)
from layoutproof.ir.primfunc import PrimFunc


def max_pool2d(
    data: Shape, window: Pair, strides: Pair = (1, 1), halo: Halo = (0, 0, 0, 0), dtype: str = "float32"
) -> PrimFunc:
    """The largest element of each window, without those outside. Raises LayoutproofError for shapes that do not fit."""
    require(len(data) == 4, "max_pool2d", f"images have four axes, not {len(data)}")
    return max_pool(data, window, Sliding(strides, halo), dtype=dtype)


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
    require(len(data) == 4, "avg_pool2d", f"images have four axes, not {len(data)}")
    return avg_pool(data, window, Sliding(strides, halo), count_halo=count_halo, dtype=dtype)


@cache
def max_pool(
    data: Shape,
    window: tuple[int, ...],
    sliding: Sliding,
    steps: tuple[int, ...] | None = None,
    dtype: str = "float32",
) -> PrimFunc:
    """The largest element of each window over one, two or three axes.

    `steps` is the number of windows on each axis where it is not the number that fits: the last ones may reach past
    the halo. Of a NaN and what follows it in a window the latter is taken. Raises LayoutproofError for shapes that do
    not fit.
    """
    pool = _Pool("max_pool", data, window, sliding, steps)
    shape = pool.shape()
    result = f"Y[{', '.join(pool.places)}]"
    start = lowest(dtype)
    axes, reduced = dict(zip(pool.places, shape, strict=True)), dict(zip(pool.insides, window, strict=True))
    nest = Nest(
        pool.name, axes, f"{result} = T.max({result}, {pool.element(shape, start)})", reduced, f"{result} = {start}"
    )
    return function(pool.name, {"X": data, "Y": shape}, nest, dtype=dtype)


@cache
def avg_pool(
    data: Shape,
    window: tuple[int, ...],
    sliding: Sliding,
    steps: tuple[int, ...] | None = None,
    count_halo: bool = False,
    dtype: str = "float32",
) -> PrimFunc:
    """The mean of each window, as `max_pool` has them; as `count_halo` the halo counts as zeros, but nothing past it.

    Raises LayoutproofError for shapes that do not fit.
    """
    pool = _Pool("avg_pool", data, window, sliding, steps)
    shape = pool.shape()
    places = ", ".join(pool.places)
    axes, zero = dict(zip(pool.places, shape, strict=True)), f"T.{dtype}(0)"
    value = f"S[{places}] + {pool.element(shape, zero)}"
    total = Nest(
        "window_sum",
        axes,
        f"S[{places}] = {value}",
        dict(zip(pool.insides, window, strict=True)),
        f"S[{places}] = {zero}",
    )
    mean = Nest("mean", axes, f"Y[{places}] = S[{places}] / {pool.count(shape, count_halo, dtype)}")
    return function(pool.name, {"X": data, "Y": shape}, total, mean, dtype=dtype, temporaries={"S": shape})


def has_elements(extent: int, size: int, stride: int, apart: int, before: int, number: int) -> bool:
    """Whether each of `number` windows has an element of an axis, if gaps are no larger than the axis."""
    gap = apart if size > 1 else 1
    return gap <= extent and before <= (size - 1) * gap and (number - 1) * stride - before < extent


class _Pool:
    """The windows of one pooling. Raises LayoutproofError for shapes that do not fit."""

    def __init__(
        self,
        kind: str,
        data: Shape,
        window: Sequence[int],
        sliding: Sliding,
        steps: Sequence[int] | None,
    ) -> None:
        rank = len(data) - 2
        require(1 <= rank <= len(PLACES), kind, f"an array of {len(data)} axes has no windows")
        self.name, self.data, self.window, self.sliding = f"{kind}{rank}d", data, window, sliding
        self.places, self.insides = ("n", "c", *PLACES[-rank:]), INSIDES[-rank:]
        self._given = steps
        fits = sliding.fits(rank) and len(window) == rank and min(window) >= 1 and min(sliding.halo) >= 0
        require(fits, self.name, f"windows {list(window)}, {sliding} do not fit {rank} axes")

    def _axes(self) -> list[tuple[str, str, int, int, int, int, int, int]]:
        """Of each axis: place, place inside, extent, window, stride, dilation, halo before and after."""
        rank = len(self.window)
        return list(
            zip(
                self.places[2:],
                self.insides,
                self.data[2:],
                self.window,
                self.sliding.strides,
                self.sliding.dilation,
                self.sliding.halo[:rank],
                self.sliding.halo[rank:],
                strict=True,
            )
        )

    def shape(self) -> Shape:
        """The shape of the result. Raises LayoutproofError for windows that have nothing."""
        whole = [before + extent + after for _, _, extent, _, _, _, before, after in self._axes()]
        strides, dilation = self.sliding.strides, self.sliding.dilation
        fitting = [window_steps(*each) for each in zip(whole, self.window, strides, dilation, strict=True)]
        steps = self._given if self._given is not None else fitting
        require(
            len(steps) == len(fitting) and min(steps) >= 1,
            self.name,
            f"windows of {by(self.window)} leave nothing of {by(whole)}",
        )
        for (_, _, extent, size, stride, apart, before, _), count in zip(self._axes(), steps, strict=True):
            # Another window would be a mean of nothing, or the largest of nothing.
            require(
                has_elements(extent, size, stride, apart, before, count),
                self.name,
                f"some windows have none of {extent} elements",
            )
        return (*self.data[:2], *steps)

    def element(self, shape: Shape, outside: str) -> str:
        """The element of a window, or what stands for it where it lies outside."""
        indices, conditions = ["n", "c"], list[str]()
        for (place, inside, extent, size, stride, apart, before, _), steps in zip(self._axes(), shape[2:], strict=True):
            index = moved(scaled(place, stride, inside, apart), -before)
            indices.append(index)
            conditions += [f"0 <= {index}"] * (before > 0)
            conditions += [f"{index} < {extent}"] * ((steps - 1) * stride + (size - 1) * apart - before >= extent)
        found = f"X[{', '.join(indices)}]"
        return f"T.if_then_else({' and '.join(conditions)}, {found}, {outside})" if conditions else found

    def count(self, shape: Shape, count_halo: bool, dtype: str) -> str:
        """How many elements of a window count."""
        whole, varying = 1, list[str]()
        for (place, _, extent, size, stride, apart, before, after), steps in zip(self._axes(), shape[2:], strict=True):
            low, high = (-before, extent + after) if count_halo else (0, extent)
            if low <= -before and (steps - 1) * stride - before + (size - 1) * apart < high:
                whole *= size
                continue
            start = moved(place if stride == 1 else f"{place} * {stride}", -before)
            if apart == 1:
                varying.append(f"T.min({start} + {size}, {high}) - T.max({start}, {low})")
            else:
                last = f"(T.min({start} + {(size - 1) * apart}, {high - 1}) - ({start})) // {apart}"
                varying.append(f"{last} - (T.max({low} - ({start}), 0) + {apart - 1}) // {apart} + 1")
        if not varying:
            return f"T.{dtype}({whole})"
        factors = [f"({each})" for each in varying] + [str(whole)] * (whole > 1)
        return f'T.Cast("{dtype}", {" * ".join(factors)})'


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
    indices = [
        _nearest(name, line, size, extent) for name, line, size, extent in zip(axes, lines, new, shape, strict=True)
    ]
    store = f"{access('Y', list(axes))} = {access('X', indices)}"
    return function("resize_nearest", {"X": shape, "Y": new}, Nest("resize_nearest", axes, store), dtype=dtype)


@cache
def resize_linear(shape: Shape, axis: int, size: int, line: Line, dtype: str = "float32") -> PrimFunc:
    """Along one axis, what lies on a straight line between the two neighbours of a place; what is outside is the
    element at the edge.

    Raises LayoutproofError for a line that does not fit.
    """
    return _blended("resize_linear", shape, _Along(axis, size, line), ["T.{t}(1) - {w}", "{w}"], 0, dtype)


@cached_by_number
def resize_cubic(
    shape: Shape, axis: int, size: int, line: Line, sharpness: float = -0.75, dtype: str = "float32"
) -> PrimFunc:
    """Along one axis, what lies on a cubic through the four neighbours of a place, as Keys has it; outside is the
    element at the edge.

    Raises LayoutproofError for a line that does not fit.
    """
    a = number(sharpness, dtype)
    near = f"(({a} + T.{{t}}(2)) * {{d}} - ({a} + T.{{t}}(3))) * {{d}} * {{d}} + T.{{t}}(1)"
    far = f"(({a} * {{d}} - T.{{t}}(5) * {a}) * {{d}} + T.{{t}}(8) * {a}) * {{d}} - T.{{t}}(4) * {a}"
    distances = ["({w} + T.{t}(1))", "{w}", "(T.{t}(1) - {w})", "(T.{t}(2) - {w})"]
    texts = [text.replace("{d}", distance) for text, distance in zip((far, near, near, far), distances, strict=True)]
    return _blended("resize_cubic", shape, _Along(axis, size, line), texts, -1, dtype)


@dataclass(frozen=True, slots=True)
class _Along:
    """The axis that is resized, its new size, and where its places are in the operand."""

    axis: int
    size: int
    line: Line


def _blended(name: str, shape: Shape, to: _Along, weights: Sequence[str], first: int, dtype: str) -> PrimFunc:
    """Neighbours along an axis from `first`, each times a weight over `{w}`, the distance of the place from its own."""
    along = axis_of(name, to.axis, len(shape))
    new = (*shape[:along], to.size, *shape[along + 1 :])
    _check(name, shape, new, [to.line if k == along else SAME for k in range(len(shape))])
    axes = variables(new)
    a, b, c = _reduced(to.line)
    place = moved(f"v{along}" if a == 1 else f"v{along} * {a}", b) if a else str(b)
    past = f'(T.Cast("{dtype}", ({place}) % {c}) / {number(c, dtype)})'
    terms = []
    for k, weight in enumerate(weights):
        index = _nearest(f"v{along}", (a, b + (first + k) * c, c), to.size, shape[along])
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

    The parts of a channel's number are the row, the column, the channel that is left; or, as `channel_first`, that
    channel comes first. Raises LayoutproofError for channels that are no whole blocks.
    """
    fits = len(shape) == 4 and block >= 1 and shape[1] % block**2 == 0
    require(fits, "depth_to_space", f"an array of {list(shape)} has no blocks of {block} by {block} channels")
    n, channels, rows, columns = shape
    new = (n, channels // block**2, rows * block, columns * block)
    row, column = (f"{place} % {block}" for place in ("y", "x"))
    channel = (
        f"c * {block**2} + {row} * {block} + {column}"
        if channel_first
        else f"({row} * {block} + {column}) * {new[1]} + c"
    )
    store = f"Y[n, c, y, x] = X[n, {channel}, y // {block}, x // {block}]"
    return function(
        "depth_to_space",
        {"X": shape, "Y": new},
        Nest("depth_to_space", dict(zip("ncyx", new, strict=True)), store),
        dtype=dtype,
    )


@cache
def space_to_depth(shape: Shape, block: int, channel_first: bool = False, dtype: str = "float32") -> PrimFunc:
    """Squares of places laid out as blocks of channels: N, C, H, W becomes N, C * block**2, H / block, W / block.

    The parts of a channel's number are as `depth_to_space` has them. Raises LayoutproofError for images that are no
    whole squares.
    """
    fits = len(shape) == 4 and block >= 1 and shape[2] % block == shape[3] % block == 0
    require(fits, "space_to_depth", f"an array of {list(shape)} has no squares of {block} by {block} places")
    n, channels, rows, columns = shape
    new = (n, channels * block**2, rows // block, columns // block)
    axes = {"n": n, "r": block, "s": block, "c": channels, "y": new[2], "x": new[3]}
    channel = f"c * {block**2} + r * {block} + s" if channel_first else f"(r * {block} + s) * {channels} + c"
    store = f"Y[n, {channel}, y, x] = X[n, c, y * {block} + r, x * {block} + s]"
    return function("space_to_depth", {"X": shape, "Y": new}, Nest("space_to_depth", axes, store), dtype=dtype)
