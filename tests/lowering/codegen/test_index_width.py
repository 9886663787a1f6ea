"""32-bit indices only where everything is shown to fit: at the border from both sides, by what the text computes and by
running it.
"""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.lowering.codegen.plain_c import compile_c, write_source
from tests.lowering.codegen.programs import function, loop
from tests.shares import one_in

from layoutproof.ir.buffer import BufferLoad, make_buffer
from layoutproof.ir.dtype import FLOAT32, INT64
from layoutproof.ir.expr import IntImm, Var, const
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore
from layoutproof.lowering.codegen.c import emit_c
from layoutproof.lowering.runtime.build_c import build_c

BORDER = 2**31
STRIDE = 2**26


def every(stride: int, offset: int = 0, *, noalias: bool = False) -> PrimFunc:
    """B[i] is A[i * stride + offset], for n elements; A has n * stride."""
    n = Var("n", INT64)
    a, b = make_buffer("A", (n * stride,), "int8"), make_buffer("B", (n,), "int8")
    return function(
        "every",
        [a, b],
        loop("i", n, lambda i: BufferStore(b, (i,), BufferLoad(a, (i * stride + offset,)))),
        noalias=noalias,
    )


@pytest.mark.parametrize("dtype", ["int8", "float64"])
@pytest.mark.parametrize(
    ("largest", "bits"), [(BORDER - 2, 32), (BORDER - 1, 32), (BORDER, 64), (BORDER + 1, 64), (2**40, 64)]
)
def test_one_symbolic_axis(largest: int, bits: int, dtype: str) -> None:
    """The loop's end, one more than its last index, decides; the bytes of an element do not."""
    n = Var("n", INT64)
    a = make_buffer("A", (n,), dtype)
    func = function(
        "fill",
        [a],
        loop("i", n, lambda i: BufferStore(a, (i,), const(1, a.dtype) if dtype == "int8" else const(1.0, a.dtype))),
    )
    source = emit_c(func, bounds={"n": (1, largest)})
    assert source.index_bits == bits
    assert f"int{bits}_t i = 0" in source.text


@pytest.mark.parametrize(
    ("rows", "columns", "bits"), [(46340, 46341, 32), (46341, 46341, 64), (2**16, 2**15, 32), (2**16, 2**15 + 1, 64)]
)
def test_products_of_symbols(rows: int, columns: int, bits: int) -> None:
    """Row times width plus column, over all that the bounds allow."""
    n, m = Var("n", INT64), Var("m", INT64)
    a = make_buffer("A", (n * m,), "float32")
    body = loop("i", n, lambda i: loop("j", m, lambda j: BufferStore(a, (i * m + j,), const(1.0, FLOAT32))))
    source = emit_c(function("fill", [a], body), bounds={"n": (1, rows), "m": (1, columns)})
    assert source.index_bits == bits, source.text


def test_an_intermediate_value_counts() -> None:
    """An index that is small, computed by way of a large product, is computed in 64 bits."""
    n = Var("n", INT64)
    a, b = make_buffer("A", (n,), "float32"), make_buffer("B", (n,), "float32")
    body = loop("i", n, lambda i: BufferStore(b, (i,), BufferLoad(a, ((i * STRIDE) // STRIDE,))))
    assert emit_c(function("detour", [a, b], body), bounds={"n": (1, 31)}).index_bits == 32
    assert emit_c(function("detour", [a, b], body), bounds={"n": (1, 34)}).index_bits == 64


def test_symbols_without_bounds_are_64_bits() -> None:
    """A symbol of 64 bits, or a product of two of 32, may be anything that its type holds."""
    assert emit_c(every(1)).index_bits == 64
    n, m = Var("n"), Var("m")
    a = make_buffer("A", (n * m,), "int8")
    body = loop("i", n, lambda i: loop("j", m, lambda j: BufferStore(a, (i * m + j,), const(1, a.dtype))))
    assert emit_c(function("fill", [a], body)).index_bits == 64


@one_in(4)
@pytest.mark.parametrize("count", [31, 32, 33, 70])
def test_past_the_border(count: int) -> None:
    """One kernel for all sizes reads the right cells of arrays of just under, exactly, and more than 2**31 elements."""
    kernel = build_c(every(STRIDE, 5), check=False)
    assert kernel.report.index_bits == 64
    a = np.zeros(count * STRIDE, dtype=np.int8)  # untouched memory is not allocated
    a[5::STRIDE] = np.arange(1, count + 1)
    b = np.zeros(count, dtype=np.int8)
    kernel.raw(a, b)
    assert b.tolist() == list(range(1, count + 1))


@pytest.mark.parametrize("largest", [30, 31, 32, 33])
def test_bounded_kernels_are_right_up_to_their_bound(largest: int) -> None:
    """Whatever width the bound leads to, the largest call that it allows is right, and the next one is refused."""
    kernel = build_c(every(STRIDE, STRIDE - 1), bounds={"n": (1, largest)}, check=False)
    assert kernel.report.index_bits == (32 if largest * STRIDE <= BORDER - 1 else kernel.report.index_bits)
    a, b = np.zeros(largest * STRIDE, dtype=np.int8), np.zeros(largest, dtype=np.int8)
    a[STRIDE - 1 :: STRIDE] = np.arange(1, largest + 1)
    kernel.raw(a, b)
    assert b.tolist() == list(range(1, largest + 1))
    assert kernel.library.every(None, None, ctypes.c_int64(largest + 1)) == 3


def test_bytes_past_the_border() -> None:
    """Elements fit 32 bits and their bytes do not: an overlap further apart than 2**32 bytes is seen, before memory is
    touched.
    """
    n = Var("n", INT64)
    a, b = make_buffer("A", (n,), "float32"), make_buffer("B", (n,), "float32")
    func = function("copy", [a, b], loop("i", n, lambda i: BufferStore(b, (i,), BufferLoad(a, (i,)))))
    kernel = build_c(func, bounds={"n": (1, BORDER - 1)}, check=False)
    base, count = 1 << 40, 2**30 + 5
    call = kernel.library.copy
    for distance in (0, 4, 20, 2**32, 2**32 + 16):
        assert call(ctypes.c_void_p(base), ctypes.c_void_p(base + distance), ctypes.c_int64(count)) == 2, distance
        assert call(ctypes.c_void_p(base + distance), ctypes.c_void_p(base), ctypes.c_int64(count)) == 2, distance


def test_the_narrow_text_does_not_overflow(tmp_path: Path) -> None:
    """At the largest size that 32 bits were chosen for, no index, end or size wraps: told by the undefined-behaviour
    sanitizer.
    """
    source = emit_c(every(STRIDE, STRIDE - 1, noalias=True), bounds={"n": (1, 31)})
    assert source.index_bits == 32
    write_source(source, tmp_path)
    (tmp_path / "main.c").write_text(
        '#include <stdlib.h>\n#include "kernel.h"\nint main(void) {\n'
        f"    int8_t *a = calloc({31 * STRIDE}, 1), b[31];\n    if (a == NULL) return 9;\n    "
        f"a[{31 * STRIDE - 1}] = 7;\n"
        "    int code = every(a, b, 31);\n    free(a);\n    return code != 0 ? code : b[30] == 7 ? 0 : 8;\n}\n"
    )
    compile_c(
        tmp_path,
        "-O1",
        "-fsanitize=undefined",
        "-fno-sanitize-recover=all",
        "main.c",
        "kernel.c",
        "-o",
        "program",
        "-lm",
    )
    done = subprocess.run(["./program"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_end_that_does_not_fit() -> None:
    """A constant extent is judged like a symbol's bound."""
    a = make_buffer("A", (IntImm(BORDER, INT64),), "int8")
    body = loop("i", IntImm(BORDER, INT64), lambda i: BufferStore(a, (i,), const(1, a.dtype)))
    assert emit_c(function("fill", [a], body)).index_bits == 64
