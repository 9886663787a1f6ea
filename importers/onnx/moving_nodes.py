"""ONNX operators that only move elements: computed for known arrays, calls of the library for values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod

import numpy as np

from layoutproof.graph.model.graph import Array, Shape, Value
from layoutproof.graph.operators.moving import expand, pad, tile, triangle
from layoutproof.importers.onnx.indexing_nodes import taken
from layoutproof.importers.onnx.onnx_model import ModelNode
from layoutproof.importers.onnx.translate import (
    Made,
    Translate,
    Translation,
    axes_of,
    axis_of,
    has,
    only,
    refused,
    require,
)
from layoutproof.ir.primfunc import PrimFunc


def _moved(
    into: Translation, node: ModelNode, known: Callable[[Array], Array], function: Callable[[Value], PrimFunc]
) -> Made:
    """The first operand moved: an array by numpy, a value by a function of the library."""
    found = into.known_as(node.operands[0])
    return (into.builder.call(function(found), found)[0] if isinstance(found, Value) else known(found),)


def _concat(into: Translation, node: ModelNode) -> Made:
    axis = only(node, axis=1)["axis"]
    require(len(node.operands) >= 1, node, "there is nothing to put together")
    if into.is_known(*node.operands):
        parts = [into.array(node, name) for name in node.operands]
        along = axis_of(node, axis, parts[0].ndim - 1)
        fits = len({(part.dtype, part.shape[:along], part.shape[along + 1 :], part.ndim) for part in parts}) == 1
        require(fits, node, f"shapes {[list(part.shape) for part in parts]} or their types do not go together")
        into.make_room(node, (sum(part.size for part in parts),), parts[0].itemsize)
        return (np.concatenate(parts, axis=along),)
    # What has no elements adds none.
    names = [name for name in node.operands if not into.is_known(name) or into.array(node, name).size]
    values = [into.value(name) for name in names]
    require(
        len({value.dtype for value in values}) == 1, node, f"its operands differ in type: {', '.join(map(str, values))}"
    )
    return (values[0] if len(values) == 1 else into.builder.concat(values, axis=axis),)


def _reshape(into: Translation, node: ModelNode) -> Made:
    given = only(node, allowzero=0, **({"shape": None, "consumed_inputs": ()} if node.opset < 5 else {}))
    zero, old, asked = given["allowzero"], into.shape(node.operands[0]), axes_of(into, node, given.get("shape"), 1)
    if asked is None:
        raise refused(node, "its shape is missing")
    known = [extent for extent in asked if extent != -1]
    fits = (
        len(asked) - len(known) <= 1
        and all(extent >= 0 for extent in known)
        and not (zero and 0 in known and len(asked) > len(known))
    )
    fits = fits and all(extent != 0 or zero or k < len(old) for k, extent in enumerate(asked))
    require(fits, node, f"{list(asked)} is no shape for {list(old)}")
    new = [old[k] if extent == 0 and not zero else extent for k, extent in enumerate(asked)]
    if -1 in new:
        rest = -prod(new)
        require(rest > 0, node, f"{list(asked)} is no shape for {list(old)}")
        new[new.index(-1)] = prod(old) // rest
    return _reshaped(into, node, tuple(new))


def _flatten(into: Translation, node: ModelNode) -> Made:
    old = into.shape(node.operands[0])
    axis = only(node, axis=1)["axis"]
    require(-len(old) <= axis <= len(old), node, f"there is no axis {axis}")
    return _reshaped(into, node, (prod(old[:axis]), prod(old[axis:])))


def _unsqueeze(into: Translation, node: ModelNode) -> Made:
    axes = axes_of(into, node, only(node, axes=None)["axes"], 1)
    if axes is None:
        raise refused(node, "its axes are missing")
    old = list(into.shape(node.operands[0]))
    places = sorted(axis_of(node, axis, len(old) + len(axes) - 1) for axis in axes)
    require(len(set(places)) == len(places), node, f"the axes {list(axes)} are not different axes")
    for place in places:
        old.insert(place, 1)
    return _reshaped(into, node, tuple(old))


def _squeeze(into: Translation, node: ModelNode) -> Made:
    axes = axes_of(into, node, only(node, axes=None)["axes"], 1)
    old = into.shape(node.operands[0])
    gone = (
        {k for k, extent in enumerate(old) if extent == 1}
        if axes is None
        else {axis_of(node, axis, len(old) - 1) for axis in axes}
    )
    require(all(old[k] == 1 for k in gone), node, f"not all of the axes {sorted(gone)} of {list(old)} have extent 1")
    return _reshaped(into, node, tuple(extent for k, extent in enumerate(old) if k not in gone))


def _reshaped(into: Translation, node: ModelNode, shape: Shape) -> Made:
    name = node.operands[0]
    require(
        prod(shape) == prod(into.shape(name)), node, f"{list(into.shape(name))} has other elements than {list(shape)}"
    )
    if into.is_known(name):
        return (into.array(node, name).reshape(shape),)
    return (into.value(name, shape),)


def _transpose(into: Translation, node: ModelNode) -> Made:
    rank = len(into.shape(node.operands[0]))
    order = tuple(only(node, perm=tuple(reversed(range(rank))))["perm"])
    require(sorted(order) == list(range(rank)), node, f"{list(order)} is no order of {rank} axes")
    if into.is_known(node.operands[0]):
        return (into.array(node, node.operands[0]).transpose(order),)
    value = into.value(node.operands[0])
    return (value if order == tuple(range(rank)) else into.builder.transpose(value, order),)


def _identity(into: Translation, node: ModelNode) -> Made:
    only(node)
    return _same(into, node)


def _same(into: Translation, node: ModelNode) -> Made:
    return (into.known_as(node.operands[0]),)


def _dropout(into: Translation, node: ModelNode) -> Made:
    """Nothing is dropped, unless the last operand asks for training; the second result is a mask of all elements."""
    only(node, ratio=0.5, seed=0, is_test=1, consumed_inputs=())
    trained = has(node, 2) and into.array(node, node.operands[2]).any()
    require(not trained and node.attributes.get("is_test", 1) == 1, node, "only inference is translated")
    found = into.known_as(node.operands[0])
    if len(node.results) < 2 or not node.results[1]:
        return (found,)
    into.make_room(node, found.shape, 1)
    return found, np.ones(found.shape, dtype=np.bool_ if node.opset >= 10 else into.numpy_type(found))


def _split(into: Translation, node: ModelNode) -> Made:
    given = only(node, axis=0, split=None, num_outputs=len(node.results))
    shape = into.shape(node.operands[0])
    along = axis_of(node, given["axis"], len(shape) - 1)
    sizes = axes_of(into, node, given["split"], 1)
    if sizes is None:
        parts = given["num_outputs"]
        require(
            parts == len(node.results) and 1 <= parts,
            node,
            f"it has {len(node.results)} results, and is asked for {parts}",
        )
        # Only the last part may be smaller.
        each = -(-shape[along] // parts)
        sizes = (*(each,) * (parts - 1), shape[along] - each * (parts - 1))
    fits = sum(sizes) == shape[along] and min(sizes, default=-1) >= 0 and len(sizes) == len(node.results)
    require(fits, node, f"sizes {list(sizes)} do not make {len(node.results)} parts of {shape[along]}")
    if into.is_known(node.operands[0]):
        return tuple(np.split(into.array(node, node.operands[0]), np.cumsum(sizes)[:-1], axis=along))
    value = into.value(node.operands[0])
    if len(sizes) == 1:
        return (value,)
    # A part without elements is known.
    made = iter(into.builder.split(value, [size for size in sizes if size], axis=along))
    return tuple(next(made) if size else into.nothing(value, along) for size in sizes)


def _slice(into: Translation, node: ModelNode) -> Made:
    given = only(node, starts=None, ends=None, axes=None)
    starts, ends, axes, steps = (
        axes_of(into, node, given.get(name), k) for k, name in enumerate(("starts", "ends", "axes", "steps"), 1)
    )
    shape = into.shape(node.operands[0])
    if starts is None or ends is None:
        raise refused(node, "its starts or ends are missing")
    along = (
        tuple(axis_of(node, axis, len(shape) - 1) for axis in axes) if axes is not None else tuple(range(len(starts)))
    )
    apart = steps if steps is not None else (1,) * len(starts)
    fits = len(starts) == len(ends) == len(along) == len(apart) == len(set(along)) <= len(shape) and 0 not in apart
    require(
        fits,
        node,
        f"starts {list(starts)}, ends {list(ends)}, steps {list(apart)} of the axes {list(along)} do not go together",
    )
    whole = [range(extent) for extent in shape]
    for axis, start, end, step in zip(along, starts, ends, apart, strict=True):
        # ONNX says that this start is the first element, its reference that there is none.
        told = f"from {start} backwards there is nothing on axis {axis} of extent {shape[axis]}"
        require(step > 0 or start >= -shape[axis], node, told)
        whole[axis] = whole[axis][slice(start, end, step)]
    if whole == [range(extent) for extent in shape]:
        return _same(into, node)
    if into.is_known(node.operands[0]):
        return (into.array(node, node.operands[0])[np.ix_(*whole)],)
    sizes, firsts = tuple(len(part) for part in whole), tuple(part.start for part in whole)
    if 0 in sizes:
        return (np.zeros(sizes, dtype=into.numpy_type(into.known_as(node.operands[0]))),)
    return (into.builder.slice(into.value(node.operands[0]), firsts, sizes, tuple(part.step for part in whole)),)


def _expand(into: Translation, node: ModelNode) -> Made:
    only(node)
    old, asked = into.shape(node.operands[0]), tuple(into.integers(node, node.operands[1]))
    try:
        new = np.broadcast_shapes(old, asked)
    except ValueError as problem:
        raise refused(node, f"{list(old)} and {list(asked)} do not go together") from problem
    # Repeated elements of a known array take no memory until they are used.
    into.make_room(node, new if into.is_known(node.operands[0]) else (), _itemsize(into, node))
    if new == old:
        return _same(into, node)
    return _moved(
        into, node, lambda array: np.broadcast_to(array, new), lambda value: expand(value.shape, new, str(value.dtype))
    )


def _tile(into: Translation, node: ModelNode) -> Made:
    only(node)
    old, times = into.shape(node.operands[0]), tuple(into.integers(node, node.operands[1]))
    require(
        len(times) == len(old) and min(times, default=0) >= 0,
        node,
        f"{list(times)} are not times for each axis of {list(old)}",
    )
    new = tuple(extent * k for extent, k in zip(old, times, strict=True))
    into.make_room(node, new if into.is_known(node.operands[0]) else (), _itemsize(into, node))
    if new == old:
        return _same(into, node)
    return _moved(
        into, node, lambda array: np.tile(array, times), lambda value: tile(value.shape, times, str(value.dtype))
    )


def _itemsize(into: Translation, node: ModelNode) -> int:
    found = into.known_as(node.operands[0])
    return 0 if isinstance(found, Value) else int(found.itemsize)


def _pad(into: Translation, node: ModelNode) -> Made:
    given = only(node, mode="constant", pads=None, value=0.0)
    mode, shape = given["mode"], into.shape(node.operands[0])
    widths = axes_of(into, node, given["pads"], 1)
    axes = axes_of(into, node, None, 3)
    along = [axis_of(node, axis, len(shape) - 1) for axis in axes] if axes is not None else list(range(len(shape)))
    if widths is None or len(widths) != 2 * len(along) or len(set(along)) != len(along):
        raise refused(node, f"its pads {list(widths or ())} are not two for each of the axes {along}")
    require(mode == "constant" or mode in _PADDED, node, f"the mode {mode!r} is not translated")
    pairs = [(0, 0)] * len(shape)
    for k, axis in enumerate(along):
        pairs[axis] = (widths[k], widths[len(along) + k])
    value = into.number(node, node.operands[2]).item() if has(node, 2) else given["value"]
    return (_padded(into, node, mode, pairs, value),)


def _padded(
    into: Translation, node: ModelNode, mode: str, pairs: Sequence[tuple[int, int]], value: int | float
) -> Value | Array:
    """The first operand with cells around it; widths below zero cut off."""
    found = into.known_as(node.operands[0])
    into.make_room(node, tuple(max(n + sum(pair), 0) for n, pair in zip(found.shape, pairs, strict=True)), 1)
    for axis, (before, after) in enumerate(pairs):
        if mode == "constant":
            kept = range(found.shape[axis])[max(-before, 0) : max(found.shape[axis] + min(after, 0), 0)]
        else:
            require(found.shape[axis] > 0, node, "there is nothing to repeat")
            # Some cut off first, and repeat what is left.
            clear = mode == "edge" or min(before, after) >= 0 or max(before, after) <= 0
            told = f"the mode {mode!r} is not translated for an axis that grows by {max(before, after)} and is cut too"
            require(clear, node, told)
            whole = np.arange(found.shape[axis])
            grown = _PADDED[mode](whole, (max(before, 0), max(after, 0)))
            kept = grown[max(-before, 0) : max(len(grown) + min(after, 0), 0)].tolist()
        require(len(kept) > 0, node, f"nothing is left of axis {axis}")
        found = taken(into, found, axis, tuple(kept))
    more = [(max(before, 0), max(after, 0)) for before, after in pairs]
    if mode != "constant" or not any(map(sum, more)):
        return found
    if not isinstance(found, Value):
        return np.pad(found, more, constant_values=np.asarray(value).astype(found.dtype))
    first, last = (tuple(pair[k] for pair in more) for k in (0, 1))
    return into.builder.call(pad(found.shape, first, last, value, str(found.dtype)), found)[0]


_PADDED: Mapping[str, Callable[[Array, tuple[int, int]], Array]] = {
    "edge": partial(np.pad, mode="edge"),
    "reflect": partial(np.pad, mode="reflect"),
    "wrap": partial(np.pad, mode="wrap"),
}


def _trilu(into: Translation, node: ModelNode) -> Made:
    upper = bool(only(node, upper=1)["upper"])
    offset = int(into.number(node, node.operands[1])) if has(node, 1) else 0
    require(len(into.shape(node.operands[0])) >= 2, node, "an array with fewer than two axes has no diagonal")
    cut = np.triu if upper else np.tril
    return _moved(
        into,
        node,
        lambda array: cut(array, offset),
        lambda value: triangle(value.shape, offset, upper, str(value.dtype)),
    )


MOVING: Mapping[str, Translate] = {
    "Concat": _concat,
    "Dropout": _dropout,
    "Expand": _expand,
    "Flatten": _flatten,
    "Identity": _identity,
    "Pad": _pad,
    "Reshape": _reshape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Trilu": _trilu,
    "Unsqueeze": _unsqueeze,
}
