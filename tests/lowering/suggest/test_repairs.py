"""Hints that apply themselves: each leads to valid input, and a trace is mended only as far as it is proved."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import ALL, Case
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.lowering import codes
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.lowering.suggest.repairs import Refused, first_refused, mended, repairs_of
from layoutproof.verify.verdict.verdict import Status

STEPS = [case for case in ALL if case.step is not None and case.interface == "free"]
"""The refused steps of `tests/programs`."""

FACTS = {
    # What there is, or why: no step that somebody could take.
    "lowering/aliases:layout_of_C",
    "lowering/aliases:layout_of_again",
    "lowering/aliases:layout_of_rows",
    "lowering/aliases:flatten_one_axis",
    "lowering/aliases:flatten_other_extents",
    "lowering/caching:read_through_another_view",
    "lowering/caching:read_of_what_is_inside",
    "lowering/caching:read_unknown_buffer",
    "lowering/hoist_expression:too_many_copies",
    "lowering/loops:fuse_apart",
    "lowering/loops:merge_dependence",
    "lowering/loops:parallel_may_overlap",
    "lowering/loops:unroll_no_loop",
    "lowering/padding:negative_place",
    "lowering/padding:no_such_place",
    "lowering/padding:unknown_block",
    "lowering/sequential:cumulative_14",
    "lowering/sequential:cumulative_n",
    "lowering/temporaries:compact_aliases",
    "lowering/temporaries:double_aliases",
    "lowering/temporaries:double_unknown_loop",
    "lowering/transform_layout:aliases",
    "lowering/transform_layout:below_zero",
    "lowering/transform_layout:map_is_no_lambda",
    "lowering/transform_layout:unknown_buffer",
    "lowering/vectors:vector_target",
}
"""Cases whose help states a fact about the program, or asks for another program or another map."""


def refused(case: Case) -> Refused:
    """The case's step as a trace of its own, and its refusal."""
    name, arguments = case.options
    found = first_refused(loads(case.source.text, case.source.name), [[name, dict(arguments)]])
    assert found is not None
    return found


@one_in(7)
@pytest.mark.parametrize("case", STEPS, ids=lambda case: case.id)
def test_a_hint_leads_to_no_wrong_input(case: Case) -> None:
    """Every repair of a refused step is proved, refuted or left open; whoever follows a hint gets a verdict."""
    func = loads(case.source.text, case.source.name)
    found = refused(case)
    hinted = any(diagnostic.help is not None for diagnostic in found.problem.diagnostics)
    repairs = list(repairs_of(found))
    if case.id not in FACTS:
        assert bool(repairs) or not hinted, "a hint is a step, or stands in FACTS"
    for repair in repairs if hinted and case.id not in FACTS else ():
        further = first_refused(func, repair.trace)
        assert further is None or (isinstance(further.problem, IllegalTransform) and further.problem.verdicts), repair


@one_in(7)
def test_facts_are_cases_with_help() -> None:
    """The list above has no case that is gone, or that has no help."""
    helped = {case.id for case in STEPS if any(d.help is not None for d in refused(case).problem.diagnostics)}
    assert helped >= FACTS


ROW_SUM = """
@T.prim_func
def main(A: T.Buffer((5, 14), "int32"), B: T.Buffer((5,), "int32")):
    T.func_attr({"tir.noalias": True})
    for i, j in T.grid(5, 14):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vj] * A[vi, vj]
"""
MAP = "lambda i, j: [i, j//4, j%4]"


def row_sum() -> PrimFunc:
    """Sums of squares of rows of 14."""
    return loads(ROW_SUM)


def relaid(**changed: Any) -> list[Any]:
    """A step that stores rows in fours."""
    return ["transform_layout", {"block": "sum", "buffer": "A", "index_map": MAP, **changed}]


OVER = ["remove_branching_through_overcompute", {"block": "sum"}]
SPLIT = ["split", {"block": "sum", "loop": "j", "factors": [None, 4]}]


@one_in(12)
@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ([relaid(), SPLIT, OVER], [relaid(pad_value=0), SPLIT, OVER]),
        ([relaid(pad_value=1), SPLIT, OVER], [relaid(pad_value=0), SPLIT, OVER]),
        ([["splt", SPLIT[1]]], [SPLIT]),
        ([["split", {"block": "smu", "loop": "jj", "factors": [3, 4]}]], [SPLIT]),
        ([["split", {"block": "sum", "lop": "j", "factors": [None, 4]}]], [SPLIT]),
        ([["fuse", {"block": "sum", "loops": ["j", "i"]}]], [["fuse", {"block": "sum", "loops": ["i", "j"]}]]),
        ([["vector_type_rewrite", {}]], [["lower_blocks", {}], ["vector_type_rewrite", {}]]),
    ],
)
def test_traces_are_mended(trace: list[Any], expected: list[Any]) -> None:
    """The mended trace is the one that was meant, and a replay proves it."""
    found = mended(row_sum(), trace)
    assert found.left is None and found.repairs
    assert found.trace == expected
    assert all(step.status is Status.PROVED for step in Schedule.replay(row_sum(), found.trace).steps)


def test_what_is_proved_stays() -> None:
    """A trace that is proved has no repairs."""
    found = mended(row_sum(), [relaid(pad_value=0), SPLIT, OVER])
    assert (found.repairs, found.left, found.trace) == ((), None, [relaid(pad_value=0), SPLIT, OVER])


@pytest.mark.parametrize(
    "trace",
    [
        [["split", {"block": "sum", "loop": "nothing", "factors": [None, 4]}]],
        [["split", {"block": "sum", "loop": "j", "factors": "four"}]],
        ["split"],
        [["transform_layout", {"block": "sum", "buffer": "A", "index_map": "lambda i, j: [i, j//4]"}]],
        [["parallel", {"block": "sum", "loop": "j"}]],
    ],
)
def test_what_no_hint_mends_is_left(trace: list[Any]) -> None:
    """A name like no other, a value of another type, a refuted map, a race: the trace stays, and the step is told."""
    found = mended(row_sum(), trace)
    assert found.left is not None and found.left.number == 0 and found.trace == trace


def test_an_access_out_of_bounds_is_wrapped() -> None:
    """Where only bounds fail, the index is taken modulo the extent, as the refusal offers."""
    func = loads(
        """
@T.prim_func
def main(A: T.Buffer((14,), "int32"), B: T.Buffer((4, 4), "int32")):
    T.func_attr({"tir.noalias": True, "layoutproof.layout": {"B_data": {"logical_shape": [14], "steps": [
        {"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": "undef"}]}}})
    for io, ii in T.grid(4, 4):
        if io * 4 + ii < 14:
            B[io, ii] = A[io * 4 + ii]
"""
    )
    trace = [["remove_branching_through_overcompute", {"block": "root", "guards": [0]}]]
    with pytest.raises(LayoutproofError, match="wrap=True"):
        Schedule.replay(func, trace)
    found = mended(func, trace)
    assert found.left is None
    assert found.trace == [["remove_branching_through_overcompute", {"block": "root", "guards": [0], "wrap": True}]]


def test_a_name_that_is_no_use_is_not_proposed() -> None:
    """A similar name is proposed only where the step is valid input with it."""
    for name, arguments, proposed in (
        ("cache_read", {"block": "smu", "buffer": "A", "scope": "local"}, True),
        ("cache_read", {"block": "smu", "buffer": "B", "scope": "local"}, True),
        ("decompose_padding", {"block": "smu", "loop": "i"}, False),
    ):
        found = first_refused(row_sum(), [[name, arguments]])
        assert found is not None and found.problem.diagnostics[0].code == codes.NO_BLOCK
        assert ("did you mean" in (found.problem.diagnostics[0].help or "")) is proposed
