"""Reads find values: parameters have them, temporaries must have been written, padding needs a contract."""

from __future__ import annotations

import pytest
from tests.verify.programs import facts, first, program, statuses

from layoutproof.ir.visit import stores_in
from layoutproof.verify.faults.reads import prove_no_forbidden_write, prove_readable
from layoutproof.verify.verdict.verdict import Status

TEMPORARY = """
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
        T.func_attr({{"tirx.noalias": True}})
        C = T.alloc_buffer((9,))
        {writes}
        for i in range(8):
            B[i] = C[{index}]
"""


def _temporary(writes: str, index: str = "i") -> str:
    return TEMPORARY.format(writes=writes, index=index)


@pytest.mark.parametrize(
    ("writes", "index", "expected"),
    [
        ("for i in range(8): C[i] = A[i]", "i", Status.PROVED),
        ("for i in range(8): C[i] = A[i]", "i + 1", Status.REFUTED),
        ("for i in range(7): C[i] = A[i]", "i", Status.REFUTED),
        ("for i in range(8): C[7 - i] = A[i]", "i", Status.PROVED),
        ("for i in range(4): C[2 * i] = A[i]", "i", Status.REFUTED),
        ("for i in range(4): C[2 * i] = A[i]", "i // 2 * 2", Status.PROVED),
        ("for i, j in T.grid(2, 4): C[i * 4 + j] = A[j]", "i", Status.PROVED),
        ("for i in range(8):\n            if i % 3 != 1: C[i] = A[i]", "i", Status.REFUTED),
        (
            "for i in range(8):\n            if i % 3 != 1: C[i] = A[i]\n            else: C[i] = A[0]",
            "i",
            Status.PROVED,
        ),
        ("for i in range(8):\n            if A[i] > T.float32(0): C[i] = A[i]", "i", Status.UNKNOWN),
        ("for i in range(8): C[I[i] % 9] = A[i]", "i", Status.UNKNOWN),
        ("C[8] = A[0]", "i", Status.REFUTED),
    ],
)
def test_temporaries_are_written_before_they_are_read(writes: str, index: str, expected: Status) -> None:
    """Every cell that is read needs an earlier write that certainly happens."""
    verdicts = prove_readable(facts(_temporary(writes, index)))
    assert next(v for v in verdicts if v.claim.text.startswith("read `C")).status is expected


def test_refutation_gives_the_first_unwritten_cell() -> None:
    """The counterexample is the read that finds nothing."""
    verdict = first(prove_readable(facts(_temporary("for i in range(8): C[i] = A[i]", "i + 1"))), Status.REFUTED)
    assert verdict.counterexample is not None
    assert verdict.counterexample["indices"] == [8]
    assert verdict.counterexample["values"] == {"i": 7}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("C[0] = A[i]\n            B[i] = C[0]", Status.PROVED),
        ("B[i] = C[0]\n            C[0] = A[i]", Status.REFUTED),
        ("if i > 0: B[i] = C[0]\n            C[0] = A[i]", Status.PROVED),
        ("C[i] = A[i]\n            B[i] = C[i // 2]", Status.PROVED),
        ("C[i] = A[i]\n            B[i] = C[7 - i]", Status.REFUTED),
        ("if i == 0: C[0] = T.float32(0)\n            C[0] = C[0] + A[i]\n            B[i] = C[0]", Status.PROVED),
        ("C[0] = C[0] + A[i]\n            B[i] = C[0]", Status.REFUTED),
    ],
)
def test_order_within_a_loop(body: str, expected: Status) -> None:
    """What an earlier iteration wrote is there, what a later one writes is not."""
    text = f"""
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,))
        for i in range(8):
            {body}
    """
    verdicts = [v for v in prove_readable(facts(text)) if v.claim.text.startswith("read `C")]
    assert expected in statuses(verdicts)
    assert statuses(verdicts) <= {Status.PROVED, expected}


def test_memory_allocated_in_a_loop_is_new_each_time() -> None:
    """What an earlier iteration wrote is gone when the allocation stands inside the loop."""
    text = """
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("b"):
                v = T.axis.spatial(8, i)
                C = T.alloc_buffer((1,))
                if v > 0:
                    B[v] = C[0]
                C[0] = A[v]
    """
    assert first(prove_readable(facts(text)), Status.REFUTED, "C[0]").counterexample is not None


REDUCTION = """
    @T.prim_func
    def main(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer(("n",), "float32")):
        n, m = T.int32(), T.int32()
        C = T.alloc_buffer((n,))
        for {loops}:
            with T.block("c"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vj]
        for i in range(n):
            B[i] = C[i]
"""


@pytest.mark.parametrize("loops", ["i, j in T.grid(n, m)", "j, i in T.grid(m, n)"])
def test_an_init_needs_a_first_update(loops: str) -> None:
    """A reduction's result is there where the reduction is not empty, whatever the order of the loops."""
    text = REDUCTION.format(loops=loops)
    assert Status.REFUTED in statuses(prove_readable(facts(text)))
    assert statuses(prove_readable(facts(text.replace("C = T.alloc", "T.assume(m >= 1)\n        C = T.alloc", 1)))) == {
        Status.PROVED
    }


@pytest.mark.parametrize(
    ("guard", "expected"), [("vi < 5", Status.REFUTED), ("vj < 5", Status.PROVED), ("vj > 0", Status.REFUTED)]
)
def test_an_init_does_not_run_where_the_guard_is_false(guard: str, expected: Status) -> None:
    """A result that the guard leaves out, or whose first update it skips, is not there."""
    text = (
        REDUCTION.replace('"n", "m"', "8, 8")
        .replace('"n",', "8,")
        .replace("(n,)", "(8,)")
        .replace("range(n)", "range(8)")
    )
    text = text.replace("        n, m = T.int32(), T.int32()\n", "").format(loops="i, j in T.grid(8, 8)")
    text = text.replace("                with T.init", f"                T.where({guard})\n                with T.init")
    found = statuses(prove_readable(facts(text)))
    assert (expected in found) and (expected is Status.REFUTED or found == {expected})


def test_reduction_without_init_reads_nothing() -> None:
    """Without an init the first update reads an unwritten cell."""
    text = REDUCTION.format(loops="i, j in T.grid(n, m)").replace(
        "with T.init():\n                    C[vi] = T.float32(0)", "pass"
    )
    text = text.replace("                pass\n", "")
    assert Status.REFUTED in statuses(prove_readable(facts(text)))


PADDED = """
    @T.prim_func
    def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((14,), "float32")):
        T.func_attr({{"layoutproof.layout": {{"A": {{"logical_shape": [14], "steps": [
            {{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": {contract}}}]}}}}}})
        for i in range({trip}):
            {statement}
"""


@pytest.mark.parametrize(
    ("contract", "trip", "expected"),
    [
        ("None", 14, Status.PROVED),
        ("None", 15, Status.REFUTED),
        ('"T.float32(0)"', 16, Status.PROVED),
        ('"undef"', 16, Status.PROVED),
    ],
)
def test_padding_needs_a_contract_to_be_read(contract: str, trip: int, expected: Status) -> None:
    """Padding without a contract may not be read; with one, undef included, it may."""
    text = PADDED.format(contract=contract, trip=trip, statement="B[i % 14] = A[i // 4, i % 4]")
    function = facts(text.replace('"A":', '"A_data":'))
    assert next(v for v in prove_readable(function) if v.claim.text.startswith("read `A")).status is expected


@pytest.mark.parametrize(
    ("contract", "trip", "expected"),
    [("None", 14, {Status.PROVED}), ("None", 16, {Status.REFUTED}), ('"T.float32(0)"', 16, set())],
)
def test_padding_needs_a_contract_to_be_written(contract: str, trip: int, expected: set[Status]) -> None:
    """Nobody writes padding without a contract; with one there is nothing to prove."""
    text = PADDED.format(contract=contract, trip=trip, statement="A[i // 4, i % 4] = B[i % 14]").replace(
        '"A":', '"A_data":'
    )
    verdicts = prove_no_forbidden_write(facts(text))
    assert statuses(verdicts) == expected
    for verdict in verdicts:
        if verdict.status is Status.REFUTED:
            assert verdict.counterexample is not None
            assert verdict.counterexample["indices"] in ([3, 2], [3, 3])


def test_padding_is_found_through_a_later_step() -> None:
    """A cell keeps the contract of the step that introduced it, wherever later steps put it."""
    text = """
    @T.prim_func
    def main(A: T.Buffer((4, 5), "float32"), B: T.Buffer((14,), "float32")):
        T.func_attr({"layoutproof.layout": {"A_data": {"logical_shape": [14], "steps": [
            {"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": None},
            {"index_map": "lambda i, j: [j, i]", "shape": [4, 5], "contract": "undef"}]}}})
        for i, j in T.grid(4, 5):
            if CONDITION:
                B[0] = A[i, j]
    """
    answers = {
        condition: next(
            v for v in prove_readable(facts(text.replace("CONDITION", condition))) if v.claim.text.startswith("read `A")
        ).status
        for condition in ("j < 3", "j == 4", "j == 3 and i < 2", "j == 3 and i == 2")
    }
    assert answers == {
        "j < 3": Status.PROVED,
        "j == 4": Status.PROVED,
        "j == 3 and i < 2": Status.PROVED,
        "j == 3 and i == 2": Status.REFUTED,
    }


@pytest.mark.parametrize(
    ("contract", "expected"), [('"undef"', Status.PROVED), ('"T.float32(0)"', Status.REFUTED), ("None", Status.REFUTED)]
)
def test_undefined_padding_of_a_temporary_holds_something(contract: str, expected: Status) -> None:
    """A temporary's padding may be read unwritten when its contract is undef; a value must have been written first."""
    text = f"""
    @T.prim_func
    def main(A: T.Buffer((14,), "float32"), B: T.Buffer((16,), "float32")):
        T.func_attr({{"layoutproof.layout": {{"C": {{"logical_shape": [14], "steps": [
            {{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": {contract}}}]}}}}}})
        C = T.alloc_buffer((4, 4))
        for i in range(14):
            C[i // 4, i % 4] = A[i]
        for i in range(16):
            B[i] = C[i // 4, i % 4]
    """
    function = program(text)
    name = next(s.buffer.data.name for s in stores_in(function.body) if s.buffer.name == "C")
    verdicts = prove_readable(facts(text.replace('{"C":', f'{{"{name}":')))
    assert next(v for v in verdicts if v.claim.text.startswith("read `C")).status is expected
