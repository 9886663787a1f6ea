"""Pure calls by a library's name: against that library's own results."""

from __future__ import annotations

import ctypes
import ctypes.util
from random import Random

import numpy as np
import pytest

from layoutproof.ir.interp.run import run
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.visit import walk
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.verify.verdict.verdict import Status

HEAD = '@T.prim_func\ndef main(A: T.Buffer((64,), "{}"), B: T.Buffer((64,), "float32")):\n'
LOOP = "    for i in range(64):\n        A[i] = {}\n"


def values(call: str, b: np.ndarray, dtype: str = "float32") -> np.ndarray:
    """What the interpreter makes of a call of `B[i]`."""
    func = loads(HEAD.format(dtype) + LOOP.format(call))
    assert loads(print_func(func)) == func
    return run(func, {"A": np.zeros(64, dtype), "B": b})["A"]


def drawn(seed: int) -> np.ndarray:
    """Floats near halves, and others."""
    rng = Random(seed)
    near = [np.nextafter(np.float32(n / 2), np.float32(rng.choice((-99, 99)))) for n in range(-12, 12)]
    plain = [rng.randint(-(1 << 23), 1 << 23) / 2 for _ in range(20)] + [rng.uniform(-9, 9) for _ in range(20)]
    return np.array([*near, *plain], np.float32)


@pytest.mark.parametrize(
    ("name", "same"),
    [("lround", "int32"), ("llround", "int64"), ("round", "float32"), ("rint", "float32"), ("trunc", "float32")],
)
def test_rounding_is_that_of_the_library(name: str, same: str) -> None:
    """Halves away from zero, or to the even neighbour."""
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    function = library[f"{name}f"]
    function.argtypes = [ctypes.c_float]
    function.restype = ctypes.c_float if same == "float32" else ctypes.c_long
    b = drawn(1)
    found = values(f'T.call_llvm_pure_intrin("{same}", "llvm.{name}", B[i])', b, same)
    assert found.tolist() == [function(float(x)) for x in b]


@pytest.mark.parametrize(
    ("call", "plain"),
    [
        ('T.call_llvm_pure_intrin("float32", "llvm.sqrt", B[i])', "T.sqrt(B[i])"),
        ('T.call_llvm_pure_intrin("float32", "llvm.sqrt.f32", T.uint32(1), B[i])', "T.sqrt(B[i])"),
        ('T.call_llvm_pure_intrin("float32", "llvm.fma", B[i], B[i], B[i])', "T.fma(B[i], B[i], B[i])"),
        ('T.call_pure_extern("float32", "expf", B[i])', "T.exp(B[i])"),
        ('T.call_pure_extern("float32", "fabsf", B[i])', "T.fabs(B[i])"),
        ('T.call_pure_extern("float32", "erff", B[i])', "T.erf(B[i])"),
    ],
)
def test_a_function_under_another_name(call: str, plain: str) -> None:
    """The same program as with the function itself."""
    first, second = (print_func(loads(HEAD.format("float32") + LOOP.format(text))) for text in (call, plain))
    assert first == second


@pytest.mark.parametrize(
    "call",
    [
        'T.call_llvm_pure_intrin("float32", "llvm.sqrt", B[i], B[i])',
        'T.call_llvm_pure_intrin("float32", "llvm.x86.sqrt", B[i])',
        'T.call_llvm_pure_intrin("float32", "sqrt", B[i])',
        'T.call_pure_extern("float32", "exp", B[i])',
        'T.call_pure_extern("float32", "fast_expf", B[i])',
        'T.call_extern("float32", "expf", B[i])',
        'T.call_llvm_intrin("float32", "llvm.sqrt", B[i])',
    ],
)
def test_what_stays_opaque(call: str) -> None:
    """Calls with other arguments, of other types and names, and those that may do something else."""
    func = loads(HEAD.format("float32") + LOOP.format(call))
    assert any(isinstance(node, OpaqueCall) for node in walk(func.body))


def test_lanes() -> None:
    """A vector of them is as many of them."""
    call = 'T.call_llvm_pure_intrin("{}", "llvm.{}", {})'
    for name, dtype in (("sqrt", "float32"), ("lround", "int32"), ("round", "float32")):
        head = HEAD.format(dtype)
        first = loads(head + LOOP.format(call.format(dtype, name, "B[i]")))
        second = loads(head + f"    A[T.Ramp(0, 1, 64)] = {call.format(dtype + 'x64', name, 'B[T.Ramp(0, 1, 64)]')}\n")
        wrong = loads(head + f"    A[T.Ramp(0, 1, 64)] = {call.format(dtype + 'x64', name, 'B[T.Ramp(63, -1, 64)]')}\n")
        assert compare(first, second).status is Status.PROVED
        assert compare(first, wrong).status is Status.REFUTED
