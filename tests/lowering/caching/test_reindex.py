"""Buffers indexed by the iterators of a block: accesses become plain and find the same values."""

from __future__ import annotations

from random import Random

import pytest
from tests.lowering.caching.cases import buffers_read, buffers_written, is_proved, random_tiles, tampered, tiled
from tests.lowering.programs import program
from tests.lowering.small_operators import OPERATORS, assert_same_results, small
from tests.random.nests import random_reduction
from tests.shares import chosen, one_in

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.caching.cache_read_write import Reindex
from layoutproof.lowering.passes.find import find_buffer
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.verdict.verdict import Status


@one_in(28)
@pytest.mark.parametrize(
    "access", chosen([*buffers_read(), *buffers_written()], lambda number: number % 2 == 0, "-".join)
)
def test_accesses_of_operators_become_plain(access: tuple[str, str, str]) -> None:
    """Each access of an operator goes through a buffer of its own, which may then be stored differently."""
    name, block, buffer = access
    schedule = Schedule(small(name), interface="fixed")
    schedule.reindex(block, buffer)
    assert_same_results(small(name), schedule.func)
    schedule.transform_layout(block, f"{buffer}_reindex", tiled(schedule.func, f"{buffer}_reindex"))
    assert_same_results(small(name), schedule.func)
    schedule.lower()


def pooling() -> PrimFunc:
    """Sums over windows of three, two apart."""
    return program("""def main(A: T.Buffer((9, 5), "int32"), B: T.Buffer((4, 5), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, j, r in T.grid(4, 5, 3):
        with T.sblock("sum"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            T.reads(A[vi * 2 + vr, vj])
            T.writes(B[vi, vj])
            with T.init():
                B[vi, vj] = 0
            B[vi, vj] = B[vi, vj] + A[vi * 2 + vr, vj]
""")


def test_the_text_of_a_reindexed_read() -> None:
    """Windows that overlap are laid out one by one, before the nest."""
    assert print_func(Reindex("sum", "A").propose(pooling()).new) == print_func(
        program("""def main(A: T.Buffer((9, 5), "int32"), B: T.Buffer((4, 5), "int32")):
    T.func_attr({"tirx.noalias": True})
    A_reindex = T.sblock_alloc_buffer((4, 5, 3), "int32")
    for ax0, ax1, ax2 in T.grid(4, 5, 3):
        with T.sblock("A_reindex"):
            v0, v1, v2 = T.axis.remap("SSS", [ax0, ax1, ax2])
            T.reads(A[v0 * 2 + v2, v1])
            T.writes(A_reindex[v0, v1, v2])
            A_reindex[v0, v1, v2] = A[v0 * 2 + v2, v1]
    for i, j, r in T.grid(4, 5, 3):
        with T.sblock("sum"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            T.reads(A_reindex[vi, vj, vr])
            T.writes(B[vi, vj])
            with T.init():
                B[vi, vj] = 0
            B[vi, vj] = B[vi, vj] + A_reindex[vi, vj, vr]
""")
    )


def test_a_guarded_read_is_copied_under_its_guard() -> None:
    """What a choice keeps from being read out of bounds, the copy does not read either."""
    schedule = Schedule(small("pad"))
    schedule.reindex("PadInput", "A")
    assert "T.where(1 <= ax2 and ax2 < 5 and 1 <= ax3 and ax3 < 5)" in schedule.script()


def test_domains_need_not_start_at_zero() -> None:
    """The new buffer counts from 0 whatever an iterator counts from."""
    func = program("""def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        with T.sblock("copy"):
            v = T.axis.spatial((4, 12), i + 4)
            B[v + 2] = A[v + 3] + A[v + 3]
""")
    schedule = Schedule(func)
    schedule.reindex("copy", "A")
    schedule.reindex("copy", "B")
    assert "B_reindex[v - 4] = A_reindex[v - 4] + A_reindex[v - 4]" in schedule.script()
    assert_same_results(func, schedule.func)


@pytest.mark.parametrize("size", [0, 1, 7])
def test_symbolic_domains(size: int) -> None:
    """Extents of the new buffer may be symbols."""
    text = (OPERATORS / "sym_row_sum.py").read_text(encoding="utf-8")
    # Of no terms there is no sum, and nothing to copy out.
    func = loads(text.replace("    for ax0", "    T.evaluate(T.assume(m >= 1))\n    for ax0"), "sym_row_sum.py")
    schedule = Schedule(func)
    schedule.reindex("A_red", "A")
    schedule.reindex("A_red", "A_red")
    assert_same_results(func, schedule.func, symbols={"n": size, "m": 5})


@one_in(10)
@pytest.mark.parametrize("seed", range(8))
def test_random_nests_compute_the_same(seed: int) -> None:
    """Sums with loops split and ordered at random, one buffer after the other indexed by iterators and stored by a
    random map.
    """
    rng = Random(f"reindex {seed}")
    func = random_reduction(rng)
    schedule = Schedule(func)
    for buffer in rng.sample("AB", 2):
        schedule.reindex("sum", buffer)
        schedule.transform_layout(
            "sum", f"{buffer}_reindex", random_tiles(rng, find_buffer(schedule.func, f"{buffer}_reindex").rank)
        )
    assert_same_results(func, schedule.func)


@pytest.mark.parametrize("changes", [
    (("A_reindex[v0, v1, v2] = A[v0 * 2 + v2, v1]", "A_reindex[v0, v1, v2] = A[v0 * 2 + 2 - v2, v1]"),),
    (("for ax0, ax1, ax2 in T.grid(4, 5, 3)", "for ax0, ax1, ax2 in T.grid(4, 5, 2)"),),
    (("+ A_reindex[vi, vj, vr]", "+ A_reindex[vi, vj, 2 - vr]"),),
])  # fmt: skip
def test_wrong_indices_are_not_proved(changes: tuple[tuple[str, str], ...]) -> None:
    """A window laid out backwards is another contribution to each update, and one that is cut short leaves cells
    unwritten.
    """
    rewrite = tampered(Reindex("sum", "A").propose(pooling()), *changes)
    assert not is_proved(rewrite)


def test_two_results_in_one_cell_are_decided_by_their_order() -> None:
    """Where a block writes a cell more than once, the last value counts, as it did before."""
    func = program("""def main(A: T.Buffer((12,), "int32"), B: T.Buffer((4,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(12):
        with T.sblock("last"):
            v = T.axis.spatial(12, i)
            B[v // 3] = A[v]
""")
    schedule = Schedule(func)
    schedule.reindex("last", "B")
    assert_same_results(func, schedule.func)
    backwards = tampered(
        schedule.steps[0].rewrite, ("B[v0 // 3] = B_reindex[v0]", "B[3 - v0 // 3] = B_reindex[11 - v0]")
    )
    assert not is_proved(backwards)


def test_an_accumulator_over_its_reduction_is_refused() -> None:
    """A buffer with a cell for each iterator must not take the reduction's: what was summed up so far would be in
    another cell.
    """
    func = program("""def main(A: T.Buffer((8, 8), "int32"), B: T.Buffer((15,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(8, 8):
        with T.sblock("diagonals"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi + vj] = B[vi + vj] + A[vi, vj]
""")
    with pytest.raises(IllegalTransform) as refused:
        Schedule(func).reindex("diagonals", "B")
    assert refused.value.status is Status.REFUTED
