"""ONNX operators that reduce or normalise axes, in terms of the operator library: products of matrices, reductions,
softmax, normalisations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from layoutproof.graph.model.graph import Array, Value
from layoutproof.graph.operators.elementwise import pointwise, unary
from layoutproof.graph.operators.normalise import (
    batch_norm,
    group_mean,
    instance_norm,
    layer_norm,
    log_softmax,
    lp_norm,
    rms_norm,
)
from layoutproof.graph.operators.operator_text import number
from layoutproof.graph.operators.reduction import cumulative, einsum, gemm
from layoutproof.importers.onnx.onnx_model import ModelNode
from layoutproof.importers.onnx.translate import (
    AsDefined,
    Made,
    Translate,
    Translation,
    axes_of,
    axis_of,
    called,
    entered,
    has,
    only,
    require,
    same_type,
)
from layoutproof.ir.dtype import numpy_dtype


def _gemm(into: Translation, node: ModelNode) -> Made:
    given = only(node, alpha=1.0, beta=1.0, transA=0, transB=0, **({"broadcast": 0} if node.opset < 7 else {}))
    first, second = into.value(node.operands[0]), into.value(node.operands[1])
    turned = (bool(given["transA"]), bool(given["transB"]))
    made = into.builder.call(gemm(first.shape, second.shape, turned, str(first.dtype)), first, second)[0]
    made = _scaled(into, node, made, given["alpha"])
    if has(node, 2) and given["beta"] != 0:
        product = made.shape
        made = into.builder.add(made, _scaled(into, node, into.value(node.operands[2]), given["beta"]))
        require(
            made.shape == product, node, f"the last operand is repeated to {list(product)}, not to {list(made.shape)}"
        )
    return (made,)


def _scaled(into: Translation, node: ModelNode, value: Value, factor: float) -> Value:
    """A value times a number; the number is rounded to the value's type."""
    if factor == 1:
        return value
    whole = value.dtype.is_float or float(factor).is_integer()
    require(whole, node, f"elements of type {value.dtype} are not multiplied by {factor}")
    return into.builder.multiply(
        value, into.builder.constant(np.array(factor).astype(numpy_dtype(value.dtype)), "factor")
    )


def _matmul(into: Translation, node: ModelNode) -> Made:
    only(node)
    return (into.builder.matmul(into.value(node.operands[0]), into.value(node.operands[1])),)


def _einsum(into: Translation, node: ModelNode) -> Made:
    equation = only(node, equation="")["equation"]
    values = [into.value(name) for name in node.operands]
    function = einsum(equation, tuple(value.shape for value in values), str(values[0].dtype))
    return (into.builder.call(function, *values)[0],)


def _softmax(into: Translation, node: ModelNode) -> Made:
    def shares(value: Value, axis: int) -> Value:
        return into.builder.softmax(value, axis=axis)

    def logarithms(value: Value, axis: int) -> Value:
        return into.builder.call(log_softmax(value.shape, axis, str(value.dtype)), value)[0]

    made = shares if node.operator == "Softmax" else logarithms
    before = node.opset < 13
    axis = only(node, axis=1 if before else -1)["axis"]
    data = into.value(node.operands[0])
    along = axis_of(node, axis, len(data.shape) - 1)
    if not before or prod(data.shape[along + 1 :]) == 1:
        return (made(data, along),)
    # Up to version 12 all axes from this one on are one.
    flat = into.builder.reshape(data, (prod(data.shape[:along]), prod(data.shape[along:])))
    return (into.builder.reshape(made(flat, 1), data.shape),)


def _layer_normalization(into: Translation, node: ModelNode) -> Made:
    given = only(node, axis=-1, epsilon=1e-5, stash_type=1)
    data = into.value(node.operands[0])
    if str(data.dtype) != "float32" or given["stash_type"] != 1 or any(node.results[1:]):
        # What is kept besides, and types that are changed on the way, are said as ONNX says them.
        raise AsDefined
    along = axis_of(node, given["axis"], len(data.shape) - 1)
    others = [into.value(name) for name in node.operands[1:] if name]
    epsilon = float(np.float32(given["epsilon"]))
    if node.operator == "RMSNormalization":
        function = rms_norm(data.shape, along, others[0].shape, epsilon, "float32")
    else:
        bias = others[1].shape if len(others) > 1 else None
        function = layer_norm(data.shape, along, others[0].shape, bias, epsilon, "float32")
    return (into.builder.call(function, data, *others)[0],)


LINEAR: Mapping[str, Translate] = {
    "Einsum": _einsum,
    "Gemm": _gemm,
    "LayerNormalization": _layer_normalization,
    "LogSoftmax": _softmax,
    "MatMul": _matmul,
    "RMSNormalization": _layer_normalization,
    "Softmax": _softmax,
}


# How numpy says it of arrays that are known; those that are not here are calls in the graph even then.
_OF_ARRAYS: Mapping[str, Callable[..., Any]] = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
}


def _reduction(kind: str) -> Translate:
    def translate(into: Translation, node: ModelNode) -> Made:
        given = only(node, axes=None, keepdims=1, noop_with_empty_axes=0)
        shape = into.shape(node.operands[0])
        asked = axes_of(into, node, given["axes"], 1)
        if not asked and given["noop_with_empty_axes"]:
            return _reduced_elements(into, node, kind)
        axes = tuple(axis_of(node, axis, len(shape) - 1) for axis in asked) if asked else tuple(range(len(shape)))
        require(len(set(axes)) == len(axes), node, f"the axes {list(axes)} are not different axes")
        found = into.known_as(node.operands[0])
        if not isinstance(found, Value) and kind in _OF_ARRAYS and found.dtype.kind in "iuf":
            return (_reduced_array(node, kind, found, axes, bool(given["keepdims"])),)
        value = into.value(node.operands[0])
        if not axes:
            return _reduced_elements(into, node, kind)
        of_truth = {"max": "any", "min": "all"}.get(kind, kind) if value.dtype.is_bool else kind
        return (into.builder.reduce(of_truth, value, axes, keep=bool(given["keepdims"])),)

    return translate


def _reduced_elements(into: Translation, node: ModelNode, kind: str) -> Made:
    """Each element by itself: one of an axis of extent 1, which is not there before or after."""
    if kind in ("sum", "prod", "max", "min", "mean", "log_sum_exp"):
        return (into.known_as(node.operands[0]),)
    value = into.value(node.operands[0])
    apart = into.builder.reshape(value, (*value.shape, 1))
    return (into.builder.reduce(kind, apart, (len(value.shape),)),)


def _reduced_array(node: ModelNode, kind: str, found: Array, axes: tuple[int, ...], keep: bool) -> Array:
    empty = any(found.shape[axis] == 0 for axis in axes)
    require(not empty or kind in ("sum", "prod"), node, f"there is nothing in {list(found.shape)} to choose from")
    with np.errstate(all="ignore"):
        made = _OF_ARRAYS[kind](found, axis=axes, keepdims=keep)
    return np.asarray(made).astype(found.dtype)


def _cumulative(into: Translation, node: ModelNode) -> Made:
    given = only(node, exclusive=0, reverse=0)
    data = into.value(node.operands[0])
    along = axis_of(node, int(into.number(node, node.operands[1])), len(data.shape) - 1)
    func = cumulative(data.shape, along, bool(given["exclusive"]), bool(given["reverse"]), str(data.dtype))
    return (into.builder.call(func, data)[0],)


def _lp_normalization(into: Translation, node: ModelNode) -> Made:
    given = only(node, axis=-1, p=2)
    data = into.value(node.operands[0])
    along = axis_of(node, given["axis"], len(data.shape) - 1)
    require(given["p"] in (1, 2), node, f"there is no norm {given['p']}; there are 1 and 2")
    return (into.builder.call(lp_norm(data.shape, along, given["p"], str(data.dtype)), data)[0],)


REDUCING: Mapping[str, Translate] = {
    "CumSum": _cumulative,
    "LpNormalization": _lp_normalization,
    "ReduceL1": _reduction("l1"),
    "ReduceL2": _reduction("l2"),
    "ReduceLogSum": _reduction("log_sum"),
    "ReduceLogSumExp": _reduction("log_sum_exp"),
    "ReduceMax": _reduction("max"),
    "ReduceMean": _reduction("mean"),
    "ReduceMin": _reduction("min"),
    "ReduceProd": _reduction("prod"),
    "ReduceSum": _reduction("sum"),
    "ReduceSumSquare": _reduction("sum_square"),
}


def _batch_normalization(into: Translation, node: ModelNode) -> Made:
    given = only(node, epsilon=1e-5, momentum=0.9, spatial=1, training_mode=0, is_test=0, consumed_inputs=())
    # Up to version 6 an attribute says that the model is not trained, up to version 13 the number of results does.
    plain = (
        given["training_mode"] == 0
        and (node.opset >= 7 or given["is_test"] == 1)
        and len([name for name in node.results if name]) == 1
    )
    require(plain, node, "only inference is translated")
    data, *rest = node.operands
    shape, dtype, epsilon = into.shape(data), same_type(into, node, node.operands, "f"), _epsilon(given["epsilon"])
    require(len(shape) >= 2, node, f"an array of {len(shape)} axes has no channels")
    wanted = (shape[1],) if given["spatial"] == 1 else shape[1:]
    wrong = next((name for name in rest if into.shape(name) != wanted), None)
    require(
        wrong is None,
        node,
        f"{wrong} has the shape {list(wanted)}, not {list(into.shape(wrong)) if wrong is not None else ''}",
    )
    if given["spatial"] == 1:
        return (called(into, batch_norm(shape, epsilon, dtype), *node.operands),)
    text = f"({{X}} - {{M}}) / T.sqrt({{V}} + {number(epsilon, dtype)}) * {{G}} + {{B}}"
    func = pointwise("batch_norm", {"X": shape, **dict.fromkeys("GBMV", wanted)}, text, dtype=dtype)
    return (called(into, func, *node.operands),)


def _instance_normalization(into: Translation, node: ModelNode) -> Made:
    given = only(node, epsilon=1e-5, consumed_inputs=())
    shape, dtype = into.shape(node.operands[0]), same_type(into, node, node.operands, "f")
    _check_channels(into, node, shape, shape[1:2])
    return (called(into, instance_norm(shape, _epsilon(given["epsilon"]), dtype), *node.operands),)


def _group_normalization(into: Translation, node: ModelNode) -> Made:
    """Several calls, so that a layout of channels flows through those over whole images."""
    given = only(node, epsilon=1e-5, num_groups=None, stash_type=1)
    shape, dtype, groups = into.shape(node.operands[0]), same_type(into, node, node.operands, "f"), given["num_groups"]
    # The statistics of narrower floats are made in the type that is given, which the library does not do.
    require(dtype in ("float32", "float64"), node, f"of float32 or float64 it is translated, not of {dtype}")
    require(given["stash_type"] == 1, node, "statistics are made in float32")
    require(
        groups >= 1 and len(shape) >= 3 and shape[1] % groups == 0,
        node,
        f"an array of {list(shape)} has no {groups} groups of channels",
    )
    # Up to version 20 there is one factor for each group, from then on for each channel.
    each = shape[1] if node.opset >= 21 else groups
    _check_channels(into, node, shape, (each,))
    data, places = entered(into, node.operands[0]), tuple(range(2, len(shape)))
    single = (1, shape[1], *(1,) * len(places))
    build = into.builder
    whole = group_mean((shape[0], *single[1:]), groups, dtype)
    mean = build.call(whole, build.mean(data, places, keep=True))[0]
    apart = build.binary("subtract", data, mean)
    squares = build.call(unary("square", shape, dtype), apart)[0]
    variance = build.call(whole, build.mean(squares, places, keep=True))[0]
    factors = []
    for name in node.operands[1:]:
        if each != shape[1] and into.is_known(name):
            found = np.repeat(into.array(node, name), shape[1] // groups).reshape(single[1:])
            factors.append(build.constant(found, "factor"))
        elif each != shape[1]:
            columns = build.reshape(into.value(name), (groups, 1))
            ones = build.constant(np.ones((groups, shape[1] // groups), dtype=dtype), "ones")
            factors.append(build.reshape(build.multiply(columns, ones), single[1:]))
        else:
            factors.append(into.value(name, single[1:]))
    text = f"{{X}} / T.sqrt({{V}} + {number(_epsilon(given['epsilon']), dtype)}) * {{G}} + {{B}}"
    func = pointwise(
        "group_norm", {"X": shape, "V": variance.shape, "G": single[1:], "B": single[1:]}, text, dtype=dtype
    )
    return build.call(func, apart, variance, *factors)


def _lrn(into: Translation, node: ModelNode) -> Made:
    given = only(node, size=1, alpha=1e-4, beta=0.75, bias=1.0)
    same_type(into, node, node.operands, "f")
    shape = into.shape(node.operands[0])
    require(
        len(shape) >= 2 and given["size"] >= 1, node, f"an array of {len(shape)} axes has no {given['size']} channels"
    )
    data = into.value(node.operands[0])
    return (
        into.builder.response_norm(
            data, size=given["size"], alpha=given["alpha"], beta=given["beta"], bias=given["bias"]
        ),
    )


def _check_channels(into: Translation, node: ModelNode, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Raise LayoutproofError unless channels have several elements, and scale and bias the wanted shape."""
    require(len(shape) >= 3, node, f"an array of {len(shape)} axes is no image")
    for name in node.operands[1:]:
        require(into.shape(name) == wanted, node, f"{name} has the shape {list(wanted)}, not {list(into.shape(name))}")


def _epsilon(given: float) -> float:
    """As a model's file has it."""
    return float(np.float32(given))


NORMALISE: Mapping[str, Translate] = {
    "BatchNormalization": _batch_normalization,
    "GroupNormalization": _group_normalization,
    "InstanceNormalization": _instance_normalization,
    "LRN": _lrn,
}
