"""Poolings: how ONNX's operators are said in the library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from layoutproof.graph.operators.pooling import avg_pool, has_elements, max_pool
from layoutproof.graph.operators.searching import arg_extreme
from layoutproof.importers.onnx.applying import called, entered, same_type
from layoutproof.importers.onnx.model import ModelNode
from layoutproof.importers.onnx.translate import Made, Translate, Translation, axis_of, only, require
from layoutproof.importers.onnx.windows import Windows, windows_of


def _max_pool(into: Translation, node: ModelNode) -> Made:
    require(
        len([name for name in node.results if name]) == 1, node, "the places of the largest elements, its second result, are not translated"
    )
    windows, halo, dtype = _windows(into, node, "fiu", ceil_mode=0, storage_order=0)
    func = max_pool(into.shape(node.operands[0]), windows.window, windows.strides, halo, windows.dilation, windows.steps(halo), dtype)
    return (called(into, func, node.operands[0]),)


def _average_pool(into: Translation, node: ModelNode) -> Made:
    windows, halo, dtype = _windows(into, node, "f", ceil_mode=0, count_include_pad=0)
    shape, steps, counted = into.shape(node.operands[0]), windows.steps(halo), bool(windows.given["count_include_pad"])
    func = avg_pool(shape, windows.window, windows.strides, halo, windows.dilation, steps, counted, dtype)
    return (called(into, func, node.operands[0]),)


def _windows(into: Translation, node: ModelNode, kinds: str, **more: Any) -> tuple[Windows, tuple[int, ...], str]:
    """The windows, the cells around the array, and the type. Raises LayoutproofError where some window lies outside of the array."""
    windows = windows_of(node, into.shape(node.operands[0]), **more)
    # Systems that run models do not agree on what lies around windows with gaps, or around those that leave elements out at the end.
    plain = not windows.same or (max(windows.dilation) == 1 and min(windows.needed) >= 0)
    told = f"with strides {list(windows.strides)} and dilations {list(windows.dilation)}"
    require(plain, node, f"auto_pad {windows.given['auto_pad']} is not translated for windows of {list(windows.window)} {told}")
    halo = windows.halo()
    fitting = windows.fitting(halo)
    require(min(fitting) >= 1, node, f"windows of {list(windows.window)} leave nothing of {list(windows.sizes)}")
    for axis, (extent, number) in enumerate(zip(windows.sizes, fitting, strict=True)):
        inside = has_elements(extent, windows.window[axis], windows.strides[axis], windows.dilation[axis], halo[axis], number)
        require(inside, node, f"some windows have nothing of axis {axis + 2} of the array, only of the cells around it")
    return windows, halo, same_type(into, node, node.operands, kinds)


def _global(kind: str) -> Translate:

    def translate(into: Translation, node: ModelNode) -> Made:
        only(node)
        same_type(into, node, node.operands, "f")
        data = into.shape(node.operands[0])
        require(len(data) >= 3, node, f"an array of {len(data)} axes is no image")
        return (into.builder.reduce(kind, entered(into, node.operands[0]), tuple(range(2, len(data))), keep=True),)

    return translate


def _arg(kind: str) -> Translate:
    """The place of an extreme element along an axis."""

    def translate(into: Translation, node: ModelNode) -> Made:
        given = only(node, axis=0, keepdims=1, select_last_index=0)
        data = into.shape(node.operands[0])
        require(len(data) >= 1, node, "a single element has no axis")
        dtype, along = same_type(into, node, node.operands, "fiu"), axis_of(node, given["axis"], len(data) - 1)
        func = arg_extreme(kind, data, along, bool(given["keepdims"]), bool(given["select_last_index"]), dtype)
        return (called(into, func, node.operands[0]),)

    return translate


POOLING: Mapping[str, Translate] = {
    "ArgMax": _arg("argmax"),
    "ArgMin": _arg("argmin"),
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global("mean"),
    "GlobalMaxPool": _global("max"),
    "MaxPool": _max_pool,
}
