"""Allocations moved into loops: memory of each iteration, where no iteration reads what another one left."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.programs import program
from tests.lowering.small_operators import assert_same_results

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.stmt import Allocate, For
from layoutproof.ir.visit import walk
from layoutproof.lowering import codes
from layoutproof.lowering.caching.temporaries import SinkAllocation
from layoutproof.lowering.schedule.primitives import PASSES
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.verdict import codes as claims

ROWS = """def main(A: T.Buffer((6, 8), "float32"), C: T.Buffer((6,), "float32")):
    T.func_attr({"tirx.noalias": True})
    B = T.alloc_buffer((6, 8), "float32")
    for i in range(6):
        for j in range(8):
            B[i, j] = A[i, j] * T.float32(2)
        C[i] = T.float32(0)
        for j in range(8):
            C[i] = C[i] + B[i, j]
"""

ROWS_SUNK = """def main(A: T.Buffer((6, 8), "float32"), C: T.Buffer((6,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(6):
        B = T.alloc_buffer((6, 8), "float32")
        for j in range(8):
            B[i, j] = A[i, j] * T.float32(2)
        C[i] = T.float32(0)
        for j in range(8):
            C[i] = C[i] + B[i, j]
"""


def rows() -> PrimFunc:
    """Rows doubled in a temporary, and summed."""
    return program(ROWS)


def kept() -> PrimFunc:
    """An iteration reads what the one before left."""
    return program("""def main(A: T.Buffer((6,), "float32"), C: T.Buffer((6,), "float32")):
    T.func_attr({"tirx.noalias": True})
    B = T.alloc_buffer((1,), "float32")
    for i in range(6):
        if i == 0:
            B[0] = T.float32(0)
        B[0] = B[0] + A[i]
        C[i] = B[0]
""")


def after() -> PrimFunc:
    """A temporary that is read after the loop that fills it."""
    return program("""def main(A: T.Buffer((6,), "float32"), C: T.Buffer((6,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for k in range(6):
        C[k] = T.float32(0)
    B = T.alloc_buffer((6,), "float32")
    for i in range(6):
        B[i] = A[i]
    for j in range(6):
        C[j] = B[5 - j]
""")


def in_blocks() -> PrimFunc:
    """A temporary that a block allocates."""
    return program("""def main(A: T.Buffer((6,), "float32"), C: T.Buffer((6,), "float32")):
    T.func_attr({"tirx.noalias": True})
    B = T.sblock_alloc_buffer((6,), "float32")
    for i in range(6):
        with T.sblock("copy"):
            v = T.axis.spatial(6, i)
            B[v] = A[v]
            C[v] = B[v]
""")


def test_the_allocation_stands_in_the_loop() -> None:
    """Nothing else changes, and the results are the same."""
    schedule = Schedule(rows())
    schedule.sink_allocation("B", "root", "i")
    assert schedule.script() == print_func(program(ROWS_SUNK))
    assert_same_results(rows(), schedule.func)


def test_it_can_then_be_small_and_the_loop_parallel() -> None:
    """One row is touched in an iteration, and each thread has its own."""
    schedule = Schedule(rows())
    schedule.sink_allocation("B", "root", "i")
    schedule.compact_buffer("B")
    schedule.parallel("root", "i")
    assert 'B = T.alloc_buffer((1, 8), "float32")' in schedule.script()
    matrix = np.arange(48, dtype=np.float32).reshape(6, 8)
    found = schedule.build("c")(matrix)
    assert isinstance(found, np.ndarray)
    assert found.tolist() == (2 * matrix).sum(axis=1).tolist()


def test_it_may_go_further_in() -> None:
    """From a loop into one inside of it."""
    schedule = Schedule(
        program("""def main(A: T.Buffer((6, 8), "float32"), C: T.Buffer((6, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    B = T.alloc_buffer((6, 8), "float32")
    for i in range(6):
        for j in range(8):
            B[i, j] = A[i, j] * T.float32(2)
            C[i, j] = B[i, j]
""")
    )
    for loop in ("i", "j"):
        schedule.sink_allocation("B", "root", loop)
        at = [n for n in walk(schedule.func.body) if isinstance(n, For) and isinstance(n.body, Allocate)]
        assert [found.var.name for found in at] == [loop]
    schedule.compact_buffer("B")
    assert 'alloc_buffer((1, 1), "float32")' in schedule.script()


@pytest.mark.parametrize(("func", "step", "code", "words"), [
    (kept, SinkAllocation("B", "root", "i"), claims.UNDEFINED_READ, "sink_allocation"),
    (after, SinkAllocation("B", "root", "i"), codes.NOT_IN_BLOCK, "B is used outside of loop i too"),
    (
        after,
        SinkAllocation("B", "root", "k"),
        codes.NOT_IN_BLOCK,
        "loop k is not inside of the statement that allocates B",
    ),
    (after, SinkAllocation("A", "root", "i"), codes.NOT_TEMPORARY, "A is memory of the caller"),
    (after, SinkAllocation("B", "root", "n"), codes.NO_LOOP, "no loop 'n'"),
    (in_blocks, SinkAllocation("B", "root", "i"), codes.NOT_TEMPORARY, "B is allocated by block root"),
])  # fmt: skip
def test_refusals(func: object, step: SinkAllocation, code: str, words: str) -> None:
    """Each is refused with its code and its words, and leaves the schedule as it was."""
    assert callable(func)
    schedule = Schedule(func())
    with pytest.raises(IllegalTransform, match=words) as refused:
        schedule.apply(step)
    assert refused.value.diagnostics[0].code == code
    assert schedule.steps == ()


def test_options_stand_in_a_trace() -> None:
    """A step is what its name and its options as JSON data say."""
    step = SinkAllocation("B", "root", 3)
    assert PASSES[step.primitive] is SinkAllocation
    assert SinkAllocation.from_arguments(step.arguments()) == step
