"""Operators that move elements: other shapes and orders, parts, several arrays in one, and elements taken by known or
computed indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from math import prod

from layoutproof.graph.model.graph import Shape
from layoutproof.graph.operators import operator_text as page
from layoutproof.graph.operators.convolution import moved
from layoutproof.graph.operators.elementwise import broadcast, repeated
from layoutproof.graph.operators.operator_text import (
    Nest,
    access,
    axis_of,
    cached_by_number,
    function,
    require,
    variables,
)
from layoutproof.ir.primfunc import PrimFunc


@cache
def reshape(shape: Shape, new: Shape, dtype: str = "float32") -> PrimFunc:
    """The elements in row-major order under other axes; neighbouring axes that stay together are told apart by
    quotients and remainders.

    Raises LayoutproofError for another number of elements.
    """
    require(
        prod(shape) == prod(new), "reshape", f"{list(shape)} has {prod(shape)} elements, {list(new)} has {prod(new)}"
    )
    axes = variables(new)
    indices: list[str] = []
    for before, after in common_groups(shape, new):
        indices += _digits([shape[k] for k in before], _flat([(f"v{k}", new[k]) for k in after]))
    store = f"{access('Y', list(axes))} = {access('X', indices)}"
    return function("reshape", {"X": shape, "Y": new}, Nest("reshape", axes, store), dtype=dtype)


def common_groups(shape: Shape, new: Shape) -> list[tuple[list[int], list[int]]]:
    """The shortest runs of axes of both shapes with as many elements; axes of extent 1 stay alone if possible."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(shape) or j < len(new):
        before, after = list[int](), list[int]()
        if i < len(shape):
            before, i = [i], i + 1
        if j < len(new):
            after, j = [j], j + 1
        while prod(shape[k] for k in before) != prod(new[k] for k in after):
            if prod(shape[k] for k in before) < prod(new[k] for k in after):
                before, i = [*before, i], i + 1
            else:
                after, j = [*after, j], j + 1
        groups.append((before, after))
    return groups


def _flat(axes: Sequence[tuple[str, int]]) -> tuple[str, int]:
    """The row-major position over some axes, and how many there are."""
    terms, step = list[str](), 1
    for name, extent in reversed(axes):
        if extent > 1:
            terms.append(name if step == 1 else f"{name} * {step}")
        step *= extent
    return " + ".join(reversed(terms)) if terms else "0", step


def _digits(extents: Sequence[int], flat: tuple[str, int]) -> list[str]:
    position, rest = flat
    found = []
    for extent in extents:
        step = rest // extent
        wrapped = f"({position})" if " " in position else position
        if extent == 1:
            found.append("0")
        elif step == 1:
            found.append(position if rest == flat[1] else f"{wrapped} % {extent}")
        else:
            quotient = f"{wrapped} // {step}"
            found.append(quotient if rest == flat[1] else f"{quotient} % {extent}")
        rest = step
    return found


@cache
def transpose(shape: Shape, order: tuple[int, ...], dtype: str = "float32") -> PrimFunc:
    """Axis `k` of the result is axis `order[k]` of the operand. Raises LayoutproofError for no permutation."""
    require(sorted(order) == list(range(len(shape))), "transpose", f"{list(order)} is no order of {len(shape)} axes")
    new = tuple(shape[axis] for axis in order)
    axes = variables(new)
    indices = [f"v{order.index(axis)}" for axis in range(len(shape))]
    store = f"{access('Y', list(axes))} = {access('X', indices)}"
    return function("transpose", {"X": shape, "Y": new}, Nest("transpose", axes, store), dtype=dtype)


@cache
def concat(shapes: tuple[Shape, ...], axis: int, dtype: str = "float32") -> PrimFunc:
    """The operands one after the other along an axis. Raises LayoutproofError for shapes that differ elsewhere."""
    require(len(shapes) >= 1, "concat", "there is nothing to put together")
    along = axis_of("concat", axis, len(shapes[0]))
    rests = {(*shape[:along], *shape[along + 1 :]) for shape in shapes}
    require(
        len(rests) == 1 and len({len(s) for s in shapes}) == 1,
        "concat",
        f"shapes {[list(s) for s in shapes]} differ beside axis {along}",
    )
    result = (*shapes[0][:along], sum(shape[along] for shape in shapes), *shapes[0][along + 1 :])
    nests, start = list[Nest](), 0
    for number, shape in enumerate(shapes):
        axes = variables(shape)
        place = [moved(name, start) if k == along else name for k, name in enumerate(axes)]
        nests.append(Nest(f"part_{number}", axes, f"{access('Y', place)} = {access(f'X{number}', list(axes))}"))
        start += shape[along]
    arrays = {**{f"X{number}": shape for number, shape in enumerate(shapes)}, "Y": result}
    return function("concat", arrays, *nests, dtype=dtype)


@cache
def split(shape: Shape, sizes: tuple[int, ...], axis: int, dtype: str = "float32") -> PrimFunc:
    """The parts of an array along an axis, each a result. Raises LayoutproofError for sizes that are not all of it."""
    along = axis_of("split", axis, len(shape))
    require(
        sum(sizes) == shape[along] and min(sizes) >= 1,
        "split",
        f"sizes {list(sizes)} are not the {shape[along]} of axis {along}",
    )
    arrays, nests, start = {"X": shape}, list[Nest](), 0
    for number, size in enumerate(sizes):
        part = (*shape[:along], size, *shape[along + 1 :])
        axes = variables(part)
        place = [moved(name, start) if k == along else name for k, name in enumerate(axes)]
        nests.append(Nest(f"part_{number}", axes, f"{access(f'Y{number}', list(axes))} = {access('X', place)}"))
        arrays[f"Y{number}"] = part
        start += size
    return function("split", arrays, *nests, dtype=dtype)


@cache
def strided_slice(
    shape: Shape,
    starts: tuple[int, ...],
    sizes: tuple[int, ...],
    steps: tuple[int, ...] | None = None,
    dtype: str = "float32",
) -> PrimFunc:
    """`Y[i] = X[start + i * step]` on each axis. Raises LayoutproofError for a part that leaves the array."""
    apart = steps if steps is not None else (1,) * len(shape)
    inside = len(starts) == len(sizes) == len(apart) == len(shape) and all(
        size >= 1 and 0 <= start < extent and 0 <= start + (size - 1) * step < extent
        for start, size, step, extent in zip(starts, sizes, apart, shape, strict=True)
    )
    require(
        inside,
        "strided_slice",
        f"{list(sizes)} elements from {list(starts)} by {list(apart)} do not lie in {list(shape)}",
    )
    axes = variables(sizes)
    indices = [
        moved(name if step == 1 else f"{name} * {step}", start)
        for name, start, step in zip(axes, starts, apart, strict=True)
    ]
    store = f"{access('Y', list(axes))} = {access('X', indices)}"
    return function("strided_slice", {"X": shape, "Y": sizes}, Nest("strided_slice", axes, store), dtype=dtype)


@cache
def expand(shape: Shape, new: Shape, dtype: str = "float32") -> PrimFunc:
    """The operand broadcast to a shape, over axes of extent 1 or absent. Raises LayoutproofError for others."""
    require(broadcast("expand", shape, new) == new, "expand", f"{list(shape)} is not repeated to {list(new)}")
    axes = variables(new)
    store = f"{access('Y', list(axes))} = {repeated('X', shape, new)}"
    return function("expand", {"X": shape, "Y": new}, Nest("expand", axes, store), dtype=dtype)


@cache
def tile(shape: Shape, times: tuple[int, ...], dtype: str = "float32") -> PrimFunc:
    """The array repeated so many times along each axis. Raises LayoutproofError without a number for each axis."""
    require(
        len(times) == len(shape) and all(k >= 1 for k in times),
        "tile",
        f"{list(times)} are not times for each axis of {list(shape)}",
    )
    new = tuple(extent * k for extent, k in zip(shape, times, strict=True))
    axes = variables(new)
    indices = [
        "0" if extent == 1 else name if k == 1 else f"{name} % {extent}"
        for name, extent, k in zip(axes, shape, times, strict=True)
    ]
    store = f"{access('Y', list(axes))} = {access('X', indices)}"
    return function("tile", {"X": shape, "Y": new}, Nest("tile", axes, store), dtype=dtype)


@cached_by_number
def pad(shape: Shape, before: Shape, after: Shape, value: int | float, dtype: str = "float32") -> PrimFunc:
    """The array with cells around it that hold a value. Raises LayoutproofError for widths below zero."""
    fits = len(before) == len(after) == len(shape) and min((*before, *after), default=0) >= 0
    require(fits, "pad", f"{list(before)} and {list(after)} are no widths for {list(shape)}")
    new = tuple(extent + first + last for extent, first, last in zip(shape, before, after, strict=True))
    axes = variables(new)
    places, inside = list[str](), list[str]()
    for name, extent, first, last in zip(axes, shape, before, after, strict=True):
        places.append(moved(name, -first))
        inside += [f"{first} <= {name}"] if first else []
        inside += [f"{name} < {first + extent}"] if last else []
    x = access("X", places)
    held = f"T.if_then_else({' and '.join(inside)}, {x}, {page.number(value, dtype)})" if inside else x
    return function(
        "pad", {"X": shape, "Y": new}, Nest("pad", axes, f"{access('Y', list(axes))} = {held}"), dtype=dtype
    )


@cache
def triangle(shape: Shape, offset: int, upper: bool, dtype: str = "float32") -> PrimFunc:
    """What lies in the last two axes on and above the diagonal, or on and below it, and 0 elsewhere.

    Raises LayoutproofError for an array without two axes.
    """
    require(len(shape) >= 2, "triangle", f"an array of {len(shape)} axes has no diagonal")
    axes = variables(shape)
    row, column = list(axes)[-2:]
    x = access("X", list(axes))
    stays = f"{moved(row, offset)} <= {column}" if upper else f"{column} <= {moved(row, offset)}"
    store = f"{access('Y', list(axes))} = T.if_then_else({stays}, {x}, {page.number(0, dtype)})"
    return function("triangle", {"X": shape, "Y": shape}, Nest("triangle", axes, store), dtype=dtype)


INDEX_TYPES = ("int32", "int64")


@cache
def take(shape: Shape, axis: int, places: tuple[int, ...], dtype: str = "float32") -> PrimFunc:
    """`Y[..., k, ...] = X[..., places[k], ...]`: one block for each run of places that are equally far apart.

    Raises LayoutproofError for places that are not there.
    """
    along = axis_of("take", axis, len(shape))
    inside = len(places) >= 1 and all(0 <= place < shape[along] for place in places)
    require(inside, "take", f"not all of {list(places[:8])} are places of the {shape[along]} of axis {along}")
    new = (*shape[:along], len(places), *shape[along + 1 :])
    nests, begin = list[Nest](), 0
    for number, (start, step, length) in enumerate(runs(places)):
        axes = variables((*shape[:along], length, *shape[along + 1 :]))
        name = list(axes)[along]
        source = str(start) if step == 0 or length == 1 else moved(name if step == 1 else f"{name} * {step}", start)
        into = [moved(name, begin) if k == along else other for k, other in enumerate(axes)]
        from_ = [source if k == along else other for k, other in enumerate(axes)]
        nests.append(Nest(f"part_{number}", axes, f"{access('Y', into)} = {access('X', from_)}"))
        begin += length
    return function("take", {"X": shape, "Y": new}, *nests, dtype=dtype)


def runs(places: Sequence[int]) -> list[tuple[int, int, int]]:
    """Places as runs of as many as can be that are equally far apart: where each starts, its step, its length."""
    found: list[tuple[int, int, int]] = []
    k = 0
    while k < len(places):
        step = places[k + 1] - places[k] if k + 1 < len(places) else 0
        length = 1
        for before, after in pairwise(places[k:]):
            if after - before != step:
                break
            length += 1
        found.append((places[k], step, length))
        k += length
    return found


@cache
def select(shape: Shape, axis: int, place: int, dtype: str = "float32") -> PrimFunc:
    """What lies at one place of an axis, without the axis. Raises LayoutproofError for a place that is not there."""
    along = axis_of("select", axis, len(shape))
    require(0 <= place < shape[along], "select", f"{place} is no place of the {shape[along]} of axis {along}")
    new = (*shape[:along], *shape[along + 1 :])
    axes = variables(new)
    places = [*list(axes)[:along], str(place), *list(axes)[along:]]
    store = f"{access('Y', list(axes))} = {access('X', places)}"
    return function("select", {"X": shape, "Y": new}, Nest("select", axes, store), dtype=dtype)


@cache
def gather(shape: Shape, indices: Shape, axis: int, dtype: str = "float32", index_type: str = "int64") -> PrimFunc:
    """`Y[a, i, b] = X[a, I[i], b]`, with `a` the axes before the one that is indexed and `b` those after it.

    Places below zero count from the end; others that are not there are taken as the nearest that is. Raises
    LayoutproofError for other types of places.
    """
    along = axis_of("gather", axis, len(shape))
    _check_type("gather", index_type)
    new = (*shape[:along], *indices, *shape[along + 1 :])
    axes = variables(new)
    names = list(axes)
    index = access("I", names[along : along + len(indices)])
    places = [*names[:along], _inside(index, shape[along], index_type), *names[along + len(indices) :]]
    store = f"{access('Y', names)} = {access('X', places)}"
    arrays = {"X": shape, "I": indices, "Y": new}
    return function("gather", arrays, Nest("gather", axes, store), dtype=dtype, dtypes={"I": index_type})


@cache
def gather_elements(
    shape: Shape, indices: Shape, axis: int, dtype: str = "float32", index_type: str = "int64"
) -> PrimFunc:
    """`Y[a, i, b] = X[a, I[a, i, b], b]`. Raises LayoutproofError for other shapes and types of indices."""
    along = axis_of("gather_elements", axis, len(shape))
    _check_type("gather_elements", index_type)
    fits = len(shape) == len(indices) and all(
        k == along or a >= b for k, (a, b) in enumerate(zip(shape, indices, strict=True))
    )
    require(fits, "gather_elements", f"places of shape {list(indices)} do not fit {list(shape)}")
    axes = variables(indices)
    names = list(axes)
    index = _inside(access("I", names), shape[along], index_type)
    store = f"{access('Y', names)} = {access('X', [index if k == along else name for k, name in enumerate(names)])}"
    arrays = {"X": shape, "I": indices, "Y": indices}
    return function(
        "gather_elements", arrays, Nest("gather_elements", axes, store), dtype=dtype, dtypes={"I": index_type}
    )


@cache
def gather_nd(shape: Shape, indices: Shape, batch: int, dtype: str = "float32", index_type: str = "int64") -> PrimFunc:
    """`Y[b, i, r] = X[b, I[b, i, 0], I[b, i, 1], ..., r]`, with `batch` axes `b`, and `r` the axes that no place is
    given for.

    Raises LayoutproofError for shapes that do not fit, and for other types of places.
    """
    _check_type("gather_nd", index_type)
    deep = indices[-1] if indices else 0
    fits = 0 <= batch < len(indices) and shape[:batch] == indices[:batch] and 1 <= deep <= len(shape) - batch
    require(fits, "gather_nd", f"places of shape {list(indices)} do not fit {list(shape)} with {batch} axes in common")
    new = (*indices[:-1], *shape[batch + deep :])
    axes = variables(new)
    names = list(axes)
    before = names[: len(indices) - 1]
    deeper = [_inside(access("I", [*before, str(k)]), shape[batch + k], index_type) for k in range(deep)]
    store = f"{access('Y', names)} = {access('X', [*names[:batch], *deeper, *names[len(indices) - 1 :]])}"
    arrays = {"X": shape, "I": indices, "Y": new}
    return function("gather_nd", arrays, Nest("gather_nd", axes, store), dtype=dtype, dtypes={"I": index_type})


@cache
def one_hot(indices: Shape, deep: int, axis: int, dtype: str = "float32", index_type: str = "int64") -> PrimFunc:
    """One of two values, `V[1]` where an axis of `deep` more places is at the place that `I` has, `V[0]` elsewhere.

    Places below zero count from the end. Raises LayoutproofError for an axis that is not there, and for other types of
    places.
    """
    along = axis_of("one_hot", axis, len(indices) + 1)
    _check_type("one_hot", index_type)
    new = (*indices[:along], deep, *indices[along:])
    axes = variables(new)
    names = list(axes)
    index, here = access("I", [*names[:along], *names[along + 1 :]]), f"T.Cast({index_type!r}, {names[along]})"
    hit = f"{index} == {here} or {index} + T.{index_type}({deep}) == {here}"
    store = f"{access('Y', names)} = T.if_then_else({hit}, V[1], V[0])"
    arrays = {"I": indices, "V": (2,), "Y": new}
    return function("one_hot", arrays, Nest("one_hot", axes, store), dtype=dtype, dtypes={"I": index_type})


def _check_type(operator: str, index_type: str) -> None:
    require(index_type in INDEX_TYPES, operator, f"places are of type {' or '.join(INDEX_TYPES)}, not {index_type}")


def _inside(index: str, extent: int, kind: str) -> str:
    """A place as one that is there; counted from the end where it is below zero."""
    first, last, whole = (f"T.{kind}({number})" for number in (0, extent - 1, extent))
    return f"T.max({first}, T.min({last}, T.if_then_else({index} < {first}, {index} + {whole}, {index})))"
