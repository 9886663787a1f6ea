"""Operations on data that may have no result: proved where the old program evaluates them too, and only there."""

from __future__ import annotations

from random import Random
from textwrap import indent

import numpy as np
import pytest
from tests.shares import one_in

from layoutproof.ir.interp import Fault, run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.verify.verdict.verdict import Status

HEAD = """@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), F: T.Buffer((8,), "float32")):
    T.func_attr({"tir.noalias": True})
"""


def program(body: str) -> PrimFunc:
    """A function with this body."""
    return loads(HEAD + indent(body, "    "))


RIGHT = {
    "a split": (
        "for i in range(8):\n    B[i] = 7 // A[i]",
        "for i, j in T.grid(2, 4):\n    B[i*4 + j] = 7 // A[i*4 + j]",
    ),
    "reversed": ("for i in range(8):\n    B[i] = 7 // A[i]", "for i in range(8):\n    B[7 - i] = 7 // A[7 - i]"),
    "lanes": (
        'for i in T.vectorized(8):\n    B[i] = T.Cast("int32", F[i])',
        'B[T.Ramp(0, 1, 8)] = T.Cast("int32x8", F[T.Ramp(0, 1, 8)])',
    ),
    "through a temporary": (
        'for i in range(8):\n    B[i] = T.Cast("int32", F[i] * T.float32(2))',
        "S = T.alloc_buffer((8,), 'float32')\nfor i in range(8):\n    S[i] = F[i] * T.float32(2)\n"
        'for i in range(8):\n    B[i] = T.Cast("int32", S[i])',
    ),
    "a condition that is gone": (
        "for i in range(8):\n    B[i] = T.if_then_else(i < 8, A[i] // A[7 - i], 0)",
        "for i in range(8):\n    B[i] = A[i] // A[7 - i]",
    ),
    "under one condition": (
        "for i in range(8):\n    B[i] = T.if_then_else(F[i] > T.float32(0), 7 // A[i], 1)",
        "for i, j in T.grid(4, 2):\n    B[i*2 + j] = T.if_then_else(F[i*2 + j] > T.float32(0), 7 // A[i*2 + j], 1)",
    ),
    "a shift": ("for i in range(8):\n    B[i] = 1 << A[i]", "for i in range(8):\n    B[7 - i] = 1 << A[7 - i]"),
}


@one_in(7)
@pytest.mark.parametrize("name", RIGHT)
def test_an_operation_that_was_there_is_no_new_fault(name: str) -> None:
    """The program has no result where it had none."""
    before, after = map(program, RIGHT[name])
    assert compare(before, after).status is Status.PROVED


DIV = "for i in range(8):\n    B[i] = {}"
POSITIVE = "F[i] > T.float32(0)"
WRONG = {
    "evaluated without the condition": (
        DIV.format(f"T.if_then_else({POSITIVE}, 7 // A[i], 1)"),
        DIV.format(f"T.Select({POSITIVE}, 7 // A[i], 1)"),
    ),
    "an operand that makes no difference to the value": (DIV.format("A[i] * 0"), DIV.format("(7 // A[i]) * 0")),
    "another divisor": (DIV.format("(7 // A[i]) * 0"), DIV.format("(7 // A[7 - i]) * 0")),
    "another dividend": (DIV.format("(7 // A[i]) * 0"), DIV.format("(A[7 - i] // A[i]) * 0")),
    "a temporary that nobody reads": (
        DIV.format("A[i]"),
        "S = T.alloc_buffer((8,), 'int32')\nfor i in range(8):\n    S[i] = 7 // A[i]\n    B[i] = A[i]",
    ),
    "a store that is overwritten": (DIV.format("A[i]"), "for i in range(8):\n    B[i] = 7 // A[i]\n    B[i] = A[i]"),
    "more often": (
        "for i in range(4):\n    B[i] = 7 // A[i]",
        "for i in range(8):\n    if i < 4:\n        B[i] = 7 // A[i]\n    else:\n        B[i] = B[i] + 0 * (7 // A[i])",
    ),
    "a condition": (
        DIV.format("A[i]"),
        "for i in range(8):\n    if 7 // A[i] < 9:\n        B[i] = A[i]\n    else:\n        B[i] = A[i]",
    ),
    "a let": (DIV.format("A[i]"), "for i in range(8):\n    x: T.let[T.int32] = 7 // A[i]\n    B[i] = A[i] + x * 0"),
    "a narrower type": (
        'for i in range(8):\n    B[i] = T.Cast("int32", F[i]) * 0',
        'for i in range(8):\n    B[i] = T.Cast("int32", T.Cast("int8", F[i])) * 0',
    ),
    "a side that is never chosen": (DIV.format("A[i]"), DIV.format("T.Select(i < 8, A[i], 7 // A[i])")),
    "a side that is never chosen, in another order": (
        DIV.format("A[i]"),
        "for i in range(8):\n    B[7 - i] = T.Select(i < 8, A[7 - i], 7 // A[7 - i])",
    ),
    "a quotient of loops under a condition on data": (
        "for i in range(8):\n    if A[i] > 0:\n        B[i] = A[i]",
        "for i in range(8):\n    if A[7 - i] > 0:\n        B[7 - i] = A[7 - i] + 0 * (5 // (i - 3))",
    ),
    "a shift by a loop under a condition on data": (
        "for i in range(8):\n    if A[i] > 0:\n        B[i] = A[i]",
        "for i in range(8):\n    if A[i] > 0:\n        B[i] = A[i] + 0 * (5 << (i - 3))",
    ),
    "one side of another condition": (
        DIV.format(f"T.if_then_else({POSITIVE}, 7 // A[i], 7)"),
        DIV.format(f"T.if_then_else({POSITIVE}, 7 // A[i], 7 + 0 * (7 // A[i]))"),
    ),
}


def faults(func: PrimFunc, a: np.ndarray, f: np.ndarray) -> bool:
    """Whether a run has a fault."""
    try:
        run(func, {"A": a, "B": np.ones(8, np.int32), "F": f})
    except Fault:
        return True
    return False


@one_in(7)
@pytest.mark.parametrize("name", WRONG)
def test_an_operation_that_was_not_there_is_not_proved(name: str) -> None:
    """Where the new program evaluates something that the old one did not, or on something else."""
    before, after = map(program, WRONG[name])
    assert compare(before, after).status is not Status.PROVED


def drawn(rng: Random) -> tuple[str, str]:
    """Two programs that store the same, unless one of them has no result."""
    ops = ("7 // A[{i}]", "A[{i}] % A[7 - {i}]", "1 << A[{i}]", 'T.Cast("int32", F[{i}])', "A[{i}]")
    conditions = ("F[{i}] > T.float32(0)", "A[{i}] > 0", "{i} < 5")

    def value(op: str) -> str:
        kind = rng.randrange(7)
        other = rng.choice(ops)
        return (
            op,
            f"T.if_then_else({rng.choice(conditions)}, {op}, {op})",
            f"{op} + 0 * ({other})",
            f"T.Select({rng.choice(conditions)}, {op}, {op})",
            f"{op} + T.if_then_else({rng.choice(conditions)}, 0, 0 * ({other}))",
            f"T.Select({{i}} < 8, {op}, {other})",
            f"{op} + T.if_then_else({rng.choice(conditions)}, 0 * (5 // ({{i}} - 3)), 0)",
        )[kind]

    op = rng.choice(ops)
    first, second = value(op), value(op)
    if rng.random() < 0.5:
        second = first if rng.random() < 0.5 else second.replace("{i}", "({i})")
    loops = (("for i in range(8):", "i"), ("for i, j in T.grid(2, 4):", "(i*4 + j)"), ("for i in range(8):", "(7 - i)"))
    texts = []
    for text, (loop, index) in ((first, loops[0]), (second, rng.choice(loops))):
        texts.append(f"{loop}\n    B[{index}] = {text.replace('{i}', index)}")
    return texts[0], texts[1]


def attack(seed: int) -> Status:
    """Ask about a random pair; whatever is proved has no fault on any input on which the old program has none."""
    rng = Random(seed)
    before, after = map(program, drawn(rng))
    status = compare(before, after).status
    if status is Status.PROVED:
        for _ in range(60):
            a = np.array([rng.choice((0, 0, 1, 2, -1, 40, -(2**31))) for _ in range(8)], np.int32)
            if rng.random() < 0.5:
                a = np.where(np.arange(8) == rng.randrange(8), a, 1).astype(np.int32)
            f = np.array([rng.choice((0.5, 3.0, -2.0, np.nan, np.inf, 3e9)) for _ in range(8)], np.float32)
            if rng.random() < 0.7:
                f = np.where(np.arange(8) == rng.randrange(8), f, 1.5).astype(np.float32)
            assert faults(before, a, f) or not faults(after, a, f), (seed, a, f)
    return status


@one_in(14)
@pytest.mark.parametrize("seed", range(24))
def test_random_operations(seed: int) -> None:
    """Whatever is proved, runs on inputs without a result do not tell apart."""
    attack(seed)
