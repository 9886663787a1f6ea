"""Each kernel is compared with the interpreter when it is built: what is compared, what is not, and that a wrong kernel
is caught.
"""

import re

import pytest
from tests.lowering.codegen.programs import function, loop

from layoutproof.ir.buffer import BufferLoad, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import FLOAT32
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.intrinsics import MATH_FUNCTIONS, Call
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, BufferStore, DeclBuffer, For, ForKind, Stmt, seq
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.runtime.build_c import build_c
from layoutproof.lowering.runtime.selfcheck import LIMIT, self_check


def filled(extent: int | Expr, value: Expr, name: str = "fill") -> PrimFunc:
    """A is `value` everywhere."""
    a = make_buffer("A", (extent,), "float32")
    return function(name, [a], loop("i", extent, lambda i: BufferStore(a, (i,), value)))


def test_a_wrong_kernel_is_caught() -> None:
    """A kernel that is another function's is refused, with the place and both values."""
    kernel = build_c(filled(6, const(2.0, FLOAT32)), check=False)
    with pytest.raises(LayoutproofError, match=r"disagree: A\[0\] is 2\.0, the program's value is 3\.0\n") as caught:
        self_check(filled(6, const(3.0, FLOAT32)), kernel)
    assert caught.value.diagnostics[0].code == codes.SELF_CHECK


def test_a_difference_of_sign_is_one() -> None:
    """Minus zero is not zero."""
    kernel = build_c(filled(2, const(0.0, FLOAT32)), check=False)
    with pytest.raises(LayoutproofError, match="disagree"):
        self_check(filled(2, const(-0.0, FLOAT32)), kernel)


def test_large_functions_are_compared_in_chosen_cells() -> None:
    """Up to a size everything is compared; beyond it some cells, and a wrong one is caught there too."""
    assert build_c(filled(LIMIT // 2, const(2.0, FLOAT32))).report.self_check == "equal to the interpreter, bit for bit"
    large = build_c(filled(10 * LIMIT, const(2.0, FLOAT32)))
    assert re.fullmatch(r"equal to the interpreter in \d+ chosen cells, bit for bit", large.report.self_check)
    with pytest.raises(LayoutproofError, match="disagree"):
        self_check(filled(10 * LIMIT, const(3.0, FLOAT32)), large)


def test_large_functions_that_data_can_lead_astray_are_left() -> None:
    """A large gather is not run on random indices, nor a division by random numbers."""
    count = 10 * LIMIT
    a, b, where = (
        make_buffer("A", (4,), "int32"),
        make_buffer("B", (count,), "int32"),
        make_buffer("where", (count,), "int32"),
    )
    gather = loop("i", count, lambda i: BufferStore(b, (i,), BufferLoad(a, (BufferLoad(where, (i,)),))))
    divide = loop("i", count, lambda i: BufferStore(b, (i,), BufferLoad(where, (i,)) // BufferLoad(a, (const(0),))))
    for body in (gather, divide):
        assert (
            build_c(function("astray", [a, where, b], body)).report.self_check
            == f"not done: {count} statement instances"
        )


@pytest.mark.parametrize("temporary", [False, True])
def test_what_would_need_much_memory_is_not_tried(temporary: bool) -> None:
    """Few statements over a parameter or a temporary of gigabytes: refused by its size before an array is made."""
    i, zero = Var("i"), const(0)
    small, large = make_buffer("A", (10,), "float32"), make_buffer("L", (1_000_000, 1_000), "float32")
    flat = make_buffer("flat", (1_000_000_000,), "float32", data=large.data)
    fill = seq(BufferStore(flat, (i,), const(1.0, FLOAT32)), BufferStore(small, (i,), BufferLoad(flat, (i,))))
    body: Stmt = DeclBuffer(flat, For(i, zero, const(10), ForKind.SERIAL, fill))
    if temporary:
        func = function("large", [small], Allocate(large, body))
    else:
        func = function("large", [small, large], body)
    assert build_c(func).report.self_check == "not done: too large, 3,815 MB of arrays"


def test_symbols_get_small_extents() -> None:
    """A symbolic function runs at extents of the check's own choice."""
    assert (
        build_c(filled(Var("n"), const(2.0, FLOAT32))).report.self_check
        == "equal to the interpreter for n = 5, bit for bit"
    )


@pytest.mark.parametrize("name", ["exp", "sqrt", "tanh", "pow"])
def test_math_functions_have_no_leeway(name: str) -> None:
    """Functions are compared bit for bit, as arithmetic is."""
    arguments = (const(0.3, FLOAT32),) * MATH_FUNCTIONS[name]
    assert build_c(filled(3, Call(name, arguments))).report.self_check == "equal to the interpreter, bit for bit"


def test_a_fast_kernel_that_is_wrong_is_caught() -> None:
    """Fast arithmetic has its enclosure, and the kernel of another function lies outside of it."""
    fast = build_c(filled(3, Call("exp", (const(0.3, FLOAT32),))), fast=True)
    assert fast.report.self_check.startswith("equal to the interpreter, ")
    with pytest.raises(LayoutproofError, match="disagree"):
        self_check(filled(3, Call("exp", (const(0.30001, FLOAT32),))), fast)


def test_a_program_that_faults_on_made_up_data_is_not_run() -> None:
    """A gather whose indices are the user's business is not tried with indices of ours."""
    a, b, where = (
        make_buffer("A", (4,), "float32"),
        make_buffer("B", (9,), "float32"),
        make_buffer("where", (9,), "int32"),
    )
    body = loop("i", 9, lambda i: BufferStore(b, (i,), BufferLoad(a, (BufferLoad(where, (i,)),))))
    assert "the interpreter stops" in build_c(function("gather", [a, where, b], body)).report.self_check
