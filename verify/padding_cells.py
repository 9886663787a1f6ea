"""Which cells are padding that nobody may touch, as questions about the instances of an access.

A record keeps, for each layout step, the index map and the contract of the padding that the step introduced. A cell is forbidden when
a step without a contract introduced it: it comes from a cell of that step's box that the step's map does not reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.index_map import IndexMap, retype
from layoutproof.ir.layout_record import Cell, LayoutRecord
from layoutproof.ir.stmt import ForKind
from layoutproof.ir.visit import free_variables
from layoutproof.verify.facts import Facts
from layoutproof.verify.instances import Dim, Scene
from layoutproof.verify.integers import at_least, below, same
from layoutproof.verify.map_report import report_on
from layoutproof.verify.search import Cover, Search, nothing
from layoutproof.verify.verdict import Status


def has_forbidden(record: LayoutRecord) -> bool:
    """Whether some step introduced padding without a contract (if it introduced any)."""
    return any(step.padding is Cell.PAD_FORBIDDEN for step in record.steps)


def record_shape(record: LayoutRecord, symbols: Sequence[Var]) -> tuple[Expr, ...]:
    """The last box, as expressions over the symbols."""
    return _shape(record.shape, symbols)


def padding_covers(facts: Facts, scene: Scene, cell: Sequence[Expr], record: LayoutRecord, padding: Cell) -> Iterator[Cover]:
    """The instances whose `cell` is padding of one kind, one cover for each step that introduced such padding."""
    for _, inside, conditions, cover in _steps(facts, scene, cell, record, padding):
        yield Cover(inside, tuple(conditions), (cover,))


def find_forbidden(facts: Facts, scene: Scene, cell: Sequence[Expr], record: LayoutRecord) -> Search:
    """An instance of the scene whose `cell`, an index of the record's last box, is padding without a contract."""
    engine = "structure"
    for number, inside, conditions, cover in _steps(facts, scene, cell, record, Cell.PAD_FORBIDDEN):
        found = facts.model.uncovered(inside, [cover], *conditions)
        if not found.is_empty and found.point is None and _is_onto(record, number):
            found = nothing("structure")
        if not found.is_empty:
            return found
        engine = found.engine
    return nothing(engine)


def _is_onto(record: LayoutRecord, number: int) -> bool:
    """Whether a step's map certainly reaches every cell of its box, so that the step introduced no padding: a swizzle, say, of which
    integer sets make heavy weather.
    """
    step = record.steps[number]
    before = record.steps[number - 1].shape if number > 0 else record.logical_shape
    return _reaches_all(step.index_map, before, step.shape)


@lru_cache(maxsize=64)
def _reaches_all(index_map: IndexMap, shape: tuple[Expr, ...], box: tuple[Expr, ...]) -> bool:
    names = {v.name for v in (*index_map.inputs, *(v for extent in shape for v in free_variables(extent)))}
    if any(v.name not in names for output in index_map.outputs for v in free_variables(output)):
        return False  # a symbol that is no extent may be negative
    try:
        return report_on(index_map, shape, physical_shape=box).bijective.status is Status.PROVED
    except LayoutproofError:
        # What is wrong with the record is said where records are checked.
        return False


def _steps(
    facts: Facts, scene: Scene, cell: Sequence[Expr], record: LayoutRecord, padding: Cell
) -> Iterator[tuple[int, Scene, Sequence[Expr], Cover]]:
    """For each step that introduced this kind of padding: its number, the instances with the cell of its box, how that comes to be
    `cell`, and which it reaches.
    """
    symbols = facts.program.symbols
    record.check_names(v.name for v in symbols)
    maps = [step.index_map for step in record.steps]
    boxes = [_shape(record.logical_shape, symbols), *(_shape(step.shape, symbols) for step in record.steps)]
    for number, step in enumerate(record.steps):
        if step.padding is not padding:
            continue
        inside, target = scene, list(cell)
        # What lies outside the box is no padding; that nothing does is an obligation of its own.
        conditions = [c for part, extent in zip(cell, boxes[-1], strict=True) for c in (at_least(part, 0), below(part, extent))]
        last = number + 1 == len(record.steps)
        if not last or padding is not Cell.PAD_FORBIDDEN:
            # The cell of this step's box from which later steps made the one that is touched.
            inside, target = _with_index(scene, boxes[number + 1], f"box{number}'")
            conditions += [same(a, b) for a, b in zip(cell, _through(maps[number + 1 :], target), strict=True)]
        reached, source = _with_index(inside, boxes[number], "from'")
        cover = [same(a, b) for a, b in zip(target, _through(maps[number : number + 1], source), strict=True)]
        yield number, inside, conditions, Cover(reached, tuple(cover))


def _through(maps: Sequence[IndexMap], index: Sequence[Expr]) -> Sequence[Expr]:
    for index_map in maps:
        index = index_map.map_indices(index)
    return index


def _with_index(scene: Scene, shape: Sequence[Expr], name: str) -> tuple[Scene, list[Expr]]:
    """The scene with one more coordinate for each axis of a box."""
    dims = [Dim(Var(f"{name}{axis}", extent.dtype), const(0, extent.dtype), extent, ForKind.SERIAL) for axis, extent in enumerate(shape)]
    return replace(scene, dims=(*scene.dims, *dims)), [dim.var for dim in dims]


def _shape(shape: Sequence[Expr], symbols: Sequence[Var]) -> tuple[Expr, ...]:
    types = {v.name: v.dtype for v in symbols}
    return tuple(retype(extent, types) for extent in shape)
