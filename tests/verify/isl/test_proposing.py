"""What proposals ask of relations between instances: each answer compared with the relation itself."""

from __future__ import annotations

import islpy as isl
import pytest

from layoutproof.ir.expr import Var
from layoutproof.ir.text import Style, expr_text
from layoutproof.verify.isl.proposing import (
    by_pair,
    condition_on,
    determines,
    every_pair,
    functions_of,
    in_relation,
    leaves_open,
    read_as_condition,
    widened,
    with_coordinate,
    with_places,
)
from layoutproof.verify.isl.space import NamedSpace, new_context

CONTEXT = new_context()


def link(text: str) -> isl.Map:
    """A relation as isl writes it."""
    return isl.Map.read_from_str(CONTEXT, text)


def points(text: str) -> isl.Set:
    """A set as isl writes it."""
    return isl.Set.read_from_str(CONTEXT, text)


def space(*names: str) -> NamedSpace:
    """The space with these dims."""
    return NamedSpace(CONTEXT, names)


def said(text: str, *names: str) -> list[str]:
    """The pieces of a function, as text."""
    pieces = functions_of(link(text), space(*names), {})
    return [", ".join(expr_text(each, Style.PLAIN) for each in piece.outputs) for piece in pieces]


def test_by_pair() -> None:
    """The parts of a relation come in the order of their names, without the empty ones."""
    whole = isl.UnionMap.read_from_str(
        CONTEXT, "{ b[i] -> x[i] : i = 1; a[i] -> y[i] : i = 2; a[i] -> x[i] : i = 3; c[i] -> x[i] : 1 = 0 }"
    )
    assert list(by_pair(whole)) == [("a", "x"), ("a", "y"), ("b", "x")]
    assert by_pair(whole)["b", "x"].is_equal(link("{ b[1] -> x[1] }"))


def test_in_relation() -> None:
    """A link as a relation is that link."""
    each = link("{ a[i] -> x[2i] : 0 <= i < 4 }")
    assert by_pair(in_relation(each))["a", "x"].is_equal(each)


def test_determines() -> None:
    """Whether a coordinate of the target is a function, whatever the others are."""
    each = link("{ a[i] -> x[i, j] : 0 <= i < 4 and 0 <= j < 3 }")
    assert determines(each, 0)
    assert not determines(each, 1)


def test_leaves_open() -> None:
    """Whether all values of a coordinate go with each target; a coordinate with one value is not open."""
    each = link("{ a[i, j, k] -> x[i] : 0 <= i < 4 and 0 <= j < 3 and k = 2 }")
    assert [leaves_open(each, k) for k in range(3)] == [False, True, False]
    assert not leaves_open(link("{ a[i, j] -> x[i] : 0 <= i < 4 and i <= j < 4 }"), 1)


def test_with_coordinate() -> None:
    """All pairs that agree in a coordinate with what a seed says, and whether that is a constant."""
    seed = link("{ a[i, 7] -> x[i + 1, 9] : 0 <= i < 4 }")
    first, second = with_coordinate(seed, 0), with_coordinate(seed, 1)
    assert first is not None
    assert second is not None
    assert first[0].is_equal(link("{ a[i, k] -> x[i + 1, l] }"))
    assert [first[1], second[1]] == [False, True]


def test_with_coordinate_of_several_expressions() -> None:
    """A coordinate that takes several expressions is none, another one of the same seed is."""
    seed = link("{ a[i] -> x[i, i] : 0 <= i < 4; a[i] -> x[i, 7 - i] : 4 <= i < 8 }")
    assert with_coordinate(seed, 0) is not None
    assert with_coordinate(seed, 1) is None


def test_with_places() -> None:
    """The part of a link whose points have some coordinates of the seed's."""
    each = link("{ a[i, j] -> x[i] : 0 <= i < 4 and 0 <= j < 3 }")
    assert with_places(each, link("{ a[2, 1] -> x[2] }"), [1]).is_equal(link("{ a[i, 1] -> x[i] : 0 <= i < 4 }"))


def test_widened() -> None:
    """A function on some points, wherever the wider relation allows it."""
    within = link("{ a[i] -> x[j] : 0 <= i < 8 and 0 <= j < 8 }")
    found = widened(link("{ a[i] -> x[2i] : 1 <= i < 3 }"), within)
    assert found is not None
    assert found.is_equal(link("{ a[i] -> x[2i] : 0 <= i < 4 }"))
    assert widened(link("{ a[0] -> x[1]; a[1] -> x[5]; a[2] -> x[0] }"), within) is None


def test_functions_of() -> None:
    """A function of one piece, of several, and one with a remainder, over names that are given."""
    assert said("{ a[i, j] -> x[4i + j, 3] : 0 <= i < 4 and 0 <= j < 4 }", "i", "j") == ["4*i + j, 3"]
    assert said("{ a[i] -> x[i] : 0 <= i < 4; a[i] -> x[7 - i] : 4 <= i < 8 }", "i") == ["i", "-i + 7"]
    assert said("{ a[i] -> x[floor(i/4), i mod 4] : 0 <= i < 16 }", "i") == ["i//4, i%4"]


def test_functions_of_other_variables() -> None:
    """Coordinates read as the variables that they are given."""
    (piece,) = functions_of(link("{ a[i] -> x[i + 1] : 0 <= i < 4 }"), space("i"), {"i": Var("row")})
    assert expr_text(piece.outputs[0], Style.PLAIN) == "row + 1"
    assert piece.where.is_equal(points("{ a[i] : 0 <= i < 4 }"))


def test_condition_on() -> None:
    """What tells some points from the others; nothing where they are all."""
    whole = points("{ a[i] : 0 <= i < 8 }")
    some = condition_on(points("{ a[i] : 0 <= i < 4 }"), whole, space("i"), {})
    assert some is not None
    assert expr_text(some, Style.PLAIN) == "i <= 3"
    assert condition_on(whole, whole, space("i"), {}) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{ a[i] -> x[j] : 0 <= i < 4 and 0 <= j < 4 and i = j }", "j == i"),
        ("{ a[i] -> x[j] : 0 <= i < 4 and 0 <= j < i }", "i >= j + 1"),
        ("{ a[i] -> x[j] : 0 <= i < 4 and 0 <= j < 4 }", "True"),
    ],
)
def test_read_as_condition(text: str, told: str) -> None:
    """A relation reads as what it says beside the bounds of both."""
    among = every_pair(points("{ a[i] : 0 <= i < 4 }"), points("{ x[j] : 0 <= j < 4 }"))
    assert expr_text(read_as_condition(link(text), among, ["i", "j"], []), Style.PLAIN) == told
