"""What a layout rewrite costs: the bytes that it moves, a table of measured times from a JSON or CSV file, or a
measurement on this machine.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model.graph import Graph, Shape, Value
from layoutproof.graph.model.graph_run import Mover, run_graph
from layoutproof.graph.planning.apply import rewriting
from layoutproof.graph.planning.array_layouts import Layout, bare, layout_of, map_of_layout, pad_of, stored_bytes
from layoutproof.graph.tuning.kernels import Kernels
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.verify.certificate.sealed_files import write_whole_files

CostOf = Callable[[Value, Layout, Layout], int]
"""The cost of rewriting a value from one layout to another: a number that is not below zero, of any unit, but one for
all.
"""


@dataclass(frozen=True, slots=True)
class Move:
    """A rewrite without the name of the value: arrays of one shape and type cost the same."""

    shape: Shape
    dtype: DType
    source: Layout
    target: Layout

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}] from `{self.source}` to `{self.target}`"


def bytes_moved(value: Value, source: Layout, target: Layout) -> int:
    """The bytes that a rewrite reads and writes, padding included."""
    return stored_bytes(value, source) + stored_bytes(value, target)


def from_table(table: Mapping[Move, int]) -> CostOf:
    """The costs of a table. Raises LayoutproofError for a rewrite without a cost, or one less than 0."""

    def cost(value: Value, source: Layout, target: Layout) -> int:
        move = Move(value.shape, value.dtype, source, target)
        found = table.get(move)
        if found is None or found < 0:
            what = "has no cost" if found is None else "costs less than nothing"
            help = (
                "`moves_of` names every rewrite that a plan may need, `measured` times them; on the command line "
                "--measure does"
            )
            raise error(
                codes.COST_TABLE, f"the rewrite of {value.name}, {move}, {what} in the table of costs", help=help
            )
        return found

    return cost


def moves_of(costs: Iterable[tuple[str, Layout, Layout]], values: Mapping[str, Value]) -> tuple[Move, ...]:
    """The distinct rewrites among those that a problem has costs for."""
    found = (Move(values[name].shape, values[name].dtype, source, target) for name, source, target in costs)
    return tuple(dict.fromkeys(found))


def measured(move: Move, steps: Graph, mover: Mover, *, repeats: int = 5) -> int:
    """The least time of some runs of a rewrite, in nanoseconds; `steps` is the graph of its layout operators."""
    (value,) = steps.inputs
    arrays = {value.name: np.zeros(value.shape, numpy_dtype(move.dtype))}
    best = None
    for _ in range(repeats):
        start = perf_counter_ns()
        run_graph(steps, arrays, mover=mover)
        taken = perf_counter_ns() - start
        best = taken if best is None else min(best, taken)
    assert best is not None  # it was run at least once
    return best


FORMAT = "layoutproof-costs"
VERSION = 1
_FIELDS = ("dtype", "shape", "from", "to", "cost")


def save_costs(table: Mapping[Move, int], path: str | Path, *, unit: str = "ns") -> None:
    """Write a table as CSV or JSON by the path's ending, whole or not at all. Raises LayoutproofError on failure."""
    write_whole_files({Path(path): costs_text(table, Path(path), unit=unit).encode()}, codes.COST_TABLE)


def costs_text(table: Mapping[Move, int], path: Path, *, unit: str = "ns") -> str:
    """The text of a table, sorted: equal tables have equal texts. Raises LayoutproofError for another ending."""
    rows = [(str(m.dtype), m.shape, m.source, m.target, cost) for m, cost in table.items()]
    rows.sort()
    if _is_csv(path):
        into = io.StringIO()
        writer = csv.writer(into, lineterminator="\n")
        writer.writerow(_FIELDS)
        writer.writerows(
            [dtype, "x".join(map(str, shape)), source, target, cost] for dtype, shape, source, target, cost in rows
        )
        return into.getvalue()
    entries = [json.dumps(dict(zip(_FIELDS, (dtype, list(shape), *rest), strict=True))) for dtype, shape, *rest in rows]
    head = f'"format": "{FORMAT}",\n "version": {VERSION},\n "unit": {json.dumps(unit)},\n "rewrites": ['
    return f"{{{head}\n  {f',{chr(10)}  '.join(entries)}\n ]\n}}\n" if entries else f"{{{head}]\n}}\n"


def load_costs(path: str | Path) -> dict[Move, int]:
    """The table of a file. Raises LayoutproofError with the line or entry and what it should be."""
    name, is_csv = str(path), _is_csv(Path(path))
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise error(codes.COST_TABLE, f"{name} cannot be read: {problem.strerror or problem}") from problem
    except ValueError as problem:
        raise error(codes.COST_TABLE, f"{name} cannot be read: it is not text in UTF-8") from problem
    table: dict[Move, int] = {}
    for place, entry in _lines(name, text) if is_csv else _entries(name, text):
        move, cost = _move(place, entry), _cost(place, entry)
        if table.get(move, cost) != cost:
            raise error(codes.COST_TABLE, f"{place}: the rewrite of {move} has two costs, {table[move]} and {cost}")
        table[move] = cost
    return table


def check_costs_path(path: Path) -> None:
    """Raise LayoutproofError for a path that ends in neither of the forms."""
    _is_csv(path)


def _is_csv(path: Path) -> bool:
    ending = path.suffix.lower()
    if ending not in (".csv", ".json"):
        raise error(codes.COST_TABLE, f"{path}: a table of costs is a file that ends in .json or .csv")
    return ending == ".csv"


def _lines(name: str, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.reader(io.StringIO(text), strict=True)
    try:
        head = next(reader, [])
        if tuple(word.strip() for word in head) != _FIELDS:
            raise error(codes.COST_TABLE, f"{name}, line 1: expected {','.join(_FIELDS)}")
        for row in reader:
            place = f"{name}, line {reader.line_num}"
            if not row:
                continue
            if len(row) != len(_FIELDS):
                raise error(
                    codes.COST_TABLE,
                    f"{place}: expected {len(_FIELDS)} fields, {','.join(_FIELDS)}, got {len(row)}",
                )
            entry: dict[str, Any] = dict(zip(_FIELDS, (word.strip() for word in row), strict=True))
            entry["shape"] = [_integer(word) for word in entry["shape"].split("x")] if entry["shape"] else []
            yield place, {**entry, "cost": _integer(entry["cost"])}
    except csv.Error as problem:
        raise error(codes.COST_TABLE, f"{name}, line {reader.line_num}: {problem}") from problem


def _integer(word: str) -> int | str:
    """The number that a word is; the word itself, which nothing takes for a number, where it is none."""
    return int(word) if word.isascii() and word.isdigit() and len(word) < 20 else word


def _entries(name: str, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as problem:
        raise error(
            codes.COST_TABLE, f"{name}, line {problem.lineno}, column {problem.colno}: no JSON: {problem.msg}"
        ) from problem
    except (RecursionError, ValueError) as problem:
        raise error(codes.COST_TABLE, f"{name}: this is no table of costs") from problem
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise error(codes.COST_TABLE, f'{name}: expected an object with "format": "{FORMAT}"')
    if found.get("version") != VERSION:
        raise error(codes.COST_TABLE, f'{name}: its "version" is {found.get("version")!r}, this tool reads {VERSION}')
    rewrites = found.get("rewrites")
    if not isinstance(rewrites, list):
        raise error(codes.COST_TABLE, f'{name}: expected "rewrites", a list')
    for number, entry in enumerate(rewrites):
        place = f"{name}: rewrites[{number}]"
        if not isinstance(entry, dict):
            raise error(codes.COST_TABLE, f"{place}: expected an object with {', '.join(_FIELDS)}")
        wrong = next((field for field in (*_FIELDS, *entry) if (field in entry) is not (field in _FIELDS)), None)
        if wrong is not None:
            raise error(
                codes.COST_TABLE,
                f"{place}: {'no' if wrong in _FIELDS else 'an unknown'} field {wrong!r}; it has {', '.join(_FIELDS)}",
            )
        yield place, entry


def _move(place: str, entry: Mapping[str, Any]) -> Move:
    shape = entry["shape"]
    if not isinstance(shape, list) or not all(_is_integer(extent) and extent > 0 for extent in shape):
        raise error(codes.COST_TABLE, f"{place}: shape: expected extents of at least 1, got {shape!r}")
    try:
        dtype = DType.parse(entry["dtype"] if isinstance(entry["dtype"], str) else "")
    except ValueError as problem:
        raise error(
            codes.COST_TABLE, f"{place}: dtype: expected one such as float32, got {entry['dtype']!r}"
        ) from problem
    return Move(
        tuple(shape), dtype, *(_layout(f"{place}: {field}", entry[field], tuple(shape)) for field in ("from", "to"))
    )


def _layout(place: str, text: Any, shape: Shape) -> Layout:
    if not isinstance(text, str):
        raise error(codes.COST_TABLE, f"{place}: expected a lambda, got {text!r}")
    try:
        index_map, pad = map_of_layout(bare(text)), pad_of(text)
    except (LayoutproofError, ValueError) as problem:
        why = (
            problem.diagnostics[0].message
            if isinstance(problem, LayoutproofError)
            else "what its padding holds is no number"
        )
        raise error(codes.COST_TABLE, f"{place}: {text!r} is no layout: {why}") from problem
    if len(index_map.inputs) != len(shape):
        raise error(
            codes.COST_TABLE,
            f"{place}: {text!r} takes {len(index_map.inputs)} indices, the shape has {len(shape)} axes",
        )
    return layout_of(index_map, pad)


def _cost(place: str, entry: Mapping[str, Any]) -> int:
    cost = entry["cost"]
    if not _is_integer(cost) or cost < 0:
        raise error(codes.COST_TABLE, f"{place}: cost: expected a whole number that is not below zero, got {cost!r}")
    return int(cost)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class MeasuredCosts:
    """Costs for `plan`: those of a table, and what is not in it is measured with generated kernels, in nanoseconds, and
    kept in `table`.

    Without `measures` nothing is measured; what the table lacks is then refused.
    """

    def __init__(self, table: Mapping[Move, int] | None = None, *, measures: bool = True) -> None:
        self.table = dict(table) if table is not None else {}
        self.measured = 0
        self.measures = measures
        self._known = from_table(self.table)
        self._kernels = Kernels()

    def __call__(self, value: Value, source: Layout, target: Layout) -> int:
        """The cost of a rewrite. Raises LayoutproofError where there is none, or its kernel cannot be built."""
        move = Move(value.shape, value.dtype, source, target)
        if self.measures and move not in self.table:
            self.table[move] = measured(move, rewriting(value, source, target), self._kernels.move)
            self.measured += 1
        return self._known(value, source, target)
