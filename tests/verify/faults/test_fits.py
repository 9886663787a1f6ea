"""Index arithmetic that fits its type, what is assumed of symbols for it, and arithmetic that does not fit."""

from __future__ import annotations

import pytest
from tests.shares import one_in
from tests.verify.programs import facts, program, statuses

from layoutproof.ir.dtype import INT64, UINT64
from layoutproof.ir.expr import Cast, Compare, IntImm, Var
from layoutproof.ir.operators import CompareOp
from layoutproof.ir.text import expr_text
from layoutproof.verify.faults.arithmetic import call_assumptions, prove_index_fits
from layoutproof.verify.program.questions import above
from layoutproof.verify.verdict.verdict import Status

BIG = """
    @T.prim_func
    def main(A: T.Buffer((1 << 20, 1 << 20), "float32"), B: T.Buffer((4,), "float32")):
        for i, j in T.grid({rows}, 1048576):
            if {condition}:
                B[i % 4] = T.float32(1)
"""


@pytest.mark.parametrize(
    ("rows", "condition", "expected"),
    [
        (2047, "i * 1048576 + j >= 0", Status.PROVED),
        (2048, "i * 1048576 + j >= 0", Status.PROVED),
        (2049, "i * 1048576 + j >= 0", Status.REFUTED),
        (4096, "i < 2048 and i * 1048576 + j >= 0", Status.PROVED),
        (4096, "i <= 2048 and i * 1048576 + j >= 0", Status.REFUTED),
        (4096, "T.int64(1048576) * T.Cast('int64', i) + T.Cast('int64', j) >= T.int64(0)", Status.PROVED),
    ],
)
def test_concrete_arithmetic(rows: int, condition: str, expected: Status) -> None:
    """Every subexpression is within its type in every instance in which it is evaluated, guards respected."""
    text = BIG.format(rows=rows, condition=condition).replace("1 << 20, 1 << 20", "4, 4")
    verdicts = prove_index_fits(facts(text))
    assert expected in statuses(verdicts)


def test_refutation_has_the_value() -> None:
    """The counterexample evaluates to a number that the type does not have."""
    text = BIG.format(rows=2049, condition="i * 1048576 + j >= 0").replace("1 << 20, 1 << 20", "4, 4")
    verdict = next(v for v in prove_index_fits(facts(text)) if v.status is Status.REFUTED)
    assert verdict.counterexample is not None
    assert verdict.counterexample["value"] > 2**31 - 1


HALO = """
    @T.prim_func
    def main(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
        n = T.int32()
        P = T.alloc_buffer((n + 2,))
        for i in range(n + 2):
            P[i] = T.if_then_else(1 <= i and i < n + 1, A[i - 1], T.float32(0))
        for i, r in T.grid(n, 3):
            B[i] = P[i + r]
"""


def test_symbols_alone_are_assumed_and_listed() -> None:
    """What is needed of symbols is assumed, said in the reason, and listed for the caller to check."""
    (verdict,) = prove_index_fits(facts(HALO))
    assert verdict.status is Status.PROVED
    assert verdict.reason is not None
    assert "`n + 2` does not overflow int32" in verdict.reason
    assert {expr_text(e, "plain") for e in call_assumptions(program(HALO))} == {"n + 2", "n + 1"}


def test_concrete_programs_assume_nothing() -> None:
    """Without symbols there is nothing to assume."""
    text = HALO.replace("n = T.int32()", "").replace('"n"', "8").replace("n + ", "8 + ").replace("(n, 3)", "(8, 3)")
    (verdict,) = prove_index_fits(facts(text))
    assert verdict.status is Status.PROVED
    assert verdict.reason is None


FLAT = """
    @T.prim_func
    def main(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer((n * m,), "float32")):
        n, m = T.int32(), T.int32()
        for i, j in T.grid(n, m):
            B[{index}] = A[i, j]
"""


def test_flat_access_below_an_extent_that_fits() -> None:
    """A flat index in bounds of an extent that fits has only parts that fit."""
    assert statuses(prove_index_fits(facts(FLAT.format(index="i * m + j")))) == {Status.PROVED}


def test_flat_access_that_may_overflow_is_not_proved() -> None:
    """A product that is not bounded by an extent may overflow, and is not claimed to fit."""
    assert Status.PROVED not in statuses(prove_index_fits(facts(FLAT.format(index="i * m + j + i * n * m"))))


def test_data_in_an_index_may_overflow() -> None:
    """Arithmetic on a loaded index must fit too, which depends on data."""
    text = """
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[(I[i] + 1) % 8]
    """
    assert statuses(prove_index_fits(facts(text))) == {Status.UNKNOWN}


GUARDED = """
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((32, "n", "n"), "float32"), B: T.Buffer((32, "n", "n"), "float32")):
        n = T.int32()
        T.func_attr({{"tirx.noalias": True}})
        for {x}, {y} in T.grid({extent}, 64):
            if {guard}:
                B[({at}) // (n * n), ({at}) % (n * n) // n, ({at}) % n] = {value}
"""
_LOAD = "A[({at}) // (n * n), ({at}) % (n * n) // n, ({at}) % n]"


def guarded(
    x: str = "x",
    y: str = "y",
    extent: str = "(n * n + 1) // 2",
    guard: str = "{at} < n * n * 32",
    value: str = _LOAD,
    at: str = "{x} * 64 + {y}",
) -> str:
    """An array gone through in one loop over cells, whose number is a product of symbols."""
    at = at.format(x=x, y=y)
    said = {"x": x, "y": y, "at": at}
    return GUARDED.format(x=x, y=y, extent=extent, guard=guard.format(**said), value=value.format(**said), at=at)


@one_in(12)
@pytest.mark.parametrize(
    ("old", "new", "fits"),
    [
        (guarded(), guarded(), True),
        (guarded(), guarded("a", "b"), True),
        (guarded(), guarded(extent="(n * n + 1) // 2 + 1"), False),
        (guarded(), guarded(at="{y} + {x} * 64"), False),
        (guarded(guard="{x} < 7 and {at} < n * n * 32"), guarded(), False),
        (guarded(guard="A[0, 0, 0] < T.float32(1) and {at} < n * n * 32"), guarded(), False),
        (guarded(), guarded(guard="{at} * 2 < n * n * 64"), False),
    ],
)
def test_what_the_old_program_computes_too(old: str, new: str, fits: bool) -> None:
    """Where the old program computes the same at the same instances, a run in which it does not fit is none that has to
    be preserved; at fewer instances, of other sums, or where data decides, that says nothing.
    """
    alone, told = (prove_index_fits(facts(new), before) for before in (None, facts(old).program))
    assert statuses(alone) != {Status.PROVED}
    assert (statuses(told) == {Status.PROVED}) is fits


def test_a_side_that_need_not_be_computed() -> None:
    """Of a side of `T.Select` that is not chosen, the old program need not have the fault."""
    text = """
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer(("n", "n"), "float32"), B: T.Buffer((4,), "float32")):
        n = T.int32()
        T.func_attr({{"tirx.noalias": True}})
        for i, j in T.grid(n, n):
            if {index} >= 0:
                B[0] = T.float32(1)
"""
    plain, chosen = "i * n + j * 70000", "T.Select(i < 1, i * n + j * 70000, 0)"
    new = facts(text.format(index=plain))
    assert statuses(prove_index_fits(new, new.program)) == {Status.PROVED}
    assert statuses(prove_index_fits(new, facts(text.format(index=chosen)).program)) != {Status.PROVED}


def test_the_widest_unsigned_type_has_an_end() -> None:
    """That an index is below the last number of 64 bits can be said."""
    index = Cast(UINT64, Var("n", INT64))
    assert above(index, UINT64.max_int) == Compare(CompareOp.GT, index, IntImm(UINT64.max_int, UINT64))
