"""Which memory of the old program is which of the new one, and when two accesses touch the same cell of them.

Between two steps of the walk every cell that the old program may read holds, in the new program, the same value in the cell that it
became. Where a memory has a cell map, all accesses go through the shape that the map starts from; elsewhere bytes keep their
places, whatever view they are seen through. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import INT8
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import ForKind
from layoutproof.ir.visit import free_variables
from layoutproof.verify.abstraction import Inexpressible, in_lane
from layoutproof.verify.cells import element_number
from layoutproof.verify.instances import Dim, Scene
from layoutproof.verify.integers import same
from layoutproof.verify.lockstep.asking import Asking
from layoutproof.verify.lockstep.refusal import Mismatch
from layoutproof.verify.lockstep.scenes import Env, reads_nothing, say, shared_name
from layoutproof.verify.lockstep.sides import Side


@dataclass(frozen=True, slots=True)
class Cells:
    """A place of an access over the shared names: its view and indices."""

    buffer: Buffer
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Relaid:
    """A memory whose cells moved: the buffers that it came into being with, and the map between their indices."""

    before: Buffer
    after: Buffer
    cells: IndexMap


def _check_apart(names: Mapping[Var, Var]) -> None:
    if len(set(names.values())) != len(names):
        raise Mismatch("two memories of the old program become one")


@dataclass(slots=True)
class Memories:
    """The pairing. `relaid` is by the old memory. Temporaries that the new program never loads from make no difference, whatever they
    hold: `free` are those of the new program, `missed` those of the old one that became them or are gone.
    """

    old: Side
    new: Side
    asking: Asking
    names: dict[Var, Var]
    relaid: dict[Var, Relaid]
    free: frozenset[Var] = frozenset()
    missed: frozenset[Var] = frozenset()
    fresh: Iterator[int] = field(default_factory=count)
    _back: dict[Var, Var] = field(default_factory=dict)

    @staticmethod
    def of(rewrite: Rewrite, old: Side, new: Side, asking: Asking) -> Memories:
        """Raises Mismatch where a cell map speaks of memory that is not there, and where something keeps cells from moving."""
        names: dict[Var, Var] = {}
        relaid: dict[Var, Relaid] = {}
        for cells in rewrite.witness.cells:
            before, after = _born(old, cells.old_data), _born(new, cells.new_data)
            if before is None or after is None or before.data in names:
                raise Mismatch(f"the cells of {cells.old_data} have no place that can be told")
            names[before.data] = after.data
            relaid[before.data] = Relaid(before, after, cells.cells)
        for buffer in old.facts.program.buffers:
            names.setdefault(buffer.data, buffer.data)
        _check_apart(names)
        found = Memories(old, new, asking, names, relaid)
        found._back = {b: a for a, b in names.items()}
        found._check_moves()
        found._find_unread()
        return found

    def _check_moves(self) -> None:
        calls = any(side.touched(side.func.body).calls for side in (self.old, self.new))
        for data, relaid in self.relaid.items():
            if calls:
                raise Mismatch(f"{relaid.before.name} is stored differently, and a call that nobody looks into may see it")
            if data in self.old.parameters and len(self.old.parameters) > 1 and not self.new.apart:
                raise Mismatch(f"{relaid.before.name} is stored differently, and parameters may overlap")
            for buffer in (relaid.before, relaid.after):
                if buffer.strides or buffer.elem_offset != const(0, buffer.elem_offset.dtype):
                    raise Mismatch(f"{buffer.name} has strides or an offset, and is stored differently")
            symbols = set(self.old.facts.program.symbols)
            if any(v not in symbols for b in (relaid.before, relaid.after) for e in b.shape for v in free_variables(e)):
                raise Mismatch(f"{relaid.before.name} is stored differently, and its shape changes in the course of the program")
            if relaid.before.dtype != relaid.after.dtype or len(relaid.cells.inputs) != relaid.before.rank:
                raise Mismatch(f"the cell map of {relaid.before.name} does not fit it")
            if (data in self.old.parameters) != (relaid.after.data in self.new.parameters) or (
                data in self.old.parameters and data != relaid.after.data
            ):
                raise Mismatch(f"the cells of {relaid.before.name} became those of {relaid.after.name}")
        if len(self.old.func.buffers) != len(self.new.func.buffers):
            raise Mismatch("the parameters differ")
        for before, after in zip(self.old.func.buffers, self.new.func.buffers, strict=True):
            moved = before.data in self.relaid
            if not moved and _box(before) != _box(after):
                raise Mismatch(f"the parameter {before.name} has another shape, and no cell map says where its cells went")

    def _find_unread(self) -> None:
        """Temporaries that the new program never loads from, and those of the old one that became them."""
        touched = self.new.touched(self.new.func.body)
        if touched.calls or self.old.touched(self.old.func.body).calls:
            return
        born = {b.data for b in self.new.facts.program.buffers}
        self.free = frozenset(born - self.new.parameters - touched.reads)
        there = born | touched.reads | touched.writes
        self.missed = frozenset(a for a, b in self.names.items() if a not in self.old.parameters and (b in self.free or b not in there))

    def is_harmless(self, data: Var) -> bool:
        """Whether nothing that the old program has can be told from what a memory of the new one holds."""
        return data in self.free or (self.was(data) is None and data not in self.new.parameters)

    def became(self, data: Var) -> Var:
        """The new memory for an old one."""
        return self.names.get(data, data)

    def was(self, data: Var) -> Var | None:
        """The old memory for a new one; None for one that only the new program has."""
        return self._back.get(data)

    # -- cells ------------------------------------------------------------------------------------------------------------

    def is_same_cell(self, old: Cells, new: Cells, scene: Scene, *, plainly: bool = False) -> bool:
        """Whether the new access touches the cells that those of the old one became, lane by lane, at every instance. `plainly`: as
        they are written, no engine asked.
        """
        data = self.old.root(old.buffer)
        if self.became(data) != self.new.root(new.buffer) or not same_element(old.buffer, new.buffer):
            return False
        if not all(reads_nothing(e) for c in (old, new) for e in (*c.buffer.shape, *c.buffer.strides, c.buffer.elem_offset)):
            return False
        relaid = self.relaid.get(data)
        if relaid is None and _box(old.buffer)[1:] == _box(new.buffer)[1:]:
            if old.indices == new.indices:
                return True
        elif relaid is not None and _box(old.buffer) != _box(relaid.before):
            return False
        lanes = {index.dtype.lanes for c in (old, new) for index in c.indices[-1:]}
        if len(lanes) > 1:
            return False
        if lanes and lanes != {1}:
            try:
                old, new, scene = self._in_lane(old, new, scene, lanes.pop())
            except Inexpressible:
                return False
        if relaid is not None:
            old = Cells(relaid.after, relaid.cells.map_indices(old.indices))
        if plainly:
            return _box(old.buffer)[1:] == _box(new.buffer)[1:] and old.indices == new.indices
        return self._is_one_place(old, new, scene)

    def _is_one_place(self, a: Cells, b: Cells, scene: Scene) -> bool:
        """Whether two accesses without lanes, of elements of one size, count to the same element of their memory."""
        if _box(a.buffer)[1:] == _box(b.buffer)[1:]:
            if all(self.asking.equal(scene, x, y) for x, y in zip(a.indices, b.indices, strict=True)):
                return True
        return self.asking.equal(scene, element_number(a.buffer, a.indices), element_number(b.buffer, b.indices))

    def is_one_cell(self, a: Cells, b: Cells, scene: Scene) -> bool:
        """Whether two accesses of the old program touch one cell."""
        if self.old.root(a.buffer) != self.old.root(b.buffer) or a.buffer.dtype != b.buffer.dtype:
            return False
        plain = all(i.dtype.lanes == 1 for c in (a, b) for i in c.indices)
        return plain and self._is_one_place(a, b, scene)

    def _in_lane(self, old: Cells, new: Cells, scene: Scene, lanes: int) -> tuple[Cells, Cells, Scene]:
        dtype = old.indices[-1].dtype.element
        lane = Var(shared_name("lane", scene, self.old.facts), dtype)
        inside = scene.inside(Dim(lane, const(0, dtype), const(lanes, dtype), ForKind.SERIAL, lane=True))

        def one(cells: Cells) -> Cells:
            return Cells(cells.buffer, (*cells.indices[:-1], in_lane(cells.indices[-1], lane)))

        return one(old), one(new), inside

    def outside_image(self, new: Cells, scene: Scene) -> bool:
        """Whether the new access certainly touches no cell that a cell of the old program became."""
        data = self.was(self.new.root(new.buffer))
        relaid = self.relaid.get(data) if data is not None else None
        if relaid is None or new.buffer.dtype != relaid.after.dtype or any(i.dtype.lanes != 1 for i in new.indices):
            return False
        inside, cell = over_cells(relaid.before, scene, "cell'")
        image = Cells(relaid.after, relaid.cells.map_indices(cell))
        return self.asking.never(inside, *meeting(image, new))


def meeting(a: Cells, b: Cells) -> Sequence[Expr]:
    """That two accesses of one memory touch one cell, as conditions."""
    if _box(a.buffer)[1:] == _box(b.buffer)[1:]:
        return [same(x, y) for x, y in zip(a.indices, b.indices, strict=True)]
    return [same(element_number(a.buffer, a.indices), element_number(b.buffer, b.indices))]


def over_cells(buffer: Buffer, scene: Scene, name: str) -> tuple[Scene, tuple[Var, ...]]:
    """The scene with one more coordinate for each axis of a buffer, over all its cells."""
    found: list[Var] = []
    for axis, extent in enumerate(buffer.shape):
        variable = Var(f"{name}{axis}", extent.dtype)
        scene = scene.inside(Dim(variable, const(0, extent.dtype), extent, ForKind.SERIAL))
        found.append(variable)
    return scene, tuple(found)


def same_element(old: Buffer, new: Buffer) -> bool:
    """Whether elements are of one type, or truth values that are stored as bytes now."""
    return old.dtype == new.dtype or (old.dtype.is_bool and new.dtype == INT8.with_lanes(old.dtype.lanes))


def _born(side: Side, name: str) -> Buffer | None:
    return next((buffer for buffer in side.facts.program.buffers if buffer.data.name == name), None)


def _box(buffer: Buffer) -> tuple[object, ...]:
    return (buffer.dtype, buffer.shape, buffer.strides, buffer.elem_offset)


def say_buffer(buffer: Buffer, env: Env) -> Buffer:
    """A buffer with its shape over the shared names."""
    if not env:
        return buffer
    shape, strides = tuple(say(e, env) for e in buffer.shape), tuple(say(e, env) for e in buffer.strides)
    offset = say(buffer.elem_offset, env)
    same = (shape, strides, offset) == (buffer.shape, buffer.strides, buffer.elem_offset)
    return buffer if same else replace(buffer, shape=shape, strides=strides, elem_offset=offset)
