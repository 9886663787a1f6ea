"""Cells at the edges of a program's conditions: where a comparison is just true or just false, and at the corners of loops.

Programs that differ by one in a guard differ there only. The points are guesses, found by walking along one loop at a time; which cells
they write is computed, and a point that is none costs nothing but itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.evaluate import Overflow, evaluate
from layoutproof.ir.expr import TRUE, Broadcast, Compare, Expr, Ramp
from layoutproof.ir.interp.arguments import shape_of
from layoutproof.ir.interp.facts import find_memories, reads_memory
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import Block, BufferStore, For, IfThenElse, Let, Stmt
from layoutproof.ir.visit import children, free_variables, walk

Integers = NDArray[np.int64]
Point = dict[str, int]

_LINES, _ROUNDS = 6, 2  # lines along each loop, for each comparison; the second time from points at other comparisons' edges
_NEAR = 3  # points of a line that are kept
_COMPARISONS, _LOOPS = 24, 4  # of one store
_LONGEST = 1 << 14  # iterations of a loop that are looked at one by one
_CORNERS = 12


@dataclass(frozen=True, slots=True)
class _Site:
    """A store, the loops and names around it (outermost first), and the comparisons of integers that matter to it."""

    store: BufferStore
    steps: tuple[For | tuple[str, Expr], ...]
    comparisons: tuple[Compare, ...]

    @property
    def loops(self) -> tuple[For, ...]:
        return tuple(step for step in self.steps if isinstance(step, For))


def edge_cells(func: PrimFunc, buffer: Buffer, symbols: Mapping[str, int], generator: np.random.Generator) -> Integers:
    """Elements of a parameter, counted from the start of its memory, that its stores write at the edges of conditions: one of each edge
    first. Not all of them are, and some may be none.
    """
    memories = find_memories(func)
    sites = [site for site in _sites(func.body, (), ()) if memories.of(site.store.buffer) == memories.of(buffer)]
    groups = [group for site in sites for group in _Points(site, symbols, generator).groups()]
    found: dict[int, None] = {}
    for site, point in (each for each in chain.from_iterable(zip_longest(*groups)) if each is not None):
        element = _written(site, point, symbols, buffer)
        if element is not None:
            found[element] = None
    return np.array(list(found), dtype=np.int64)


def _sites(stmt: Stmt, steps: tuple[For | tuple[str, Expr], ...], conditions: tuple[Expr, ...]) -> Iterator[_Site]:
    match stmt:
        case BufferStore():
            yield _Site(stmt, steps, tuple(dict.fromkeys(c for e in (*conditions, stmt) for c in _comparisons(e)))[:_COMPARISONS])
            return
        case For():
            steps = (*steps, stmt)
        case Let():
            steps = (*steps, (stmt.var.name, stmt.value))
        case IfThenElse():
            conditions = (*conditions, stmt.condition)
        case Block():
            steps = (*steps, *((v.var.name, v.binding) for v in stmt.iter_vars))
            conditions = (*conditions, stmt.where) if stmt.where != TRUE else conditions
        case _:
            pass
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from _sites(child, steps, conditions)


def _comparisons(node: Node) -> Iterator[Compare]:
    for part in walk(node):
        if isinstance(part, Compare) and part.lhs.dtype.is_integer and part.lhs.dtype.lanes == 1 and not reads_memory(part):
            yield part


@dataclass(slots=True)
class _Points:
    """Points of one store's loops."""

    site: _Site
    symbols: Mapping[str, int]
    generator: np.random.Generator
    _near: dict[Compare, list[Point]] = field(default_factory=dict)

    def groups(self) -> list[list[tuple[_Site, Point]]]:
        """For each comparison the points at its edge, and the corners of the loops."""
        for _ in range(_ROUNDS):
            known = [(point, self.failing(point)) for points in self._near.values() for point in points]
            for comparison in self.site.comparisons:
                fitting = [point for point, failing in known if failing <= {comparison}]
                self._near.setdefault(comparison, []).extend(self.edge(comparison, fitting))
        corners = [self.point(1.0) for _ in range(_CORNERS)]
        groups = [[points[k] for k in self.generator.permutation(len(points))] for points in self._near.values()]
        return [[(self.site, point) for point in group if point is not None] for group in (*groups, corners)]

    def failing(self, point: Point) -> set[Compare]:
        """The comparisons that do not hold at a point."""
        names = self.named(point)
        return {comparison for comparison in self.site.comparisons if not _number(comparison, names)}

    def edge(self, comparison: Compare, known: Sequence[Point]) -> list[Point]:
        """Points at which a comparison is about to change, found along the loops that it depends on; from known ones, half of the time."""
        found = []
        for loop in [loop for loop in self.site.loops if loop.var.name in self.behind(comparison)][-_LOOPS:]:
            for _ in range(_LINES):
                fits = known and self.generator.random() < 0.5
                start = known[int(self.generator.integers(len(known)))] if fits else self.point(0.25)
                if start is not None:
                    found += self.along(loop, comparison, start)
        return found

    def behind(self, expr: Expr) -> set[str]:
        """The names that an expression depends on, through definitions."""
        names = {v.name for v in free_variables(expr)}
        for step in reversed(self.site.steps):
            if not isinstance(step, For) and step[0] in names:
                names |= {v.name for v in free_variables(step[1])}
        return names

    def along(self, loop: For, comparison: Compare, start: Point) -> list[Point]:
        """The points of one line at which both sides of a comparison are nearest."""
        base = self.named(start)
        low, extent = _number(loop.start, base), _number(loop.extent, base)
        if low is None or not extent or extent < 1:
            return []
        values = np.unique(np.linspace(low, low + extent - 1, min(extent, _LONGEST)).astype(np.int64))
        names: dict[str, int | Integers] = {**self.symbols, **start, loop.var.name: values}
        for step in self.site.steps:
            if not isinstance(step, For):
                value = _values(step[1], names)
                if value is not None:
                    names[step[0]] = value
        sides = _values(comparison.lhs, names), _values(comparison.rhs, names)
        if sides[0] is None or sides[1] is None:
            return []
        distance = np.abs(np.broadcast_to(np.asarray(sides[0] - sides[1], dtype=np.int64), values.shape))
        nearest = np.argsort(distance, kind="stable")[:_NEAR]
        return [{**start, loop.var.name: int(values[k])} for k in nearest]

    def point(self, at_ends: float) -> Point | None:
        """A random point; each loop is at its first or last iteration with this probability. None where a loop has no iteration."""
        point: Point = {}
        for loop in self.site.loops:
            names = self.named(point)
            low, extent = _number(loop.start, names), _number(loop.extent, names)
            if low is None or extent is None or extent < 1:
                return None
            ends = self.generator.random() < at_ends
            point[loop.var.name] = low + int((extent - 1) * self.generator.integers(2) if ends else self.generator.integers(extent))
        return point

    def named(self, point: Point) -> Point:
        """The point with the symbols and what is defined at it."""
        return _named(self.site, point, self.symbols)


def _named(site: _Site, point: Point, symbols: Mapping[str, int]) -> Point:
    names = {**symbols, **point}
    for step in site.steps:
        if not isinstance(step, For):
            value = _number(step[1], names)
            if value is not None:
                names[step[0]] = value
    return names


def _written(site: _Site, point: Point, symbols: Mapping[str, int], buffer: Buffer) -> int | None:
    """The element of a parameter that a store writes at a point: its first lane's; None where that is not one."""
    seen = site.store.buffer
    try:
        shape, whole = shape_of(seen, symbols), shape_of(buffer, symbols).elements
    except (KeyError, Trap):
        return None
    names, place = _named(site, point, symbols), shape.offset
    for index, extent, stride in zip(site.store.indices, shape.extents, shape.strides, strict=True):
        value = _number(_first_lane(index), names)
        if value is None or not 0 <= value < extent:
            return None
        place += value * stride
    element = place * seen.dtype.bytes // buffer.dtype.bytes
    return element if element < whole else None


def _first_lane(index: Expr) -> Expr:
    match index:
        case Ramp(base=base):
            return base
        case Broadcast(value=value):
            return value
        case _:
            return index


def _number(expr: Expr, names: Mapping[str, int]) -> int | None:
    value = _values(expr, names)
    return None if value is None else int(value)


def _values(expr: Expr, names: Mapping[str, int | Integers]) -> int | Integers | None:
    if reads_memory(expr) or expr.dtype.is_float or isinstance(expr, Ramp | Broadcast):
        return None
    try:
        found: int | Integers = evaluate(expr, names)
    except (Trap, Overflow, KeyError, TypeError):
        return None
    return found
