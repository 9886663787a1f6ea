"""Fusing loops: the digits of the new loop, what goes inside, and what cannot be one loop."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.lowering.loops.instances import check_theta, instances_of
from tests.lowering.programs import program, running_sum
from tests.random.nests import apart, assert_same_sums, lowered, random_nest
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import For, ForKind
from layoutproof.ir.visit import walk
from layoutproof.lowering.loops.nest import loops_of_block
from layoutproof.lowering.loops.tiling import Fuse
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.verdict import Status

NOALIAS = '    T.func_attr({"tirx.noalias": True})\n'
HEAD = "# from tvm.script import tirx as T\n\n@T.prim_func(s_tir=True)\n"


def test_a_grid_of_two_becomes_one_loop() -> None:
    """The whole program, before and after: quotient and remainder are bound where the loops were."""
    func = program(f"""def main(A: T.Buffer((14, 5), "int32"), B: T.Buffer((14, 5), "int32")):
{NOALIAS}    for i, j in T.grid(14, 5):
        with T.sblock("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1
""")
    schedule = Schedule(func)
    assert schedule.fuse("copy", ["i", "j"]).status is Status.PROVED
    assert (
        schedule.script()
        == f"""{HEAD}def main(A: T.Buffer((14, 5), "int32"), B: T.Buffer((14, 5), "int32")):
{NOALIAS}    for i_j_fused in range(70):
        with T.sblock("copy"):
            vi = T.axis.spatial(14, i_j_fused // 5)
            vj = T.axis.spatial(5, i_j_fused % 5)
            B[vi, vj] = A[vi, vj] + 1
"""
    )
    assert loads(schedule.script(), "again.py") == schedule.func


@pytest.mark.parametrize(
    "loops, extent, indices",
    [
        ("T.grid(4, 6)", "24", ["a_b_fused // 6", "a_b_fused % 6"]),
        ("T.grid(1, 6)", "6", ["0", "a_b_fused"]),
        ("T.grid(4, 1)", "4", ["a_b_fused", "0"]),
        ("T.grid(n, 6)", "n * 6", ["a_b_fused // 6", "a_b_fused % 6"]),
        ("T.grid(4, n)", "n * 4", ["a_b_fused // n", "a_b_fused % n"]),
        ("T.grid(n, n)", "n * n", ["a_b_fused // n", "a_b_fused % n"]),
    ],
)
def test_old_loops_are_digits(loops: str, extent: str, indices: list[str]) -> None:
    """A loop of one iteration is no digit; the first digit has no remainder, the last no quotient."""
    rewrite = Fuse("root", ("a", "b")).propose(grid(loops))
    text = print_func(rewrite.new)
    assert f"for a_b_fused in range({extent}):" in text
    assert f"A[{', '.join(indices)}] = 1" in text
    for size in (0, 1, 2, 5):
        check_theta(rewrite, {"n": size})


def grid(loops: str) -> PrimFunc:
    """Ones stored by two loops."""
    return program(f"""def main(A: T.Buffer((n + 9, n + 9), "int32"), N: T.Buffer(("n",), "int32")):
    n = T.int32()
    for a, b in {loops}:
        A[a, b] = 1
""")


def test_the_order_of_iterations_stays() -> None:
    """The new loop visits what the old ones visited, in their order."""
    func = program("""def main(A: T.Buffer((9, 9, 9), "int32")):
    for a in range(2, 5):
        for b in range(3):
            for c in range(1, 3):
                A[a, b, c] = 1
""")
    rewrite = Fuse("root", ("a", "b", "c")).propose(func)
    image = rewrite.witness.instances[0].instances
    assert image is not None
    assert [image.evaluate(i, {}) for i in instances_of(rewrite.new)[0]] == instances_of(func)[0]


def test_branches_between_loops_go_inside() -> None:
    """A condition on an outer loop guards each iteration of the fused one."""
    func = program(f"""def main(A: T.Buffer((4, 6), "int32")):
{NOALIAS}    for a in range(4):
        if a < 3:
            for b in range(6):
                A[a, b] = 1
""")
    schedule = Schedule(func)
    schedule.fuse("root", ["a", "b"])
    assert (
        "    for a_b_fused in range(24):\n        if a_b_fused // 6 < 3:\n"
        "            A[a_b_fused // 6, a_b_fused % 6] = 1"
    ) in schedule.script()


def test_fusing_undoes_a_split() -> None:
    """Digits of a number that was taken apart are put together again, in blocks' bindings."""
    func = apart(running_sum())
    schedule = Schedule(func)
    schedule.split("sum", "i", [7, 2])
    schedule.fuse("sum", ["i_0", "i_1"])
    assert "T.axis.remap" in schedule.script() and "//" not in schedule.script()
    assert_same_sums(func, schedule.func)


@pytest.mark.parametrize(
    "kinds, expected",
    [
        (("T.parallel", "T.parallel"), ForKind.PARALLEL),
        (("range", "T.parallel"), ForKind.SERIAL),
        (("T.unroll", "T.unroll"), ForKind.UNROLLED),
    ],
)
def test_loops_of_one_kind_stay_of_it(kinds: tuple[str, str], expected: ForKind) -> None:
    """Loops of different kinds become a serial one, which never does more at once than either."""
    func = program(f"""def main(A: T.Buffer((4, 6), "int32")):
    for a in {kinds[0]}(4):
        for b in {kinds[1]}(6):
            A[a, b] = 1
""")
    assert [n.kind for n in walk(Fuse("root", (0, 1)).propose(func).new.body) if isinstance(n, For)] == [expected]


REFUSED = [
    ("    for a, b in T.grid(4, 6):\n        A[a, b] = 1\n", ("b", "a"), "named outermost first"),
    ("    for a, b in T.grid(4, 6):\n        A[a, b] = 1\n", ("a", 0), "loop a is named twice"),
    ("    for a, b in T.grid(4, 6):\n        A[a, b] = 1\n", ("a", "z"), "block root has no loop 'z'"),
    ("    for a, b, c in T.grid(4, 2, 3):\n        A[a, b * 3 + c] = 1\n", ("a", "c"), "loop b stands between"),
    (
        "    for a in range(4):\n        for b in range(a):\n            A[a, b] = 1\n",
        ("a", "b"),
        "the range of loop b depends on a",
    ),
    (
        "    for a in range(4):\n        A[a, 0] = 0\n        for b in range(6):\n            A[a, b] = 1\n",
        ("a", "b"),
        "more than loops",
    ),
    (
        "    for a in range(65536):\n        for b in range(65536):\n            A[0, 0] = 1\n",
        ("a", "b"),
        "do not fit int32",
    ),
    (
        (
            '    for a in range(4):\n        for b in T.thread_binding(6, thread="threadIdx.x"):\n'
            "            A[a, b] = 1\n"
        ),
        ("a", "b"),
        "loop b is bound to threadIdx.x",
    ),
]


@pytest.mark.parametrize("text, loops, words", REFUSED)
def test_what_cannot_be_one_loop_is_refused(text: str, loops: tuple[str | int, ...], words: str) -> None:
    """What is in the way is named."""
    with pytest.raises(LayoutproofError) as caught:
        Fuse("root", loops).propose(program(f'def main(A: T.Buffer((4, 6), "int32")):\n{text}'))
    assert words in caught.value.diagnostics[0].message


def test_a_fused_reduction_keeps_one_init_for_each_result() -> None:
    """Results and what is added to them in one loop: still one init before each result's first update, here and
    lowered.
    """
    func = apart(running_sum())
    schedule = Schedule(func)
    schedule.fuse("sum", ["i", "k"])
    assert_same_sums(func, schedule.func)


def test_a_loop_that_starts_a_reduction_anew_still_does() -> None:
    """A loop around a reduction that no variable is bound to makes it start again; as one loop with it, it does so all
    the same.
    """
    func = program(f"""def main(A: T.Buffer((5,), "int32"), B: T.Buffer((1,), "int32")):
{NOALIAS}    for r, k in T.grid(3, 5):
        with T.sblock("sum"):
            vk = T.axis.reduce(5, k)
            with T.init():
                B[0] = 0
            B[0] = B[0] + A[vk]
""")
    schedule = Schedule(func)
    assert schedule.fuse("sum", ["r", "k"]).status is Status.PROVED
    assert_same_sums(func, schedule.func)


@one_in(4)
@pytest.mark.parametrize("loops", ["T.grid(4, n)", "T.grid(n, n)", "T.grid(n, 6)", "T.grid(n + 2, n + 1)"])
def test_symbolic_extents_are_proved_for_every_size(loops: str) -> None:
    """Digits in a radix that is a symbol: the mixed-radix lemma says that the loop visits what the two did."""
    schedule = Schedule(grid(loops))
    assert schedule.fuse("root", ["a", "b"]).status is Status.PROVED


def test_two_symbols_may_be_the_extents() -> None:
    """A loop of `n*m`, blocks bound to its digits: proved for every size of both."""
    func = program(f"""def main(A: T.Buffer(("n", "m"), "int32")):
    n, m = T.int32(), T.int32()
{NOALIAS}    for i, j in T.grid(n, m):
        with T.sblock("ones"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = 1
""")
    schedule = Schedule(func)
    assert schedule.fuse("ones", ["i", "j"]).status is Status.PROVED
    assert "for i_j_fused in range(n * m):" in schedule.script()


@pytest.mark.parametrize("old, new", [("// n", "% n"), ("range(n * n)", "range(n * 4)"), ("% n]", "// n]")])
def test_wrong_symbolic_digits_are_found(old: str, new: str) -> None:
    """Digits of another radix, or another number of iterations, are not proved."""
    rewrite = Fuse("root", ("a", "b")).propose(grid("T.grid(n, n)"))
    text = print_func(rewrite.new)
    assert old in text
    wrong = Rewrite(rewrite.old, loads(text.replace(old, new), "wrong.py"), rewrite.witness)
    assert {v.status for v in check_rewrite(wrong)} - {Status.PROVED}


def test_a_wrong_digit_is_found() -> None:
    """The same proposal with other digits in the program computes something else, and is not proved."""
    func = apart(running_sum())
    rewrite = Fuse("sum", ("i", "k")).propose(func)
    text = print_func(rewrite.new)
    assert "i_k_fused // 5" in text
    wrong = loads(text.replace("i_k_fused // 5", "i_k_fused % 14"), "wrong.py")
    assert {v.status for v in check_rewrite(Rewrite(func, wrong, rewrite.witness))} - {Status.PROVED}


def test_traces_read_back() -> None:
    """The options go through plain data."""
    step = Fuse("sum", ("i", 1))
    assert Fuse.from_arguments(step.arguments()) == step and str(step) == "fuse(block='sum', loops=['i', 1])"


@one_in(7)
@pytest.mark.parametrize("seed", range(12))
def test_random_nests_compute_the_same(seed: int) -> None:
    """Adjacent loops of a random nest, as blocks and lowered: fusing them is proved and changes no result."""
    rng = Random(f"fuse {seed}")
    func = apart(random_nest(rng))
    for each, block in ((func, "sum"), (lowered(func), "root")):
        count = len(loops_of_block(each, block))
        first = rng.randrange(count)
        loops = tuple(range(first, rng.randint(first + 1, count)))
        try:
            rewrite = Fuse(block, loops).propose(each)
        except LayoutproofError:
            continue
        check_theta(rewrite)
        assert_same_sums(each, rewrite.new)
        schedule = Schedule(each)
        assert schedule.apply(Fuse(block, loops)).status is Status.PROVED


@one_in(4)
def test_empty_reductions_set_no_results() -> None:
    """A sum over `m` terms leaves its results alone where `m` is 0, fused with the rows as well."""
    func = program(f"""def main(A: T.Buffer(("n", "m"), "int32"), B: T.Buffer(("n",), "int32")):
    n, m = T.int32(), T.int32()
{NOALIAS}    for i, k in T.grid(n, m):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
""")
    schedule = Schedule(func)
    assert schedule.fuse("sum", ["i", "k"]).status is Status.PROVED
    sizes = {"A": np.ones((3, 0), np.int32), "B": np.full(3, 7, np.int32)}
    assert run(func, sizes)["B"].tolist() == run(schedule.func, sizes)["B"].tolist() == [7, 7, 7]
