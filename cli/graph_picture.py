"""What a picture of a planned graph shows and where: its steps in rows, one below the other. No drawing here, so that it can be tested.

A row is an input, a call, a layout rewrite, an output. Of a large graph, calls that follow one another in one layout share a row, so that
what is left are the places around rewrites; of a very large one, rows in the middle are left out. Rows stand in the order in which steps
run, and edges lead down: to the next row straight, to others in lanes beside the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import prod

from layoutproof.graph.model import Call, Value
from layoutproof.graph.planning.candidates import operator_name
from layoutproof.graph.planning.layouts import Layout, layout_of
from layoutproof.graph.scalars import number_of
from layoutproof.graph.witness import GraphRewrite
from layoutproof.ir.diagnostic import counted

MOST_ROWS = 56
_MOST_SINGLE = 24
"""Of a graph with more rows than that, calls share rows."""
_MOST_OPERATORS = 4


class Kind(StrEnum):
    """What a row stands for."""

    INPUT = "input"
    CALLS = "calls"
    REWRITE = "rewrite"
    OUTPUT = "output"
    GAP = "gap"


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its text, and the layout that it makes (None where there is none to speak of). `operators` are those of its calls."""

    kind: Kind
    text: str
    layout: Layout | None = None
    operators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """Something flows from a row to a later one, in a lane beside the rows; lane 0 leads from a row to the next."""

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
        """How many lanes there are beside the rows."""
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
    """A row for each input, call, rewrite in whatever many steps, and output."""
    graph = rewrite.new
    values = graph.by_name()

    def layout(value: str) -> Layout:
        place = rewrite.places[value]
        return layout_of(place.index_map, None if place.pad is None else number_of(place.pad))

    def old(value: str) -> str:
        return rewrite.places[value].value

    for value in graph.inputs:
        yield Row(Kind.INPUT, str(value), layout(value.name)), (), (value.name,)
    pending: list[Value] = []
    for number, step in enumerate(graph.steps):
        if isinstance(step, Call):
            made = step.results[0]
            operator = operator_name(step)
            yield (
                Row(Kind.CALLS, f"{operator}  {list(made.shape)}", layout(made.name), (operator,)),
                step.operands,
                tuple(value.name for value in step.results),
            )
            continue
        pending = [*(pending if pending else [values[step.operand]]), step.result]
        after = graph.steps[number + 1] if number + 1 < len(graph.steps) else None
        if after is None or isinstance(after, Call) or after.operand != step.result.name:
            first, last = pending[0], pending[-1]
            size = sum(prod(value.shape) * value.dtype.bytes for value in (first, last))
            text = f"{old(first.name)}: {name(layout(first.name))} to {name(layout(last.name))}, {size:,} bytes"
            yield Row(Kind.REWRITE, text, layout(last.name)), (first.name,), tuple(value.name for value in pending[1:])
            pending = []
    for output in graph.outputs:
        yield Row(Kind.OUTPUT, old(output), layout(output)), (output,), ()


def _joined(steps: Sequence[_Item]) -> list[_Item]:
    """Rows in which calls that follow one another and make one layout are one."""
    found: list[_Item] = []
    for row, used, made in steps:
        last = found[-1][0] if found else None
        if last is not None and last.kind is Kind.CALLS and row.kind is Kind.CALLS and last.layout == row.layout:
            operators = (*last.operators, *row.operators)
            joined = replace(last, text=_summary(operators), operators=operators)
            found[-1] = (joined, (*found[-1][1], *used), (*found[-1][2], *made))
        else:
            found.append((row, used, made))
    return found


def _summary(operators: Sequence[str]) -> str:
    common = Counter(operators).most_common()
    parts = [name if number == 1 else f"{name} x{number}" for name, number in common[:_MOST_OPERATORS]]
    return ", ".join([*parts, *(["…"] if len(common) > _MOST_OPERATORS else [])])


def _shortened(rows: Sequence[Row], pairs: Iterable[tuple[int, int]], most: int) -> tuple[list[Row], set[tuple[int, int]]]:
    """The first rows and the last ones, with one between them that stands for the others."""
    head, tail = most // 2, most - most // 2 - 1
    left_out = rows[head : len(rows) - tail]
    rewrites = sum(row.kind is Kind.REWRITE for row in left_out)
    gap = Row(Kind.GAP, f"{len(left_out)} rows more, {counted(rewrites, 'rewrite', 'rewrites')} among them")

    def moved(row: int) -> int:
        return row if row < head else head if row < len(rows) - tail else row - len(left_out) + 1

    shown = {(moved(start), moved(end)) for start, end in pairs}
    return [*rows[:head], gap, *rows[len(rows) - tail :]], {(start, end) for start, end in shown if start != end}


def _edges(pairs: Iterable[tuple[int, int]]) -> Iterator[Edge]:
    """Edges in lanes: two that pass one row have lanes of their own, short ones stand inside."""
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
    """The layouts that are shown, each with a number of its own, in the order in which they appear."""
    found = dict.fromkeys(row.layout for column in columns for row in column.rows if row.kind is Kind.CALLS and row.layout is not None)
    return {layout: number for number, layout in enumerate(found)}
