"""Divisions, shifts and conversions that have a result, and those that do not."""

from __future__ import annotations

import pytest
from tests.verify.programs import facts, statuses

from layoutproof.verify.traps import prove_no_trap
from layoutproof.verify.verdict import Status

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
        ("if i > 0 and 8 // i > 2: B[i] = A[i]", {Status.PROVED}),
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
    """A verdict for each operation that could have no result, in the instances in which it is evaluated; none where that is plain."""
    assert statuses(prove_no_trap(facts(PROGRAM.format(statement=statement)))) == expected


def test_refutation_is_an_instance() -> None:
    """The counterexample is where the divisor is 0."""
    (verdict,) = prove_no_trap(facts(PROGRAM.format(statement="B[i // (i - 7) % 8] = A[i]")))
    assert verdict.counterexample is not None
    assert verdict.counterexample["values"]["i"] == 7
