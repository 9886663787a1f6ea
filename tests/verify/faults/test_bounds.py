"""Accesses in bounds: proved, refuted with an instance that was evaluated, or unknown with the expression that is to
blame.
"""

from __future__ import annotations

import pytest
from tests.verify.programs import facts, first, program, statuses

from layoutproof.ir.expr import Var
from layoutproof.verify.faults.bounds import prove_in_bounds
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.verdict.verdict import Status

COPY = """
    @T.prim_func
    def main(A: T.Buffer(({extent},), "float32"), B: T.Buffer((14,), "float32")):
        for i in range({trip}):
            {guard}B[i % 14] = A[{index}]
"""


@pytest.mark.parametrize(
    ("extent", "trip", "guard", "index", "expected"),
    [
        (14, 14, "", "i", Status.PROVED),
        (14, 15, "", "i", Status.REFUTED),
        (14, 14, "", "i + 1", Status.REFUTED),
        (14, 14, "", "i - 1", Status.REFUTED),
        (14, 16, "if i < 14: ", "i", Status.PROVED),
        (14, 16, "if i < 15: ", "i", Status.REFUTED),
        (14, 16, "if 1 <= i and i < 15: ", "i - 1", Status.PROVED),
        (14, 16, "if not (i >= 14): ", "i", Status.PROVED),
        (4, 14, "", "i // 4", Status.PROVED),
        (3, 14, "", "i // 4", Status.REFUTED),
        (4, 14, "", "i % 4", Status.PROVED),
        (4, 14, "", "(i - 20) % 4", Status.PROVED),
        (4, 14, "", "T.truncmod(i - 20, 4)", Status.REFUTED),
        (8, 8, "", "i ^ 5", Status.PROVED),
        (8, 9, "", "i ^ 5", Status.REFUTED),
        (14, 0, "", "i + 100", Status.PROVED),
    ],
)
def test_concrete_accesses(extent: int, trip: int, guard: str, index: str, expected: Status) -> None:
    """A load is in bounds exactly when no iteration that happens leaves the buffer."""
    verdicts = prove_in_bounds(facts(COPY.format(extent=extent, trip=trip, guard=guard, index=index)))
    read = next(v for v in verdicts if v.claim.text.startswith("read A"))
    assert read.status is expected


def test_refutation_names_instance_and_line() -> None:
    """A counterexample has the loops' values, the index and the extents, and the claim names buffer and line."""
    verdict = first(prove_in_bounds(facts(COPY.format(extent=14, trip=14, guard="", index="i + 1"))), Status.REFUTED)
    assert verdict.counterexample is not None
    assert verdict.counterexample["values"] == {"i": 13}
    assert verdict.counterexample["indices"] == [14]
    assert verdict.counterexample["extents"] == [14]
    assert "A[i + 1]" in verdict.claim.text
    assert "line 4" in verdict.claim.text


@pytest.mark.parametrize(
    ("index", "expected"),
    [("i, j", Status.PROVED), ("j, i", Status.REFUTED), ("i, j + 1", Status.REFUTED), ("i, m - 1 - j", Status.PROVED)],
)
def test_symbolic_accesses(index: str, expected: Status) -> None:
    """Extents that are symbols stand for every number from 0."""
    verdicts = prove_in_bounds(
        facts(f"""
        @T.prim_func
        def main(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer(("n", "m"), "float32")):
            n, m = T.int32(), T.int32()
            for i, j in T.grid(n, m):
                B[i, j] = A[{index}]
        """)
    )
    assert next(v for v in verdicts if v.claim.text.startswith("read A")).status is expected


def test_side_condition_is_used() -> None:
    """What a caller vouches for of the symbols, and what the program assumes of them, count."""
    function = program("""
        @T.prim_func
        def main(A: T.Buffer(("n",), "float32"), B: T.Buffer((4,), "float32")):
            n = T.int32()
            for i in range(4):
                B[i] = A[i]
    """)
    assert Status.REFUTED in statuses(prove_in_bounds(Facts.of(function)))
    assert statuses(prove_in_bounds(Facts.of(function, where=Var("n") >= 4))) == {Status.PROVED}
    assert Status.REFUTED in statuses(prove_in_bounds(Facts.of(function, where=Var("n") >= 3)))
    assuming = facts("""
        @T.prim_func
        def main(A: T.Buffer(("n",), "float32"), B: T.Buffer((4,), "float32")):
            n = T.int32()
            T.evaluate(T.assume(n >= 4))
            for i in range(4):
                B[i] = A[i]
    """)
    assert statuses(prove_in_bounds(assuming)) == {Status.PROVED}


GATHER = """
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
        T.func_attr({{"tirx.noalias": True}})
        for i in range(8):
            {statement}
"""


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("B[i] = A[I[i]]", Status.UNKNOWN),
        ("B[i] = A[I[i] % 8]", Status.PROVED),
        ("B[i] = A[T.min(T.max(I[i], 0), 7)]", Status.PROVED),
        ("if 0 <= I[i] and I[i] < 8: B[i] = A[I[i]]", Status.PROVED),
        ("if 0 <= I[i] and I[i] < 9: B[i] = A[I[i]]", Status.UNKNOWN),
        ("if 0 <= I[i] and I[7 - i] < 8: B[i] = A[I[i]]", Status.UNKNOWN),
        ("if 0 <= I[i] and I[i] + 1 < 9: B[i] = A[I[i]]", Status.UNKNOWN),
        ("if 0 <= I[i] and I[i] < i + 1: B[i] = A[I[i]]", Status.PROVED),
        ("if 0 <= I[i] and I[i] < 8 + i * 1000000000 - i * 1000000000: B[i] = A[I[i]]", Status.UNKNOWN),
        ("B[i] = T.if_then_else(0 <= I[i] and I[i] < 8, A[I[i]], T.float32(0))", Status.PROVED),
    ],
)
def test_indices_from_data(statement: str, expected: Status) -> None:
    """An index that is loaded may be anything of its type, unless a guard on the same cell says more; arithmetic on
    data may wrap.
    """
    verdicts = prove_in_bounds(facts(GATHER.format(statement=statement)))
    assert next(v for v in verdicts if v.claim.text.startswith("read A")).status is expected


def test_guard_on_a_cell_that_changes_is_forgotten() -> None:
    """A guard on a loaded index says nothing once the program writes that buffer."""
    verdicts = prove_in_bounds(
        facts("""
        @T.prim_func
        def main(A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
            T.func_attr({"tirx.noalias": True})
            for i in range(8):
                if 0 <= I[i] and I[i] < 8:
                    I[i] = 9
                    B[i] = A[I[i]]
        """)
    )
    assert first(verdicts, Status.UNKNOWN, "read A").reason is not None


def test_unknown_names_the_index() -> None:
    """An index that cannot be decided because it depends on data is named."""
    verdict = first(prove_in_bounds(facts(GATHER.format(statement="B[i] = A[I[i]]"))), Status.UNKNOWN)
    assert verdict.reason is not None
    assert "depends on data" in verdict.reason


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("i*m + j", Status.PROVED),
        ("(i*m + j)", Status.PROVED),
        ("i*m + j + 1", Status.REFUTED),
        ("j*m + i", Status.REFUTED),
        ("i*n + j", Status.REFUTED),
    ],
)
def test_products_of_symbols(index: str, expected: Status) -> None:
    """A flat access of symbolic extents is decided by its digits, a wrong one by the solver for products."""
    verdicts = prove_in_bounds(
        facts(f"""
        @T.prim_func
        def main(B: T.Buffer(("n", "m"), "float32"), A: T.Buffer((n * m,), "float32")):
            n, m = T.int32(), T.int32()
            for i, j in T.grid(n, m):
                B[i, j] = A[{index}]
        """)
    )
    assert next(v for v in verdicts if v.claim.text.startswith("read A")).status is expected


def test_fused_loop_is_split_by_its_symbol() -> None:
    """`f // m` and `f % m` over `n * m` iterations are in bounds of `(n, m)`."""
    verdicts = prove_in_bounds(
        facts("""
        @T.prim_func
        def main(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer((n * m,), "float32")):
            n, m = T.int32(), T.int32()
            for f in range(n * m):
                B[f] = A[f // m, f % m]
        """)
    )
    assert statuses(verdicts) == {Status.PROVED}


def test_chain_of_lets_does_not_grow() -> None:
    """Thirty lets, each of which uses the one before twice, are decided as fast as few."""
    lets = "\n".join(f"            x{k}: T.int32 = (x{k - 1} + x{k - 1}) % 8" for k in range(1, 30))
    text = f"""
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            x0: T.int32 = i
{lets}
            B[i] = A[x29]
    """
    assert statuses(prove_in_bounds(facts(text))) == {Status.PROVED}
    verdict = first(prove_in_bounds(facts(text.replace("A[x29]", "A[x29 + 8]"))), Status.REFUTED)
    assert verdict.counterexample is not None


def test_division_that_is_not_evaluated_proves_nothing() -> None:
    """A divisor may be 0 where the quotient is not evaluated: such an instance still happens."""
    text = """
    @T.prim_func
    def main(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32"), m: T.int32):
        n = T.int32()
        for i in range(n):
            if m == 0 or i // m == n:
                B[i] = A[i + 1]
    """
    assert first(prove_in_bounds(facts(text)), Status.REFUTED, "read A").counterexample is not None


def test_vector_accesses_count_every_lane() -> None:
    """A ramp is in bounds when its last lane is."""
    text = """
        @T.prim_func
        def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
            for i in range(4):
                B[T.ramp(i * 4, 1, 4)] = A[T.ramp(i * 4{}, 1, 4)]
    """
    assert statuses(prove_in_bounds(facts(text.format("")))) == {Status.PROVED}
    refuted = first(prove_in_bounds(facts(text.format(" + 1"))), Status.REFUTED)
    assert refuted.counterexample is not None
    assert refuted.counterexample["indices"] == [16]
