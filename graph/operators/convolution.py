"""Convolutions of signals, images and volumes (NC...) by filters (OI...), and their transposes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

from layoutproof.graph.model.graph import Shape
from layoutproof.graph.operators.operator_text import Nest, function, require
from layoutproof.ir.primfunc import PrimFunc

Pair = tuple[int, int]
Halo = tuple[int, int, int, int]
"""Rows before, columns before, rows after, columns after."""

PLACES = ("z", "y", "x")
"""Names of indices on the last three axes of an array, and below of those inside a window."""
INSIDES = ("q", "r", "s")


@dataclass(frozen=True, slots=True)
class Sliding:
    """How windows move over one, two or three axes: `halo` is cells before on each axis, then cells after."""

    strides: tuple[int, ...] = (1, 1)
    halo: tuple[int, ...] = (0, 0, 0, 0)
    dilation: tuple[int, ...] = (1, 1)

    def fits(self, rank: int) -> bool:
        """Whether there are numbers for each of `rank` axes, and strides and dilation are positive."""
        lengths = len(self.strides) == len(self.dilation) == rank and len(self.halo) == 2 * rank
        return lengths and min(*self.strides, *self.dilation) >= 1

    def __str__(self) -> str:
        return f"strides {list(self.strides)}, halo {list(self.halo)} and dilation {list(self.dilation)}"


DENSE = Sliding()
"""Windows at every place of an image, without a halo."""


def conv2d(data: Shape, weight: Shape, sliding: Sliding = DENSE, groups: int = 1, dtype: str = "float32") -> PrimFunc:
    """`Y[n, k, y, x]` is the sum over `c`, `r`, `s` of `X[n, c, y*stride + r*dilation - top, ...] * W[k, c, r, s]`;
    outside `X` is zero.

    `data` is N, C, H, W and `weight` K, C/groups, R, S: with groups, filter `k` sees the channels of its group alone. A
    halo is filled first, into an array of its own. Raises LayoutproofError for shapes that do not fit.
    """
    require(
        len(data) == 4 and len(weight) == 4,
        "conv2d",
        f"images and filters have four axes, not {len(data)} and {len(weight)}",
    )
    return conv(data, weight, sliding, groups, dtype)


@cache
def conv(data: Shape, weight: Shape, sliding: Sliding, groups: int = 1, dtype: str = "float32") -> PrimFunc:
    """A convolution over one, two or three axes, as `conv2d` over two.

    Raises LayoutproofError for shapes that do not fit.
    """
    rank, name = _named("conv", data, weight, groups, groups == data[1])
    (n, channels, *sizes), (filters, inner, *window) = data, weight
    fits = groups >= 1 and channels == inner * groups and filters % groups == 0
    require(fits, name, f"{filters} filters of {inner} channels do not fit {channels} channels in groups of {groups}")
    _check_steps(name, rank, sliding)
    strides, halo, dilation = sliding.strides, sliding.halo, sliding.dilation
    whole = [before + extent + after for extent, before, after in zip(sizes, halo[:rank], halo[rank:], strict=True)]
    steps = [window_steps(*each) for each in zip(whole, window, strides, dilation, strict=True)]
    shape = (n, filters, *steps)
    require(min(halo) >= 0 and min(shape) >= 1, name, f"filters of {by(window)} leave nothing of {by(whole)}")
    image = "P" if any(halo) else "X"
    group = "k" if filters == groups else f"k // {filters // groups}"
    channel = "c" if groups == 1 else group if inner == 1 else f"{group} * {inner} + c"
    places, insides = PLACES[-rank:], INSIDES[-rank:]
    element = ", ".join(scaled(*each) for each in zip(places, strides, insides, dilation, strict=True))
    result = f"Y[n, k, {', '.join(places)}]"
    main = Nest(
        f"conv{rank}d",
        dict(zip(("n", "k", *places), shape, strict=True)),
        f"{result} = {result} + {image}[n, {channel}, {element}] * W[k, c, {', '.join(insides)}]",
        dict(zip(("c", *insides), (inner, *window), strict=True)),
        f"{result} = T.{dtype}(0)",
    )
    arrays = {"X": data, "W": weight, "Y": shape}
    if not any(halo):
        return function(name, arrays, main, dtype=dtype)
    return function(name, arrays, _halo(data, halo, dtype), main, dtype=dtype, temporaries={"P": (n, channels, *whole)})


@cache
def conv_transpose(
    data: Shape,
    weight: Shape,
    sliding: Sliding,
    groups: int = 1,
    extra: tuple[int, ...] | None = None,
    dtype: str = "float32",
) -> PrimFunc:
    """The transpose of a convolution over one, two or three axes: `X` is spread over `Y`.

    `weight` is C, K/groups, then the window. `Y` has `(extent - 1) * stride + (window - 1) * dilation + 1` elements on
    an axis, less the halo before and after, and `extra` more after. An element is the sum of those of `X` that reach
    it, and of nothing else. Raises LayoutproofError for shapes that do not fit.
    """
    rank, name = _named("conv_transpose", data, weight, groups, groups == data[1] == prod(weight[:2]))
    (n, channels, *sizes), (taken, inner, *window) = data, weight
    fits = groups >= 1 and channels == taken and channels % groups == 0
    require(fits, name, f"filters for {taken} channels do not fit {channels} channels in groups of {groups}")
    _check_steps(name, rank, sliding)
    strides, halo, dilation = sliding.strides, sliding.halo, sliding.dilation
    more = extra if extra is not None else (0,) * rank
    require(len(more) == rank, name, f"{len(more)} numbers of elements that are added do not fit {rank} axes")
    steps = [
        (extent - 1) * stride + (size - 1) * apart + 1 - before - after + added
        for extent, stride, size, apart, before, after, added in zip(
            sizes, strides, window, dilation, halo[:rank], halo[rank:], more, strict=True
        )
    ]
    shape = (n, inner * groups, *steps)
    require(min(shape) >= 1, name, f"a result of {by(steps)} has nothing")
    each = channels // groups
    group = "k" if inner == 1 else f"k // {inner}"
    channel = "c" if groups == 1 else group if each == 1 else f"{group} * {each} + c"
    own = "k" if groups == 1 else "0" if inner == 1 else f"k % {inner}"
    places, insides = PLACES[-rank:], INSIDES[-rank:]
    windows = zip(places, insides, window, strides, dilation, strict=True)
    reached = [_reached(*given) for given in zip(windows, sizes, halo[:rank], steps, strict=True)]
    element = f"X[n, {channel}, {', '.join(index for index, _ in reached)}]"
    product = f"{element} * W[{channel}, {own}, {', '.join(insides)}]"
    conditions = [condition for _, found in reached for condition in found]
    term = f"T.if_then_else({' and '.join(conditions)}, {product}, T.{dtype}(0))" if conditions else product
    result = f"Y[n, k, {', '.join(places)}]"
    main = Nest(
        f"conv_transpose{rank}d",
        dict(zip(("n", "k", *places), shape, strict=True)),
        f"{result} = {result} + {term}",
        dict(zip(("c", *insides), (each, *window), strict=True)),
        f"{result} = T.{dtype}(0)",
    )
    return function(name, {"X": data, "W": weight, "Y": shape}, main, dtype=dtype)


def _reached(window: tuple[str, str, int, int, int], extent: int, before: int, steps: int) -> tuple[str, list[str]]:
    """Which element reaches a place through one of the window, and under which conditions there is such a one."""
    place, inside, size, stride, apart = window
    if size > 1:
        place += f" - {inside if apart == 1 else f'{inside} * {apart}'}"
    start = moved(place, before)
    low, high = before - (size - 1) * apart, before + steps - 1
    conditions = [f"({start}) % {stride} == 0"] * (stride > 1) + [f"0 <= {start}"] * (low < 0)
    conditions += [f"{start} < {(extent - 1) * stride + 1}"] * (high > (extent - 1) * stride)
    return start if stride == 1 else f"({start}) // {stride}", conditions


def _named(kind: str, data: Shape, weight: Shape, groups: int, depthwise: bool) -> tuple[int, str]:
    """The number of a convolution's axes, and its name."""
    rank = len(data) - 2
    require(
        1 <= rank <= len(PLACES) and len(weight) == len(data),
        kind,
        f"arrays of {len(data)} and {len(weight)} axes have no convolution",
    )
    return rank, f"{'' if groups == 1 else 'depthwise_' if depthwise else 'grouped_'}{kind}{rank}d"


def _check_steps(name: str, rank: int, sliding: Sliding) -> None:
    require(sliding.fits(rank), name, f"{sliding} do not fit {rank} axes")


def _halo(data: Shape, halo: Sequence[int], dtype: str) -> Nest:
    rank = len(data) - 2
    n, channels, *sizes = data
    conditions, indices, extents = list[str](), list[str](), list[int]()
    for place, extent, before, after in zip(PLACES[-rank:], sizes, halo[:rank], halo[rank:], strict=True):
        conditions += [f"{before} <= {place}"] * (before > 0) + [f"{place} < {extent + before}"] * (after > 0)
        indices.append(moved(place, -before))
        extents.append(before + extent + after)
    value = f"T.if_then_else({' and '.join(conditions)}, X[n, c, {', '.join(indices)}], T.{dtype}(0))"
    axes = dict(zip(("n", "c", *PLACES[-rank:]), (n, channels, *extents), strict=True))
    return Nest("halo", axes, f"P[n, c, {', '.join(PLACES[-rank:])}] = {value}")


def window_steps(extent: int, window: int, stride: int, dilation: int = 1) -> int:
    """How often a window fits that is moved by `stride`."""
    return (extent - (window - 1) * dilation - 1) // stride + 1


def scaled(place: str, stride: int, inside: str, dilation: int = 1) -> str:
    """`place * stride + inside * dilation`, as people write it."""
    return (
        f"{place if stride == 1 else f'{place} * {stride}'} + {inside if dilation == 1 else f'{inside} * {dilation}'}"
    )


def moved(place: str, distance: int) -> str:
    """`place + distance`, as people write it."""
    return place if distance == 0 else f"{place} {'-' if distance < 0 else '+'} {abs(distance)}"


def by(sizes: Sequence[int]) -> str:
    """Sizes as people write them."""
    return " by ".join(map(str, sizes))
