"""Passes on long programs see a part, and make of the whole what they make of it when they see it whole."""

from __future__ import annotations

from collections.abc import Callable
from cProfile import Profile
from unittest.mock import patch

import pytest
from tests.shares import one_in

import layoutproof as lp
from layoutproof.ir.primfunc import Kept
from layoutproof.ir.rewrite import InstanceMap
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering.passes import in_part, steps
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.passes.in_part import try_in_part
from layoutproof.verify.replay.refute import find_counterexample

COUNT = 40
CALLS = 20  # for a statement that a step leaves alone; it is more than 100 where the step looks into each


def chain(count: int = COUNT) -> str:
    """A sequence of blocks, each of which reads what the one before wrote."""
    lines = ["@T.prim_func", "def chain(A: T.Buffer((8, 6), 'float32'), Z: T.Buffer((8, 6), 'float32')):"]
    lines += ["    T.func_attr({'tirx.noalias': True})"]
    lines += [f"    T{k} = T.alloc_buffer((8, 6), 'float32')" for k in range(count - 1)]
    names = ["A", *(f"T{k}" for k in range(count - 1)), "Z"]
    for k in range(count):
        lines += [
            f"    for i{k}, j{k} in T.grid(8, 6):",
            f"        with T.block('b{k}'):",
            f"            vi, vj = T.axis.remap('SS', [i{k}, j{k}])",
            f"            {names[k + 1]}[vi, vj] = {names[k]}[vi, vj] * T.float32({k % 5})",
        ]
    return "\n".join(lines) + "\n"


STEPS: dict[str, Callable[[lp.Schedule], object]] = {
    "split": lambda s: s.split("b20", "i20", [None, 2]),
    "split with a guard": lambda s: s.split("b20", "i20", [None, 3]),
    "reorder": lambda s: s.reorder("b20", ["j20", "i20"]),
    "layout": lambda s: s.transform_layout("b20", "T19", "lambda i, j: [j, i // 4, i % 4]"),
    "layout with padding": lambda s: s.transform_layout("b20", "T19", "lambda i, j: [i, j // 4, j % 4]", 0.0),
    "layout of an output": lambda s: s.transform_layout("b39", "Z", "lambda i, j: [j, i]"),
    "cache": lambda s: s.cache_read("b20", "T19", "global"),
    "cache of an output": lambda s: s.cache_write("b39", "Z", "global"),
    "parallel": lambda s: s.parallel("b20", "i20"),
}


@one_in(16)
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_part_gives_what_the_whole_gives(step: Callable[[lp.Schedule], object]) -> None:
    """The program after a step is the same, and so is the number of stores that its witness speaks of."""
    func = loads(chain())
    part, whole = lp.Schedule(func), lp.Schedule(func)
    step(part)
    with patch.object(steps, "try_in_part", lambda *_: None):
        step(whole)
    assert print_func(part.func) == print_func(whole.func)
    assert not check_wellformed(part.func)
    told, wanted = (s.steps[-1].rewrite.witness for s in (part, whole))
    assert (told.cells, told.changes_interface) == (wanted.cells, wanted.changes_interface)
    assert sorted(told.instances, key=lambda m: m.new_store) == sorted(wanted.instances, key=lambda m: m.new_store)
    assert find_counterexample(part.steps[-1].rewrite) is None


def test_the_checker_looks_at_the_part() -> None:
    """After the first step the statements that both programs share are left out of the proof."""
    schedule = lp.Schedule(loads(chain()))
    schedule.split("b20", "i20", [None, 2])
    schedule.reorder("b30", ["j30", "i30"])
    said = [str(verdict.claim) for verdict in schedule.steps[-1].verdicts]
    assert said[0].endswith("statements that both programs share are left out") and len(said) < COUNT


def test_what_a_step_keeps_for_the_next_is_what_the_next_would_make() -> None:
    """The witness of each of several steps, some of which add stores, and of two schedules in turns, is the one that is
    made without what the steps before left.
    """
    first = lp.Schedule(loads(chain()))
    first.parallel("b3", "i3")
    second = first.fork()
    later: tuple[Callable[[lp.Schedule], object], ...] = (
        lambda s: s.split("b30", "i30", [None, 2]),
        lambda s: s.split("b10", "i10", [None, 3]),
    )
    for step in (STEPS["split"], STEPS["layout"], STEPS["cache"], *later, STEPS["cache of an output"]):
        for schedule in (first, second) if step is not STEPS["cache"] else (first,):
            step(schedule)
            made = schedule.steps[-1]
            with patch.object(in_part, "_UNCHANGED", Kept[tuple[InstanceMap, ...]](1)):
                anew = try_in_part(made.transform, made.rewrite.old)
            assert anew is not None and anew == made.rewrite


def test_the_cost_of_a_step_does_not_follow_the_program() -> None:
    """The calls of Python functions that a step makes grow by few for each statement that it leaves alone, once it was
    looked at by a step of this kind.
    """
    counts = []
    for count in (100, 400):
        schedule = lp.Schedule(loads(chain(count)))
        schedule.parallel("b21", "i21")
        calls = []
        for name in ("split", "reorder", "layout"):
            STEPS[name](schedule.fork())
            profile = Profile(builtins=False)
            profile.runcall(STEPS[name], schedule.fork())
            calls.append(sum(entry.callcount for entry in profile.getstats()))
        counts.append(calls)
    assert all((many - few) / 300 <= CALLS for few, many in zip(*counts, strict=True)), counts


def test_refusals_are_those_of_the_whole() -> None:
    """What a pass refuses, or the checker, is told of the whole program."""
    messages = []
    for patched in (try_in_part, lambda *_: None):
        schedule = lp.Schedule(loads(chain()))
        with patch.object(steps, "try_in_part", patched), pytest.raises(IllegalTransform) as refused:
            schedule.split("b20", "nothing", [None, 2])
        messages.append(str(refused.value))
        with patch.object(steps, "try_in_part", patched), pytest.raises(IllegalTransform) as refused:
            schedule.transform_layout("b20", "T19", "lambda i, j: [i // 2, j]")
        messages.append(str(refused.value))
    assert messages[:2] == messages[2:]
