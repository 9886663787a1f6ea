"""Splitting loops: what becomes of extents, guards, names and the order of iterations."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.lowering.loops.instances import check_theta, instances_of
from tests.lowering.programs import copy, program, running_sum
from tests.random.nests import assert_same_sums, lowered, random_nest
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import For, ForKind
from layoutproof.ir.visit import walk
from layoutproof.lowering import codes
from layoutproof.lowering.loops.nest import loops_of_block
from layoutproof.lowering.loops.tiling import Split
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule


def loops_of(func: PrimFunc) -> list[str]:
    """The loops of a function as text, in order."""
    lines = [line.strip() for line in print_func(func).splitlines()]
    return [line for line in lines if line.startswith("for ")]


@pytest.mark.parametrize(
    "extent, factors, loops, guard",
    [
        ("12", (None, 4), "for i_0, i_1 in T.grid(3, 4):", None),
        ("14", (None, 4), "for i_0, i_1 in T.grid(4, 4):", "i_0 * 4 + i_1 < 14"),
        ("14", (4, None), "for i_0, i_1 in T.grid(4, 4):", "i_0 * 4 + i_1 < 14"),
        ("14", (3, 5), "for i_0, i_1 in T.grid(3, 5):", "i_0 * 5 + i_1 < 14"),
        ("12", (2, None, 3), "for i_0, i_1, i_2 in T.grid(2, 2, 3):", None),
        ("14", (2, None, 3), "for i_0, i_1, i_2 in T.grid(2, 3, 3):", "i_0 * 9 + (i_1 * 3 + i_2) < 14"),
        ("14", (None,), "for i_0 in range(14):", None),
        ("1", (None, 4), "for i_0, i_1 in T.grid(1, 4):", "i_0 * 4 + i_1 < 1"),
        ("n", (None, 4), "for i_0, i_1 in T.grid((n + 3) // 4, 4):", "i_0 * 4 + i_1 < n"),
        ("n", (4, None), "for i_0, i_1 in T.grid(4, (n + 3) // 4):", "i_0 * ((n + 3) // 4) + i_1 < n"),
        ("n", (1, None), "for i_0, i_1 in T.grid(1, n):", None),
    ],
)
def test_factors_become_loops(extent: str, factors: tuple[int | None, ...], loops: str, guard: str | None) -> None:
    """Extents are rounded up, and only what does not divide is guarded."""
    func = symbolic_copy() if extent == "n" else copy(extent)
    new = Split("copy", "i", factors).propose(func).new
    assert loops_of(new) == [loops]
    text = print_func(new)
    assert (f"T.where({guard})" in text) if guard is not None else "T.where" not in text


def symbolic_copy() -> PrimFunc:
    """`B[i] = A[i]` for all n."""
    return program("""def main(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    for i in range(n):
        with T.sblock("copy"):
            v = T.axis.spatial(n, i)
            B[v] = A[v]
""")


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 14])
@pytest.mark.parametrize("factors", [(None, 4), (4, None), (2, None, 3), (None,)])
def test_symbolic_loops_run_as_often(size: int, factors: tuple[int | None, ...]) -> None:
    """Whatever the extent turns out to be, each iteration runs once, in its old order."""
    rewrite = Split("copy", 0, factors).propose(symbolic_copy())
    check_theta(rewrite, {"n": size})
    image = rewrite.witness.instances[0].instances
    assert image is not None
    found = [image.evaluate(i, {"n": size}) for i in instances_of(rewrite.new, {"n": size})[0]]
    assert found == [(n,) for n in range(size)]


def test_an_exact_multiple_needs_no_guard() -> None:
    """A loop of `4*n` split by 4 is n times 4."""
    func = program("""def main(A: T.Buffer((4 * n,), "float32")):
    n = T.int32()
    for i in range(4 * n):
        A[i] = T.float32(0.0)
""")
    new = Split("root", "i", (None, 4)).propose(func).new
    assert loops_of(new) == ["for i_0, i_1 in T.grid(n, 4):"]
    assert "if " not in print_func(new)


def test_loops_need_not_start_at_zero() -> None:
    """The new loops count from 0; the start is added."""
    func = program("""def main(A: T.Buffer((20,), "float32")):
    for i in range(3, 17):
        A[i] = T.float32(0.0)
""")
    rewrite = Split("root", "i", (None, 4)).propose(func)
    assert "A[3 + (i_0 * 4 + i_1)]" in print_func(rewrite.new)
    check_theta(rewrite)


def test_names_that_are_taken_are_passed_over() -> None:
    """A new loop does not take the name of an existing one."""
    func = program("""def main(A: T.Buffer((4, 6), "float32")):
    for i_0, i in T.grid(4, 6):
        A[i_0, i] = T.float32(0.0)
""")
    assert loops_of(Split("root", "i", (None, 3)).propose(func).new) == ["for i_0, i_0_1, i_1 in T.grid(4, 2, 3):"]


@pytest.mark.parametrize(
    "kind, expected",
    [
        ("T.parallel", [ForKind.PARALLEL, ForKind.PARALLEL]),
        ("T.unroll", [ForKind.UNROLLED, ForKind.UNROLLED]),
        ("T.vectorized", [ForKind.SERIAL, ForKind.VECTORIZED]),
    ],
)
def test_new_loops_run_as_the_old_one_did(kind: str, expected: list[ForKind]) -> None:
    """Of a vectorized loop only the innermost part stays one."""
    func = program(f"""def main(A: T.Buffer((8,), "float32")):
    for i in {kind}(8):
        A[i] = T.float32(0.0)
""")
    new = Split("root", "i", (None, 4)).propose(func).new
    assert [n.kind for n in walk(new.body) if isinstance(n, For)] == expected


def test_a_domain_larger_than_the_loops_keeps_init_out() -> None:
    """Where more results could be meant than loops reach, the guard keeps the block's init off as well."""
    func = program("""def main(A: T.Buffer((20, 3), "int32"), B: T.Buffer((20,), "int32")):
    for i, k in T.grid(14, 3):
        with T.sblock("sum"):
            vi = T.axis.spatial(20, i)
            vk = T.axis.reduce(3, k)
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
""")
    new = Split("sum", "i", (None, 4)).propose(func).new
    assert "T.where(i_0 * 4 + i_1 < 14)" in print_func(new)
    assert_same_sums(func, new)


def test_ranges_that_are_loaded_are_not_loaded_past_the_end() -> None:
    """A guard stands outside of a loop whose range is read from memory."""
    func = program("""def main(P: T.Buffer((15,), "int32"), A: T.Buffer((99,), "int32"), B: T.Buffer((14,), "int32")):
    for i in range(14):
        for k in range(P[i], P[i + 1]):
            with T.sblock("sum"):
                vi = T.axis.spatial(14, i)
                vk = T.axis.reduce(99, k)
                B[vi] = B[vi] + A[vk]
""")
    lines = print_func(Split("sum", "i", (None, 4)).propose(func).new).splitlines()
    assert [n for n, line in enumerate(lines) if "if i_0" in line] < [
        n for n, line in enumerate(lines) if "for k" in line
    ]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"loop": "j", "factors": [None, 4]}, "block sum has no loop 'j'"),
    ({"loop": 7, "factors": [None, 4]}, "block sum has no loop at position 7"),
    ({"loop": -1, "factors": [None, 4]}, "block sum has no loop at position -1"),
    ({"loop": True, "factors": [None, 4]}, "the name of a loop's variable, or the loop's position from 0 is expected"),
    ({"loop": "i", "factors": []}, "a list of positive integers, of which one may be null is expected"),
    ({"loop": "i", "factors": [None, None]}, "a list of positive integers, of which one may be null is expected"),
    ({"loop": "i", "factors": [0, 4]}, "a list of positive integers, of which one may be null is expected"),
    ({"loop": "i", "factors": [2.0, 4]}, "a list of positive integers, of which one may be null is expected"),
    ({"loop": "i", "factors": [2, 4]}, "the factors 2, 4 make 8 iterations, loop i has 14"),
    ({"loop": "i", "factors": [1 << 20, 1 << 20]}, "do not fit int32"),
]


@pytest.mark.parametrize("arguments, words", BAD)
def test_bad_arguments_are_refused(arguments: dict[str, Any], words: str) -> None:
    """Each wrong argument is named, with what was expected, and the schedule is as it was."""
    schedule = Schedule(running_sum())
    with pytest.raises(IllegalTransform, match=words.replace("'", ".")):
        schedule.split("sum", **arguments)
    assert schedule.func == running_sum() and schedule.trace == []


def test_the_help_names_loops() -> None:
    """A misspelt loop brings the nearest name, a strange one all names."""
    func = program("""def main(A: T.Buffer((4, 6), "float32")):
    for outer, inner in T.grid(4, 6):
        A[outer, inner] = T.float32(0.0)
""")
    with pytest.raises(LayoutproofError) as caught:
        Split("root", "iner", (None, 2)).propose(func)
    assert caught.value.diagnostics[0].help == "did you mean 'inner'?"
    with pytest.raises(LayoutproofError) as caught:
        Split("root", "x", (None, 2)).propose(func)
    assert caught.value.diagnostics[0].help == "its loops are outer, inner"


def test_two_loops_of_one_name_are_told_apart_by_position() -> None:
    """A name that two loops have is refused with their positions, and a position takes one of them."""
    func = program("""def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = T.float32(0.0)
    for i in range(8):
        A[i] = T.float32(1.0)
""")
    with pytest.raises(LayoutproofError) as caught:
        Split("root", "i", (None, 2)).propose(func)
    assert caught.value.diagnostics[0].help == "name one by its position: 0, 1"
    rewrite = Split("root", 1, (None, 2)).propose(func)
    assert loops_of(rewrite.new) == ["for i in range(8):", "for i_0, i_1 in T.grid(4, 2):"]
    check_theta(rewrite)


def test_a_loop_without_a_constant_extent_needs_an_open_factor() -> None:
    """Factors alone need not cover a loop of n."""
    with pytest.raises(LayoutproofError, match="need not cover it"):
        Split("copy", "i", (4, 4)).propose(symbolic_copy())


def test_thread_loops_are_left_alone() -> None:
    """A loop bound to a hardware axis is not split."""
    func = program("""def main(A: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        A[i] = T.float32(0.0)
""")
    with pytest.raises(LayoutproofError, match=r"bound to threadIdx\.x"):
        Split("root", "i", (None, 2)).propose(func)


@one_in(4)
@pytest.mark.parametrize("seed", range(12))
def test_random_nests_compute_the_same(seed: int) -> None:
    """Splitting any loop of a random nest, blocks or not, changes no sum, and its witness is right."""
    rng = Random(f"split {seed}")
    func = random_nest(rng)
    for each, block in ((func, "sum"), (lowered(func), "root")):
        rewrite = Split(block, rng.randrange(len(loops_of_block(each, block))), (None, rng.choice([2, 3]))).propose(
            each
        )
        check_theta(rewrite)
        assert_same_sums(each, rewrite.new)


def test_split_programs_read_back() -> None:
    """What is printed reads back as the same program."""
    new = Split("sum", "k", (None, 2)).propose(running_sum()).new
    assert loads(print_func(new), "again.py") == new


def test_more_factors_than_a_program_can_nest() -> None:
    """500 factors are refused by name: no reader would take the loops that they make."""
    func = copy("16")
    with pytest.raises(LayoutproofError, match="500 factors are too many") as caught:
        Split("copy", "i", (1,) * 499 + (16,)).propose(func)
    assert caught.value.diagnostics[0].code == codes.SPLIT_FACTORS
    deep = print_func(Split("copy", "i", (1,) * 63 + (16,)).propose(func).new)
    assert sum(isinstance(node, For) for node in walk(loads(deep).body)) == 64
