"""A program divided into the units that a partial run executes or omits, the accesses of each unit, and ranges of index
expressions over many boxes of loop values at once, to find the iterations that access given cells.

A unit is a block with everything inside it (unless it only holds blocks and has no init itself), or a store or
assumption outside such blocks.
A box holds an interval for every loop variable. `None` stands for an unknown range: the caller keeps the box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import HANDLE, DType
from layoutproof.ir.evaluate import Overflow, evaluate
from layoutproof.ir.expr import TRUE, Binary, Cast, Compare, Expr, IfThenElseExpr, IntImm, Logical, Not, Var
from layoutproof.ir.interp.analysis import Place, place_of, reads_memory
from layoutproof.ir.intrinsics import Assume, Undef
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import Block, BufferStore, Evaluate, For, IfThenElse, Let, Stmt, body_of
from layoutproof.ir.visit import children, free_variables


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop around a unit or inside it."""

    stmt: For
    place: Place

    @property
    def name(self) -> str:
        """Its variable's name."""
        return self.stmt.var.name


@dataclass(frozen=True, slots=True)
class Definition:
    """A let or a block's iteration variable: a name for an expression over the loops outside it."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store under `steps` (loops and definitions, outermost first) and `guards` (those that are known)."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    steps: tuple[Loop | Definition, ...]
    guards: tuple[Expr, ...]

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops around it."""
        return tuple(s for s in self.steps if isinstance(s, Loop))

    def relevant(self) -> frozenset[str]:
        """The variables of loops that its place in memory or its guards depend on, other loops' bounds included."""
        wanted = {v.name for e in (*self.indices, *self.guards) for v in free_variables(e)}
        for step in reversed(self.steps):
            if step.name in wanted:
                sources = (step.stmt.start, step.stmt.extent) if isinstance(step, Loop) else (step.value,)
                wanted |= {v.name for e in sources for v in free_variables(e)}
        return frozenset(wanted & {loop.name for loop in self.loops})


@dataclass(slots=True)
class Unit:
    """What runs or does not run as a whole, at each value of the loops around it."""

    place: Place
    loops: tuple[Loop, ...]
    writes: list[Access] = field(default_factory=list)
    reads: list[Access] = field(default_factory=list)


_Walk = Steps[Stmt, None]


@dataclass(slots=True)
class _Taker:
    units: list[Unit] = field(default_factory=list)
    path: list[Stmt] = field(default_factory=list)
    steps: list[Loop | Definition] = field(default_factory=list)
    guards: list[Expr] = field(default_factory=list)
    outer_reads: list[Access] = field(default_factory=list)  # of conditions, bounds and lets around the present place
    unit: Unit | None = None

    def visit(self, stmt: Stmt) -> _Walk:
        steps, guards, outer, unit = len(self.steps), len(self.guards), len(self.outer_reads), self.unit
        self.path.append(stmt)
        match stmt:
            case For():
                self.control(stmt.start, stmt.extent)
                self.steps.append(Loop(stmt, place_of(self.path)))
                yield stmt.body
            case IfThenElse():
                yield from self.branch(stmt)
            case Let():
                if stmt.var.dtype != HANDLE:
                    self.control(stmt.value)
                    self.steps.append(Definition(stmt.var.name, stmt.value))
                yield stmt.body
            case Block():
                yield self.block(stmt)
            case BufferStore():
                self.open()
                self.store(stmt)
            case Evaluate():
                self.open()
                self.evaluate(stmt)
            case _:
                for child in children(stmt):
                    if isinstance(child, Stmt):
                        yield child
        self.path.pop()
        self.unit = unit
        del self.steps[steps:], self.guards[guards:], self.outer_reads[outer:]

    def open(self) -> None:
        """Begin a unit here, unless one is open."""
        if self.unit is None:
            loops = tuple(s for s in self.steps if isinstance(s, Loop))
            self.unit = Unit(place_of(self.path), loops, reads=list(self.outer_reads))
            self.units.append(self.unit)

    def branch(self, stmt: IfThenElse) -> _Walk:
        self.control(stmt.condition)
        self.guards.append(stmt.condition)
        yield stmt.then
        self.guards.pop()
        if stmt.otherwise is not None:
            self.guards.append(Not(stmt.condition))
            yield stmt.otherwise
            self.guards.pop()

    def block(self, stmt: Block) -> Stmt:
        """What runs in an instance of a block, whose variables and guard hold from here on."""
        if stmt.init is not None or not holds_blocks(stmt):
            if stmt.iter_vars or stmt.init is not None:
                self.open()
        for v in stmt.iter_vars:
            self.control(v.binding)
            self.steps.append(Definition(v.var.name, v.binding))
        self.control(stmt.where)
        if stmt.where != TRUE:
            self.guards.append(stmt.where)
        return body_of(stmt)

    def store(self, stmt: BufferStore) -> None:
        assert self.unit is not None
        self.unit.writes.append(self.access(stmt.buffer, stmt.indices))
        for expr in (*stmt.indices, stmt.value):
            self.read(expr)

    def evaluate(self, stmt: Evaluate) -> None:
        """What an assumption speaks of counts as written: it runs wherever one of those cells matters."""
        assert self.unit is not None
        condition = stmt.value.condition if isinstance(stmt.value, Assume) else stmt.value
        for access in self.loads(condition):
            self.unit.writes.append(access)
            self.unit.reads.append(access)

    def control(self, *exprs: Expr) -> None:
        """Reads that decide whether or how often what stands below runs."""
        found = [access for expr in exprs for access in self.loads(expr)]
        if self.unit is not None:
            self.unit.reads += found
        else:
            self.outer_reads += found

    def read(self, expr: Expr) -> None:
        assert self.unit is not None
        self.unit.reads += self.loads(expr)

    def access(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Access:
        return Access(buffer, indices, tuple(self.steps), tuple(self.guards))

    def loads(self, expr: Node) -> Iterator[Access]:
        """Every load of an expression, under the conditions of the lazy choices and connectives above it."""
        match expr:
            case BufferLoad():
                yield self.access(expr.buffer, expr.indices)
                for index in expr.indices:
                    yield from self.loads(index)
            case IfThenElseExpr():
                yield from self.loads(expr.condition)
                yield from self.guarded(expr.condition, expr.then)
                yield from self.guarded(Not(expr.condition), expr.otherwise)
            case Logical() if expr.dtype.lanes == 1:
                yield from self.loads(expr.lhs)
                yield from self.guarded(expr.lhs if expr.op is LogicalOp.AND else Not(expr.lhs), expr.rhs)
            case Undef() | Buffer():
                return
            case _:
                for child in children(expr):
                    yield from self.loads(child)

    def guarded(self, guard: Expr, expr: Expr) -> Iterator[Access]:
        self.guards.append(guard)
        yield from list(self.loads(expr))
        self.guards.pop()


def holds_blocks(block: Block) -> bool:
    """Whether a block only arranges other blocks."""
    stack: list[Node] = [block.body]
    while stack:
        node = stack.pop()
        if isinstance(node, Block):
            return True
        stack += [c for c in children(node) if isinstance(c, Stmt)]
    return False


def take_apart(body: Stmt) -> list[Unit]:
    """The units of a body, in program order."""
    taker = _Taker()
    trampoline(taker.visit, body)
    return taker.units


def find_controls(body: Stmt) -> list[Place]:
    """The places of statements whose condition, bounds, bindings or value reads memory."""
    found, path = list[Place](), list[Stmt]()

    def visit(stmt: Stmt) -> _Walk:
        path.append(stmt)
        if any(reads_memory(e) for e in _control(stmt)):
            found.append(place_of(path))
        for child in (body_of(stmt),) if isinstance(stmt, Block) else children(stmt):
            if isinstance(child, Stmt):
                yield child
        path.pop()

    trampoline(visit, body)
    return found


def _control(stmt: Stmt) -> tuple[Expr, ...]:
    match stmt:
        case For():
            return stmt.start, stmt.extent
        case IfThenElse():
            return (stmt.condition,)
        case Let():
            return (stmt.value,)
        case Block():
            return (stmt.where, *(v.binding for v in stmt.iter_vars))
        case _:
            return ()


def by_loop(units: list[Unit]) -> Mapping[Place, list[Unit]]:
    """The units under each loop."""
    found: dict[Place, list[Unit]] = {}
    for unit in units:
        for loop in unit.loops:
            found.setdefault(loop.place, []).append(unit)
    return found


Ints = npt.NDArray[np.int64]
Range = tuple[Ints, Ints]


@dataclass(frozen=True, slots=True)
class Boxes:
    """`count` boxes: by variable, the least and the largest value in each. A variable that is not there is unknown."""

    count: int
    ranges: Mapping[str, Range]

    def take(self, keep: npt.NDArray[Any]) -> Boxes:
        """Some of the boxes: by a mask, or by numbers (repeated ones too)."""
        ranges = {name: (low[keep], high[keep]) for name, (low, high) in self.ranges.items()}
        count = int(np.count_nonzero(keep)) if keep.dtype == np.bool_ else len(keep)
        return Boxes(count, ranges)

    def with_range(self, name: str, values: Range) -> Boxes:
        """The boxes with a variable's interval set."""
        return Boxes(self.count, {**self.ranges, name: values})

    def with_value(self, name: str, value: int) -> Boxes:
        """The boxes with a variable's value, the same in all."""
        found = constant(self, value)
        return self if found is None else self.with_range(name, found)

    def is_point(self, name: str) -> bool:
        """Whether a variable has one value in each box."""
        found = self.ranges.get(name)
        return found is not None and (found[0] is found[1] or bool(np.array_equal(found[0], found[1])))


# Bounds stay below it, so that neither the sum of two nor their difference leaves int64.
_BEYOND = 1 << 62


def constant(boxes: Boxes, value: int) -> Range | None:
    """One value in every box, None if it is too large for bounds."""
    if not -_BEYOND < value < _BEYOND:
        return None
    values = np.full(boxes.count, value, dtype=np.int64)
    return values, values


def range_of(expr: Expr, boxes: Boxes) -> Range | None:
    """The least and the largest value (or bounds on them) of an integer or truth expression in each box, None if
    unknown: where the bounds would leave int64, for example.

    Exact where every variable of the expression has one value in each box.
    """
    if isinstance(expr, IntImm):
        return constant(boxes, expr.value)
    if isinstance(expr, Var):
        return boxes.ranges.get(expr.name)
    if reads_memory(expr):
        return None
    names = [v.name for v in free_variables(expr)]
    if all(boxes.is_point(name) for name in names):
        return _exact(expr, boxes, names)
    rule = _RULES.get(type(expr))
    return _fitting(expr.dtype, rule(expr, boxes)) if rule is not None else None


def _fitting(dtype: DType, found: Range | None) -> Range | None:
    """The bounds, None if one of them is no value of the type."""
    if found is None or dtype.is_bool or not found[0].size:
        return found
    least, most = max(dtype.min_int, 1 - _BEYOND), min(dtype.max_int, _BEYOND - 1)
    return found if least <= found[0].min() and found[1].max() <= most else None


def _exact(expr: Expr, boxes: Boxes, names: list[str]) -> Range | None:
    try:
        values = evaluate(expr, {name: boxes.ranges[name][0] for name in names})
    except (Trap, Overflow, TypeError, OverflowError):
        # A trap in one lane, floats, or numbers beyond int64: not index arithmetic that tells anything here.
        return None
    found = np.broadcast_to(np.asarray(values), (boxes.count,))
    if found.size and not -_BEYOND < int(found.min()) <= int(found.max()) < _BEYOND:
        return None
    points = found.astype(np.int64)
    return points, points


def _binary(expr: Binary, boxes: Boxes) -> Range | None:
    a, b = range_of(expr.lhs, boxes), range_of(expr.rhs, boxes)
    if a is None or b is None:
        return None
    rule = _ARITHMETIC.get(expr.op)
    return rule(a, b) if rule is not None else None


def _times(a: Range, b: Range) -> Range | None:
    if a[0].size and _largest(a) * _largest(b) >= _BEYOND:
        return None
    corners = np.stack([x * y for x in a for y in b])
    return corners.min(axis=0), corners.max(axis=0)


def _largest(a: Range) -> int:
    return max(abs(int(a[0].min())), abs(int(a[1].max())))


def _quotient(a: Range, b: Range) -> Range | None:
    if (b[0] < 1).any():
        return None
    corners = np.stack([x // y for x in a for y in b])
    return corners.min(axis=0), corners.max(axis=0)


def _remainder(a: Range, b: Range) -> Range | None:
    if (b[0] < 1).any():
        return None
    # Within one period of one divisor the remainder runs along with the dividend.
    same = (b[0] == b[1]) & (a[0] // b[0] == a[1] // b[0])
    return np.where(same, a[0] % b[0], 0), np.where(same, a[1] % b[0], b[1] - 1)


_ARITHMETIC: Mapping[BinaryOp, Callable[[Range, Range], Range | None]] = {
    BinaryOp.ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    BinaryOp.SUB: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    BinaryOp.MUL: _times,
    BinaryOp.FLOORDIV: _quotient,
    BinaryOp.FLOORMOD: _remainder,
    BinaryOp.MIN: lambda a, b: (np.minimum(a[0], b[0]), np.minimum(a[1], b[1])),
    BinaryOp.MAX: lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])),
}


def _compare(expr: Compare, boxes: Boxes) -> Range | None:
    a, b = range_of(expr.lhs, boxes), range_of(expr.rhs, boxes)
    if a is None or b is None:
        return None
    match expr.op:
        case CompareOp.LT:
            return _truth(a[1] < b[0], a[0] < b[1])
        case CompareOp.LE:
            return _truth(a[1] <= b[0], a[0] <= b[1])
        case CompareOp.GT:
            return _truth(a[0] > b[1], a[1] > b[0])
        case CompareOp.GE:
            return _truth(a[0] >= b[1], a[1] >= b[0])
        case CompareOp.EQ:
            return _truth((a[0] == a[1]) & (b[0] == b[1]) & (a[0] == b[0]), (a[0] <= b[1]) & (b[0] <= a[1]))
        case CompareOp.NE:
            return _truth((a[1] < b[0]) | (b[1] < a[0]), ~((a[0] == a[1]) & (b[0] == b[1]) & (a[0] == b[0])))


def _truth(surely: npt.NDArray[np.bool_], perhaps: npt.NDArray[np.bool_]) -> Range:
    return surely.astype(np.int64), perhaps.astype(np.int64)


def _logical(expr: Logical, boxes: Boxes) -> Range | None:
    """A side that is unknown leaves what the other decides."""
    unknown = np.zeros(boxes.count, dtype=np.int64), np.ones(boxes.count, dtype=np.int64)
    a, b = range_of(expr.lhs, boxes), range_of(expr.rhs, boxes)
    x, y = a if a is not None else unknown, b if b is not None else unknown
    if expr.op is LogicalOp.AND:
        return np.minimum(x[0], y[0]), np.minimum(x[1], y[1])
    return np.maximum(x[0], y[0]), np.maximum(x[1], y[1])


def _not(expr: Not, boxes: Boxes) -> Range | None:
    a = range_of(expr.operand, boxes)
    return None if a is None else (1 - a[1], 1 - a[0])


def _cast(expr: Cast, boxes: Boxes) -> Range | None:
    return range_of(expr.value, boxes) if expr.dtype.is_integer and expr.value.dtype.is_integer else None


_RULES: Mapping[type, Callable[..., Range | None]] = {
    Binary: _binary,
    Compare: _compare,
    Logical: _logical,
    Not: _not,
    Cast: _cast,
}
