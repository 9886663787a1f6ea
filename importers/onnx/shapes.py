"""Operators of ONNX whose results are known when a model is read: constants, shapes, and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, prod

import numpy as np

from layoutproof.importers.onnx.model import ModelNode
from layoutproof.importers.onnx.translate import Made, Translate, Translation, only, refused, require


def _shape(into: Translation, node: ModelNode) -> Made:
    given = only(node, start=0, end=None)
    return (np.array(into.shape(node.operands[0])[given["start"] : given["end"]], dtype=np.int64),)


def _size(into: Translation, node: ModelNode) -> Made:
    only(node)
    return (np.array(prod(into.shape(node.operands[0])), dtype=np.int64),)


def _constant(into: Translation, node: ModelNode) -> Made:
    forms = dict.fromkeys(("value", "sparse_value", "value_float", "value_floats", "value_int", "value_ints"))
    given = {name: value for name, value in only(node, **forms).items() if value is not None}
    if len(given) != 1:
        raise refused(node, "it is not one array, number or list of numbers")
    name, value = next(iter(given.items()))
    if name in ("value", "sparse_value"):
        return (value,)
    return (np.array(value, dtype=np.float32 if "float" in name else np.int64),)


def _constant_of_shape(into: Translation, node: ModelNode) -> Made:
    value = only(node, value=np.zeros(1, dtype=np.float32))["value"]
    require(value.size == 1, node, f"its value is one element, not {value.size}")
    shape = tuple(into.integers(node, node.operands[0]))
    into.make_room(node, shape, value.itemsize)
    # Equal elements take no memory until they are used.
    return (np.broadcast_to(value.reshape(()), shape),)


def _range(into: Translation, node: ModelNode) -> Made:
    only(node)
    start, limit, step = (into.number(node, name) for name in node.operands)
    require(
        step != 0 and len({number.dtype for number in (start, limit, step)}) == 1, node, f"from {start} to {limit} by {step} is no range"
    )
    length = (float(limit) - float(start)) / float(step)
    require(np.isfinite(length), node, f"from {start} to {limit} by {step} is no range")
    count = max(ceil(length), 0)
    into.make_room(node, (count,), start.itemsize)
    return ((start + np.arange(count).astype(start.dtype) * step).astype(start.dtype),)


def _eye_like(into: Translation, node: ModelNode) -> Made:
    given = only(node, dtype=None, k=0)
    shape = into.shape(node.operands[0])
    require(len(shape) == 2, node, f"an array of {len(shape)} axes has no diagonal")
    found = into.known_as(node.operands[0])
    dtype = into.type_of(node, given["dtype"]) if given["dtype"] is not None else into.numpy_type(found)
    into.make_room(node, shape, dtype.itemsize)
    return (np.eye(shape[0], shape[1], k=given["k"]).astype(dtype),)


def _nonzero(into: Translation, node: ModelNode) -> Made:
    only(node)
    found = np.atleast_1d(into.array(node, node.operands[0]))
    into.make_room(node, (found.ndim, found.size), 8)
    return (np.array(np.nonzero(found), dtype=np.int64),)


SHAPES: Mapping[str, Translate] = {
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "EyeLike": _eye_like,
    "NonZero": _nonzero,
    "Range": _range,
    "Shape": _shape,
    "Size": _size,
}
