"""Calls that have no meaning of their own are read and printed: of TVM's table, and of the instructions of devices."""

from __future__ import annotations

import pytest

import layoutproof as lp
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import BOOL, FLOAT32, HANDLE, INT32
from layoutproof.ir.intrinsics import DEVICE_NAMESPACES, OpaqueCall
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.visit import walk

HEAD = '@T.prim_func\ndef f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "uint32")):\n    '


def read(statement: str) -> PrimFunc:
    """A function of one statement, which is the same when it is printed and read."""
    func = lp.loads(HEAD + statement + "\n")
    assert lp.loads(print_func(func)) == func
    return func


def call(statement: str) -> OpaqueCall:
    """The first call in a statement."""
    return next(node for node in walk(read(statement).body) if isinstance(node, OpaqueCall))


CALLS = {
    "T.metal.simdgroup_load(A.data, 0, B.data, 8, 8, 8, T.bool(False))": ("metal.simdgroup_load", HANDLE),
    "T.ptx.cp.async_.wait_group(0)": ("ptx.cp.async_.wait_group", HANDLE),
    'T.ptx_legacy.ldmatrix("float16", T.bool(True), 4, ".b16", A.data, 0, B.data, 0)': ("ptx_legacy.ldmatrix", HANDLE),
    'T.evaluate(T.cuda.half2float(B[0], dtype="float32"))': ("cuda.half2float", FLOAT32),
    "A[0] = T.tvm_warp_shuffle_down(B[0], A[0], 16, 32, 32)": ("tvm_warp_shuffle_down", FLOAT32),
    'A[0] = T.tvm_warp_shuffle_down("float32", B[0], A[0], 16, 32, 32)': ("tvm_warp_shuffle_down", FLOAT32),
    'T.evaluate(T.tvm_struct_get(A.data, 0, 5, "int32"))': ("tvm_struct_get", INT32),
    'T.evaluate(T.tvm_struct_get("int32", A.data, 0, 5))': ("tvm_struct_get", INT32),
    "T.evaluate(T.isnullptr(A.data))": ("isnullptr", BOOL),
    "T.ret(T.int32(0))": ("ret", INT32),
    "T.start_profile_intrinsic(3)": ("start_profile_intrinsic", HANDLE),
}


@pytest.mark.parametrize("statement", CALLS)
def test_a_call_is_kept(statement: str) -> None:
    """With its name, its arguments and its type."""
    found = call(statement)
    assert (found.function, found.dtype) == CALLS[statement]


@pytest.mark.parametrize("namespace", sorted(DEVICE_NAMESPACES))
def test_every_device_has_its_instructions(namespace: str) -> None:
    """Whatever stands behind its name."""
    assert call(f"T.{namespace}.some.thing(A.data, 1)").function == f"{namespace}.some.thing"


def test_what_allocate_names_is_a_pointer_among_arguments() -> None:
    """TVM uses the name of an allocation so."""
    func = read('S = T.allocate([4], "float32", "shared")\n    T.ptx_cp_async("float32", S, 0, A.data, 0, 16)')
    assert next(node for node in walk(func.body) if isinstance(node, OpaqueCall)).arguments[0].dtype == HANDLE


def test_a_buffer_may_be_written_small() -> None:
    """`T.buffer` is what TVM up to 0.20 calls `T.Buffer`, too."""
    text = (
        '@T.prim_func\ndef f(A: {0}(4, "float32")):\n    B = {0}((2, 2), "float32", data=A.data)\n    B[0, 0] = 1.0\n'
    )
    assert lp.loads(text.format("T.buffer")) == lp.loads(text.format("T.Buffer"))


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("T.metall.simdgroup_load(A.data)", "`T.metall.simdgroup_load` is not known"),
        ("T.simdgroup_load(A.data)", "`T.simdgroup_load` is not known"),
        ("metal.simdgroup_load(A.data)", "`metal.simdgroup_load` is not known"),
        ("T.metal.simdgroup_load(A.data, size=3)", "has no argument `size`"),
        ("A[0] = T.tvm_warp_shuffle()", "takes its data type first"),
    ],
)
def test_what_is_no_call_of_a_device_is_an_error(statement: str, said: str) -> None:
    """It is not kept as something unknown."""
    with pytest.raises(LayoutproofError, match="LP1") as caught:
        read(statement)
    assert said in str(caught.value)
