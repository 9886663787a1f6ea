"""Lowered programs put together by hand, and the values on which code generation is tried."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.dtype import HANDLE, DType
from layoutproof.ir.expr import Expr, ExprLike, Var, const
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import max_finite, round_float
from layoutproof.ir.stmt import Attributes, BufferStore, For, ForKind, Stmt, seq
from layoutproof.lowering.runtime.build_c import build_c

Array = npt.NDArray[Any]

INTEGERS = [DType.parse(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")]
FLOATS = [DType.parse(name) for name in ("float16", "bfloat16", "float32", "float64")]
BOOL = DType.parse("bool")
TYPES = [*INTEGERS, *FLOATS, BOOL]


def numpy_type(dtype: DType) -> np.dtype[Any]:
    """The numpy type of one lane, written out here once more so that a slip in the shipped table shows."""
    if dtype.is_bool:
        return np.dtype(np.bool_)
    found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16 if str(dtype.element) == "bfloat16" else str(dtype.element))
    return found


def function(
    name: str, buffers: Sequence[Buffer], body: Stmt, *, noalias: bool = True, scalars: Sequence[Var] = ()
) -> PrimFunc:
    """A function over buffers, then scalars."""
    handles = tuple(Var(f"{b.name}_handle", HANDLE) for b in buffers)
    attributes = Attributes({"tir.noalias": True}) if noalias else Attributes()
    return PrimFunc(name, (*handles, *scalars), tuple(zip(handles, buffers, strict=True)), body, attributes)


def loop(name: str, extent: ExprLike, body: Callable[[Var], Stmt], kind: ForKind = ForKind.SERIAL) -> For:
    """A loop from 0."""
    end = extent if isinstance(extent, Expr) else const(extent)
    variable = Var(name, end.dtype)
    return For(variable, const(0, end.dtype), end, kind, body(variable))


def pointwise(
    name: str, inputs: Sequence[Buffer], results: Sequence[tuple[str, Callable[[list[Expr]], Expr]]], count: int
) -> PrimFunc:
    """A function that computes, for each result, one value per element of the inputs, in a loop of its own."""
    outputs: list[Buffer] = []
    loops: list[Stmt] = []
    for output_name, compute in results:

        def body(i: Var, output_name: str = output_name, compute: Callable[[list[Expr]], Expr] = compute) -> Stmt:
            value = compute([BufferLoad(b, (i,)) for b in inputs])
            outputs.append(make_buffer(output_name, (count,), value.dtype))
            return BufferStore(outputs[-1], (i,), value)

        loops.append(loop("i", count, body))
    return function(name, [*inputs, *outputs], seq(*loops))


@dataclass(frozen=True)
class Group:
    """One loop of a function of many: its inputs' values with their type, and what is computed of them."""

    name: str
    dtype: DType
    columns: tuple[Sequence[Any], ...]
    compute: Callable[[list[Expr]], Expr]


def run_groups(groups: Sequence[Group]) -> dict[str, Array]:
    """The results of all groups by name, computed by one compiled function: starting a compiler is expensive."""
    buffers: list[Buffer] = []
    arrays: dict[str, Array] = {}
    loops: list[Stmt] = []
    for group in groups:
        count = len(group.columns[0])
        inputs = [make_buffer(f"{group.name}_{k}", (count,), group.dtype) for k in range(len(group.columns))]
        arrays |= {b.name: array_of(column, group.dtype) for b, column in zip(inputs, group.columns, strict=True)}

        def body(i: Var, group: Group = group, inputs: list[Buffer] = inputs, count: int = count) -> Stmt:
            value = group.compute([BufferLoad(b, (i,)) for b in inputs])
            buffers.extend([*inputs, make_buffer(group.name, (count,), value.dtype)])
            return BufferStore(buffers[-1], (i,), value)

        loops.append(loop("i", count, body))
    kernel = build_c(function("groups", buffers, seq(*loops), noalias=False), check=False)
    results = kernel(**arrays)
    found = (results,) if isinstance(results, np.ndarray) else results
    return dict(zip([group.name for group in groups], found, strict=True))


def applied(make: Callable[..., Expr], *first: Any) -> Callable[[list[Expr]], Expr]:
    """What a group computes: `make(*first, *operands)`."""
    return lambda operands: make(*first, *operands)


def integer_edges(dtype: DType) -> list[int]:
    """Extremes, their neighbours, small numbers of both signs and patterns of bits."""
    low, high = dtype.min_int, dtype.max_int
    wanted = {
        low,
        low + 1,
        low // 2,
        -129,
        -8,
        -7,
        -3,
        -2,
        -1,
        0,
        1,
        2,
        3,
        5,
        7,
        8,
        100,
        255,
        high // 2,
        high // 2 + 1,
        high - 1,
        high,
    }
    return sorted(v for v in wanted if low <= v <= high)


def float_edges(dtype: DType) -> list[float]:
    """Zeros, infinities, a NaN, subnormals, the extremes, halves and numbers that round."""
    largest, least = max_finite(dtype), smallest_subnormal(dtype)
    halves = [0.5, 1.0, 1.5, 2.5, 3.0, 7.25, 1 / 3, 255.0, 2049.0, 16777217.0, 1e-5, 3e38, 1e-40, 100.0]
    positive = [0.0, least, 3 * least, largest, math.inf, *(round_float(v, dtype) for v in halves)]
    return [math.nan, *(sign * v for v in dict.fromkeys(positive) for sign in (1.0, -1.0))]


def smallest_subnormal(dtype: DType) -> float:
    """The least positive number of a float type."""
    return {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 5e-324}[str(dtype)]


def edges(dtype: DType) -> list[Any]:
    """Edge values of any type."""
    if dtype.is_bool:
        return [0, 1]
    return list(float_edges(dtype)) if dtype.is_float else list(integer_edges(dtype))


def array_of(values: Sequence[Any], dtype: DType) -> Array:
    """Values as an array of a type; floats must be numbers of it."""
    return (
        np.array(values, dtype=np.float64).astype(numpy_type(dtype))
        if dtype.is_float
        else np.array(values, dtype=numpy_type(dtype))
    )


def widened(array: Array, wide: type[np.float32] | type[np.float64] = np.float64) -> Array:
    """The same numbers in a wider type; patterns that are signalling NaNs make numpy warn, and do not matter here."""
    with np.errstate(invalid="ignore"):
        return array.astype(wide)


def bits_of(array: Array) -> Array:
    """The patterns of an array's elements, all NaNs made one, so that equality is identity of values."""
    if array.dtype.kind in "iub":
        return array
    quiet = array.copy()
    quiet[np.isnan(widened(array))] = np.nan
    return quiet.view(np.dtype(f"u{array.dtype.itemsize}"))


def assert_same(actual: Array, expected: Array, what: str) -> None:
    """Fail, naming the first place, unless two arrays hold the same values bit for bit."""
    different = np.flatnonzero(bits_of(actual) != bits_of(expected))
    assert different.size == 0, (
        f"{what}: element {different[0]} is {actual[different[0]]!r}, not {expected[different[0]]!r}"
    )
