"""Guarding padding: the roadmap's example, every schedule that dropped guards turned back, and what may not be guarded
off.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from tests.lowering.loops.cases import CASES
from tests.lowering.programs import program
from tests.lowering.small_operators import assert_same_results
from tests.random.nests import apart, random_nest
from tests.shares import one_in

from layoutproof.ir.interp import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.text import expr_text
from layoutproof.ir.wellformed import require_wellformed
from layoutproof.lowering.padding.branching import (
    MAX_CANDIDATES,
    RemoveOvercomputeThroughBranching,
    candidates,
    places_of,
)
from layoutproof.lowering.padding.elements import Elements
from layoutproof.lowering.passes.steps import check_step
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status

QUARTERS = (
    '"layoutproof.layout": {"B_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", '
    '"shape": [4, 4], '
    '"contract": CONTRACT}]}}'
)


def overcomputed(contract: str = "T.float32(0)", stage: str = "T.float32(0)") -> PrimFunc:
    """The roadmap's convolution, all cells of the output computed, its padding filled afterwards."""
    record = QUARTERS.replace("CONTRACT", f"'{contract}'")
    return program(f"""def main(
    A: T.Buffer((5, 4), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((4, 4), "float32")
):
    T.func_attr({{"tirx.noalias": True, {record}}})
    for io, ii in T.grid(4, 4):
        B[io, ii] = T.float32(0)
        for f in range(3):
            B[io, ii] = B[io, ii] + A[io + (ii + f) // 4, (ii + f) % 4] * F[f]
    for io, ii in T.grid(4, 4):
        with T.sblock("B_pad_value"):
            vo, vi = T.axis.remap("SS", [io, ii])
            T.where(io == 3 and ii >= 2)
            B[vo, vi] = {stage}
""")


SHAPES = ((5, 4), (3,), (4, 4))
GUARDED = """    for io, ii in T.grid(4, 4):
        if io * 4 + ii < 14:
            B[io, ii] = T.float32(0.0)
            for f in range(3):
                B[io, ii] = B[io, ii] + A[io + (ii + f) // 4, (ii + f) % 4] * F[f]
    for io, ii in T.grid(4, 4):
        with T.sblock("B_pad_value"):
"""


def relu_that_fills() -> PrimFunc:
    """The maximum with 0 of an input padded with 0, whose padding contract is 0 too."""
    records = QUARTERS.replace("CONTRACT", '"T.float32(0)"')
    of_a = records.replace('"layoutproof.layout": {', "").removesuffix("}").replace("B_data", "A_data")
    return program(f"""def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({{"tirx.noalias": True, {records.removesuffix("}")}, {of_a}}}}})
    for p, q in T.grid(4, 4):
        T.evaluate(T.assume(4 * p + q < 14 or A[p, q] == T.float32(0)))
    for io, ii in T.grid(4, 4):
        B[io, ii] = T.max(A[io, ii], T.float32(0))
""")


def test_the_roadmaps_example() -> None:
    """The guard stands around the init and the loop of updates, as the roadmap's last step has it; what fills the
    padding stays.
    """
    func = overcomputed()
    schedule = Schedule(func)
    step = schedule.remove_overcompute_through_branching("root")
    assert step.status is Status.PROVED and not any(v.strictness for v in step.verdicts)
    assert GUARDED in schedule.script()
    rng = np.random.default_rng(0)
    given = {
        b.name: rng.standard_normal(shape).astype("float32") for b, shape in zip(func.buffers, SHAPES, strict=True)
    }
    np.testing.assert_array_equal(run(schedule.func, given)["B"], run(func, given)["B"])


def test_what_a_program_says_of_padding_without_a_record() -> None:
    """A stage that fills padding tells of it as well as a record does; so does what is assumed of an input."""
    text = re.sub(r', "layoutproof.layout.*\}\)', "})", print_func(overcomputed()))
    schedule = Schedule(loads(text))
    assert len(places_of(schedule.func, "root")) == 2
    step = schedule.remove_overcompute_through_branching("root")
    assert not any(v.strictness for v in step.verdicts)
    assert GUARDED.replace("io * 4 + ii < 14", "not (io == 3 and ii >= 2)") in schedule.script()


@one_in(4)
@pytest.mark.parametrize("every", [False, True], ids=["concrete", "symbolic"])
def test_the_halo_of_a_convolution(every: bool) -> None:
    """The zeros around an image are assumed, not laid out: the branches that were dropped there come back as one around
    the block.
    """
    case = CASES["halo_conv2d"]
    schedule = Schedule(case.program(None if every else case.sizes))
    schedule.remove_branching_through_overcompute("conv2d", guards=[0, 1, 2, 3])
    step = schedule.remove_overcompute_through_branching("conv2d")
    assert step.status is Status.PROVED
    assert "if 1 <= vy + vry and vy + vry < " in schedule.script()


def test_what_says_nothing_of_padding() -> None:
    """A stage over part of a buffer, one that depends on data, and one without a condition: none of them tells what
    padding is.
    """
    parameters = ", ".join(f'{name}: T.Buffer((4, 4), "int32")' for name in "ABCD")
    func = program(f"""def main({parameters}):
    for i, j in T.grid(4, 3):
        if i == 3:
            A[i, j] = 0
    for i, j in T.grid(4, 4):
        if D[i, j] > 0:
            B[i, j] = 0
    for i, j in T.grid(4, 4):
        C[i, j] = 0
    for i in range(4):
        T.evaluate(T.assume(i < 3 or D[i, i] == 0))
""")
    elements = Elements(func)
    assert [elements.conditions(buffer) for buffer in func.buffers] == [None] * 4


def test_places_are_stores_with_buffers() -> None:
    """Each store is named with each buffer whose padding it may access, except the store that fills padding."""
    shown = [str(place) for place in places_of(overcomputed(), "root")]
    assert shown == [
        "`B[io, ii] = 0.0` writes B, which has elements where io*4 + ii < 14",
        (
            "`B[io, ii] = B[io, ii] + A[io + (ii + f)//4, (ii + f)%4]*F[f]` writes B, which has elements where io*4 + "
            "ii < 14"
        ),
    ]
    assert places_of(overcomputed(), "B_pad_value") == ()
    conv2d = CASES["conv2d"].result(CASES["conv2d"].sizes)
    assert [place.buffer.name for place in places_of(conv2d, "conv2d")] == ["B", "A", "F"]


def test_one_place_of_several() -> None:
    """A guard stands only around what was named."""
    schedule = Schedule(overcomputed("undef", 'T.undef(dtype="float32")'))
    schedule.remove_overcompute_through_branching("root", places=[1])
    text = schedule.script().replace("T.float32(0.0)", "T.float32(0)")
    assert "        B[io, ii] = T.float32(0)\n        if io * 4 + ii < 14:\n            for f in range(3):" in text


@pytest.mark.parametrize(
    "index_map, shape, expected",
    [
        ("lambda i: [i//4, i%4]", "4, 4", "cell0 * 4 + cell1 < 14"),
        ("lambda i: [(i + 2)//8, (i + 2)%8]", "2, 8", "cell0 * 8 + cell1 - 2 >= 0"),
        ("lambda i: [2*i]", "27,", "cell0 // 2 * 2 == cell0"),
        ("lambda i: [i]", "14,", ""),
    ],
)
def test_what_keeps_away_from_padding(index_map: str, shape: str, expected: str) -> None:
    """The condition is the inverse's: the element that would lie here is one."""
    step = f'{{"index_map": "{index_map}", "shape": [{shape}], "contract": None}}'
    record = f'"layoutproof.layout": {{"B_data": {{"logical_shape": [14], "steps": [{step}]}}}}'
    func = program(f'def main(B: T.Buffer(({shape}), "float32")):\n    T.func_attr({{{record}}})\n    T.evaluate(0)\n')
    conditions = Elements(func).conditions(func.buffers[0])
    assert conditions is not None
    assert " and ".join(expr_text(c).replace("'", "") for c in conditions) == expected


# The first transform's padding is read as a neighbour of elements: only what is written to the other's may be guarded.
PLACES: dict[str, tuple[int, ...]] = {"two_contracts": (0,)}
TURNED_BACK = [name for name in CASES if name not in ("convolution_by_its_input", "halo_conv2d", "halo_conv2d_finite")]


@one_in(52)
@pytest.mark.parametrize("every", [False, True], ids=["concrete", "symbolic"])
@pytest.mark.parametrize("name", TURNED_BACK)
def test_dropped_guards_come_back(name: str, every: bool) -> None:
    """Where guards went by overcompute, guards around the padding are proved to change nothing, bit for bit, for all
    sizes too.
    """
    case = CASES[name]
    if (name, every) == ("convolution", True):
        # An index modulo a symbol is outside of what is decided; the program is guarded all the same.
        assert RemoveOvercomputeThroughBranching("conv").propose(case.result()).new != case.result()
        return
    sizes = None if every else case.sizes
    block = case.steps[-1][1]["block"]
    before = case.result(sizes)
    transform = RemoveOvercomputeThroughBranching(block, PLACES.get(name))
    rewrite = transform.propose(before)
    require_wellformed(rewrite.new)
    verdicts = check_step(transform, rewrite)
    assert not any(v.strictness for v in verdicts)
    assert {m.where for m in rewrite.witness.instances} == {None}


@one_in(4)
@pytest.mark.parametrize("name", TURNED_BACK)
def test_guarded_programs_compute_the_same(name: str) -> None:
    """At small sizes that do not divide, the interpreter finds the same elements."""
    case = CASES[name]
    sizes = (
        {"n": 3, "m": 5}
        if "m" in case.sizes
        else {"N": 1, "H": 3, "W": 2, "C": 5, "K": 6}
        if "N" in case.sizes
        else case.sizes
    )
    rewrite = RemoveOvercomputeThroughBranching(case.steps[-1][1]["block"], PLACES.get(name)).propose(
        case.result(sizes)
    )
    assert_same_results(case.program(sizes), rewrite.new, case.pads)


@one_in(10)
@pytest.mark.parametrize("seed", range(8))
def test_random_sums_over_padding(seed: int) -> None:
    """Over padding of zeros in an input and padding without a value in the output, a guard is proved and sums stay what
    they are.
    """
    rng = Random(f"guarded {seed}")
    func, tile = apart(random_nest(rng)), rng.choice([2, 3, 4])
    schedule = Schedule(func)
    schedule.transform_layout("sum", "A", f"lambda i, j, k, l: [i, j, k//{tile}, l, k%{tile}]", 0)
    schedule.sequential_buffer_access("sum", "A")
    try:
        schedule.remove_branching_through_overcompute("sum")
    except IllegalTransform:
        # Not every guard may go; what is guarded already needs no other guard.
        pass
    try:
        step = schedule.remove_overcompute_through_branching("sum")
    except IllegalTransform as problem:
        assert problem.verdict is None
    else:
        assert step.status is Status.PROVED
    assert_same_results(func, schedule.func, {"A": [0]})


def test_the_most_places_that_are_proved() -> None:
    """With none named, the largest set that is proved is guarded; the trace says which, and replays."""
    schedule = Schedule(CASES["two_contracts"].result(CASES["two_contracts"].sizes))
    step = schedule.remove_overcompute_through_branching("previous")
    assert step.transform.arguments()["places"] is not None
    assert (
        RemoveOvercomputeThroughBranching.from_arguments(json.loads(json.dumps(step.transform.arguments())))
        == step.transform
    )
    assert Schedule.replay(schedule.original, json.loads(json.dumps(schedule.trace))).func == schedule.func


def test_candidates_are_much_before_little() -> None:
    """All places first, then ever fewer, and not too many of them."""
    found = [c.places for c in candidates(CASES["conv2d"].result(CASES["conv2d"].sizes), "conv2d")]
    assert found == [(0, 1, 2), (0, 1), (0, 2), (1, 2), (0,), (1,), (2,)]
    assert len(found) <= MAX_CANDIDATES


def test_a_guard_that_is_too_tight_is_refused() -> None:
    """A proposal that keeps one element from being computed is refuted by that element."""
    rewrite = RemoveOvercomputeThroughBranching("root").propose(overcomputed())
    tight = loads(print_func(rewrite.new).replace("< 14", "< 13"))
    verdicts = check_rewrite(replace(rewrite, new=tight))
    assert worst(v.status for v in verdicts) is Status.REFUTED


def test_padding_that_is_filled_by_the_way_may_not_be_guarded_off() -> None:
    """Where the element-wise result is the value that the padding owes, nobody else writes it: the guard is refuted,
    nothing changes.
    """
    schedule = Schedule(relu_that_fills())
    with pytest.raises(IllegalTransform) as caught:
        schedule.remove_overcompute_through_branching("root")
    assert caught.value.status is Status.REFUTED
    assert schedule.func == schedule.original and schedule.trace == []


def test_a_sum_that_reads_other_padding_may_not_be_guarded() -> None:
    """Where padding holds ones, adding it changes the sum, and so does leaving it out."""
    text = print_func(CASES["row_sum_of_loops"].result({"n": 3, "m": 5})).replace(
        "T.float32(0.0))\n", "T.float32(1.0))\n"
    )
    schedule = Schedule(loads(text.replace('"contract": "T.float32(0.0)"', '"contract": "T.float32(1.0)"')))
    with pytest.raises(IllegalTransform) as caught:
        schedule.remove_overcompute_through_branching("root", places=[0])
    assert caught.value.status is Status.REFUTED
