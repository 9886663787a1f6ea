"""Unrolled code as loops again: a program with hundreds of copies of a statement is compared by its loops.

A loop is proposed where the constants of copies grow evenly, and taken only if each of its iterations, written out, is
the copy in its place. Then it is that sequence of statements by what a loop means, so nothing has to be proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from layoutproof.importers.mlir.copies import Form, Grown, Shape, growth, is_copy, shape_of
from layoutproof.importers.mlir.values import ZERO, number
from layoutproof.ir.diagnostic import Span
from layoutproof.ir.dtype import INT64
from layoutproof.ir.expr import Var
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, Seq, Stmt, make_room, seq
from layoutproof.ir.visit import children, fresh, map_children, names_in, stores_in, walk

MANY = 12  # stores that rolling has to save: fewer are compared as they are
_PERIODS = 8  # lengths of a group that are tried at a place


def rolled(func: PrimFunc, least: int = MANY) -> PrimFunc:
    """The function with loops in place of copies; the function itself where fewer than `least` stores are saved."""
    make_room(func.body)
    body = _Rolling({*names_in(func.body), *(v.name for v in func.params)}).of(func.body)
    saved = _stores(func.body) - _stores(body)
    return replace(func, body=body) if saved >= least else func


def _stores(stmt: Stmt) -> int:
    return sum(1 for _ in stores_in(stmt))


@dataclass(frozen=True, slots=True)
class _Run:
    """Copies of `period` statements, one after the other from `start`, whose numbers grow evenly."""

    start: int
    period: int
    copies: int

    @property
    def end(self) -> int:
        return self.start + self.period * self.copies

    def preference(self) -> tuple[bool, int]:
        """Less is better: short groups, rows before columns; of those that occur twice the one that takes most."""
        return (False, self.period) if self.copies > 2 else (True, -self.end)

    def copy(self, items: Sequence[Stmt], position: int) -> Sequence[Stmt]:
        start = self.start + self.period * position
        return items[start : start + self.period]


@dataclass(frozen=True, slots=True)
class _Rolling:
    taken: set[str]

    def of(self, stmt: Stmt) -> Stmt:
        """A statement, rolled; lets and memory end with their last use."""
        return self._repeated(self._flat(stmt))

    def _repeated(self, items: list[Stmt]) -> Stmt:
        """Statements in order, rolled."""
        shorter = self._once(items)
        while len(shorter) < len(items):
            # Rows of copies are loops now, and may be copies themselves.
            items, shorter = shorter, self._once(shorter)
        return seq(*shorter)

    def _flat(self, stmt: Stmt) -> list[Stmt]:
        """The statements in order, what is inside each of them rolled."""
        opened: list[tuple[int, Let | Allocate]] = []
        found: list[Stmt] = []
        rest = [stmt]
        while rest:
            current = rest.pop()
            if isinstance(current, Seq):
                rest += reversed(current.body)
            elif isinstance(current, Let | Allocate) and not rest:
                # What follows in the text stands inside it.
                opened.append((len(found), current))
                rest.append(current.body)
            else:
                found.append(self._inside(current))
        return _closed(found, opened)

    def _inside(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, For | Let | Allocate):
            return replace(stmt, body=self.of(stmt.body))
        if isinstance(stmt, IfThenElse):
            otherwise = None if stmt.otherwise is None else self.of(stmt.otherwise)
            return replace(stmt, then=self.of(stmt.then), otherwise=otherwise)
        return stmt

    def _once(self, items: list[Stmt]) -> list[Stmt]:
        """The statements with each repetition as a loop."""
        shapes = [shape_of(item) for item in items]
        places: dict[Form, list[int]] = {}
        for position, shape in enumerate(shapes):
            places.setdefault(shape.form, []).append(position)
        found: list[Stmt] = []
        start = 0
        while start < len(items):
            again = islice((p for p in places[shapes[start].form] if p > start), _PERIODS)
            runs = [run for run in (_run(shapes, start, p - start) for p in again) if run.copies > 1]
            loop = None
            for run in sorted(runs, key=_Run.preference):
                loop = self._loop(items, shapes, run)
                if loop is not None:
                    break
            found.append(items[start] if loop is None else loop)
            start = start + 1 if loop is None else run.end
        return found

    def _loop(self, items: Sequence[Stmt], shapes: Sequence[Shape], run: _Run) -> For | None:
        """The loop of a run; None if an iteration is not the copy in its place."""
        var = Var(fresh("copy", self.taken), INT64)
        for chosen in dict.fromkeys((run.copies - 1, 1, 0)):
            body = self._grown(items, shapes, run, chosen, var)
            if body is not None and all(is_copy(body, var, k, run.copy(items, k)) for k in range(run.copies)):
                self.taken.add(var.name)
                first = run.copy(items, 0)
                placed = [_placed(part, stmt) for part, stmt in zip(body, first, strict=True)]
                return For(var, ZERO, number(run.copies), ForKind.SERIAL, self._repeated(placed), span=first[0].span)
        return None

    def _grown(
        self, items: Sequence[Stmt], shapes: Sequence[Shape], run: _Run, chosen: int, var: Var
    ) -> list[Stmt] | None:
        """A copy in which constants grow with `var`, if it is clear which of them do."""
        body = []
        for offset, stmt in enumerate(run.copy(items, chosen)):
            steps = growth(shapes[run.start + offset : run.end : run.period], chosen)
            if steps is None:
                return None
            body.append(Grown(var, steps, chosen).of(stmt))
        return body


def _run(shapes: Sequence[Shape], start: int, period: int) -> _Run:
    """The longest run of groups with this many statements."""
    steps: list[tuple[int, ...]] = []
    end = start + period
    while end < len(shapes) and shapes[end].form == shapes[end - period].form:
        step = shapes[end - period].steps(shapes[end])
        if len(steps) < period:
            steps.append(step)
        elif step != steps[(end - start) % period]:
            break
        end += 1
    return _Run(start, period, (end - start) // period)


def _closed(found: list[Stmt], opened: Sequence[tuple[int, Let | Allocate]]) -> list[Stmt]:
    """Each let and allocation around the statements from its place to its last use."""
    used = [_variables(each) for each in found]
    for start, opener in reversed(opened):
        var = opener.var if isinstance(opener, Let) else opener.buffer.data
        end = max((k for k in range(start, len(found)) if var in used[k]), default=start) + 1
        inside = {v for each in used[start:end] for v in each}
        found[start:end] = [replace(opener, body=seq(*found[start:end]))]
        used[start:end] = [inside.union(*(_variables(c) for c in children(opener) if not isinstance(c, Stmt)))]
    return found


def _variables(node: Node) -> set[Var]:
    """The variables that a part of a program mentions, those of memory, too."""
    return {each for each in walk(node) if isinstance(each, Var)}


def _placed(copy: Stmt, first: Stmt) -> Stmt:
    """A copy with the places of the first one, which has the same statements."""
    spans = iter([each.span for each in _statements(first)])

    def visit(node: Node) -> Node:
        if not isinstance(node, Stmt):
            return node
        span: Span | None = next(spans)
        return replace(map_children(node, visit), span=span)

    placed = visit(copy)
    assert isinstance(placed, Stmt)
    return placed


def _statements(stmt: Stmt) -> Iterator[Stmt]:
    return (each for each in walk(stmt) if isinstance(each, Stmt))
