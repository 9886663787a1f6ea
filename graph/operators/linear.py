"""Products of matrices: plain, with transposed operands, many at once, and any sum of products that indices can say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from string import ascii_letters

from layoutproof.graph.model import Shape
from layoutproof.graph.operators.elementwise import broadcast
from layoutproof.graph.operators.page import Nest, access, function, require
from layoutproof.ir.primfunc import PrimFunc

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


@cache
def matmul(first: Shape, second: Shape, dtype: str = "float32") -> PrimFunc:
    """`Y[..., i, j]` is the sum over `p` of `A[..., i, p] * B[..., p, j]`; axes in front are repeated as numpy has it, and an operand with
    one axis is a row or a column that the result lacks. Raises LayoutproofError for shapes that do not fit.
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
    return _product("dense", {"X": data, "W": weight, "Y": (data[0], weight[0])}, axes, "X[i, p] * W[j, p]", {"p": data[1]}, dtype)


@cache
def gemm(first: Shape, second: Shape, turned: tuple[bool, bool], dtype: str = "float32") -> PrimFunc:
    """The product of two matrices, each of them transposed where `turned` says so. Raises LayoutproofError for shapes that do not fit."""
    require(len(first) == len(second) == 2, "gemm", f"{list(first)} and {list(second)} are no two matrices")
    (rows, length), (other, columns) = (shape[::-1] if turn else shape for shape, turn in zip((first, second), turned, strict=True))
    if length == other and not turned[0]:
        return dense(first, second, dtype) if turned[1] else matmul(first, second, dtype)
    require(length == other, "gemm", f"{list(first)} and {list(second)}, transposed: {list(turned)}, have no product")
    term = f"A[p, i] * {'B[j, p]' if turned[1] else 'B[p, j]'}"
    arrays = {"A": first, "B": second, "Y": (rows, columns)}
    return _product("gemm", arrays, {"i": rows, "j": columns}, term, {"p": length}, dtype)


@cache
def einsum(equation: str, shapes: tuple[Shape, ...], dtype: str = "float32") -> PrimFunc:
    """A sum of products as Einstein wrote it, `bij,bjk->bik`; `...` stands for axes in front that are repeated as numpy has it.

    Raises LayoutproofError for an equation that is none, or that the shapes do not fit.
    """
    inputs, output = _terms(equation, shapes)
    extents: dict[str, int] = {}
    for letters, shape in zip(inputs, shapes, strict=True):
        require(len(letters) == len(shape), "einsum", f"{''.join(letters)} of {equation} does not fit {list(shape)}")
        for letter, extent in zip(letters, shape, strict=True):
            known = extents.setdefault(letter, extent)
            extents[letter] = max(known, extent)
            require(1 in (known, extent) or known == extent, "einsum", f"{letter} of {equation} is {known} and {extent}")
    names = {letter: f"v{k}" for k, letter in enumerate(dict.fromkeys([*output, *extents]))}
    factors = []
    for number, (letters, shape) in enumerate(zip(inputs, shapes, strict=True)):
        places = [names[letter] if extent == extents[letter] else "0" for letter, extent in zip(letters, shape, strict=True)]
        factors.append(access(f"X{number}", places))
    spatial = {names[letter]: extents[letter] for letter in output}
    reduced = {names[letter]: extent for letter, extent in extents.items() if letter not in output}
    arrays = {**{f"X{number}": shape for number, shape in enumerate(shapes)}, "Y": tuple(spatial.values())}
    return _product("einsum", arrays, spatial, " * ".join(factors), reduced, dtype)


def _terms(equation: str, shapes: Sequence[Shape]) -> tuple[list[list[str]], list[str]]:
    """A letter for each axis of each operand, and of the result; those that `...` stands for get characters of their own."""
    plain = equation.replace(" ", "")
    left, arrow, right = plain.partition("->")
    inputs = left.split(",")
    fits = len(inputs) == len(shapes) and all(_TERM.fullmatch(term) for term in (*inputs, right))
    require(fits, "einsum", f"{equation!r} is no equation for {len(shapes)} operands")
    ranks = [len(shape) - len(term.replace(".", "")) for term, shape in zip(inputs, shapes, strict=True)]
    most = max((rank for term, rank in zip(inputs, ranks, strict=True) if "." in term), default=0)
    require(min(ranks) >= 0, "einsum", f"{equation!r} has more axes than its operands {[list(shape) for shape in shapes]}")
    found = [_letters(term, rank, most) for term, rank in zip(inputs, ranks, strict=True)]
    if arrow:
        output = _letters(right, most, most)
    else:
        every = [letter for letters in found for letter in letters if letter in ascii_letters]
        output = [*(str(k) for k in range(most)), *sorted(letter for letter in set(every) if every.count(letter) == 1)]
    held = {letter for letters in found for letter in letters}
    require(len(set(output)) == len(output) and set(output) <= held, "einsum", f"the result of {equation!r} has axes that there are not")
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
    return function(name, arrays, Nest(name, axes, f"{into} = {into} + {term}", reduced, f"{into} = T.{dtype}(0)"), dtype=dtype)
