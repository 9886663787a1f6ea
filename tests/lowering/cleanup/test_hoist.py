"""Conditions stand where they are decided: which move, how far, and which must stay."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from tests.lowering.cleanup.programs import random_function, stated, text_of
from tests.lowering.programs import program
from tests.lowering.small_operators import assert_same_results
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.cleanup.hoist_expression import ALL_BUT_THREADS, Flag, HoistExpression
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.faults.vacuity import is_idle
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.verdict import Status

CONDITIONS = ("if_else_stmt", "if_else_expr", "boolean_expression")

HOISTED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "to the middle": (
        """    for i, j in T.grid(4, 4):
        if i < 3:
            C[i, j] = 0
""",
        """    for i in range(4):
        if i < 3:
            for j in range(4):
                C[i, j] = 0
""",
        {},
    ),
    "else is written too": (
        """    for i, j in T.grid(4, 4):
        B[i] = j
        if i < 3:
            C[i, j] = 0
        else:
            C[i, j] = 1
""",
        """    for i in range(4):
        if i < 3:
            for j in range(4):
                B[i] = j
                C[i, j] = 0
        else:
            for j in range(4):
                B[i] = j
                C[i, j] = 1
""",
        {},
    ),
    "part of a conjunction": (
        """    for i, j in T.grid(4, 4):
        if j < 3 and i < 2:
            C[i, j] = 0
""",
        """    for i in range(4):
        if i < 2:
            for j in range(4):
                if j < 3:
                    C[i, j] = 0
""",
        {},
    ),
    "not a part where only whole conditions move": (
        """    for i, j in T.grid(4, 4):
        if j < 3 and i < 2:
            C[i, j] = 0
""",
        """    for i, j in T.grid(4, 4):
        if j < 3 and i < 2:
            C[i, j] = 0
""",
        {"flags": ("if_else_stmt",)},
    ),
    "with its let": (
        """    for i, j in T.grid(4, 4):
        condition: T.bool = i < 3
        other: T.int32 = i * 2
        if condition:
            C[i, j] = other
""",
        """    for i in range(4):
        condition: T.let[T.bool] = i < 3
        if condition:
            for j in range(4):
                other: T.let[T.int32] = i * 2
                C[i, j] = other
""",
        {"flags": (*CONDITIONS, "required_by_conditional")},
    ),
    "all lets": (
        """    for i, j in T.grid(4, 4):
        other: T.int32 = i * 2
        C[i, j] = other
""",
        """    for i in range(4):
        other: T.let[T.int32] = i * 2
        for j in range(4):
            C[i, j] = other
""",
        {"flags": ("let_stmt",)},
    ),
    "a choice becomes a branch": (
        """    for i, j in T.grid(4, 4):
        C[i, j] = T.if_then_else(i < 2, A[i + j], 7)
""",
        """    for i in range(4):
        if i < 2:
            for j in range(4):
                C[i, j] = A[i + j]
        else:
            for j in range(4):
                C[i, j] = 7
""",
        {},
    ),
    "no choice where only branches move": (
        """    for i, j in T.grid(4, 4):
        C[i, j] = T.if_then_else(i < 2, A[i + j], 7)
""",
        """    for i, j in T.grid(4, 4):
        C[i, j] = T.if_then_else(i < 2, A[i + j], 7)
""",
        {"flags": ("if_else_stmt", "let_stmt")},
    ),
    "any truth value": (
        """    for i, j in T.grid(4, 4):
        C[i, j] = T.Cast("int32", i < 2)
""",
        """    for i in range(4):
        if i < 2:
            for j in range(4):
                C[i, j] = T.Cast("int32", T.bool(True))
        else:
            for j in range(4):
                C[i, j] = T.Cast("int32", T.bool(False))
""",
        {"flags": ("boolean_expression",)},
    ),
    "only in the block named": (
        """    for i, j in T.grid(4, 4):
        with T.sblock("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vj])
            T.writes(C[vi, vj])
            C[vi, vj] = T.if_then_else(1 <= vi, A[vj], 0)
    for i, j in T.grid(4, 4):
        with T.sblock("second"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(C[vi, vj])
            T.writes(B[vi * 4 + vj])
            B[vi * 4 + vj] = T.if_then_else(1 <= vi, C[vi, vj], 0)
""",
        """    for i in range(4):
        if 1 <= i:
            for j in range(4):
                with T.sblock("first"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(A[vj])
                    T.writes(C[vi, vj])
                    C[vi, vj] = A[vj]
        else:
            for j in range(4):
                with T.sblock("first_1"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads()
                    T.writes(C[vi, vj])
                    C[vi, vj] = 0
    for i, j in T.grid(4, 4):
        with T.sblock("second"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(C[vi, vj])
            T.writes(B[vi * 4 + vj])
            B[vi * 4 + vj] = T.if_then_else(1 <= vi, C[vi, vj], 0)
""",
        {"block": "first"},
    ),
    "out of a reduction": (
        """    for i, k in T.grid(4, 4):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(C[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + T.if_then_else(1 <= vi, C[vi, vk], 5)
""",
        """    for i in range(4):
        if 1 <= i:
            for k in range(4):
                with T.sblock("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.reads(C[vi, vk])
                    T.writes(B[vi])
                    with T.init():
                        B[vi] = 0
                    B[vi] = B[vi] + C[vi, vk]
        else:
            for k in range(4):
                with T.sblock("sum_1"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.reads()
                    T.writes(B[vi])
                    with T.init():
                        B[vi] = 0
                    B[vi] = B[vi] + 5
""",
        {},
    ),
    "what memory decides stays": (
        """    for i, j in T.grid(4, 4):
        if A[i] > 0 and B[i] < A[0]:
            C[i, j] = 0
""",
        """    for i, j in T.grid(4, 4):
        if A[i] > 0 and B[i] < A[0]:
            C[i, j] = 0
""",
        {},
    ),
    "a guard around an init": (
        """    for i, k in T.grid(4, 4):
        if i < 2:
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(C[vi, vk])
                T.writes(B[vi])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + C[vi, vk]
""",
        """    for i in range(4):
        if i < 2:
            for k in range(4):
                with T.sblock("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.reads(C[vi, vk])
                    T.writes(B[vi])
                    with T.init():
                        B[vi] = 0
                    B[vi] = B[vi] + C[vi, vk]
""",
        {},
    ),
}


@one_in(4)
@pytest.mark.parametrize("name", HOISTED)
def test_conditions_move_to_where_they_are_decided(name: str) -> None:
    """Fact 91: the step is proved, prints what is expected, and stands in the trace with its flags."""
    before, after, arguments = HOISTED[name]
    func = stated(before)
    schedule = Schedule(func)
    step = schedule.hoist_expression(**arguments)
    assert text_of(schedule.func) == after
    assert_same_results(func, schedule.func)
    assert Schedule.replay(func, schedule.trace).func == schedule.func
    assert loads(print_func(schedule.func)) == schedule.func
    assert HoistExpression.from_arguments(step.transform.arguments()) == step.transform


def test_a_scalar_condition_leaves_all_loops() -> None:
    """`if n != 0` stands around everything in the end."""
    schedule = Schedule(
        program("""def main(A: T.Buffer((16,), "int32"), n: T.int32):
    for i in range(16):
        if n != 0:
            A[i] = 0
""")
    )
    schedule.hoist_expression()
    assert schedule.script().endswith("""    if n != 0:
        for i in range(16):
            A[i] = 0
""")


THREADS = """    for k in T.thread_binding(4, thread="threadIdx.x"):
        for i in range(4):
            if k < 2:
                C[i, k] = 0
"""


def test_an_arm_that_is_written_twice_is_two_statements() -> None:
    """The last loop stands in two arms after the hoisting: each can be unrolled on its own."""
    schedule = Schedule(
        program("""def main(B: T.Buffer((5, 2, 4), "float32")):
    for i, j, k in T.grid(5, 2, 4):
        with T.sblock("zero"):
            u, v, w = T.axis.remap("SSS", [i, j, k])
            T.where(j == 1 and i >= 1 or k != 3)
            B[u, v, w] = T.float32(0)
""")
    )
    schedule.hoist_expression("zero")
    assert schedule.script().count("!= 3") == 2
    schedule.unroll("zero_1", "k", expand=True)
    assert schedule.script().count("!= 3") == 1 + 4


def test_conditions_on_threads_move_by_flag() -> None:
    """What depends on a thread axis stays unless the flag says otherwise."""
    func = stated(THREADS)
    assert HoistExpression().propose(func).new == func
    flags = (*CONDITIONS, "using_block_var")
    moved = HoistExpression(flags=flags).propose(func).new
    text = """    for k in T.thread_binding(4, thread="threadIdx.x"):
        if k < 2:
            for i in range(4):
                C[i, k] = 0
"""
    assert text_of(moved) == text
    schedule = Schedule(func)
    schedule.hoist_expression(flags=flags)
    assert text_of(schedule.func) == text


def test_a_wrong_hoisting_is_refuted() -> None:
    """The checker does not believe the pass: arms that changed places are found out."""
    rewrite = HoistExpression().propose(stated(HOISTED["else is written too"][0]))
    swapped = program(print_func(rewrite.new).split("\n", 3)[3].replace("if i < 3", "if i < 2"))
    assert rewrite.new != swapped
    verdicts = check_rewrite(Rewrite(rewrite.old, swapped, rewrite.witness))
    assert any(v.status is Status.REFUTED for v in verdicts)


def test_flags_are_all_but_threads() -> None:
    """The default leaves only hardware threads out."""
    assert set(HoistExpression().flags) == {f.value for f in Flag} - {"using_block_var"} == set(ALL_BUT_THREADS)
    assert replace(HoistExpression(), block="a").block == "a"


@one_in(9)
@pytest.mark.parametrize("seed", range(40))
def test_random_programs_compute_what_they_did(seed: int) -> None:
    """Whatever moves, the results stay, and what was proposed is accepted."""
    func = random_function(Random(seed))
    schedule = Schedule(func)
    if is_idle(func):
        with pytest.raises(IllegalTransform, match="nothing can be observed"):
            schedule.hoist_expression()
        return
    schedule.hoist_expression()
    assert_same_results(func, schedule.func)


def test_a_second_time_nothing_moves() -> None:
    """Hoisting is done when it is done."""
    for name in HOISTED:
        before, _, arguments = HOISTED[name]
        once = HoistExpression(**arguments).propose(stated(before)).new
        try:
            assert HoistExpression(**arguments).propose(once).new == once, name
        except LayoutproofError as problem:
            # The block may have two copies by now.
            assert "block" in str(problem)
