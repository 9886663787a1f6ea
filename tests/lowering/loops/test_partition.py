"""Loops cut in two: both parts compute what the loop did, and a cut that makes no sense is refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.loops.instances import check_theta
from tests.lowering.programs import program

from layoutproof.ir.interp import run
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.wellformed import require_wellformed
from layoutproof.lowering.loops.loop_kinds import STREAM, Stream, is_streamed
from layoutproof.lowering.loops.partition_and_merge import Partition
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.verdict.verdict import Status

COPY = """def main(A: T.Buffer((5, 9), "float32"), B: T.Buffer((5, 9), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(5, 9):
        with T.sblock("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(vj < 7, A[vi, vj], T.float32(0.0))
"""
SUM = """def main(A: T.Buffer((5, 9), "float32"), B: T.Buffer((5,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(5, 9):
        with T.sblock("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = T.float32(0.0)
            B[vi] = B[vi] + A[vi, vj]
"""


@pytest.mark.parametrize(("loop", "at"), [("j", 7), ("j", 1), ("i", 4), (0, 2), (1, 8)])
def test_both_parts_are_the_loop(loop: str | int, at: int) -> None:
    """The step is proved, its witness says which instance is which, and the program computes the same."""
    func = program(COPY)
    rewrite = Partition("copy", loop, at).propose(func)
    require_wellformed(rewrite.new)
    assert loads(print_func(rewrite.new)) == rewrite.new
    check_theta(rewrite)
    schedule = Schedule(func)
    assert schedule.partition("copy", loop, at).status is Status.PROVED
    a = np.random.default_rng(0).random((5, 9), dtype=np.float32)
    before, after = ({"A": a, "B": np.zeros((5, 9), dtype=np.float32)} for _ in range(2))
    assert np.array_equal(run(func, before)["B"], run(schedule.func, after)["B"])


def test_the_parts_have_names() -> None:
    """The second part counts from 0 again, its block has a name of its own, and what is inside needs no question."""
    schedule = Schedule(program(COPY))
    schedule.reorder("copy", ["j", "i"])
    schedule.partition("copy", "j", 7)
    text = schedule.script()
    assert "T.grid(7, 5)" in text and 'T.sblock("copy_rest")' in text and "j + 7" in text
    assert print_func(schedule.lower()).count("if_then_else") == 0


@pytest.mark.parametrize(
    ("text", "block", "loop", "at"), [(COPY, "copy", "j", 9), (COPY, "copy", "j", 0), (SUM, "sum", "j", 4)]
)
def test_cuts_that_are_refused(text: str, block: str, loop: str, at: int) -> None:
    """There is something on both sides of a place, and a block's init happens once for all iterations."""
    schedule = Schedule(program(text))
    with pytest.raises(IllegalTransform, match="LP365"):
        schedule.partition(block, loop, at)
    assert schedule.func == schedule.original


def test_a_spatial_loop_of_a_block_with_an_init_is_refused_too() -> None:
    """What happens to an init is not looked into: it is to be lowered first."""
    with pytest.raises(IllegalTransform, match="init"):
        Schedule(program(SUM)).partition("sum", "i", 2)


def test_a_mark_is_proved_printed_and_kept() -> None:
    """The mark of a tile changes nothing, is text, and goes through the lowering."""
    schedule = Schedule(program(COPY))
    assert schedule.stream("copy", "i").status is Status.PROVED
    assert STREAM in schedule.script() and loads(schedule.script()) == schedule.func
    assert STREAM in print_func(schedule.lower())
    assert Stream("copy", "i").propose(schedule.func).new == schedule.func
    assert not is_streamed(Stream("copy", "i").propose(program(COPY)).old.body)  # type: ignore[arg-type]  # the body of this program is a loop
