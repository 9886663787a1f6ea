"""Maps on the part of a box where a condition holds, against trying all pairs of indices there."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Var
from layoutproof.ir.notations.map_text import parse_condition, parse_index_map, parse_shape
from layoutproof.verify.maps.restricted import RestrictedReport, is_restricted, judge_restricted
from layoutproof.verify.verdict.verdict import Status


def judged(text: str, shape: str, where: str) -> RestrictedReport:
    condition = parse_condition(where, (), open_ended=True)
    names = [Var(name) for name in ("m", "n", "k")]
    return judge_restricted(parse_index_map(text, symbols=names), parse_shape(shape), condition)


@one_in(7)
def test_random_maps_by_all_pairs() -> None:
    """The verdict is that of looking at every index where the condition holds, by either engine."""
    draw = Random("restricted maps in every run")
    seen = set()
    for _ in range(60):
        a, b, c = draw.randint(1, 6), draw.randint(1, 6), draw.randint(1, 7)
        text = draw.choice([f"i*{a} + j*{b}", f"(i*{a} + j)%{c + 4}", f"i*{a} ^ j*{b}", f"i*i + j*{b}"])
        low = draw.choice([f"i*{a} + j < {draw.randint(1, 30)}", f"j < {c}", f"i % {c} == 0", "i < j", "i + j > 99"])
        found = judged(f"lambda i, j: [{text}]", "6,7", low).injective
        points = [(i, j) for i, j in product(range(6), range(7)) if eval(low, {"i": i, "j": j})]
        images = {eval(text, {"i": i, "j": j}) for i, j in points}
        expected = Status.VACUOUS if not points else Status.PROVED if len(images) == len(points) else Status.REFUTED
        assert found.status is expected, (text, low)
        if found.counterexample is not None:
            first, second = found.counterexample["first"], found.counterexample["second"]
            assert first != second and tuple(first) in points and tuple(second) in points
            assert len({eval(text, dict(zip("ij", p, strict=True))) for p in (first, second)}) == 1
        seen.add((found.status, found.engine))
    assert {status for status, _ in seen} == {Status.PROVED, Status.REFUTED, Status.VACUOUS}
    assert {engine for _, engine in seen} == {"isl", "enumeration"}


@pytest.mark.parametrize(
    ("text", "shape", "where", "status"),
    [
        ("lambda x, y: [x*10 + y]", "13,16", "y < 10", Status.PROVED),
        ("lambda x, y: [x*10 + y]", "13,16", "x*10 + y < 128", Status.REFUTED),
        ("lambda x, y: [x*10 + y]", "n,k", "y < 10", Status.PROVED),
        ("lambda x: [x + m]", "n", "m >= 1", Status.PROVED),
        ("lambda x: [(x + m)//2]", "n", "x % 2 == m % 2", Status.PROVED),
        ("lambda x: [(x + m)//2]", "n", "x >= m", Status.REFUTED),
        ("lambda x, y: [x*m + y]", "8,8", "y < m", Status.UNKNOWN),
    ],
)
def test_symbols_and_parameters(text: str, shape: str, where: str, status: Status) -> None:
    """For all sizes and parameters at once, where integer sets can state the map."""
    found = judged(text, shape, where)
    assert found.injective.status is status
    assert found.parameters == (("m",) if "m" in text.removeprefix("lambda") else ())


def test_what_a_condition_says_of_a_shape_alone_is_none() -> None:
    """A condition on the symbols of extents leaves the map on its whole shape."""
    index_map = parse_index_map("lambda i: [i]")
    assert not is_restricted(parse_condition("n >= 1", (), open_ended=True), index_map, parse_shape("n"))
    assert is_restricted(parse_condition("i >= 1", (), open_ended=True), index_map, parse_shape("n"))


def test_negative_images_and_wrong_ranks_are_refused() -> None:
    """An index below 0 where the condition holds is an error that names it; elsewhere it does not matter."""
    with pytest.raises(LayoutproofError, match="output 0 is below 0 at the index"):
        judged("lambda i: [i - 3]", "8", "i < 3")
    assert judged("lambda i: [i - 3]", "8", "i >= 3").injective.status is Status.PROVED
    with pytest.raises(LayoutproofError, match="the map has no value at the index"):
        judged("lambda i, j: [i*10 + j + i*j//(2 - i)]", "4,4", "j < 2")
