"""The search for pad values: which candidates there are, which guards each removes under which fast-math assumptions,
and the text of the report.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

import pytest
from tests.conftest import Golden
from tests.lowering.loops.cases import CASES
from tests.lowering.programs import program
from tests.shares import chosen, one_in

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.padding.value_search import PadValueReport, candidate_values
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.verdict.verdict import Status

ROWS = "lambda i, j: [i, j//4, j%4]"


def reduction(update: str, start: str, dtype: str = "float32") -> PrimFunc:
    """Each row of 16 by 14 reduced to one value."""
    return program(f"""def main(A: T.Buffer((16, 14), "{dtype}"), B: T.Buffer((16,), "{dtype}")):
    T.func_attr({{"tirx.noalias": True}})
    for i, j in T.grid(16, 14):
        with T.sblock("reduce"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = {start}
            B[vi] = {update}
""")


@cache
def searched(func: PrimFunc, block: str = "reduce") -> PadValueReport:
    """The report for an input stored in rows of four, followed by its loops."""
    schedule = Schedule(func)
    schedule.transform_layout(block, "A", ROWS)
    schedule.sequential_buffer_access(block, "A")
    before = schedule.trace
    report = schedule.pad_value_search(block, "A")
    assert schedule.trace == before
    return report


def removing(report: PadValueReport) -> dict[str, set[str]]:
    """By candidate that removes every guard: the fast-math assumptions that it takes."""
    return {
        str(row.candidate): {word for outcome in row.outcomes.values() for word in outcome.strictness}
        for row in report.rows
        if row.outcomes and len(row.removed) == len(row.outcomes)
    }


LOW, HIGH = -(2**31), 2**31 - 1
LAWS: Mapping[str, tuple[tuple[str, str, str], dict[str, set[str]]]] = {
    "sum": (("B[vi] + A[vi, vj]", "T.float32(0)", "float32"), {"0.0": set(), "-0.0": set()}),
    "sum of integers": (("B[vi] + A[vi, vj]", "0", "int32"), {"0": set()}),
    "product": (("B[vi] * A[vi, vj]", "T.float32(1)", "float32"), {"1.0": set()}),
    "maximum": (
        ("T.max(B[vi], A[vi, vj])", 'T.float32("-inf")', "float32"),
        {'T.float32("-inf")': {"nnan"}, 'T.min_value("float32")': {"nnan", "ninf"}},
    ),
    "maximum, new value first": (
        ("T.max(A[vi, vj], B[vi])", 'T.float32("-inf")', "float32"),
        {'T.float32("-inf")': set(), 'T.min_value("float32")': {"ninf"}},
    ),
    "minimum of integers": (("T.min(B[vi], A[vi, vj])", str(HIGH), "int32"), {str(HIGH): set()}),
    "maximum of integers": (("T.max(B[vi], A[vi, vj])", str(LOW), "int32"), {str(LOW): set()}),
    "conjunction of bits": (("B[vi] & A[vi, vj]", "-1", "int32"), {"-1": set()}),
    "disjunction of bits": (("B[vi] | A[vi, vj]", "0", "int32"), {"0": set()}),
    "difference of bits": (("B[vi] ^ A[vi, vj]", "0", "int32"), {"0": set()}),
    "a zero point": (("B[vi] + (A[vi, vj] - 7)", "0", "int32"), {"7": set()}),
}


@one_in(38)
@pytest.mark.parametrize("name", chosen(LAWS, lambda number: number < 5 or number == len(LAWS) - 1))
def test_the_identity_is_found(name: str) -> None:
    """The guard of a padded row goes for exactly the neutral values of the reduction, with the fewest fast-math
    assumptions.
    """
    (update, start, dtype), expected = LAWS[name]
    report = searched(reduction(update, start, dtype))
    assert removing(report) == expected
    assert report.best is not None and str(report.best.candidate) == next(iter(expected))


@one_in(9)
def test_a_maximum_that_starts_at_the_lowest_finite_value() -> None:
    """The lowest value of the type does where the accumulator starts there; minus infinity does too."""
    found = removing(searched(reduction("T.max(B[vi], A[vi, vj])", 'T.min_value("float32")')))
    assert found == {'T.float32("-inf")': {"nnan"}, 'T.min_value("float32")': {"nnan"}}


@one_in(10)
def test_nothing_helps_a_sum_of_exponentials() -> None:
    """`exp` of every finite value is positive: only minus infinity leaves the sum alone."""
    found = removing(searched(reduction("B[vi] + T.exp(A[vi, vj])", "T.float32(0)")))
    assert found == {'T.float32("-inf")': set()}


@one_in(10)
def test_no_candidate_at_all() -> None:
    """Where every value counts, no candidate removes the guard, and the report says so."""
    report = searched(reduction("B[vi] + (A[vi, vj] * A[vi, vj] + T.float32(1))", "T.float32(0)"))
    assert report.best is None and removing(report) == {}
    assert str(report).endswith("no candidate removes a guard")


def test_candidates_of_a_type() -> None:
    """No contract and `undef` come first, then identities of the operations, each once, then the type's limits."""
    func = reduction("T.max(B[vi], A[vi, vj])", 'T.float32("-inf")')
    found = [(str(c), c.why) for c in candidate_values(func.body, func.buffers[0])]
    assert found == [
        ("no contract", "padding must not be accessed"),
        ("undef", "anything may be there"),
        ('T.float32("-inf")', "identity of max"),
        ('T.min_value("float32")', "identity of max"),
        ("0.0", "zero"),
        ("1.0", "one"),
        ('T.float32("inf")', "high end of the type"),
    ]
    bits = reduction("B[vi] & A[vi, vj]", "T.uint8(255)", "uint8")
    assert [c.pad for c in candidate_values(bits.body, bits.buffers[0])] == [None, "T.undef()", 255, 0, 1]


@one_in(4)
def test_an_output_may_hold_anything() -> None:
    """The guard of an element-wise output goes under every contract that permits writing padding, `undef` first."""
    schedule = CASES["double"].schedule(CASES["double"].sizes)
    report = schedule.pad_value_search("double", "B")
    assert set(removing(report)) == {str(row.candidate) for row in report.rows} - {"no contract"}
    assert report.best is not None and report.best.candidate.pad == "T.undef()"


@one_in(9)
def test_wrapped_indices_are_part_of_the_answer() -> None:
    """Where overcompute would leave the input, the report says that the guard goes with loads wrapped."""
    schedule = CASES["convolution"].schedule(CASES["convolution"].sizes)
    report = schedule.pad_value_search("conv", "B")
    undef = next(row for row in report.rows if str(row.candidate) == "undef")
    assert [str(outcome) for outcome in undef.outcomes.values()] == ["is removed, bit for bit, its accesses wrapped"]


@one_in(9)
def test_what_the_search_proposes_is_proved_in_a_schedule() -> None:
    """The best row, put into the schedule, lets the guards go."""
    func = reduction("B[vi] * A[vi, vj]", "T.float32(1)")
    best = searched(func).best
    assert best is not None
    schedule = Schedule(func)
    schedule.transform_layout("reduce", "A", ROWS, best.candidate.pad)
    schedule.sequential_buffer_access("reduce", "A")
    assert schedule.remove_branching_through_overcompute("reduce").status is Status.PROVED


def test_the_report_as_text(golden: Golden) -> None:
    """Guards by number, a line for each outcome, and the best candidate."""
    golden("padding/search_row_sum.txt", f"{searched(reduction('B[vi] + A[vi, vj]', 'T.float32(0)'))}\n")


@pytest.mark.campaign
def test_the_report_of_a_convolution_as_text(golden: Golden) -> None:
    """The same where blocks of channels are padded, and there are several guards."""
    schedule = CASES["conv2d"].schedule({"N": 1, "H": 3, "W": 2, "C": 5, "K": 6})
    golden("padding/search_conv2d.txt", f"{schedule.pad_value_search('conv2d', 'A')}\n")


def test_the_report_as_json() -> None:
    """The report is plain data."""
    data = searched(reduction("B[vi] + A[vi, vj]", "T.float32(0)")).to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["guards"] == ["`j_0 * 4 + j_1 < 14` (the block's own guard)"]
    (zero,) = (row for row in data["candidates"] if row["why"] == "identity of +" and str(row["pad_value"]) == "0.0")
    assert zero["guards"][data["guards"][0]]["status"] == "proved" and zero["refused"] is None


@one_in(9)
def test_a_candidate_that_breaks_another_step_is_refused() -> None:
    """A sum and a product read one input: what lets the one drop its guard does not let the other, and the row says
    which step fails.
    """
    func = program("""def main(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32"), C: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        with T.sblock("total"):
            vi = T.axis.reduce(14, i)
            with T.init():
                B[0] = 0
            B[0] = B[0] + A[vi]
    for i in range(14):
        with T.sblock("product"):
            vi = T.axis.reduce(14, i)
            with T.init():
                C[0] = 1
            C[0] = C[0] * A[vi]
""")
    schedule = Schedule(func)
    schedule.transform_layout("total", "A", "lambda i: [i//4, i%4]", 0)
    schedule.sequential_buffer_access("total", "A")
    schedule.sequential_buffer_access("product", "A")
    schedule.remove_branching_through_overcompute("total")
    rows = {str(row.candidate): row for row in schedule.pad_value_search("product", "A").rows}
    one, zero = rows["1"].refused, rows["0"]
    assert one is not None and one.startswith("remove_branching_through_overcompute(block='total'")
    assert zero.refused is None and zero.removed == ()


REFUSALS = {
    "never_relaid": ("reduce", "B", "no step of the schedule changes the layout of B"),
    "unknown_block": ("reduced", "A", "has no block called"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal(name: str, golden: Golden) -> None:
    """There must be a step whose pad value is to be chosen, and a block whose guards are to go."""
    block, buffer, words = REFUSALS[name]
    schedule = Schedule(reduction("B[vi] + A[vi, vj]", "T.float32(0)"))
    schedule.transform_layout("reduce", "A", ROWS)
    with pytest.raises(IllegalTransform) as caught:
        schedule.pad_value_search(block, buffer)
    assert words in caught.value.diagnostics[0].message
    golden.entry("refusals.txt", f"pad_value_search_{name}", f"{caught.value}\n")


def test_a_schedule_without_layouts() -> None:
    """Before any layout was transformed there is nothing to choose, and the help says what to do."""
    with pytest.raises(IllegalTransform) as caught:
        Schedule(reduction("B[vi] + A[vi, vj]", "T.float32(0)")).pad_value_search("reduce", "A")
    assert caught.value.diagnostics[0].help == "apply transform_layout first, with any pad value"
