"""Operators that take elements by a list of places: known ones, which only move, and places that are data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from layoutproof.graph.model import Shape
from layoutproof.graph.operators.convolution import moved
from layoutproof.graph.operators.page import Nest, access, axis_of, function, require, variables
from layoutproof.ir.primfunc import PrimFunc

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

    Places below zero count from the end; others that are not there are taken as the nearest that is. Raises LayoutproofError for other
    types of places.
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
def gather_elements(shape: Shape, indices: Shape, axis: int, dtype: str = "float32", index_type: str = "int64") -> PrimFunc:
    """`Y[a, i, b] = X[a, I[a, i, b], b]`. Raises LayoutproofError for shapes that differ elsewhere, and for other types of places."""
    along = axis_of("gather_elements", axis, len(shape))
    _check_type("gather_elements", index_type)
    fits = len(shape) == len(indices) and all(k == along or a >= b for k, (a, b) in enumerate(zip(shape, indices, strict=True)))
    require(fits, "gather_elements", f"places of shape {list(indices)} do not fit {list(shape)}")
    axes = variables(indices)
    names = list(axes)
    index = _inside(access("I", names), shape[along], index_type)
    store = f"{access('Y', names)} = {access('X', [index if k == along else name for k, name in enumerate(names)])}"
    arrays = {"X": shape, "I": indices, "Y": indices}
    return function("gather_elements", arrays, Nest("gather_elements", axes, store), dtype=dtype, dtypes={"I": index_type})


@cache
def gather_nd(shape: Shape, indices: Shape, batch: int, dtype: str = "float32", index_type: str = "int64") -> PrimFunc:
    """`Y[b, i, r] = X[b, I[b, i, 0], I[b, i, 1], ..., r]`, with `batch` axes `b`, and `r` the axes that no place is given for.

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

    Places below zero count from the end. Raises LayoutproofError for an axis that is not there, and for other types of places.
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
