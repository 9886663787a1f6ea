"""A program divided into the units that a partial run executes or omits, and the accesses of each unit.

A unit is a block with everything inside it (unless it only holds blocks and has no init itself), or a store or
assumption outside such blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import TRUE, Expr, IfThenElseExpr, Logical, Not
from layoutproof.ir.interp.analysis import Place, place_of, reads_memory
from layoutproof.ir.intrinsics import Assume, Undef
from layoutproof.ir.node import Node
from layoutproof.ir.operators import LogicalOp
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


@dataclass(slots=True)
class _Taker:
    units: list[Unit] = field(default_factory=list)
    path: list[Stmt] = field(default_factory=list)
    steps: list[Loop | Definition] = field(default_factory=list)
    guards: list[Expr] = field(default_factory=list)
    outer_reads: list[Access] = field(default_factory=list)  # of conditions, bounds and lets around the present place
    unit: Unit | None = None

    def visit(self, stmt: Stmt) -> None:
        steps, guards, outer, unit = len(self.steps), len(self.guards), len(self.outer_reads), self.unit
        self.path.append(stmt)
        match stmt:
            case For():
                self.control(stmt.start, stmt.extent)
                self.steps.append(Loop(stmt, place_of(self.path)))
                self.visit(stmt.body)
            case IfThenElse():
                self.branch(stmt)
            case Let():
                if stmt.var.dtype != HANDLE:
                    self.control(stmt.value)
                    self.steps.append(Definition(stmt.var.name, stmt.value))
                self.visit(stmt.body)
            case Block():
                self.block(stmt)
            case BufferStore():
                self.open()
                self.store(stmt)
            case Evaluate():
                self.open()
                self.evaluate(stmt)
            case _:
                for child in children(stmt):
                    if isinstance(child, Stmt):
                        self.visit(child)
        self.path.pop()
        self.unit = unit
        del self.steps[steps:], self.guards[guards:], self.outer_reads[outer:]

    def open(self) -> None:
        """Begin a unit here, unless one is open."""
        if self.unit is None:
            loops = tuple(s for s in self.steps if isinstance(s, Loop))
            self.unit = Unit(place_of(self.path), loops, reads=list(self.outer_reads))
            self.units.append(self.unit)

    def branch(self, stmt: IfThenElse) -> None:
        self.control(stmt.condition)
        self.guards.append(stmt.condition)
        self.visit(stmt.then)
        self.guards.pop()
        if stmt.otherwise is not None:
            self.guards.append(Not(stmt.condition))
            self.visit(stmt.otherwise)
            self.guards.pop()

    def block(self, stmt: Block) -> None:
        if stmt.init is not None or not holds_blocks(stmt):
            if stmt.iter_vars or stmt.init is not None:
                self.open()
        for v in stmt.iter_vars:
            self.control(v.binding)
            self.steps.append(Definition(v.var.name, v.binding))
        self.control(stmt.where)
        if stmt.where != TRUE:
            self.guards.append(stmt.where)
        self.visit(body_of(stmt))

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
    taker.visit(body)
    return taker.units


def find_controls(body: Stmt) -> list[Place]:
    """The places of statements whose condition, bounds, bindings or value reads memory."""
    found: list[Place] = []

    def visit(stmt: Stmt, place: Place) -> None:
        here = (*place, id(stmt))
        if any(reads_memory(e) for e in _control(stmt)):
            found.append(here)
        for child in (body_of(stmt),) if isinstance(stmt, Block) else children(stmt):
            if isinstance(child, Stmt):
                visit(child, here)

    visit(body, ())
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
