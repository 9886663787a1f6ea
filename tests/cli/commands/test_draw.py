"""`layoutproof draw`: pictures of all kinds of layouts, the same bytes every time, and what is told of them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.cli.calling import Caller
from tests.shares import one_in

from layoutproof.cli.plot.layout_cells import lay_out
from layoutproof.cli.plot.map_picture import picture_of
from layoutproof.verify.maps.check_map import check_map

LAYOUTS: dict[str, tuple[tuple[str, ...], int]] = {
    "padded": (("lambda i: [i//4, i%4]", "--shape", "14"), 0),
    "one_axis": (("lambda i: [i]", "--shape", "37"), 0),
    "one_cell": (("lambda i: [i]", "--shape", "1"), 0),
    "many_axes": (("lambda a, b, c, d, e, f: [f, e, d, c, b, a]", "--shape", "2,3,2,3,2,3"), 0),
    "texture": (("lambda n, h, w, c: [n, c//4, AXIS_SEPARATOR, h, w, c%4]", "--shape", "1,4,5,7"), 0),
    "texture_array": (
        ("lambda n, h, w, c: [n, AXIS_SEPARATOR, c//4, h, AXIS_SEPARATOR, w, c%4]", "--shape", "2,3,3,7"),
        0,
    ),
    "huge": (("lambda i: [i//1000, i%1000]", "--shape", "2000000000"), 0),
    "colliding": (("lambda i, j: [i//2, j]", "--shape", "6,5"), 1),
    "primes": (("lambda i, j: [j//5, i, j%5]", "--shape", "7,13"), 0),
    "names": (("lambda i, j: [i*m + j]", "--shape", "n,m", "--size", "n=3", "--size", "m=4"), 0),
}


@one_in(21)
@pytest.mark.parametrize("name", LAYOUTS)
def test_svg(call: Caller, tmp_path: Path, name: str) -> None:
    """An SVG is well-formed, names the map, and is the same file when drawn again."""
    arguments, code = LAYOUTS[name]
    files = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for path in files:
        outcome = call("draw", *arguments, "-o", str(path))
        assert (outcome.code, outcome.err) == (code, "")
        assert outcome.out.startswith(f"{path}: lambda")
    assert files[0].read_bytes() == files[1].read_bytes()
    root = ET.fromstring(files[0].read_text(encoding="utf-8"))
    assert root.tag.endswith("svg")


@one_in(4)
@pytest.mark.parametrize("name", ["padded", "texture_array"])
def test_png(call: Caller, tmp_path: Path, name: str) -> None:
    """A PNG has the signature of one and is of a size that fits a slide."""
    arguments, code = LAYOUTS[name]
    path = tmp_path / "a.PNG"
    assert call("draw", *arguments, "-o", str(path)).code == code
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(data[start : start + 4], "big") for start in (16, 20))
    assert 400 <= width <= 2200 and 200 <= height <= 2200


def test_clashes_are_told(call: Caller, tmp_path: Path) -> None:
    """A map that is not injective is drawn all the same; its counterexample is printed and the exit code is 1."""
    outcome = call("draw", "lambda i: [i//4]", "--shape", "14", "-o", str(tmp_path / "a.svg"))
    assert outcome.code == 1
    assert "not injective: (0) and (1) both go to (0)" in outcome.out


def test_padding_is_hatched() -> None:
    """The picture of a padded layout has the hatching, that of an exact one has none."""
    padded, exact = (picture_of(check_map("lambda i: [i//4, i%4]", (extent,)), "svg") for extent in (14, 16))
    assert b"<pattern" in padded
    assert b"<pattern" not in exact


@one_in(4)
def test_fewer_cells_are_shown_when_asked(call: Caller, tmp_path: Path) -> None:
    """--cells bounds what is shown: fewer cells, a smaller file."""
    sizes = []
    for cells in ("16", "256"):
        assert call("draw", *LAYOUTS["huge"][0], "--cells", cells, "-o", str(tmp_path / "a.svg")).code == 0
        sizes.append((tmp_path / "a.svg").stat().st_size)
    assert sizes[0] < sizes[1]


def test_rows_and_columns_stay_readable() -> None:
    """However the axes run, no row or column has more cells than fit a slide, unless more were asked for."""
    for shape, separators in (((1, 4, 4, 5, 4), (1,)), ((64, 64, 64), ()), ((1000,), ()), ((2,) * 12, (0,))):
        places = lay_out(shape, separators).places
        assert len({place.x for place in places}) <= 24 and len({place.y for place in places}) <= 24


def test_text_without_a_file(call: Caller) -> None:
    """Without a file the picture is text, padding with what --pad says."""
    outcome = call("draw", "lambda i: [i//4, i%4]", "--shape", "14", "--pad", "undef")
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1].split() == ["12", "13", "(?)", "(?)"]


def test_colour_by_bank(call: Caller, tmp_path: Path) -> None:
    """--banks colours cells by bank, and the legend has their number."""
    path = tmp_path / "a.svg"
    assert call("draw", "lambda i, j: [i, j ^ i]", "--shape", "8,8", "--banks", "8", "-o", str(path)).code == 0
    assert "8 banks" in path.read_text(encoding="utf-8")
