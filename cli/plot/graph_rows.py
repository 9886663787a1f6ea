"""The contents of a picture of a planned graph, without drawing, so that it can be tested.

A row is an input, a call, a layout rewrite or an output. In a large graph, consecutive calls in one layout share a row,
so that the surroundings of rewrites remain, and rows that are repeated are shown once; in a very large one, rows in the
middle are left out. Rows are in the order of execution; edges lead down, to the next row straight, to others in lanes
beside the rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from layoutproof.cli.output import bytes_text
from layoutproof.cli.plan.plan_result import layout_in, moves_in, with_operator
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
class Fold:
    """Rows from `start` up to, but not including, `end` stand for so many repetitions of themselves."""

    start: int
    end: int
    times: int


@dataclass(frozen=True, slots=True)
class Column:
    """One graph: its title, rows from top to bottom, edges, and which rows stand for repetitions."""

    title: str
    rows: tuple[Row, ...]
    edges: tuple[Edge, ...]
    folds: tuple[Fold, ...] = ()

    @property
    def lanes(self) -> int:
        """The number of lanes beside the rows."""
        return max((edge.lane for edge in self.edges), default=0)


def column_of(rewrite: GraphRewrite, title: str, name: Callable[[Layout], str], most: int = MOST_ROWS) -> Column:
    """A graph with its witness as rows and edges, at most `most` rows."""
    steps, folds = list(_steps(rewrite, name)), list[Fold]()
    if len(steps) > _MOST_SINGLE:
        steps, folds = _folded(_joined(steps))
    rows = [row for row, _, _ in steps]
    makers = {value: number for number, (_, _, made) in enumerate(steps) for value in made}
    pairs = {(makers[value], number) for number, (_, used, _) in enumerate(steps) for value in used if value in makers}
    # What a repetition hands to the next one leads back to its first row, and is not drawn.
    pairs = {(start, end) for start, end in pairs if start < end}
    if len(rows) > most:
        rows, pairs, folds = _shortened(rows, pairs, folds, most)
    return Column(title, tuple(rows), tuple(_edges(pairs)), tuple(folds))


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


def _folded(steps: Sequence[_Item]) -> tuple[list[_Item], list[Fold]]:
    """Rows with each run of repetitions replaced by its first one, which then makes and uses what all of them do."""
    keys = [_key(row) for row, _, _ in steps]
    found: list[_Item] = []
    folds: list[Fold] = []
    start = 0
    while start < len(steps):
        length, times = _repetition(keys, start)
        group = [steps[start + number : start + length * times : length] for number in range(length)]
        if times > 1:
            folds.append(Fold(len(found), len(found) + length, times))
        for items in group:
            used = tuple(value for _, values, _ in items for value in values)
            made = tuple(value for _, _, values in items for value in values)
            found.append((_common([row for row, _, _ in items]), used, made))
        start += length * times
    return found, folds


def _key(row: Row) -> tuple[object, ...]:
    """What repetitions have in common: sizes and the numbers of operators aside."""
    what = row.operators or _without_numbers(row.text)
    return row.kind, what, None if row.layout is not None and is_plain(row.layout) else row.layout


def _without_numbers(text: str) -> str:
    return re.sub(r"_\d+\b", "", text).rpartition(", ")[0] or text


def _repetition(keys: Sequence[object], start: int) -> tuple[int, int]:
    """The length of the rows that are repeated from here on, and how often they occur; of several the most rows."""
    best, saved = (1, 1), 1
    for length in range(1, (len(keys) - start) // 2 + 1):
        times = 1
        while keys[start + length * times :][:length] == keys[start : start + length]:
            times += 1
        if length * (times - 1) > saved:
            best, saved = (length, times), length * (times - 1)
    return best


def _common(rows: Sequence[Row]) -> Row:
    """One row for several of one key."""
    first = rows[0]
    if all(row.text == first.text for row in rows):
        return first
    return replace(first, text=_summary(first.operators) if first.operators else _without_numbers(first.text))


def _shortened(
    rows: Sequence[Row], pairs: Iterable[tuple[int, int]], folds: Iterable[Fold], most: int
) -> tuple[list[Row], set[tuple[int, int]], list[Fold]]:
    """The first and the last rows, with one between them for the others."""
    head, tail = most // 2, most - most // 2 - 1
    end = len(rows) - tail
    left_out = rows[head:end]
    rewrites = sum(row.kind is Kind.REWRITE for row in left_out)
    gap = Row(Kind.GAP, f"{len(left_out)} rows more, {counted(rewrites, 'rewrite', 'rewrites')} among them")

    def moved(row: int) -> int:
        return row if row < head else head if row < end else row - len(left_out) + 1

    shown = {(moved(start), moved(last)) for start, last in pairs}
    kept = [
        Fold(moved(fold.start), moved(fold.end - 1) + 1, fold.times)
        for fold in folds
        if fold.end <= head or fold.start >= end
    ]
    return [*rows[:head], gap, *rows[end:]], {(start, last) for start, last in shown if start != last}, kept


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
