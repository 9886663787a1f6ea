"""A graph before and after planning, drawn with matplotlib as SVG or PNG: boxes in rows, layouts as colours, rewrites
marked. The output depends on the plan alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePath

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path

from layoutproof.cli.output import bytes_text
from layoutproof.cli.plan.plan_options import Left
from layoutproof.cli.plan.plan_result import PlanReport, layout_in, moves_in, with_operator
from layoutproof.cli.plot.layout_figure import save_figure
from layoutproof.graph.model.graph import Call
from layoutproof.graph.model.graph_witness import GraphRewrite
from layoutproof.graph.planning.array_layouts import Layout, is_plain
from layoutproof.graph.planning.variants import operator_name
from layoutproof.ir.diagnostic import counted

MOST_ROWS = 56
_MOST_SINGLE = 24
"""Of a graph with more rows than that, calls share rows."""
_MOST_OPERATORS = 4


class Kind(StrEnum):
    """The kind of a row."""

    INPUT = "input"
    CALLS = "calls"
    REWRITE = "rewrite"
    OUTPUT = "output"
    GAP = "gap"


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its text, the layout that it makes, if any, and the operators of its calls."""

    kind: Kind
    text: str
    layout: Layout | None = None
    operators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """Data flow from a row to a later one, in a lane beside the rows; lane 0 leads to the next row."""

    start: int
    end: int
    lane: int


@dataclass(frozen=True, slots=True)
class Column:
    """One graph: its title, rows from top to bottom, edges."""

    title: str
    rows: tuple[Row, ...]
    edges: tuple[Edge, ...]

    @property
    def lanes(self) -> int:
        """The number of lanes beside the rows."""
        return max((edge.lane for edge in self.edges), default=0)


def column_of(rewrite: GraphRewrite, title: str, name: Callable[[Layout], str], most: int = MOST_ROWS) -> Column:
    """A graph with its witness as rows and edges, at most `most` rows."""
    steps = list(_steps(rewrite, name))
    if len(steps) > _MOST_SINGLE:
        steps = _joined(steps)
    rows = [row for row, _, _ in steps]
    makers = {value: number for number, (_, _, made) in enumerate(steps) for value in made}
    pairs = {(makers[value], number) for number, (_, used, _) in enumerate(steps) for value in used if value in makers}
    pairs = {(start, end) for start, end in pairs if start < end}
    if len(rows) > most:
        rows, pairs = _shortened(rows, pairs, most)
    return Column(title, tuple(rows), tuple(_edges(pairs)))


_Item = tuple[Row, tuple[str, ...], tuple[str, ...]]
"""A row, the names of the values that it uses, and of those that it makes."""


def _steps(rewrite: GraphRewrite, name: Callable[[Layout], str]) -> Iterator[_Item]:
    """A row for each input, call, rewrite (of any number of steps) and output."""
    graph, operator = rewrite.new, _operators(rewrite)
    moves = {each.made[0].name: each for each in moves_in(rewrite)}
    for value in graph.inputs:
        yield Row(Kind.INPUT, str(value), layout_in(rewrite, value.name)), (), (value.name,)
    for step in graph.steps:
        made = step.results[0]
        if isinstance(step, Call):
            row = Row(
                Kind.CALLS, f"{operator(step)}  {list(made.shape)}", layout_in(rewrite, made.name), (operator(step),)
            )
            yield row, step.operands, tuple(value.name for value in step.results)
        elif made.name in moves:
            move = moves[made.name]
            text = (
                f"{with_operator(rewrite.old, move.value)}: {name(move.source)} to {name(move.target)}, "
                f"{bytes_text(move.bytes)}"
            )
            yield Row(Kind.REWRITE, text, move.target), (move.first.name,), tuple(value.name for value in move.made)
    for output in graph.outputs:
        yield Row(Kind.OUTPUT, rewrite.places[output].value, layout_in(rewrite, output)), (output,), ()


def _operators(rewrite: GraphRewrite) -> Callable[[Call], str]:
    """The operator of a new call, by its name in the old graph, which has no number for the layout."""
    producers = rewrite.old.producers()

    def operator(call: Call) -> str:
        old = producers.get(rewrite.places[call.results[0].name].value)
        return operator_name(old if isinstance(old, Call) else call)

    return operator


def _joined(steps: Sequence[_Item]) -> list[_Item]:
    """Rows with consecutive calls of one layout joined."""
    found: list[_Item] = []
    for row, used, made in steps:
        last = found[-1][0] if found else None
        if last is not None and last.kind is Kind.CALLS and row.kind is Kind.CALLS and _alike(last.layout, row.layout):
            operators = (*last.operators, *row.operators)
            joined = replace(last, text=_summary(operators), operators=operators)
            found[-1] = (joined, (*found[-1][1], *used), (*found[-1][2], *made))
        else:
            found.append((row, used, made))
    return found


def _alike(one: Layout | None, other: Layout | None) -> bool:
    """Whether two layouts are equal, or both store arrays as they are indexed, of any number of axes."""
    return one == other or (one is not None and other is not None and is_plain(one) and is_plain(other))


def _summary(operators: Sequence[str]) -> str:
    common = Counter(operators).most_common()
    parts = [name if number == 1 else f"{name} x{number}" for name, number in common[:_MOST_OPERATORS]]
    return ", ".join([*parts, *(["…"] if len(common) > _MOST_OPERATORS else [])])


def _shortened(
    rows: Sequence[Row], pairs: Iterable[tuple[int, int]], most: int
) -> tuple[list[Row], set[tuple[int, int]]]:
    """The first and the last rows, with one between them for the others."""
    head, tail = most // 2, most - most // 2 - 1
    left_out = rows[head : len(rows) - tail]
    rewrites = sum(row.kind is Kind.REWRITE for row in left_out)
    gap = Row(Kind.GAP, f"{len(left_out)} rows more, {counted(rewrites, 'rewrite', 'rewrites')} among them")

    def moved(row: int) -> int:
        return row if row < head else head if row < len(rows) - tail else row - len(left_out) + 1

    shown = {(moved(start), moved(end)) for start, end in pairs}
    return [*rows[:head], gap, *rows[len(rows) - tail :]], {(start, end) for start, end in shown if start != end}


def _edges(pairs: Iterable[tuple[int, int]]) -> Iterator[Edge]:
    """Edges in lanes: two that pass one row have separate lanes, short ones are inside."""
    taken: dict[int, list[tuple[int, int]]] = {}
    for start, end in sorted(pairs, key=lambda pair: (pair[1] - pair[0], pair)):
        if end == start + 1:
            yield Edge(start, end, 0)
            continue
        lane = 1
        while any(start < b and a < end for a, b in taken.get(lane, ())):
            lane += 1
        taken.setdefault(lane, []).append((start, end))
        yield Edge(start, end, lane)


def layouts_in(columns: Iterable[Column]) -> Mapping[Layout, int]:
    """The layouts shown, numbered in the order of their appearance."""
    found = dict.fromkeys(
        row.layout for column in columns for row in column.rows if row.kind is Kind.CALLS and row.layout is not None
    )
    return {layout: number for number, layout in enumerate(found)}


_BOX, _HEIGHT, _STEP = 5.2, 0.46, 0.74  # inches: the width of a row, its height, from one row to the next
_LANE, _SIDE, _TOP, _BOTTOM = 0.16, 0.5, 1.15, 0.75
_MOST_LANES = 12
_MOST_INCHES = 60.0
_CHARACTERS = 62  # what fits into a row
_PLAIN, _REWRITE, _EDGE, _INK, _PAPER = "#eceff1", "#ffd2a8", "#5b6770", "#16212b", "#ffffff"
_COLOURS = ("#bfe0d2", "#c3d7f2", "#e3cdee", "#f4e3a6", "#f2c3cf", "#cfe8a9", "#b8e3ea", "#d9cfc2")


def draw_columns(columns: Sequence[Column], name: Callable[[Layout], str], title: str, fmt: str) -> bytes:
    """The file's bytes; `fmt` is `svg` or `png`. `name` gives a layout's name."""
    widths = [_SIDE + _BOX + _LANE * (min(column.lanes, _MOST_LANES) + 2) for column in columns]
    wide = sum(widths) + _SIDE
    high = _TOP + _BOTTOM + _STEP * max(len(column.rows) for column in columns)
    scale = min(1.0, _MOST_INCHES / high)
    colours = _colours(columns)
    with rc_context({"svg.hashsalt": "layoutproof", "svg.fonttype": "path", "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(wide * scale, high * scale), layout=None)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_xlim(0, wide)
        axes.set_ylim(high, 0)
        axes.set_axis_off()
        axes.text(wide / 2, 0.35, title, ha="center", va="center", fontsize=13 * scale, color=_INK)
        left = 0.0
        for column, width in zip(columns, widths, strict=True):
            _draw_column(axes, column, left + _SIDE, colours, scale)
            left += width
        _draw_legend(axes, colours, name, (_SIDE, wide - _SIDE), high - _BOTTOM / 2, scale)
        return save_figure(figure, fmt)


def _colours(columns: Sequence[Column]) -> Mapping[Layout, str]:
    """A colour for each layout: grey for arrays that are stored as they are indexed."""
    others = [layout for layout in layouts_in(columns) if not is_plain(layout)]
    found = {layout: _COLOURS[number % len(_COLOURS)] for number, layout in enumerate(others)}
    return {layout: found.get(layout, _PLAIN) for layout in layouts_in(columns)}


def _draw_column(axes: Axes, column: Column, left: float, colours: Mapping[Layout, str], scale: float) -> None:
    axes.text(
        left + _BOX / 2, 0.8, column.title, ha="center", va="center", fontsize=11 * scale, color=_INK, weight="bold"
    )
    for edge in column.edges:
        _draw_edge(axes, edge, left, scale)
    for number, row in enumerate(column.rows):
        _draw_row(axes, row, left, _middle(number), colours, scale)


def _middle(number: int) -> float:
    return _TOP + _STEP * number + _HEIGHT / 2


def _draw_row(axes: Axes, row: Row, left: float, middle: float, colours: Mapping[Layout, str], scale: float) -> None:
    face = _PAPER
    if row.kind is Kind.REWRITE:
        face = _REWRITE
    elif row.kind is Kind.CALLS and row.layout is not None:
        face = colours[row.layout]
    round_ends = row.kind in (Kind.INPUT, Kind.OUTPUT)
    shape = f"round,pad=0,rounding_size={_HEIGHT / 2 if round_ends else 0.06}"
    line = "--" if row.kind is Kind.GAP else "-"
    width = (2.0 if row.kind is Kind.REWRITE else 0.9) * scale
    corner = (left, middle - _HEIGHT / 2)
    box = FancyBboxPatch(
        corner,
        _BOX,
        _HEIGHT,
        boxstyle=shape,
        facecolor=face,
        edgecolor=_EDGE,
        linewidth=width,
        linestyle=line,
        zorder=2,
    )
    axes.add_patch(box)
    text = row.text if len(row.text) <= _CHARACTERS else row.text[: _CHARACTERS - 1] + "…"
    size = min(9.5, 9.5 * 46 / max(len(text), 1)) * scale
    axes.text(left + _BOX / 2, middle, text, ha="center", va="center", fontsize=size, color=_INK, zorder=3)


def _draw_edge(axes: Axes, edge: Edge, left: float, scale: float) -> None:
    """An arrow to the next row, or beside the rows to a later one."""
    start, end = _middle(edge.start), _middle(edge.end)
    if edge.lane == 0:
        path = Path([(left + _BOX / 2, start + _HEIGHT / 2), (left + _BOX / 2, end - _HEIGHT / 2)])
    else:
        side, bend = left + _BOX + _LANE * (1 + min(edge.lane, _MOST_LANES)), 0.1
        # A little apart, so that what leaves a row and what comes to it do not lie on one another.
        leave, arrive = start + 0.12, end - 0.12
        path = Path(
            [
                (left + _BOX, leave),
                (side - bend, leave),
                (side, leave),
                (side, leave + bend),
                (side, arrive - bend),
                (side, arrive),
                (side - bend, arrive),
                (left + _BOX, arrive),
            ],
            [Path.MOVETO, Path.LINETO, Path.CURVE3, Path.CURVE3, Path.LINETO, Path.CURVE3, Path.CURVE3, Path.LINETO],
        )
    axes.add_patch(
        FancyArrowPatch(
            path=path, arrowstyle="-|>", mutation_scale=9 * scale, linewidth=0.9 * scale, color=_EDGE, zorder=1
        )
    )


def _draw_legend(
    axes: Axes,
    colours: Mapping[Layout, str],
    name: Callable[[Layout], str],
    span: tuple[float, float],
    middle: float,
    scale: float,
) -> None:
    # Of layouts that differ in their number of axes alone, one.
    items = dict.fromkeys(
        [(_REWRITE, "layout rewrite"), *((colour, name(layout)) for layout, colour in colours.items())]
    )
    left, right = span
    for face, text in items:
        width = 0.45 + 0.085 * len(text)
        if left + width > right:
            axes.text(left, middle, "…", va="center", fontsize=9 * scale, color=_INK)
            break
        axes.add_patch(
            Rectangle((left, middle - 0.1), 0.2, 0.2, facecolor=face, edgecolor=_EDGE, linewidth=0.8 * scale)
        )
        axes.text(left + 0.28, middle, text, ha="left", va="center", fontsize=9 * scale, color=_INK)
        left += width + 0.15


def picture_of_plan(report: PlanReport, ending: str) -> bytes:
    """The graph before and after planning, as the bytes of an `svg` or `png` file."""

    return draw_columns(
        columns_of(report), report.layout_name, f"{PurePath(report.source).name}: {report.graph.name}", ending
    )


def columns_of(report: PlanReport) -> tuple[Column, Column]:
    """Before and after."""
    unplanned = replace(report.plan, choice=report.plan.unplanned)

    def column(what: str, rewrite: GraphRewrite, left: Left) -> Column:
        title = f"{what}: {counted(left.count, 'rewrite', 'rewrites')}, {bytes_text(left.bytes)}"
        return column_of(rewrite, title, report.layout_name)

    return column("naive", unplanned.rewrite, report.moved(unplanned.choice)), column(
        "planned", report.rewrite, report.left
    )
