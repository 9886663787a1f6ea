"""The generated text itself: readable, deterministic, fit for a C program, with the narrowest sound index type."""

import re
import subprocess
from pathlib import Path

import pytest
from tests.conftest import Golden
from tests.lowering.codegen.plain_c import compiles_cleanly
from tests.lowering.codegen.programs import function, loop

from layoutproof.ir.buffer import BufferLoad, make_buffer
from layoutproof.ir.dtype import FLOAT32, INT64, DType
from layoutproof.ir.expr import Binary, Expr, IfThenElseExpr, Var, const
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, DeclBuffer, For, ForKind, IfThenElse, seq
from layoutproof.lowering.codegen.c import emit_c


def relu() -> PrimFunc:
    """14 numbers, stored as 4 rows of 4, negative ones replaced by 0."""
    a, b = make_buffer("A", (14,), "float32"), make_buffer("B", (4, 4), "float32")
    flat = make_buffer("B_flat", (16,), "float32", data=b.data)
    io, ii = Var("io"), Var("ii")
    index = io * 4 + ii
    value = Binary(BinaryOp.MAX, BufferLoad(a, (index,)), const(0.0, FLOAT32))
    inner = For(ii, const(0), const(4), ForKind.VECTORIZED, IfThenElse(index < 14, BufferStore(flat, (index,), value)))
    return function("relu", [a, b], DeclBuffer(flat, For(io, const(0), const(4), ForKind.PARALLEL, inner)))


def strided_sum(extent: Expr | int, stride: int) -> PrimFunc:
    """B[0] is the sum of every `stride`-th element of A."""
    count = extent if isinstance(extent, Expr) else const(extent)
    a, b = make_buffer("A", (count * stride,), "float32"), make_buffer("B", (1,), "float32")
    zero = const(0)
    init = BufferStore(b, (zero,), const(0.0, FLOAT32))
    update = loop("i", count, lambda i: BufferStore(b, (zero,), BufferLoad(b, (zero,)) + BufferLoad(a, (i * stride,))))
    return function("strided_sum", [a, b], seq(init, update))


def test_golden_text(golden: Golden) -> None:
    """What a person reads, source and header."""
    source = emit_c(relu(), notes={"B": "logical [14] by lambda i: [i//4, i%4]"})
    golden("codegen/relu.c", source.text)
    golden("codegen/relu.h", source.header)
    golden("codegen/strided_sum.c", emit_c(strided_sum(Var("n"), 3)).text)


def test_text_is_the_same_every_time() -> None:
    """Two emissions of equal functions give equal text."""
    assert emit_c(relu()).text == emit_c(relu()).text


@pytest.mark.parametrize("flags", [(), ("-O3", "-fopenmp"), ("-O2", "-fno-strict-aliasing", "-fwrapv")], ids=" ".join)
def test_no_warnings(flags: tuple[str, ...], tmp_path: Path) -> None:
    """All warnings of the compiler are errors, at every level of optimisation, with OpenMP and without."""
    for func in (relu(), strided_sum(Var("n"), 3), strided_sum(7, 2)):
        compiles_cleanly(emit_c(func), tmp_path, *flags)


def test_header_serves_cpp(tmp_path: Path) -> None:
    """A C++ program includes the header."""
    (tmp_path / "kernel.h").write_text(emit_c(relu()).header, encoding="utf-8")
    (tmp_path / "main.cpp").write_text(
        '#include "kernel.h"\n#include "kernel.h"\nint (*f)(const float *, float *) = relu;\n', encoding="utf-8"
    )
    command = ["c++", "-Wall", "-Wextra", "-Werror", "-c", "main.cpp"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("extent", "stride", "bits"), [(1000, 3, 32), (2**20, 2**10, 32), (2**21 + 1, 2**10, 64), (2**31 - 1, 1, 32)]
)
def test_index_type_is_the_narrowest_that_holds(extent: int, stride: int, bits: int) -> None:
    """32 bits where every index and every loop's end fits, 64 otherwise."""
    a, b = make_buffer("A", (const(extent, INT64) * stride,), "float32"), make_buffer("B", (1,), "float32")
    body = loop("i", const(extent, INT64), lambda i: BufferStore(b, (const(0),), BufferLoad(a, (i * stride,))))
    assert emit_c(function("last", [a, b], body, noalias=False)).index_bits == bits


def test_symbolic_extents_take_64_bits_unless_bounded() -> None:
    """An unknown extent may be large; a bound that the function itself checks makes the narrow type sound."""
    func = strided_sum(Var("n"), 3)
    assert emit_c(func).index_bits == 64
    bounded = emit_c(func, bounds={"n": (1, 4096)})
    assert bounded.index_bits == 32
    assert "if (n < 1)" in bounded.text and "if (n > 4096)" in bounded.text
    assert emit_c(func, bounds={"n": (1, 2**30)}).index_bits == 64


def test_division_is_plain_only_where_nothing_is_negative() -> None:
    """`(i + 3) // 4` is C's division; `(i - 3) // 4` is not, and becomes it in a branch only by its own range."""
    c = make_buffer("C", (64,), "int32")
    plain = function("f", [c], loop("i", 64, lambda i: BufferStore(c, ((i + 3) // 4,), const(1))))
    floor = function("f", [c], loop("i", 64, lambda i: BufferStore(c, ((i - 3) // 4 + 1,), const(1))))
    assert "lp_floordiv" not in emit_c(plain).text
    assert "lp_floordiv_i32(i - 3, 4)" in emit_c(floor).text


def test_restrict_only_where_no_alias_is_assumed() -> None:
    """`restrict` states an assumption: it stands where the function makes it, and so does the check at entry."""
    a, b = make_buffer("A", (4,), "float32"), make_buffer("B", (4,), "float32")
    body = loop("i", 4, lambda i: BufferStore(b, (i,), BufferLoad(a, (i,))))
    with_it, without = (
        emit_c(function("copy", [a, b], body)).text,
        emit_c(function("copy", [a, b], body, noalias=False)).text,
    )
    assert "restrict" in with_it and "lp_overlap(A, 16, B, 16)" in with_it
    assert "restrict" not in without and "lp_overlap" not in without


def test_loop_pragmas_stand_where_asked() -> None:
    """A parallel and a vectorized loop carry their macro, a serial one none, and a parallel loop within one is not
    parallel again.
    """
    text = emit_c(relu()).text
    assert text.count("\n    LP_PARALLEL_FOR\n") == 1 and text.count("\n        LP_SIMD\n") == 1
    assert "LP_" not in emit_c(strided_sum(7, 2)).text.split("int strided_sum")[1].replace("LP_OK", "").replace(
        "LP_OVERLAP", ""
    )
    c = make_buffer("C", (4,), "int32")
    nested = loop(
        "i", 2, lambda i: loop("j", 2, lambda j: BufferStore(c, (i * 2 + j,), j), ForKind.PARALLEL), ForKind.PARALLEL
    )
    assert emit_c(function("nested", [c], nested)).text.count("    LP_PARALLEL_FOR\n") == 1


def test_names_that_c_has_already(tmp_path: Path) -> None:
    """Keywords, library functions, helper names, clashes and other alphabets become identifiers of their own."""
    names = ["int", "exp", "lp_add_i32", "\u03b1", "a.b", "a_b", "9x", "__x", "error", "lane"]
    buffers = [
        make_buffer(name, (4,), "float32", data=Var(f"data_{k}", DType.parse("handle"))) for k, name in enumerate(names)
    ]
    target = make_buffer("free", (4,), "float32")

    def total(i: Var) -> BufferStore:
        value: Expr = const(0.0, FLOAT32)
        for b in buffers:
            value = value + BufferLoad(b, (i,))
        return BufferStore(target, (i,), IfThenElseExpr(i < 2, value, const(1.0, FLOAT32)))

    source = emit_c(function("main", [*buffers, target], loop("double", 4, total)))
    assert source.entry == "main_kernel"
    assert len({p.c_name for p in source.parameters}) == len(names) + 1
    compiles_cleanly(source, tmp_path)


@pytest.mark.parametrize("name", ["HUGE_VALF", "MB_CUR_MAX", "RAND_MAX", "M_PI", "math_errhandling", "OVERFLOW"])
def test_names_that_headers_define(name: str, tmp_path: Path) -> None:
    """A buffer, a loop and a function may be called like a macro of C's headers: the text has names of its own."""
    target = make_buffer("B", (4,), "float32")
    a = make_buffer(name, (4,), "float32")
    body = loop(name.lower().upper() + "_", 4, lambda i: BufferStore(target, (i,), BufferLoad(a, (i,))))
    source = emit_c(function(name, [a, target], body))
    assert name not in re.findall(r"\w+", source.text.split("#include <string.h>")[1])
    assert name not in [p.c_name for p in source.parameters] and source.entry != name
    compiles_cleanly(source, tmp_path)


@pytest.mark.parametrize("name", ["atoi", "rand", "select", "fmodf", "strlen", "div_t", "quick_exit", "hypotl"])
def test_functions_that_headers_declare(name: str, tmp_path: Path) -> None:
    """A function of a program may be called like one of C's library, or like a type."""
    a = make_buffer("A", (4,), "float32")
    source = emit_c(function(name, [a], loop("i", 4, lambda i: BufferStore(a, (i,), const(1.0, FLOAT32)))))
    assert source.entry == f"{name}_kernel"
    compiles_cleanly(source, tmp_path)


def test_comments_cannot_be_closed_from_inside(tmp_path: Path) -> None:
    """A name or remark with the end of a comment in it does not end the comment."""
    a = make_buffer("A", (4,), "float32")
    view = make_buffer("*/ x /*", (4,), "float32", data=a.data)
    body = DeclBuffer(view, loop("i", 4, lambda i: BufferStore(view, (i,), const(1.0, FLOAT32))))
    compiles_cleanly(emit_c(function("f", [a], body), notes={"A": "odd */ remark"}), tmp_path)
