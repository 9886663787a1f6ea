"""Asynchronous copies of a kernel: stores that take effect at some time between where they stand and a wait.

As TVM describes it (`async_scope` and the attributes beside it), and PTX: the copies that a thread issues are gathered
into groups, `commit` closes a group of a queue, and `wait` with `n` blocks until at most the last `n` groups of the
queue are under way. In the kernel as a program with parallel loops a copy is done at once, where it stands. This is one
of its meanings; for it to be the only one, until a wait covers the copy no one may touch the memory that it writes, and
no one may write what it reads. This is what `parts` ask: in each, a copy and an access to its memory meet in one cell
of a table, indexed by the number of a group, if the access may find the copy under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import HANDLE, INT32, INT64
from layoutproof.ir.expr import Expr, IntImm, Var, equal
from layoutproof.ir.stmt import Allocate, AttrStmt, BufferStore, For, ForKind, IfThenElse, Seq, Stmt, seq
from layoutproof.ir.threads.async_calls import ASYNC_KEYS
from layoutproof.ir.threads.async_queues import ONE, ZERO, minus, plus
from layoutproof.ir.threads.async_walk import Access, AsyncWalk
from layoutproof.ir.threads.axes import Axis, Sharing
from layoutproof.ir.threads.kernel_text import Kernel, NotSequential
from layoutproof.ir.visit import loads_in, map_children, stores_in

_GROUPS = IntImm(1, INT64)


class AsyncCopies:
    """What has to be shown of the copies of a kernel. `implied`: after each wait there is a barrier, as TVM puts it."""

    def __init__(self, kernel: Kernel, sharing: Mapping[Var, Sharing], *, implied: bool) -> None:
        self.kernel = kernel
        self.sharing = sharing
        self.accesses = AsyncWalk(kernel, implied=implied).run()
        self.written = {store.buffer.data for store in stores_in(kernel.body)}

    def parts(self) -> list[Stmt]:
        """Parts of the kernel in which there may be no race."""
        found = [part for copy in self.accesses if copy.queue is not None for part in self._asked_of(copy)]
        for part in found:
            if any(load.buffer.data in self.written for load in loads_in(part)):
                raise NotSequential("asynchronous copies whose places depend on what the kernel computes", part)
        return found

    def _asked_of(self, copy: Access) -> Iterator[Stmt]:
        data = copy.buffer.data
        if copy.writes:
            if self.sharing.get(data, Sharing.ALL) is Sharing.ALL:
                raise NotSequential("an asynchronous copy to memory that outlives the kernel", copy.stmt)
            yield self._in_one_group(copy)
        for other in self.accesses:
            if other.buffer.data == data and (copy.writes or other.writes):
                yield from self._meeting(copy, other)

    def _in_one_group(self, copy: Access) -> Stmt:
        """The stores of one statement to one group, which have no order."""
        loops = [step.loop for step in copy.steps if step.loop is not None]
        threads = [axis for axis in self.kernel.axes.values() if axis.index == axis.var and not axis.is_block]
        names = (*(axis.var for axis in threads), *(loop.var for loop in loops))
        # Some value for each iteration, so that no two are taken to store the same.
        extents = (*(axis.extent for axis in threads), *(loop.start + loop.extent for loop in loops))
        values = Buffer("values", INT32, extents, Var("values", HANDLE))
        value = BufferLoad(values, names) if names else IntImm(0)
        table = self._table(copy)
        result: Stmt = BufferStore(table, (*self._place(copy), *copy.indices), value, span=copy.stmt.span)
        for step in reversed(copy.steps):
            loop = step.loop
            if loop is not None and copy.queue not in step.commits:
                result = replace(loop, kind=ForKind.PARALLEL, body=result)
            else:
                result = step.around(result)
        return Allocate(table, Allocate(values, self._by_all_threads(result)))

    def _meeting(self, copy: Access, other: Access) -> Iterator[Stmt]:
        """A copy, and an access: they meet where the access comes later and does not know the copy to be complete."""
        mine, seen = copy.queues[copy.queue], other.queues[copy.queue]
        # Of itself a statement knows no more than of the groups before: see `_in_one_group`.
        begun = plus(seen.committed, ONE if seen.is_open and other.event != copy.event else ZERO)
        place, table = self._place(copy), self._table(copy, _GROUPS)
        one: Stmt = BufferStore(table, (mine.committed, *place, *copy.indices), IntImm(0), span=copy.stmt.span)
        one = self._by_all_threads(copy.around(one), one_side=True)
        for known in seen.known(private=self._is_private(copy)):
            group = Var("group", INT64)
            met: Stmt = BufferStore(table, (group, *place, *other.indices), IntImm(1), span=other.stmt.span)
            met = For(group, known.number, minus(begun, known.number), ForKind.SERIAL, met, span=other.stmt.span)
            for condition in known.conditions:
                met = IfThenElse(condition, met)
            side = Var("side", INT32)
            met = self._by_all_threads(other.around(met), one_side=True)
            both = IfThenElse(equal(side, IntImm(0)), one, met)
            yield Allocate(table, For(side, IntImm(0), IntImm(2), ForKind.PARALLEL, both, span=copy.stmt.span))

    def _is_private(self, copy: Access) -> bool:
        return self.sharing.get(copy.buffer.data) is Sharing.THREAD

    def _axes(self, copy: Access) -> list[Axis]:
        """The axes along which each index has memory of its own; copies of another block are none of this one's."""
        axes = [axis for axis in self.kernel.axes.values() if axis.index == axis.var]
        return [axis for axis in axes if axis.is_block or self._is_private(copy)]

    def _place(self, copy: Access) -> tuple[Expr, ...]:
        return tuple(axis.var for axis in self._axes(copy))

    def _table(self, copy: Access, *more: Expr) -> Buffer:
        # A number of groups comes first, where it may be any without meeting another cell.
        shape = (*more, *(axis.extent for axis in self._axes(copy)), *copy.buffer.shape)
        return Buffer(f"{copy.buffer.name}_under_way", INT32, shape, Var(f"{copy.buffer.name}_under_way", HANDLE))

    def _by_all_threads(self, stmt: Stmt, *, one_side: bool = False) -> Stmt:
        for axis in reversed(self.kernel.axes.values()):
            if axis.index == axis.var and not axis.is_block:
                kind = ForKind.SERIAL if one_side else ForKind.PARALLEL
                stmt = For(axis.var, IntImm(0, axis.var.dtype), axis.extent, kind, stmt, span=stmt.span)
        return stmt


def without_async(stmt: Stmt) -> Stmt:
    """The statement, its copies done where they stand."""
    if isinstance(stmt, AttrStmt) and stmt.key in ASYNC_KEYS:
        return without_async(stmt.body)
    if isinstance(stmt, Seq):
        return seq(*(without_async(child) for child in stmt.body))
    return map_children(stmt, lambda child: without_async(child) if isinstance(child, Stmt) else child)
