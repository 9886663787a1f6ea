"""Products of matrices, plain and with a transposed operand."""

from __future__ import annotations

from functools import cache

from layoutproof.graph.model import Shape
from layoutproof.graph.operators.page import Nest, function, require
from layoutproof.ir.primfunc import PrimFunc


@cache
def matmul(first: Shape, second: Shape, dtype: str = "float32") -> PrimFunc:
    """`Y[i, j]` is the sum over `p` of `A[i, p] * B[p, j]`. Raises LayoutproofError for shapes that do not fit."""
    require(len(first) == len(second) == 2 and first[1] == second[0], "matmul", f"{list(first)} and {list(second)} have no product")
    return _product("matmul", {"A": first, "B": second, "Y": (first[0], second[1])}, "A[i, p] * B[p, j]", first[1], dtype)


@cache
def dense(data: Shape, weight: Shape, dtype: str = "float32") -> PrimFunc:
    """`Y[i, j]` is the sum over `p` of `X[i, p] * W[j, p]`. Raises LayoutproofError for shapes that do not fit."""
    fits = len(data) == len(weight) == 2 and data[1] == weight[1]
    require(fits, "dense", f"rows of {list(data)} and {list(weight)} have no product")
    return _product("dense", {"X": data, "W": weight, "Y": (data[0], weight[0])}, "X[i, p] * W[j, p]", data[1], dtype)


def _product(name: str, arrays: dict[str, Shape], term: str, length: int, dtype: str) -> PrimFunc:
    rows, columns = arrays["Y"]
    nest = Nest(name, {"i": rows, "j": columns}, f"Y[i, j] = Y[i, j] + {term}", {"p": length}, f"Y[i, j] = T.{dtype}(0)")
    return function(name, arrays, nest, dtype=dtype)
