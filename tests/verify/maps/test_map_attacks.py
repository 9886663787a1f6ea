"""Maps made to mislead the verifier: hidden traps, huge numbers, clashing names, deep nests, side conditions that
cannot hold.
"""

import time
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.judging import judge
from tests.oracle import maps as oracle
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.verify.maps.check_map import check_map

LARGEST = 2**31 - 1


def report(text: str, shape: Any, where: str | None = None) -> dict[str, Any]:
    start = time.perf_counter()
    result = check_map(text, shape, where).to_dict()
    assert time.perf_counter() - start < 10
    return result


TRAPS = [
    ("lambda i: [i // 0]", "4"),
    ("lambda i: [0 * (4 // i) + i]", "4"),
    ("lambda i: [4 // (i - 2) - 4 // (i - 2) + i]", "4"),
    ("lambda i: [select(4 // i == 1, i, i)]", "4"),
    ("lambda i: [select(i > 0, 4 // i, 0)]", "4"),
    ("lambda i, j: [select(i >= 0, i, j // 0), j]", "4, 4"),
    ("lambda i: [i >> 63]", "4"),
    ("lambda i, j: [i << (j - 1), j]", "4, 4"),
    ("lambda i: [i % (n - 3), i]", "n"),
    ("lambda i: [i // n, i % n]", "n + 5"),
    ("lambda i, j: [j // n, j, 6 // (i - n + 2)]", "n, m"),
    ("lambda i: [select(4 // (n - 3) == 1, i, i)]", "n"),
]


@pytest.mark.parametrize(("text", "shape"), TRAPS)
def test_a_division_by_zero_is_refused(text: str, shape: str) -> None:
    """A map that divides by zero or shifts too far at some logical index is refused, even where the value would not
    matter.
    """
    with pytest.raises(LayoutproofError):
        check_map(text, shape)


def test_untaken_sides_do_not_trap() -> None:
    """`if_then_else`, `and` and `or` do not evaluate what does not matter."""
    found = report("lambda i, j: [if_then_else(j > 0, i // j, 0), i, if_then_else(j == 0 or 4 // j > 9, j, j)]", (4, 4))
    assert found["injective"]["status"] == "proved"


BELOW_ZERO = [
    ("lambda i: [-i]", "4", None),
    ("lambda i, j: [i*j - 3]", "4, 4", None),
    ("lambda i: [(i - 2) | 4]", "4", None),
    ("lambda i, j: [i*m - j, j]", "n, m", None),
    ("lambda i: [29 - i]", "n", "n >= 5"),
    ("lambda i: [n - 2 - i]", "n", None),
    ("lambda i: [i % -3]", "n", None),
    ("lambda i, j: [i % n, 15 - j]", "n, m", None),
]


@pytest.mark.parametrize(("text", "shape", "where"), BELOW_ZERO)
def test_images_below_zero_are_refused(text: str, shape: str, where: str | None) -> None:
    """An image below zero is refused with the index that goes there."""
    with pytest.raises(LayoutproofError, match="at the logical index"):
        check_map(text, shape, where)


FALSE_CLAIMS = [
    ("lambda i: [i // 4]", "n", None),
    ("lambda i: [i % 4]", "n", "n <= 5"),
    ("lambda i: [i % 4]", "n", "n <= 4 or n == 7"),
    ("lambda i: [i % 4]", "n", "n*n <= 25"),
    ("lambda i, j: [i*8 + j]", "n, m", "m <= 9"),
    ("lambda i, j: [i*n + j]", "n, m", None),
    ("lambda i, j: [i % m, j]", "n, m", "n <= m + 1"),
    ("lambda i: [(3*i) % n]", "n", None),
    ("lambda i, j: [i*m + j]", "n, m + 1", None),
    ("lambda i: [min(i, n - 2) + 2]", "n", "n >= 2"),
    ("lambda i, j: [i ^ j]", "n, m", None),
    ("lambda i, j: [(i + j) % n]", "n, 2", None),
    ("lambda i: [i % 1000003, i % 1000]", str(LARGEST), None),
    ("lambda i: [i % 3, i % 5]", "1000000000", None),
    ("lambda i: [i // 2 * 2]", str(LARGEST), None),
    ("lambda i, j: [i * 2147483646 + j, 0]", f"{LARGEST}, {LARGEST}", None),
]


@pytest.mark.parametrize(("text", "shape", "where"), FALSE_CLAIMS)
def test_false_claims_are_not_proved(text: str, shape: str, where: str | None) -> None:
    """Maps that are nearly injective are refuted with a collision that Python confirms."""
    verdict = report(text, shape, where)["injective"]
    assert verdict["status"] == "refuted"
    example = verdict["counterexample"]
    points = [np.array([a, b]) for a, b in zip(example["first"], example["second"], strict=True)]
    rows = oracle.images(text, points, example.get("symbols", {})).tolist()
    assert example["first"] != example["second"] and rows[0] == rows[1] == example["image"]


TRUE_CLAIMS = [
    ("lambda i: [i % 4]", "n", "n <= 4"),
    ("lambda i: [i % 4]", "n", "not n > 4"),
    ("lambda i, j: [i*n + j]", "n, m", "m <= n"),
    ("lambda i, j, k: [(i*m + j)*l + k]", "n, m, l", None),
    ("lambda n, h, w, c: [n, c//4, h, w, c%4]", "n, 64, 64, c", "n >= 1 and c >= 1"),
    ("lambda o, i: [o//16, i//16, i%16//4, o%16, i%4]", "n, m", None),
    ("lambda i, j: [i//4, j, (i%4) ^ (j%4)]", "n, m", None),
    ("lambda m, n: [m*4 + n]", "n, m", "m <= 4"),
    ("lambda p1, p0: [p0//2, p1, p0%2]", "3, 5", None),
    ("lambda n_1, n: [n, n_1]", "n, n_1", None),
    ("lambda i: [(48271*i) % 2147483647]", str(LARGEST), None),
    ("lambda i, j: [i * 2147483647 + j]", f"{LARGEST}, {LARGEST}", None),
    ("lambda i: [i ^ (i >> 1)]", str(2**30), None),
    ("lambda i, j: [i, j ^ i]", "131072, 56", None),
    ("lambda i: [i % 1000003, i % 1000033]", str(LARGEST), None),
    ("lambda i: [((i ^ 3) << 61) >> 61]", "9", None),
    ("lambda i: [i*i*i*i*i*i*i*i*i*i*i*i*i*i % 7, i]", "1000", None),
    ("lambda i: [1 << i]", "40", None),
    ("lambda i, j: [i, 10 - j]", "n, m", "n == 0 or m <= 5"),
    ("lambda i, j: [i, j % 4]", "n, m", "n == 0 or m <= 4"),
]


@pytest.mark.parametrize(("text", "shape", "where"), TRUE_CLAIMS)
def test_true_claims_are_proved(text: str, shape: str, where: str | None) -> None:
    """Injective maps with huge numbers, clashing names or products of symbols are proved, and the inverse is right
    where it is given.
    """
    found = report(text, shape, where)
    assert found["injective"]["status"] == "proved"
    rng = Random(text)
    symbols = dict.fromkeys(("l", "m", "n", "n_1", "c"), 4)
    extents = [4 if not e.strip().isdecimal() else int(e) for e in shape.split(",")]
    forward, back = (eval(t, {"select": None, **symbols}) for t in (text, found["inverse"] or "lambda *p: None"))
    for _ in range(50 if found["inverse"] is not None else 0):
        index = [rng.randrange(extent) for extent in extents]
        assert back(*forward(*index)) == index


@pytest.mark.parametrize(
    "where", ["n >= 1 and n < 0", "n == 2 and n == 3", "n % 4 == 1 and n % 2 == 0", "2*n == 5", "n*n == 2", "n < n"]
)
def test_conditions_that_cannot_hold_are_vacuous(where: str) -> None:
    """Nothing is proved of a map whose side condition has no instance."""
    assert report("lambda i: [i // 4]", "n", where)["injective"]["status"] == "vacuous"


def nested(step: str, depth: int) -> str:
    term = "i"
    for _ in range(depth):
        term = f"({step.format(term)})"
    return term


DEEP = [
    ("({} + 1) // 2", 50),
    ("{} * 3 // 2 % 97", 40),
    ("max(min({}, 50), 3)", 40),
    ("{0} ^ 5", 50),
    ("{0} ^ ({0} >> 1)", 10),
    ("select({0} % 3 == 0, {0} + 1, i)", 8),
]


@one_in(52)
@pytest.mark.parametrize(("step", "depth"), DEEP)
@pytest.mark.parametrize("beside", ["", ", i", ", i // 7"])
def test_deep_nests_are_decided(step: str, depth: int, beside: str) -> None:
    """Deeply nested arithmetic is decided rightly in bounded time, with texts that Python can run."""
    text = f"lambda i: [{nested(step, depth)}{beside}]"
    assert judge(report(text, (97,)), oracle.truth(text, (97,))) == []


def test_many_axes() -> None:
    """Forty physical axes of twenty logical ones."""
    names = "abcdefghijklmnopqrst"
    found = report(f"lambda {', '.join(names)}: [{', '.join(f'{c}//4, {c}%4' for c in names)}]", (7,) * 20)
    assert found["injective"]["status"] == "proved" and found["padding"]["cells"] == 8**20 - 7**20


BAD_QUESTIONS: list[tuple[Any, Any, Any]] = [
    ("lambda i: [i]", (0,), None),
    ("lambda i: [i]", (-1,), None),
    ("lambda i: [i]", (2**40,), None),
    ("lambda i: [i]", (2**70,), None),
    ("lambda i: [i << 62]", (16,), None),
    ("lambda i: [i * 2147483647 * 2147483647]", (9,), None),
    ("lambda i, j, k, l: [i, k, k, l, j, 0]", (1025, 2097152, 262145, 16), None),
    ("lambda i: [i]", (True,), None),
    ("lambda i: [i]", (2.5,), None),
    ("lambda i: [i]", (4, 4), None),
    ("lambda i, j: [i]", (4,), None),
    ("lambda i: [i]", "p0", None),
    ("lambda i: [i + q]", "n", None),
    ("lambda i: [i]", "n", "q >= 1"),
    ("lambda i: [i]", "n", "i >= 1"),
    ("lambda i: [i]", "n", "n + 1"),
    ("lambda i: [i / 2]", "n", None),
    ("lambda i: [i * 0.5]", "n", None),
    ("lambda i, i: [i]", "n, n", None),
    ("lambda i: [AXIS_SEPARATOR, i]", "n", None),
]


@pytest.mark.parametrize(("text", "shape", "where"), BAD_QUESTIONS)
def test_bad_questions_are_refused(text: str, shape: Any, where: str | None) -> None:
    """What is no question, or has an answer past 64 bits, gets a diagnostic, never another exception."""
    with pytest.raises(LayoutproofError):
        check_map(text, shape, where)


SIDES = [("1 == 2", "vacuous"), ("4 % 3 == 2", "vacuous"), ("False", "vacuous"), ("1 == 1", "proved")]


@pytest.mark.parametrize(("where", "status"), SIDES)
def test_a_side_condition_without_symbols(where: str, status: str) -> None:
    """A side condition that is false makes every claim vacuous, with and without names in the shape."""
    assert check_map("lambda i: [i]", (4,), where).injective.status.value == status
    assert check_map("lambda i: [i//2]", (4,), where).injective.status.value == (
        "vacuous" if status == "vacuous" else "refuted"
    )
