"""`lower_blocks`: iteration variables, guards, inits and allocations find their place."""

from __future__ import annotations

from itertools import permutations
from random import Random

import numpy as np
import pytest
from tests.lowering.programs import program
from tests.lowering.small_operators import assert_same_results
from tests.random.nests import random_reduction
from tests.shares import one_in

from layoutproof.ir import stmt
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.stmt import Block, Stmt
from layoutproof.ir.visit import walk
from layoutproof.lowering.lower.flatten import LowerBlocks


def statement_types() -> set[type]:
    """Every kind of statement that the IR has."""
    return {c for c in vars(stmt).values() if isinstance(c, type) and issubclass(c, Stmt) and c is not Stmt}


def lowered(func: PrimFunc) -> PrimFunc:
    """The function without blocks, which it must not have any more."""
    new = LowerBlocks().propose(func).new
    assert not any(isinstance(node, Block) for node in walk(new.body))
    return new


def body_text(func: PrimFunc) -> str:
    """The statements of a printed function, without what stands before them."""
    lines = print_func(func).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("def "))
    return "\n".join(line[4:] for line in lines[start + 1 :] if line.strip())


@pytest.mark.parametrize("order", list(permutations(["i", "j", "k", "l"])))
def test_init_runs_once_whatever_the_order_of_the_loops(order: tuple[str, ...]) -> None:
    """A sum over k and l for each i and j is the same for all 24 orders of its loops."""
    extents = {"i": 3, "j": 2, "k": 4, "l": 2}
    func = program(f"""def main(A: T.Buffer((3, 2, 4, 2), "float32"), B: T.Buffer((3, 2), "float32")):
    for {", ".join(order)} in T.grid({", ".join(str(extents[name]) for name in order)}):
        with T.sblock("sum"):
            vi, vj, vk, vl = T.axis.remap("SSRR", [i, j, k, l])
            with T.init():
                B[vi, vj] = T.float32(0)
            B[vi, vj] = B[vi, vj] + A[vi, vj, vk, vl]
""")
    assert_same_results(func, lowered(func))


def test_an_init_becomes_a_branch() -> None:
    """The usual reduction becomes its loop, with the init under a branch at the reduction's start."""
    func = program("""def main(A: T.Buffer((3, 4), "int32"), B: T.Buffer((3,), "int32")):
    for i, k in T.grid(3, 4):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
""")
    assert body_text(lowered(func)) == (
        "for i, k in T.grid(3, 4):\n    if k == 0:\n        B[i] = 0\n    B[i] = B[i] + A[i, k]"
    )


def test_an_init_of_a_reduction_outside_is_a_branch_too() -> None:
    """With the reduction outermost, results are initialised in its first iteration."""
    func = program("""def main(A: T.Buffer((3, 4), "int32"), B: T.Buffer((3,), "int32")):
    for k, i in T.grid(4, 3):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
""")
    assert (
        body_text(lowered(func))
        == "for k, i in T.grid(4, 3):\n    if k == 0:\n        B[i] = 0\n    B[i] = B[i] + A[i, k]"
    )
    assert_same_results(func, lowered(func))


def test_no_init_runs_when_the_reduction_is_empty() -> None:
    """A sum over no elements leaves its result alone."""
    func = program("""def main(A: T.Buffer((3, "m"), "int32"), B: T.Buffer((3,), "int32")):
    m = T.int32()
    for k, i in T.grid(m, 3):
        with T.sblock("sum"):
            vi = T.axis.spatial(3, i)
            vk = T.axis.reduce(m, k)
            with T.init():
                B[vi] = 7
            B[vi] = B[vi] + A[vi, vk]
""")
    new = lowered(func)
    for m in (0, 1, 3):
        given = {"A": np.ones((3, m), np.int32), "B": np.zeros(3, np.int32)}
        assert run(new, given)["B"].tolist() == run(func, given)["B"].tolist() == [7 + m if m > 0 else 0] * 3


def test_a_guard_keeps_the_init_off() -> None:
    """Where the guard does not hold at the start of the reduction, the init does not run."""
    func = program("""def main(A: T.Buffer((4, 3), "int32"), B: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 3):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(i + k >= 5)
            with T.init():
                B[vi] = 7
            B[vi] = B[vi] + A[vi, vk]
""")
    new = lowered(func)
    assert_same_results(func, new)
    assert run(new, {"A": np.ones((4, 3), np.int32), "B": np.zeros(4, np.int32)})["B"].tolist() == [0, 0, 0, 1]


def test_init_stays_inside_the_domain_of_split_loops() -> None:
    """Where split loops run past the last result, neither init nor update runs there."""
    func = program("""def main(A: T.Buffer((14, 5), "int32"), B: T.Buffer((14,), "int32")):
    for io, ko, ii, ki in T.grid(4, 2, 4, 3):
        with T.sblock("sum"):
            vi = T.axis.spatial(14, io * 4 + ii)
            vk = T.axis.reduce(5, ko * 3 + ki)
            T.where(io * 4 + ii < 14 and ko * 3 + ki < 5)
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
""")
    new = lowered(func)
    assert "if io * 4 + ii < 14 and ko * 3 + ki < 5:\n" in body_text(new)
    assert_same_results(func, new)


def test_a_loop_that_no_axis_uses_repeats_the_whole_reduction() -> None:
    """Outside a reduction, a loop that is in no binding starts it anew each time."""
    func = program("""def main(A: T.Buffer((3, 4), "int32"), B: T.Buffer((3,), "int32")):
    for t, i, k in T.grid(2, 3, 4):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
""")
    assert_same_results(func, lowered(func))


def test_fused_loops_initialise_each_result() -> None:
    """One loop may drive a spatial and a reduction axis together."""
    func = program("""def main(A: T.Buffer((3, 4), "int32"), B: T.Buffer((3,), "int32")):
    for f in range(12):
        with T.sblock("sum"):
            vi = T.axis.spatial(3, f // 4)
            vk = T.axis.reduce(4, f % 4)
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
""")
    assert_same_results(func, lowered(func))


def test_two_reductions_side_by_side_in_one_loop() -> None:
    """Two inits of one loop run in its first iteration, each before its block."""
    func = program("""def main(A: T.Buffer((3, 4), "int32"), B: T.Buffer((3,), "int32"), C: T.Buffer((3,), "int32")):
    for i, k in T.grid(3, 4):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
        with T.sblock("largest"):
            vi2, vk2 = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi2] = -1000
            C[vi2] = T.max(C[vi2], A[vi2, vk2])
""")
    new = lowered(func)
    assert_same_results(func, new)
    assert body_text(new).startswith(
        "for i, k in T.grid(3, 4):\n    if k == 0:\n        B[i] = 0\n    B[i] = B[i] + A[i, k]\n"
    )


def test_nested_blocks_substitute_through() -> None:
    """An inner block's axes bound to an outer block's become the loops of both; the init leaves both."""
    func = program("""def main(A: T.Buffer((6, 4), "int32"), B: T.Buffer((6,), "int32")):
    for io, ko in T.grid(3, 2):
        with T.sblock("outer"):
            vio, vko = T.axis.remap("SR", [io, ko])
            for ii, ki in T.grid(2, 2):
                with T.sblock("inner"):
                    vi = T.axis.spatial(6, vio * 2 + ii)
                    vk = T.axis.reduce(4, vko * 2 + ki)
                    with T.init():
                        B[vi] = 0
                    B[vi] = B[vi] + A[vi, vk]
""")
    assert_same_results(func, lowered(func))


def test_allocations_of_a_block_stay_where_it_runs() -> None:
    """A block's own buffer is allocated for each of its instances."""
    func = program("""def main(A: T.Buffer((3, 4), "int32"), B: T.Buffer((3,), "int32")):
    for i in range(3):
        with T.sblock("row"):
            vi = T.axis.spatial(3, i)
            local = T.sblock_alloc_buffer((4,), "int32")
            for j in range(4):
                local[j] = A[vi, j] * 2
            B[vi] = local[0] + local[3]
""")
    new = lowered(func)
    assert body_text(new).startswith('for i in range(3):\n    local = T.alloc_buffer((4,), "int32")')
    assert_same_results(func, new)


def test_branches_around_a_block_guard_its_init_too() -> None:
    """A branch between the loops and the block keeps the init off as it keeps the update off."""
    func = program("""def main(A: T.Buffer((4, 5), "int32"), B: T.Buffer((4,), "int32")):
    for i, ko, ki in T.grid(4, 2, 3):
        if ko * 3 + ki < 5:
            if A[i, ko * 3 + ki] > 0:
                if i < 3:
                    with T.sblock("sum"):
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.reduce(5, ko * 3 + ki)
                        with T.init():
                            B[vi] = 7
                        B[vi] = B[vi] + A[vi, vk]
""")
    new = lowered(func)
    assert "if ko * 3 + ki == 0:\n                    B[i] = 7" in body_text(new)
    assert_same_results(func, new)


@one_in(7)
@pytest.mark.parametrize("seed", range(60))
def test_random_reductions(seed: int) -> None:
    """Axes split at random, loops in random order, guards in the block or around it: the lowered sum is the sum."""
    func = random_reduction(Random(seed))
    assert_same_results(func, lowered(func))


@pytest.mark.campaign
@pytest.mark.parametrize("hundred", range(1, 21))
def test_random_reductions_campaign(hundred: int) -> None:
    """The test above on many more."""
    for seed in range(100 * hundred, 100 * hundred + 100):
        func = random_reduction(Random(seed))
        assert_same_results(func, lowered(func))


def test_a_matched_region_is_refused() -> None:
    """Blocks that view a region of another buffer are kept by everything else and not lowered."""
    func = program("""def main(A: T.Buffer((8, 8), "int32")):
    for i in range(8):
        with T.sblock("row"):
            vi = T.axis.spatial(8, i)
            row = T.match_buffer(A[vi, 0:8], (8,), "int32")
            row[0] = 0
""")
    with pytest.raises(LayoutproofError, match="LP331"):
        LowerBlocks().propose(func)


def test_the_witness_pairs_every_store_with_its_own() -> None:
    """Inits keep their places before the updates, in the same loops."""
    func = program("""def main(A: T.Buffer((3, 4), "int32"), B: T.Buffer((3,), "int32")):
    for i, k in T.grid(3, 4):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
""")
    instances = LowerBlocks().propose(func).witness.instances
    assert [(m.new_store, m.old_store) for m in instances] == [(0, 0), (1, 1)]
    assert [len(m.instances.inputs) for m in instances if m.instances is not None] == [2, 2]
