"""Equality of index maps: proved in several ways, refuted with an index at which they differ."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Var
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.verify.maps.check_map import read_question, read_shape
from layoutproof.verify.maps.equal_maps import prove_equal_maps
from layoutproof.verify.maps.injective import prove_injective
from layoutproof.verify.verdict.verdict import Status, Verdict


def prove_same(first: str, second: str, shape: tuple[int | str, ...]) -> Verdict:
    """The verdict on two maps that are given as texts."""
    maps = (read_question(text, shape) for text in (first, second))
    (a, extents, _), (b, _, _) = maps
    return prove_equal_maps(a, b, extents)


@pytest.mark.parametrize(
    ("first", "second", "shape", "engine"),
    [
        ("lambda i: [i//4, i%4]", "lambda j: [j >> 2, j & 3]", (14,), "symbolic"),
        ("lambda i: [i//8//4, i%32]", "lambda i: [i//32, i%32]", ("n",), "symbolic"),
        ("lambda i: [i ^ 5]", "lambda j: [j + 5 - 2*(j & 5)]", ("n",), "isl"),
        ("lambda i, j: [(i*m + j)//m]", "lambda i, j: [i]", ("n", "m"), "symbolic"),
        ("lambda i, j: [max(i, j) + min(i, j)]", "lambda i, j: [i + j]", ("n", "m"), "isl"),
        ("lambda i, j: [max(i, j) * min(i, j)]", "lambda i, j: [i*j]", ("n", "m"), "z3"),
        ("lambda i, j: [max(i, j) * min(i, j)]", "lambda i, j: [i*j]", (9, 7), "enumeration"),
    ],
)
def test_equal_maps_are_proved_equal(first: str, second: str, shape: tuple[int | str, ...], engine: str) -> None:
    """Each engine in its turn; names of inputs do not matter."""
    verdict = prove_same(first, second, shape)
    assert verdict.status is Status.PROVED
    assert verdict.engine == engine


def test_different_maps_are_refuted_at_an_index() -> None:
    """The counterexample names the index, both images and, for symbolic shapes, the symbols."""
    verdict = prove_same("lambda i: [i//4, i%4]", "lambda i: [i//4, i%8]", (14,))
    assert verdict.counterexample == {"index": [4], "first": [1, 0], "second": [1, 4]}
    assert prove_same("lambda i: [i//4, i%4]", "lambda i: [i//4, i%8]", (4,)).status is Status.PROVED
    verdict = prove_same("lambda i: [i % n]", "lambda i: [i % 4]", ("n",))
    assert verdict.status is Status.REFUTED and verdict.counterexample is not None
    n, (i,) = verdict.counterexample["symbols"]["n"], verdict.counterexample["index"]
    assert i % n != i % 4 and 0 <= i < n


def test_bad_questions_are_refused() -> None:
    """Maps of different ranks, and maps that divide by zero, are errors."""
    with pytest.raises(LayoutproofError, match="1 and 2 axes"):
        prove_same("lambda i: [i]", "lambda i: [i, i]", (4,))
    with pytest.raises(LayoutproofError, match="divides by zero"):
        prove_same("lambda i: [8 // (i - 2)]", "lambda i: [8 // (i - 2)]", (4,))


def test_maps_over_bits_are_compared_by_their_bases() -> None:
    """Random pairs of maps over bits, equal ones written in two ways among them, against every index."""
    draw = Random("equal over bits in every run")
    engines = set()
    for _ in range(150):
        first = _over_bits(draw)
        second = first.replace("+", "^") if draw.random() < 0.5 else _over_bits(draw)
        a, b = (parse_index_map(f"lambda i, j: [{text}]") for text in (first, second))
        verdict = prove_equal_maps(a, b, (8, 4))
        points = list(product(range(8), range(4)))
        same = all(a.evaluate(point) == b.evaluate(point) for point in points)
        assert verdict.status is (Status.PROVED if same else Status.REFUTED), (first, second)
        if verdict.counterexample is not None:
            index = verdict.counterexample["index"]
            assert a.evaluate(index) != b.evaluate(index)
        engines.add(verdict.engine)
    assert "GF(2)" in engines


def _over_bits(draw: Random) -> str:
    """A sum or XOR of digits of the indices, each at a place of its own or over another one."""
    terms = [f"({draw.choice('ij')}//{1 << draw.randint(0, 2)} % 2)*{1 << draw.randint(0, 4)}" for _ in range(3)]
    return draw.choice([" + ", " ^ "]).join(terms) + draw.choice(["", "", " ^ 1"])


@pytest.mark.parametrize(
    ("text", "one_to_one"),
    [
        ("lambda i: [i//4, i%4]", True),
        ("lambda i: [i % (n + 8)]", True),
        ("lambda i: [select(n < 0, i//2, i)]", False),
        ("lambda i: [i + n]", False),
    ],
)
def test_a_name_may_be_negative(text: str, one_to_one: bool) -> None:
    """Of a scalar that is no size both signs are asked for: maps may then be one-to-one, or equal, no longer."""
    index_map, extents, _ = read_question(text, ("n + 8",))
    assert prove_injective(index_map, extents).status is Status.PROVED
    found = prove_injective(index_map, extents, negative={"n"})
    assert (found.status is Status.PROVED) == one_to_one
    first, second = (parse_index_map(f"lambda i: [{each}]", symbols=[Var("n")]) for each in ("max(i, n)", "i + n"))
    same = [prove_equal_maps(first, second, read_shape("1"), negative=names) for names in ((), ("n",))]
    assert [each.status is Status.PROVED for each in same] == [True, False]
