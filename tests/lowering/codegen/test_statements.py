"""Loops, branches, names, allocations, aliases and lanes in compiled C: as a library and under sanitizers, against the
interpreter.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.lowering.codegen.plain_c import run_sanitized
from tests.lowering.codegen.programs import Array, assert_same, function, loop, numpy_type
from tests.shares import one_in

from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.dtype import FLOAT32, HANDLE, INT32, UINT8, DType
from layoutproof.ir.expr import Binary, Broadcast, Cast, Compare, Expr, IfThenElseExpr, Ramp, Select, Var, const, equal
from layoutproof.ir.interp.run import run
from layoutproof.ir.intrinsics import Call, PointerCast
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import (
    NOTHING,
    Allocate,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Let,
    Stmt,
    seq,
)
from layoutproof.lowering.codegen.c import emit_c
from layoutproof.lowering.runtime.build_c import build_c

A = make_buffer("A", (24,), "float32")
B = make_buffer("B", (24,), "float32")
C = make_buffer("C", (24,), "int32")
D = make_buffer("D", (24,), "int32")
i, j, k = Var("i"), Var("j"), Var("k")


def store(buffer: Buffer, index: Expr, value: Expr) -> BufferStore:
    """`buffer[index] = value`."""
    return BufferStore(buffer, (index,), value)


def at(buffer: Buffer, index: Expr) -> BufferLoad:
    """`buffer[index]`."""
    return BufferLoad(buffer, (index,))


def made_up(func: PrimFunc) -> dict[str, Array]:
    """Small numbers of both signs for every buffer."""
    generator = np.random.default_rng(3)
    found = {}
    for buffer in func.buffers:
        shape = tuple(int(e.value) for e in buffer.shape)  # type: ignore[attr-defined]  # extents are constants here
        shape = (*shape, buffer.dtype.lanes) if buffer.dtype.lanes > 1 else shape
        low = 0 if buffer.dtype.kind.value == "uint" else -9
        found[buffer.name] = (generator.integers(low, 10, shape) / (4 if buffer.dtype.is_float else 1)).astype(
            numpy_type(buffer.dtype)
        )
    return found


def agree(func: PrimFunc, folder: Path, arrays: dict[str, Array] | None = None) -> dict[str, Array]:
    """Run a function three ways; fail where they differ; what the interpreter left."""
    given = arrays if arrays is not None else made_up(func)
    expected = run(func, given)
    own = {name: array.copy() for name, array in given.items()}
    build_c(func, check=False).raw(**own)
    wide = {name: array.copy() for name, array in given.items()}
    build_c(func, check=False, index_bits=64).raw(**wide)
    sanitized = run_sanitized(emit_c(func), folder, given)
    for name, wanted in expected.arrays.items():
        for found in (own[name], sanitized[name], wide[name]):
            assert_same(found.reshape(-1), wanted.reshape(-1), name)
    return dict(expected.arrays)


def rows(body: Callable[[Var, Var], Stmt], kind: ForKind) -> Stmt:
    """Six rows of four."""
    return loop(
        "i",
        6,
        lambda x: loop("j", 4, lambda y: body(x, y), kind),
        ForKind.PARALLEL if kind is ForKind.VECTORIZED else kind,
    )


@one_in(10)
@pytest.mark.parametrize("kind", [ForKind.SERIAL, ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED])
def test_loops_of_every_kind(kind: ForKind, tmp_path: Path) -> None:
    """A nest of two loops gives the same whatever their kind."""
    agree(
        function("nest", [A, B], rows(lambda x, y: store(B, x * 4 + y, at(A, x * 4 + y) * at(A, y * 6 + x)), kind)),
        tmp_path,
    )


def rows_of_three(outer: ForKind, inner: ForKind, first: int) -> Stmt:
    """Six elements from `first` on, in two rows."""
    return loop(
        "i",
        2,
        lambda x: loop("j", 3, lambda y: store(C, x * 3 + y + first, at(C, x * 3 + y + first) * 3 + x), inner),
        outer,
    )


@one_in(4)
def test_loop_kinds_in_every_order(tmp_path: Path) -> None:
    """Any kind of loop inside any other one compiles with OpenMP and gives the same."""
    kinds = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED)
    nests = [
        rows_of_three(outer, inner, 6 * (k % 4))
        for k, (outer, inner) in enumerate((a, b) for a in kinds for b in kinds)
    ]
    agree(function("orders", [C], seq(*nests)), tmp_path)


def test_bounds_that_depend_on_outer_variables(tmp_path: Path) -> None:
    """A triangle: a start that is not 0, an extent that shrinks, one that is 0 and one below 0."""
    inner = For(j, i + 1, const(5) - i, ForKind.SERIAL, store(C, i * 4 + j % 4, i * 100 + j))
    empty = For(k, const(3), const(-2), ForKind.SERIAL, store(C, k, const(7)))
    agree(function("triangle", [C], seq(loop("i", 6, lambda _: inner), empty)), tmp_path)


def test_a_bound_that_the_body_changes_is_read_once(tmp_path: Path) -> None:
    """A loop over `C[0]` rounds whose body sets `C[0]`: the number of rounds was fixed at the start."""
    body = seq(store(D, i, at(C, const(0))), store(C, const(0), const(1)))
    func = function("rounds", [C, D], For(i, const(0), at(C, const(0)), ForKind.SERIAL, body))
    arrays = made_up(func)
    arrays["C"][0] = 7
    assert agree(func, tmp_path, arrays)["D"][:8].tolist()[1:7] == [1] * 6


def test_branches_with_many_arms(tmp_path: Path) -> None:
    """if, else if, else, and an arm that does nothing."""
    arms = IfThenElse(equal(i % 5, 2), NOTHING, store(B, i, at(A, i)))
    arms = IfThenElse(equal(i % 5, 1), store(B, i, const(1.5, FLOAT32)), arms)
    arms = IfThenElse(equal(i % 5, 0), store(B, i, const(-0.0, FLOAT32)), arms)
    only = IfThenElse(Compare(CompareOp.GT, at(A, i), const(0.0, FLOAT32)), store(C, i, const(1)))
    agree(function("branches", [A, B, C], loop("i", 24, lambda _: seq(arms, only, Evaluate(const(0))))), tmp_path)


def test_lazy_and_eager_choices(tmp_path: Path) -> None:
    """if_then_else guards a load that would be outside; select chooses between two that are not."""
    guarded = IfThenElseExpr(i >= 3, at(A, i - 3), const(0.0, FLOAT32))
    agree(
        function(
            "choices", [A, B], loop("i", 24, lambda _: store(B, i, guarded + Select(i < 12, at(A, i), at(A, 23 - i))))
        ),
        tmp_path,
    )


def test_names_for_values(tmp_path: Path) -> None:
    """Lets of every sort: an index, a value, a truth value, an unused one, one name twice in a row."""
    x, y, flag = Var("x"), Var("y", FLOAT32), Var("flag", DType.parse("bool"))
    first = Let(x, 23 - i, Let(y, at(A, x) * 2.0, Let(flag, y > 0.5, IfThenElse(flag, store(B, i, y)))))
    second = Let(x, at(C, i) * 3, Let(Var("unused"), i + 1, store(D, i, x + 1)))
    agree(function("lets", [A, B, C, D], loop("i", 24, lambda _: seq(first, second))), tmp_path)


def test_integer_scalar_lets_wrap_where_they_are_values(tmp_path: Path) -> None:
    """A loaded value times a large constant wraps in its own width, then is compared and stored."""
    x = Var("x")
    body = Let(x, at(C, i) * 1_000_000_007, store(D, i, Select(x > at(C, i), x, x // 7)))
    agree(function("wrapping", [C, D], loop("i", 24, lambda _: body)), tmp_path)


@one_in(4)
@pytest.mark.parametrize("extent", [4, 5000])
def test_allocations_on_stack_and_heap(extent: int, tmp_path: Path) -> None:
    """A small and a large allocation, inside a parallel loop, hold what is stored to them."""
    work = make_buffer("work", (extent,), "float32")
    fill = loop("j", 4, lambda y: store(work, y * (extent // 4), at(A, i * 4 + y)))
    use = loop("k", 4, lambda z: store(B, i * 4 + z, at(work, (3 - z) * (extent // 4))))
    body = For(i, const(0), const(6), ForKind.PARALLEL, Allocate(work, seq(fill, use)))
    source = emit_c(function("scratch", [A, B], body))
    assert ("lp_allocate" in source.text) == (extent > 1024)
    agree(function("scratch", [A, B], body), tmp_path)


def test_two_allocations_of_one_name(tmp_path: Path) -> None:
    """One after the other in one block: the second gets a name of its own."""
    first, second = make_buffer("t", (2,), "int32"), make_buffer("t", (3,), "int32", data=Var("t2", HANDLE))
    body = seq(
        Allocate(first, seq(store(first, const(0), const(5)), store(C, const(0), at(first, const(0))))),
        Allocate(second, seq(store(second, const(2), const(6)), store(C, const(1), at(second, const(2))))),
    )
    agree(function("twice", [C], body), tmp_path)


def test_alias_of_another_shape_and_offset(tmp_path: Path) -> None:
    """A view that starts further in reads and writes the same memory."""
    view = replace(make_buffer("view", (10,), "float32", data=A.data), elem_offset=const(8))
    body = DeclBuffer(view, loop("i", 10, lambda x: store(view, x, at(A, x) + at(view, x))))
    agree(function("shifted", [A], body), tmp_path)


def test_alias_of_another_type(tmp_path: Path) -> None:
    """The bits of floats, seen as integers, lose their sign; then the floats are read again."""
    bits = make_buffer("bits", (24,), "uint32", data=A.data)
    low = replace(make_buffer("low", (3,), "uint8", data=A.data), elem_offset=const(80))
    mask = const(0x7FFFFFFF, DType.parse("uint32"))
    body = seq(
        loop("i", 20, lambda x: store(bits, x, at(bits, x) & mask)),
        loop("j", 3, lambda x: store(low, x, Cast(UINT8, x + 1))),
        loop("k", 24, lambda x: store(B, x, at(A, x) * 2.0)),
    )
    agree(function("punned", [A, B], DeclBuffer(bits, DeclBuffer(low, body))), tmp_path)


def test_pointer_casts(tmp_path: Path) -> None:
    """A pointer seen as one to vectors: the buffer on it loads four elements at a time."""
    vector = DType.parse("float32x4")
    pointer = Var("p", HANDLE)
    wide = make_buffer("wide", (6,), vector, data=pointer)
    wide_b = make_buffer("wide_b", (6,), vector, data=B.data)
    body = loop("i", 6, lambda x: store(wide_b, x, at(wide, 5 - x) * Broadcast(const(2.0, FLOAT32), 4)))
    func = function(
        "cast", [A, B], Let(pointer, PointerCast(vector, A.data), DeclBuffer(wide, DeclBuffer(wide_b, body)))
    )
    agree(func, tmp_path)


def test_ramps_and_broadcasts(tmp_path: Path) -> None:
    """Vector loads and stores through strided indices, with a condition for each lane."""
    index = Ramp(i, const(6), 4)
    value = at(A, index)
    chosen = Select(
        Compare(CompareOp.GT, value, Broadcast(const(0.0, FLOAT32), 4)), value, Broadcast(const(-1.0, FLOAT32), 4)
    )
    agree(function("lanes", [A, B], loop("i", 6, lambda _: store(B, index, chosen))), tmp_path)


@one_in(4)
@pytest.mark.parametrize("noalias", [True, False])
def test_all_lanes_are_read_before_any_is_written(noalias: bool, tmp_path: Path) -> None:
    """A vector store that moves elements within one buffer, up and down."""
    up = store(A, Ramp(const(1), const(1), 8), at(A, Ramp(const(0), const(1), 8)))
    down = store(A, Ramp(const(10), const(1), 8), at(A, Ramp(const(11), const(1), 8)))
    agree(function("move", [A], seq(up, down), noalias=noalias), tmp_path)


def test_a_scatter_through_its_own_memory(tmp_path: Path) -> None:
    """The places to store to are read from the buffer that is stored to: all of them before the first store."""
    func = function("scatter", [C], store(C, at(C, Ramp(const(0), const(1), 4)), Ramp(const(20), const(1), 4)))
    arrays = {"C": np.arange(24, dtype=np.int32)}
    arrays["C"][:4] = [3, 2, 1, 0]
    assert agree(func, tmp_path, arrays)["C"][:4].tolist() == [23, 22, 21, 20]


def test_vector_elements_by_vector_indices(tmp_path: Path) -> None:
    """Elements of M lanes by an index of N lanes: N times M lanes, those of one element together."""
    source = make_buffer("S", (6,), "int32x2")
    target = make_buffer("T", (6,), "int32x2")
    body = store(
        target, Ramp(const(0), const(2), 3), at(source, Ramp(const(5), const(-2), 3)) + Ramp(const(0), const(10), 6)
    )
    agree(function("both", [source, target], body), tmp_path)


def test_vector_lets_casts_and_calls(tmp_path: Path) -> None:
    """A named vector, converted, compared and fed to a function, lane by lane."""
    v = Var("v", DType.parse("float32x4"))
    whole = Cast(INT32.with_lanes(4), Call("floor", (v,)))
    body = Let(
        v,
        at(A, Ramp(i * 4, const(1), 4)) * Broadcast(const(3.0, FLOAT32), 4),
        store(C, Ramp(i * 4, const(1), 4), whole),
    )
    agree(function("named", [A, C], loop("i", 6, lambda _: body)), tmp_path)


@one_in(4)
def test_vectors_of_truth_values(tmp_path: Path) -> None:
    """Truth values in memory, four at a time."""
    flags = make_buffer("flags", (24,), "bool")
    index = Ramp(i * 4, const(1), 4)
    value = Compare(CompareOp.LT, at(A, index), Broadcast(at(A, i), 4))
    negated = Select(at(flags, index), Broadcast(const(1.0, FLOAT32), 4), Broadcast(const(2.0, FLOAT32), 4))
    agree(
        function(
            "flags", [A, flags, B], loop("i", 6, lambda _: seq(store(flags, index, value), store(B, index, negated)))
        ),
        tmp_path,
    )


@one_in(4)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_lanes_and_scratch(dtype: str, tmp_path: Path) -> None:
    """Half-precision elements are rounded at each step, in scratch memory and in vectors too."""
    source, target, work = (make_buffer(name, (8,), dtype) for name in ("H", "K", "W"))
    index = Ramp(const(0), const(1), 8)
    third = Broadcast(const(1 / 3, source.dtype), 8)
    body = Allocate(
        work,
        seq(
            store(work, index, at(source, index) * third),
            loop("i", 8, lambda x: store(target, x, at(work, 7 - x) + at(work, x))),
        ),
    )
    agree(function("half", [source, target], body), tmp_path)


def test_remarks_are_passed_over(tmp_path: Path) -> None:
    """An attribute around a statement changes nothing."""
    body = AttrStmt(const(0), "pragma", const(1), loop("i", 24, lambda x: store(B, x, at(A, x))))
    agree(function("remark", [A, B], body), tmp_path)


def test_unsigned_and_narrow_loop_variables(tmp_path: Path) -> None:
    """Loop variables of other integer types count past nothing and mix with values of their types."""
    n = Var("n", UINT8)
    small = For(
        n, const(0, UINT8), const(24, UINT8), ForKind.SERIAL, store(C, Cast(INT32, n), Cast(INT32, n * 11) + at(C, n))
    )
    m = Var("m", DType.parse("int64"))
    wide = For(
        m,
        const(0, m.dtype),
        const(24, m.dtype),
        ForKind.SERIAL,
        store(D, m, Cast(INT32, Binary(BinaryOp.FLOORDIV, m - 12, const(5, m.dtype)))),
    )
    agree(function("variables", [C, D], seq(small, wide)), tmp_path)
