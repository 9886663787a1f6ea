"""Pooling over windows of signals, images and volumes in NC.. ."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from layoutproof.graph.model import Shape
from layoutproof.graph.operators.convolution import INSIDES, PLACES, Halo, Pair, by, moved, scaled, window_steps
from layoutproof.graph.operators.page import Nest, function, lowest, require
from layoutproof.ir.primfunc import PrimFunc


def max_pool2d(data: Shape, window: Pair, strides: Pair = (1, 1), halo: Halo = (0, 0, 0, 0), dtype: str = "float32") -> PrimFunc:
    """The largest element of each window; what lies outside does not count. Raises LayoutproofError for shapes that do not fit."""
    require(len(data) == 4, "max_pool2d", f"images have four axes, not {len(data)}")
    return max_pool(data, window, strides, halo, dtype=dtype)


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
    return avg_pool(data, window, strides, halo, count_halo=count_halo, dtype=dtype)


@cache
def max_pool(
    data: Shape,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    halo: tuple[int, ...],
    dilation: tuple[int, ...] | None = None,
    steps: tuple[int, ...] | None = None,
    dtype: str = "float32",
) -> PrimFunc:
    """The largest element of each window over one, two or three axes. `halo` is cells before on each axis, then cells after.

    `steps` is how many windows there are on each axis where that is not as many as fit: the last ones may reach past the halo.
    Of a NaN and what comes behind it in a window the latter is taken. Raises LayoutproofError for shapes that do not fit.
    """
    pool = _Pool("max_pool", data, window, strides, halo, dilation, steps)
    shape = pool.shape()
    result = f"Y[{', '.join(pool.places)}]"
    start = lowest(dtype)
    axes, reduced = dict(zip(pool.places, shape, strict=True)), dict(zip(pool.insides, window, strict=True))
    nest = Nest(pool.name, axes, f"{result} = T.max({result}, {pool.element(shape, start)})", reduced, f"{result} = {start}")
    return function(pool.name, {"X": data, "Y": shape}, nest, dtype=dtype)


@cache
def avg_pool(
    data: Shape,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    halo: tuple[int, ...],
    dilation: tuple[int, ...] | None = None,
    steps: tuple[int, ...] | None = None,
    count_halo: bool = False,
    dtype: str = "float32",
) -> PrimFunc:
    """The mean of each window, as `max_pool` has them; as `count_halo` the halo counts as zeros, but nothing past it.

    Raises LayoutproofError for shapes that do not fit.
    """
    pool = _Pool("avg_pool", data, window, strides, halo, dilation, steps)
    shape = pool.shape()
    places = ", ".join(pool.places)
    axes, zero = dict(zip(pool.places, shape, strict=True)), f"T.{dtype}(0)"
    value = f"S[{places}] + {pool.element(shape, zero)}"
    total = Nest("window_sum", axes, f"S[{places}] = {value}", dict(zip(pool.insides, window, strict=True)), f"S[{places}] = {zero}")
    mean = Nest("mean", axes, f"Y[{places}] = S[{places}] / {pool.count(shape, count_halo, dtype)}")
    return function(pool.name, {"X": data, "Y": shape}, total, mean, dtype=dtype, temporaries={"S": shape})


def has_elements(extent: int, size: int, stride: int, apart: int, before: int, number: int) -> bool:
    """Whether each of `number` windows has an element of an axis, gaps that are no larger than the axis taken for granted."""
    gap = apart if size > 1 else 1
    return gap <= extent and before <= (size - 1) * gap and (number - 1) * stride - before < extent


class _Pool:
    """The windows of one pooling. Raises LayoutproofError for shapes that do not fit."""

    def __init__(
        self,
        kind: str,
        data: Shape,
        window: Sequence[int],
        strides: Sequence[int],
        halo: Sequence[int],
        dilation: Sequence[int] | None,
        steps: Sequence[int] | None,
    ) -> None:
        rank = len(data) - 2
        require(1 <= rank <= len(PLACES), kind, f"an array of {len(data)} axes has no windows")
        self.name, self.data, self.window, self.strides, self.halo = f"{kind}{rank}d", data, window, strides, halo
        self.dilation = dilation if dilation is not None else (1,) * rank
        self.places, self.insides = ("n", "c", *PLACES[-rank:]), INSIDES[-rank:]
        self._given = steps
        fits = len(window) == len(strides) == len(self.dilation) == rank and len(halo) == 2 * rank
        fits = fits and min(*window, *strides, *self.dilation) >= 1 and min(halo) >= 0
        message = f"windows {list(window)}, strides {list(strides)}, halo {list(halo)} and dilation {list(self.dilation)} do not fit"
        require(fits, self.name, f"{message} {rank} axes")

    def _axes(self) -> list[tuple[str, str, int, int, int, int, int, int]]:
        """Of each axis: place, place inside, extent, window, stride, dilation, halo before and after."""
        rank = len(self.window)
        return list(
            zip(
                self.places[2:],
                self.insides,
                self.data[2:],
                self.window,
                self.strides,
                self.dilation,
                self.halo[:rank],
                self.halo[rank:],
                strict=True,
            )
        )

    def shape(self) -> Shape:
        """The shape of the result. Raises LayoutproofError for windows that have nothing."""
        whole = [before + extent + after for _, _, extent, _, _, _, before, after in self._axes()]
        fitting = [window_steps(*each) for each in zip(whole, self.window, self.strides, self.dilation, strict=True)]
        steps = self._given if self._given is not None else fitting
        require(len(steps) == len(fitting) and min(steps) >= 1, self.name, f"windows of {by(self.window)} leave nothing of {by(whole)}")
        for (_, _, extent, size, stride, apart, before, _), number in zip(self._axes(), steps, strict=True):
            # Another window would be a mean of nothing, or the largest of nothing.
            require(has_elements(extent, size, stride, apart, before, number), self.name, f"some windows have none of {extent} elements")
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
