"""Parallel and vectorised loops without races, and with them."""

from __future__ import annotations

import pytest
from tests.verify.programs import facts, statuses

from layoutproof.verify.faults.races import prove_race_free
from layoutproof.verify.verdict.verdict import Status

PROGRAM = """
    @T.prim_func
    def main(A: T.Buffer((8, 8), "float32"), I: T.Buffer((8,), "int32"), B: T.Buffer((8, 8), "float32")):
        T.func_attr({{"tirx.noalias": {noalias}}})
        C = T.alloc_buffer((8,))
        for i in {kind}(8):
            for j in range(8):
                {statement}
"""


@pytest.mark.parametrize("kind", ["T.parallel", "T.vectorized"])
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("B[i, j] = A[i, j]", Status.PROVED),
        ("B[j, i] = A[i, j]", Status.PROVED),
        ("B[(i + 3) % 8, j] = A[i, j]", Status.PROVED),
        ("B[i // 2, j] = A[i, j]", Status.REFUTED),
        ("B[0, j] = A[i, j]", Status.REFUTED),
        ("B[0, i] = B[0, i] + A[i, j]", Status.PROVED),
        ("B[0, 0] = B[0, 0] + A[i, j]", Status.REFUTED),
        ("if i > 0: B[i, j] = B[i - 1, j]", Status.REFUTED),
        ("if i % 2 == 1: B[i, j] = B[i - 1, j]", Status.PROVED),
        ("if A[i, j] > T.float32(0): B[0, 0] = A[i, j]", Status.UNKNOWN),
        ("B[I[i] % 8, j] = A[i, j]", Status.UNKNOWN),
        ("C[j] = A[i, j]", Status.REFUTED),
    ],
)
def test_loops(kind: str, statement: str, expected: Status) -> None:
    """Two iterations race when one writes a cell that the other touches; what data may bring about is unknown."""
    verdicts = prove_race_free(facts(PROGRAM.format(kind=kind, statement=statement, noalias=True)))
    assert statuses(verdicts) == {expected}


def test_serial_loops_have_nothing_to_prove() -> None:
    """A serial loop cannot race."""
    assert not prove_race_free(facts(PROGRAM.format(kind="T.serial", statement="B[0, 0] = A[i, j]", noalias=True)))


def test_parameters_may_overlap_without_noalias() -> None:
    """Without `noalias` two parameters may be one memory, so a parallel copy is not proved."""
    (verdict,) = prove_race_free(facts(PROGRAM.format(kind="T.parallel", statement="B[i, j] = A[i, j]", noalias=False)))
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason is not None
    assert "overlap" in verdict.reason


def test_refutation_has_both_iterations() -> None:
    """The counterexample names two iterations and the cell in which they meet."""
    (verdict,) = prove_race_free(
        facts(PROGRAM.format(kind="T.parallel", statement="B[i // 2, j] = A[i, j]", noalias=True))
    )
    assert verdict.counterexample is not None
    one, other = verdict.counterexample["first"], verdict.counterexample["second"]
    assert one["i"] != other["i"]
    assert (one["i"] // 2, one["j"]) == (other["i"] // 2, other["j"])


def test_memory_of_one_iteration_does_not_race() -> None:
    """A temporary that is allocated inside the loop belongs to one iteration."""
    text = """
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.func_attr({"tirx.noalias": True})
        for i in T.parallel(8):
            with T.block("b"):
                v = T.axis.spatial(8, i)
                C = T.alloc_buffer((1,))
                C[0] = A[v]
                B[v] = C[0]
    """
    assert statuses(prove_race_free(facts(text))) == {Status.PROVED}


@pytest.mark.parametrize(("stride", "expected"), [("1", Status.PROVED), ("2", Status.PROVED), ("0", Status.REFUTED)])
def test_lanes_of_a_store(stride: str, expected: Status) -> None:
    """Two lanes of one store may not meet."""
    text = f"""
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        B[T.ramp(0, {stride}, 4)] = A[T.ramp(0, 1, 4)]
    """
    assert statuses(prove_race_free(facts(text))) == {expected}


def test_flat_symbolic_rows_do_not_race() -> None:
    """Rows of a flat buffer of symbolic extents are disjoint."""
    text = """
    @T.prim_func
    def main(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer((n * m,), "float32")):
        n, m = T.int32(), T.int32()
        T.func_attr({"tirx.noalias": True})
        for i in T.parallel(n):
            for j in range(m):
                B[i * m + j] = A[i, j]
    """
    assert statuses(prove_race_free(facts(text))) == {Status.PROVED}
