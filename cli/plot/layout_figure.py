"""A layout's picture as a scene: the physical box, the logical one beside it, a legend and the share of padding.

A cell shows its logical index and, in its corner, its row-major offset. Pointing at a cell tells the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from layoutproof.cli.plot.layout_cells import Level, Picture, Place
from layoutproof.cli.plot.palette import by_order
from layoutproof.cli.plot.scene import EDGE, PAPER, Line, Rect, Scene, Text, cut, fitting, legend, width_of

_CELL, _LEAST_CELL, _MOST_WIDE = 42.0, 15.0, 1000.0
_LABEL, _MARGIN, _BAR = 11.0, 16.0, 12.0
_MOST_BESIDE = 1150.0
_LONGEST_NAME = 9
TRACE = "#c0392b"
TRACE_LINE = 2.2


@dataclass(frozen=True, slots=True)
class Cell:
    """How one cell is drawn: its lines of text, colours, what pointing at it tells, and whether it is outlined."""

    lines: tuple[str, ...]
    fill: str
    hatch: str = ""
    title: str = ""
    traced: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One box: its cells by index, the names of its axes, its heading; `offsets` are written if `numbered`."""

    picture: Picture
    cells: Mapping[tuple[int, ...], Cell]
    names: tuple[str, ...]
    heading: str
    numbered: bool = True


@dataclass(frozen=True, slots=True)
class Footprint:
    """How many cells a box has, and how many of them are padding."""

    cells: int
    padding: int
    colours: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Figure:
    """What the whole picture shows: one panel or two, arrows from cells of the first to cells of the last, a legend,
    a caption.
    """

    title: str
    panels: tuple[Panel, ...]
    entries: tuple[tuple[Rect, str], ...]
    caption: str
    footprint: Footprint | None = None
    arrows: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A panel's scene, and the corner and the size of its cells in it."""

    scene: Scene
    left: float
    top: float
    cell: float

    def middle(self, place: Place) -> tuple[float, float]:
        return self.left + (place.x + 0.5) * self.cell, self.top + (place.y + 0.5) * self.cell


def scene_of(figure: Figure) -> Scene:
    """The picture."""
    widest = max(max(panel.picture.width, panel.picture.height) for panel in figure.panels)
    cell = float(int(min(_CELL, max(_LEAST_CELL, _MOST_WIDE / widest))))
    drawn = [_draw_panel(panel, cell) for panel in figure.panels]
    wide = sum(one.scene.width for one in drawn) + _MARGIN * (len(drawn) - 1) * 3
    beside = wide <= _MOST_BESIDE
    body, corners = Scene(figure.title), []
    x = y = 0.0
    for one in drawn:
        body.place(one.scene, x, y)
        corners.append((x, y))
        x, y = (x + one.scene.width + 3 * _MARGIN, 0.0) if beside else (0.0, y + one.scene.height + _MARGIN)
    body.add(*_arrows(figure, drawn, corners))
    if len(drawn) == 2 and beside and not figure.arrows:
        middle = drawn[0].top + figure.panels[0].picture.height * cell / 2
        start = drawn[0].scene.width
        body.add(Line(((start + 8, middle), (start + 3 * _MARGIN - 8, middle)), EDGE, 1.6, 1.0, True))
    return _framed(figure, body)


def _framed(figure: Figure, body: Scene) -> Scene:
    """The panels between the title and what explains them."""
    # Narrow pictures are widened for their title, unless it is very long.
    width = max(body.width, min(width_of(figure.title, 13), 560.0), min(width_of(figure.caption, 11), 420.0))
    scene = Scene(figure.title, width + 2 * _MARGIN)
    size = fitting(figure.title, 14, width)
    scene.add(Text(scene.width / 2, _MARGIN + 12, figure.title, size, mono=True))
    y = _MARGIN + 26
    scene.place(body, _MARGIN + (width - body.width) / 2, y)
    y += body.height + 8
    if figure.footprint is not None:
        bar = footprint_bar(figure.footprint, width)
        scene.place(bar, _MARGIN, y)
        y += bar.height + 6
    explained = legend(figure.entries, width)
    scene.place(explained, _MARGIN, y)
    y += explained.height + 13
    scene.add(Text(_MARGIN, y, figure.caption, fitting(figure.caption, 11, width), "start", EDGE))
    scene.width, scene.height = width + 2 * _MARGIN, y + 10
    return scene


def footprint_bar(footprint: Footprint, width: float) -> Scene:
    """A bar as long as the box, the share of padding hatched."""
    share = footprint.padding / max(footprint.cells, 1)
    scene, used = Scene("footprint", width), width * (1 - share)
    fill, hatch = footprint.colours
    scene.add(Rect(0, 0, used, _BAR, by_order(0.6), title=f"{footprint.cells - footprint.padding:,} logical cells"))
    if footprint.padding:
        scene.add(Rect(used, 0, width - used, _BAR, fill, hatch=hatch, title=f"{footprint.padding:,} padding cells"))
    text = f"{footprint.cells:,} cells, {footprint.padding:,} of them padding ({share:.1%})"
    scene.add(Text(0, _BAR + 13, text if footprint.padding else f"{footprint.cells:,} cells, no padding", 11, "start"))
    scene.height = _BAR + 18
    return scene


def _draw_panel(panel: Panel, cell: float) -> _Drawn:
    levels = [level for level in panel.picture.levels if level.extent > 1]
    across = [level for level in levels if level.horizontal]
    down = [level for level in levels if not level.horizontal]
    row = _LABEL * 1.5
    columns = [_column(panel, level) for level in down]
    left = max([sum(columns), *(width_of(panel.names[level.axis], _LABEL) + 10 for level in across)], default=0.0)
    top = 20 + row * len(across)
    # Names of the axes that run down stand below them: above, they would meet those of the others.
    bottom = row if down else 4.0
    scene = Scene(panel.heading)
    drawn = _Drawn(scene, left, top, cell)
    width = max(left + panel.picture.width * cell, width_of(panel.heading, 12) * 0.95)
    scene.width, scene.height = width + 2, top + panel.picture.height * cell + bottom
    scene.add(Text(left, 12, panel.heading, 12, "start", bold=True))
    for number, level in enumerate(across):
        y = top - 5 - row * number
        scene.add(*(Text(left + at * cell, y, text, _tick(text, cell), fill=EDGE) for at, text in _ticks(level)))
        scene.add(Text(left - 6, y, panel.names[level.axis], _LABEL, "end", bold=True, mono=True))
    x = left
    for level, taken in zip(down, columns, strict=True):
        middle = x - taken / 2
        scene.add(
            *(Text(middle, top + at * cell + 4, text, _tick(text, cell), fill=EDGE) for at, text in _ticks(level))
        )
        scene.add(
            Text(
                middle,
                top + panel.picture.height * cell + row - 3,
                panel.names[level.axis],
                _LABEL,
                bold=True,
                mono=True,
            )
        )
        x -= taken
    _draw_cells(drawn, panel)
    return drawn


def _column(panel: Panel, level: Level) -> float:
    """The width of the labels of an axis that runs down."""
    digits = max(len(str(index)) for index in level.shown)
    return max(width_of(panel.names[level.axis], _LABEL), width_of("0" * digits, _LABEL)) + 10


def _tick(text: str, cell: float) -> float:
    return min(_LABEL, 1.3 * cell / max(len(text), 1))


def _draw_cells(drawn: _Drawn, panel: Panel) -> None:
    scene, cell, places = drawn.scene, drawn.cell, panel.picture.places
    corner = {p.index: (drawn.left + p.x * cell, drawn.top + p.y * cell) for p in places}
    shown = {p.index: panel.cells[p.index] for p in places}
    scene.add(*(Rect(*corner[index], cell, cell, c.fill, hatch=c.hatch, title=c.title) for index, c in shown.items()))
    for index, c in shown.items():
        scene.add(*_lines(c.lines, *corner[index], cell))
    if panel.numbered and cell >= 26:
        widest = len(str(max(p.offset for p in places)))
        size = min(cell * 0.19, 1.3 * cell / widest)
        for p in places:
            x, y = corner[p.index]
            scene.add(Text(x + 2.5, y + size, str(p.offset), size, "start", EDGE))
    for index, c in shown.items():
        if c.traced:
            inner = cell - 3
            scene.add(Rect(corner[index][0] + 1.5, corner[index][1] + 1.5, inner, inner, "none", TRACE, TRACE_LINE))


def _lines(lines: Sequence[str], x: float, y: float, cell: float) -> Iterable[Text]:
    """The text of a cell, one line or two, in its middle."""
    if not lines:
        return
    size = min(cell * (0.3 if len(lines) > 1 else 0.36), 0.92 * cell / max(len(line) for line in lines) / 0.6)
    first = y + cell * 0.58 + size * 0.36 - (len(lines) - 1) * size * 0.55
    for number, line in enumerate(lines):
        yield Text(x + cell / 2, first + number * size * 1.1, line, size)


def _ticks(level: Level) -> list[tuple[float, str]]:
    """The positions of the level's indices in cells, and an ellipsis for elided ones."""
    ticks = [(start + level.step / 2, str(index)) for index, start in zip(level.shown, level.starts, strict=True)]
    for number, (a, b) in enumerate(pairwise(level.shown)):
        if b != a + 1:
            ticks.append(((level.starts[number] + level.step + level.starts[number + 1]) / 2, "…"))
    return ticks


def _arrows(figure: Figure, drawn: Sequence[_Drawn], corners: Sequence[tuple[float, float]]) -> Iterable[Line]:
    """From cells of the first panel to cells of the last, where both are shown."""
    first, last = ({p.index: p for p in figure.panels[k].picture.places} for k in (0, -1))
    for start, end in figure.arrows:
        if start in first and end in last:
            ends = [(drawn[0], first[start], corners[0]), (drawn[-1], last[end], corners[-1])]
            yield Line(tuple(_add(one.middle(place), corner) for one, place, corner in ends), TRACE, 1.8, 1.0, True)


def _add(point: tuple[float, float], corner: tuple[float, float]) -> tuple[float, float]:
    return point[0] + corner[0], point[1] + corner[1]


def index_lines(index: Sequence[int], more: int = 0) -> tuple[str, ...]:
    """A logical index as the lines of its cell; `more` are in the same cell."""
    text = ",".join(map(str, index)) if index else "()"
    lines: tuple[str, ...] = (text,)
    # Four and more coordinates stand in two lines: one would be too small to read.
    if len(index) > 1 and (len(index) >= 4 or len(text) > 7):
        half = (len(index) + 1) // 2
        lines = (",".join(map(str, index[:half])) + ",", ",".join(map(str, index[half:])))
    return lines if not more else (*lines, f"+{more}")


def sample(fill: str, hatch: str = "") -> Rect:
    """A rectangle for the legend."""
    return Rect(0, 0, 0, 0, fill, hatch=hatch)


def traced_sample() -> Rect:
    """The outline of a traced cell, for the legend."""
    return Rect(0, 0, 0, 0, PAPER, TRACE, TRACE_LINE)


def short_names(texts: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """The names of axes by what is written for them, `p0` and so on for long ones; and what these stand for."""
    names = tuple(text if len(text) <= _LONGEST_NAME else f"p{axis}" for axis, text in enumerate(texts))
    long = [f"{name} = {cut(text, 40)}" for name, text in zip(names, texts, strict=True) if name != text]
    return names, ", ".join(long)
