"""Tables of indices and copies that are looked through: against the interpreter, and where that would be wrong."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.shares import one_in

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.interp.run import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.visit import walk
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.verify.flow.forwarded import forwarded
from layoutproof.verify.verdict.verdict import Status

HEAD = """@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.alloc_buffer((16,), "int32")
"""


def program(*lines: str, head: str = HEAD) -> PrimFunc:
    """The lines as the body."""
    return loads(head + "".join(f"    {line}\n" for line in lines), "main.py")


def looks(func: PrimFunc) -> bool:
    """Whether the temporary is loaded."""
    return any(isinstance(node, BufferLoad) and node.buffer.name == "C" for node in walk(func.body))


FILL, COPY = ("for i in range(16):", "    C[i] = (i * 3) // 2 % 16"), ("for i in range(16):", "    C[i] = A[15 - i]")
USE = ("for j in range(16):", "    B[j] = A[C[j]]")
SUM = ("for j in range(16):", "    B[j] = C[j] + C[15 - j]")
CHANGE = ("for k in range(1):", "    A[3] = 7")
CALL = ("for k in range(1):", '    T.evaluate(T.call_extern("int32", "f", B.data))')
KNOWN = ("for k in range(1):", '    T.evaluate(T.call_extern("int32", "f", C.data))')

TABLE = (
    "for i in range(16):",
    "    C[i] = T.if_then_else(i < 3, 5, T.if_then_else(i == 3, i, T.Select(i < 9, 9, 2 * i - 16)))",
)
VIEWED = (
    "A_1 = A.view(4, 4)",
    "B_1 = B.view(4, 4)",
    *TABLE,
    "for j in range(16):",
    "    B_1[j // 4, j % 4] = A_1[j % 4, C[j] // 4]",
)

LOOKED_THROUGH = [
    (*TABLE, *USE),
    VIEWED,
    (*FILL, *USE),
    (*COPY, *SUM),
    (*FILL, *USE, *CALL),
    (*CALL, *COPY, *SUM),
    (*COPY, *SUM, *CHANGE),
]


@pytest.mark.parametrize("lines", LOOKED_THROUGH)
def test_looked_through(lines: tuple[str, ...]) -> None:
    """Every load is gone; the results are those of a run, calls aside."""
    func = program(*lines)
    found = forwarded(func, chooses=True)
    assert not looks(found)
    if not any("call" in line for line in lines):
        data = np.random.default_rng(0).integers(-9, 9, 16).astype(np.int32)
        before, after = (run(each, {"A": data, "B": np.zeros(16, np.int32)})["B"].tolist() for each in (func, found))
        assert before == after


KEPT = {
    "the copied cell changes": (*COPY, *CHANGE, *SUM),
    "it changes where it is used": (*COPY, "for j in range(16):", "    B[j] = C[j] + A[j]", "    A[j] = 0"),
    "a call between": (*COPY, *CALL, *SUM),
    "a call may know the memory": (*KNOWN, *FILL, *USE),
    "not every cell": ("for i in range(15):", "    C[i] = i", *USE),
    "not in one loop": ("for i in range(16):", "    C[(i + 1) % 16] = i", *USE),
    "cells twice": ("for i, k in T.grid(16, 2):", "    C[i] = i", *USE),
    "under a condition": ("for i in range(16):", "    if A[i] > 0:", "        C[i] = i", *USE),
    "stored elsewhere too": (*FILL, "for i in range(16):", "    C[i] = i", *USE),
    "loaded before": (*USE, *FILL, *USE),
    "in a loop": ("for t in range(2):", "    for i in range(16):", "        C[i] = i", "    B[t] = C[t]"),
    "a value that may wrap": ("for i in range(16):", "    C[i] = i * 1000000000", *USE),
    "a value of other data": ("for i in range(16):", "    C[i] = A[i] + 1", *USE),
    "a view of it": ("C_1 = T.decl_buffer((16,), 'int32', data=C.data)", *FILL, *USE),
    "a choice that may wrap": ("for i in range(16):", "    C[i] = T.if_then_else(i < 3, i * 1000000000, 0)", *USE),
    "a choice by data": ("for i in range(16):", "    C[i] = T.if_then_else(A[i] < 3, 1, 0)", *USE),
    "a choice with a trap": ("for i in range(16):", "    C[i] = T.if_then_else(i < 3, 1, 7 // (i - 3))", *USE),
    "an undefined value": ("for i in range(16):", '    C[i] = T.undef(dtype="int32")', *USE),
}


@pytest.mark.parametrize("lines", KEPT.values(), ids=KEPT.keys())
def test_left_as_it_is(lines: tuple[str, ...]) -> None:
    """Where a load may find something else, nothing is replaced."""
    func = program(*lines)
    assert forwarded(func, chooses=False) is func and forwarded(func, chooses=True) is func


def test_parameters_that_may_overlap() -> None:
    """A copy of one parameter does not survive stores to another that may be the same memory."""
    func = program(*COPY, *SUM, head=HEAD.replace('    T.func_attr({"tirx.noalias": True})\n', ""))
    assert forwarded(func, chooses=False) is func


def test_a_choice_stays_one() -> None:
    """A float that is computed once and loaded twice is one choice of its zero's sign in the old program."""
    head = HEAD.replace("int32", "float32")
    lines = (
        "for i in range(16):",
        "    C[i] = T.Cast('float32', i) * T.float32(0)",
        "for j in range(16):",
        "    B[j] = C[j] + C[j]",
    )
    func = program(*lines, head=head)
    assert forwarded(func, chooses=True) is func
    assert forwarded(func, chooses=False) is not func


def answer(*lines: str) -> Status:
    """Of a program that gathers through a table, against one that computes the indices."""
    direct = program("for j in range(16):", "    B[j] = A[(j * 3) // 2 % 16]")
    return compare(direct, program(*lines)).status


def test_no_fault_is_overlooked() -> None:
    """A table that is read where it has no cell, or before it is filled, is a fault all the same."""
    assert answer(*FILL, *USE) is Status.PROVED
    assert (
        answer(*FILL, "for j in range(16):", "    B[j] = A[C[j + 1] - C[j + 1] + (j * 3) // 2 % 16]") is Status.REFUTED
    )
    assert answer(*USE, *FILL) is Status.REFUTED


def test_a_size_from_a_table() -> None:
    """An element of a table of sizes is the number that stands at its place: an index modulo it is in bounds."""
    table = ("for i in range(16):", "    C[i] = T.if_then_else(i == 0, 16, T.if_then_else(i == 1, 0, 0))")
    found = forwarded(program(*table, "for j in range(16):", "    B[j] = A[j % C[0]]"), chooses=False)
    assert not looks(found) and "if_then_else" not in print_func(found).split("for j")[1]
    direct = program("for j in range(16):", "    B[j] = A[j]")
    assert compare(direct, program(*table, "for j in range(16):", "    B[j] = A[j % C[0]]")).status is Status.PROVED
    assert compare(direct, program(*table, "for j in range(16):", "    B[j] = A[j % C[1]]")).status is not Status.PROVED


@one_in(9)
@pytest.mark.parametrize("seed", range(3))
def test_attack(seed: int) -> None:
    """Tables filled and read at random: proved where every element is the same, never where one is not."""
    random = Random(seed)
    for _ in range(10):
        a, b, c = random.randrange(1, 4), random.randrange(4), random.choice([1, 2])
        shift, turned, change = random.choice([0, 0, 1]), random.random() < 0.4, random.random() < 0.4
        fill = f"C[15 - i] = ((15 - i) * {a} + {b}) // {c} % 16" if turned else f"C[i] = (i * {a} + {b}) // {c} % 16"
        after = program(
            "for i in range(16):",
            f"    {fill}",
            *(CHANGE if change else ()),
            "for j in range(16):",
            f"    B[j] = A[(C[j] + {shift}) % 16]",
        )
        before = program(
            *(CHANGE if change else ()), "for j in range(16):", f"    B[j] = A[((j * {a} + {b}) // {c} % 16)]"
        )
        found = compare(before, after).status
        assert (found is Status.REFUTED) is (shift == 1)
        assert found is Status.PROVED or shift == 1 or turned
