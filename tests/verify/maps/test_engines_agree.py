"""Elimination, bits, integer sets, z3 and enumeration agree with each other on every map that more than one of them
decides.
"""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from tests.judging import judge
from tests.oracle.maps import truth
from tests.random.index_maps import draw_map
from tests.shares import one_in, some

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.verify.maps.box import physical_box
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.component import by_bits, by_enumeration, by_isl, by_structure, by_z3
from layoutproof.verify.maps.component_facts import described
from layoutproof.verify.maps.injective import make_parts
from layoutproof.verify.maps.problem import Part, make_problem
from layoutproof.verify.verdict.verdict import Status

SEEDS = range(700_000, 700_220)
MOST = 45


def parts_of(text: str, shape: tuple[int, ...]) -> list[Part]:
    """The components of a map in their box. Raises LayoutproofError where the map is refused."""
    problem = make_problem(parse_index_map(text), shape)
    return make_parts(problem, physical_box(problem, "digits", None))


def cells_where(part: Part, conditions: tuple[Expr, ...] | None) -> list[bool] | None:
    """Where the conditions hold, cell by cell of the component's box."""
    if conditions is None:
        return None
    cells = product(*map(range, part.box))
    envs = ({f"p{axis}": c for axis, c in zip(part.axes, cell, strict=True)} for cell in cells)
    return [any(bool(evaluate(condition, env)) for condition in conditions) for env in envs]


@one_in(14)
@pytest.mark.parametrize("seed", some(SEEDS, MOST))
def test_engines_agree(seed: int) -> None:
    """Verdicts, padding and the number of cells reached are the same whoever decides."""
    drawn = draw_map(seed)
    try:
        parts = parts_of(drawn.text, drawn.shape)
    except LayoutproofError:
        return
    for part in parts:
        if not part.axes or prod(part.extents) > 600 or prod(part.box) > 1500:
            continue
        reference = described(part, by_enumeration(part))
        assert reference is not None
        expected = cells_where(part, reference.padding)
        for decision in (by_structure(part), by_bits(part), by_isl(part)):
            if decision is None or decision.status is Status.UNKNOWN:
                continue
            assert decision.status is reference.decision.status, (str(drawn), decision.engine)
            assert decision.image is None or decision.image == reference.image, (str(drawn), decision.engine)
            answer = described(part, decision)
            if answer is None:
                continue
            holes = cells_where(part, answer.padding)
            assert holes is None or holes == expected, (str(drawn), decision.engine)
            assert answer.image is None or answer.image == reference.image, (str(drawn), decision.engine)


@one_in(9)
def test_engines_have_something_to_agree_about() -> None:
    """Among the maps that every run looks at, each engine decides a good share."""
    counts = {"symbolic": 0, "GF(2)": 0, "isl": 0}
    for seed in SEEDS[:MOST]:
        drawn = draw_map(seed)
        try:
            parts = parts_of(drawn.text, drawn.shape)
        except LayoutproofError:
            continue
        for part in parts:
            if part.axes and prod(part.extents) <= 600:
                counts["symbolic"] += by_structure(part) is not None
                counts["GF(2)"] += by_bits(part) is not None
                counts["isl"] += by_isl(part).status is not Status.UNKNOWN
    assert counts["symbolic"] > 20 and counts["GF(2)"] > 4 and counts["isl"] > 30, counts


@pytest.mark.parametrize("text", ["i//4, i%4", "(5*i)%8", "i//4", "15-i", "i%3, i%4", "2*i+1", "i//2, i%3"])
@pytest.mark.parametrize("extent", [8, 12])
def test_z3_proves_what_is_injective_and_nothing_else(text: str, extent: int) -> None:
    """The non-linear engine on maps that the others decide as well."""
    for part in parts_of(f"lambda i: [{text}]", (extent,)):
        assert (by_z3(part).status is Status.PROVED) == (by_enumeration(part).status is Status.PROVED)


def test_isl_decides_large_maps_of_pieces() -> None:
    """Twelve million points in pieces: proved by integer sets, the padding counted, one of its cells named."""
    report = check_map("lambda i, j: [max(i, j), min(i, j), select(i < j, 0, 1)]", (3000, 4000))
    assert report.injective.status is Status.PROVED
    assert report.injective.engine == "isl"
    assert report.padding.cells == 12_000_000
    example = report.bijective.counterexample
    assert example is not None
    larger, smaller, first_is_larger = example["unreached"]
    reached = larger >= smaller and (smaller < larger if first_is_larger == 0 else larger < 3000)
    assert not (reached and larger < 4000 and smaller < 3000)


def test_twenty_blocks_of_a_packed_weight_are_inverted_from_one_offset() -> None:
    """The packed convolution weight flattened to a single offset: its inverse in closed form, with no enumeration."""
    text = "lambda o, i, h, w: [((((o//16)*4 + i//16)*3 + h)*3 + w)*256 + (i//4%4)*64 + (o%16)*4 + i%4]"
    report = check_map(text, (64, 64, 3, 3))
    assert report.bijective.status is Status.PROVED and report.bijective.engine == "symbolic"
    index_map = parse_index_map(text)
    assert report.inverse is not None
    for point in [(0, 0, 0, 0), (63, 63, 2, 2), (17, 38, 1, 2), (40, 5, 2, 0)]:
        assert report.inverse.evaluate(index_map.evaluate(point)) == point


def test_undecided_question_says_why() -> None:
    """Millions of points under a product of indices: no predicate, and the reason is the product."""
    report = check_map("lambda i, j: [(i*j) % 16, i]", (3000, 4000))
    assert report.injective.status is Status.REFUTED
    assert report.padding.predicate is None and report.padding.cells is None
    assert "product" in str(report.padding.reason)


def test_enumerated_maps_have_exact_predicates_and_inverses() -> None:
    """Maps that only enumeration decides still get an inverse and a predicate that are right everywhere."""
    for text, shape in [
        ("lambda i: [i * i % 31, i // 16]", (31,)),
        ("lambda i, j: [i * j + j, i]", (5, 6)),
        ("lambda i: [(i * i + i) // 2]", (12,)),
        ("lambda i, j: [i // (j + 1), i % (j + 1), j]", (9, 4)),
    ]:
        assert judge(check_map(text, shape).to_dict(), truth(text, shape)) == []
