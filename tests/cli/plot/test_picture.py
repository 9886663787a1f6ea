"""The geometry of a layout's picture: every shown cell once, nothing overlaps, memory order is the reading order."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import product
from math import prod

import pytest

from layoutproof.cli.plot.layout_cells import lay_out
from layoutproof.cli.plot.map_picture import PictureOptions, picture_of, scene_of_map, text_of
from layoutproof.cli.plot.scene import Line, Rect, Scene
from layoutproof.verify.maps.check_map import check_map

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


SVG = "{http://www.w3.org/2000/svg}"
SWIZZLE = "lambda i, j: [i, j ^ i]"


def titles(scene: Scene) -> list[str]:
    """What pointing at the picture tells, in the order in which it is drawn."""
    return [item.title for item in scene.items if isinstance(item, Rect) and item.title]


def test_tooltips_tell_where_elements_are() -> None:
    """Pointing at a cell tells its element, and pointing at an element its cell, as the map has it."""
    told = titles(scene_of_map(check_map(SWIZZLE, (4, 4))))
    for i, j in product(range(4), range(4)):
        assert f"[{i}, {j}] is in cell [{i}, {j ^ i}] at {4 * i + (j ^ i)}" in told
        assert f"cell [{i}, {j ^ i}] at {4 * i + (j ^ i)}: [{i}, {j}]" in told


def test_colours_of_a_swizzle() -> None:
    """By default an element has the colour of its row in both boxes; by bank, cells of one bank have one colour."""
    for options, groups in ((PictureOptions(), 8), (PictureOptions(colour="bank", banks=8), 8)):
        scene = scene_of_map(check_map(SWIZZLE, (8, 8)), options)
        fills = {item.title: item.fill for item in scene.items if isinstance(item, Rect) and item.title}
        assert len({fill for title, fill in fills.items() if "cell [" in title}) == groups
        for i, j in product(range(8), range(8)):
            at = f"[{i}, {j ^ i}] at {8 * i + (j ^ i)}"
            assert fills[f"[{i}, {j}] is in cell {at}"] == fills[f"cell {at}: [{i}, {j}]"]


@pytest.mark.parametrize(("pad", "said"), [(None, "must not be read"), ("undef", "may hold anything"), ("0.0", "0.0")])
def test_padding_by_contract(pad: str | None, said: str) -> None:
    """The legend and the tooltips of padding tell its contract, and each kind has a colour of its own."""
    scene = scene_of_map(check_map("lambda i: [i//4, i%4]", (14,)), PictureOptions(pad=pad))
    padding = [title for title in titles(scene) if title.startswith("cell [3, ")]
    assert len([title for title in padding if "padding" in title and said in title]) == 2
    assert said in scene.svg().partition("padding: ")[2]
    fills = {
        scene_of_map(check_map("lambda i: [i//4, i%4]", (14,)), PictureOptions(pad=each))
        .svg()
        .partition("<pattern")[2][:40]
        for each in (None, "undef", "0.0")
    }
    assert len(fills) == 3


def test_arrows_of_a_clash() -> None:
    """Where two elements share a cell, an arrow leads from each of them to it."""
    scene = scene_of_map(check_map("lambda i, j: [i//2, j]", (6, 5)))
    arrows = [item for item in scene.items if isinstance(item, Line) and item.arrow]
    assert len(arrows) == 2 and len({arrow.points[-1] for arrow in arrows}) == 1


def test_axes_have_their_names() -> None:
    """Axes are called as the map writes them, and long expressions have a number and their text below."""
    words = "".join(ET.fromstring(picture_of(check_map("lambda n, c: [c//4, n, c%4]", (3, 8)), "svg")).itertext())
    assert all(name in words for name in ("c//4", "c%4"))
    long = picture_of(check_map("lambda i: [(i + 5) % 16 // 4, (i + 5) % 4]", (16,)), "svg").decode()
    assert "p0 = (i + 5)%16//4" in long


def test_an_svg_is_small_and_needs_nothing() -> None:
    """A box of 8 by 8 is a short file, with titles, and drawing it loads neither matplotlib nor a solver."""
    data = picture_of(check_map("lambda i: [i//8, i%8]", (64,)), "svg")
    assert len(data) < 16_000
    root = ET.fromstring(data)
    assert [element.text for element in root.findall(f"{SVG}title")] == ["lambda i: [i//8, i%8]"]
    assert len(root.findall(f".//{SVG}title")) >= 65
    program = (
        "import sys; from layoutproof.cli.plot.map_picture import *; "
        "from layoutproof.verify.maps.check_map import check_map; "
        f"picture_of(check_map({SWIZZLE!r}, (8, 8)), 'svg'); "
        "print([name for name in ('matplotlib', 'islpy', 'z3') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_text_pictures() -> None:
    """As text, the cells that are not elided have their elements in rows and columns, and padding its contract."""
    lines = text_of(check_map("lambda i: [i//4, i%4]", (14,)), PictureOptions(pad="0")).splitlines()
    assert [line.split() for line in lines] == [
        ["0", "1", "2", "3"],
        ["4", "5", "6", "7"],
        ["8", "9", "10", "11"],
        ["12", "13", "(0)", "(0)"],
    ]
    wide = text_of(check_map("lambda i, j: [i//4, j//4, i%4, j%4]", (100, 9)))
    assert " | " in wide and re.search(r"^  \.\.$", wide, re.MULTILINE) and "99,8" in wide
