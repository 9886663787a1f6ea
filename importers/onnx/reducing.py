"""Operators of ONNX that take axes away; the axes are an attribute in old versions and an operand in new ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from layoutproof.graph.model import Array, Value
from layoutproof.graph.operators.reduction import cumulative
from layoutproof.graph.operators.statistics import lp_norm
from layoutproof.importers.onnx.model import ModelNode
from layoutproof.importers.onnx.translate import Made, Translate, Translation, axes_of, axis_of, only, require

# How numpy says it of arrays that are known; those that are not here are calls in the graph even then.
_OF_ARRAYS: Mapping[str, Callable[..., Any]] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "mean": np.mean}


def _reduction(kind: str) -> Translate:
    def translate(into: Translation, node: ModelNode) -> Made:
        given = only(node, axes=None, keepdims=1, noop_with_empty_axes=0)
        shape = into.shape(node.operands[0])
        asked = axes_of(into, node, given["axes"], 1)
        if not asked and given["noop_with_empty_axes"]:
            return _of_each(into, node, kind)
        axes = tuple(axis_of(node, axis, len(shape) - 1) for axis in asked) if asked else tuple(range(len(shape)))
        require(len(set(axes)) == len(axes), node, f"the axes {list(axes)} are not different axes")
        found = into.known_as(node.operands[0])
        if not isinstance(found, Value) and kind in _OF_ARRAYS and found.dtype.kind in "iuf":
            return (_of_array(node, kind, found, axes, bool(given["keepdims"])),)
        value = into.value(node.operands[0])
        if not axes:
            return _of_each(into, node, kind)
        of_truth = {"max": "any", "min": "all"}.get(kind, kind) if value.dtype.is_bool else kind
        return (into.builder.reduce(of_truth, value, axes, keep=bool(given["keepdims"])),)

    return translate


def _of_each(into: Translation, node: ModelNode, kind: str) -> Made:
    """Each element by itself: one of an axis of extent 1, which is not there before or after."""
    if kind in ("sum", "prod", "max", "min", "mean", "log_sum_exp"):
        return (into.known_as(node.operands[0]),)
    value = into.value(node.operands[0])
    apart = into.builder.reshape(value, (*value.shape, 1))
    return (into.builder.reduce(kind, apart, (len(value.shape),)),)


def _of_array(node: ModelNode, kind: str, found: Array, axes: tuple[int, ...], keep: bool) -> Array:
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
