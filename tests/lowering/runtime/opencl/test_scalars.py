"""Numbers on their way to a kernel of a device: every type, by position, by name, and those that no kernel takes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.lowering.codegen.programs import TYPES, function, loop
from tests.shares import one_in

from layoutproof.ir.buffer import make_buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Var
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, Stmt
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.runtime.opencl.build_opencl import build_opencl


def filled(dtype: DType) -> PrimFunc:
    """Three cells that hold a scalar."""
    a, value = make_buffer("A", (3,), dtype), Var("value", dtype)

    def store(i: Var) -> Stmt:
        return BufferStore(a, (i,), value)

    return function("fill", [a], loop("i", 3, store), scalars=[value])


VALUES: dict[str, Any] = {
    "bool": True, "int8": -128, "int16": -32768, "int32": -(1 << 31), "int64": -(1 << 63), "uint8": 255,
    "uint16": 65535, "uint32": (1 << 32) - 1, "uint64": (1 << 64) - 1, "float16": 0.1, "bfloat16": 0.1, "float32": 0.1,
    "float64": 0.1,
}  # fmt: skip


@one_in(23)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_type(dtype: DType) -> None:
    """The largest or most negative number of each type arrives, halves rounded to theirs."""
    kernel = build_opencl(filled(dtype))
    value = VALUES[str(dtype)]
    for found in (kernel(value), kernel(value=value)):
        assert isinstance(found, np.ndarray)
        wanted = (
            np.full(3, value).astype(ml_dtypes.bfloat16)
            if str(dtype) == "bfloat16"
            else np.full(3, value, dtype=found.dtype)
        )
        assert found.tobytes() == wanted.tobytes()


@one_in(4)
@pytest.mark.parametrize(
    ("name", "value"), [("float32", float("nan")), ("float16", float("inf")), ("float64", 5e-324), ("float32", 1e-45)]
)
def test_special_floats(name: str, value: float) -> None:
    """NaN, infinity and subnormals arrive as they are."""
    found = build_opencl(filled(DType.parse(name)))(value)
    assert isinstance(found, np.ndarray)
    assert np.array_equal(found, np.full(3, value, dtype=found.dtype), equal_nan=True)


@pytest.mark.parametrize(
    ("name", "value"), [("int8", 128), ("uint8", -1), ("int32", 2.0), ("float32", "1"), ("bool", 2)]
)
def test_numbers_that_do_not_fit(name: str, value: object) -> None:
    """What C refuses is refused here."""
    kernel = build_opencl(filled(DType.parse(name)), check=False)
    with pytest.raises(LayoutproofError, match="value is") as caught:
        kernel(value)
    assert caught.value.diagnostics[0].code == codes.ARGUMENT_TYPE


def test_bounds_of_scalars() -> None:
    """A kernel built for some sizes refuses others, though OpenCL itself would not."""
    n = Var("n")
    a = make_buffer("A", (n,), "int32")

    def store(i: Var) -> Stmt:
        return BufferStore(a, (i,), i)

    kernel = build_opencl(function("count", [a], loop("i", n, store)), bounds={"n": (2, 8)})
    array = np.zeros(8, dtype=np.int32)
    kernel.raw(array)
    assert array.tolist() == list(range(8))
    with pytest.raises(LayoutproofError, match="2 <= n <= 8"):
        kernel.raw(np.zeros(9, dtype=np.int32))


def test_scalars_are_rounded_once() -> None:
    """What is just past the middle of two numbers of bfloat16 is not first rounded to the middle."""
    found = build_opencl(filled(DType.parse("bfloat16")), check=False)(1 + 2.0**-8 + 2.0**-40)
    assert isinstance(found, np.ndarray) and found.astype(np.float64).tolist() == [1 + 2.0**-7] * 3
