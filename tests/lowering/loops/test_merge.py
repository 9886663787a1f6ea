"""Merging adjacent loops: what becomes of the second loop's variable, and which dependences are in the way."""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pytest
from tests.lowering.loops.instances import check_theta
from tests.lowering.programs import program, two_stages
from tests.lowering.small_operators import inputs_of
from tests.random.nests import apart
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.wellformed import require_wellformed
from layoutproof.lowering.loops.dependence import broken_order
from layoutproof.lowering.loops.partition_and_merge import MergeAdjacentLoops
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.verdict import Status

SIGNATURE = """def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), C: T.Buffer((20,), "int32")):
    T.func_attr({"tirx.noalias": True})
"""
HEAD = "# from tvm.script import tirx as T\n\n@T.prim_func(s_tir=True)\n"


def two(first: str, second: str, ranges: tuple[str, str] = ("16", "16"), variable: str = "j") -> PrimFunc:
    """Two loops, one statement each."""
    return program(
        f"{SIGNATURE}    for i in range({ranges[0]}):\n        {first}\n    for {variable} in range({ranges[1]}):\n"
        f"        {second}\n"
    )


MERGED = [
    (two("B[i] = A[i] + 1", "C[j] = B[j] * 2"), "16", ("B[i] = A[i] + 1", "C[i] = B[i] * 2")),
    (two("B[i] = A[i] + 1", "C[j] = B[j - 1]", ("1, 17", "1, 17")), "1, 17", ("B[i] = A[i] + 1", "C[i] = B[i - 1]")),
    (two("B[i] = A[i + 1] + 1", "A[j] = C[j] * 2"), "16", ("B[i] = A[i + 1] + 1", "A[i] = C[i] * 2")),
    (two("B[i] = A[i]", "C[j] = A[j]", ("16", "2, 18")), "16", ("B[i] = A[i]", "C[i + 2] = A[i + 2]")),
    (two("B[i] = A[i]", "C[i] = A[i]", ("2, 18", "16"), "i"), "2, 18", ("B[i] = A[i]", "C[i - 2] = A[i - 2]")),
    (two("B[0] = i", "B[0] = j"), "16", ("B[0] = i", "B[0] = i")),
]


@pytest.mark.parametrize("func, loop, body", MERGED)
def test_loops_without_crossing_dependences_become_one(func: PrimFunc, loop: str, body: tuple[str, str]) -> None:
    """The whole program, before and after: the second loop counts with the first, whatever it started from."""
    schedule = Schedule(func)
    assert schedule.merge_adjacent_loops("root", 0).status is Status.PROVED
    assert schedule.script() == f"{HEAD}{SIGNATURE}    for i in range({loop}):\n        {body[0]}\n        {body[1]}\n"
    assert loads(schedule.script(), "again.py") == schedule.func
    check_theta(schedule.steps[0].rewrite)


# The roadmap's conditions, one after the other: the first loop writes what the second one reads, the first one reads
# what the second one writes (its text compares other pairs there), and both write.
BROKEN = [
    (
        two("B[i] = A[i] + 1", "C[j] = B[j + 1]"),
        "the store to B[{a}] (line 5) at i = {a} came before the load of B[{a}] (line 7) at j = {b}",
        1,
    ),
    (
        two("B[i + 1] = A[i]", "A[j + 1] = C[j]"),
        "the load of A[{a}] (line 5) at i = {a} came before the store to A[{a}] (line 7) at j = {b}",
        1,
    ),
    (
        two("B[i] = A[i]", "B[j + 1] = C[j]"),
        "the store to B[{a}] (line 5) at i = {a} came before the store to B[{a}] (line 7) at j = {b}",
        1,
    ),
    (
        two("B[i] = A[i] + 1", "C[j] = B[j]", ("16", "2, 18")),
        "the store to B[{a}] (line 5) at i = {a} came before the load of B[{a}] (line 7) at j = {a}",
        0,
    ),
]


@pytest.mark.parametrize("func, words, distance", BROKEN)
def test_crossing_dependences_are_refuted_and_named(func: PrimFunc, words: str, distance: int) -> None:
    """The checker finds the difference; the help has the two accesses that change their order."""
    schedule = Schedule(func)
    with pytest.raises(IllegalTransform) as caught:
        schedule.merge_adjacent_loops("root", "i")
    assert caught.value.status is Status.REFUTED
    shown = caught.value.diagnostics[0].help
    assert shown in [f"{words.format(a=a, b=a - distance)}, and would come after it" for a in range(20)]
    assert schedule.func == func and not schedule.steps


def test_each_iteration_of_loops_around_is_looked_at() -> None:
    """Loops around both are the same iteration of both: only what crosses inside of one is in the way."""
    text = """def main(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4, 8), "int32")):
    T.func_attr({"tirx.noalias": True})
    for o in range(3):
        for i in range(8):
            B[o, i] = A[o, i]
        for j in range(8):
            A[o + 1, j] = B[o, 7 - j]
"""
    with pytest.raises(IllegalTransform) as caught:
        Schedule(program(text)).merge_adjacent_loops("root", "i")
    words = (
        r"the store to B.* at o = (\d), i = (\d) came before the load of B.* at o = (\d), j = (\d), and would come "
        r"after it"
    )
    found = re.fullmatch(words, str(caught.value.diagnostics[0].help))
    assert found is not None and found[1] == found[3] and int(found[2]) + int(found[4]) == 7 and found[4] < found[2]
    assert Schedule(program(text.replace("7 - j", "j"))).merge_adjacent_loops("root", "i").status is Status.PROVED


def test_symbolic_loops_are_merged_for_every_size() -> None:
    """Extents that are equal as sums are the same; loops of n and of m are not known to be."""
    text = """def main(A: T.Buffer(("n",), "int32"), B: T.Buffer(("n",), "int32"), M: T.Buffer(("m",), "int32")):
    n, m = T.int32(), T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(1, n):
        B[i] = A[i]
    for j in range(n - 1):
        A[j + 1] = B[j + 1] * B[j + 1]
"""
    schedule = Schedule(program(text))
    assert schedule.merge_adjacent_loops("root", "i").status is Status.PROVED
    assert "A[i - 1 + 1] = B[i - 1 + 1] * B[i - 1 + 1]" in schedule.script()
    other = text.replace("range(n - 1)", "range(m)").replace("j + 1", "0")
    with pytest.raises(LayoutproofError, match="not known to run equally often: n - 1 and m iterations"):
        MergeAdjacentLoops("root", "i").propose(program(other))


def test_blocks_are_merged_loop_by_loop() -> None:
    """Producer and consumer in one nest, one loop after the other: their blocks stay what they are."""
    schedule = Schedule(apart(two_stages()))
    schedule.merge_adjacent_loops("first", "i")
    schedule.merge_adjacent_loops("first", "j")
    assert 'for i, j in T.grid(16, 12):\n        with T.sblock("first")' in schedule.script()
    given = inputs_of(schedule.original)
    np.testing.assert_array_equal(run(schedule.func, given)["C"], run(schedule.original, given)["C"])


def test_a_variable_that_is_bound_inside_gets_out_of_the_way() -> None:
    """Where the second loop's body binds the first one's name, the merged loop is called otherwise."""
    func = program("""def main(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4, 8), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        A[i, 0] = 1
    for o in range(4):
        for i in range(8):
            B[o, i] = A[o, 0]
""")
    schedule = Schedule(func)
    assert schedule.merge_adjacent_loops("root", 0).status is Status.PROVED
    assert "for i_1 in range(4):\n        A[i_1, 0] = 1\n        for i in range(8):" in schedule.script()
    require_wellformed(schedule.func)


@pytest.mark.parametrize(
    "kinds, expected",
    [
        (("T.parallel", "T.parallel"), "T.parallel"),
        (("T.parallel", "T.serial"), "range"),
        (("T.unroll", "T.unroll"), "T.unroll"),
    ],
)
def test_kinds_that_differ_become_serial(kinds: tuple[str, str], expected: str) -> None:
    """A merged loop never does more at once than both did."""
    func = program(
        f"{SIGNATURE}    for i in {kinds[0]}(16):\n        B[i] = A[i]\n    for j in {kinds[1]}(16):\n"
        "        C[j] = A[j]\n"
    )
    schedule = Schedule(func)
    assert schedule.merge_adjacent_loops("root", "i").status is Status.PROVED
    assert f"for i in {expected}(16)" in schedule.script()


def test_parallel_loops_that_would_race_are_refuted() -> None:
    """Two parallel loops of which the second reads other iterations' results: merged, they would race."""
    func = program(
        f"{SIGNATURE}    for i in T.parallel(16):\n        B[i] = A[i]\n    for j in T.parallel(1, 16):\n"
        "        C[j] = B[j - 1]\n"
    )
    same = print_func(func).replace("T.parallel(16)", "T.parallel(1, 16)")
    with pytest.raises(IllegalTransform, match="no two iterations of the parallel loop i touch one cell"):
        Schedule(loads(same, "parallel.py")).merge_adjacent_loops("root", "i")


REFUSED = [
    (two("B[i] = 0", "C[j] = 0", ("16", "15")), "i", "not known to run equally often: 16 and 15 iterations"),
    (two("B[i] = 0", "C[j] = 0"), "j", "nothing stands behind loop j"),
    (program(f"{SIGNATURE}    for i in range(16):\n        B[i] = 0\n"), "i", "nothing stands behind loop i"),
    (
        program(f"{SIGNATURE}    for i in range(16):\n        B[i] = 0\n    C[0] = 1\n"),
        "i",
        "stands another statement, not a loop",
    ),
    (
        program(
            f"{SIGNATURE}    for i in range(16):\n        B[i] = 0\n    if B[3] > 0:\n        for j in range(16):\n"
            "            C[j] = 1\n"
        ),
        "i",
        "stands a branch, not a loop",
    ),
    (
        program(
            f"{SIGNATURE}    for i in range(16):\n        B[i] = 0\n"
            '    for j in T.thread_binding(16, thread="threadIdx.x"):\n        C[j] = 1\n'
        ),
        "i",
        "loop j is bound to threadIdx.x",
    ),
]


@pytest.mark.parametrize("func, loop, words", REFUSED)
def test_what_is_no_pair_of_adjacent_loops_is_refused(func: PrimFunc, loop: str, words: str) -> None:
    """What stands behind the loop instead, or what the two differ in."""
    with pytest.raises(LayoutproofError) as caught:
        MergeAdjacentLoops("root", loop).propose(func)
    assert words in caught.value.diagnostics[0].message


def test_a_join_that_drops_a_store_is_found() -> None:
    """A proposal in which one of the stores is missing is not proved."""
    rewrite = MergeAdjacentLoops("root", "i").propose(two("B[i] = A[i] + 1", "C[j] = B[j] * 2"))
    wrong = loads(print_func(rewrite.new).replace("        B[i] = A[i] + 1\n", "        C[i] = A[i] + 1\n"), "wrong.py")
    assert {v.status for v in check_rewrite(Rewrite(rewrite.old, wrong, rewrite.witness))} - {Status.PROVED}


def test_traces_read_back() -> None:
    """The options go through plain data."""
    step = MergeAdjacentLoops("root", 0)
    assert MergeAdjacentLoops.from_arguments(step.arguments()) == step


def statement(rng: Random, variable: str) -> str:
    """One store of a value from somewhere to somewhere."""
    indices = [variable, f"{variable} + 1", f"{variable} + 2", f"17 - {variable}", f"{variable} // 2", "3"]
    target, source = (f"{rng.choice('ABC')}[{rng.choice(indices)}]" for _ in range(2))
    return f"{target} = {source} + {rng.choice([variable, '1'])}"


@one_in(18)
@pytest.mark.parametrize("seed", range(30))
def test_random_pairs_of_loops(seed: int) -> None:
    """Without a crossing dependence a merge is proved; what is proved computes the same; what is refuted has a crossing
    one.
    """
    rng = Random(f"merge {seed}")
    func = two(statement(rng, "i"), statement(rng, "j"), rng.choice([("16", "16"), ("1, 17", "16"), ("4", "2, 6")]))
    schedule = Schedule(func)
    crossing = broken_order(MergeAdjacentLoops("root", "i").propose(func))
    try:
        assert schedule.merge_adjacent_loops("root", "i").status is Status.PROVED
        given = inputs_of(func)
        before, after = run(func, given), run(schedule.func, given)
        for name in "ABC":
            np.testing.assert_array_equal(before[name], after[name])
    except IllegalTransform:
        assert crossing is not None
