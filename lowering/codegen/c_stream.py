"""Tiles that are written past the cache: a marked loop nest is gathered in a small buffer, then copied in contiguous
runs.

Streaming stores must write whole cache lines in order, while a transposing copy finds its elements in another order; a
tile of a few kilobytes is gathered in the order of the source. A marked nest that is no tile is written as any other
loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Expr, Var, const, logical_and
from layoutproof.ir.stmt import BufferStore, For
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.lowering.arith.affine import Polynomial, Steps, added, expression, multiplied, number, steps_of
from layoutproof.lowering.codegen.c_stmt import Statements, product_of
from layoutproof.lowering.codegen.c_stream_tile import (
    Axis,
    Tile,
    all_hold,
    contiguous,
    dense_prefix,
    find_tile,
    is_total,
)
from layoutproof.lowering.codegen.c_types import storage_type
from layoutproof.lowering.codegen.calling_convention import Memory, MemoryMap
from layoutproof.lowering.codegen.writer import comment

NAME = "tile"
PAST_CACHE = 4 << 20
"""Bytes from which on the destination is assumed not to stay in the cache until it is read."""


def write_tile(statements: Statements, stmt: For) -> bool:
    """Write a marked nest as a tile; False, with nothing written, if it is none."""
    tile = find_tile(statements, stmt)
    if tile is None:
        return False
    writer = _TileWriter(statements, tile)
    source = tile.source
    if source is not None and contiguous(tile, source):
        writer.copy_straight(source)
    else:
        with statements.writer.nested(""), statements.names.block():
            writer.gather()
    if writer.past_cache:
        statements.expressions.helpers.add("lp_stream_end")
        statements.streamed = True
    return True


class _TileWriter:
    """Writes one tile."""

    def __init__(self, statements: Statements, tile: Tile) -> None:
        self.statements = statements
        self.expressions = statements.expressions
        self.tile = tile
        self.target = self.expressions.pointers[tile.store.buffer.data.name]
        self.name = NAME
        elements = product_of(tile.store.buffer.shape)
        self.past_cache = elements is None or elements * tile.width >= PAST_CACHE
        self.leave = "lp_stream" if self.past_cache else "lp_copy"

    @property
    def pointer_read(self) -> str:
        """The memory that is read."""
        assert self.tile.load is not None
        return self.expressions.pointers[self.tile.load.buffer.data.name]

    # --- pieces of text

    def text(self, value: Polynomial | Expr) -> str:
        """An index as C."""
        return self.expressions.emit_index(value if isinstance(value, Expr) else expression(value)).text

    def place(self, pointer: str, steps: Steps, loops: Sequence[Axis]) -> str:
        """The address of an index in the current iterations of open axes; other axes are at their first."""
        offset = self.text(_index(steps, loops))
        return pointer if offset == "0" else f"&{pointer}[{offset}]"

    def size(self, elements: Expr) -> str:
        """A number of elements in bytes."""
        return self.text(elements * const(self.tile.width, elements.dtype) if self.tile.width > 1 else elements)

    def looped(self, axes: Sequence[Axis], write: Callable[[], None]) -> None:
        """Loops over axes, the first one outermost."""
        if not axes:
            write()
            return
        self.statements.loop_around(axes[0].plain, lambda: self.looped(axes[1:], write))

    def call(self, helper: str, *arguments: str) -> None:
        """A line that calls a helper."""
        self.expressions.helpers.add(helper)
        self.statements.writer.line(f"{helper}({', '.join(arguments)});")

    # --- the two forms of a tile

    def copy_straight(self, source: Steps) -> None:
        """Runs that are contiguous on both sides."""
        self.copy_runs(self.pointer_read, source)

    def copy_runs(self, pointer: str, steps: Steps) -> None:
        """Copy run by run to the destination."""
        outer = self.tile.outer

        def write() -> None:
            target, origin = self.place(self.target, self.tile.target, outer), self.place(pointer, steps, outer)
            self.call(self.leave, target, origin, self.size(self.tile.run_length))

        self.looped(outer, write)

    def gather(self) -> None:
        """The tile in its own buffer, then copied run by run."""
        tile = self.tile
        self.name = self.statements.names.declare(NAME)
        shape = f"{tile.store.buffer.dtype} in runs of {self.text(tile.run_length)}, on their way to {self.target}"
        self.statements.writer.line(
            f"_Alignas(64) {storage_type(tile.store.buffer.dtype)} {self.name}[{tile.capacity}]; {comment(shape)}"
        )
        self.fill()
        if tile.load is not None:
            self.prefetch(tile.load)
        self.copy_runs(self.name, tile.local)

    # --- filling

    def fill(self) -> None:
        """Everything that the nest computes, in source order where that is known."""
        tile, source = self.tile, self.tile.source
        inner = next((axis for axis in tile.axes if tile.local.of(axis.var) == 1), None)
        read = None if source is None else next((axis for axis in tile.axes if source.of(axis.var) == 1), None)
        if source is None or inner is None or read is None:
            self.looped(tile.axes, self.store)
        elif inner is read:
            self.copy(source, inner)
        elif inner.is_free and read.is_free:
            self.transpose(source, inner, read)
        else:
            self.looped(tile.axes, self.store)

    def ordered(self, source: Steps, without: Sequence[Axis]) -> list[Axis]:
        """The axes but some, those with the largest source steps outermost; unchanged where steps are not constant."""
        axes = [axis for axis in self.tile.axes if axis not in without]
        steps = {axis.var: source.of(axis.var) for axis in axes}
        if any(step is None for step in steps.values()) or any(not axis.is_free for axis in axes):
            return axes
        return sorted(axes, key=lambda axis: -(steps[axis.var] or 0))

    def piece(self, axes: Sequence[Axis], write: Callable[[], None]) -> None:
        """Write all iterations of some axes at once if their condition holds in all of them; else one by one."""
        conditions = all_hold(self.tile.condition, [(axis.var, axis.size) for axis in axes])
        if conditions == ():
            write()
        elif conditions is None:
            self.looped(axes, self.store)
        else:
            whole = self.expressions.emit_condition(logical_and(*conditions))
            with self.statements.writer.nested(f"if ({whole.text})", ""):
                write()
            with self.statements.writer.nested("} else"), self.statements.names.block():
                self.looped(axes, self.store)

    def transpose(self, source: Steps, inner: Axis, read: Axis) -> None:
        """Blocks whose rows are contiguous in the source, and columns in the tile."""
        tile = self.tile
        rest = self.ordered(source, (inner, read))
        pointer = self.pointer_read

        def write() -> None:
            to_step = self.text(tile.local.by_loop.get(read.var, {}))
            from_step = self.text(source.by_loop.get(inner.var, {}))
            to, origin = self.place(self.name, tile.local, rest), self.place(pointer, source, rest)
            rows, columns = self.text(inner.loop.extent), self.text(read.loop.extent)
            self.call(f"lp_transpose_{8 * tile.width}", to, to_step, origin, from_step, rows, columns)

        self.looped(rest, lambda: self.piece((read, inner), write))

    def copy(self, source: Steps, inner: Axis) -> None:
        """Pieces that are contiguous on both sides; those at the ends of a padded axis are shorter."""
        rest = self.ordered(source, (inner,))
        line = self.statements.writer.line
        whole = inner.size * self.tile.width

        def write() -> None:
            to, origin = self.place(self.name, self.tile.local, rest), self.place(self.pointer_read, source, rest)
            if inner.is_constant:
                line(f"memcpy({to}, {origin}, {whole});")
                return
            count, size = self.text(inner.loop.extent), self.size(inner.loop.extent)
            with self.statements.writer.nested(f"if ({count} == {inner.size})", ""):
                line(f"memcpy({to}, {origin}, {whole});")
            with self.statements.writer.nested(f"}} else if ({count} > 0)"):
                line(f"memcpy({to}, {origin}, (size_t)({size}));")

        self.looped(rest, lambda: self.piece((inner,), write))

    def store(self) -> None:
        """One element, into the tile."""
        tile = self.tile
        data = Var(f"{self.name} of the generated code", HANDLE)
        buffer = Buffer(self.name, tile.store.buffer.dtype, (const(tile.capacity),), data)
        memory = Memory(buffer, is_parameter=False, mixed=False, written=True, read=True)
        before = self.expressions.memory
        self.expressions.memory = MemoryMap({**before.by_data, buffer.data.name: memory})
        self.expressions.pointers[buffer.data.name] = self.name
        index = expression(_index(tile.local, tile.axes))
        self.statements.emit(BufferStore(buffer, (index,), tile.store.value))
        self.expressions.memory = before

    # --- what is read next

    def prefetch(self, load: BufferLoad) -> None:
        """Prefetch what the next iteration of the loop around the tile reads."""
        tile = self.tile
        around = self.statements.open_loops[-1] if self.statements.open_loops else None
        index = load.indices[-1]
        if around is None or around.var not in free_variables(index) or not is_total(index, (around.var,)):
            return
        steps = steps_of(substitute(index, {around.var: around.var + 1}), {axis.var for axis in tile.axes})
        if steps is None:
            return
        run, rest = dense_prefix(tile.axes, steps)
        if not run or any(not axis.is_free for axis in rest):
            return
        length: Expr = run[-1].loop.extent
        step = number(steps.by_loop.get(run[-1].var, {}))
        length = length if step in (None, 1) else length * const(step or 1, length.dtype)

        def write() -> None:
            offset = expression(_index(steps, rest))
            self.call("lp_prefetch", self.pointer_read, self.size(offset), self.size(length))

        self.looped(rest, write)


def _index(steps: Steps, loops: Sequence[Axis]) -> Polynomial:
    """The index in the current iterations of some loops; others are at their first."""
    index = steps.base
    for axis in loops:
        index = added(index, multiplied(steps.by_loop.get(axis.var, {}), {(axis.var,): 1}))
    return index
