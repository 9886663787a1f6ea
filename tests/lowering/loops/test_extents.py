"""Loops shrunk to what a guard lets through: which ranges come out, which guards go, and which loops are left alone."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.lowering.loops.instances import check_theta
from tests.lowering.programs import program
from tests.lowering.small_operators import inputs_of

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.loops.reduce_extents import ReduceLoopExtents
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.verdict import Status

HEAD = "# from tvm.script import tirx as T\n\n@T.prim_func(s_tir=True)\n"
SIGNATURE = """def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.func_attr({"tirx.noalias": True})
"""
SYMBOLIC = """def main(A: T.Buffer(("n",), "int32"), B: T.Buffer((64,), "int32"), m: T.int32):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
"""


def guarded(loop: str, condition: str, signature: str = SIGNATURE, store: str = "B[i] = 1") -> PrimFunc:
    """One store in one loop under one guard."""
    return program(f"{signature}    for i in {loop}:\n        if {condition}:\n            {store}\n")


def reduced(func: PrimFunc) -> str:
    """The body that the transform leaves, proved; what is printed reads back."""
    schedule = Schedule(func)
    assert schedule.reduce_loop_extents().status is Status.PROVED
    assert loads(schedule.script(), "again.py") == schedule.func
    check = [line for line in schedule.script().splitlines(keepends=True) if line.startswith("    ")]
    return "".join(line for line in check if "func_attr" not in line and "T.int32()" not in line)


@pytest.mark.parametrize(
    "loop, condition, smaller, left",
    [
        ("range(20)", "i < 14", "range(14)", None),
        ("range(20)", "i <= 14", "range(15)", None),
        ("range(20)", "i >= 3 and i < 10", "range(3, 10)", None),
        ("range(4, 20)", "i + 2 > 9 and 20 - i > 4", "range(8, 16)", None),
        ("range(20)", "not (i >= 5)", "range(5)", None),
        ("range(20)", "i == 7", "range(7, 8)", None),
        ("range(20)", "3 * i >= 8 and 2 * i < 15", "range(3, 8)", None),
        ("range(20)", "i // 4 < 3", "range(12)", None),
        ("range(20)", "(i + 1) // 4 == 2", "range(7, 11)", None),
        ("range(20)", "i != 0", "range(1, 20)", None),
        ("range(20)", "i != 5", "range(20)", "i != 5"),
        # Unions: the loop runs over the hull, and the guard stays.
        ("range(20)", "i < 3 or (i >= 5 and i < 9)", "range(9)", "i < 3 or i >= 5 and i < 9"),
        ("range(20)", "i == 4 or i == 11", "range(4, 12)", "i == 4 or i == 11"),
        ("range(20)", "not (i < 4 and i != 2)", "range(2, 20)", "not (i < 4 and i != 2)"),
        ("range(20)", "i < 3 or i > 30", "range(3)", None),
        # Remainders: every point is looked at.
        ("range(20)", "i % 8 == 3", "range(3, 20)", "i % 8 == 3"),
        ("range(20)", "i % 8 == 3 and i < 12", "range(3, 12)", "i % 8 == 3"),
        # Parallel loops too; data that decides within what indices let through stays.
        ("T.parallel(20)", "i < 14", "T.parallel(14)", None),
        ("range(20)", "i < 14 and A[i] > 0", "range(14)", "A[i] > 0"),
        ("range(20)", "A[i] > 0", "range(20)", "A[i] > 0"),
    ],
)
def test_a_loop_runs_over_what_its_guard_lets_through(
    loop: str, condition: str, smaller: str, left: str | None
) -> None:
    """The whole body, before and after: what the new range says is no longer said by the guard."""
    body = "        B[i] = 1\n" if left is None else f"        if {left}:\n            B[i] = 1\n"
    assert reduced(guarded(loop, condition)) == f"    for i in {smaller}:\n{body}"


@pytest.mark.parametrize(
    "loop, condition, smaller, left, store",
    [
        ("range(n)", "i + 2 < n", "range(T.max(n - 2, 0))", None, "A[i] = 1"),
        ("range(n)", "i != 0", "range(1, 1 + T.max(n - 1, 0))", None, "A[i] = 1"),
        ("range(n + 10)", "i < n and i < 64", "range(T.min(n, 64))", None, "B[i] = 1"),
        ("range(20)", "i < m", "range(T.max(T.min(20, m), 0))", None, "B[i] = 1"),
        ("range(20)", "3 * i < n", "range(T.min(20, (n + 2) // 3))", None, "B[i] = 1"),
        ("range(n + 8)", "i >= 2 and i < n + 2", "range(2, 2 + n)", None, "A[i - 2] = 1"),
        ("range(20)", "i < m or i < 5", "range(T.max(T.min(m, 20), 5))", "i < m or i < 5", "B[i] = 1"),
    ],
)
def test_symbols_are_bounds(loop: str, condition: str, smaller: str, left: str | None, store: str) -> None:
    """For every size at once: a range that could be less than nothing is cut off at nothing."""
    body = f"        {store}\n" if left is None else f"        if {left}:\n            {store}\n"
    func = guarded(loop, condition, SYMBOLIC, store)
    assert reduced(func) == f"    for i in {smaller}:\n{body}"
    rewrite = ReduceLoopExtents().propose(func)
    for n in (0, 1, 2, 3, 7, 30):
        for m in (-3, 0, 4, 30):
            check_theta(rewrite, {"n": n, "m": m})


NESTS = [
    ("for i, j in T.grid(4, 4):", "i < 3 and j < 2", "for i, j in T.grid(3, 2):", None),
    (
        "for i, j in T.grid(4, 4):",
        "i * 4 + j < 14",
        "for i in range(4):\n        for j in range(T.min(4, 14 - i * 4)):",
        None,
    ),
    ("for i, j in T.grid(9, 4):", "i + j < 5", "for i in range(5):\n        for j in range(T.min(4, 5 - i)):", None),
    (
        "for i, j in T.grid(9, 4):",
        "i + j >= 5",
        "for i in range(2, 9):\n        for j in range(T.max(0, 5 - i), ",
        None,
    ),
]


@pytest.mark.parametrize("loops, condition, smaller, left", NESTS)
def test_nests_shrink_from_the_outside(loops: str, condition: str, smaller: str, left: str | None) -> None:
    """An outer loop runs over what passes in any inner iteration, an inner one over what passes in the outer one."""
    func = program(f"{SIGNATURE}    {loops}\n        if {condition}:\n            B[i * 4 + j] = 1\n")
    text = reduced(func)
    assert text.startswith(f"    {smaller}") and "if " not in text
    check_theta(ReduceLoopExtents().propose(func))


def test_a_guard_in_a_block_is_one() -> None:
    """A block's own guard shrinks the loops around it, over loops or over its variables."""
    func = program(f"""{SIGNATURE}    for i in range(20):
        with T.sblock("b"):
            v = T.axis.spatial(64, i + 1)
            T.where(i < 14 and v > 3)
            B[v] = A[v]
""")
    schedule = Schedule(func)
    assert schedule.reduce_loop_extents("b").status is Status.PROVED
    assert "for i in range(3, 14):" in schedule.script() and "T.where" not in schedule.script()


def test_inits_run_without_the_guard() -> None:
    """A block with an init sets results that its guard leaves out: its loops stay."""
    func = program(
        f"""{SIGNATURE}    for i, k in T.grid(20, 3):
        with T.sblock("b"):
            v = T.axis.spatial(64, i)
            T.axis.reduce(3, k)
            T.where(i < 14)
            with T.init():
                B[v] = 0
            B[v] = B[v] + A[v]
""".replace("            T.axis.reduce", "            vk = T.axis.reduce")
    )
    assert ReduceLoopExtents().propose(func).new == func


@pytest.mark.parametrize(
    "text",
    [
        "    for i in T.vectorized(16):\n        if i < 14:\n            B[i] = 1\n",
        "    for i in T.unroll(16):\n        if i < 14:\n            B[i] = 1\n",
        "    for i in range(16):\n        if i < 14:\n            B[i] = 1\n        else:\n            B[i] = 2\n",
        "    for i in range(16):\n        if i < 14:\n            B[i] = 1\n        A[i] = 2\n",
        "    for i in range(A[0]):\n        if i < 14:\n            B[i] = 1\n",
    ],
    ids=["lanes", "unrolled", "alternative", "another statement", "loaded range"],
)
def test_other_loops_are_left_alone(text: str) -> None:
    """Lanes are counted, an alternative or another statement runs for the rest, and a range that is loaded is not
    known.
    """
    func = program(SIGNATURE + text)
    assert ReduceLoopExtents().propose(func).new == func


def test_only_the_loops_of_the_block_that_is_named_shrink() -> None:
    """Other loops stay, also of one name."""
    block = '            with T.sblock("{1}"):\n                v = T.axis.spatial(64, i)\n                B[v] = 1\n'
    one = "    for i in range(20):\n        if i < {0}:\n" + block
    func = program(SIGNATURE + one.format(14, "first") + one.format(15, "second"))
    text = print_func(ReduceLoopExtents("second").propose(func).new)
    assert "range(20)" in text and "range(15)" in text and "if i < 14" in text
    with pytest.raises(LayoutproofError, match="no block called 'third'"):
        ReduceLoopExtents("third").propose(func)


def test_squares_are_read_number_by_number() -> None:
    """A guard on a square of a loop gives a smaller range."""
    assert "range(8)" in reduced(guarded("range(20)", "i * i < 50"))


def test_cubes_are_outside_integer_sets() -> None:
    """A guard on a cube of a loop gives a smaller range, which the checker does not decide yet: it is refused, and the
    loop stays.
    """
    func = guarded("range(20)", "i * i * i < 50")
    assert "range(4)" in print_func(ReduceLoopExtents().propose(func).new)
    schedule = Schedule(func)
    with pytest.raises(IllegalTransform) as caught:
        schedule.reduce_loop_extents()
    assert caught.value.status is Status.UNKNOWN and schedule.func == func


def test_what_never_passes_runs_over_nothing() -> None:
    """Constant ranges that are empty, and unions of which a part is."""
    func = program(f"{SIGNATURE}    A[0] = 1\n    for i in range(20):\n        if i > 30:\n            B[i] = 1\n")
    assert "range(0)" in reduced(func)


def test_a_range_that_is_too_small_is_found() -> None:
    """The same proposal with one iteration less is refuted."""
    rewrite = ReduceLoopExtents().propose(guarded("range(20)", "i < 3 or (i >= 5 and i < 9)"))
    wrong = loads(print_func(rewrite.new).replace("range(9)", "range(8)"), "wrong.py")
    assert Status.REFUTED in {v.status for v in check_rewrite(Rewrite(rewrite.old, wrong, rewrite.witness))}


@pytest.mark.parametrize("step", [ReduceLoopExtents(), ReduceLoopExtents("b")])
def test_traces_read_back(step: ReduceLoopExtents) -> None:
    """The options go through plain data; the block may be left out."""
    assert ReduceLoopExtents.from_arguments(step.arguments()) == step
    assert ReduceLoopExtents.from_arguments({}) == ReduceLoopExtents("root")


def condition(rng: Random, depth: int) -> str:
    """A random condition on `i` and `j`."""
    if depth > 0 and rng.random() < 0.6:
        left, right = condition(rng, depth - 1), condition(rng, depth - 1)
        return rng.choice([f"({left} and {right})", f"({left} or {right})", f"(not {left})"])
    value = rng.choice(["i", "j", "i + j", "2 * i - j", "i // 2", "(i + j) % 3", "7 - i", "i * 4 + j"])
    return f"{value} {rng.choice(['<', '<=', '>', '>=', '==', '!='])} {rng.randint(0, 9)}"


@pytest.mark.parametrize("seed", range(25))
def test_random_guards(seed: int) -> None:
    """Whatever the guard is, the smaller loops do the same, which is proved."""
    rng = Random(f"extents {seed}")
    outer = f"range({rng.randint(0, 2)}, {rng.randint(5, 9)})"
    inner = f"{rng.choice(['range', 'T.parallel'])}({rng.randint(3, 6)})"
    loops = f"    for i in {outer}:\n        for j in {inner}:\n            if {condition(rng, 2)}:\n"
    func = program(f"{SIGNATURE}    A[0] = 5\n{loops}                B[i * 6 + j] = A[i * 6 + j] + 1\n")
    rewrite = ReduceLoopExtents().propose(func)
    check_theta(rewrite)
    assert {v.status for v in check_rewrite(rewrite)} == {Status.PROVED}
    given = inputs_of(func)
    np.testing.assert_array_equal(run(rewrite.new, given)["B"], run(func, given)["B"])
