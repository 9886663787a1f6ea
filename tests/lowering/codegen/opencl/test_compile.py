"""Generated text before a compiler of OpenCL C: every operator, every helper function, memory that is seen as several
types.
"""

import itertools
import re

import pyopencl as cl
import pytest
from tests.lowering.codegen.opencl.programs import compile_source
from tests.lowering.codegen.programs import function, loop
from tests.lowering.runtime.opencl.sources import default_device
from tests.lowering.small_operators import NAMES, small
from tests.shares import one_in

from layoutproof.ir.buffer import BufferLoad, make_buffer
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Cast, const
from layoutproof.ir.stmt import Allocate, BufferStore, DeclBuffer, seq
from layoutproof.lowering.codegen.c_arithmetic import MATH_NAMES
from layoutproof.lowering.codegen.c_helpers import HELPERS, helper_text
from layoutproof.lowering.codegen.opencl.cl_emit import DOUBLES, emit_opencl
from layoutproof.lowering.codegen.opencl.cl_helpers import (
    OPENCL_RESERVED,
    OWN_HELPERS,
    OpenCLNames,
    find_opencl_helper,
    kernel_name,
    spell,
)
from layoutproof.lowering.schedule.schedule import Schedule

STORED = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
# What only the function around C's statements asks for: memory, checks of arguments, vectors of C's compilers.
_AROUND = re.compile(r"LP_|lp_(?:allocate|overlap|exact|stream|prefetch|copy|transpose)")
USED = sorted({name for name in HELPERS if _AROUND.match(name) is None} | set(OWN_HELPERS))


@one_in(66)
@pytest.mark.parametrize("name", NAMES)
def test_every_operator_compiles(name: str) -> None:
    """An operator as it is written, lowered, gives text that the device's compiler takes without a warning."""
    compile_source(emit_opencl(Schedule(small(name)).lower()))


@one_in(4)
def test_every_helper_compiles() -> None:
    """All the functions that an expression may ask for are OpenCL C, with nothing of C's left in them."""
    text = helper_text(USED, find_opencl_helper)
    assert not re.search(r"\bu?int\d+_t\b|memcpy|INT64_C|\b(?:exp|sqrt|fabs)f\b", text)
    kernel = (
        f"#pragma OPENCL EXTENSION {DOUBLES} : enable\n{text}\n__kernel void f(__global int *a) {{\n    a[0] = 1;\n}}\n"
    )
    cl.Program(cl.Context([default_device().handle]), kernel).build(["-cl-std=CL1.2", "-Werror"])


@one_in(28)
@pytest.mark.parametrize("dtype", STORED)
def test_memory_of_several_types_goes_through_bytes(dtype: str) -> None:
    """A buffer that is also seen as another type is read and written byte by byte, in parameters and in allocations."""
    other = "uint8" if dtype == "int8" else "int8"
    a, t = make_buffer("A", (4,), dtype), make_buffer("t", (4,), dtype)
    views = [make_buffer(f"{b.name}_bytes", (4,), other, data=b.data) for b in (a, t)]
    body = seq(
        loop("i", 4, lambda i: BufferStore(t, (i,), BufferLoad(a, (i,)))),
        loop("i", 4, lambda i: BufferStore(views[0], (i,), BufferLoad(views[1], (i,)))),
    )
    source = emit_opencl(function("f", [a], Allocate(t, DeclBuffer(views[0], DeclBuffer(views[1], body)))))
    compile_source(source)
    assert "lp_load_" in source.text and "lp_store_" in source.text


@one_in(4)
def test_doubles_are_an_extension() -> None:
    """A kernel that computes in double asks for it, one that does not does not."""
    a, b = make_buffer("A", (4,), "float64"), make_buffer("B", (4,), "float32")
    narrow = Cast(DType.parse("float32"), BufferLoad(a, (const(0),)))
    source = emit_opencl(function("f", [a, b], BufferStore(b, (const(0),), narrow)))
    compile_source(source)
    assert source.extensions == (DOUBLES,) and f"#pragma OPENCL EXTENSION {DOUBLES} : enable" in source.text
    assert (
        emit_opencl(function("f", [b], BufferStore(b, (const(0),), const(1.0, DType.parse("float32"))))).extensions
        == ()
    )


def test_spelling() -> None:
    """C's types, constants and functions in OpenCL's words; other words are left alone."""
    assert spell("(int64_t)expf(x) + INT64_C(-3) * UINT64_C(7)") == "(long)exp(x) + (-3l) * 7ul"
    assert spell("const uint16_t int32_tx = INT64_MIN;") == "const ushort int32_tx = LONG_MIN;"
    assert {spell(f"{name}f(x)") for name in ("exp", "tanh", "round")} == {"exp(x)", "tanh(x)", "round(x)"}


def test_no_name_is_a_word() -> None:
    """What a program calls its variables, buffers and functions is none of the words that are spelled, or that the
    language has.
    """
    names = OpenCLNames()
    for word in itertools.chain(
        OPENCL_RESERVED, ("as_int", "convert_int_rte", "vload4", "native_exp", "CLK_X", "get_image_width")
    ):
        declared = names.declare(word)
        assert declared != word and spell(declared) == declared
        assert kernel_name(word) != word
    assert names.declare("assets") == "assets" and names.declare("clipped") == "clipped"


def test_functions_of_floats_have_one_name() -> None:
    """No function of C's library with an f suffix reaches OpenCL C, which has one name for float and double."""
    spelled = {spell(f"{name}f") for name in MATH_NAMES if f"{name}f" in OPENCL_RESERVED}
    assert spelled <= set(MATH_NAMES)
