"""`vector_type_rewrite(scalarize=True)`: what a typed target has no vectors for runs lane after lane, never through a
cast.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.lowering.programs import program
from tests.lowering.small_operators import assert_same_results
from tests.lowering.vectors.test_vectors_in_memory import COPY, function, lines_of, rewritten
from tests.random.vector_loops import RandomLoops
from tests.shares import one_in

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import BufferStore, DeclBuffer
from layoutproof.ir.visit import walk
from layoutproof.lowering.lower.flatten import FlattenBuffer
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.lowering.vectors.type_rewrite import VectorTypeRewrite
from layoutproof.lowering.vectors.vectorize import VectorizeLoop
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.verdict import Status

SCALARS = VectorTypeRewrite("vulkan", scalarize=True)


def test_mixed_memory_is_copied_lane_after_lane() -> None:
    """Where scalars are accessed too, vectors of four are four scalars."""
    new = rewritten(SCALARS, function(COPY + "\nB[3] = A[5]"))
    assert lines_of(new) == ["for i, lane in T.grid(4, 4):", "B[i * 4 + lane] = A[i * 4 + lane]", "B[3] = A[5]"]


def test_whole_vectors_stay_vectors() -> None:
    """What the type serves is not taken apart."""
    assert rewritten(SCALARS, function(COPY)) == rewritten(VectorTypeRewrite("vulkan"), function(COPY))


def test_one_store_has_one_form() -> None:
    """A store from memory that stays scalar is a loop, so what it stores to stays scalar too, and so does what that
    touches.
    """
    body = f"""{COPY}
for i in range(4):
    D[T.Ramp(i*4, 1, 4)] = C[T.Ramp(i*4, 1, 4)]
for i in range(4):
    C[T.Ramp(i*4, 1, 4)] = B[T.Ramp(i*4, 1, 4)]
A[1] = A[0]"""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    parameters = ", ".join(f'{name}: T.Buffer((16,), "float32")' for name in "ABCD")
    func = program(f"""def main({parameters}):
    T.func_attr({{"tirx.noalias": True}})
{lines}""")
    new = rewritten(SCALARS, func)
    assert "float32x4" not in print_func(new) and "D[i * 4 + lane] = C[i * 4 + lane]" in lines_of(new)
    assert_same_results(func, new)


def test_values_are_taken_apart() -> None:
    """Broadcasts, steps, casts, choices and gathers, in one lane."""
    func = function("""for i in range(4):
    B[T.Ramp(i*4, 1, 4)] = T.Select(
        T.Ramp(i, 2, 4) < T.Broadcast(5, 4), A[T.Ramp(3, 4, 4) // T.Broadcast(2, 4)], T.Broadcast(A[i], 4)
    )
B[0] = T.float32(1)""")
    new = rewritten(SCALARS, func)
    assert "B[i * 4 + lane] = T.Select(i + lane * 2 < 5, A[(3 + lane * 4) // 2], A[i])" in lines_of(new)
    assert_same_results(func, new)


def test_a_let_of_a_vector_stays() -> None:
    """A value that a let stands for is one for all lanes; such statements stay as they are."""
    func = function(
        "for i in range(4):\n    x: T.let[T.float32x4] = A[T.Ramp(i*4, 1, 4)]\n    B[T.Ramp(i*4, 1, 4)] = x\n"
        "A[0] = B[0]"
    )
    assert rewritten(SCALARS, func) == func


def test_lanes_that_are_not_apart_are_refused() -> None:
    """A store that reads what its other lanes write is no loop over lanes: all are read before one is written."""
    schedule = Schedule(function("B[T.Ramp(1, 1, 8)] = B[T.Ramp(0, 1, 8)]\nB[0] = A[0]"))
    with pytest.raises(IllegalTransform, match=r"is refuted: main: `B\[8\]`: expected"):
        schedule.vector_type_rewrite(scalarize=True)


@pytest.mark.parametrize(
    "before, after", [("A[i * 4 + lane]", "A[i * 4]"), ("B[i * 4 + lane]", "B[i * 4 + 3 - lane]"), ("(4, 4)", "(4, 3)")]
)
def test_wrong_lanes_are_refused(before: str, after: str) -> None:
    """A mistake in the pass is seen: one lane for all, lanes the other way round, a lane too few."""
    rewrite = SCALARS.propose(function(COPY + "\nB[3] = A[5]"))
    text = print_func(rewrite.new)
    assert text.count(before) == 1
    verdicts = check_rewrite(replace(rewrite, new=loads(text.replace(before, after))))
    assert any(v.status in (Status.REFUTED, Status.UNKNOWN) for v in verdicts)


@one_in(14)
@pytest.mark.parametrize("seed", range(30))
def test_random_vectors_lane_after_lane(seed: int) -> None:
    """Random loops in lanes, flat, for a target without casts: proved, the same, and no view beside a memory of another
    type.
    """
    func = RandomLoops(seed).function()
    lanes = VectorizeLoop(scalarize=True).propose(FlattenBuffer().propose(func).new).new
    new = rewritten(SCALARS, lanes)
    assert_same_results(func, new)
    views = {node.buffer for node in walk(new.body) if isinstance(node, BufferLoad | BufferStore)}
    for memory in {view.data for view in views}:
        assert len({view.dtype for view in views if view.data == memory}) == 1
    assert any(isinstance(n, DeclBuffer) for n in walk(new.body))
