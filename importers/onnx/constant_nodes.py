"""ONNX nodes whose results are known when a model is read: constants, shapes, and nodes on known operands, computed as
numpy computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, erf, prod
from typing import Any

import numpy as np

from layoutproof.graph.model.graph import Array
from layoutproof.importers.onnx.onnx_model import ModelNode
from layoutproof.importers.onnx.translate import Made, Translate, Translation, axis_of, has, only, refused, require
from layoutproof.ir.dtype import DType
from layoutproof.ir.semantics import cast_value

NUMBERS = "iuf"
INTEGERS = "iu"
ANY = "biuf"


def _elementwise(compute: Callable[..., Any], kinds: str = NUMBERS, *, truth: bool = False) -> Translate:
    """Element by element, with numpy's broadcasting; the result has the operands' type, or is a truth value."""

    def translate(into: Translation, node: ModelNode) -> Made:
        only(node)
        arrays = _operands(into, node, kinds)
        require(
            len({array.dtype for array in arrays}) == 1,
            node,
            f"its operands differ in type: {[str(a.dtype) for a in arrays]}",
        )
        return (_computed(into, node, compute, arrays, np.dtype(np.bool_) if truth else arrays[0].dtype),)

    return translate


def _operands(into: Translation, node: ModelNode, kinds: str) -> list[Array]:
    arrays = [into.array(node, name) for name in node.operands]
    for name, array in zip(node.operands, arrays, strict=True):
        kind = "f" if array.dtype.name == "bfloat16" else array.dtype.kind
        require(kind in kinds, node, f"{name} has elements of type {array.dtype}, which it does not take")
    return arrays


def _computed(
    into: Translation, node: ModelNode, compute: Callable[..., Any], arrays: list[Array], dtype: np.dtype[Any]
) -> Array:
    try:
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError as problem:
        raise refused(node, f"shapes {[list(array.shape) for array in arrays]} do not go together") from problem
    into.make_room(node, shape, max(dtype.itemsize, *(array.itemsize for array in arrays)))
    with np.errstate(all="ignore"):
        return np.asarray(compute(*arrays)).astype(dtype, copy=False)


def _folds(compute: Callable[[Array, Array], Any]) -> Callable[..., Any]:
    """A function of two arrays on one after the other of more."""

    def fold(first: Array, *rest: Array) -> Any:
        for array in rest:
            first = compute(first, array)
        return first

    return fold


def _larger(first: Array, second: Array) -> Any:
    """The maximum, of which 0.0 is more than -0.0, as in a graph."""
    return np.where((first == 0) & (second == 0), first + second, np.maximum(first, second))


def _smaller(first: Array, second: Array) -> Any:
    return np.where((first == 0) & (second == 0), -(-first + -second), np.minimum(first, second))


def _divided(first: Array, second: Array) -> Any:
    """Integers are divided towards zero."""
    if first.dtype.kind not in INTEGERS:
        return first / second
    quotient = first // second
    return quotient + ((first % second != 0) & ((first < 0) != (second < 0)))


def _whole(compute: Translate, what: str) -> Translate:
    """A division of integers, none of them by zero."""

    def translate(into: Translation, node: ModelNode) -> Made:
        divisor = into.array(node, node.operands[1])
        require(divisor.dtype.kind not in INTEGERS or bool(np.all(divisor != 0)), node, f"{what} by zero")
        return compute(into, node)

    return translate


def _mod(into: Translation, node: ModelNode) -> Made:
    floats = bool(only(node, fmod=0)["fmod"])
    arrays = _operands(into, node, NUMBERS)
    require(
        floats or all(array.dtype.kind in INTEGERS for array in arrays),
        node,
        "a remainder of floats is asked for by fmod",
    )
    return (_computed(into, node, np.fmod if floats else np.mod, arrays, arrays[0].dtype),)


def _pow(into: Translation, node: ModelNode) -> Made:
    only(node)
    base, power = _operands(into, node, NUMBERS)
    whole = base.dtype.kind in INTEGERS and power.dtype.kind in INTEGERS
    require(not whole or bool(np.all(power >= 0)), node, "a power of integers is below zero")
    return (_computed(into, node, np.power, [base, power], base.dtype),)


def _cast(into: Translation, node: ModelNode) -> Made:
    given = only(node, to=0, saturate=1, round_mode="up")
    return (_converted(into, node, _operands(into, node, ANY)[0], into.type_of(node, given["to"])),)


def _converted(into: Translation, node: ModelNode, array: Array, dtype: np.dtype[Any]) -> Array:
    """Rounded once, also to bfloat16, to which ml_dtypes goes through a float32."""
    if dtype.name != "bfloat16" or array.dtype.itemsize < 8:
        return _computed(into, node, lambda a: a, [array], dtype)
    source, target = DType.parse(array.dtype.name), DType.parse(dtype.name)
    into.make_room(node, array.shape, array.itemsize)
    rounded = [cast_value(value, source, target) for value in array.reshape(-1).tolist()]
    return np.array(rounded, dtype=np.float32).astype(dtype).reshape(array.shape)


def _cast_like(into: Translation, node: ModelNode) -> Made:
    only(node, saturate=1, round_mode="up")
    array, dtype = into.array(node, node.operands[0]), into.numpy_type(into.known_as(node.operands[1]))
    return (_converted(into, node, array, dtype),)


def _where(into: Translation, node: ModelNode) -> Made:
    only(node)
    condition, first, second = (into.array(node, name) for name in node.operands)
    fits = condition.dtype == np.bool_ and first.dtype == second.dtype
    require(fits, node, f"it chooses by {condition.dtype} between {first.dtype} and {second.dtype}")
    return (_computed(into, node, np.where, [condition, first, second], first.dtype),)


def _clip(into: Translation, node: ModelNode) -> Made:
    given = only(node, min=None, max=None)
    array, *_ = _operands(into, ModelNode("Clip", node.name, node.operands[:1], node.results, {}, node.opset), NUMBERS)
    lower, upper = (
        into.array(node, node.operands[k])
        if has(node, k)
        else None
        if given[name] is None
        else np.array(given[name], array.dtype)
        for k, name in ((1, "min"), (2, "max"))
    )
    bounded = array if lower is None else _computed(into, node, _not_below, [array, lower], array.dtype)
    return (bounded if upper is None else _computed(into, node, _not_above, [bounded, upper], array.dtype),)


def _not_below(array: Array, bound: Array) -> Any:
    """What is no less than a bound stays as it is: NaN, and a zero of the other sign."""
    return np.where(array < bound, bound, array)


def _not_above(array: Array, bound: Array) -> Any:
    return np.where(array > bound, bound, array)


def _cumsum(into: Translation, node: ModelNode) -> Made:
    given = only(node, exclusive=0, reverse=0)
    array = into.array(node, node.operands[0])
    along = axis_of(node, int(into.number(node, node.operands[1])), array.ndim - 1)
    into.make_room(node, array.shape, array.itemsize)
    turned = np.flip(array, along) if given["reverse"] else array
    total = np.cumsum(turned, axis=along, dtype=array.dtype)
    if given["exclusive"] and total.size:
        # Not by taking the element off again: of floats, what is small beside it would be gone.
        total = np.roll(total, 1, axis=along)
        np.moveaxis(total, along, 0)[0] = 0
    return (np.flip(total, along) if given["reverse"] else total,)


def _matmul(into: Translation, node: ModelNode) -> Made:
    only(node)
    first, second = _operands(into, node, NUMBERS)
    fits = first.ndim >= 1 and second.ndim >= 1 and first.shape[-1] == second.shape[-2 if second.ndim > 1 else 0]
    require(fits and first.dtype == second.dtype, node, f"{list(first.shape)} and {list(second.shape)} have no product")
    try:
        many = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    except ValueError as problem:
        raise refused(node, f"{list(first.shape)} and {list(second.shape)} have no product") from problem
    into.make_room(node, (*many, *first.shape[-2:-1], *(second.shape[-1:] if second.ndim > 1 else ())), first.itemsize)
    return (np.asarray(np.matmul(first, second)),)


def _scatter_nd(into: Translation, node: ModelNode) -> Made:
    how = only(node, reduction="none")["reduction"]
    require(how == "none", node, f"the reduction {how!r} is not translated")
    data, places, updates = (into.array(node, name) for name in node.operands)
    deep = places.shape[-1] if places.ndim else 0
    fits = (
        1 <= deep <= data.ndim
        and updates.shape == (*places.shape[:-1], *data.shape[deep:])
        and updates.dtype == data.dtype
    )
    require(fits, node, f"places {list(places.shape)} and updates {list(updates.shape)} do not fit {list(data.shape)}")
    bounds = np.array(data.shape[:deep])
    require(bool(np.all((places >= -bounds) & (places < bounds))), node, f"it has places outside {list(data.shape)}")
    into.make_room(node, data.shape, data.itemsize)
    made = data.copy()
    made[tuple(np.moveaxis(places, -1, 0))] = updates
    return (made,)


def _extreme(compute: Callable[..., Any]) -> Translate:
    def translate(into: Translation, node: ModelNode) -> Made:
        given = only(node, axis=0, keepdims=1, select_last_index=0)
        array = _operands(into, node, NUMBERS)[0]
        along = axis_of(node, given["axis"], array.ndim - 1)
        require(array.shape[along] > 0, node, "there is nothing to choose from")
        last = bool(given["select_last_index"])
        found = np.asarray(
            compute(np.flip(array, along) if last else array, axis=along, keepdims=bool(given["keepdims"]))
        )
        return ((array.shape[along] - 1 - found if last else found).astype(np.int64),)

    return translate


def _one_hot(into: Translation, node: ModelNode) -> Made:
    places, values = into.array(node, node.operands[0]), into.array(node, node.operands[2])
    deep = int(into.number(node, node.operands[1]))
    along = axis_of(node, only(node, axis=-1)["axis"], places.ndim)
    require(
        deep >= 1 and values.shape == (2,),
        node,
        f"a depth of {deep} with the values {values.tolist()} is not translated",
    )
    into.make_room(node, (*places.shape, deep), 2 * values.itemsize)
    wrapped = np.where(places < 0, places + deep, places)
    chosen = np.expand_dims(wrapped, along) == np.arange(deep).reshape(-1, *(1,) * (places.ndim - along))
    return (np.where(chosen, values[1], values[0]),)


FOLDED: Mapping[str, Translate] = {
    "Abs": _elementwise(np.abs),
    "Add": _elementwise(np.add),
    "And": _elementwise(np.logical_and, "b"),
    "ArgMax": _extreme(np.argmax),
    "ArgMin": _extreme(np.argmin),
    "BitwiseAnd": _elementwise(np.bitwise_and, INTEGERS),
    "BitwiseNot": _elementwise(np.invert, INTEGERS),
    "BitwiseOr": _elementwise(np.bitwise_or, INTEGERS),
    "BitwiseXor": _elementwise(np.bitwise_xor, INTEGERS),
    "Cast": _cast,
    "CastLike": _cast_like,
    "Ceil": _elementwise(np.ceil, "f"),
    "Clip": _clip,
    "Cos": _elementwise(np.cos, "f"),
    "CumSum": _cumsum,
    "Div": _whole(_elementwise(_divided), "it divides"),
    "Equal": _elementwise(np.equal, ANY, truth=True),
    "Erf": _elementwise(np.vectorize(erf, otypes=[np.float64]), "f"),
    "Exp": _elementwise(np.exp, "f"),
    "Floor": _elementwise(np.floor, "f"),
    "Greater": _elementwise(np.greater, truth=True),
    "GreaterOrEqual": _elementwise(np.greater_equal, truth=True),
    "Less": _elementwise(np.less, truth=True),
    "LessOrEqual": _elementwise(np.less_equal, truth=True),
    "Log": _elementwise(np.log, "f"),
    "MatMul": _matmul,
    "Max": _elementwise(_folds(_larger)),
    "Min": _elementwise(_folds(_smaller)),
    "Mod": _whole(_mod, "it takes a remainder"),
    "Mul": _elementwise(np.multiply),
    "Neg": _elementwise(np.negative),
    "Not": _elementwise(np.logical_not, "b"),
    "OneHot": _one_hot,
    "Or": _elementwise(np.logical_or, "b"),
    "Pow": _pow,
    "Reciprocal": _elementwise(lambda array: 1 / array, "f"),
    "Relu": _elementwise(lambda array: np.where(array < 0, array.dtype.type(0), array)),
    "Round": _elementwise(np.rint, "f"),
    "ScatterND": _scatter_nd,
    "Sigmoid": _elementwise(lambda array: 1 / (1 + np.exp(-array)), "f"),
    "Sign": _elementwise(np.sign),
    "Sin": _elementwise(np.sin, "f"),
    "Sqrt": _elementwise(np.sqrt, "f"),
    "Sub": _elementwise(np.subtract),
    "Sum": _elementwise(_folds(np.add), "f"),
    "Tanh": _elementwise(np.tanh, "f"),
    "Where": _where,
    "Xor": _elementwise(np.logical_xor, "b"),
}


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
        step != 0 and len({number.dtype for number in (start, limit, step)}) == 1,
        node,
        f"from {start} to {limit} by {step} is no range",
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
