"""Sums that get constants besides what they sum, which are taken out again where the sum is read."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from tests.shares import one_in

from layoutproof import Status, compare, loads

BEFORE = """
@T.prim_func
def before(A: T.Buffer(({rows}, {own}), "int32"), Y: T.Buffer(({rows},), "int32")):
    for r in range({rows}):
        Y[r] = 0
        for c in range({own}):
            Y[r] = Y[r] + A[r, c]
"""

AFTER = """
@T.prim_func
def after(A: T.Buffer(({rows}, {own}), "int32"), Y: T.Buffer(({rows},), "int32")):
    S = T.alloc_buffer(({rows},), "int32")
    for r in range({rows}):
        S[r] = 0
        for c in range({padded}):
            S[r] = S[r] + T.if_then_else(c < {own}, A[r, c], {each})
    for r in range({rows}):
        Y[r] = S[r] - {taken}
"""

SIZES = {"rows": 3, "own": 5, "padded": 8, "each": 7, "taken": 21}


def asked(after: str = AFTER, **sizes: int) -> Status:
    """The verdict on a padded sum that is corrected."""
    sizes = {**SIZES, **sizes}
    return compare(loads(BEFORE.format(**sizes)), loads(after.format(**sizes))).status


def test_a_corrected_sum_is_the_sum() -> None:
    """What the padding adds is subtracted where the sum is read, also modulo 2^32."""
    assert asked() is Status.PROVED
    assert asked(each=1 << 30, taken=-(1 << 30)) is Status.PROVED


CELL = "S[r] = S[r] + T.if_then_else(c < {own}, A[r, c], {each})"
MASK = "c < {own}, A[r, c], {each}"
AGAIN = "            if c == 6:\n                S[r] = {what}\n"
EARLY = "            Y[r] = S[r] - {taken}\n"

WRONG = {
    "too much is taken": AFTER.replace("- {taken}", "- 22"),
    "nothing is taken": AFTER.replace(" - {taken}", ""),
    "what is added depends on the row": AFTER.replace("{each}", "{each} + r"),
    "what is added depends on the place": AFTER.replace("{each}", "c"),
    "one row has less padding": AFTER.replace("{each}", "T.if_then_else(r == 1 and c == 7, 0, {each})"),
    "a sum that starts elsewhere": AFTER.replace("S[r] = 0", "S[r] = 1"),
    "it is taken twice": AFTER.replace("S[r] - {taken}", "S[r] - {taken} - {taken}"),
    "the sum is begun again": AFTER.replace(f"            {CELL}", f"{AGAIN.format(what='0')}            {CELL}"),
    "it is doubled on the way": AFTER.replace(
        f"            {CELL}", f"{AGAIN.format(what='S[r] * 2')}            {CELL}"
    ),
    "read before it is made": AFTER.replace(f"            {CELL}", f"{EARLY}            {CELL}").replace(
        "    for r in range({rows}):\n        Y[r] = S[r] - {taken}\n", ""
    ),
    "read in another place": AFTER.replace("Y[r] = S[r]", "Y[r] = S[{rows} - 1 - r]"),
    "less is left out": AFTER.replace(MASK, "c < {own} - 1, A[r, c], {each}"),
}


@one_in(7)
@pytest.mark.parametrize("name", WRONG)
def test_wrong_corrections_are_refuted(name: str) -> None:
    """Each differs from the sum on some input."""
    assert asked(WRONG[name]) is Status.REFUTED


@dataclass(frozen=True)
class Padded:
    """A sum over rows with constants at both ends, made in one or two memories, and what is taken from it."""

    before: str
    after: str
    right: bool

    @staticmethod
    def drawn(rng: random.Random) -> Padded:
        """A random one, half of them wrong."""
        rows, own, front, back = rng.randint(1, 3), rng.randint(2, 5), rng.randint(0, 2), rng.randint(1, 3)
        dtype = rng.choice(("int32", "int8", "uint8", "int64"))
        first, last = rng.randint(-3, 9), rng.randint(1, 9)
        if dtype == "uint8":
            first = abs(first)
        total = front * first + back * last
        taken = total + rng.choice((0, 0, 0, 1, -1, last, first - last))
        if dtype in ("int8", "uint8"):
            taken = min(max(taken, 0), 127)
        value = (
            f"T.if_then_else(c < {front}, T.{dtype}({first}), T.if_then_else(c < {front + own}, X, T.{dtype}({last})))"
        )
        where = rng.choice((f"A[r, T.max(T.min(c - {front}, {own - 1}), 0)]", f"A[r, (c - {front}) % {own}]"))
        cell, shape = rng.choice((("r", rows), ("0", 1)))
        end = f"Y[r] = S[{cell}] - T.{dtype}({taken})"
        name = f"A: T.Buffer(({rows}, {own}), '{dtype}'), Y: T.Buffer(({rows},), '{dtype}')"
        before = f"""
@T.prim_func
def before({name}):
    for r in range({rows}):
        Y[r] = T.{dtype}(0)
        for c in range({own}):
            Y[r] = Y[r] + A[r, c]
"""
        after = f"""
@T.prim_func
def after({name}):
    S = T.alloc_buffer(({shape},), "{dtype}")
    for r in range({rows}):
        S[{cell}] = T.{dtype}(0)
        for c in range({front + own + back}):
            S[{cell}] = S[{cell}] + {value.replace("X", where)}
        {end}
"""
        bits = {"int8": 8, "uint8": 8, "int32": 32, "int64": 64}[dtype]
        return Padded(before, after, (total - taken) % (1 << bits) == 0)


def draw_and_ask(seed: int) -> None:
    """Ask about a random padded sum: proved if and only if it is right."""
    drawn = Padded.drawn(random.Random(seed))
    found = compare(loads(drawn.before), loads(drawn.after)).status
    assert found is (Status.PROVED if drawn.right else Status.REFUTED), drawn.after


@one_in(14)
@pytest.mark.parametrize("seed", range(24))
def test_random_corrections(seed: int) -> None:
    """What arithmetic says of each is what is found."""
    draw_and_ask(seed)
