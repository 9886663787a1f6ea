"""The least sum of tables, exactly: variables are eliminated one after the other, as in dynamic programming over a graph of little width.

A table gives a number to each choice of states of a few variables. To eliminate a variable, the tables that speak of it are added up, and
for each choice of the others the best state is kept. Networks are long and narrow, so the sums stay small. Source: U. Bertele and
F. Brioschi, "Nonserial Dynamic Programming", 1972.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
MOST_CELLS = 1 << 21
"""The number of cells past which a sum of tables is too large to be made."""
MOST_TOGETHER = 1 << 25
"""The number of cells past which all sums together take too long."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A number for each choice of states of the variables in `scope`, one axis for each, in that order."""

    scope: tuple[int, ...]
    cells: Array


@dataclass(slots=True)
class _Bucket:
    """What is summed when a variable is eliminated: the tables that speak of it, and what became of variables before it."""

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
    """The variables in an order in which each sum of tables is small; None where one, or all of them, would have too many cells."""
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
        if size > MOST_CELLS or together > MOST_TOGETHER:
            return None
        found.append(variable)
        near = around.pop(variable)
        for other in near:
            around[other] |= near
            around[other] -= {other, variable}
        for other in near:
            heappush(work, (cells(other), other))
    return found


def least_sum(sizes: Mapping[int, int], tables: Sequence[Table], cannot: int, *, through: bool = False) -> Solved | None:
    """The choice of a state for each variable for which the tables' sum is least, the first of those that are alike.

    None where the tables hang together too closely. No number is below 0, and what reaches `cannot` is impossible; twice that has to fit
    the type of the cells.
    """
    order = order_of_elimination(sizes, (table.scope for table in tables))
    if order is None:
        return None
    found = _Elimination(sizes, tables, cannot, {variable: number for number, variable in enumerate(order)})
    found.ascend()
    return Solved(found.states(), found.least, found.descend() if through else ())


@dataclass(slots=True)
class _Elimination:
    """An elimination on its way: for each variable, in order, the sum in which it is eliminated, and the table that is left of it."""

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
        """For each table the least sum of all for each of its cells: what comes from below, and what comes back from above."""
        downward: dict[int, Table] = {}
        whole: dict[int, Array] = {}
        for number in reversed(range(len(self.buckets))):
            bucket = self.buckets[number]
            if self.upward[number].scope:
                above = downward[number]
            else:
                above = Table((), np.asarray(self.least - int(self.upward[number].cells), self.upward[number].cells.dtype))
            parts = [*bucket.tables, above]
            for child in bucket.below:
                others = [*parts, *(self.upward[other] for other in bucket.below if other != child)]
                kept = self.upward[child].scope
                downward[child] = Table(kept, _least_over(kept, bucket.scope, self.summed(bucket.scope, others)))
            whole[number] = self.summed(bucket.scope, [*parts, *(self.upward[child] for child in bucket.below)])
        return [
            np.asarray(self.least) if number < 0 else _least_over(table.scope, self.buckets[number].scope, whole[number])
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
