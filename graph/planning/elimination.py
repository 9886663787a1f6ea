"""The planning problem as tables, and their least sum, exactly: variables are eliminated one after the other, as in
dynamic programming over a graph of small treewidth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.graph.planning.array_layouts import Layout
from layoutproof.graph.planning.planning_problem import Choice, Move, Problem, cheapest_moves

Array = NDArray[Any]
MOST_CELLS = 1 << 21
"""The number of cells past which a sum of tables is too large to be made."""
MOST_JOINT_CELLS = 1 << 25
"""The number of cells past which all sums together take too long."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A number for each choice of states of the variables in `scope`, one axis for each, in that order."""

    scope: tuple[int, ...]
    cells: Array


@dataclass(slots=True)
class _Bucket:
    """What is summed when a variable is eliminated: the tables with it, and results of earlier eliminations."""

    variable: int
    scope: tuple[int, ...]
    tables: list[Table]
    below: list[int] = field(default_factory=lambda: list[int]())


@dataclass(frozen=True, slots=True)
class Solved:
    """The states of a least choice and its sum; where it was asked for, the least sum for each cell of each table."""

    states: Mapping[int, int]
    least: int
    through: Sequence[Array]


def order_of_elimination(sizes: Mapping[int, int], scopes: Iterable[Sequence[int]]) -> list[int] | None:
    """The variables in an order of small sums; None where one sum, or all, would have too many cells."""
    around: dict[int, set[int]] = {variable: set() for variable in sizes}
    for scope in scopes:
        for variable in scope:
            around[variable] |= set(scope) - {variable}

    def cells(variable: int) -> int:
        return sizes[variable] * prod(sizes[other] for other in around[variable])

    work = [(cells(variable), variable) for variable in sizes]
    heapify(work)
    found: list[int] = []
    together = 0
    while work:
        size, variable = heappop(work)
        if variable not in around or size != cells(variable):
            continue
        together += size
        if size > MOST_CELLS or together > MOST_JOINT_CELLS:
            return None
        found.append(variable)
        near = around.pop(variable)
        for other in near:
            around[other] |= near
            around[other] -= {other, variable}
        for other in near:
            heappush(work, (cells(other), other))
    return found


def least_sum(
    sizes: Mapping[int, int], tables: Sequence[Table], cannot: int, *, through: bool = False
) -> Solved | None:
    """The choice of a state for each variable for which the tables' sum is least, the first of those that are alike.

    None where the tables hang together too closely. No number is below 0, and what reaches `cannot` is impossible;
    twice that has to fit the type of the cells.
    """
    order = order_of_elimination(sizes, (table.scope for table in tables))
    if order is None:
        return None
    found = _Elimination(sizes, tables, cannot, {variable: number for number, variable in enumerate(order)})
    found.ascend()
    return Solved(found.states(), found.least, found.descend() if through else ())


@dataclass(slots=True)
class _Elimination:
    """An elimination so far: for each variable the sum in which it is eliminated, and the table left of it."""

    sizes: Mapping[int, int]
    tables: Sequence[Table]
    cannot: int
    place: Mapping[int, int]
    buckets: list[_Bucket] = field(init=False)
    home: list[int] = field(init=False)
    upward: list[Table] = field(init=False, default_factory=lambda: list[Table]())
    least: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.buckets = [_Bucket(variable, (variable,), []) for variable in self.place]
        self.home = [min((self.place[v] for v in table.scope), default=-1) for table in self.tables]
        for table, number in zip(self.tables, self.home, strict=True):
            if number >= 0:
                self.buckets[number].tables.append(table)
            else:
                self.least += int(table.cells)

    def ascend(self) -> None:
        """Eliminate every variable."""
        for number, bucket in enumerate(self.buckets):
            parts = [*bucket.tables, *(self.upward[child] for child in bucket.below)]
            others = sorted({v for part in parts for v in part.scope} - {bucket.variable}, key=lambda v: self.place[v])
            bucket.scope = (bucket.variable, *others)
            self.upward.append(Table(tuple(others), np.asarray(self.summed(bucket.scope, parts).min(axis=0))))
            if others:
                self.buckets[self.place[others[0]]].below.append(number)
            else:
                self.least = min(self.least + int(self.upward[-1].cells), self.cannot)

    def states(self) -> Mapping[int, int]:
        """The states of a least choice, the last variable first."""
        found: dict[int, int] = {}
        for bucket in reversed(self.buckets):
            parts = [*bucket.tables, *(self.upward[child] for child in bucket.below)]
            states: tuple[int | slice, ...] = (slice(None), *(found[v] for v in bucket.scope[1:]))
            found[bucket.variable] = int(np.argmin(self.summed(bucket.scope, parts)[states]))
        return found

    def descend(self) -> list[Array]:
        """For each cell of each table the least sum of all: messages from below and back from above."""
        downward: dict[int, Table] = {}
        whole: dict[int, Array] = {}
        for number in reversed(range(len(self.buckets))):
            bucket = self.buckets[number]
            if self.upward[number].scope:
                above = downward[number]
            else:
                above = Table(
                    (), np.asarray(self.least - int(self.upward[number].cells), self.upward[number].cells.dtype)
                )
            parts = [*bucket.tables, above]
            for child in bucket.below:
                others = [*parts, *(self.upward[other] for other in bucket.below if other != child)]
                kept = self.upward[child].scope
                downward[child] = Table(kept, _least_over(kept, bucket.scope, self.summed(bucket.scope, others)))
            whole[number] = self.summed(bucket.scope, [*parts, *(self.upward[child] for child in bucket.below)])
        return [
            np.asarray(self.least)
            if number < 0
            else _least_over(table.scope, self.buckets[number].scope, whole[number])
            for table, number in zip(self.tables, self.home, strict=True)
        ]

    def summed(self, scope: Sequence[int], parts: Iterable[Table]) -> Array:
        """The sum of tables over the variables of a scope, which has all of theirs."""
        axes = {variable: axis for axis, variable in enumerate(scope)}
        found: Array = np.zeros((1,) * len(scope), np.int64)
        for part in parts:
            turned = part.cells.transpose(sorted(range(len(part.scope)), key=lambda k: axes[part.scope[k]]))
            there = set(part.scope)
            found = np.minimum(found + turned.reshape([self.sizes[v] if v in there else 1 for v in scope]), self.cannot)
        return np.broadcast_to(found, tuple(self.sizes[v] for v in scope))


def _least_over(kept: Sequence[int], scope: Sequence[int], cells: Array) -> Array:
    """The least of a sum for each choice of the variables that are kept, in their order."""
    gone = tuple(axis for axis, variable in enumerate(scope) if variable not in kept)
    least = cells.min(axis=gone) if gone else cells
    left = [variable for variable in scope if variable in kept]
    return np.asarray(least.transpose([left.index(variable) for variable in kept]))


MOST_TOGETHER = 256
"""The number of cells up to which a value's table is made over all who use it, without a variable of its own."""
MOST_SETS = 1024
"""The number of sets of layouts that a value may be there in."""
_INT64 = 1 << 61

Needs = frozenset[Layout]


class TooWide(Exception):
    """The problem's tables would be too large."""


@dataclass(frozen=True, slots=True)
class _Line:
    """The table of a value's rewrites: for each cell, the layout that it is made in and those that are needed."""

    table: int
    cells: tuple[tuple[Layout, Needs], ...]


@dataclass(slots=True)
class Network:
    """The tables of a problem. Raises TooWide."""

    problem: Problem
    sizes: dict[int, int] = field(init=False, default_factory=lambda: dict[int, int]())
    tables: list[Table] = field(init=False, default_factory=lambda: list[Table]())
    lines: dict[str, _Line] = field(init=False, default_factory=lambda: dict[str, _Line]())
    weight: int = field(init=False)
    cannot: int = field(init=False)
    through: Sequence[Array] = field(init=False, default=())

    def __post_init__(self) -> None:
        calls, moves = self.problem.calls, self.problem.moves
        self.sizes |= {number: len(call.variants) for number, call in enumerate(calls) if len(call.variants) > 1}
        self.weight = weight_of(self.problem)
        most = sum(sum(each.values()) for each in moves.values()) + sum(max(call.costs, default=0) for call in calls)
        self.cannot = (most + 1) * self.weight
        for number, call in enumerate(calls):
            if call.costs:
                self.add([number], [call.cost(k) * self.weight for k in range(len(call.variants))])
        made = {name: number for number, call in enumerate(calls) for name in call.results}
        used: dict[str, dict[int, None]] = {}
        for number, call in enumerate(calls):
            for name in call.operands:
                used.setdefault(name, {})[number] = None
        for name in moves:
            self.value(name, made.get(name), list(used.get(name, ())))

    def add(self, scope: Sequence[int], cells: Sequence[int]) -> None:
        """A table over calls and values, its cells in order; those that have one state are no variables."""
        open_ = tuple(variable for variable in scope if variable in self.sizes)
        dtype = np.int64 if self.cannot < _INT64 else np.object_
        self.tables.append(Table(open_, np.asarray(cells, dtype).reshape([self.sizes[variable] for variable in open_])))

    def value(self, name: str, maker: int | None, users: Sequence[int]) -> None:
        """The tables of a value's rewrites."""
        calls = self.problem.calls
        if maker is None:
            sources: list[Layout] = [self.problem.fixed[name]]
        else:
            place = calls[maker].results.index(name)
            sources = [variant.results[place] for variant in calls[maker].variants]
        always = frozenset(layout for output, layout in self.problem.outputs if output == name and layout is not None)
        needs = {user: [calls[user].needs(k, name) for k in range(len(calls[user].variants))] for user in users}
        start = () if maker is None else (maker,)
        if len(sources) * prod(map(len, needs.values())) <= MOST_TOGETHER or len(users) < 2:
            together = [always.union(*each) for each in product(*needs.values())]
            self.line(name, (*start, *users), list(product(sources, together)))
            return
        sets = _unions(always, needs.values())
        variable = len(calls) + len(self.lines)
        if len(sets) > 1:
            self.sizes[variable] = len(sets)
        self.line(name, (*start, variable), list(product(sources, sets)))
        for user, asked in needs.items():
            self.add((user, variable), [0 if each <= there else self.cannot for each, there in product(asked, sets)])

    def line(self, name: str, scope: Sequence[int], cells: Sequence[tuple[Layout, Needs]]) -> None:
        """The table that has what a value's rewrites cost."""
        self.lines[name] = _Line(len(self.tables), tuple(cells))
        known: dict[tuple[Layout, Needs], int] = {}
        for cell in cells:
            if cell not in known:
                known[cell] = self.cost(self.problem.moves[name], *cell)
        self.add(scope, [known[cell] for cell in cells])

    def cost(self, costs: Mapping[Move, int], source: Layout, needed: Needs) -> int:
        """What a value's rewrites cost, their number counted last; `cannot` where there are none."""
        try:
            moves = cheapest_moves(costs, source, sorted(needed))
        except KeyError:
            return self.cannot
        return sum(costs[move] for move in moves) * self.weight + len(moves)

    def solve(self) -> tuple[Choice, int] | None:
        """The cheapest choice and its cost; None where no choice is possible. Raises TooWide."""
        found = least_sum(self.sizes, self.tables, self.cannot)
        if found is None:
            raise TooWide
        choice = [found.states.get(number, 0) for number in range(len(self.problem.calls))]
        return None if found.least >= self.cannot else (choice, found.least // self.weight)

    def without(self, name: str, move: Move) -> int | None:
        """What the cheapest choice costs that does without a rewrite; None where there is none. Raises TooWide."""
        if not self.through:
            found = least_sum(self.sizes, self.tables, self.cannot, through=True)
            if found is None:
                raise TooWide
            self.through = found.through
        line = self.lines[name]
        costs = self.problem.moves[name]
        left = [
            int(through)
            for (source, needed), through in zip(line.cells, self.through[line.table].flat, strict=True)
            if int(through) < self.cannot and move not in cheapest_moves(costs, source, sorted(needed))
        ]
        return min(left) // self.weight if left else None


def weight_of(problem: Problem) -> int:
    """A factor for costs beside which no number of rewrites counts."""
    return 1 + sum(len({layout for move in each for layout in move}) for each in problem.moves.values())


def _unions(always: Needs, needs: Iterable[Sequence[Needs]]) -> list[Needs]:
    """The sets of layouts that a value may have to be there in, small ones first. Raises TooWide."""
    found = {always}
    for choices in needs:
        found = {there | each for there in found for each in choices}
        if len(found) > MOST_SETS:
            raise TooWide
    return sorted(found, key=lambda there: (len(there), sorted(there)))
