"""Operators that reduce axes: sums, products, means, extremes and their places, norms, products of matrices, einsum."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import prod
from string import ascii_letters
from typing import Final

from layoutproof.graph.model.graph import Shape
from layoutproof.graph.operators.elementwise import broadcast
from layoutproof.graph.operators.operator_text import (
    FLOATS,
    Nest,
    access,
    axis_of,
    function,
    highest,
    lowest,
    number,
    refused,
    require,
    variables,
)
from layoutproof.ir.dtype import DType
from layoutproof.ir.primfunc import PrimFunc


@dataclass(frozen=True, slots=True)
class Kind:
    """A reduction: how an element is added, the start, and what becomes of the whole of `n` elements."""

    update: str
    start: str
    last: str | None = None


REDUCTIONS: Final[Mapping[str, Kind]] = {
    "sum": Kind("{acc} + {x}", "zero"),
    "max": Kind("T.max({acc}, {x})", "lowest"),
    "min": Kind("T.min({acc}, {x})", "highest"),
    "prod": Kind("{acc} * {x}", "one"),
    "l1": Kind("{acc} + T.abs({x})", "zero"),
    "sum_square": Kind("{acc} + {x} * {x}", "zero"),
    "mean": Kind("{acc} + {x}", "zero", "{acc} / {n}"),
    "l2": Kind("{acc} + {x} * {x}", "zero", "T.sqrt({acc})"),
    "log_sum": Kind("{acc} + {x}", "zero", "T.log({acc})"),
    "any": Kind("{acc} or {x}", "zero"),
    "all": Kind("{acc} and {x}", "one"),
    "log_sum_exp": Kind("{acc} + T.exp({x} - {top})", "zero", "T.log({acc}) + {top}"),
}

_STARTS: Final[Mapping[str, Callable[[str], str]]] = {
    "zero": partial(number, 0),
    "one": partial(number, 1),
    "lowest": lowest,
    "highest": highest,
}


@cache
def reduce(kind: str, shape: Shape, axes: tuple[int, ...], keep: bool = False, dtype: str = "float32") -> PrimFunc:
    """One element for each place of the axes that stay; as `keep`, the others stay too, with extent 1. Kinds: those of
    `REDUCTIONS`.

    Raises LayoutproofError for another kind, for axes that are not there, and for a type that the kind is not for.
    """
    known = REDUCTIONS.get(kind)
    if known is None:
        raise refused(kind, f"there is no such reduction; available: {', '.join(REDUCTIONS)}")
    gone = {axis_of(kind, axis, len(shape)) for axis in axes}
    require(len(gone) == len(axes) > 0, kind, f"the axes {list(axes)} are not different axes")
    truth = kind in ("any", "all")
    require(
        truth == (dtype == "bool") and (dtype in FLOATS or known.last is None),
        kind,
        f"it is not for elements of type {dtype}",
    )
    result = tuple(1 if axis in gone else extent for axis, extent in enumerate(shape) if keep or axis not in gone)
    whole = variables(shape)
    reduced = {f"v{axis}": shape[axis] for axis in sorted(gone)}
    spatial = {name: extent for name, extent in whole.items() if name not in reduced}
    place = ["0" if axis in gone else f"v{axis}" for axis in range(len(shape)) if keep or axis not in gone]
    accumulated = "S" if known.last is not None else "Y"
    into, x, top = access(accumulated, place), access("X", list(whole)), access("L", place)
    nests, temporaries = list[Nest](), dict[str, Shape]()
    if "{top}" in known.update:
        nests.append(Nest("largest", spatial, f"{top} = T.max({top}, {x})", reduced, f"{top} = {lowest(dtype)}"))
        temporaries["L"] = result
        # The difference of two infinities is none.
        top = f'T.Select(T.abs({top}) < T.{dtype}("inf"), {top}, {number(0, dtype)})'
    start = _STARTS[known.start](dtype)
    block = f"{kind}_of" if known.last is None else "total"
    nests.append(
        Nest(block, spatial, f"{into} = {known.update.format(acc=into, x=x, top=top)}", reduced, f"{into} = {start}")
    )
    if known.last is not None:
        count = number(prod(reduced.values()), dtype)
        nests.append(Nest(kind, spatial, f"{access('Y', place)} = {known.last.format(acc=into, n=count, top=top)}"))
        temporaries["S"] = result
    return function(kind, {"X": shape, "Y": result}, *nests, dtype=dtype, temporaries=temporaries)


@cache
def cumulative(shape: Shape, axis: int, exclusive: bool, backwards: bool, dtype: str = "float32") -> PrimFunc:
    """The sum of all elements up to each one along an axis, without that one as `exclusive`, from the end as
    `backwards`.

    Raises LayoutproofError for an axis that is not there.
    """
    along = axis_of("cumulative", axis, len(shape))
    axes = variables(shape)
    here = list(axes)[along]
    later, earlier = ("q", here) if backwards else (here, "q")
    counted = f"{earlier} {'<' if exclusive else '<='} {later}"
    x = access("X", ["q" if k == along else name for k, name in enumerate(axes)])
    y, zero = access("Y", list(axes)), number(0, dtype)
    store = f"{y} = {y} + T.if_then_else({counted}, {x}, {zero})"
    return function(
        "cumulative",
        {"X": shape, "Y": shape},
        Nest("cumulative", axes, store, {"q": shape[along]}, f"{y} = {zero}"),
        dtype=dtype,
    )


_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


@cache
def matmul(first: Shape, second: Shape, dtype: str = "float32") -> PrimFunc:
    """`Y[..., i, j]` is the sum over `p` of `A[..., i, p] * B[..., p, j]`; axes in front are repeated as numpy has it,
    and an operand with one axis is a row or a column that the result lacks. Raises LayoutproofError for shapes that do
    not fit.
    """
    require(len(first) >= 1 and len(second) >= 1, "matmul", f"{list(first)} and {list(second)} have no product")
    fits = first[-1] == second[-2 if len(second) > 1 else 0]
    require(fits, "matmul", f"{list(first)} and {list(second)} have no product")
    many = broadcast("matmul", first[:-2], second[:-2])
    axes = {f"b{k}": extent for k, extent in enumerate(many)}
    left = [*_repeated(list(axes), many, first[:-2]), *(["i"] if len(first) > 1 else []), "p"]
    right = [*_repeated(list(axes), many, second[:-2]), "p", *(["j"] if len(second) > 1 else [])]
    if len(first) > 1:
        axes["i"] = first[-2]
    if len(second) > 1:
        axes["j"] = second[-1]
    arrays = {"A": first, "B": second, "Y": tuple(axes.values())}
    return _product("matmul", arrays, axes, f"{access('A', left)} * {access('B', right)}", {"p": first[-1]}, dtype)


@cache
def dense(data: Shape, weight: Shape, dtype: str = "float32") -> PrimFunc:
    """`Y[i, j]` is the sum over `p` of `X[i, p] * W[j, p]`. Raises LayoutproofError for shapes that do not fit."""
    fits = len(data) == len(weight) == 2 and data[1] == weight[1]
    require(fits, "dense", f"rows of {list(data)} and {list(weight)} have no product")
    axes = {"i": data[0], "j": weight[0]}
    return _product(
        "dense", {"X": data, "W": weight, "Y": (data[0], weight[0])}, axes, "X[i, p] * W[j, p]", {"p": data[1]}, dtype
    )


@cache
def gemm(first: Shape, second: Shape, turned: tuple[bool, bool], dtype: str = "float32") -> PrimFunc:
    """The product of two matrices, transposed as `turned` says. Raises LayoutproofError for shapes that do not fit."""
    require(len(first) == len(second) == 2, "gemm", f"{list(first)} and {list(second)} are no two matrices")
    (rows, length), (other, columns) = (
        shape[::-1] if turn else shape for shape, turn in zip((first, second), turned, strict=True)
    )
    if length == other and not turned[0]:
        return dense(first, second, dtype) if turned[1] else matmul(first, second, dtype)
    require(length == other, "gemm", f"{list(first)} and {list(second)}, transposed: {list(turned)}, have no product")
    term = f"A[p, i] * {'B[j, p]' if turned[1] else 'B[p, j]'}"
    arrays = {"A": first, "B": second, "Y": (rows, columns)}
    return _product("gemm", arrays, {"i": rows, "j": columns}, term, {"p": length}, dtype)


@cache
def einsum(equation: str, shapes: tuple[Shape, ...], dtype: str = "float32") -> PrimFunc:
    """A sum of products as Einstein wrote it, `bij,bjk->bik`; `...` stands for axes in front that are repeated as numpy
    has it.

    Raises LayoutproofError for an equation that is none, or that the shapes do not fit.
    """
    inputs, output = _terms(equation, shapes)
    extents: dict[str, int] = {}
    for letters, shape in zip(inputs, shapes, strict=True):
        require(len(letters) == len(shape), "einsum", f"{''.join(letters)} of {equation} does not fit {list(shape)}")
        for letter, extent in zip(letters, shape, strict=True):
            known = extents.setdefault(letter, extent)
            extents[letter] = max(known, extent)
            require(
                1 in (known, extent) or known == extent, "einsum", f"{letter} of {equation} is {known} and {extent}"
            )
    names = {letter: f"v{k}" for k, letter in enumerate(dict.fromkeys([*output, *extents]))}
    factors = []
    for operand, (letters, shape) in enumerate(zip(inputs, shapes, strict=True)):
        places = [
            names[letter] if extent == extents[letter] else "0" for letter, extent in zip(letters, shape, strict=True)
        ]
        factors.append(access(f"X{operand}", places))
    spatial = {names[letter]: extents[letter] for letter in output}
    reduced = {names[letter]: extent for letter, extent in extents.items() if letter not in output}
    arrays = {**{f"X{number}": shape for number, shape in enumerate(shapes)}, "Y": tuple(spatial.values())}
    return _product("einsum", arrays, spatial, " * ".join(factors), reduced, dtype)


def _terms(equation: str, shapes: Sequence[Shape]) -> tuple[list[list[str]], list[str]]:
    """A letter for each axis of each operand and the result; axes of `...` get characters of their own."""
    plain = equation.replace(" ", "")
    left, arrow, right = plain.partition("->")
    inputs = left.split(",")
    fits = len(inputs) == len(shapes) and all(_TERM.fullmatch(term) for term in (*inputs, right))
    require(fits, "einsum", f"{equation!r} is no equation for {len(shapes)} operands")
    ranks = [len(shape) - len(term.replace(".", "")) for term, shape in zip(inputs, shapes, strict=True)]
    most = max((rank for term, rank in zip(inputs, ranks, strict=True) if "." in term), default=0)
    require(
        min(ranks) >= 0, "einsum", f"{equation!r} has more axes than its operands {[list(shape) for shape in shapes]}"
    )
    found = [_letters(term, rank, most) for term, rank in zip(inputs, ranks, strict=True)]
    if arrow:
        output = _letters(right, most, most)
    else:
        every = [letter for letters in found for letter in letters if letter in ascii_letters]
        output = [*(str(k) for k in range(most)), *sorted(letter for letter in set(every) if every.count(letter) == 1)]
    held = {letter for letters in found for letter in letters}
    require(
        len(set(output)) == len(output) and set(output) <= held,
        "einsum",
        f"the result of {equation!r} has axes that there are not",
    )
    return found, output


def _letters(term: str, rank: int, most: int) -> list[str]:
    """The letters of a term; its `...` are the last `rank` of `most` axes."""
    front, dots, back = term.partition("...")
    return [*front, *(str(k) for k in range(most - rank, most) if dots), *back]


def _repeated(names: Sequence[str], whole: Shape, part: Shape) -> list[str]:
    """The indices of an operand whose axes are the last of some, and 0 where it is repeated."""
    missing = len(whole) - len(part)
    return ["0" if extent == 1 and whole[missing + k] != 1 else names[missing + k] for k, extent in enumerate(part)]


def _product(
    name: str, arrays: Mapping[str, Shape], axes: Mapping[str, int], term: str, reduced: Mapping[str, int], dtype: str
) -> PrimFunc:
    """A sum of terms over the reduced axes; where there are none, the one term."""
    into = access("Y", list(axes))
    if not reduced:
        return function(name, arrays, Nest(name, axes, f"{into} = {term}"), dtype=dtype)
    return function(
        name, arrays, Nest(name, axes, f"{into} = {into} + {term}", reduced, f"{into} = T.{dtype}(0)"), dtype=dtype
    )


EXTREMES: Final = ("argmax", "argmin")


@cache
def arg_extreme(
    kind: str, shape: Shape, axis: int, keep: bool = False, last: bool = False, dtype: str = "float32"
) -> PrimFunc:
    """The place along an axis, as an int64, of the largest element (`argmax`) or the smallest (`argmin`): the first, or
    as `last` the last.

    A NaN is taken before any number. As `keep` the axis stays, with extent 1. Raises LayoutproofError for another kind,
    and for an axis that is not there.
    """
    if kind not in EXTREMES:
        raise refused(kind, f"there is no such search; available: {', '.join(EXTREMES)}")
    along = axis_of(kind, axis, len(shape))
    whole = variables(shape)
    name = f"v{along}"
    spatial = {each: extent for each, extent in whole.items() if each != name}
    place = ["0" if each == name else each for each in whole if keep or each != name]
    largest, real = kind == "argmax", DType.parse(dtype).is_float
    x, extreme, y = access("X", list(whole)), access("E", list(spatial)), access("Y", place)
    better = ("T.maximum" if real else "T.max") if largest else ("T.minimum" if real else "T.min")
    start = lowest(dtype) if largest else highest(dtype)
    found = f"{x} == {extreme}" + (f" or {x} != {x}" if real else "")
    none, nearer = ("T.int64(-1)", "T.max") if last else ('T.max_value("int64")', "T.min")
    nests = (
        Nest("extreme", spatial, f"{extreme} = {better}({extreme}, {x})", {name: shape[along]}, f"{extreme} = {start}"),
        Nest(
            "place",
            spatial,
            f'{y} = {nearer}({y}, T.Select({found}, T.Cast("int64", {name}), {none}))',
            {name: shape[along]},
            f"{y} = {none}",
        ),
    )
    result = tuple(1 if k == along else extent for k, extent in enumerate(shape) if keep or k != along)
    outer = tuple(spatial.values())
    return function(
        kind, {"X": shape, "Y": result}, *nests, dtype=dtype, temporaries={"E": outer}, dtypes={"Y": "int64"}
    )
