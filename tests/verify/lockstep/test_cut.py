"""Loops cut in several, which go with the one that they are parts of; also around calls whose body is not known."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from tests.shares import one_in

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.verify.verdict.verdict import Status

HEAD = """@T.prim_func(s_tir=True)
def main(A: T.Buffer((64,), "int32"), n: T.int32):
    T.func_attr({"tirx.noalias": True})
"""


def program(*loops: tuple[str, str, str], kind: str = "T.serial", call: bool = True) -> PrimFunc:
    """Loops from a start to an end, over a call, or a sum in which each of them counts."""
    lines: list[str] = []
    for number, (start, end, index) in enumerate(loops):
        lines.append(f"    for v{number} in {kind}({start}, {end}):")
        value = index.format(f"v{number}")
        lines.append(
            f'        T.evaluate(T.call_extern("int32", "f", A.data, {value}))'
            if call
            else f"        A[0] = A[0] * 3 + {value}"
        )
    return loads(HEAD + "\n".join(lines) + "\n", "loops.py")


WHOLE = ("0", "16", "{}")


@pytest.mark.parametrize(
    ("parts", "proved"),
    [
        ([("0", "12", "{}"), ("12", "16", "{}")], True),
        ([("0", "8", "{}"), ("8", "16", "{}")], True),
        ([("0", "5", "{}"), ("5", "6", "{}"), ("6", "16", "{}")], True),
        ([("0", "12", "{}"), ("12", "15", "{}")], False),
        ([("0", "12", "{}"), ("13", "16", "{}")], False),
        ([("0", "12", "{}"), ("11", "16", "{}")], False),
        ([("0", "12", "{}"), ("12", "16", "{} - 1")], False),
        ([("4", "16", "{}"), ("0", "4", "{}")], False),
        ([("0", "16", "{}"), ("16", "17", "{}")], False),
    ],
)
def test_parts_of_a_loop(parts: list[tuple[str, str, str]], proved: bool) -> None:
    """In order and without a gap they are the loop, in either program; calls are never said to differ."""
    for old, new in ((program(WHOLE), program(*parts)), (program(*parts), program(WHOLE))):
        assert compare(old, new).status is (Status.PROVED if proved else Status.UNKNOWN)


@pytest.mark.parametrize(
    ("first", "second", "where", "proved"),
    [
        (("0", "n", "{}"), ("n", "16", "{}"), "n >= 0 and n <= 16", True),
        (("0", "n", "{}"), ("n", "16", "{}"), "n <= 16", False),  # with n = -1 the second starts at -1
        (("0", "n", "{}"), ("n", "16", "{}"), "n >= 0", False),  # with n = 17 the first goes too far
    ],
)
def test_a_cut_at_a_symbol(first: tuple[str, str, str], second: tuple[str, str, str], where: str, proved: bool) -> None:
    """A symbol has to be known to lie within the loop."""
    answer = compare(program(WHOLE), program(first, second), where=where)
    assert (answer.status is Status.PROVED) is proved


@pytest.mark.parametrize(("kind", "proved"), [("T.serial", True), ("T.parallel", False)])
def test_calls_of_one_parallel_loop_may_meet(kind: str, proved: bool) -> None:
    """Two parallel loops with calls are not one."""
    parts = program(("0", "12", "{}"), ("12", "16", "{}"), kind=kind)
    assert (compare(parts, program(WHOLE, kind=kind)).status is Status.PROVED) is proved


def test_names_of_outer_loops_are_not_mixed_up() -> None:
    """A cut inside a loop, at a bound over its variable, which each program calls something else."""
    text = """@T.prim_func(s_tir=True)
def main(A: T.Buffer((64,), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    for {outer} in range(8):
        for {inner} in range(16):
            T.evaluate(T.call_extern("int32", "f", A.data, {outer}, {inner}))
"""
    cut = """@T.prim_func(s_tir=True)
def main(A: T.Buffer((64,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for j in range(8):
        for k in range(j):
            T.evaluate(T.call_extern("int32", "f", A.data, j, k))
        for i in T.serial(j, {end}):
            T.evaluate(T.call_extern("int32", "f", A.data, j, {last}))
"""
    new = cut.replace("{end}", "16").replace("{last}", "i")
    wrong = cut.replace("{end}", "16").replace("{last}", "i + j")
    for names in (("i", "j"), ("j", "i"), ("k", "j"), ("j", "k")):
        old = loads(text.format(outer=names[0], inner=names[1]), "old.py")
        assert compare(old, loads(new, "new.py")).status is Status.PROVED
        assert compare(old, loads(wrong, "new.py")).status is Status.UNKNOWN


@one_in(14)
@pytest.mark.parametrize("seed", range(4))
def test_attack(seed: int) -> None:
    """Random cuts of a loop: proved where they are right, refuted where a run differs."""
    random = Random(seed)
    for _ in range(12):
        ends = [0, *sorted(random.sample(range(1, 16), random.randrange(1, 4))), 16]
        parts = [[a, b] for a, b in pairwise(ends)]
        right = random.random() < 0.5
        if not right:
            part = random.choice(parts)
            part[random.randrange(2)] += random.choice([-1, 1])
        loops = [(str(max(a, 0)), str(max(b, a, 0)), "{}") for a, b in parts]
        visited = [v for a, b, _ in loops for v in range(int(a), int(b))]
        same = visited == list(range(16))
        old, new = program(WHOLE, call=False), program(*loops, call=False)
        answer = compare(old, new).status
        assert answer is Status.PROVED if same else answer is not Status.PROVED, (loops, answer)
