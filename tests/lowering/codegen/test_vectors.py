"""Vectors in generated C: whole ones where there is a form for them, loops over lanes elsewhere; the same results with
and without.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from tests.lowering.codegen.plain_c import compiles_cleanly, run_sanitized
from tests.lowering.codegen.programs import FLOATS, INTEGERS, Array, array_of, assert_same, edges, function, loop
from tests.shares import one_in

from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.dtype import FLOAT32, DType
from layoutproof.ir.expr import Binary, Broadcast, Cast, Compare, Expr, IfThenElseExpr, Ramp, Select, Var, const
from layoutproof.ir.interp.run import run
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, BufferStore, Let, Stmt, seq
from layoutproof.lowering.codegen import c_vector
from layoutproof.lowering.codegen.c import emit_c
from layoutproof.lowering.codegen.c_helpers import HELPERS, find_helper, helper_text
from layoutproof.lowering.codegen.c_vector import ACTIONS, MATH, has_vectors, vector_helper
from layoutproof.lowering.runtime.build_c import build_c

PLAIN = [dtype for dtype in (*INTEGERS, *FLOATS) if has_vectors(dtype.with_lanes(4))]
ARITHMETIC = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.DIV, BinaryOp.MIN, BinaryOp.MAX)
COUNT = 64

A, B = make_buffer("A", (COUNT,), "float32"), make_buffer("B", (COUNT,), "float32")
i = Var("i")


def at(buffer: Buffer, index: Expr) -> BufferLoad:
    """`buffer[index]`."""
    return BufferLoad(buffer, (index,))


def ramp(base: Expr | int, lanes: int, stride: Expr | int = 1) -> Ramp:
    """`lanes` indices from `base`."""
    start, step = (e if isinstance(e, Expr) else const(e) for e in (base, stride))
    return Ramp(start, step, lanes)


def store(buffer: Buffer, index: Expr, value: Expr) -> Stmt:
    """`buffer[index] = value`."""
    return BufferStore(buffer, (index,), value)


def numbers(func: PrimFunc, seed: int = 0) -> dict[str, Array]:
    """Values at the edges of their types for every buffer, in an order of its own."""
    rng = np.random.default_rng(seed)
    return {
        b.name: array_of(list(rng.choice(np.array(edges(b.dtype), dtype=object), COUNT)), b.dtype) for b in func.buffers
    }


def agree(func: PrimFunc, folder: Path, arrays: dict[str, Array] | None = None) -> str:
    """Run a function as vectors and as lanes, both sanitized, and as the kernel that users get; fail where one is not
    the interpreter.

    Gives the text.
    """
    given = arrays if arrays is not None else numbers(func)
    expected = run(func, given).arrays
    source = emit_c(func)
    own = {name: array.copy() for name, array in given.items()}
    build_c(func, check=False).raw(**own)
    found = {"kernel": own, "vectors": run_sanitized(source, folder, given)}
    found["lanes"] = run_sanitized(replace(source, text=f"#define LP_NO_VECTORS\n{source.text}"), folder, given)
    for how, results in found.items():
        for name, wanted in expected.items():
            assert_same(results[name], wanted, f"{name} as {how}")
    return source.text


def given(body: Stmt, _: Var) -> Stmt:
    """A loop's body that is there already."""
    return body


def is_whole(text: str) -> bool:
    """Whether a text has vectors, and no loop over lanes is left in it."""
    return "lp_store_" in text and "lane <" not in text


@one_in(35)
@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_arithmetic_is_that_of_the_lanes(dtype: DType, tmp_path: Path) -> None:
    """Every operation on edge values of every type, in two, four and eight lanes; integers wrap, floats round by
    themselves.
    """
    left, right = make_buffer("left", (COUNT,), dtype), make_buffer("right", (COUNT,), dtype)
    operations = [op for op in ARITHMETIC if dtype.is_float or op is not BinaryOp.DIV]
    results = {
        lanes: [make_buffer(f"R{lanes}_{n}", (COUNT,), dtype) for n, _ in enumerate(operations)] for lanes in (2, 4, 8)
    }
    loops = []
    for lanes, own in results.items():
        assert has_vectors(dtype.with_lanes(lanes))
        index = ramp(i * lanes, lanes)
        body = seq(
            *(
                store(r, index, Binary(op, at(left, index), at(right, index)))
                for r, op in zip(own, operations, strict=True)
            )
        )
        loops.append(loop("i", COUNT // lanes, partial(given, body)))
    buffers = [left, right, *chain.from_iterable(results.values())]
    assert is_whole(agree(function("ops", buffers, seq(*loops)), tmp_path))


@one_in(10)
@pytest.mark.parametrize("dtype", [d for d in PLAIN if d.is_float], ids=str)
def test_functions_that_ieee_defines_have_lanes(dtype: DType, tmp_path: Path) -> None:
    """Each function of the table, on edge values."""
    inputs = [make_buffer(name, (COUNT,), dtype) for name in ("X", "Y", "Z")]
    results = [make_buffer(f"R_{name}", (COUNT,), dtype) for name in MATH]
    index = ramp(i * 4, 4)
    loads = [at(b, index) for b in inputs]
    body = [
        store(r, index, Call(name, tuple(loads[:count])))
        for r, (name, count) in zip(results, MATH.items(), strict=True)
    ]
    assert is_whole(agree(function("math", [*inputs, *results], loop("i", COUNT // 4, lambda _: seq(*body))), tmp_path))


@one_in(28)
@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_each_lane_chooses_for_itself(dtype: DType, tmp_path: Path) -> None:
    """Every comparison, NaN included, between vectors that are chosen from."""
    left, right = make_buffer("left", (COUNT,), dtype), make_buffer("right", (COUNT,), dtype)
    results = [make_buffer(f"R_{op.name}", (COUNT,), dtype) for op in CompareOp]
    index = ramp(i * 4, 4)
    a, b = at(left, index), at(right, index)
    body = [store(r, index, Select(Compare(op, a, b), a, b)) for r, op in zip(results, CompareOp, strict=True)]
    assert is_whole(
        agree(function("select", [left, right, *results], loop("i", COUNT // 4, lambda _: seq(*body))), tmp_path)
    )


@one_in(4)
def test_one_condition_may_choose_for_all_lanes(tmp_path: Path) -> None:
    """Only the side that is taken is loaded: the other one would lie outside."""
    index = ramp(i * 8, 8)
    outside = at(A, ramp(i * 8 - 8, 8))
    first = store(
        B, index, IfThenElseExpr(Compare(CompareOp.GT, i, const(0)), outside, Broadcast(const(-1.0, FLOAT32), 8))
    )
    spread = Broadcast(Compare(CompareOp.LT, at(A, i), const(0.0, FLOAT32)), 8)
    second = store(A, index, Select(spread, at(A, index), at(B, index)))
    assert is_whole(agree(function("halo", [A, B], loop("i", COUNT // 8, lambda _: seq(first, second))), tmp_path))


@one_in(4)
def test_scalars_go_to_all_lanes(tmp_path: Path) -> None:
    """A number, an element and a loop's variable in every lane."""
    total = make_buffer("C", (COUNT,), "int64")
    index = ramp(i * 4, 4)
    floats = store(B, index, Broadcast(at(A, i), 4) * Broadcast(const(3.0, FLOAT32), 4))
    whole = store(total, index, at(total, index) + Broadcast(Cast(total.dtype, i), 4))
    assert is_whole(
        agree(function("fill", [A, B, total], loop("i", COUNT // 4, lambda _: seq(floats, whole))), tmp_path)
    )


@one_in(7)
@pytest.mark.parametrize("stride", [0, 2, -1, -3])
def test_elements_apart_are_gathered(stride: int, tmp_path: Path) -> None:
    """Lanes that stand apart by one distance, also backwards, and all at one place."""
    start = const(40) - i
    body = store(B, ramp(i * 8, 8), at(A, ramp(start, 8, stride)))
    assert is_whole(agree(function("gather", [A, B], loop("i", COUNT // 8, lambda _: body)), tmp_path))


@one_in(4)
def test_the_distance_may_be_a_variable(tmp_path: Path) -> None:
    """A column of a square of eight."""
    body = store(B, ramp(i * 8, 8), at(A, ramp(i, 8, const(8) - i * 0)))
    assert is_whole(agree(function("column", [A, B], loop("i", 8, lambda _: body)), tmp_path))


@one_in(56)
@pytest.mark.parametrize("noalias", [True, False])
@pytest.mark.parametrize("shift", [-1, 1, 3])
def test_every_lane_is_read_before_one_is_written(shift: int, noalias: bool, tmp_path: Path) -> None:
    """Elements moved within one buffer, up and down."""
    func = function("move", [A], store(A, ramp(8 + shift, 16), at(A, ramp(8, 16))), noalias=noalias)
    assert is_whole(agree(func, tmp_path))


@one_in(4)
def test_vectors_with_names(tmp_path: Path) -> None:
    """A named vector is used twice, as a vector and lane by lane."""
    v = Var("v", DType.parse("float32x4"))
    whole = make_buffer("C", (COUNT,), "int32")
    index = ramp(i * 4, 4)
    lanes = store(whole, index, Cast(DType.parse("int32x4"), Call("floor", (v,))))
    body = Let(v, at(A, index) * Broadcast(const(0.5, FLOAT32), 4), seq(store(B, index, v + v), lanes))
    func = function("named", [A, B, whole], loop("i", COUNT // 4, lambda _: body))
    arrays = numbers(func) | {"A": np.linspace(-9, 9, COUNT, dtype=np.float32)}
    text = agree(func, tmp_path, arrays)
    assert "lp_store_f32x4(v" in text
    assert "lane < 4" in text


@one_in(4)
def test_elements_that_are_vectors(tmp_path: Path) -> None:
    """Buffers whose elements have lanes: one element, one vector."""
    source, target = (make_buffer(name, (COUNT // 4,), "float32x4") for name in ("S", "T"))
    func = function(
        "elements",
        [source, target],
        loop("i", COUNT // 4, lambda x: store(target, x, at(source, 15 - x) + at(source, x))),
    )
    arrays = {name: np.arange(COUNT, dtype=np.float32).reshape(-1, 4) for name in ("S", "T")}
    assert is_whole(agree(func, tmp_path, arrays))


@one_in(4)
def test_scratch_memory_of_a_tile(tmp_path: Path) -> None:
    """Sums kept in memory of their own over a loop, as a register tile has them."""
    work = make_buffer("W", (16,), "float32")
    total = store(work, ramp(0, 16), at(work, ramp(0, 16)) + at(A, ramp(i * 16, 16)))
    body = seq(
        store(work, ramp(0, 16), Broadcast(const(0.0, FLOAT32), 16)),
        loop("i", 4, lambda _: total),
        store(B, ramp(0, 16), at(work, ramp(0, 16))),
    )
    func = function("tile", [A, B], Allocate(work, body))
    assert is_whole(agree(func, tmp_path, {name: np.linspace(-1, 1, COUNT, dtype=np.float32) for name in "AB"}))


@one_in(10)
@pytest.mark.parametrize(
    ("dtype", "lanes"), [("float16", 8), ("bfloat16", 8), ("bool", 8), ("float32", 3), ("float32", 32), ("int64", 16)]
)
def test_what_is_no_vector_runs_lane_by_lane(dtype: str, lanes: int, tmp_path: Path) -> None:
    """Types that are computed in others, and numbers of lanes that no register has."""
    source, target = (make_buffer(name, (COUNT,), dtype) for name in ("S", "T"))
    text = agree(
        function("lanes", [source, target], store(target, ramp(1, lanes), at(source, ramp(2, lanes)))), tmp_path
    )
    assert f"lane < {lanes}" in text
    assert "LP_VECTORS" not in text


def scattered() -> Stmt:
    """Lanes that are stored apart."""
    return store(B, ramp(0, 8, 3), at(A, ramp(0, 8)))


def unlike() -> Stmt:
    """A comparison of lanes that are wider than those that are chosen from."""
    wide = Cast(DType.parse("float64x8"), at(A, ramp(0, 8)))
    return store(B, ramp(0, 8), Select(Compare(CompareOp.LT, wide, wide), at(A, ramp(0, 8)), at(A, ramp(8, 8))))


def compared() -> Stmt:
    """A function that is no operation of IEEE 754."""
    return store(B, ramp(0, 8), Call("fmax", (at(A, ramp(0, 8)), at(A, ramp(8, 8)))))


def indirect() -> Stmt:
    """Lanes wherever an index in memory says."""
    places = Cast(DType.parse("int32x8"), at(A, ramp(0, 8)))
    return store(B, ramp(0, 8), at(A, places))


@one_in(7)
@pytest.mark.parametrize("make", [scattered, unlike, compared, indirect])
def test_other_forms_run_lane_by_lane(make: Callable[[], Stmt], tmp_path: Path) -> None:
    """What has no form for vectors is computed all the same."""
    arrays = {name: np.arange(COUNT, dtype=np.float32) % 40 for name in "AB"}
    assert "lane < 8" in agree(function("other", [A, B], make()), tmp_path, arrays)


def test_a_program_without_lanes_has_no_vectors() -> None:
    """Nothing of vectors is written where there are none."""
    text = emit_c(function("plain", [A, B], loop("i", COUNT, lambda x: store(B, x, at(A, x))))).text
    assert "VECTORS" not in text
    assert "INLINE" not in text


def test_every_helper_compiles_with_all_warnings(tmp_path: Path) -> None:
    """Each function of each type, as vectors and as lanes, with all warnings as errors."""
    kinds = {"f32", "f64", "i8", "u16", "i32", "u64"}
    of_floats = {"div", *MATH}
    pairs = [(action, kind) for action in ACTIONS for kind in kinds if kind[0] == "f" or action not in of_floats]
    text = helper_text(f"lp_{action}_{kind}x{lanes}" for action, kind in pairs for lanes in (2, 8))
    source = emit_c(function("none", [A, B], loop("i", COUNT, lambda x: store(B, x, at(A, x)))))
    for switch in ("", "#define LP_NO_VECTORS\n"):
        marker = "\nint none("
        whole = replace(source, text=switch + source.text.replace(marker, f"\n{text}\n{marker}"))
        compiles_cleanly(whole, tmp_path, "-Wno-unused-function", "-O1")


@pytest.mark.parametrize(
    "name", ["lp_f32x3", "lp_f16x8", "lp_add_f32", "lp_f32x32", "lp_swap_f32x8", "lp_fma_i32x8", "lp_div_u8x8", "f32x8"]
)
def test_there_are_no_other_helpers(name: str) -> None:
    """An unknown name raises KeyError."""
    assert name not in HELPERS
    with pytest.raises(KeyError):
        vector_helper(name)
    with pytest.raises(KeyError):
        find_helper(name)


def test_what_fits_is_written() -> None:
    """The forms that are looked for are those that are written."""
    assert c_vector.HANDLED == {BufferLoad, Broadcast, Binary, Call, Select, IfThenElseExpr, Var}
    assert set(c_vector._COMPARISONS) == set(CompareOp)
