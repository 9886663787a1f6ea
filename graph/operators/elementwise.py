"""Operators that compute each element from the elements at one place, with broadcasting as numpy has it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from layoutproof.graph.model import Shape
from layoutproof.graph.operators.page import Nest, access, function, refused, variables
from layoutproof.ir.primfunc import PrimFunc

UNARY: Final[Mapping[str, str]] = {
    "relu": "T.max({a}, T.{dtype}(0))",
    "sigmoid": "T.sigmoid({a})",
    "tanh": "T.tanh({a})",
    "exp": "T.exp({a})",
    "log": "T.log({a})",
    "sqrt": "T.sqrt({a})",
    "abs": "T.abs({a})",
    "negative": "T.{dtype}(0) - {a}",
}
BINARY: Final[Mapping[str, str]] = {
    "add": "{a} + {b}",
    "subtract": "{a} - {b}",
    "multiply": "{a} * {b}",
    "divide": "{a} / {b}",
    "maximum": "T.max({a}, {b})",
    "minimum": "T.min({a}, {b})",
}


@cache
def unary(kind: str, shape: Shape, dtype: str = "float32") -> PrimFunc:
    """`Y[i] = kind(X[i])` for a kind of `UNARY`. Raises LayoutproofError for another one."""
    if kind not in UNARY:
        raise refused(kind, f"there is no such operator of one operand; there are {', '.join(UNARY)}")
    axes = variables(shape)
    value = UNARY[kind].format(a=access("X", list(axes)), dtype=dtype)
    return function(kind, {"X": shape, "Y": shape}, Nest(kind, axes, f"{access('Y', list(axes))} = {value}"), dtype=dtype)


@cache
def binary(kind: str, first: Shape, second: Shape, dtype: str = "float32") -> PrimFunc:
    """`Y = kind(A, B)` for a kind of `BINARY`; axes of extent 1, and axes that are missing in front, are repeated.

    Raises LayoutproofError for another kind, and for shapes that do not go together.
    """
    if kind not in BINARY:
        raise refused(kind, f"there is no such operator of two operands; there are {', '.join(BINARY)}")
    shape = broadcast(kind, first, second)
    axes = variables(shape)
    operands = {"a": repeated("A", first, shape), "b": repeated("B", second, shape)}
    store = f"{access('Y', list(axes))} = {BINARY[kind].format(**operands)}"
    return function(kind, {"A": first, "B": second, "Y": shape}, Nest(kind, axes, store), dtype=dtype)


def broadcast(operator: str, first: Shape, second: Shape) -> Shape:
    """The common shape. Raises LayoutproofError where there is none."""
    rank = max(len(first), len(second))
    longer = [(1,) * (rank - len(shape)) + shape for shape in (first, second)]
    if any(a != b and 1 not in (a, b) for a, b in zip(*longer, strict=True)):
        raise refused(operator, f"shapes {list(first)} and {list(second)} do not go together")
    return tuple(max(a, b) for a, b in zip(*longer, strict=True))


def repeated(array: str, shape: Shape, whole: Shape) -> str:
    """The element of an array that is repeated over a larger shape."""
    missing = len(whole) - len(shape)
    indices = ["0" if extent == 1 and whole[missing + k] != 1 else f"v{missing + k}" for k, extent in enumerate(shape)]
    return access(array, indices)
