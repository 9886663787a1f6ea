"""The search itself: sizes, assumptions, undefined values, fast-math assumptions, hints, budgets, large programs, its
reports.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.shares import one_in
from tests.verify.replay.rewrites import func, pair, relaid

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_condition
from layoutproof.ir.rewrite import CellMap, Rewrite, Witness
from layoutproof.verify.replay.refute import Budget, find_counterexample, replays
from layoutproof.verify.values.fast_math import ALL, FastMath


def two(parameters: str, before: str, after: str) -> Rewrite:
    """Two programs over the same parameters."""
    return pair(func(parameters, before), func(parameters, after))


def test_the_smallest_size_that_shows_it() -> None:
    """A tail that tiles of four do not cover is seen where n is no multiple of four, and the report has the least such
    n.
    """
    body = "for i in range({}):\n    B[i] = A[i] + T.float32(1)"
    rewrite = two("A: f32[n]; B: f32[n]", body.format("n"), body.format("n // 4 * 4"))
    found = find_counterexample(rewrite)
    assert found is not None and found.symbols == {"n": 1}
    assert "with n = 1" in found.text()


def test_sizes_that_callers_exclude_are_not_tried() -> None:
    """`where` holds of every size that is tried, while it is made small too."""
    body = "for i in range({}):\n    B[i] = A[i] + T.float32(1)"
    rewrite = two("A: f32[n]; B: f32[n]", body.format("n"), body.format("n // 4 * 4"))
    multiple, large = (parse_condition(text, {"n": Var("n")}) for text in ("n % 4 == 0", "n >= 3"))
    assert find_counterexample(rewrite, where=multiple) is None
    found = find_counterexample(rewrite, where=large)
    assert found is not None and found.symbols == {"n": 3}
    assert not replays(rewrite, found.to_dict(), where=multiple)


def test_assumptions_of_the_old_program_hold_of_the_input() -> None:
    """Data that an assumption excludes is no counterexample; what it allows is found although random data breaks it."""
    assume = "for i in range(6):\n    T.evaluate(T.assume({}))\n"
    body = "for i in range(6):\n    B[i] = A[i] {} T.float32(3)"
    for condition, other, differs in (
        ("A[i] == T.float32(3)", "T.float32(6)", False),
        ("i < 4 or A[i] == T.float32(3)", "T.float32(6)", True),
        ("A[i] < T.float32(0)", "T.float32(0)", True),
    ):
        before = assume.format(condition) + body.format("+")
        after = assume.format(condition) + f"for i in range(6):\n    B[i] = {other}"
        found = find_counterexample(two("A: f32[6]; B: f32[6]", before, after))
        assert (found is not None) is differs


@one_in(4)
def test_an_index_that_is_data_is_kept_in_bounds() -> None:
    """An assumption that bounds loaded indices is satisfied by repair, and the wrong one of two gathers is found."""
    assume = "for i in range(4):\n    T.evaluate(T.assume(I[i] >= 0 and I[i] < 3))\n"
    gather = "for i in range(4):\n    B[i] = A[{}]"
    parameters = "A: f32[3]; I: i32[4]; B: f32[4]"
    found = find_counterexample(two(parameters, assume + gather.format("I[i]"), assume + gather.format("2 - I[i]")))
    assert found is not None and found.difference is not None
    assert (
        find_counterexample(two(parameters, assume + gather.format("I[i]"), assume + gather.format("T.max(I[i], 0)")))
        is None
    )


def test_inputs_on_which_the_old_program_faults_do_not_count() -> None:
    """Division by zero, and a read out of bounds, by the old program excuse the new one."""
    before = "B[0] = A[0] // A[1]"
    after = "if A[1] == 0:\n    B[0] = 7\nelse:\n    B[0] = A[0] // A[1]"
    assert find_counterexample(two("A: i32[2]; B: i32[1]", before, after)) is None
    back = find_counterexample(two("A: i32[2]; B: i32[1]", after, before))
    assert back is not None and back.fault is not None and "trap" in back.fault
    assert back.inputs["A"][1] == 0


@one_in(4)
@pytest.mark.parametrize(
    ("before", "after", "differs"),
    [
        ("T.undef(dtype='int32')", "7", False),
        ("7", "T.undef(dtype='int32')", True),
        ("T.undef(dtype='int32')", "T.undef(dtype='int32')", False),
        ("0", "T.undef(dtype='int32') * 0", False),
        ("A[0]", "A[0] + T.undef(dtype='int32')", True),
        ("T.undef(dtype='int32') * 0", "1", True),
        ("T.Select(T.undef(dtype='int32') == 12345, 1, 0)", "1", False),
    ],
)
def test_undefined_values_may_be_chosen_by_the_new_program(before: str, after: str, differs: bool) -> None:
    """What the old program leaves undefined the new one may define; what the old one defines must not become a matter
    of choice.
    """
    found = find_counterexample(
        two("A: i32[1]; B: i32[1]", f"B[0] = {before}", f"B[0] = {after}"), budget=Budget(runs=60)
    )
    assert (found is not None) is differs


def test_padding_of_a_layout_without_a_record_is_anything() -> None:
    """Where only the witness tells the layout, what the new program makes of the padding must not show."""
    old = func("A: f32[3]; B: f32[1]", "B[0] = T.float32(0)\nfor i in range(3):\n    B[0] = B[0] + A[i]")
    cells = (CellMap("A_data", "A_data", IndexMap.from_func(lambda i: [i // 2, i % 2])),)
    body = "B[0] = T.float32(0)\nfor i, j in T.grid(2, 2):\n    if {}:\n        B[0] = B[0] + A[i, j]"
    for guard, differs in (("i * 2 + j < 3", False), ("i >= 0", True)):
        new = func("A: f32[2, 2]; B: f32[1]", body.format(guard))
        assert (
            find_counterexample(Rewrite(old, new, Witness((), cells, ("A",))), budget=Budget(runs=100)) is not None
        ) is differs


def test_elements_that_share_a_cell_are_seen() -> None:
    """A layout that puts two elements in one place cannot hold both."""
    old = func("A: i32[4]; B: i32[4]", "for i in range(4):\n    B[i] = A[i]")
    new = func("A: i32[4]; B: i32[2]", "for i in range(4):\n    B[i // 2] = A[i]")
    rewrite = Rewrite(
        old, new, Witness((), (CellMap("B_data", "B_data", IndexMap.from_func(lambda i: [i // 2])),), ("B",))
    )
    found = find_counterexample(rewrite)
    assert found is not None and found.difference is not None


def test_a_race_that_only_the_new_program_has_is_a_fault() -> None:
    """A sum in a parallel loop."""
    body = "B[0] = T.float32(0)\nfor i in {}(4):\n    B[0] = B[0] + A[i]"
    found = find_counterexample(two("A: f32[4]; B: f32[1]", body.format("range"), body.format("T.parallel")))
    assert found is not None and found.fault is not None and "race" in found.fault


REORDERED = ("B[0] = A[0] + A[1] + A[2]", "B[0] = A[0] + (A[1] + A[2])")


@one_in(4)
@pytest.mark.parametrize("fast_math", [frozenset(), ALL - {FastMath.REASSOC}, ALL])
def test_rounding_counts_unless_regrouping_is_excused(fast_math: frozenset[FastMath]) -> None:
    """Sums in another order differ bit for bit, and without NaN and infinities too; as real numbers they do not."""
    found = find_counterexample(two("A: f32[3]; B: f32[1]", *REORDERED), fast_math=fast_math)
    assert (found is not None) is (FastMath.REASSOC not in fast_math)


@one_in(4)
@pytest.mark.parametrize(
    ("before", "after", "fast_math", "differs"),
    [
        ("A[0] * T.float32(0)", "T.float32(0)", {FastMath.NNAN}, True),  # -1 * 0 is -0
        ("A[0] * T.float32(0)", "T.float32(0)", {FastMath.NSZ}, True),  # inf * 0 is NaN
        ("A[0] * T.float32(0)", "T.float32(0)", {FastMath.NNAN, FastMath.NSZ}, False),
        ("A[0] - A[0]", "T.float32(0)", {FastMath.NNAN, FastMath.NINF, FastMath.NSZ}, False),
        ("T.float32(1) / A[0]", "T.float32(1) / (A[0] + T.float32(0))", {FastMath.NSZ}, True),  # 1 / -0
        ("A[0] + T.float32(0)", "A[0]", {FastMath.NSZ}, False),
        ("(A[0] + A[1]) * A[2]", "A[0] * A[2] + A[1]", set(ALL), True),
        ("(A[0] + A[1]) * A[2]", "A[0] * A[2] + A[1] * A[2]", set(ALL), False),
    ],
)
def test_fast_math_leave_out_what_they_say(before: str, after: str, fast_math: set[FastMath], differs: bool) -> None:
    """Executions in which the old program computes what is excused away do not count; others do."""
    rewrite = two("A: f32[3]; B: f32[1]", f"B[0] = {before}", f"B[0] = {after}")
    assert (find_counterexample(rewrite, fast_math=frozenset(fast_math)) is not None) is differs


def test_what_a_solver_thought_of_is_tried_first() -> None:
    """One number among four thousand million is found by a hint only, under any name that begins with the buffer's."""
    rewrite = two("A: i32[1]; B: i32[1]", "B[0] = A[0]", "B[0] = T.Select(A[0] == 123456789, 0, A[0])")
    assert find_counterexample(rewrite) is None
    for name in ("A", "A_flat'2", "A[0]"):
        found = find_counterexample(rewrite, hints=[{name: 123456789}])
        assert found is not None and found.inputs["A"].tolist() == [123456789]
    body = "if n == 37:\n    B[0] = {}\nelse:\n    B[0] = T.float32(1)"
    sized = two("A: f32[n]; B: f32[1]", body.format("T.float32(1)"), body.format("T.float32(2)"))
    hinted = find_counterexample(sized, hints=[{"n": 37}])
    assert hinted is not None and hinted.symbols == {"n": 37}


@one_in(9)
def test_a_program_too_large_to_run_is_sliced() -> None:
    """Six million updates: a wrong last column is found in the slice of elements beside padding."""
    body = """
for i in range(3000):
    B[i] = T.float32(0)
    for jo in range(500):
        for ji in range(4):
            if jo * 4 + ji < 1999:
                B[i] = B[i] + A[i % 8, jo * 4 + ji]
"""
    old = func("A: f32[8, 1999]; B: f32[3000]", body)
    change = ("if jo * 4 + ji < 1999:", "if 0 <= jo:")
    wrong = relaid(old, "A", "lambda i, j: [i, j//4, j%4]", 1.0, change=change)
    found = find_counterexample(wrong)
    assert found is not None and found.difference is not None
    assert replays(wrong, json.loads(json.dumps(found.to_dict())))
    assert find_counterexample(relaid(old, "A", "lambda i, j: [i, j//4, j%4]", 0.0, change=change)) is None


def test_slices_say_nothing_of_a_program_that_may_fault() -> None:
    """A difference beside which the old program may fault elsewhere is not told."""
    body = "for i in range(3000000):\n    B[i] = A[I[i]] + T.float32({})"
    assert (
        find_counterexample(two("A: f32[8]; I: i32[3000000]; B: f32[3000000]", body.format(1), body.format(2))) is None
    )


def test_small_budgets_are_kept() -> None:
    """A search that may run once finds what one run shows, and nothing else."""
    rewrite = two("A: i32[4]; B: i32[4]", "B[0] = A[0]", "B[0] = A[0] + 1")
    assert find_counterexample(rewrite, budget=Budget(runs=1, minimising_runs=0)) is not None
    assert find_counterexample(rewrite, budget=Budget(runs=0)) is None


def test_programs_that_cannot_be_run_give_nothing() -> None:
    """An opaque call, and parameters that do not fit, are no counterexample."""
    old = func("A: f32[4]; B: f32[4]", 'T.evaluate(T.call_extern("int32", "f", A[0]))\nB[0] = A[0]')
    assert find_counterexample(pair(old, func("A: f32[4]; B: f32[4]", "B[0] = A[1]"))) is None
    assert find_counterexample(pair(func("A: f32[4]", "A[0] = A[1]"), func("A: f32[5]", "A[0] = A[1]"))) is None


def test_a_counterexample_is_minimal() -> None:
    """Of many elements only those that matter are left other than 0."""
    rewrite = two("A: f32[40]; B: f32[1]", "B[0] = T.max(A[7], A[31])", "B[0] = A[31]")
    found = find_counterexample(rewrite)
    assert found is not None
    assert np.count_nonzero(found.inputs["A"]) == 1 and not found.inputs["B"].any()


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": {}},
        {"symbols": None},
        {"inputs": {"A": {"shape": [2], "values": ["0x0p+0"]}, "B": {"shape": [1], "values": ["0x0p+0"]}}},
        {"inputs": {"A": {"shape": [1], "values": [True]}, "B": {"shape": [1], "values": [0]}}},
        {"inputs": {"A": {"shape": [1], "values": ["zero"]}, "B": {"shape": [1], "values": [0]}}},
        {"inputs": {"A": {"shape": [99], "fill": 0, "others": [[99, 1]]}, "B": {"shape": [1], "values": [0]}}},
    ],
)
def test_a_damaged_counterexample_is_refused(change: dict[str, object]) -> None:
    """A dictionary that does not hold an input of the rewrite is an error with a code."""
    rewrite = two("A: f32[1]; B: f32[1]", "B[0] = A[0]", "B[0] = -A[0]")
    found = find_counterexample(rewrite)
    assert found is not None
    with pytest.raises(LayoutproofError, match="LP250"):
        replays(rewrite, {**found.to_dict(), **change})


def test_a_counterexample_of_something_else_does_not_replay() -> None:
    """An input on which both programs do the same, or that has another shape, shows nothing."""
    rewrite = two("A: f32[2]; B: f32[1]", "B[0] = A[0]", "B[0] = A[1]")
    found = find_counterexample(rewrite)
    assert found is not None
    same = two("A: f32[2]; B: f32[1]", "B[0] = A[0]", "B[0] = A[0]")
    longer = two("A: f32[3]; B: f32[1]", "B[0] = A[0]", "B[0] = A[1]")
    assert not replays(same, found.to_dict()) and not replays(longer, found.to_dict())
    assert not replays(replace(rewrite, new=func("A: f32[2]; C: f32[1]", "C[0] = A[1]")), found.to_dict())


def test_types_of_every_kind_go_to_json_and_back() -> None:
    """Half floats, doubles, small integers and truth values replay from text."""
    for kind, value in (
        ("f16", "B[0] + A[0]"),
        ("bf16", "B[0] + A[0]"),
        ("f64", "B[0] + A[0]"),
        ("i8", "B[0] + A[0]"),
        ("bool", "not A[0]"),
    ):
        rewrite = two(f"A: {kind}[1]; B: {kind}[1]", f"B[0] = {value}", "B[0] = A[0]")
        found = find_counterexample(rewrite)
        assert found is not None and replays(rewrite, json.loads(json.dumps(found.to_dict()))), kind


@pytest.mark.parametrize("last", [5, 6, 7, 8])
def test_padding_that_was_read_is_named(last: int) -> None:
    """Where a sum runs into padding, the counterexample lists the padding cells of that sum with what they hold, and no
    others; where nothing of the padding is read, there is none.
    """
    sums = "for i in range(3):\n    B[i] = T.float32(0)\n    for j in range(5):\n        B[i] = B[i] + A[i, j]"
    rewrite = relaid(
        func("A: f32[3, 5]; B: f32[3]", sums),
        "A",
        "lambda i, j: [i, j//4, j%4]",
        "T.float32(1)",
        change=("for j in range(5)", f"for j in range({last})"),
    )
    found = find_counterexample(rewrite)
    if last == 5:
        assert found is None
        return
    assert found is not None and found.difference is not None
    (row,) = found.difference.new_index
    assert found.padding == tuple((f"A[{row}, 1, {j % 4}]", 1.0) for j in range(5, last))
    assert [cell["access"] for cell in found.to_dict()["padding_read"]] == [access for access, _ in found.padding]
    assert f"after reads padding: A[{row}, 1, 1] is 1.0 (0x1p+0)" in found.text()
    assert replays(rewrite, found.to_dict())
