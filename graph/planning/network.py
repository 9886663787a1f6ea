"""A planning problem as tables, for elimination: what each value's rewrites cost, for each choice of those who make and use it.

A value that many use gets a variable of its own, the set of layouts in which it is there: who uses it speaks with that set alone, and so
does who makes it. Costs count first, then the number of rewrites, so that a rewrite that costs nothing is not made without need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

import numpy as np

from layoutproof.graph.planning.elimination import Array, Table, least_sum
from layoutproof.graph.planning.layouts import Layout
from layoutproof.graph.planning.moves import Move, cheapest_moves
from layoutproof.graph.planning.problem import Choice, Problem

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
    """The table of a value's rewrites: for each cell, in order, the layout that the value is made in and those that it is needed in."""

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
