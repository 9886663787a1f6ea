"""Which elements of what a large program writes are looked at: those at which wrong programs tend to be wrong, such as
the edges of conditions, the corners of loops, and neighbours of padding. The points are guesses; which cells they
write is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product, zip_longest
from math import prod

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.evaluate import Overflow, evaluate
from layoutproof.ir.expr import TRUE, Broadcast, Compare, Expr, IntImm, Ramp
from layoutproof.ir.interp.analysis import find_memories, reads_memory
from layoutproof.ir.interp.arguments import shape_of
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import Block, BufferStore, For, IfThenElse, Let, Stmt
from layoutproof.ir.visit import children, free_variables, walk
from layoutproof.verify.flow.hints import SuspectCell
from layoutproof.verify.replay.inputs import SEED
from layoutproof.verify.replay.placement import Place, Positions

Integers = NDArray[np.int64]
Point = dict[str, int]

_LINES = 6  # lines along each loop, for each comparison
_ROUNDS = 2  # the second time from points at other comparisons' edges
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
    """Elements of a parameter, counted from the start of its memory, that its stores write at the edges of conditions:
    one of each edge first. Not all of them are, and some may be none.
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
            yield _Site(
                stmt,
                steps,
                tuple(dict.fromkeys(c for e in (*conditions, stmt) for c in _comparisons(e)))[:_COMPARISONS],
            )
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
        if (
            isinstance(part, Compare)
            and part.lhs.dtype.is_integer
            and part.lhs.dtype.lanes == 1
            and not reads_memory(part)
        ):
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
        """Points at which a comparison changes, along the loops that it depends on; half from known points."""
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
        """A random point; each loop at its first or last iteration with this probability. None if a loop is empty."""
        point: Point = {}
        for loop in self.site.loops:
            names = self.named(point)
            low, extent = _number(loop.start, names), _number(loop.extent, names)
            if low is None or extent is None or extent < 1:
                return None
            ends = self.generator.random() < at_ends
            point[loop.var.name] = low + int(
                (extent - 1) * self.generator.integers(2) if ends else self.generator.integers(extent)
            )
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


_SUSPECT_CELLS, _EDGES, _AT_CORNERS, _BESIDE, _SPACED, _BESIDE_CONSTANTS, _AT_RANDOM = 24, 48, 16, 8, 17, 24, 8
_AXES = 5  # axes of which every corner is a candidate
_CONSTANTS = 24


@dataclass(frozen=True, slots=True)
class Chosen:
    """Elements of the old array, and padding cells with a contract value of the new one; likely ones first."""

    elements: Positions
    padding: Positions

    def first(self, count: int) -> Chosen:
        """The likeliest ones, at most so many of each kind."""
        return Chosen(self.elements[:count], self.padding[:count])

    def only(self, element: int | None, padding: int | None) -> Chosen:
        """One of them."""
        one, other = ([] if number is None else [number] for number in (element, padding))
        return Chosen(np.array(one, dtype=np.int64), np.array(other, dtype=np.int64))


@dataclass(slots=True)
class Chooser:
    """Chooses elements of the parameters of one rewrite, always the same ones."""

    rewrite: Rewrite
    symbols: Mapping[str, int]
    suspect_cells: Sequence[SuspectCell]

    def chosen(self, place: Place, position: int) -> Chosen:
        """Of the parameter at a position among the buffers."""
        generator = np.random.default_rng(SEED)
        old, new = self.rewrite.old.buffers[position], self.rewrite.new.buffers[position]
        back = np.full(prod(place.new_shape), -1, dtype=np.int64)
        back[place.new_places] = np.arange(prod(place.old_shape), dtype=np.int64)
        suspect_cells = self.suspected(place, old.data.name, new.data.name)
        edges = edge_cells(self.rewrite.new, new, self.symbols, generator)[:_EDGES]
        here = edge_cells(self.rewrite.old, old, self.symbols, generator)[:_EDGES]
        more = [np.array(list(group), dtype=np.int64) for group in self.elsewhere(place, generator)]
        in_new = _in_turn([edges, *more])
        padding = _first_ones(
            np.concatenate([suspect_cells[1], in_new, _edge_of_padding(place)[1]]), place.padding_postcondition()
        )
        known = back[np.concatenate([suspect_cells[1], _edge_of_padding(place)[0]])]
        elements = np.concatenate(
            [suspect_cells[0], known[known >= 0], _in_turn([back[in_new][back[in_new] >= 0], here])]
        )
        return Chosen(_first_ones(elements, place.observed), padding)

    def suspected(self, place: Place, old: str, new: str) -> tuple[Positions, Positions]:
        """The suspect cells of this parameter, in the old array and in the new one."""
        found: list[list[int]] = []
        for is_new, name, shape in ((False, old, place.old_shape), (True, new, place.new_shape)):
            mine = [
                s.index
                for s in self.suspect_cells
                if s.is_new is is_new and s.data == name and len(s.index) == len(shape)
            ]
            inside = [i for i in mine if all(0 <= c < e for c, e in zip(i, shape, strict=True))][:_SUSPECT_CELLS]
            found.append([int(np.ravel_multi_index(i, shape)) if shape else 0 for i in inside])
        return np.array(found[0], dtype=np.int64), np.array(found[1], dtype=np.int64)

    def elsewhere(self, place: Place, generator: np.random.Generator) -> Iterator[Sequence[int]]:
        """Groups of cells of the new array that the programs' conditions do not show."""
        shape, count = place.new_shape, prod(place.new_shape)
        corners = [_flat(c, shape) for c in product(*([0, e - 1] if k < _AXES else [0] for k, e in enumerate(shape)))]
        yield [corners[0], corners[-1], *(corners[int(k)] for k in generator.permutation(len(corners))[:_AT_CORNERS])]
        yield np.linspace(0, count - 1, min(count, _SPACED), dtype=np.int64).tolist()
        places = place.new_places
        beside = []
        for _ in range(_BESIDE_CONSTANTS):
            at = [int(generator.integers(extent)) for extent in place.old_shape]
            axis = int(generator.integers(max(len(at), 1)))
            near = [c for c in self.constants() if at and 0 <= c < place.old_shape[axis]]
            if near:
                at[axis] = near[int(generator.integers(len(near)))]
                beside.append(int(places[_flat(at, place.old_shape)]))
        yield beside
        yield generator.integers(0, count, _AT_RANDOM).tolist()

    def constants(self) -> list[int]:
        """The whole numbers that the programs mention, and their neighbours."""
        found = sorted({node.value for func in (self.rewrite.old, self.rewrite.new) for node in _numbers(func)})
        return [value + step for value in found[:_CONSTANTS] for step in (-1, 0, 1)]


def _numbers(func: PrimFunc) -> Iterator[IntImm]:
    return (node for node in walk(func.body) if isinstance(node, IntImm) and node.value > 1)


def _flat(index: Sequence[int], shape: Sequence[int]) -> int:
    return int(np.ravel_multi_index(tuple(index), tuple(shape))) if shape else 0


def _in_turn(groups: Sequence[Positions]) -> Positions:
    """One of each group, then another of each."""
    longest = max((group.size for group in groups), default=0)
    return np.concatenate(
        [np.zeros(0, dtype=np.int64), *(group[k : k + 1] for k in range(longest) for group in groups)]
    )


def _first_ones(positions: Positions, wanted: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Positions:
    """The positions that are wanted, each once, in their order."""
    _, first = np.unique(positions, return_index=True)
    ordered = positions[np.sort(first)]
    return ordered[wanted[ordered]]


def _edge_of_padding(place: Place) -> tuple[Positions, Positions]:
    """Cells of the new array next to padding, and padding next to them, from one end to the other."""
    padding = place.new_padding()
    if not padding.any():
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    change = np.flatnonzero(padding[1:] != padding[:-1])
    picked = change[np.linspace(0, change.size - 1, min(change.size, _BESIDE), dtype=np.int64)]
    both = np.concatenate([picked, picked + 1])
    ends = np.flatnonzero(padding)[[0, -1]]
    return both[~padding[both]], np.concatenate([both[padding[both]], ends])
