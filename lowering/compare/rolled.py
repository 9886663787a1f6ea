"""Runs of statements that differ by a constant step, written as loops again: `A[0] = 1; A[2] = 1; A[4] = 1` becomes
`for u in T.unroll(3): A[u * 2] = 1`.

What a compiler unrolled has as many statements as the loop had iterations, which is many to look at one by one. The
loops found here are a proposal: `rolled` has them written out again and compared with what was given, by
`verify/lockstep/identity.py`, which is exact, and gives up what is not the same.

A statement is known by its form, in which constants that are added to integers are left out, and what it binds has no
name; and by these constants. Groups of statements of one form whose constants grow by the same step are an unrolled
loop. Lets and memory end with their last use first, so that each copy has its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import INT32, DType
from layoutproof.ir.expr import Binary, Expr, IntImm, Var
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, BufferStore, For, ForKind, IfThenElse, Let, Seq, Stmt, seq
from layoutproof.ir.visit import children, descend, kinds_in, map_children, mapped, names_in, nodes_of, substitute, walk
from layoutproof.verify.lockstep.identity import (
    MOST_ITERATIONS,
    constant_value,
    ends_anywhere,
    is_same_unrolled,
    is_written_out,
)

MANY = 12
"""Stores that loops have to save; fewer statements are looked at as they are."""
_FEW = 256
_PERIODS = 8  # lengths of an iteration that are tried at a place
_ROLLED = BufferStore | For | IfThenElse | Seq | Let | Allocate  # what an iteration may be made of


def rolled(function: PrimFunc, least: int = MANY) -> PrimFunc:
    """The same program with loops for runs of statements, where that saves `least` stores; else itself."""
    stores = _stores(function.body)
    if stores <= least:
        return function
    body = trampoline(_Rolling(names_in(function.body) | {p.name for p in function.params}).visit, function.body)
    assert isinstance(body, Stmt)
    found = replace(function, body=body)
    return found if stores - _stores(body) >= least and is_same_unrolled(function, found) else function


def _stores(stmt: Stmt) -> int:
    return sum(1 for _ in nodes_of(stmt, BufferStore))


def are_few(functions: Sequence[PrimFunc]) -> bool:
    """Whether programs are short enough to be compared statement by statement too."""
    return all(_stores(f.body) <= _FEW for f in functions)


def unrolled(function: PrimFunc) -> PrimFunc:
    """The same program with its `unroll` loops written out, those with constant bounds; itself where that is long."""

    def visit(node: Node) -> Node | Steps[Node, Node]:
        return node if isinstance(node, BufferStore) or not isinstance(node, Stmt) else descend(node, visit, written)

    def written(stmt: Node) -> Node:
        if not (isinstance(stmt, For) and is_written_out(stmt)):
            return stmt
        assert isinstance(stmt.start, IntImm) and isinstance(stmt.extent, IntImm)
        numbers = range(stmt.start.value, stmt.start.value + stmt.extent.value)
        return seq(*(_computed(substitute(stmt.body, {stmt.var: IntImm(k, stmt.var.dtype)})) for k in numbers))

    few = trampoline(_iterations, function.body) <= MOST_ITERATIONS
    body = trampoline(visit, function.body) if few else function.body
    assert isinstance(body, Stmt)
    return function if body is function.body else replace(function, body=body)


def _iterations(stmt: Stmt) -> Steps[Stmt, int]:
    """How many statements there are once `unroll` loops are written out, or more."""
    inside = 0
    for part in children(stmt):
        if isinstance(part, Stmt):
            inside += yield part
    if isinstance(stmt, For) and isinstance(stmt.extent, IntImm) and is_written_out(stmt):
        return max(stmt.extent.value, 1) * max(inside, 1)
    return max(inside, 1)


Constants = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Item:
    """A statement, the number of its form (None where it cannot be part of a loop), and what is added to each integer
    in it, with the types of these.
    """

    stmt: Stmt
    form: int | None = None
    added: tuple[Constants, ...] = ()
    dtypes: tuple[DType, ...] = ()

    def steps(self, following: _Item) -> Constants:
        """By how much each integer grows, of statements of one form."""
        return tuple(sum(b) - sum(a) for a, b in zip(self.added, following.added, strict=True))


@dataclass(frozen=True, slots=True)
class _Run:
    """Copies of `period` statements, one after the other from `start`, whose integers grow evenly."""

    start: int
    period: int
    copies: int

    @property
    def end(self) -> int:
        return self.start + self.period * self.copies

    def preference(self) -> tuple[bool, int]:
        """Less is better: short groups, rows before columns; of those that occur twice the one that takes most."""
        return (False, self.period) if self.copies > 2 else (True, -self.end)


class _Rolling:
    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._around: set[str] = set()
        self._forms: dict[Stmt, int] = {}

    def visit(self, node: Node) -> Node | Steps[Node, Node]:
        """The statement with each sequence in it rolled."""
        if isinstance(node, BufferStore) or not isinstance(node, Stmt):
            return node
        return self._sequence(node) if isinstance(node, Seq) or ends_anywhere(node) else mapped(node)

    def _sequence(self, stmt: Stmt) -> Steps[Node, Node]:
        """What follows a let or an allocation in the text stands inside it: first all in order, then closed again."""
        events: list[tuple[Let | Allocate | None, Stmt]] = []
        rest = [stmt]
        while rest:
            current = rest.pop()
            if isinstance(current, Seq):
                rest += reversed(current.body)
            elif isinstance(current, Let | Allocate) and ends_anywhere(current) and not rest:
                events.append((current, current))
                rest.append(current.body)
            else:
                made = yield current
                assert isinstance(made, Stmt)
                events.append((None, made))
        return seq(*self._repeated(self._closed(events)))

    def _closed(self, events: Sequence[tuple[Let | Allocate | None, Stmt]]) -> list[Stmt]:
        """The statements, each let and allocation around those from its place to its last use."""
        if all(opener is None for opener, _ in events):
            return [stmt for _, stmt in events]
        last: dict[Node, int] = {}
        for k, (opener, stmt) in enumerate(events):
            parts = [stmt] if opener is None else [x for x in children(opener) if not isinstance(x, Stmt)]
            last |= dict.fromkeys((node for part in parts for node in walk(part) if isinstance(node, Var)), k)
        later: list[tuple[int, Stmt]] = []  # with their places, the next one last
        for k, (opener, stmt) in reversed(list(enumerate(events))):
            if opener is None:
                later.append((k, stmt))
                continue
            end = last[opener.var if isinstance(opener, Let) else opener.buffer.data]
            inside: list[Stmt] = []
            while later and (not inside or later[-1][0] <= end):
                inside.append(later.pop()[1])
            later.append((k, replace(opener, body=seq(*self._repeated(inside)))))
        return [stmt for _, stmt in reversed(later)]

    def _repeated(self, statements: Sequence[Stmt]) -> Sequence[Stmt]:
        """Statements with loops for runs, and for runs of these."""
        # What is the only one of its kind is no copy: most of what follows a let is looked at no further for that let.
        kinds = Counter((type(stmt), kinds_in(stmt)) for stmt in statements)
        items = [self._item(s) if kinds[type(s), kinds_in(s)] > 1 else _Item(s) for s in statements]
        shorter = self._once(items)
        while len(shorter) < len(items):
            items, shorter = shorter, self._once(shorter)
        return [item.stmt for item in items]

    def _item(self, stmt: Stmt) -> _Item:
        if any(issubclass(kind, Stmt) and not issubclass(kind, _ROLLED) for kind in kinds_in(stmt)):
            return _Item(stmt)
        added: list[Constants] = []
        dtypes: list[DType] = []

        def left_out(base: Expr | None, constants: Constants, dtype: DType) -> Expr:
            added.append(constants)
            dtypes.append(dtype)
            return IntImm(0, dtype) if base is None else base

        form = self._forms.setdefault(_without_names(_with_integers(stmt, left_out)), len(self._forms))
        return _Item(stmt, form, tuple(added), tuple(dtypes))

    def _once(self, items: Sequence[_Item]) -> list[_Item]:
        """The statements with each run as a loop."""
        places: dict[int | None, list[int]] = {}
        for place, item in enumerate(items):
            places.setdefault(item.form, []).append(place)
        found: list[_Item] = []
        start = 0
        tried: dict[int, int] = {}  # where the last run ends that is no loop, by its period
        while start < len(items):
            same = places[items[start].form] if items[start].form is not None else []
            here = bisect_right(same, start)
            periods = [p - start for p in same[here : here + _PERIODS] if tried.get(p - start, 0) <= start]
            runs = [run for run in (_run(items, start, period) for period in periods) if run.copies > 1]
            end, made = start + 1, items[start]
            for run in sorted(runs, key=_Run.preference):
                loop = self._loop(items, run)
                if loop is not None:
                    end, made = run.end, self._item(loop)
                    break
                tried[run.period] = run.end
            found.append(made)
            start = end
        return found

    def _loop(self, items: Sequence[_Item], run: _Run) -> For | None:
        """The loop of a run; None where it is not clear what grows."""
        first = items[run.start : run.start + run.period]
        grown: list[Sequence[tuple[int, int]]] = []
        for place in range(run.start, run.start + run.period):
            for added in zip(*(item.added for item in items[place : run.end : run.period]), strict=True):
                parts = _growth(added)
                if parts is None:
                    return None
                grown.append(parts)
        types = zip(chain.from_iterable(item.dtypes for item in first), grown, strict=True)
        growing = [(dtype, part) for dtype, parts in types for part in parts if part[1] != 0]
        dtype = growing[0][0] if growing else INT32
        if any(other != dtype or not _fits(part, run.copies, dtype) for other, part in growing):
            return None
        var = Var(self._name(item.stmt for item in first), dtype)
        wanted = iter(grown)
        body = [
            _with_integers(item.stmt, lambda base, _, dtype: _sum(base, next(wanted), var, dtype)) for item in first
        ]
        self._around.add(var.name)
        inside = seq(*self._repeated(body))
        self._around.remove(var.name)
        return For(var, IntImm(0, dtype), IntImm(run.copies, dtype), ForKind.UNROLLED, inside, span=body[0].span)

    def _name(self, inside: Iterable[Stmt]) -> str:
        """A name that is free, also in loops that were found, and stand inside or around."""
        used = {loop.var.name for stmt in inside for loop in nodes_of(stmt, For)} | self._around | self._taken
        return next(name for name in map("u{}".format, count()) if name not in used)


def _run(items: Sequence[_Item], start: int, period: int) -> _Run:
    """The longest run of groups with this many statements."""
    steps: list[Constants] = []
    end = start + period
    while end < len(items) and items[end].form is not None and items[end].form == items[end - period].form:
        step = items[end - period].steps(items[end])
        if len(steps) < period:
            steps.append(step)
        elif step != steps[(end - start) % period]:
            break
        end += 1
    return _Run(start, period, (end - start) // period)


def _growth(copies: Sequence[Constants]) -> Sequence[tuple[int, int]] | None:
    """From where, and by how much from copy to copy, each constant grows that is added to an integer, one of 0 being
    left out. None where that is not clear.
    """
    longest = max(map(len, copies))
    if longest <= 1:
        start = sum(copies[0])
        return [(start, sum(copies[1]) - start)]
    full = [k for k, each in enumerate(copies) if len(each) == longest]
    if len(full) < 2:
        return None
    (i, k), found = full[:2], []
    for a, b in zip(copies[i], copies[k], strict=True):
        step = (b - a) // (k - i)
        found.append((a - i * step, step))
    there = all(tuple(v for a, b in found if (v := a + n * b)) == each for n, each in enumerate(copies))
    return found if there else None


def _fits(part: tuple[int, int], copies: int, dtype: DType) -> bool:
    """Whether `u * step + start` can be written, and computed without overflow, for each number of a copy."""
    start, step = part
    last = step * (copies - 1)
    return all(dtype.min_int <= x <= dtype.max_int for x in (step, start, last, start + last, copies))


def _sum(base: Expr | None, parts: Sequence[tuple[int, int]], var: Var, dtype: DType) -> Expr:
    """An integer with what is added to it in an iteration."""
    for start, step in parts:
        if step == 0:
            base = _plus(base, start, dtype)
            continue
        grown = _plus(var if step == 1 else Binary(BinaryOp.MUL, var, IntImm(step, dtype)), start, dtype)
        base = grown if base is None else Binary(BinaryOp.ADD, base, grown)
    assert base is not None
    return base


def _plus(base: Expr | None, constant: int, dtype: DType) -> Expr:
    if base is None or constant == 0:
        return IntImm(constant, dtype) if base is None else base
    if constant < dtype.min_int:
        return Binary(BinaryOp.SUB, base, IntImm(-constant, dtype))
    return Binary(BinaryOp.ADD, base, IntImm(constant, dtype))


def _without_names(stmt: Stmt) -> Stmt:
    """A statement with numbers for the names of what it binds."""
    bound: dict[Node, Node] = {}
    for node in nodes_of(stmt, For, Let, Allocate):
        if isinstance(node, For | Let):
            bound.setdefault(node.var, Var(f"{len(bound)}", node.var.dtype))
        elif isinstance(node, Allocate):
            data = Var(f"{len(bound)}", node.buffer.data.dtype)
            bound.setdefault(node.buffer, replace(node.buffer, name=data.name, data=data))
    if not bound:
        return stmt

    def visit(node: Node) -> Node | Steps[Node, Node]:
        return bound[node] if node in bound else descend(node, visit)

    found = trampoline(visit, stmt)
    assert isinstance(found, Stmt)
    return found


def _with_integers(stmt: Stmt, changed: Callable[[Expr | None, Constants, DType], Expr]) -> Stmt:
    """The statement with each integer in it replaced, by what is left without the constants that are added to it, and
    these: what is stored or decided, an index, and each operand of arithmetic but a constant factor or divisor.
    """

    def step(node: Node) -> Node | Steps[Node, Node]:
        if isinstance(node, For | Let):
            return binder(node)
        return mapped(node) if isinstance(node, Stmt) else visit(node)

    def binder(node: For | Let) -> Steps[Node, Node]:
        names: Sequence[str] = ("value", "body") if isinstance(node, Let) else ("start", "extent", "body")
        if isinstance(node, For) and is_written_out(node):
            names = ("body",)  # its bounds stay constant
        made: dict[str, Any] = {}
        for name in names:
            made[name] = yield getattr(node, name)
        return replace(node, **made)

    def visit(node: Node) -> Node:
        if isinstance(node, Buffer):
            return node
        if not (isinstance(node, Expr) and node.dtype.is_integer and node.dtype.lanes == 1):
            return map_children(node, visit)
        base, constants = _split(node)
        factors = isinstance(base, Binary) and base.op not in _SUMS
        inside = None if base is None else map_children(base, operand if factors else visit)
        return changed(inside, constants, node.dtype)

    def operand(node: Node) -> Node:
        return node if isinstance(node, IntImm) else visit(node)

    found = trampoline(step, stmt)
    assert isinstance(found, Stmt)
    return found


def _computed(stmt: Stmt) -> Stmt:
    """The statement with sums and products of constants computed, and nothing added to what is left."""

    def visit(node: Node) -> Node:
        made = map_children(node, visit)
        if not isinstance(made, Binary):
            return made
        value = constant_value(made, {})
        if value is not None:
            return IntImm(value, made.dtype)
        base, constants = _split(made)
        return base if base is not None and not constants and made.dtype.is_integer else made

    root: Node = stmt
    found = trampoline(lambda node: mapped(node) if isinstance(node, Stmt) else visit(node), root)
    assert isinstance(found, Stmt)
    return found


_SUMS = (BinaryOp.ADD, BinaryOp.SUB)


def _split(expr: Expr) -> tuple[Expr | None, Constants]:
    """An integer without constants that are added to it, and those that are not 0, the innermost first; None for the
    first where it is a constant.
    """
    found: list[int] = []
    while isinstance(expr, Binary) and expr.op in _SUMS:
        if isinstance(expr.rhs, IntImm):
            found.append(expr.rhs.value if expr.op is BinaryOp.ADD else -expr.rhs.value)
            expr = expr.lhs
        elif isinstance(expr.lhs, IntImm) and expr.op is BinaryOp.ADD:
            found.append(expr.lhs.value)
            expr = expr.rhs
        else:
            break
    base = None if isinstance(expr, IntImm) else expr
    if isinstance(expr, IntImm):
        found.append(expr.value)
    return base, tuple(x for x in reversed(found) if x)
