"""ONNX operators that resize images, in terms of the operator library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, lcm
from typing import Any, Final

import numpy as np

from layoutproof.graph.model.graph import Array, Value
from layoutproof.graph.operators.spatial import (
    SAME,
    Line,
    depth_to_space,
    resize_cubic,
    resize_linear,
    resize_nearest,
    space_to_depth,
)
from layoutproof.importers.onnx.onnx_model import ModelNode
from layoutproof.importers.onnx.translate import (
    Made,
    Operand,
    Translate,
    Translation,
    axis_of,
    called,
    has,
    only,
    refused,
    require,
    same_type,
    shape,
)

HALF: Final = Fraction(1, 2)
MOST_DENOMINATOR: Final = 1024
"""Scales in a model are rounded; fractions with denominators up to this one are looked at for what was meant."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: its extent, the size that it gets, and how much larger it becomes as the model says it."""

    extent: int
    size: int
    scale: float


def _resize(into: Translation, node: ModelNode) -> Made:
    known = only(
        node,
        mode="nearest",
        coordinate_transformation_mode="half_pixel" if node.opset >= 11 else "asymmetric",
        nearest_mode="round_prefer_floor" if node.opset >= 11 else "floor",
        cubic_coeff_a=-0.75,
        exclude_outside=0,
        extrapolation_value=0.0,
        antialias=0,
        axes=None,
        keep_aspect_ratio_policy="stretch",
    )
    require(
        not known["antialias"] and not known["exclude_outside"],
        node,
        "antialias and exclude_outside are not translated",
    )
    data = into.shape(node.operands[0])
    chosen = tuple(known["axes"]) if known["axes"] is not None else tuple(range(len(data)))
    axes = [axis_of(node, axis, len(data) - 1) for axis in chosen]
    require(len(set(axes)) == len(axes), node, f"the axes {list(chosen)} are not different axes")
    place = 1 if node.opset < 11 else 2
    scales = _floats(into, node, node.operands[place]) if has(node, place) else []
    sizes = into.integers(node, node.operands[3]) if len(node.operands) > 3 and has(node, 3) else []
    require(bool(scales) != bool(sizes), node, "either scales or sizes are given")
    require(
        len(scales or sizes) == len(axes),
        node,
        f"{len(axes)} axes have as many scales or sizes, not {len(scales or sizes)}",
    )
    found = [Axis(extent, extent, 1.0) for extent in data]
    for axis, each in zip(
        axes, _axes(node, [data[axis] for axis in axes], scales, sizes, known["keep_aspect_ratio_policy"]), strict=True
    ):
        found[axis] = each
    return (_resized(into, node, node.operands[0], found, known),)


def _upsample(into: Translation, node: ModelNode) -> Made:
    given = only(node, mode="nearest", scales=None)
    data = into.shape(node.operands[0])
    scales = (
        [float(np.float32(each)) for each in given["scales"]]
        if node.opset < 9
        else _floats(into, node, node.operands[1])
    )
    require(len(scales) == len(data), node, f"{len(data)} axes have as many scales, not {len(scales)}")
    known = {**given, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return (_resized(into, node, node.operands[0], _axes(node, data, scales, [], "stretch"), known),)


def _floats(into: Translation, node: ModelNode, name: str) -> list[float]:
    found = into.array(node, name)
    require(found.dtype.kind == "f" and found.ndim == 1, node, f"{name} is no list of floats")
    return [float(each) for each in found]


def _axes(
    node: ModelNode, data: Sequence[int], scales: Sequence[float], sizes: Sequence[int], policy: str
) -> list[Axis]:
    """The axes that are resized. With a policy the smallest or largest ratio of sizes is that of all axes."""
    if scales:
        require(
            all(np.isfinite(each) and each > 0 for each in scales), node, f"scales are above zero, not {list(scales)}"
        )
        found = [Axis(extent, floor(extent * scale), scale) for extent, scale in zip(data, scales, strict=True)]
    else:
        require(
            policy in ("stretch", "not_larger", "not_smaller"), node, f"there is no keep_aspect_ratio_policy {policy}"
        )
        ratios = [Fraction(size, extent) for size, extent in zip(sizes, data, strict=True)]
        if policy != "stretch":
            ratio = (min if policy == "not_larger" else max)(ratios)
            sizes = [floor(ratio * extent + HALF) for extent in data]
            ratios = [ratio] * len(data)
        found = [Axis(extent, size, float(ratio)) for extent, size, ratio in zip(data, sizes, ratios, strict=True)]
    require(all(each.size >= 1 for each in found), node, f"it would make an array of {[each.size for each in found]}")
    return found


def _resized(
    into: Translation, node: ModelNode, operand: Operand, axes: Sequence[Axis], known: Mapping[str, Any]
) -> Value | Array:
    mode = known["mode"]
    dtype = same_type(into, node, (operand,), "fiub" if mode == "nearest" else "f")
    changed = [k for k, axis in enumerate(axes) if axis.size != axis.extent or axis.scale != 1]
    if mode == "nearest":
        rounding = known["nearest_mode"]
        lines = tuple(_rounded(node, k, axis, known, rounding) if k in changed else SAME for k, axis in enumerate(axes))
        func = resize_nearest(shape(into, operand), tuple(axis.size for axis in axes), lines, dtype)
        return called(into, func, operand)
    require(mode in ("linear", "bilinear", "cubic"), node, f"there is no mode {mode}")
    made = operand
    for k in changed:
        line = _line(node, k, axes[k], known)
        data, size = shape(into, made), axes[k].size
        if mode == "cubic":
            func = resize_cubic(data, k, size, line, float(np.float32(known["cubic_coeff_a"])), dtype)
        else:
            func = resize_linear(data, k, size, line, dtype)
        made = called(into, func, made)
    return into.known_as(made) if isinstance(made, str) else made


def _line(node: ModelNode, number: int, axis: Axis, known: Mapping[str, Any]) -> Line:
    """The operand's place for each index of the result. Raises LayoutproofError without a small fraction as scale."""
    for ratio in _ratios(axis):
        slope, start = _coordinates(node, axis, ratio, known["coordinate_transformation_mode"])
        divisor = lcm(slope.denominator, start.denominator)
        line = (int(slope * divisor), int(start * divisor), divisor)
        if abs(line[0]) * axis.size + abs(line[1]) + 4 * divisor < 2**31:
            return line
    raise refused(node, f"the scale {axis.scale} of axis {number} is no fraction of small numbers")


def _ratios(axis: Axis) -> list[Fraction]:
    """What one step in the result may be in the operand: the inverse of the scale, as simple as it can be meant."""
    exact = Fraction(axis.scale)
    found = [Fraction(axis.size, axis.extent), exact.limit_denominator(MOST_DENOMINATOR), exact]
    close = [each for each in found if each > 0 and np.float32(float(each)) == np.float32(axis.scale)]
    return [1 / each for each in dict.fromkeys(close)]


def _coordinates(node: ModelNode, axis: Axis, ratio: Fraction, mode: str) -> tuple[Fraction, Fraction]:
    """A place `v` of the result stands at `slope * v + start` in the operand."""
    zero = Fraction(0)
    half = (ratio, ratio / 2 - HALF)
    symmetric = Fraction(axis.extent, 2) * (1 - Fraction(axis.size) * ratio / axis.extent)
    found = {
        "asymmetric": (ratio, zero),
        "half_pixel": half,
        "pytorch_half_pixel": half if axis.size > 1 else (zero, zero),
        "align_corners": (Fraction(axis.extent - 1, axis.size - 1), zero) if axis.size > 1 else (zero, zero),
        "half_pixel_symmetric": (ratio, half[1] + symmetric),
        "tf_half_pixel_for_nn": (ratio, ratio / 2),
    }
    require(
        mode in found, node, f"coordinate_transformation_mode {mode} is not translated; available: {', '.join(found)}"
    )
    # Systems that run models take the size for it, or what the scale makes before it is rounded.
    open_ = mode == "align_corners" or (mode == "pytorch_half_pixel" and axis.size == 1)
    told = f"with {mode} a scale of {axis.scale} makes no whole number of {axis.extent} elements"
    require(not open_ or axis.size * ratio == axis.extent, node, told)
    return found[mode]


def _rounded(node: ModelNode, number: int, axis: Axis, known: Mapping[str, Any], rounding: str) -> Line:
    """The line whose places, rounded down, are those of the operand's elements that are nearest."""
    a, b, c = _line(node, number, axis, known)
    found = {
        "floor": (a, b, c),
        "ceil": (a, b + c - 1, c),
        "round_prefer_floor": (2 * a, 2 * b + c - 1, 2 * c),
        "round_prefer_ceil": (2 * a, 2 * b + c, 2 * c),
    }
    require(rounding in found, node, f"there is no nearest_mode {rounding}")
    return found[rounding]


def _depth_to_space(into: Translation, node: ModelNode) -> Made:
    given = only(node, blocksize=0, mode="DCR")
    data, dtype = _blocks(into, node, given)
    require(data[1] % given["blocksize"] ** 2 == 0, node, f"{data[1]} channels are no whole blocks")
    return (called(into, depth_to_space(data, given["blocksize"], given["mode"] == "CRD", dtype), node.operands[0]),)


def _space_to_depth(into: Translation, node: ModelNode) -> Made:
    given = only(node, blocksize=0, mode="DCR")
    data, dtype = _blocks(into, node, given)
    require(
        data[2] % given["blocksize"] == data[3] % given["blocksize"] == 0,
        node,
        f"{list(data[2:])} places are no whole squares",
    )
    return (called(into, space_to_depth(data, given["blocksize"], given["mode"] == "CRD", dtype), node.operands[0]),)


def _blocks(into: Translation, node: ModelNode, given: Mapping[str, Any]) -> tuple[tuple[int, ...], str]:
    data, block = into.shape(node.operands[0]), given["blocksize"]
    require(given["mode"] in ("DCR", "CRD"), node, f"there is no mode {given['mode']}")
    require(
        len(data) == 4 and block >= 1,
        node,
        f"it takes images of four axes and blocks of a positive size, not {len(data)} and {block}",
    )
    return data, same_type(into, node, node.operands)


RESIZING: Mapping[str, Translate] = {
    "DepthToSpace": _depth_to_space,
    "Resize": _resize,
    "SpaceToDepth": _space_to_depth,
    "Upsample": _upsample,
}
