"""Convolutions, and their transposes: how ONNX's operators are said in the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layoutproof.graph.operators.convolution import conv, conv_transpose
from layoutproof.importers.onnx.applying import same_type
from layoutproof.importers.onnx.model import ModelNode
from layoutproof.importers.onnx.translate import Made, Translate, Translation, has, require
from layoutproof.importers.onnx.windows import Windows, windows_of
from layoutproof.ir.primfunc import PrimFunc


def _conv(into: Translation, node: ModelNode) -> Made:
    data, weight = _operands(into, node)
    windows = windows_of(node, data, weight[2:], group=1)
    halo, groups = windows.halo(), windows.given["group"]
    require(groups >= 1 and weight[0] % groups == 0, node, f"{weight[0]} filters are no {groups} groups")
    require(data[1] == weight[1] * groups, node, f"filters of {weight[1]} channels do not fit {data[1]} channels in {groups} groups")
    require(min(windows.fitting(halo)) >= 1, node, f"filters of {list(windows.window)} leave nothing of {list(data[2:])}")
    dtype = same_type(into, node, node.operands[:2], "f")
    func = conv(data, weight, windows.strides, halo, windows.dilation, groups, dtype)
    return _with_bias(into, node, func, weight[0])


def _conv_transpose(into: Translation, node: ModelNode) -> Made:
    data, weight = _operands(into, node)
    windows = windows_of(node, data, weight[2:], group=1, output_padding=(), output_shape=())
    groups = windows.given["group"]
    require(groups >= 1 and data[1] % groups == 0, node, f"{data[1]} channels are no {groups} groups")
    require(data[1] == weight[0], node, f"filters for {weight[0]} channels do not fit {data[1]} channels")
    whole = [(extent - 1) * stride + span for extent, stride, span in zip(windows.sizes, windows.strides, windows.spans, strict=True)]
    halo, sizes = _spread(node, windows, whole)
    rank = len(whole)
    extra = tuple(size - each + halo[k] + halo[k + rank] for k, (size, each) in enumerate(zip(sizes, whole, strict=True)))
    require(min(sizes) >= 1, node, f"it would make an image of {list(sizes)}")
    dtype = same_type(into, node, node.operands[:2], "f")
    func = conv_transpose(data, weight, windows.strides, halo, windows.dilation, groups, extra, dtype)
    return _with_bias(into, node, func, weight[1] * groups)


def _spread(node: ModelNode, windows: Windows, whole: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What is taken away on each axis before and after, and the result's sizes; `whole` are the sizes if nothing is taken away or added."""
    given, rank = windows.given, len(whole)
    more = tuple(given["output_padding"]) or (0,) * rank
    require(len(more) == rank and min(more) >= 0, node, f"output_padding is {rank} numbers, none below zero, not {list(more)}")
    asked, kind = tuple(given["output_shape"]), given["auto_pad"]
    if not asked and not windows.same:
        halo = windows.halo()
        return halo, tuple(each + added - halo[k] - halo[k + rank] for k, (each, added) in enumerate(zip(whole, more, strict=True)))
    # Some models give the whole shape.
    asked = asked[-rank:] if len(asked) == rank + 2 else asked
    require(not asked or len(asked) == rank, node, f"output_shape is {rank} sizes, not {list(asked)}")
    sizes = asked if asked else tuple(extent * stride for extent, stride in zip(windows.sizes, windows.strides, strict=True))
    away = [each + added - size for each, added, size in zip(whole, more, sizes, strict=True)]
    # Systems that run models do not agree on where elements stand that nothing reaches, a last one aside.
    least = -1 if asked and kind != "SAME_UPPER" else 0
    require(min(away) >= least, node, f"a result of {list(sizes)} is larger than {list(whole)}, which the filters reach")
    away = [max(0, each) for each in away]
    windows.check_small((*sizes, *away))
    less, rest = [each // 2 for each in away], [each - each // 2 for each in away]
    return ((*less, *rest) if kind == "SAME_UPPER" else (*rest, *less)), sizes


def _operands(into: Translation, node: ModelNode) -> tuple[tuple[int, ...], tuple[int, ...]]:
    data, weight = (into.shape(name) for name in node.operands[:2])
    require(len(data) == len(weight), node, f"an array of {len(data)} axes has filters with as many, not with {len(weight)}")
    return data, weight


def _with_bias(into: Translation, node: ModelNode, func: PrimFunc, channels: int) -> Made:
    """The result of a convolution, and the bias added to it where there is one."""
    (made,) = into.builder.call(func, *(into.value(name) for name in node.operands[:2]))
    if has(node, 2):
        bias = node.operands[2]
        require(
            into.shape(bias) == (channels,), node, f"its bias has one element for each of {channels} filters, not {list(into.shape(bias))}"
        )
        same_type(into, node, [bias, made], "f")
        made = into.builder.bias_add(made, into.value(bias, (channels, *(1,) * (len(made.shape) - 2))))
    return (made,)


CONVOLUTIONS: Mapping[str, Translate] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
}
