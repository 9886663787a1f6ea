"""Parallel, vectorized and unrolled loops: what may run at once, and which two iterations may not."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

import pytest
from tests.lowering.programs import program, running_sum
from tests.random.nests import apart, assert_same_sums, random_nest

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import For, ForKind
from layoutproof.ir.visit import walk
from layoutproof.lowering.loops.loop_kinds import Parallel, Unroll, Vectorize
from layoutproof.lowering.loops.nest import loops_of_block
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.verdict.verdict import Status

NOALIAS = '    T.func_attr({"tirx.noalias": True})\n'
HEAD = "# from tvm.script import tirx as T\n\n@T.prim_func(s_tir=True)\n"


def over(body: str, extent: str = "16", attribute: str = NOALIAS) -> PrimFunc:
    """One statement in a loop, over three buffers of 32."""
    buffers = ", ".join(f'{name}: T.Buffer((32,), "int32")' for name in "ABP")
    return program(f"def main({buffers}):\n{attribute}    for i in range({extent}):\n        {body}\n")


@pytest.mark.parametrize(
    "step, word",
    [
        (Parallel("root", "i"), "T.parallel"),
        (Vectorize("root", "i"), "T.vectorized"),
        (Unroll("root", "i"), "T.unroll"),
    ],
    ids=["parallel", "vectorize", "unroll"],
)
@pytest.mark.parametrize("body", ["B[i] = A[i] + 1", "B[i] = B[i] + A[31 - i]", "B[i + 16] = B[i]", "B[15 - i] = P[3]"])
def test_iterations_that_do_not_meet_may_run_at_once(step: Parallel | Vectorize | Unroll, word: str, body: str) -> None:
    """Only the loop's kind changes; that is proved, and what is printed reads back."""
    schedule = Schedule(over(body))
    assert schedule.apply(step).status is Status.PROVED
    buffers = ", ".join(f'{name}: T.Buffer((32,), "int32")' for name in "ABP")
    assert schedule.script() == f"{HEAD}def main({buffers}):\n{NOALIAS}    for i in {word}(16):\n        {body}\n"
    assert loads(schedule.script(), "again.py") == schedule.func


RACES = [
    (
        "B[i + 1] = B[i]",
        r"read B\[i\] \(line 5\) at i = (\d+) and write B\[i \+ 1\] \(line 5\) at i = (\d+) touch one cell",
        lambda a, b: a == b + 1,
    ),
    (
        "B[i // 2] = A[i]",
        r"write B\[i//2\] .* at i = (\d+) and write B\[i//2\] .* at i = (\d+) touch",
        lambda a, b: a // 2 == b // 2 and a != b,
    ),
    ("B[0] = B[0] + A[i]", r"read B\[0\] .* at i = (\d+) and write B\[0\] .* at i = (\d+) touch", lambda a, b: a != b),
    (
        "B[i % 15] = 1",
        r"write B\[i%15\] .* at i = (\d+) and write B\[i%15\] .* at i = (\d+) touch",
        lambda a, b: (a, b) == (0, 15),
    ),
]


@pytest.mark.parametrize("step", [Parallel("root", "i"), Vectorize("root", "i")], ids=["parallel", "vectorize"])
@pytest.mark.parametrize("body, words, meet", RACES)
def test_races_are_refuted_with_the_iterations_named(
    step: Parallel | Vectorize, body: str, words: str, meet: Callable[[int, int], bool]
) -> None:
    """The message has the cell's two accesses with the iteration of each, which do meet; the schedule is as it was."""
    func = over(body)
    schedule = Schedule(func)
    with pytest.raises(IllegalTransform) as caught:
        schedule.apply(step)
    assert caught.value.status is Status.REFUTED
    kind = "parallel" if isinstance(step, Parallel) else "vectorized"
    text = str(caught.value)
    assert f"no two iterations of the {kind} loop i touch one cell" in text
    found = re.search(words, text)
    assert found is not None and meet(int(found[1]), int(found[2])), text
    assert schedule.func == func and not schedule.steps


@pytest.mark.parametrize("body", [race[0] for race in RACES])
def test_a_mark_for_the_compiler_is_never_a_race(body: str) -> None:
    """An unrolled loop runs one iteration after the other, whatever they touch."""
    assert Schedule(over(body)).unroll("root", "i").status is Status.PROVED


def test_parameters_that_may_overlap_are_not_taken_for_apart() -> None:
    """Without the promise that parameters do not overlap, a parallel copy is not proved."""
    with pytest.raises(IllegalTransform, match="parameters may overlap"):
        Schedule(over("B[i] = A[i]", attribute="")).parallel("root", "i")


def test_scattered_stores_may_meet() -> None:
    """Where data says which cell is written, two iterations may write one."""
    with pytest.raises(IllegalTransform, match="touch one cell") as caught:
        Schedule(over("if 0 <= P[i] and P[i] < 32:\n            B[P[i]] = 1")).parallel("root", "i")
    assert caught.value.status in (Status.REFUTED, Status.UNKNOWN)


def test_memory_of_one_iteration_is_not_shared() -> None:
    """What is allocated inside the loop belongs to one iteration; outside of it, all share it."""
    inside = """def main(A: T.Buffer((8, 4), "int32"), B: T.Buffer((8, 4), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        C = T.alloc_buffer((4,), "int32")
        for j in range(4):
            C[j] = A[i, j]
        for j in range(4):
            B[i, j] = C[3 - j]
"""
    assert Schedule(program(inside)).parallel("root", "i").status is Status.PROVED
    lines = inside.splitlines(keepends=True)
    outside = "".join([*lines[:2], lines[3].replace("        C", "    C"), lines[2], *lines[4:]])
    with pytest.raises(IllegalTransform) as caught:
        Schedule(program(outside)).parallel("root", "i")
    assert caught.value.status is Status.REFUTED


def test_a_reduction_is_a_race_in_its_own_loop_only() -> None:
    """Results may be computed at once, one result's updates may not."""
    func = apart(running_sum())
    assert Schedule(func).parallel("sum", "i").status is Status.PROVED
    with pytest.raises(
        IllegalTransform, match=r"B\[vi\].* at i = \d+, k = \d and .* at i = \d+, k = \d touch one cell"
    ):
        Schedule(func).parallel("sum", "k")


@pytest.mark.parametrize("extent", ["n", "0"])
def test_lanes_are_counted(extent: str) -> None:
    """A loop without a constant extent, or without iterations, has no number of lanes."""
    func = program(f"""def main(A: T.Buffer(("n",), "int32")):
    n = T.int32()
    for i in range({extent}):
        A[i] = 1
""")
    with pytest.raises(LayoutproofError, match="no constant number of iterations") as caught:
        Vectorize("root", "i").propose(func)
    assert caught.value.diagnostics[0].help == "split it first, by the number of lanes"


def test_vectors_of_vectors_are_refused() -> None:
    """One loop of a nest is vectorized, not two."""
    schedule = Schedule(
        program("""def main(A: T.Buffer((4, 6), "int32")):
    for i, j in T.grid(4, 6):
        A[i, j] = 1
""")
    )
    schedule.vectorize("root", "j")
    with pytest.raises(IllegalTransform, match="loops i and j would both be vectorized"):
        schedule.vectorize("root", "i")
    assert schedule.vectorize("root", "j").status is Status.PROVED


@pytest.mark.parametrize("name", ["parallel", "vectorize", "unroll"])
def test_thread_loops_are_left_alone(name: str) -> None:
    """A loop bound to a hardware axis keeps its kind."""
    func = program("""def main(A: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        A[i] = T.float32(0.0)
""")
    with pytest.raises(IllegalTransform, match=r"bound to threadIdx\.x"):
        getattr(Schedule(func), name)("root", "i")


@pytest.mark.parametrize(
    "step", [Parallel("sum", "i"), Vectorize("sum", 0), Unroll("sum", "k"), Unroll("sum", 1, True)]
)
def test_traces_read_back(step: Parallel | Vectorize | Unroll) -> None:
    """The options go through plain data."""
    assert type(step).from_arguments(step.arguments()) == step


@pytest.mark.parametrize("seed", range(8))
def test_random_nests_compute_the_same(seed: int) -> None:
    """Any loop of a random sum made parallel is either proved and computes the same, or refused because its iterations
    meet.
    """
    rng = Random(f"kinds {seed}")
    func = apart(random_nest(rng))
    loop = rng.randrange(len(loops_of_block(func, "sum")))
    schedule = Schedule(func)
    step: Parallel | Vectorize = rng.choice((Parallel, Vectorize))("sum", loop)
    try:
        assert schedule.apply(step).status is Status.PROVED
    except IllegalTransform as problem:
        assert problem.status is Status.REFUTED and "touch one cell" in str(problem)
    assert_same_sums(func, schedule.func)
    assert sum(n.kind is not ForKind.SERIAL for n in walk(schedule.func.body) if isinstance(n, For)) == len(
        schedule.steps
    )
