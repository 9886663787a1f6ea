"""Products of matrices, and shares and normalisations along axes: how ONNX's operators are said in the library."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from layoutproof.graph.model import Value
from layoutproof.graph.operators.linear import einsum, gemm
from layoutproof.graph.operators.statistics import layer_norm, log_softmax, rms_norm
from layoutproof.importers.onnx.model import ModelNode
from layoutproof.importers.onnx.translate import AsDefined, Made, Translate, Translation, axis_of, has, only, require
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
        require(made.shape == product, node, f"the last operand is repeated to {list(product)}, not to {list(made.shape)}")
    return (made,)


def _scaled(into: Translation, node: ModelNode, value: Value, factor: float) -> Value:
    """A value times a number; the number is rounded to the value's type."""
    if factor == 1:
        return value
    whole = value.dtype.is_float or float(factor).is_integer()
    require(whole, node, f"elements of type {value.dtype} are not multiplied by {factor}")
    return into.builder.multiply(value, into.builder.constant(np.array(factor).astype(numpy_dtype(value.dtype)), "factor"))


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
