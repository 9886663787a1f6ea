"""Operators that only move elements: other shapes, other orders, parts, and several arrays in one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod

from layoutproof.graph.model import Shape
from layoutproof.graph.operators import page
from layoutproof.graph.operators.convolution import moved
from layoutproof.graph.operators.elementwise import broadcast, repeated
from layoutproof.graph.operators.page import Nest, access, axis_of, function, require, variables
from layoutproof.ir.primfunc import PrimFunc


@cache
def reshape(shape: Shape, new: Shape, dtype: str = "float32") -> PrimFunc:
    """The elements in row-major order under other axes; neighbouring axes that stay together are told apart by quotients and remainders.

    Raises LayoutproofError for another number of elements.
    """
    require(prod(shape) == prod(new), "reshape", f"{list(shape)} has {prod(shape)} elements, {list(new)} has {prod(new)}")
    axes = variables(new)
    indices: list[str] = []
    for before, after in common_groups(shape, new):
        indices += _digits([shape[k] for k in before], _flat([(f"v{k}", new[k]) for k in after]))
    store = f"{access('Y', list(axes))} = {access('X', indices)}"
    return function("reshape", {"X": shape, "Y": new}, Nest("reshape", axes, store), dtype=dtype)


def common_groups(shape: Shape, new: Shape) -> list[tuple[list[int], list[int]]]:
    """Runs of axes of both shapes, the shortest, that have as many elements; axes of extent 1 stay alone where they can."""
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
    """Axis `k` of the result is axis `order[k]` of the operand. Raises LayoutproofError for what is no order of the axes."""
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
        len(rests) == 1 and len({len(s) for s in shapes}) == 1, "concat", f"shapes {[list(s) for s in shapes]} differ beside axis {along}"
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
    require(sum(sizes) == shape[along] and min(sizes) >= 1, "split", f"sizes {list(sizes)} are not the {shape[along]} of axis {along}")
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
    shape: Shape, starts: tuple[int, ...], sizes: tuple[int, ...], steps: tuple[int, ...] | None = None, dtype: str = "float32"
) -> PrimFunc:
    """`Y[i] = X[start + i * step]` on each axis. Raises LayoutproofError for a part that leaves the array."""
    apart = steps if steps is not None else (1,) * len(shape)
    inside = len(starts) == len(sizes) == len(apart) == len(shape) and all(
        size >= 1 and 0 <= start < extent and 0 <= start + (size - 1) * step < extent
        for start, size, step, extent in zip(starts, sizes, apart, shape, strict=True)
    )
    require(inside, "strided_slice", f"{list(sizes)} elements from {list(starts)} by {list(apart)} do not lie in {list(shape)}")
    axes = variables(sizes)
    indices = [moved(name if step == 1 else f"{name} * {step}", start) for name, start, step in zip(axes, starts, apart, strict=True)]
    store = f"{access('Y', list(axes))} = {access('X', indices)}"
    return function("strided_slice", {"X": shape, "Y": sizes}, Nest("strided_slice", axes, store), dtype=dtype)


@cache
def expand(shape: Shape, new: Shape, dtype: str = "float32") -> PrimFunc:
    """The elements repeated over axes of extent 1, and over more axes in front. Raises LayoutproofError for other shapes."""
    require(broadcast("expand", shape, new) == new, "expand", f"{list(shape)} is not repeated to {list(new)}")
    axes = variables(new)
    store = f"{access('Y', list(axes))} = {repeated('X', shape, new)}"
    return function("expand", {"X": shape, "Y": new}, Nest("expand", axes, store), dtype=dtype)


@cache
def tile(shape: Shape, times: tuple[int, ...], dtype: str = "float32") -> PrimFunc:
    """The array one after the other, so many times along each axis. Raises LayoutproofError for other than a number for each axis."""
    require(len(times) == len(shape) and all(k >= 1 for k in times), "tile", f"{list(times)} are not times for each axis of {list(shape)}")
    new = tuple(extent * k for extent, k in zip(shape, times, strict=True))
    axes = variables(new)
    indices = ["0" if extent == 1 else name if k == 1 else f"{name} % {extent}" for name, extent, k in zip(axes, shape, times, strict=True)]
    store = f"{access('Y', list(axes))} = {access('X', indices)}"
    return function("tile", {"X": shape, "Y": new}, Nest("tile", axes, store), dtype=dtype)


@cache
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
    return function("pad", {"X": shape, "Y": new}, Nest("pad", axes, f"{access('Y', list(axes))} = {held}"), dtype=dtype)


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
