"""Loops written out: copies with memory and names of their own, and inits that stay with the first."""

from __future__ import annotations

from random import Random

import pytest
from tests.lowering.loops.instances import check_theta
from tests.lowering.programs import program, running_sum
from tests.random.nests import apart, assert_same_sums, lowered, random_nest
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import Stmt
from layoutproof.ir.visit import walk
from layoutproof.ir.wellformed import require_wellformed
from layoutproof.lowering.loops.loop_kinds import MAX_COPIES, Unroll
from layoutproof.lowering.loops.nest import loops_of_block
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.verdict import Status

NOALIAS = '    T.func_attr({"tirx.noalias": True})\n'
HEAD = "# from tvm.script import tirx as T\n\n@T.prim_func(s_tir=True)\n"
REVERSED = f"""def main(A: T.Buffer((2, 8), "int32"), B: T.Buffer((2, 8), "int32")):
{NOALIAS}    for i in range(2):
        C = T.alloc_buffer((8,), "int32")
        for j in range(8):
            C[j] = A[i, j] + 1
        for j in range(8):
            B[i, j] = C[7 - j]
"""


def expanded(func: PrimFunc, block: str, loop: str | int) -> Rewrite:
    """The loop written out: well-formed, and what is printed reads back."""
    rewrite = Unroll(block, loop, True).propose(func)
    require_wellformed(rewrite.new)
    assert loads(print_func(rewrite.new), "again.py") == rewrite.new
    return rewrite


def test_every_copy_has_its_own_memory() -> None:
    """The whole program: a buffer allocated in the loop is one for each iteration, and the step is proved."""
    schedule = Schedule(program(REVERSED))
    assert schedule.unroll("root", "i", expand=True).status is Status.PROVED
    assert (
        schedule.script()
        == f"""{HEAD}def main(A: T.Buffer((2, 8), "int32"), B: T.Buffer((2, 8), "int32")):
{NOALIAS}    with T.alloc_buffer((8,), "int32") as C_0:
        for j in range(8):
            C_0[j] = A[0, j] + 1
        for j in range(8):
            B[0, j] = C_0[7 - j]
    C_1 = T.alloc_buffer((8,), "int32")
    for j in range(8):
        C_1[j] = A[1, j] + 1
    for j in range(8):
        B[1, j] = C_1[7 - j]
"""
    )


def test_aliases_go_with_their_memory() -> None:
    """A view of the copy's memory is a view of that copy's; a view of outer memory stays one of it."""
    func = program(f"""def main(A: T.Buffer((3, 8), "int32"), B: T.Buffer((3, 8), "int32")):
{NOALIAS}    for i in range(3):
        C = T.alloc_buffer((8,), "int32")
        D = T.decl_buffer((2, 4), "int32", data=C.data)
        E = T.decl_buffer((24,), "int32", data=B.data)
        for j in range(8):
            C[j] = A[i, j] + 1
        for j in range(8):
            E[i * 8 + j] = D[1 - j // 4, j % 4]
""")
    rewrite = expanded(func, "root", "i")
    text = print_func(rewrite.new)
    assert (
        'D_2 = T.decl_buffer((2, 4), "int32", data=C_2.data)' in text
        and 'E_1 = T.decl_buffer((24,), "int32", data=B.data)' in text
    )
    assert_same_sums(func, rewrite.new)
    assert {v.status for v in check_rewrite(rewrite)} == {Status.PROVED}


def test_blocks_get_names_of_their_own() -> None:
    """Blocks are named by their iteration, so that each can be found; what they allocate is theirs."""
    func = program(f"""def main(A: T.Buffer((2, 4), "int32"), B: T.Buffer((2, 4), "int32")):
{NOALIAS}    for i in range(1, 3):
        with T.sblock("row"):
            v = T.axis.spatial(2, i - 1)
            C = T.sblock_alloc_buffer((4,), "int32")
            for j in range(4):
                C[j] = A[v, j]
            for j in range(4):
                B[v, j] = C[3 - j]
""")
    schedule = Schedule(func)
    assert schedule.unroll("row", "i", expand=True).status is Status.PROVED
    text = schedule.script()
    assert '"row_0"' in text and '"row_1"' in text and "C_1 = T.sblock_alloc_buffer" in text
    assert "v = T.axis.spatial(2, 1)" in text
    assert_same_sums(func, schedule.func)


def test_the_init_of_a_reduction_stays_with_the_first_copy() -> None:
    """Written out over what is added, the first block sets the result, and the others go on."""
    func = apart(running_sum())
    schedule = Schedule(func)
    assert schedule.unroll("sum", "k", expand=True).status is Status.PROVED
    assert schedule.script().count("T.init()") == 1
    assert_same_sums(func, schedule.func)


def test_the_inits_of_results_go_with_them() -> None:
    """Written out over results, every block sets its own."""
    func = apart(running_sum())
    schedule = Schedule(func)
    assert schedule.unroll("sum", "i", expand=True).status is Status.PROVED
    assert schedule.script().count("T.init()") == 14
    assert_same_sums(func, schedule.func)


def test_a_loop_that_no_variable_is_bound_to_starts_a_reduction_again() -> None:
    """Each copy of a loop that no variable is bound to has the init, as each iteration did."""
    func = program(f"""def main(A: T.Buffer((5,), "int32"), B: T.Buffer((1,), "int32")):
{NOALIAS}    for k, r in T.grid(5, 3):
        with T.sblock("sum"):
            vk = T.axis.reduce(5, k)
            with T.init():
                B[0] = 0
            B[0] = B[0] + A[vk]
""")
    rewrite = expanded(func, "sum", "r")
    assert print_func(rewrite.new).count("T.init()") == 3
    assert_same_sums(func, rewrite.new)
    outside = loads(print_func(func).replace("for k, r in T.grid(5, 3)", "for r, k in T.grid(3, 5)"), "outside.py")
    rewrite = expanded(outside, "sum", "r")
    assert print_func(rewrite.new).count("T.init()") == 3
    assert_same_sums(rewrite.old, rewrite.new)


def test_no_iterations_leave_nothing() -> None:
    """A loop of none is gone, one of one is its body with its names."""
    func = program("""def main(A: T.Buffer((4,), "int32")):
    for i in range(0):
        A[i] = 1
    for j in range(2, 3):
        with T.sblock("one"):
            A[j] = 2
""")
    rewrite = expanded(func, "root", "i")
    assert "range(0)" not in print_func(rewrite.new)
    again = expanded(rewrite.new, "one", "j")
    assert 'with T.sblock("one"):\n        A[2] = 2' in print_func(again.new)
    assert {v.status for r in (rewrite, again) for v in check_rewrite(r)} == {Status.PROVED}


REFUSED = [
    ("n", "no constant number of iterations", "it can be marked as unrolled all the same: expand=False"),
    (str(MAX_COPIES + 1), f"at most {MAX_COPIES} are written out", "split it, and expand the inner part"),
]


@pytest.mark.parametrize("extent, words, help_text", REFUSED)
def test_what_cannot_be_written_out(extent: str, words: str, help_text: str) -> None:
    """A number of iterations that is not known, or too large."""
    func = program(f"""def main(A: T.Buffer(("n",), "int32")):
    n = T.int32()
    for i in range({extent}):
        A[i % n] = 1
""")
    with pytest.raises(LayoutproofError, match=words) as caught:
        Unroll("root", "i", True).propose(func)
    assert caught.value.diagnostics[0].help == help_text
    assert "T.unroll(" in print_func(Unroll("root", "i").propose(func).new)


def test_a_loop_over_results_and_updates_at_once_keeps_the_inits_that_run() -> None:
    """Of the copies of a fused loop, those at the start of a result's reduction have its init, and no others."""
    schedule = Schedule(apart(running_sum()))
    schedule.fuse("sum", ["i", "k"])
    rewrite = expanded(schedule.func, "sum", 0)
    assert print_func(rewrite.new).count("T.init()") == 14
    assert_same_sums(schedule.func, rewrite.new)


def test_a_wrong_copy_is_found() -> None:
    """A proposal whose second copy computes what the first one does is not proved."""
    rewrite = expanded(program(REVERSED), "root", "i")
    wrong = loads(print_func(rewrite.new).replace("C_1[j] = A[1, j] + 1", "C_1[j] = A[0, j] + 1"), "wrong.py")
    assert {v.status for v in check_rewrite(Rewrite(rewrite.old, wrong, rewrite.witness))} - {Status.PROVED}


@one_in(7)
@pytest.mark.parametrize("seed", range(12))
def test_random_nests_compute_the_same(seed: int) -> None:
    """Any loop of a random sum, as blocks or lowered, written out: the same sums, and it is proved."""
    rng = Random(f"unroll {seed}")
    func = apart(random_nest(rng))
    for each, block in ((func, "sum"), (lowered(func), "root")):
        rewrite = Unroll(block, rng.randrange(len(loops_of_block(each, block))), True).propose(each)
        check_theta(rewrite)
        assert_same_sums(each, rewrite.new)
        assert {v.status for v in check_rewrite(rewrite)} == {Status.PROVED}


def test_copies_share_no_statement() -> None:
    """What is the same in two copies is there twice, so that a transform of one leaves the other alone."""
    func = program(f"""def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
{NOALIAS}    for i in range(2):
        for j in range(8):
            B[j] = A[j]
""")
    schedule = Schedule(func)
    schedule.unroll("root", "i", expand=True)
    schedule.split("root", 0, [2, 4])
    assert schedule.script().count("for j in range(8)") == 1
    statements = [n for n in walk(schedule.func.body) if isinstance(n, Stmt)]
    assert len({id(n) for n in statements}) == len(statements)
