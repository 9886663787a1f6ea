"""Programs and contracts that look right and are not: each was accepted once."""

from __future__ import annotations

import numpy as np
import pytest
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.faults.vacuity import check_program
from layoutproof.verify.verdict.verdict import Status

SPLIT = "lambda i: [i//4, i%4]"


def copy_of(extent: int, dtype: str = "float32", index: str = "v") -> PrimFunc:
    """`B[i] = A[i]`."""
    return loads(f"""
@T.prim_func
def main(A: T.Buffer(({extent},), "{dtype}"), B: T.Buffer(({extent},), "{dtype}")):
    for i in range({extent}):
        with T.block("b"):
            v = T.axis.spatial({extent}, i)
            B[v] = A[{index}]
""")


def body(text: str) -> PrimFunc:
    """A function over two buffers of four numbers."""
    head = (
        '@T.prim_func\ndef main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):\n'
        '    T.func_attr({"tir.noalias": True})\n'
    )
    return loads(head + "".join(f"    {line}\n" for line in text.splitlines()))


@pytest.mark.parametrize("buffer", ["A", "B"])
@pytest.mark.parametrize(
    "value", ["{0}[i, j - 1]", "{0}[i, j] + T.float32(1)", "{0}[3, 3]", "{0}[i, T.min(j + 1, 3)]", "{0}[4, 0]"]
)
def test_padding_may_not_refer_to_padding(buffer: str, value: str) -> None:
    """What a pad value loads is an element: padding would depend on the order of filling, or on what the caller left
    there.
    """
    schedule = Schedule(copy_of(13))
    with pytest.raises(IllegalTransform, match="LP325"):
        schedule.transform_layout("b", buffer, SPLIT, f"lambda i, j: {value.format(buffer)}")


@one_in(4)
def test_padding_may_refer_to_elements() -> None:
    """Padding that wraps around to the beginning holds what the beginning holds, in integers too."""
    for dtype in ("float32", "int32"):
        schedule = Schedule(copy_of(14, dtype))
        schedule.transform_layout("b", "A", SPLIT, "lambda i, j: A[0, (4*i + j) % 14]")
        schedule.transform_layout("b", "B", SPLIT, "lambda i, j: B[0, (4*i + j) % 14]")
        kernel = schedule.build("c")
        array = np.arange(14).astype(dtype)
        packed, result = np.zeros((4, 4), dtype), np.zeros((4, 4), dtype)
        packed.reshape(-1)[:14] = array
        packed.reshape(-1)[14:] = array[:2]
        kernel.raw(packed, result)
        assert np.array_equal(packed, result)
        assert np.array_equal(kernel(array), array)


def test_integer_padding_computed_from_elements_is_refused() -> None:
    """Integer padding that refers to elements is one load."""
    with pytest.raises(IllegalTransform, match="one load"):
        Schedule(copy_of(13, "int32")).transform_layout("b", "A", SPLIT, "lambda i, j: A[0, 0] + 1")


@pytest.mark.parametrize("index", ["[4 // j, 0]", "[i - 3, n % 4]", '[0, T.Cast("int32", A[0, 0])]'])
def test_padding_may_not_refer_to_what_has_no_place(index: str) -> None:
    """An index that divides by zero, depends on a symbol, or is loaded itself is refused by name."""
    func = loads("""
@T.prim_func
def main(A: T.Buffer((13,), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    with T.block("b"):
        B[0] = A[0]
""")
    with pytest.raises(IllegalTransform, match="LP325"):
        Schedule(func).transform_layout("b", "A", SPLIT, f"lambda i, j: A{index}")


@pytest.mark.parametrize(
    "text",
    [
        'X = T.alloc_buffer((4,), "float32")\nT.evaluate(T.assume(X[0] > T.float32(0)))\nB[0] = A[0]',
        "for i in T.parallel(3):\n    T.evaluate(T.assume(B[0] > T.float32(0)))\n    B[i] = A[i]",
    ],
    ids=["uninitialised", "race"],
)
def test_an_assumption_reads_what_it_speaks_of(text: str) -> None:
    """A load in an assumption must find a value, and may not race with a store."""
    assert any(v.status is not Status.PROVED for v in check_program(body(text)))


def test_an_assumption_may_not_look_at_forbidden_padding() -> None:
    """Padding without a contract stays closed to the contract of a later transform."""
    schedule = Schedule(copy_of(4))
    schedule.transform_layout("b", "A", "lambda i: [i*3 + 1]")
    with pytest.raises(IllegalTransform):
        schedule.transform_layout("b", "A", SPLIT, "lambda i, j: A[0, 0]")


def test_a_parameter_is_stored_differently_only_where_nothing_overlaps_it() -> None:
    """Without noalias the kernel refuses overlapping arrays once the layout of one changes, logical ones too."""
    schedule = Schedule(copy_of(13))
    schedule.transform_layout("b", "A", "lambda i: [12 - i]")
    kernel = schedule.build("c")
    array = np.arange(13, dtype=np.float32)
    with pytest.raises(LayoutproofError, match="overlap"):
        kernel(array, array)
    assert np.array_equal(kernel(array), array)


@pytest.mark.parametrize("index_map", ["lambda i: [i//2]", "lambda i: [i*3]"])
def test_a_layout_record_is_proved_and_not_believed(index_map: str) -> None:
    """A record whose map is not injective, or leaves its box, is refused where a schedule begins."""
    step = f'{{"index_map": "{index_map}", "shape": [4], "contract": None}}'
    func = loads(f"""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({{"layoutproof.layout": {{"A_data": {{"logical_shape": [3], "steps": [{step}]}}}}}})
    B[0] = A[0]
""")
    with pytest.raises(LayoutproofError):
        Schedule(func)


def test_what_index_arithmetic_cannot_be_is_said() -> None:
    """Unsigned indices and extents past their type have messages of their own."""
    with pytest.raises(IllegalTransform, match="LP330"):
        Schedule(copy_of(13, index='T.Cast("uint64", v)')).transform_layout("b", "A", SPLIT)
    func = loads("""
@T.prim_func
def main(A: T.Buffer((2147483647, 1), "int8"), B: T.Buffer((1,), "int8")):
    with T.block("b"):
        B[0] = A[0, 0]
""")
    with pytest.raises(IllegalTransform, match="LP330"):
        Schedule(func).transform_layout("b", "A", "lambda i, j: [i + j + 1]", 0)
