"""What the C target refuses: each with a message that names what is wrong and what to do."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.lowering.codegen.programs import function, loop

from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import FLOAT32, HANDLE, DType
from layoutproof.ir.expr import Expr, Var, const, equal
from layoutproof.ir.intrinsics import Assume, OpaqueCall, StringImm, undef
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, Evaluate, For, ForKind, Let, Stmt
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.c import emit_c

A = make_buffer("A", (4,), "float32")


def filled(buffer: Buffer, value: Expr) -> Stmt:
    """`buffer[i] = value` in a loop."""
    return loop("i", 4, lambda i: BufferStore(buffer, (i,), value))


def one(buffer: Buffer) -> PrimFunc:
    """A function that fills one parameter."""
    return function("f", [buffer], filled(buffer, const(0.0, buffer.dtype)))


def rank_two(separators: tuple[int, ...]) -> PrimFunc:
    """A store with two indices."""
    b = replace(make_buffer("image", (2, 2), "float32"), axis_separators=separators)
    return function("f", [b], BufferStore(b, (const(0), const(1)), const(0.0, FLOAT32)))


def thread() -> PrimFunc:
    """A loop over a hardware axis."""
    i = Var("i")
    body = For(
        i, const(0), const(4), ForKind.THREAD_BINDING, BufferStore(A, (i,), const(0.0, FLOAT32)), thread="blockIdx.x"
    )
    return function("f", [A], body)


def unbound() -> PrimFunc:
    """An index that nothing binds."""
    return function("f", [A], BufferStore(A, (Var("q"),), const(0.0, FLOAT32)))


def undeclared() -> PrimFunc:
    """A buffer that is neither a parameter nor allocated."""
    return function("f", [A], filled(make_buffer("ghost", (4,), "float32"), const(0.0, FLOAT32)))


def deep(levels: int) -> PrimFunc:
    """A sum of sums of sums."""
    value: Expr = BufferLoad(A, (const(0),))
    for _ in range(levels):
        value = const(1.0, FLOAT32) + value
    return function("f", [A], BufferStore(A, (const(0),), value))


ZERO = const(0.0, FLOAT32)
ADDRESS = OpaqueCall("address", (), HANDLE)

CASES: list[tuple[str, Callable[[], PrimFunc], str, str]] = [
    ("rank", lambda: rank_two(()), codes.RANK, "image has rank 2.*flatten_buffer"),
    ("separators", lambda: rank_two((0,)), codes.RANK, r"axis separators \[0\].*set_axis_separators"),
    ("block", lambda: function("f", [A], Block("root_block", (), filled(A, ZERO))),
     codes.NOT_LOWERED, "root_block.*lower_blocks"),
    ("undef", lambda: function("f", [A], filled(A, undef("float32"))),
     codes.NOT_LOWERED, "undefined values.*remove_store_undef"),
    ("assume", lambda: function("f", [A], Evaluate(Assume(equal(const(1), 1)))), codes.NOT_LOWERED, "remove_assume"),
    ("opaque", lambda: function("f", [A], Evaluate(OpaqueCall("tvm_storage_sync", (), FLOAT32))),
     codes.UNSUPPORTED, "tvm_storage_sync"),
    ("text", lambda: function("f", [A], Evaluate(StringImm("shared"))), codes.UNSUPPORTED, "'shared'"),
    ("thread", thread, codes.NOT_LOWERED, "blockIdx.x"),
    ("texture", lambda: one(replace(A, scope="global.texture")), codes.UNSUPPORTED, "global.texture.*OpenCL"),
    ("strides", lambda: one(replace(A, strides=(const(2),))), codes.UNSUPPORTED, "A has strides"),
    ("offset", lambda: one(replace(A, elem_offset=const(3))), codes.UNSUPPORTED, "element 3"),
    ("shared", lambda: function("f", [A, replace(A, name="B")], filled(A, ZERO)), codes.UNSUPPORTED, "A and B"),
    ("pointer", lambda: function("f", [A], Let(Var("p", HANDLE), ADDRESS, filled(A, ZERO))),
     codes.UNSUPPORTED, "pointer p"),
    ("handle", lambda: PrimFunc("f", (Var("h", HANDLE),), (), Evaluate(const(0))),
     codes.UNSUPPORTED, "parameter h of type handle"),
    ("vector", lambda: PrimFunc("f", (Var("v", DType.parse("float32x4")),), (), Evaluate(const(0))),
     codes.UNSUPPORTED, "float32x4"),
    ("unbound", unbound, codes.NOT_LOWERED, "variable q"),
    ("undeclared", undeclared, codes.UNSUPPORTED, "ghost"),
    ("deep", lambda: deep(3000), codes.TOO_DEEP, "nested too deeply"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "code", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_refusals(make: Callable[[], PrimFunc], code: str, words: str) -> None:
    """The error has its code, and a text that names the culprit and the remedy."""
    with pytest.raises(LayoutproofError) as caught:
        emit_c(make())
    assert {d.code for d in caught.value.diagnostics} == {code}
    assert re.search(words, str(caught.value), re.DOTALL), str(caught.value)


def test_all_findings_at_once() -> None:
    """Two things wrong are two messages, one thing wrong twice is one."""
    body = Block("b", (), filled(A, undef("float32")))
    with pytest.raises(LayoutproofError) as caught:
        emit_c(function("f", [replace(A, scope="shared")], body))
    assert len(caught.value.diagnostics) == 3


def test_every_code_has_a_meaning() -> None:
    """The table of explanations is complete."""
    listed = {value for name, value in vars(codes).items() if name.isupper() and isinstance(value, str)}
    assert listed == set(codes.MEANINGS) and len(listed) == 30


@pytest.mark.parametrize("levels", [50, 200])
def test_ordinary_nesting_is_no_trouble(levels: int) -> None:
    """A few hundred levels are written."""
    assert emit_c(deep(levels)).text.count("1.0f") == levels
