"""What the transforms of loops refuse, and in which words: golden texts, one for each refusal."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.conftest import Golden
from tests.lowering.loops.random_nests import apart
from tests.lowering.programs import copy, program, running_sum

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering import codes
from layoutproof.lowering.loops.block_layout import TransformBlockLayout
from layoutproof.lowering.loops.extents import ReduceLoopExtents
from layoutproof.lowering.loops.fuse import Fuse
from layoutproof.lowering.loops.kinds import Parallel, Vectorize
from layoutproof.lowering.loops.merge import MergeAdjacentLoops
from layoutproof.lowering.loops.unroll import Unroll
from layoutproof.lowering.passes import Pass
from layoutproof.lowering.schedule import IllegalTransform, Schedule
from layoutproof.verify import codes as claims

BUFFERS = 'A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32")'


@dataclass(frozen=True)
class Refusal:
    """A transform that must be refused: the code of its message, the function, and the step."""

    code: str
    func: PrimFunc
    step: Pass


def plain(body: str) -> PrimFunc:
    """Loops over two buffers that do not overlap, and a symbol."""
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return program(f'def main({BUFFERS}, m: T.int32):\n    T.func_attr({{"tirx.noalias": True}})\n{lines}')


GRID = plain("for i, j in T.grid(4, 5):\n    B[i * 5 + j] = A[i * 5 + j]")
SHIFT = plain("for i in range(19):\n    B[i + 1] = B[i]")
TWO = plain("for i in range(19):\n    B[i] = A[i]\nfor j in range(19):\n    A[j] = B[j + 1]")
THREAD = plain('for i in T.thread_binding(20, thread="threadIdx.x"):\n    B[i] = A[i]')
OPEN = plain("for i in range(T.min(T.max(m, 0), 20)):\n    B[i] = A[i]")

REFUSALS: dict[str, Refusal] = {
    "fuse_order": Refusal(codes.LOOP_NEST, GRID, Fuse("root", ("j", "i"))),
    "fuse_twice": Refusal(codes.LOOP_NEST, GRID, Fuse("root", ("i", 0))),
    "fuse_apart": Refusal(codes.LOOP_NEST, TWO, Fuse("root", ("i", "j"))),
    "fuse_triangle": Refusal(
        codes.LOOP_NEST, plain("for i in range(4):\n    for j in range(i):\n        B[i] = A[j]"), Fuse("root", (0, 1))
    ),
    "fuse_too_long": Refusal(codes.SPLIT_FACTORS, plain("for i, j in T.grid(65536, 65536):\n    B[0] = A[0]"), Fuse("root", (0, 1))),
    "init_guarded_off_at_the_start": Refusal(
        claims.OTHER_END,
        plain(
            'for i, k in T.grid(4, 5):\n    with T.sblock("sum"):\n        vi, vk = T.axis.remap("SR", [i, k])\n'
            "        with T.init():\n            B[vi] = 0\n        B[vi] = B[vi] + A[vk]"
        ),
        TransformBlockLayout("sum", "lambda i, k: [i, k + 3]"),
    ),
    "parallel_race": Refusal(claims.RACE, SHIFT, Parallel("root", "i")),
    "parallel_reduction": Refusal(claims.RACE, apart(running_sum()), Parallel("sum", "k")),
    "parallel_may_overlap": Refusal(claims.UNDECIDED, copy(), Parallel("copy", "i")),
    "parallel_thread": Refusal(codes.LOOP_KIND, THREAD, Parallel("root", "i")),
    "vectorize_race": Refusal(claims.RACE, SHIFT, Vectorize("root", "i")),
    "vectorize_open": Refusal(codes.LANES, OPEN, Vectorize("root", "i")),
    "vectorize_twice": Refusal(
        codes.LANES, plain("for i in range(4):\n    for j in T.vectorized(5):\n        B[i * 5 + j] = 1"), Vectorize("root", "i")
    ),
    "unroll_open": Refusal(codes.EXPANSION, OPEN, Unroll("root", "i", True)),
    "unroll_too_many": Refusal(codes.EXPANSION, plain("for i in range(2000):\n    B[i % 20] = i"), Unroll("root", "i", True)),
    "unroll_no_loop": Refusal(codes.NO_LOOP, GRID, Unroll("root", "k")),
    "merge_dependence": Refusal(claims.OTHER_VALUE, TWO, MergeAdjacentLoops("root", "i")),
    "merge_lengths": Refusal(
        codes.NOT_ADJACENT, plain("for i in range(20):\n    B[i] = 1\nfor j in range(19):\n    A[j] = 1"), MergeAdjacentLoops("root", "i")
    ),
    "merge_alone": Refusal(codes.NOT_ADJACENT, SHIFT, MergeAdjacentLoops("root", "i")),
    "merge_behind": Refusal(codes.NOT_ADJACENT, plain("for i in range(20):\n    B[i] = 1\nA[0] = 1"), MergeAdjacentLoops("root", "i")),
    "reduce_extents_no_block": Refusal(codes.NO_BLOCK, apart(running_sum()), ReduceLoopExtents("smu")),
    "reduce_extents_undecided": Refusal(
        claims.UNDECIDED, plain("for i in range(20):\n    if i * i * i < 50:\n        B[i] = 1"), ReduceLoopExtents()
    ),
    "block_layout_mixed": Refusal(codes.BLOCK_MAP, apart(running_sum()), TransformBlockLayout("sum", "lambda i, k: [i*5 + k]")),
    "block_layout_not_injective": Refusal(codes.NOT_INJECTIVE, apart(copy()), TransformBlockLayout("copy", "lambda i: [i//4]")),
    "block_layout_arity": Refusal(codes.MAP_ARITY, apart(copy()), TransformBlockLayout("copy", "lambda i, j: [i, j]")),
    "block_layout_binding": Refusal(
        codes.BLOCK_MAP,
        plain('for i in range(19):\n    with T.sblock("next"):\n        v = T.axis.spatial(20, i + 1)\n        B[v] = A[v]'),
        TransformBlockLayout("next", "lambda i: [i]"),
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_say_why(name: str, golden: Golden) -> None:
    """Each refusal has its own message, with the place in the program, and leaves the schedule as it was."""
    refusal = REFUSALS[name]
    schedule = Schedule(refusal.func)
    with pytest.raises(IllegalTransform) as caught:
        getattr(schedule, refusal.step.primitive)(**refusal.step.arguments())
    assert caught.value.diagnostics[0].code == refusal.code
    assert schedule.func == refusal.func and not schedule.steps
    golden(f"refusals/{name}.txt", f"{caught.value}\n")
