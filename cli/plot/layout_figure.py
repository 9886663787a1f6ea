"""A layout's picture: placed, filled, and drawn with matplotlib as SVG or PNG.

A cell shows its logical index and, in its corner, its row-major offset. Padding is hatched; colours follow the logical
row-major order, so that neighbours are visible. The output depends on the layout alone: no dates, no random ids.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from layoutproof.cli import codes
from layoutproof.cli.option_values import names_of
from layoutproof.cli.plot.layout_cells import MAX_CELLS, Content, Level, Picture, Place, lay_out
from layoutproof.ir.diagnostic import error
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.semantics import Trap
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.verify.maps.map_report import MapReport

_INCH_PER_CELL = 0.52
_MAX_INCHES = 13.0
_MIN_INCHES = 5.0
_LABEL = 0.75  # cell widths for one row of axis labels
_COLORS = colormaps["YlGnBu"]
_PADDING_FACE, _EDGE, _INK = "#f2f2f2", "#5b6770", "#16212b"
_CLASH = "#f4b6ae"
_DPI = 160


def draw_picture(
    picture: Picture, contents: Mapping[tuple[int, ...], Content], title: str, caption: str, fmt: str
) -> bytes:
    """The file's bytes; `fmt` is `svg` or `png`. `contents` has every shown cell, by physical index."""
    top = sum(level.horizontal and level.extent > 1 for level in picture.levels)
    left = 1 + sum(not level.horizontal and level.extent > 1 for level in picture.levels)
    width, height = picture.width + left * _LABEL + 0.8, picture.height + top * _LABEL + 2.7
    scale = min(_INCH_PER_CELL, _MAX_INCHES / max(width, height))
    with rc_context(
        {"svg.hashsalt": "layoutproof", "svg.fonttype": "path", "hatch.linewidth": 0.5, "font.family": "DejaVu Sans"}
    ):
        inches = (max(width * scale, _MIN_INCHES), height * scale)
        figure = Figure(figsize=inches, layout=None)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        middle = picture.width / 2 - left * _LABEL / 2
        axes.set_xlim(middle - inches[0] / scale / 2, middle + inches[0] / scale / 2)
        axes.set_ylim(picture.height + 1.5, -top * _LABEL - 1.2)
        axes.set_aspect("equal")
        axes.set_axis_off()
        _draw_cells(axes, picture, contents, scale)
        _draw_labels(axes, picture, scale)
        points = scale * 72
        size = min(13.0, 1.75 * inches[0] * 72 / max(len(title), 1))
        axes.text(
            middle,
            -top * _LABEL - 0.6,
            title,
            ha="center",
            va="center",
            fontsize=size,
            family="DejaVu Sans Mono",
            color=_INK,
        )
        size = min(0.30 * points, 1.75 * inches[0] * 72 / max(len(caption), 1))
        axes.text(middle, picture.height + 1.05, caption, ha="center", va="center", fontsize=size, color=_EDGE)
        return save_figure(figure, fmt)


def save_figure(figure: Figure, fmt: str) -> bytes:
    """The bytes of a figure's file; `fmt` is `svg` or `png`."""
    buffer = io.BytesIO()
    # No date in the file: the same picture gives the same bytes.
    metadata = {"Date": None, "Creator": "layoutproof"} if fmt == "svg" else {"Software": "layoutproof"}
    figure.savefig(buffer, format=fmt, dpi=_DPI, metadata=metadata)
    return buffer.getvalue()


def _draw_cells(axes: Axes, picture: Picture, contents: Mapping[tuple[int, ...], Content], scale: float) -> None:
    points = scale * 72
    padded = [p for p in picture.places if not contents[p.index].logical]
    filled = [p for p in picture.places if contents[p.index].logical]
    clashes = [len(contents[p.index].logical) > 1 for p in filled]
    faces = [
        _CLASH if clash else _COLORS(0.05 + 0.42 * contents[p.index].rank)
        for p, clash in zip(filled, clashes, strict=True)
    ]
    width = 0.02 * points
    axes.add_collection(
        PatchCollection([_box(p) for p in filled], facecolor=faces, zorder=1, edgecolor=_EDGE, linewidth=width)
    )
    axes.add_collection(
        PatchCollection(
            [_box(p) for p in padded],
            facecolor=_PADDING_FACE,
            hatch="////",
            zorder=1,
            edgecolor=_EDGE,
            linewidth=0.02 * points,
        )
    )
    axes.add_collection(
        LineCollection(_row_major_path(picture), colors=_INK, linewidths=0.02 * points, alpha=0.22, zorder=2)
    )
    for place in filled:
        text = _cell_text(contents[place.index])
        size = min(0.30 if "\n" in text else 0.36, 1.35 / max(len(line) for line in text.splitlines())) * points
        axes.text(
            place.x + 0.5,
            place.y + (0.62 if "\n" in text else 0.56),
            text,
            ha="center",
            va="center",
            fontsize=size,
            color=_INK,
            zorder=3,
            linespacing=0.95,
        )
    widest = len(str(max(p.offset for p in picture.places)))
    for place in picture.places:
        size = min(0.17, 1.3 / widest) * points
        axes.text(
            place.x + 0.06, place.y + 0.06, str(place.offset), ha="left", va="top", fontsize=size, color=_EDGE, zorder=3
        )


def _cell_text(content: Content) -> str:
    first = content.logical[0]
    text = ",".join(str(i) for i in first) if first else "()"
    # Four and more coordinates stand in two lines: one would be too small to read.
    if len(first) >= 4 or len(text) > 7:
        half = (len(first) + 1) // 2
        text = (
            ",".join(str(i) for i in first[:half]) + ",\n" + ",".join(str(i) for i in first[half:])
            if len(first) > 1
            else text
        )
    return text if len(content.logical) == 1 else f"{text}\n+{len(content.logical) - 1}"


def _box(place: Place) -> Rectangle:
    return Rectangle((place.x, place.y), 1.0, 1.0)


def _row_major_path(picture: Picture) -> list[list[tuple[float, float]]]:
    """Segments between cells that follow one another in memory; for many axes, those along a row."""
    segments = []
    flat = sum(extent > 1 for extent in picture.shape) <= 2
    for a, b in pairwise(picture.places):
        if b.offset == a.offset + 1 and (flat or a.y == b.y):
            segments.append([(a.x + 0.5, a.y + 0.5), (b.x + 0.5, b.y + 0.5)])
    return segments


def _draw_labels(axes: Axes, picture: Picture, scale: float) -> None:
    size = 0.32 * scale * 72
    for horizontal in (True, False):
        levels = [level for level in picture.levels if level.horizontal is horizontal and level.extent > 1]
        for row, level in enumerate(levels):
            across = -(row + 0.45) * _LABEL
            for position, text in _ticks(level):
                x, y = (position, across) if horizontal else (across, position)
                axes.text(x, y, text, ha="center", va="center", fontsize=size, color=_EDGE)
            name = f"p{level.axis}"
            # Names of the axes that run down stand below them: above, they would meet those of the others.
            x, y = (-0.35, across) if horizontal else (across, picture.height + 0.3)
            axes.text(
                x,
                y,
                name,
                ha="right" if horizontal else "center",
                va="center",
                fontsize=size,
                color=_INK,
                weight="bold",
            )


def _ticks(level: Level) -> list[tuple[float, str]]:
    """The positions of the level's indices, and `…` for elided ones."""
    ticks = [(start + level.step / 2, str(index)) for index, start in zip(level.shown, level.starts, strict=True)]
    for number, (a, b) in enumerate(pairwise(level.shown)):
        if b != a + 1:
            ticks.append(((level.starts[number] + level.step + level.starts[number + 1]) / 2, "…"))
    return ticks


_ENDINGS = ("svg", "png")
_MOST_COLLIDING = 1 << 18


def ending_of(path: Path) -> str:
    """`svg` or `png`. Raises LayoutproofError for another file."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in _ENDINGS:
        raise error(codes.PICTURE_FORMAT, f"{path}: the file's ending chooses the format; expected .svg or .png")
    return ending


def concrete(shape: Sequence[Expr], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A shape with its sizes, as numbers. Raises LayoutproofError for sizes that do not fit."""
    names = [v.name for v in names_of(shape)]
    for name in sizes:
        if name not in names:
            raise error(codes.SIZE, f"--size {name}: the shape has no size of this name")
    extents = []
    for axis, extent in enumerate(shape):
        missing = [v.name for v in free_variables(extent) if v.name not in sizes]
        if missing:
            raise error(codes.SIZE, f"extent {axis} of the shape is symbolic; say --size {missing[0]}=N")
        try:
            extents.append(int(evaluate(extent, sizes)))
        except (Trap, OverflowError) as problem:
            raise error(codes.SIZE, f"with these sizes extent {axis} of the shape has no value: {problem}") from problem
        if extents[-1] < 1:
            raise error(
                codes.SIZE, f"with these sizes extent {axis} of the shape is {extents[-1]}: it must be at least 1"
            )
    return tuple(extents)


def with_sizes(index_map: IndexMap, sizes: Mapping[str, int]) -> IndexMap:
    """The map with the shape's names replaced by their numbers."""
    inputs = {v.name for v in index_map.inputs}
    values: dict[Var, Expr] = {Var(name): const(number) for name, number in sizes.items() if name not in inputs}
    return replace(index_map, outputs=tuple(substitute(output, values) for output in index_map.outputs))


def picture_of(report: MapReport, ending: str, cells: int = MAX_CELLS) -> bytes:
    """The picture of a checked map of concrete shape, as the bytes of an `svg` or `png` file.

    Raises LayoutproofError for a map that is not injective on more than 262,144 points: its clashes would have to be
    searched.
    """

    box = _numbers(report.physical_shape)
    shape = _numbers(report.shape)
    picture = lay_out(box, report.axis_separators, cells)
    held = (
        _by_inverse(report, picture)
        if report.inverse is not None and report.padding.predicate is not None
        else _by_search(report, picture, shape)
    )
    contents = _contents(held, shape)
    caption = f"[{', '.join(map(str, shape))}] stored as [{', '.join(map(str, box))}]: {_legend(picture, contents)}"
    return draw_picture(picture, contents, index_map_text(report.index_map), caption, ending)


def _numbers(extents: Sequence[Expr | None]) -> tuple[int, ...]:
    known = [extent for extent in extents if extent is not None]
    if len(known) < len(extents):
        raise error(codes.NOTHING_TO_DRAW, "the physical shape is not known as numbers: there is no box to draw")
    return tuple(int(evaluate(extent, {})) for extent in known)


def _legend(picture: Picture, contents: Mapping[tuple[int, ...], Content]) -> str:
    """Entries for what the picture shows."""
    counts = {len(content.logical) for content in contents.values()}
    parts = ["logical index, offset in the corner"]
    parts += ["padding hatched"] if 0 in counts else []
    parts += ["red where several logical indices meet (one is written, +n more)"] if max(counts) > 1 else []
    parts += [] if picture.complete else [f"{len(picture.places):,} of {prod(picture.shape):,} cells shown"]
    return ", ".join(parts)


Held = dict[tuple[int, ...], list[tuple[int, ...]]]


def _by_inverse(report: MapReport, picture: Picture) -> Held:
    """The logical index of each shown cell, from the proved inverse and padding predicate."""
    assert report.inverse is not None
    assert report.padding.predicate is not None
    held: Held = {}
    for place in picture.places:
        names = {f"p{axis}": value for axis, value in enumerate(place.index)}
        padding = bool(evaluate(report.padding.predicate, names))
        held[place.index] = [] if padding else [report.inverse.evaluate(place.index)]
    return held


def _by_search(report: MapReport, picture: Picture, shape: tuple[int, ...]) -> Held:
    """The same for a map without an inverse, by enumeration of the logical box."""
    if prod(shape) > _MOST_COLLIDING:
        raise error(
            codes.NOTHING_TO_DRAW,
            f"the map is not injective and its shape has more than {_MOST_COLLIDING} points: too many to draw its "
            "clashes",
        )
    held: Held = {place.index: [] for place in picture.places}
    for index in np.ndindex(*shape):
        cell = held.get(report.index_map.evaluate(index))
        if cell is not None:
            cell.append(tuple(index))
    return held


def _contents(held: Held, shape: tuple[int, ...]) -> dict[tuple[int, ...], Content]:
    total = max(prod(shape) - 1, 1)
    contents = {}
    for index, logical in held.items():
        rank = 0
        for position, extent in zip(logical[0], shape, strict=True) if logical else ():
            rank = rank * extent + position
        contents[index] = Content(tuple(logical), rank / total)
    return contents
