"""The convolution whose padding arises by itself, from its definition to loops without a branch, and into the next
convolution.

The roadmap's "implicit default" (logical 16 to 18 to 20), with the definition that its rewritten indices compute: `A[o
- f]`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.shares import one_in

from layoutproof.ir.interp import run
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.lowering.schedule.trace import program_text
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status

Floats = NDArray[np.float32]

ROWS = "lambda i: [(i + 2)//8, (i + 2)%8]"
GUARDS = [0, 1, 2, 3]
FINITE = '    for k in range(3):\n        T.evaluate(T.assume(T.abs({weights}[k]) < T.infinity("float32")))\n'
CONVOLUTION = """    for o, f in T.grid({m}, 3):
        with T.sblock("{block}"):
            vo, vf = T.axis.remap("SR", [o, f])
            with T.init():
                {b}[vo] = T.float32(0)
            if 0 <= vo - vf and vo - vf < {n}:
                {b}[vo] = {b}[vo] + {weights}[vf] * {a}[vo - vf]
"""
HEAD = '@T.prim_func(s_tir=True)\ndef main({parameters}):\n    T.func_attr({{"tirx.noalias": True}})\n'


def parameters(**sizes: int) -> str:
    """Vectors of float32 by name."""
    return ", ".join(f'{name}: T.Buffer(({size},), "float32")' for name, size in sizes.items())


def convolution(a: str, n: int, b: str, *, finite: bool = True) -> Schedule:
    """All of the output of `n` elements with 3 weights, whose loops follow the input, and whose zeros come first."""
    text = HEAD.format(parameters=parameters(**{a: n, "F": 3, b: n + 2})) + (
        FINITE.format(weights="F") if finite else ""
    )
    text += CONVOLUTION.format(m=n + 2, n=n, block="conv", a=a, b=b, weights="F")
    schedule = Schedule(loads(text))
    schedule.transform_layout("conv", a, ROWS, 0.0)
    schedule.transform_layout("conv", b, ROWS, 0.0)
    schedule.sequential_buffer_access("conv", a)
    schedule.sequential_buffer_access("conv_init", b)
    schedule.remove_branching_through_overcompute("conv_init")
    schedule.remove_no_op()
    return schedule


def without_branches(schedule: Schedule) -> Schedule:
    """The guards of the updates gone, their row wrapped, and the program as plain loops."""
    schedule.remove_branching_through_overcompute("conv", guards=GUARDS, wrap=True)
    schedule.lower_blocks()
    schedule.simplify()
    return schedule


def fast_math(schedule: Schedule) -> dict[str, set[str]]:
    """What each step's proof takes, by primitive."""
    found: dict[str, set[str]] = {}
    for step in schedule.steps:
        found.setdefault(step.transform.primitive, set()).update(word for v in step.verdicts for word in v.strictness)
    return {name: words for name, words in found.items() if words}


BRANCH_FREE = """@T.prim_func(s_tir=True)
def main(A: T.Buffer((3, 8), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((3, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for p0, p1 in T.grid(3, 8):
        T.assume(not (p0 == 0 and p1 < 2 or p0 == 2 and p1 >= 2) or A[p0, p1] == T.float32(0.0))
    for k in range(3):
        T.assume(T.abs(F[k]) < T.infinity("float32"))
    for o_init_0, o_init_1 in T.grid(3, 8):
        B[o_init_0, o_init_1] = T.float32(0.0)
    for o_0, o_1, f in T.grid(3, 8, 3):
        B[(o_0 + (f + o_1) // 8) % 3, (f + o_1) % 8] = B[(o_0 + (f + o_1) // 8) % 3, (f + o_1) % 8] + F[f] * A[o_0, o_1]
"""


@one_in(9)
def test_the_branch_free_form() -> None:
    """The roadmap's last program, its row taken modulo 3, follows from the definition; only the order of each sum takes
    a fast-math assumption.
    """
    schedule = without_branches(convolution("A", 16, "B"))
    assert program_text(schedule.func) == BRANCH_FREE
    assert all(step.status is Status.PROVED for step in schedule.steps)
    assert fast_math(schedule) == {"sequential_buffer_access": {"reassoc"}}


@one_in(4)
def test_weights_that_may_be_anything() -> None:
    """Where a weight may be infinite, zeros in the padding do not do bit for bit: that is the fast-math assumption that
    the step needs.
    """
    schedule = without_branches(convolution("A", 16, "B", finite=False))
    assert fast_math(schedule) == {
        "sequential_buffer_access": {"reassoc"},
        "remove_branching_through_overcompute": {"nnan", "ninf"},
    }


@one_in(4)
def test_without_wrapping_it_is_refused() -> None:
    """The last row's sums would go into a fourth row; the help offers the wrapped index."""
    schedule = convolution("A", 16, "B")
    with pytest.raises(IllegalTransform) as caught:
        schedule.remove_branching_through_overcompute("conv", guards=GUARDS)
    assert caught.value.status is Status.REFUTED
    first = caught.value.diagnostics[0]
    assert "B[3, 0] of [3, 8] at o_0 = 2, o_1 = 6, f = 2" in first.message
    assert first.help is not None and "wrap=True" in first.help


@one_in(10)
@pytest.mark.parametrize("rows", [2, 1])
def test_a_row_taken_modulo_another_number_is_refused(rows: int) -> None:
    """Wrapped by less than the rows that there are, elements land in other elements' cells."""
    schedule = convolution("A", 16, "B")
    rewrite = RemoveBranchingThroughOvercompute("conv", tuple(GUARDS), wrap=True).propose(schedule.func)
    text = print_func(rewrite.new)
    assert text.count(" % 3,") == 2
    verdicts = check_rewrite(replace(rewrite, new=loads(text.replace(" % 3,", f" % {rows},"))))
    assert worst(v.status for v in verdicts) is Status.REFUTED


def stored(values: Floats) -> Floats:
    """A vector in rows of 8 from the third place on, its padding zero."""
    return parse_index_map(ROWS).map_array(values, (3, 8), fill=0)


@one_in(9)
def test_chained_into_a_second_convolution() -> None:
    """What the first leaves is, padding and all, what the second takes; of whole numbers the result is numpy's, all 20
    of them.
    """
    rng = np.random.default_rng(0)
    a, f, g = (rng.integers(-8, 8, n).astype(np.float32) for n in (16, 3, 3))
    first = without_branches(convolution("A", 16, "B"))
    second = without_branches(convolution("B", 18, "C"))
    between = run(first.func, {"A": stored(a), "F": f, "B": np.full((3, 8), np.nan, np.float32)})["B"]
    np.testing.assert_array_equal(between, stored(np.convolve(a, f)))
    result = run(second.func, {"B": between, "F": g, "C": np.full((3, 8), np.nan, np.float32)})["C"]
    np.testing.assert_array_equal(result, stored(np.convolve(np.convolve(a, f), g)))


BOTH = """    B = T.alloc_buffer((3, 8), "float32")
    for o_init_0_1, o_init_1_1 in T.grid(3, 8):
        B[o_init_0_1, o_init_1_1] = T.float32(0.0)
    for o_0_1, o_1_1, f in T.grid(3, 8, 3):
        B[(o_0_1 + (f + o_1_1) // 8) % 3, (f + o_1_1) % 8] = \
B[(o_0_1 + (f + o_1_1) // 8) % 3, (f + o_1_1) % 8] + F[f] * A[o_0_1, o_1_1]
    for o_init_0, o_init_1 in T.grid(3, 8):
        C[o_init_0, o_init_1] = T.float32(0.0)
    for o_0, o_1, f in T.grid(3, 8, 3):
        C[(o_0 + (f + o_1) // 8) % 3, (f + o_1) % 8] = C[(o_0 + (f + o_1) // 8) % 3, (f + o_1) % 8] + G[f] * B[o_0, o_1]
"""


@one_in(10)
def test_both_in_one_function() -> None:
    """With the vector between them in a temporary, nothing is promised to anyone: that its padding holds zeros is seen
    from the stores.
    """
    head = (
        HEAD.format(parameters=parameters(A=16, F=3, G=3, C=20))
        + FINITE.format(weights="F")
        + FINITE.format(weights="G")
    )
    text = head + '    B = T.sblock_alloc_buffer((18,), "float32")\n'
    text += CONVOLUTION.format(m=18, n=16, block="first", a="A", b="B", weights="F")
    text += CONVOLUTION.format(m=20, n=18, block="second", a="B", b="C", weights="G")
    func = loads(text)
    schedule = Schedule(func)
    for buffer, pad in (("A", 0.0), ("B", 0.0), ("C", "T.undef()")):
        schedule.transform_layout("root", buffer, ROWS, pad)
    for block, buffer in (("second", "B"), ("second_init", "C"), ("first", "A"), ("first_init", "B")):
        schedule.sequential_buffer_access(block, buffer)
    schedule.remove_branching_through_overcompute("first_init")
    schedule.remove_no_op()
    schedule.remove_branching_through_overcompute("second_init")
    for block in ("second", "first"):
        schedule.remove_branching_through_overcompute(block, guards=GUARDS, wrap=True)
    schedule.lower_blocks()
    schedule.simplify()
    schedule.remove_assume()
    schedule.remove_store_undef()
    assert BOTH in program_text(schedule.func)
    assert fast_math(schedule) == {"sequential_buffer_access": {"reassoc"}}
    rng = np.random.default_rng(1)
    a, f, g = (rng.integers(-8, 8, n).astype(np.float32) for n in (16, 3, 3))
    expected = run(func, {"A": a, "F": f, "G": g, "C": np.zeros(20, np.float32)})["C"]
    result = run(schedule.func, {"A": stored(a), "F": f, "G": g, "C": np.zeros((3, 8), np.float32)})["C"]
    np.testing.assert_array_equal(result, stored(expected))
