"""A graph before and after planning as a scene: boxes in rows, layouts as colours, rewrites marked, repetitions in
brackets. The output depends on the plan alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from layoutproof.cli.output import bytes_text
from layoutproof.cli.plan.plan_options import Left
from layoutproof.cli.plan.plan_result import PlanReport
from layoutproof.cli.plot.graph_rows import Column, Edge, Fold, Kind, Row, column_of, layouts_in
from layoutproof.cli.plot.scene import EDGE, INK, PAPER, Line, Rect, Scene, Text, cut, file_of, fitting, legend
from layoutproof.graph.model.graph_witness import GraphRewrite
from layoutproof.graph.planning.array_layouts import Layout, bare, is_plain, pad_of
from layoutproof.graph.planning.planner import Plan
from layoutproof.ir.diagnostic import counted

_BOX, _HEIGHT, _STEP = 400.0, 35.0, 56.0  # the width of a row, its height, from one row to the next
_LANE, _SIDE, _TOP, _BOTTOM = 12.0, 44.0, 84.0, 20.0
_MOST_LANES = 12
_CHARACTERS = 62  # what fits into a row
_PLAIN, _REWRITE = "#eceff1", "#ffd2a8"
_COLOURS = ("#bfe0d2", "#c3d7f2", "#e3cdee", "#f4e3a6", "#f2c3cf", "#cfe8a9", "#b8e3ea", "#d9cfc2")


def scene_of_columns(columns: Sequence[Column], name: Callable[[Layout], str], title: str) -> Scene:
    """The picture; `name` gives a layout's name."""
    widths = [_SIDE + _BOX + _LANE * (min(column.lanes, _MOST_LANES) + 2) for column in columns]
    scene = Scene(title, sum(widths) + _SIDE)
    colours = _colours(columns)
    scene.add(Text(scene.width / 2, 30, title, fitting(title, 17, scene.width - 2 * _SIDE)))
    left = 0.0
    for column, width in zip(columns, widths, strict=True):
        _draw_column(scene, column, left + _SIDE, colours)
        left += width
    # Of layouts that differ in their number of axes alone, one.
    items = dict.fromkeys(
        [(_REWRITE, "layout rewrite"), *((colour, name(layout)) for layout, colour in colours.items())]
    )
    entries = [(Rect(0, 0, 0, 0, colour), text) for colour, text in items]
    below = _TOP + _STEP * max(len(column.rows) for column in columns)
    scene.place(legend(entries, scene.width - 2 * _SIDE), _SIDE, below)
    scene.height += _BOTTOM
    return scene


def _colours(columns: Sequence[Column]) -> Mapping[Layout, str]:
    """A colour for each layout: grey for arrays that are stored as they are indexed."""
    others = [layout for layout in layouts_in(columns) if not is_plain(layout)]
    found = {layout: _COLOURS[number % len(_COLOURS)] for number, layout in enumerate(others)}
    return {layout: found.get(layout, _PLAIN) for layout in layouts_in(columns)}


def _draw_column(scene: Scene, column: Column, left: float, colours: Mapping[Layout, str]) -> None:
    scene.add(Text(left + _BOX / 2, 64, column.title, fitting(column.title, 14, _BOX + _SIDE), bold=True))
    scene.add(*(_arrow(edge, left) for edge in column.edges))
    for number, row in enumerate(column.rows):
        _draw_row(scene, row, left, _middle(number), colours)
    for fold in column.folds:
        _draw_fold(scene, fold, left)


def _middle(number: int) -> float:
    return _TOP + _STEP * number + _HEIGHT / 2


def _draw_row(scene: Scene, row: Row, left: float, middle: float, colours: Mapping[Layout, str]) -> None:
    face = PAPER
    if row.kind is Kind.REWRITE:
        face = _REWRITE
    elif row.kind is Kind.CALLS and row.layout is not None:
        face = colours[row.layout]
    radius = _HEIGHT / 2 if row.kind in (Kind.INPUT, Kind.OUTPUT) else 4.0
    line = 2.0 if row.kind is Kind.REWRITE else 0.9
    scene.add(
        Rect(left, middle - _HEIGHT / 2, _BOX, _HEIGHT, face, EDGE, line, "", radius, row.kind is Kind.GAP, _title(row))
    )
    text = cut(row.text, _CHARACTERS)
    scene.add(Text(left + _BOX / 2, middle + 4.5, text, fitting(text, 12.5, _BOX - 16), fill=INK))


def _title(row: Row) -> str:
    """What pointing at a row tells: the whole text, and all operators."""
    return f"{row.text} ({', '.join(row.operators)})" if len(row.operators) > 1 else row.text


def _draw_fold(scene: Scene, fold: Fold, left: float) -> None:
    """A bracket beside rows that are repeated."""
    top, bottom = _middle(fold.start) - _HEIGHT / 2, _middle(fold.end - 1) + _HEIGHT / 2
    x = left - 12
    scene.add(Line(((left - 4, top), (x, top), (x, bottom), (left - 4, bottom)), INK, 1.6))
    scene.add(Text(x - 4, (top + bottom) / 2 + 5, f"{fold.times}\N{MULTIPLICATION SIGN}", 14, "end", bold=True))


def _arrow(edge: Edge, left: float) -> Line:
    """An arrow to the next row, or beside the rows to a later one."""
    start, end = _middle(edge.start), _middle(edge.end)
    if edge.lane == 0:
        middle = left + _BOX / 2
        return Line(((middle, start + _HEIGHT / 2), (middle, end - _HEIGHT / 2)), EDGE, 0.9, 1.0, True)
    side = left + _BOX + _LANE * (1 + min(edge.lane, _MOST_LANES))
    # A little apart, so that what leaves a row and what comes to it do not lie on one another.
    leave, arrive = start + 9, end - 9
    corners = ((left + _BOX, leave), (side, leave), (side, arrive), (left + _BOX, arrive))
    return Line(corners, EDGE, 0.9, 1.0, True)


def picture_of_plan(report: PlanReport, ending: str) -> bytes:
    """The graph before and after planning, as the bytes of an `svg` or `png` file."""
    return file_of(scene_of_plan(report), ending)


def scene_of_plan(report: PlanReport) -> Scene:
    """The graph before and after planning."""
    title = f"{PurePath(report.source).name}: {report.graph.name}"
    return scene_of_columns(columns_of(report), report.layout_name, title)


def scene_of_choices(plan: Plan) -> Scene:
    """A plan's graph with nothing planned and as it is planned, layouts called by their indices."""
    unplanned = replace(plan, choice=plan.unplanned)
    columns = [
        column_of(each.rewrite, f"{what}: {counted(each.count(each.choice), 'rewrite', 'rewrites')}", _indices)
        for what, each in (("naive", unplanned), ("planned", plan))
    ]
    return scene_of_columns(columns, _indices, plan.graph.name)


def _indices(layout: Layout) -> str:
    known, pad = bare(layout), pad_of(layout)
    name = "plain" if is_plain(known) else known.partition(":")[2].strip()
    return name if pad is None else f"{name} with {pad} in its padding"


def columns_of(report: PlanReport) -> tuple[Column, Column]:
    """Before and after."""
    unplanned = replace(report.plan, choice=report.plan.unplanned)

    def column(what: str, rewrite: GraphRewrite, left: Left) -> Column:
        title = f"{what}: {counted(left.count, 'rewrite', 'rewrites')}, {bytes_text(left.bytes)}"
        return column_of(rewrite, title, report.layout_name)

    return column("naive", unplanned.rewrite, report.moved(unplanned.choice)), column(
        "planned", report.rewrite, report.left
    )
