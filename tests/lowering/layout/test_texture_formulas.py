"""Published formulas for tensors in textures: which are bijections and which are not, each with its counterexample, and
as counted.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

import pytest
from tests.lowering.layout.texture_formulas import MENDED, OUTSIDE, PADDED, RIGHT, SHARED, Formula

from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.verdict.verdict import Status


def named(formula: Formula) -> dict[str, int]:
    """The extents that a formula's text names, by the capital of each axis's letter."""
    letters = formula.index_map.removeprefix("lambda ").partition(":")[0].split(", ")
    return {letter.upper(): extent for letter, extent in zip(letters, formula.shape, strict=True)}


def concrete(formula: Formula) -> IndexMap:
    """The formula with numbers for the extents that it names."""
    text = formula.index_map
    inputs, _, body = text.partition(":")
    for name, extent in named(formula).items():
        body = body.replace(name, str(extent)) if "AXIS" not in body else body
    return parse_index_map(f"{inputs}:{body}")


def report_of(formula: Formula) -> MapReport:
    """What is proved and refuted of it at its shape."""
    return check_map(concrete(formula), formula.shape)


def places(formula: Formula) -> Counter[tuple[int, ...]]:
    """How often each place is given, by counting."""
    index_map = concrete(formula)
    return Counter(index_map.evaluate(index) for index in product(*map(range, formula.shape)))


def ids(formula: Formula) -> str:
    """The label of a formula, for the list of tests."""
    return formula.label


@pytest.mark.parametrize("formula", [*RIGHT, *MENDED], ids=ids)
def test_bijections(formula: Formula) -> None:
    """The formula is proved to be one to one and onto the box that the project states; counting says the same."""
    report = report_of(formula)
    assert (report.injective.status, report.bijective.status) == (Status.PROVED, Status.PROVED)
    assert set(places(formula)) == set(product(*map(range, formula.box)))
    assert max(places(formula).values()) == 1


@pytest.mark.parametrize("formula", PADDED, ids=ids)
def test_padded(formula: Formula) -> None:
    """Where extents are no multiples of four the places differ still, and the box has more of them: it is told which
    are padding.
    """
    report = report_of(formula)
    assert (report.injective.status, report.bijective.status) == (Status.PROVED, Status.REFUTED)
    found = places(formula)
    assert max(found.values()) == 1 and len(found) < prod(formula.box)
    assert report.bijective.counterexample is not None
    assert tuple(report.bijective.counterexample["unreached"]) not in found


@pytest.mark.parametrize("formula", SHARED, ids=ids)
def test_two_at_one_place(formula: Formula) -> None:
    """The formula is refuted by two inputs with one result, which evaluating it shows."""
    report = report_of(formula)
    assert report.injective.status is Status.REFUTED and report.injective.counterexample is not None
    shown = report.injective.counterexample
    index_map = concrete(formula)
    assert shown["first"] != shown["second"]
    assert index_map.evaluate(shown["first"]) == index_map.evaluate(shown["second"]) == tuple(shown["image"])
    assert max(places(formula).values()) > 1


def test_the_height_major_formula() -> None:
    """Rows 0 and 2 of an image of two batches of 8 rows are both said to hold rows 0 to 3 of batch 0; rows from 4 on
    are nowhere.
    """
    formula = SHARED[0]
    shown = report_of(formula).injective.counterexample
    assert shown is not None and (shown["first"], shown["second"]) == ([0, 0, 0], [0, 2, 0])
    assert max(place[1] for place in places(formula)) == 3


@pytest.mark.parametrize("formula", OUTSIDE, ids=ids)
def test_elements_that_are_not_there(formula: Formula) -> None:
    """The formula names elements past the tensor's end, so that it is none onto the tensor, and misses some that are
    there.
    """
    found = places(formula)
    tensor = set(product(*map(range, formula.box)))
    assert set(found) - tensor and (tensor - set(found) or len(found) > len(tensor))
    outside = next(place for place in sorted(found) if place not in tensor)
    assert any(part >= extent for part, extent in zip(outside, formula.box, strict=True))
    box = concrete(formula).map_shape(formula.shape)
    assert any(told > extent for told, extent in zip(box, formula.box, strict=True))


@pytest.mark.parametrize("formula", [formula for formula in RIGHT if formula.sizes is not None], ids=ids)
def test_for_all_shapes(formula: Formula) -> None:
    """What holds at one shape is proved for all: no two elements in one channel of a texel, products of extents and
    all.
    """
    assert formula.sizes is not None
    assert check_map(formula.index_map, formula.sizes).injective.status is Status.PROVED
