"""Where TVM puts barriers into a kernel that has none: between two accesses to one buffer in shared memory, one of them
writing and one reading, unless it shows that they are apart, or finds one index in both that depends on the thread.

Only what TVM does for certain is said here: whatever it can show, two accesses that meet in a cell it cannot show to be
apart, and two indices that differ somewhere it cannot find to be one. Loops around both have one value there, as in
TVM, which does not tell iterations apart.

Source: TVM's pass ThreadSync (`thread_storage_sync.cc`), and what it prints for kernels like those in the tests.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.evaluate import Overflow, evaluate, foreign_part
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.node import Node
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import BufferStore, For, IfThenElse, Let, Seq, Stmt
from layoutproof.ir.threads.axes import Axis
from layoutproof.ir.visit import children, free_variables

if TYPE_CHECKING:
    import numpy as np
else:
    from layoutproof.ir.late import np

_POINTS = 1 << 13
_CONTEXTS = 16
_SIZES = range(2, 9)
"""What sizes and other numbers are taken to be, one after the other."""


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """A load or store, with the loops, branches and lets around it, outer ones first; of a branch, which side."""

    data: Var
    indices: tuple[Expr, ...]
    writes: bool
    around: tuple[tuple[Stmt, bool], ...]


class ImpliedBarriers:
    """The accesses of a kernel to memory in `shared`, and whether TVM puts a barrier between two of them."""

    def __init__(self, body: Stmt, shared: AbstractSet[Var], axes: Sequence[Axis]) -> None:
        self.shared = shared
        self.threads = [axis for axis in axes if axis.index == axis.var and not axis.is_block]
        self.blocks = [axis for axis in axes if axis.is_block]
        self._of: dict[int, tuple[Access, ...]] = {}
        self._twice: set[int] = set()
        self._found: dict[tuple[int, int], bool] = {}
        self._visit(body, ())

    def _visit(self, stmt: Stmt, around: tuple[tuple[Stmt, bool], ...]) -> tuple[Access, ...]:
        found: list[Access] = []
        if isinstance(stmt, BufferStore) and stmt.buffer.data in self.shared:
            found.append(Access(stmt.buffer.data, stmt.indices, True, around))
        for name, child in _parts(stmt):
            if isinstance(child, Stmt):
                inside = around
                if isinstance(stmt, For | IfThenElse | Let):
                    inside = (*around, (stmt, name != "otherwise"))
                found += self._visit(child, inside)
            else:
                found += [Access(load.buffer.data, load.indices, False, around) for load in self._loads(child)]
        if id(stmt) in self._of:
            self._twice.add(id(stmt))  # it stands at two places
        self._of[id(stmt)] = tuple(found)
        return tuple(found)

    def _loads(self, node: Node) -> Iterator[BufferLoad]:
        stack = [node]
        while stack:
            node = stack.pop()
            if isinstance(node, BufferLoad) and node.buffer.data in self.shared:
                yield node
            stack += children(node)

    def accesses(self, stmt: Stmt) -> tuple[Access, ...]:
        """The accesses in a statement of the kernel, or in several in a sequence."""
        if id(stmt) in self._twice:
            return ()
        if id(stmt) not in self._of and isinstance(stmt, Seq):
            return tuple(access for part in stmt.body for access in self.accesses(part))
        return self._of.get(id(stmt), ())

    def between(self, first: Sequence[Access], second: Sequence[Access]) -> bool:
        """Whether there is certainly a barrier between what comes first and what comes second."""
        return any(
            self._is_between(one, other)
            for one in first
            for other in second
            if one.data == other.data and one.writes != other.writes
        )

    def _is_between(self, one: Access, other: Access) -> bool:
        key = (id(one), id(other))
        if key not in self._found:
            self._found[key] = self._meet(one, other)
        return self._found[key]

    def _meet(self, one: Access, other: Access) -> bool:
        common = 0
        for (mine, side), (theirs, their_side) in zip(one.around, other.around, strict=False):
            if mine is not theirs or side != their_side:
                break
            common += 1
        inside = {stmt.var for a in (one, other) for stmt, _ in a.around[common:] if isinstance(stmt, For | Let)}
        lets = {stmt.var for a in (one, other) for stmt, _ in a.around if isinstance(stmt, Let)}
        of_threads = {axis.var for axis in self.threads} | lets
        used = [{v for index in a.indices for v in free_variables(index)} for a in (one, other)]
        alike = one.indices == other.indices
        if alike and used[0] & of_threads and not used[0] & inside:
            return False  # one index that depends on the thread
        # Indices that do not depend on the thread are no reason to leave it out, whether or not they are one.
        needless = alike or not all(names & of_threads for names in used)
        of_data = [any(foreign_part(index) is not None for index in a.indices) for a in (one, other)]
        if any(of_data):
            return needless or not all(of_data)  # a place that is data may be any; two of them may be one
        chooser = random.Random(0)
        apart, met = needless, False
        for number in range(_CONTEXTS):
            context = _Context(chooser, self.threads, self.blocks, number)
            sides = [context.cells(access, common) for access in (one, other)]
            met = met or sides[0].met(sides[1])
            apart = apart or sides[0].differs(sides[1])
            if met and apart:
                return True
        return False


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """The cells that threads touch: rows of indices, and which thread and inner iteration each row is of."""

    rows: Any
    points: Any

    def met(self, other: _Cells) -> bool:
        """Whether some thread touches a cell here that some thread touches there."""
        first, second = np.unique(self.rows, axis=0), np.unique(other.rows, axis=0)
        return len(np.unique(np.concatenate([first, second]), axis=0)) < len(first) + len(second)

    def differs(self, other: _Cells) -> bool:
        """Whether one thread touches other cells here than there, as far as both are known, or several in a loop: then
        TVM knows the range of indices only.
        """
        both = [np.unique(np.concatenate([side.points, side.rows], axis=1), axis=0) for side in (self, other)]
        if any(len(pairs) > len(np.unique(s.points, axis=0)) for pairs, s in zip(both, (self, other), strict=True)):
            return True
        width = self.points.shape[1]
        shared = [{tuple(point) for point in side.points.tolist()} for side in (self, other)]
        kept = [{tuple(row) for row in side.tolist() if tuple(row[:width]) in shared[0] & shared[1]} for side in both]
        return kept[0] != kept[1]


class _Context:
    """Values of what is one for both accesses: sizes, blocks, and loops around both."""

    def __init__(self, chooser: random.Random, threads: Sequence[Axis], blocks: Sequence[Axis], number: int) -> None:
        self.chooser, self.threads, self.number = chooser, threads, number
        self.size = _SIZES[number % len(_SIZES)]
        self.values: dict[str, int] = {}
        for axis in blocks:
            extent = self._number(axis.extent, {})
            self.values[axis.var.name] = self._one_of(self.size if extent is None else extent)

    def _one_of(self, length: int) -> int:
        """A number below a length: each of the first few once, together and then at random."""
        return self.number if self.number < min(length, 4) else self.chooser.randrange(max(length, 1))

    def _number(self, expr: Expr, env: Mapping[str, Any]) -> int | None:
        """The value of an expression where it is one number."""
        if foreign_part(expr) is not None:
            return None
        names = {v.name: self._value(v) for v in free_variables(expr) if v.name not in env}
        try:
            return int(evaluate(expr, {**names, **env}))
        except (Trap, Overflow, TypeError):
            return None

    def _value(self, var: Var) -> int:
        return self.values.setdefault(var.name, self.size)

    def cells(self, access: Access, common: int) -> _Cells:
        """The cells of an access for every thread and every iteration of the loops that are not around both."""
        dims: dict[str, range] = {}
        for axis in self.threads:
            threads = self._number(axis.extent, {})
            dims[axis.var.name] = range(self.size if threads is None else max(threads, 0))
        conditions: list[tuple[Expr, bool]] = []
        lets: dict[str, Expr] = {}
        for depth, (stmt, side) in enumerate(access.around):
            match stmt:
                case For(var=var, start=start, extent=extent):
                    begin, count = self._number(start, {}), self._number(extent, {})
                    first, length = begin or 0, self.size if count is None else max(count, 0)
                    if depth >= common:
                        dims[var.name] = range(first, first + length)
                    elif var.name not in self.values:
                        self.values[var.name] = first + self._one_of(length)
                case IfThenElse(condition=condition) if foreign_part(condition) is None:
                    conditions.append((condition, side))
                case Let():
                    lets[stmt.var.name] = stmt.value
                case _:
                    pass
        return self._cells(access, dims, conditions, lets)

    def _cells(
        self, access: Access, dims: dict[str, range], conditions: Sequence[tuple[Expr, bool]], lets: Mapping[str, Expr]
    ) -> _Cells:
        while prod(len(values) for values in dims.values()) > _POINTS:
            widest = max(dims, key=lambda name: len(dims[name]))
            dims[widest] = dims[widest][: len(dims[widest]) // 2]
        number = prod(len(values) for values in dims.values())
        grid = np.meshgrid(*(np.arange(r.start, r.stop, dtype=np.int64) for r in dims.values()), indexing="ij")
        env: dict[str, Any] = {name: part.reshape(-1) for name, part in zip(dims, grid, strict=True)}
        none = _Cells(np.zeros((0, len(access.indices)), np.int64), np.zeros((0, len(self.threads)), np.int64))
        try:
            for name, value in lets.items():
                env[name] = self._array(value, env, number)
            kept = np.ones(number, bool)
            for condition, side in conditions:
                kept &= np.asarray(self._array(condition, env, number), bool) == side
            rows = [np.asarray(self._array(index, env, number), np.int64)[kept] for index in access.indices]
        except (Trap, Overflow, TypeError):
            return none  # nothing is known of it
        points = [env[axis.var.name][kept] for axis in self.threads]
        width = int(kept.sum())
        return _Cells(
            np.stack(rows, 1) if rows else np.zeros((width, 0), np.int64),
            np.stack(points, 1) if points else np.zeros((width, 0), np.int64),
        )

    def _array(self, expr: Expr, env: Mapping[str, Any], number: int) -> Any:
        names = {v.name: self._value(v) for v in free_variables(expr) if v.name not in env}
        value = evaluate(expr, {**names, **env})
        return value if isinstance(value, np.ndarray) else np.full(number, value)


def _parts(stmt: Stmt) -> Iterator[tuple[str, Node]]:
    """The statements and expressions of a statement, by field."""
    if isinstance(stmt, IfThenElse):
        yield "condition", stmt.condition
        yield "then", stmt.then
        if stmt.otherwise is not None:
            yield "otherwise", stmt.otherwise
    else:
        for child in children(stmt):
            yield "", child
