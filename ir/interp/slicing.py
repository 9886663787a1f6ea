"""Runs of only what chosen output cells depend on: the backward slice of a program too large to run in full.

From the last statement to the first, and again until nothing changes, the instances of each unit that can write a
needed cell are found, and all cells that they read become needed. Order and overwriting are ignored, so the slice is a
superset that is closed under reading: each needed cell sees exactly the writes of a full run, in the same order. What
the slice leaves out is not checked for faults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.interp.analysis import LoopChoice, Place, Selection, UnitChoice
from layoutproof.ir.interp.arguments import Arguments, Array, elements_of, states_of
from layoutproof.ir.interp.compiled import Compiled
from layoutproof.ir.interp.memory import Filling, bad_argument
from layoutproof.ir.interp.run import DEFAULT_LIMIT, Prepared, execute, prepare
from layoutproof.ir.interp.slice_cells import (
    Cells,
    Target,
    bounded_loops,
    cannot_slice,
    distinct,
    elements_touched,
    enumerate_points,
    start_boxes,
    unique_rows,
)
from layoutproof.ir.interp.slice_units import Access, Unit, by_loop, find_controls, take_apart
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.primfunc import Kept, PrimFunc
from layoutproof.ir.stmt import Allocate, Block, Evaluate, Stmt
from layoutproof.ir.visit import walk

Rows = npt.NDArray[np.int64]
CellNumbers = Mapping[str, Sequence[Sequence[int]]]

_PATIENCE = 12  # rounds before a memory that keeps growing is needed as a whole


@dataclass(frozen=True, slots=True)
class SliceResult:
    """The values of the chosen cells, by buffer name, in the order asked for, and their states (as `run.Result` has
    them, one row of lanes each); the iterations that ran for them.
    """

    values: Mapping[str, Array]
    states: Mapping[str, npt.NDArray[np.uint8]]
    iterations: int

    def __getitem__(self, name: str) -> Array:
        return self.values[name]


@dataclass(slots=True)
class _Slicer:
    body: Stmt
    cells: Cells
    units: list[Unit]
    names: dict[Place, tuple[str, ...]] = field(default_factory=dict)  # by unit: the loops it is selected by
    rows: dict[Place, Rows] = field(default_factory=dict)

    def settle(self) -> None:
        """Find the instances of every unit."""
        stale = {unit.place for unit in self.units}
        for round_ in range(1_000):
            changed: set[str] = set()
            for unit in reversed(self.units):
                if unit.place in stale:
                    stale.discard(unit.place)
                    changed |= self.visit(unit, round_ >= _PATIENCE)
                    stale |= {u.place for u in self.units if changed & self.written(u)}
            if not stale:
                return
        raise cannot_slice("it keeps growing")

    def written(self, unit: Unit) -> set[str]:
        """The memories that a unit writes."""
        return {self.cells.memories.of(a.buffer) for a in unit.writes}

    def visit(self, unit: Unit, impatient: bool) -> set[str]:
        """One unit's instances, and what they read; the memories of which more is needed now."""
        before = len(self.rows[unit.place]) if unit.place in self.rows else -1
        self.find_instances(unit)
        rows, names = self.rows[unit.place], self.names[unit.place]
        if len(rows) in (0, before):
            return set()
        changed: set[str] = set()
        for access in unit.reads:
            root = self.cells.memories.of(access.buffer)
            if root not in self.cells.memories.written:
                continue
            if impatient and before >= 0:
                new = self.cells.need_all(access.buffer)
            else:
                new = self.need(access, rows, names)
            changed |= {root} if new else set()
        return changed

    def need(self, access: Access, rows: Rows, names: tuple[str, ...]) -> bool:
        """Mark what an access reads in the given instances; whether that is more than before."""
        new = False
        for elements in elements_touched(self.cells, access, rows, names):
            new |= self.cells.need_all(access.buffer) if elements is None else self.cells.need(access.buffer, elements)
        return new

    def need_inputs(self) -> None:
        """Mark also what the instances read of memories that nothing writes; for a slice that has settled."""
        for unit in self.units:
            rows, names = self.rows[unit.place], self.names[unit.place]
            for access in unit.reads if len(rows) else ():
                if self.cells.memories.of(access.buffer) not in self.cells.memories.written:
                    self.need(access, rows, names)

    def find_instances(self, unit: Unit) -> None:
        """The values of its loops at which a unit can write a needed cell; of those loops only that tell anything."""
        outer = [loop.name for loop in unit.loops]
        choosing = [a.relevant() & bounded_loops(a, self.cells.symbols) for a in unit.writes]
        common = frozenset(outer).intersection(*choosing) if choosing else frozenset[str]()
        names = tuple(n for n in outer if n in common)
        parts: list[Rows] = []
        for access, wanted in zip(unit.writes, choosing, strict=True):
            target = Target(self.cells, access.buffer)
            if target.empty:
                continue
            points = enumerate_points(start_boxes(self.cells.symbols), access, wanted, target)
            parts.append(distinct(points, names))
        self.names[unit.place] = names
        self.rows[unit.place] = (
            unique_rows(np.concatenate(parts)) if parts else np.zeros((0, len(names)), dtype=np.int64)
        )

    def selection(self) -> Selection:
        """The loops' and units' choices that run these instances and few others."""
        loops: dict[Place, LoopChoice] = {}
        below = by_loop(self.units)
        depth = {
            place: next(loop for u in units for loop in u.loops if loop.place == place)
            for place, units in below.items()
        }
        for place, units in below.items():
            busy = [u for u in units if len(self.rows[u.place])]
            name = depth[place].name
            if any(name not in self.names[u.place] for u in busy):
                continue
            keys = self.keys(place, units[0], busy)
            rows = [self.columns(u, (*keys, name)) for u in busy]
            loops[place] = LoopChoice(keys, _grouped(unique_rows(np.concatenate(rows)) if rows else None))
        units_chosen: dict[Place, UnitChoice] = {}
        for unit in self.units:
            if unit.loops and all(len(below[loop.place]) == 1 for loop in unit.loops):
                continue
            units_chosen[unit.place] = UnitChoice(self.names[unit.place], _points(self.rows[unit.place]))
        controls = {place: self.control(place) for place in find_controls(self.body) if place not in units_chosen}
        return Selection(loops, units_chosen, controls)

    def control(self, place: Place) -> tuple[UnitChoice, ...]:
        """Where a statement that reads memory for control has a unit to run."""
        choices = []
        for unit in self.units:
            if len(unit.place) > len(place) and unit.place[: len(place)] == place:
                outside = {loop.name for loop in unit.loops if len(loop.place) < len(place)}
                names = tuple(n for n in self.names[unit.place] if n in outside)
                choices.append(UnitChoice(names, _points(unique_rows(self.columns(unit, names)))))
        return tuple(choices)

    def keys(self, place: Place, example: Unit, busy: list[Unit]) -> tuple[str, ...]:
        """The loops outside a loop by which every unit with instances is selected."""
        outside = [loop.name for loop in example.loops if len(loop.place) < len(place)]
        return tuple(n for n in outside if all(n in self.names[u.place] for u in busy))

    def columns(self, unit: Unit, names: tuple[str, ...]) -> Rows:
        """Some columns of a unit's instances."""
        return self.rows[unit.place][:, [self.names[unit.place].index(n) for n in names]]


def _points(rows: Rows) -> frozenset[tuple[int, ...]]:
    return frozenset(tuple(row) for row in rows.tolist())


def _grouped(rows: Rows | None) -> dict[tuple[int, ...], tuple[int, ...]]:
    """The last column's values by the other columns; the rows are in order."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for *key, value in rows.tolist() if rows is not None else ():
        groups.setdefault(tuple(key), []).append(value)
    return {key: tuple(values) for key, values in groups.items()}


def run_slice(
    func: PrimFunc,
    arguments: Arguments,
    cells: CellNumbers,
    *,
    filling: Filling | None = None,
    limit: int = DEFAULT_LIMIT,
) -> SliceResult:
    """The values that a full run would leave in chosen cells of parameters: `cells` gives index tuples by buffer name.

    Runs only what those cells depend on. Raises Fault for faults in that part, LayoutproofError for cells that do not
    exist and programs whose slice cannot be found.
    """
    prepared = prepare(func, arguments, filling=filling)
    known = _slice_of(prepared, cells)
    partial = replace(prepared, facts=replace(prepared.facts, selection=known.selection))
    iterations = execute(partial, limit, programs=known.programs)
    values = {name: _values(prepared, name, elements) for name, elements in known.places.items()}
    return SliceResult(
        values, {name: _states(prepared, name, elements) for name, elements in known.places.items()}, iterations
    )


@dataclass(frozen=True, slots=True)
class _Slice:
    """What runs for chosen cells, their element numbers, and the programs generated for it, by binding."""

    selection: Selection
    places: Mapping[str, npt.NDArray[np.int64]]
    programs: dict[tuple[object, ...], Compiled]


_SLICES: Kept[_Slice] = Kept(8)


def _slice_of(prepared: Prepared, cells: CellNumbers) -> _Slice:
    """The slice of chosen cells: it is the same whatever the data."""
    facts = prepared.facts
    chosen = tuple((name, tuple(map(tuple, at))) for name, at in cells.items())
    key = (tuple(sorted(facts.symbols.items())), tuple(sorted(facts.sizes.items())), facts.memories.arbitrary, chosen)

    def make() -> _Slice:
        slicer, places = _settled(prepared, cells)
        return _Slice(slicer.selection(), places, {})

    return _SLICES.get(prepared.func, key, make)


def slice_inputs(func: PrimFunc, arguments: Arguments, cells: CellNumbers) -> dict[str, npt.NDArray[np.int64]]:
    """The elements of parameters, by buffer name and counted from the start of their memory, on whose content before a
    run chosen cells may depend: a superset. Nothing is run. Raises LayoutproofError, as `run_slice` does.
    """
    prepared = prepare(func, arguments)
    slicer, _ = _settled(prepared, cells)
    slicer.need_inputs()
    return {buffer.name: np.flatnonzero(slicer.cells.needed(buffer)) for buffer in func.buffers}


def _settled(prepared: Prepared, cells: CellNumbers) -> tuple[_Slicer, dict[str, npt.NDArray[np.int64]]]:
    """The slice of chosen cells, and their element numbers.

    Raises LayoutproofError for a program with an opaque call as a statement, which may write anything.
    """
    body = prepared.func.body
    for node in walk(body):
        if isinstance(node, Evaluate) and isinstance(node.value, OpaqueCall):
            raise cannot_slice(f"the call of {node.value.function} may touch anything")
    slicer = _Slicer(body, _needed_cells(prepared), take_apart(body))
    places = {name: _mark(prepared, slicer.cells, name, chosen) for name, chosen in cells.items()}
    slicer.settle()
    return slicer, places


def _needed_cells(prepared: Prepared) -> Cells:
    """No cell of any memory, to begin with."""
    memories, symbols = prepared.facts.memories, prepared.facts.symbols
    cells = Cells(memories, symbols, {})
    for root, storage in prepared.storages.items():
        cells.bits[root] = np.zeros(storage.size // storage.unit, dtype=np.bool_)
    for buffer in _allocated(prepared.func):
        root = memories.of(buffer)
        size = max(cells.shape(buffer).elements, 0) * cells.units_of(buffer)
        if root not in cells.bits or len(cells.bits[root]) < size:
            cells.bits[root] = np.zeros(size, dtype=np.bool_)
    return cells


def _allocated(func: PrimFunc) -> list[Buffer]:
    found: list[Buffer] = []
    for node in walk(func.body):
        match node:
            case Allocate():
                found.append(node.buffer)
            case Block():
                found += node.alloc_buffers
            case _:
                pass
    return found


def _parameter(prepared: Prepared, name: str) -> Buffer:
    buffer = next((b for b in prepared.func.buffers if b.name == name), None)
    if buffer is None:
        raise bad_argument(f"{prepared.func.name} has no parameter {name}")
    return buffer


def _values(prepared: Prepared, name: str, elements: npt.NDArray[np.int64]) -> Array:
    """What some elements of a parameter hold now, lanes last."""
    buffer = _parameter(prepared, name)
    found = elements_of(buffer, prepared.storages[prepared.facts.memories.of(buffer)])[elements]
    return found if buffer.dtype.lanes > 1 else found[:, 0]


def _states(prepared: Prepared, name: str, elements: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """The states of some elements of a parameter now."""
    buffer = _parameter(prepared, name)
    return states_of(buffer, prepared.storages[prepared.facts.memories.of(buffer)], elements)


def _mark(prepared: Prepared, cells: Cells, name: str, chosen: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    """Mark the chosen cells of a parameter; their element numbers."""
    buffer = _parameter(prepared, name)
    shape = cells.shape(buffer)
    rows = np.asarray(chosen, dtype=np.int64).reshape(len(chosen), buffer.rank)
    inside = (rows >= 0) & (rows < np.asarray(shape.extents, dtype=np.int64))
    if not bool(inside.all()):
        wrong = tuple(int(i) for i in rows[np.flatnonzero(~inside.all(axis=1))[0]])
        raise bad_argument(f"{name} has the shape {list(shape.extents)}, and no cell {list(wrong)}")
    elements = np.full(len(rows), shape.offset, dtype=np.int64)
    for axis, stride in enumerate(shape.strides):
        elements += rows[:, axis] * stride
    cells.need(buffer, elements)
    return elements
