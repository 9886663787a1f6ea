"""ONNX operators that take elements by indices: known indices become moves, others are data of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from layoutproof.graph.model.graph import Array, Value
from layoutproof.graph.operators.moving import (
    INDEX_TYPES,
    gather,
    gather_elements,
    gather_nd,
    one_hot,
    runs,
    select,
    take,
)
from layoutproof.importers.onnx.onnx_model import ModelNode
from layoutproof.importers.onnx.translate import Made, Translate, Translation, axis_of, only, require

MOST_RUNS = 16
"""With more runs of places than these, known places are data as well: a block for each would make long functions."""


def taken(into: Translation, found: Value | Array, axis: int, places: tuple[int, ...]) -> Value | Array:
    """What stands at some known places of an axis, none of which is below zero."""
    if places == tuple(range(found.shape[axis])):
        return found
    if not isinstance(found, Value):
        return np.take(found, places, axis=axis)
    split = runs(places)
    if len(split) > MOST_RUNS:
        index = into.builder.constant(np.array(places, dtype=np.int64), "places")
        return into.builder.call(gather(found.shape, index.shape, axis, str(found.dtype)), found, index)[0]
    if len(split) == 1 and split[0][1] != 0:
        start, step, length = split[0]
        rank = len(found.shape)
        firsts, steps = (
            [value if k == axis else other for k in range(rank)] for value, other in ((start, 0), (step, 1))
        )
        return into.builder.slice(found, firsts, [length if k == axis else n for k, n in enumerate(found.shape)], steps)
    return into.builder.call(take(found.shape, axis, places, str(found.dtype)), found)[0]


def _gather(into: Translation, node: ModelNode) -> Made:
    shape = into.shape(node.operands[0])
    along = axis_of(node, only(node, axis=0)["axis"], len(shape) - 1)
    data = into.known_as(node.operands[0])
    if not into.is_known(node.operands[1]):
        index = _index(into, node)
        source = into.value(node.operands[0])
        return (
            into.builder.call(gather(shape, index.shape, along, str(source.dtype), str(index.dtype)), source, index)[0],
        )
    places = _places(into, node, shape[along])
    if not isinstance(data, Value):
        into.make_room(node, (*shape[:along], places.size, *shape[along + 1 :]), data.itemsize)
        return (np.take(data, places, axis=along),)
    if places.ndim == 0:
        return (into.builder.call(select(shape, along, int(places), str(data.dtype)), data)[0],)
    require(places.size > 0, node, "it takes no element at all")
    made = taken(into, data, along, tuple(places.reshape(-1).tolist()))
    assert isinstance(made, Value)
    new = (*shape[:along], *places.shape, *shape[along + 1 :])
    return (made if made.shape == new else into.builder.reshape(made, new),)


def _index(into: Translation, node: ModelNode) -> Value:
    index = into.value(node.operands[1])
    require(str(index.dtype) in INDEX_TYPES, node, f"places are of type {' or '.join(INDEX_TYPES)}, not {index.dtype}")
    return index


def _places(into: Translation, node: ModelNode, extent: int) -> Array:
    """Known places, counted from the front."""
    places = into.array(node, node.operands[1])
    inside = places.dtype.kind in "iu" and bool(np.all((places >= -extent) & (places < extent)))
    require(inside, node, f"{node.operands[1]} has places outside an axis of extent {extent}")
    made: Array = np.where(places < 0, places + extent, places)
    return made


def _gather_elements(into: Translation, node: ModelNode) -> Made:
    shape, indices = (into.shape(name) for name in node.operands)
    along = axis_of(node, only(node, axis=0)["axis"], len(shape) - 1)
    if into.is_known(*node.operands):
        fits = len(shape) == len(indices) and all(
            k == along or a >= b for k, (a, b) in enumerate(zip(shape, indices, strict=True))
        )
        require(fits, node, f"places of shape {list(indices)} do not fit {list(shape)}")
        places = _places(into, node, shape[along])
        box = tuple(slice(None) if k == along else slice(extent) for k, extent in enumerate(indices))
        return (np.take_along_axis(into.array(node, node.operands[0])[box], places, axis=along),)
    data, index = into.value(node.operands[0]), _index(into, node)
    return (
        into.builder.call(gather_elements(shape, indices, along, str(data.dtype), str(index.dtype)), data, index)[0],
    )


def _gather_nd(into: Translation, node: ModelNode) -> Made:
    batch = only(node, batch_dims=0)["batch_dims"]
    data, index = into.value(node.operands[0]), _index(into, node)
    return (
        into.builder.call(gather_nd(data.shape, index.shape, batch, str(data.dtype), str(index.dtype)), data, index)[0],
    )


def _scatter_nd(into: Translation, node: ModelNode) -> Made:
    """At known places: each element comes from the data or from the updates, put one after the other."""
    how = only(node, reduction="none")["reduction"]
    require(how == "none", node, f"the reduction {how!r} is not translated")
    data, updates = into.value(node.operands[0]), into.value(node.operands[2])
    places = into.array(node, node.operands[1])
    deep = places.shape[-1] if places.ndim else 0
    fits = 1 <= deep <= len(data.shape) and updates.shape == (*places.shape[:-1], *data.shape[deep:])
    require(fits, node, f"places {list(places.shape)} and updates {list(updates.shape)} do not fit {list(data.shape)}")
    bounds = np.array(data.shape[:deep])
    inside = places.dtype.kind in "iu" and bool(np.all((places >= -bounds) & (places < bounds)))
    require(inside, node, f"it has places outside {list(data.shape)}")
    source = _numbers(into, node, data)
    source[tuple(np.moveaxis(np.where(places < 0, places + bounds, places), -1, 0))] = _numbers(
        into, node, updates
    ) + prod(data.shape)
    return (_chosen(into, data, updates, source),)


def _scatter_elements(into: Translation, node: ModelNode) -> Made:
    """At known places, as above."""
    given = only(node, axis=0, reduction="none")
    require(given["reduction"] == "none", node, f"the reduction {given['reduction']!r} is not translated")
    data, updates = into.value(node.operands[0]), into.value(node.operands[2])
    along = axis_of(node, given["axis"], len(data.shape) - 1)
    places = _places(into, node, data.shape[along])
    fits = places.shape == updates.shape and all(
        k == along or a >= b for k, (a, b) in enumerate(zip(data.shape, places.shape, strict=True))
    )
    require(fits and places.ndim == len(data.shape), node, f"places {list(places.shape)} do not fit {list(data.shape)}")
    source = _numbers(into, node, data)
    box = source[tuple(slice(None) if k == along else slice(extent) for k, extent in enumerate(places.shape))]
    np.put_along_axis(box, places, _numbers(into, node, updates) + prod(data.shape), axis=along)
    return (_chosen(into, data, updates, source),)


def _numbers(into: Translation, node: ModelNode, value: Value) -> Array:
    """The row-major number of each element."""
    into.make_room(node, value.shape, 8)
    return np.arange(prod(value.shape)).reshape(value.shape)


def _chosen(into: Translation, data: Value, updates: Value, source: Array) -> Value:
    """The elements that stand at some numbers in two arrays, one after the other."""
    flat = [into.builder.reshape(value, (prod(value.shape),)) for value in (data, updates)]
    made = taken(into, into.builder.concat(flat, axis=0), 0, tuple(source.reshape(-1).tolist()))
    assert isinstance(made, Value)
    return into.builder.reshape(made, data.shape)


def _one_hot(into: Translation, node: ModelNode) -> Made:
    axis, deep = only(node, axis=-1)["axis"], int(into.number(node, node.operands[1]))
    index, values = into.value(node.operands[0]), into.value(node.operands[2])
    along = axis_of(node, axis, len(index.shape))
    require(
        deep >= 1 and values.shape == (2,),
        node,
        f"a depth of {deep} with values of shape {list(values.shape)} is not translated",
    )
    func = one_hot(index.shape, deep, along, str(values.dtype), str(index.dtype))
    return (into.builder.call(func, index, values)[0],)


TAKING: Mapping[str, Translate] = {
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "OneHot": _one_hot,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
}
