"""The geometry of a layout's picture: every shown cell once, nothing overlaps, memory order is the reading order."""

from __future__ import annotations

from math import prod

import pytest

from layoutproof.cli.plot.layout_cells import lay_out

BOXES = [
    ((1,), ()),
    ((4, 4), ()),
    ((1, 18, 56, 56, 4), ()),
    ((16, 32, 64, 64, 4), (2,)),
    ((1_000_000,), ()),
    ((2,) * 14, ()),
    ((3, 5, 2), (0, 1)),
    ((1, 1, 1), ()),
    ((1, 2_000_000_000, 1, 7), (1,)),
]


@pytest.mark.parametrize(("shape", "separators"), BOXES)
def test_no_two_cells_overlap(shape: tuple[int, ...], separators: tuple[int, ...]) -> None:
    """Any two shown cells are at least one cell apart along some direction."""
    places = lay_out(shape, separators).places
    corners = sorted((place.x, place.y) for place in places)
    for number, (x, y) in enumerate(corners):
        for other_x, other_y in corners[number + 1 :]:
            if other_x >= x + 1:
                break
            assert abs(other_y - y) >= 1 or other_x - x >= 1


@pytest.mark.parametrize(("shape", "separators"), BOXES)
def test_offsets_are_row_major(shape: tuple[int, ...], separators: tuple[int, ...]) -> None:
    """A cell's offset is the row-major one of its index in the whole box, whatever is elided."""
    for place in lay_out(shape, separators).places:
        assert place.offset == sum(i * prod(shape[axis + 1 :]) for axis, i in enumerate(place.index))


@pytest.mark.parametrize(("shape", "separators"), BOXES)
def test_shown_cells_are_bounded_and_inside(shape: tuple[int, ...], separators: tuple[int, ...]) -> None:
    """At most 400 cells are shown, first and last of the box among them where two an axis fit, all inside the plane."""
    picture = lay_out(shape, separators)
    assert len(picture.places) <= 400
    assert picture.places[0].offset == 0
    assert picture.complete == (len(picture.places) == prod(shape))
    if 2 ** sum(extent > 1 for extent in shape) <= 400:
        assert picture.places[-1].offset == prod(shape) - 1
    tiny = 1e-9  # sums of gaps round
    assert all(0 <= p.x <= picture.width - 1 + tiny and 0 <= p.y <= picture.height - 1 + tiny for p in picture.places)


def test_an_image_has_rows_and_columns() -> None:
    """With one separator the first group runs down and the second to the right."""
    at = {place.index: (place.x, place.y) for place in lay_out((2, 3, 2, 4), (1,)).places}
    assert len({y for (a, b, _, _), (_, y) in at.items() for _ in [0] if (a, b) == (0, 0)}) == 1
    rows = {index[:2]: y for index, (_, y) in at.items()}
    columns = {index[2:]: x for index, (x, _) in at.items()}
    assert sorted(rows, key=rows.__getitem__) == sorted(rows)
    assert sorted(columns, key=columns.__getitem__) == sorted(columns)


def test_elision_keeps_both_ends() -> None:
    """Of a long axis the first and the last indices are shown: padding is most often at the end."""
    (level,) = lay_out((1000,)).levels
    assert level.shown[0] == 0
    assert level.shown[-1] == 999
    assert level.elided
