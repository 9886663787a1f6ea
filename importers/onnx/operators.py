"""How each operator of ONNX is said in the operator library: one function for each, in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from layoutproof.graph.model import Array, Value
from layoutproof.graph.operators.convolution import Halo, Pair
from layoutproof.importers.onnx.model import ModelNode
from layoutproof.importers.onnx.translate import Translation, has, only, refused, require

Made = tuple[Value | Array, ...]
Translate = Callable[[Translation, ModelNode], Made]

MOST_ELEMENTS = 2**28
"""How many elements of one array are computed when a model is read."""


def _conv(into: Translation, node: ModelNode) -> Made:
    shape = into.shape(node.operands[1])
    given = only(node, kernel_shape=shape[2:], strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), group=1, auto_pad="NOTSET")
    require(
        len(shape) == 4 and tuple(given["kernel_shape"]) == shape[2:],
        node,
        "convolutions of images are translated, with their filters' size",
    )
    halo = _halo(node, given)
    data, weight = into.value(node.operands[0]), into.value(node.operands[1])
    strides, dilation = (_pair(node, name, given[name]) for name in ("strides", "dilations"))
    made = into.builder.conv2d(data, weight, strides=strides, halo=halo, dilation=dilation, groups=given["group"])
    if has(node, 2):
        made = into.builder.bias_add(made, into.value(node.operands[2], (shape[0], 1, 1)))
    return (made,)


def _halo(node: ModelNode, given: Mapping[str, object]) -> Halo:
    require(given["auto_pad"] == "NOTSET", node, "auto_pad is not translated")
    pads = given["pads"]
    assert isinstance(pads, Sequence)
    require(len(pads) == 4, node, f"pads are four numbers, not {len(pads)}")
    return (pads[0], pads[1], pads[2], pads[3])


def _pair(node: ModelNode, name: str, numbers: Sequence[int]) -> Pair:
    """Two positive numbers, one for rows and one for columns."""
    require(len(numbers) == 2 and min(numbers) >= 1, node, f"{name} are two positive numbers, not {list(numbers)}")
    return (numbers[0], numbers[1])


def _axis(node: ModelNode, axis: int, last: int) -> int:
    """An axis counted from the front; `last` is the largest that there may be."""
    require(-last - 1 <= axis <= last, node, f"there is no axis {axis}")
    return axis % (last + 1)


def _max_pool(into: Translation, node: ModelNode) -> Made:
    given = only(
        node, kernel_shape=(), strides=(1, 1), pads=(0, 0, 0, 0), auto_pad="NOTSET", ceil_mode=0, dilations=(1, 1), storage_order=0
    )
    plain = not given["ceil_mode"] and tuple(given["dilations"]) == (1, 1) and len(node.results) == 1
    require(plain, node, "ceil_mode, dilations and indices are not translated")
    data, halo = into.value(node.operands[0]), _halo(node, given)
    window, strides = (_pair(node, name, given[name]) for name in ("kernel_shape", "strides"))
    return (into.builder.max_pool2d(data, window, strides=strides, halo=halo),)


def _average_pool(into: Translation, node: ModelNode) -> Made:
    given = only(node, kernel_shape=(), strides=(1, 1), pads=(0, 0, 0, 0), auto_pad="NOTSET", ceil_mode=0, count_include_pad=0)
    require(not given["ceil_mode"], node, "ceil_mode is not translated")
    data, halo = into.value(node.operands[0]), _halo(node, given)
    window, strides = (_pair(node, name, given[name]) for name in ("kernel_shape", "strides"))
    return (into.builder.avg_pool2d(data, window, strides=strides, halo=halo, count_halo=bool(given["count_include_pad"])),)


def _global_average_pool(into: Translation, node: ModelNode) -> Made:
    only(node)
    data = into.value(node.operands[0])
    require(len(data.shape) >= 3, node, f"an array of {len(data.shape)} axes is no image")
    return (into.builder.mean(data, tuple(range(2, len(data.shape))), keep=True),)


def _batch_normalization(into: Translation, node: ModelNode) -> Made:
    given = only(node, epsilon=1e-5, momentum=0.9, spatial=1, training_mode=0)
    require(given["spatial"] == 1 and given["training_mode"] == 0 and len(node.results) == 1, node, "only inference is translated")
    require(len(node.operands) == 5, node, f"it takes five operands, not {len(node.operands)}")
    data, *rest = (into.value(name) for name in node.operands)
    return (into.builder.batch_norm(data, *rest, epsilon=float(np.float32(given["epsilon"]))),)


def _lrn(into: Translation, node: ModelNode) -> Made:
    given = only(node, size=1, alpha=1e-4, beta=0.75, bias=1.0)
    data = into.value(node.operands[0])
    return (into.builder.response_norm(data, size=given["size"], alpha=given["alpha"], beta=given["beta"], bias=given["bias"]),)


def _gemm(into: Translation, node: ModelNode) -> Made:
    given = only(node, alpha=1.0, beta=1.0, transA=0, transB=0, broadcast=1)
    require(given["alpha"] == given["beta"] == 1 and not given["transA"], node, "factors and a transposed first operand are not translated")
    first, second = into.value(node.operands[0]), into.value(node.operands[1])
    made = into.builder.dense(first, second) if given["transB"] else into.builder.matmul(first, second)
    if has(node, 2):
        product = made.shape
        made = into.builder.add(made, into.value(node.operands[2]))
        require(made.shape == product, node, f"the last operand is repeated to {list(product)}, not to {list(made.shape)}")
    return (made,)


def _matmul(into: Translation, node: ModelNode) -> Made:
    only(node)
    return (into.builder.matmul(into.value(node.operands[0]), into.value(node.operands[1])),)


def _softmax(into: Translation, node: ModelNode) -> Made:
    before = into.model.opset < 13
    axis = only(node, axis=1 if before else -1)["axis"]
    data = into.value(node.operands[0])
    along = _axis(node, axis, len(data.shape) - 1)
    if not before or prod(data.shape[along + 1 :]) == 1:
        return (into.builder.softmax(data, axis=along),)
    # Up to version 12 all axes from this one on are one.
    flat = into.builder.reshape(data, (prod(data.shape[:along]), prod(data.shape[along:])))
    return (into.builder.reshape(into.builder.softmax(flat, axis=1), data.shape),)


def _concat(into: Translation, node: ModelNode) -> Made:
    axis = only(node, axis=1)["axis"]
    return (into.builder.concat([into.value(name) for name in node.operands], axis=axis),)


def _reshape(into: Translation, node: ModelNode) -> Made:
    require(not only(node, allowzero=0)["allowzero"], node, "allowzero is not translated")
    old = into.shape(node.operands[0])
    asked = into.integers(node, node.operands[1])
    fits = asked.count(-1) <= 1 and all(extent > 0 or extent == -1 or (extent == 0 and k < len(old)) for k, extent in enumerate(asked))
    require(fits, node, f"{asked} is no shape for {list(old)}")
    new = [old[k] if extent == 0 else extent for k, extent in enumerate(asked)]
    if -1 in new:
        new[new.index(-1)] = prod(old) // -prod(new)
    return _reshaped(into, node, tuple(new))


def _flatten(into: Translation, node: ModelNode) -> Made:
    old = into.shape(node.operands[0])
    axis = only(node, axis=1)["axis"]
    require(-len(old) <= axis <= len(old), node, f"there is no axis {axis}")
    return _reshaped(into, node, (prod(old[:axis]), prod(old[axis:])))


def _unsqueeze(into: Translation, node: ModelNode) -> Made:
    given = only(node, axes=None)
    axes = given["axes"] if given["axes"] is not None else into.integers(node, node.operands[1])
    old = list(into.shape(node.operands[0]))
    places = sorted(_axis(node, axis, len(old) + len(axes) - 1) for axis in axes)
    require(len(set(places)) == len(places), node, f"the axes {list(axes)} are not different axes")
    for place in places:
        old.insert(place, 1)
    return _reshaped(into, node, tuple(old))


def _reshaped(into: Translation, node: ModelNode, shape: tuple[int, ...]) -> Made:
    name = node.operands[0]
    require(prod(shape) == prod(into.shape(name)), node, f"{list(into.shape(name))} has other elements than {list(shape)}")
    if into.is_known(name):
        return (into.array(node, name).reshape(shape),)
    return (into.value(name, shape),)


def _transpose(into: Translation, node: ModelNode) -> Made:
    data = into.value(node.operands[0])
    order = only(node, perm=tuple(reversed(range(len(data.shape)))))["perm"]
    return (into.builder.transpose(data, order),)


def _constant_of_shape(into: Translation, node: ModelNode) -> Made:
    value = only(node, value=np.zeros(1, dtype=np.float32))["value"]
    require(value.size == 1, node, f"its value is one element, not {value.size}")
    shape = tuple(into.integers(node, node.operands[0]))
    fits = all(extent >= 1 for extent in shape) and prod(shape) <= MOST_ELEMENTS
    require(fits, node, f"{list(shape)} is the shape of no array, or of one with more than {MOST_ELEMENTS} elements")
    return (np.full(shape, value.reshape(-1)[0], dtype=value.dtype),)


def _constant(into: Translation, node: ModelNode) -> Made:
    value = only(node, value=None)["value"]
    if value is None:
        raise refused(node, "only constants that are arrays are translated")
    return (value,)


def _same(into: Translation, node: ModelNode) -> Made:
    only(node)
    return (into.known_as(node.operands[0]),)


def _dropout(into: Translation, node: ModelNode) -> Made:
    """Nothing is dropped, unless the last operand says that the model is trained."""
    only(node, ratio=0.5, seed=0, is_test=1)
    plain = not (has(node, 2) and into.array(node, node.operands[2]).any()) and node.attributes.get("is_test", 1) == 1
    require(plain, node, "only inference is translated")
    return (into.known_as(node.operands[0]),)


def _unary(kind: str) -> Translate:
    def translate(into: Translation, node: ModelNode) -> Made:
        only(node)
        return (into.builder.unary(kind, into.value(node.operands[0])),)

    return translate


def _binary(kind: str) -> Translate:
    """Of two operands or, one after the other, of more."""

    def translate(into: Translation, node: ModelNode) -> Made:
        only(node)
        made, *rest = (into.value(name) for name in node.operands)
        for operand in rest:
            made = into.builder.binary(kind, made, operand)
        return (made,)

    return translate


OPERATORS: Mapping[str, Translate] = {
    "Add": _binary("add"),
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_normalization,
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Conv": _conv,
    "Div": _binary("divide"),
    "Dropout": _dropout,
    "Exp": _unary("exp"),
    "Flatten": _flatten,
    "Gemm": _gemm,
    "GlobalAveragePool": _global_average_pool,
    "Identity": _same,
    "LRN": _lrn,
    "MatMul": _matmul,
    "MaxPool": _max_pool,
    "Mul": _binary("multiply"),
    "Relu": _unary("relu"),
    "Reshape": _reshape,
    "Sigmoid": _unary("sigmoid"),
    "Softmax": _softmax,
    "Sqrt": _unary("sqrt"),
    "Sub": _binary("subtract"),
    "Sum": _binary("add"),
    "Tanh": _unary("tanh"),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
