"""Divisions, shifts and conversions that have a result, and those that do not."""

from __future__ import annotations

from textwrap import dedent

import pytest
from tests.verify.programs import facts, statuses

from layoutproof.ir.script.reader import loads
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.verify.faults.arithmetic import prove_no_trap
from layoutproof.verify.verdict.verdict import Status

PROGRAM = """
    @T.prim_func
    def main(A: T.Buffer((8,), "int32"), F: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int32"), n: T.int32):
        T.func_attr({{"tirx.noalias": True}})
        for i in range(8):
            {statement}
"""


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("B[i // 2] = A[i % 4]", set()),
        ("B[i // (i + 1)] = A[i]", {Status.PROVED}),
        ("B[i // (i - 9)] = A[i]", {Status.PROVED}),
        ("B[i // (i - 7) % 8] = A[i]", {Status.REFUTED}),
        ("if i > 0: B[8 // i % 8] = A[i]", {Status.PROVED}),
        ("if i > 0 and 8 // i > 2: B[i] = A[i]", {Status.UNKNOWN}),
        ("if i == 0 or 8 // i > 2: B[i] = A[i]", {Status.UNKNOWN}),
        ("if i > 0 and A[8 // i % 8] > 2: B[i] = A[i]", {Status.UNKNOWN}),
        ("if n > 0 and A[i] // n > 2: B[i] = A[i]", {Status.UNKNOWN}),
        ("if i < 4 and A[i] << i * 5 > 2: B[i] = A[i]", {Status.UNKNOWN}),
        ("if i < 4 and A[i] > T.Cast('int32', F[i]): B[i] = A[i]", {Status.UNKNOWN}),
        ("B[T.Cast('int32', i > 0 and 8 // i > 2)] = A[i]", {Status.UNKNOWN}),
        ("if i > 0 and 8 // (i + 1) > 2: B[i] = A[i]", {Status.PROVED}),
        ("if T.if_then_else(i > 0, 8 // i > 2, i < 0): B[i] = A[i]", {Status.PROVED}),
        ("T.assume(i == 0 or 8 // i > 0)", {Status.PROVED}),
        ("if 8 // i > 2: B[i] = A[i]", {Status.REFUTED}),
        ("B[i] = A[i % n % 8]", {Status.REFUTED}),
        ("if n > 0: B[i] = A[i % n % 8]", {Status.PROVED}),
        ("B[i] = A[i] // 3", set()),
        ("B[i] = A[i] // A[0]", {Status.UNKNOWN}),
        ("B[i] = A[i] // (i + 1)", {Status.PROVED}),
        ("B[i] = A[i] // -1", {Status.UNKNOWN}),
        ("B[i] = (A[i] % 4) // -1", {Status.PROVED}),
        ("B[i] = A[i] << i", {Status.PROVED}),
        ("B[i] = A[i] << (i * 5)", {Status.REFUTED}),
        ("B[i] = A[i] >> (i - 1)", {Status.REFUTED}),
        ("B[i] = T.Cast('int32', F[i])", {Status.UNKNOWN}),
        ("B[i] = T.Cast('int32', T.float32(2.5))", {Status.PROVED}),
        ("B[i] = T.Cast('int32', T.Cast('float32', i * 3))", {Status.PROVED}),
    ],
)
def test_operations_that_may_trap(statement: str, expected: set[Status]) -> None:
    """A verdict for each operation that could have no result, in the instances in which it is evaluated; none where
    that is plain.
    """
    assert statuses(prove_no_trap(facts(PROGRAM.format(statement=statement)))) == expected


def test_refutation_is_an_instance() -> None:
    """The counterexample is where the divisor is 0."""
    (verdict,) = prove_no_trap(facts(PROGRAM.format(statement="B[i // (i - 7) % 8] = A[i]")))
    assert verdict.counterexample is not None
    assert verdict.counterexample["values"]["i"] == 7


def test_the_right_side_of_and_is_evaluated() -> None:
    """The message says who evaluates it, and what to write."""
    (verdict,) = prove_no_trap(facts(PROGRAM.format(statement="if i > 0 and 8 // i > 2: B[i] = A[i]")))
    assert verdict.reason is not None and "traps at i = 0" in verdict.reason
    assert "both sides of `and` and `or`" in verdict.reason and "T.if_then_else" in verdict.reason


BESIDE = "if n > 0 and i // n > 2: B[i] = A[i]"
INSIDE = """if n > 0:
                if i // n > 2: B[i] = A[i]"""


@pytest.mark.parametrize(
    ("new", "old", "status"),
    [
        (BESIDE, BESIDE, Status.PROVED),
        (BESIDE, INSIDE, Status.UNKNOWN),
        (BESIDE, "if n > 1 and i // n > 2: B[i] = A[i]", Status.PROVED),
        (BESIDE, "if i > 0 and i // (n + 1) > 2: B[i] = A[i]", Status.UNKNOWN),
        (BESIDE, "if n > 0: B[i // n] = A[i]", Status.UNKNOWN),
        (BESIDE, "if i < 4:\n                if n > 0 and i // n > 2: B[i] = A[i]", Status.UNKNOWN),
        (INSIDE, BESIDE, Status.PROVED),
        ("if n > 0 and A[i] // n > 2: B[i] = A[i]", "if n > 0 and A[i] // n > 2: B[i] = A[i]", Status.UNKNOWN),
    ],
)
def test_what_the_old_program_evaluates_as_well(new: str, old: str, status: Status) -> None:
    """An operation that the old program evaluates at the same instances, both sides of `and` taken, is no new trap; any
    other is.
    """
    before = facts(PROGRAM.format(statement=old)).program
    (verdict,) = prove_no_trap(facts(PROGRAM.format(statement=new)), before)
    assert verdict.status is status


def test_conditions_that_are_joined_are_refused() -> None:
    """Two branches may not become one on `and` where that evaluates a division by zero; one may become two."""
    joined, apart = (loads(dedent(PROGRAM.format(statement=statement))) for statement in (BESIDE, INSIDE))
    assert compare(apart, joined).status is Status.UNKNOWN
    assert compare(joined, apart).status is Status.PROVED
    assert compare(joined, joined).status is Status.PROVED
