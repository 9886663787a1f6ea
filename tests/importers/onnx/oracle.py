"""Convolutions and poolings once more, element by element and in double precision: what the sentences of ONNX's
documents say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Places = tuple[int, ...]
ALL = slice(None)


def at(first: slice, second: slice, place: Places) -> Any:
    """The index of some images and channels at a place."""
    return (first, second, *place)


def wanted(operator: str, operands: Sequence[Array | None], attributes: Mapping[str, Any]) -> Array:
    """The result of a node."""
    data, *rest = (np.asarray(array, np.float64) for array in operands if array is not None)
    if operator == "Conv":
        return _conv(data, rest, attributes)
    if operator == "ConvTranspose":
        return _conv_transpose(data, rest, attributes)
    return _pool(operator, data, attributes)


def _around(
    sizes: Sequence[int], window: Sequence[int], strides: Sequence[int], gaps: Sequence[int], given: Mapping[str, Any]
) -> Places:
    """Cells before on each axis, then after."""
    kind = given.get("auto_pad", "NOTSET")
    if not kind.startswith("SAME"):
        return tuple(given.get("pads", ())) if kind == "NOTSET" and given.get("pads") else (0,) * (2 * len(sizes))
    before, after = [], []
    for size, extent, stride, gap in zip(sizes, window, strides, gaps, strict=True):
        # The fewest cells with which there are as many windows as the stride makes of the extent.
        more = next(k for k in range(100) if (size + k - (extent - 1) * gap - 1) // stride + 1 >= -(-size // stride))
        small, large = more // 2, more - more // 2
        before.append(small if kind == "SAME_UPPER" else large)
        after.append(large if kind == "SAME_UPPER" else small)
    return (*before, *after)


def _numbers(given: Mapping[str, Any], name: str, rank: int) -> Places:
    return tuple(given.get(name) or (1,) * rank)


def _cells(window: Sequence[int], start: Sequence[int], gaps: Sequence[int]) -> Iterator[tuple[Places, Places]]:
    """The places in a window, and where they lie."""
    for inside in product(*map(range, window)):
        yield inside, tuple(first + k * gap for first, k, gap in zip(start, inside, gaps, strict=True))


def _lies(place: Sequence[int], sizes: Sequence[int]) -> bool:
    return all(0 <= k < size for k, size in zip(place, sizes, strict=True))


def _conv(data: Array, rest: Sequence[Array], given: Mapping[str, Any]) -> Array:
    weight, sizes, rank = rest[0], data.shape[2:], data.ndim - 2
    window, strides, gaps = weight.shape[2:], _numbers(given, "strides", rank), _numbers(given, "dilations", rank)
    around, groups = _around(sizes, window, strides, gaps, given), given.get("group", 1)
    steps = [
        (size + around[k] + around[k + rank] - (window[k] - 1) * gaps[k] - 1) // strides[k] + 1
        for k, size in enumerate(sizes)
    ]
    made = np.zeros((data.shape[0], weight.shape[0], *steps))
    each, inner = weight.shape[0] // groups, weight.shape[1]
    for place in product(*map(range, steps)):
        start = [k * stride - before for k, stride, before in zip(place, strides, around, strict=False)]
        for inside, cell in _cells(window, start, gaps):
            if _lies(cell, sizes):
                for group in range(groups):
                    channels, filters = (slice(group * count, (group + 1) * count) for count in (inner, each))
                    own = weight[at(filters, ALL, inside)]
                    made[at(ALL, filters, place)] += data[at(ALL, channels, cell)] @ own.T
    return made + (rest[1].reshape(-1, *(1,) * rank) if len(rest) > 1 else 0)


def _conv_transpose(data: Array, rest: Sequence[Array], given: Mapping[str, Any]) -> Array:
    """Each element is added, times the filters, to all the places that it reaches."""
    weight, sizes, rank = rest[0], data.shape[2:], data.ndim - 2
    window, strides, gaps = weight.shape[2:], _numbers(given, "strides", rank), _numbers(given, "dilations", rank)
    groups, kind = given.get("group", 1), given.get("auto_pad", "NOTSET")
    more = tuple(given.get("output_padding") or (0,) * rank)
    whole = [(size - 1) * strides[k] + (window[k] - 1) * gaps[k] + 1 + more[k] for k, size in enumerate(sizes)]
    if kind.startswith("SAME") or given.get("output_shape"):
        steps = list(given.get("output_shape") or [size * strides[k] for k, size in enumerate(sizes)])
        away = [extent - size for extent, size in zip(whole, steps, strict=True)]
        first = [each // 2 if kind == "SAME_UPPER" else each - each // 2 for each in away]
    else:
        around = _around(sizes, window, strides, gaps, given)
        first, steps = list(around[:rank]), [extent - around[k] - around[k + rank] for k, extent in enumerate(whole)]
    inner, each = data.shape[1] // groups, weight.shape[1]
    made = np.zeros((data.shape[0], each * groups, *steps))
    for place in product(*map(range, sizes)):
        start = [k * stride - before for k, stride, before in zip(place, strides, first, strict=True)]
        for inside, cell in _cells(window, start, gaps):
            if _lies(cell, steps):
                for group in range(groups):
                    channels, filters = (slice(group * count, (group + 1) * count) for count in (inner, each))
                    made[at(ALL, filters, cell)] += data[at(ALL, channels, place)] @ weight[at(channels, ALL, inside)]
    return made + (rest[1].reshape(-1, *(1,) * rank) if len(rest) > 1 else 0)


def _pool(operator: str, data: Array, given: Mapping[str, Any]) -> Array:
    sizes, rank, window = data.shape[2:], data.ndim - 2, tuple(given["kernel_shape"])
    strides, gaps = _numbers(given, "strides", rank), _numbers(given, "dilations", rank)
    around = _around(sizes, window, strides, gaps, given)
    same = given.get("auto_pad", "NOTSET").startswith("SAME")
    steps = []
    for k, size in enumerate(sizes):
        left = size + around[k] + around[k + rank] - (window[k] - 1) * gaps[k] - 1
        number = left // strides[k] + 1
        if given.get("ceil_mode") and not same and left % strides[k] and number * strides[k] < size + around[k]:
            number += 1
        steps.append(number)
    made = np.zeros((*data.shape[:2], *steps))
    for place in product(*map(range, steps)):
        start = [k * stride - before for k, stride, before in zip(place, strides, around, strict=False)]
        cells = [cell for _, cell in _cells(window, start, gaps)]
        found = np.array([data[at(ALL, ALL, cell)] for cell in cells if _lies(cell, sizes)])
        if operator == "MaxPool":
            made[at(ALL, ALL, place)] = found.max(axis=0)
            continue
        counted = sum(
            _lies([k + around[axis] for axis, k in enumerate(cell)], _padded(sizes, around)) for cell in cells
        )
        made[at(ALL, ALL, place)] = found.sum(axis=0) / (counted if given.get("count_include_pad") else len(found))
    return made


def _padded(sizes: Sequence[int], around: Sequence[int]) -> list[int]:
    return [size + around[k] + around[k + len(sizes)] for k, size in enumerate(sizes)]
