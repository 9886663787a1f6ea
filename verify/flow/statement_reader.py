"""Reads a program into its statements, the exact model of what it computes: walks a function once and writes down its
statements, in the order of its stores in the text. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Expr, IfThenElseExpr, IntImm, Not, Var, const, logical_and, logical_or
from layoutproof.ir.intrinsics import Assume, PointerCast, Undef
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.stmt import (
    Allocate,
    AttrStmt,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Let,
    Seq,
    Stmt,
    body_of,
)
from layoutproof.ir.visit import free_variables, holds_any
from layoutproof.verify.flow.statement_cells import Memories
from layoutproof.verify.flow.statement_values import Condition, Later, Load, Values, Where, with_plain_equality
from layoutproof.verify.program.abstraction import survey_of
from layoutproof.verify.program.evidence import UNRECORDED, Gathered
from layoutproof.verify.program.instances import Access, AccessKind, Dim, Guard, IterationDomain, Program, conjuncts
from layoutproof.verify.program.location import Spot
from layoutproof.verify.program.questions import Because, at_least, below, same
from layoutproof.verify.program.statement import AssumedFact, NotModelled, Read, ReadRole, Statement, Statements

_Walk = Steps[tuple[Stmt, Where], None]


class StatementReader:
    """One walk over one program."""

    def __init__(
        self, program: Program, structures: Mapping[str, tuple[Expr, ...]], apart: bool, gathered: Gathered
    ) -> None:
        self._program = program
        self._apart = apart
        survey = survey_of(program.function)
        self.values = Values(survey.names)
        self._symbols = {symbol.name for symbol in survey.symbols}
        self._memories = Memories(program, structures, gathered)
        self._roots: dict[Var, Var] = {}
        self._spot = Spot(program.function.body)
        self._statements: list[Statement] = []
        self._assumptions: list[AssumedFact] = []
        self._number = 0

    def read(self) -> Statements:
        """The statements. Raises NotModelled."""
        function = self._program.function
        for obstacle in self._program.obstacles:
            raise NotModelled(f"{obstacle.what} may touch anything", obstacle.node)
        for buffer in function.buffers:
            self._memories.add(buffer, (), function.body)
        self.statement(function.body, Where())
        self._check_apart()
        found = self._memories.found
        return Statements(
            tuple(self._statements),
            tuple(self._assumptions),
            self._program,
            {data: memory.box for data, memory in found.items()},
            {data: memory.dtype for data, memory in found.items()},
            {data: memory.leading for data, memory in found.items()},
        )

    def _check_apart(self) -> None:
        """Without an assumption, two parameters may be one memory: then a write to one changes the other."""
        if self._apart:
            return
        parameters = {buffer.data: buffer.name for buffer in self._program.function.buffers}
        touched = {s.data: s.access.node for s in self._statements if s.data in parameters}
        reads = [r for s in self._statements for r in s.reads] + [r for fact in self._assumptions for r in fact.reads]
        touched.update({r.data: r.access.node for r in reads if r.data in parameters})
        for statement in self._statements:
            other = next((data for data in touched if data != statement.data), None)
            if statement.data in parameters and other is not None:
                names = f"{parameters[statement.data]} and {parameters[other]}"
                reason = f"{names} may overlap, since the function does not have the attribute tirx.noalias"
                raise NotModelled(reason, statement.access.node, Because.OVERLAP)

    # Statements

    def statement(self, stmt: Stmt, where: Where) -> None:
        """Everything that `stmt` does."""
        trampoline(self._statement, (stmt, where))

    def _statement(self, given: tuple[Stmt, Where]) -> _Walk:
        stmt = given[0]
        outer = self._spot
        self._spot = self.values.spot = Spot(
            stmt, stmt.name if isinstance(stmt, Block) and not stmt.is_root else outer.block
        )
        inside = _STATEMENTS[type(stmt)](self, *given)
        if inside is not None:
            yield from inside
        self._spot = self.values.spot = outer

    def _seq(self, stmt: Seq, where: Where) -> _Walk:
        for position, part in enumerate(stmt.body):
            yield part, where.at(position)

    def _for(self, stmt: For, where: Where) -> _Walk:
        if stmt.kind is ForKind.THREAD_BINDING:
            raise NotModelled(f"loop {stmt.var.name} is bound to a thread", stmt)
        start, extent = (self.values.say(e, where.at(0)) for e in (stmt.start, stmt.extent))
        for bound in (start, extent):
            if not self.values.is_index(bound):
                raise NotModelled(f"a bound of loop {stmt.var.name} depends on data", stmt)
        taken = self._symbols | {dim.var.name for dim in where.dims}
        var = Var(self.values.fresh(stmt.var.name), stmt.var.dtype) if stmt.var.name in taken else stmt.var
        yield stmt.body, where.binding({stmt.var: var}).at(1).inside(Dim(var, start, extent, stmt.kind))

    def _if(self, stmt: IfThenElse, where: Where) -> _Walk:
        said = self.values.say(stmt.condition, where.at(0))
        yield stmt.then, self.values.under(said, True, where).at(1)
        if stmt.otherwise is not None:
            yield stmt.otherwise, self.values.under(said, False, where).at(2)

    def _let(self, stmt: Let, where: Where) -> _Walk:
        if stmt.var.dtype == HANDLE:
            pointer = stmt.value
            while isinstance(pointer, PointerCast):
                pointer = pointer.pointer
            if not isinstance(pointer, Var):
                raise NotModelled(f"the pointer {stmt.var.name}", stmt)
            self._roots[stmt.var] = self._roots.get(pointer, pointer)
            yield stmt.body, where
            return
        if holds_any(stmt.value, Undef):
            raise NotModelled(f"{stmt.var.name} stands for an undefined value, the same one wherever it is used", stmt)
        lanes = stmt.var.dtype.lanes > 1
        value = Later(stmt.value, where.at(0)) if lanes else self.values.say(stmt.value, where.at(0))
        inner = where.binding({stmt.var: value}).at(1)
        yield stmt.body, replace(inner, truths=len(where.dims)) if stmt.var.dtype.is_bool else inner

    def _allocate(self, stmt: Allocate, where: Where) -> _Walk:
        self._new_memory(stmt.buffer, where, stmt)
        yield stmt.body, where

    def _new_memory(self, buffer: Buffer, where: Where, node: Node) -> None:
        for extent in buffer.shape:
            if self.values.say(extent, where) != extent:
                raise NotModelled(f"the shape of {buffer.name} depends on more than symbols", node)
        self._memories.add(buffer, where.dims, node)

    def _nested(self, stmt: DeclBuffer | AttrStmt, where: Where) -> _Walk:
        yield stmt.body, where

    def _effect(self, stmt: Evaluate, where: Where) -> None:
        if not isinstance(stmt.value, Assume):
            return
        if not where.data and {g.as_expr for g in conjuncts(stmt.value.condition)} <= set(self._program.assumed):
            return  # It speaks of symbols alone, and is known as such.
        said = with_plain_equality(stmt.value.condition, self.values.say(stmt.value.condition, where))
        condition = logical_or(Not(logical_and(*where.data)), said) if where.data else said
        domain = IterationDomain(where.dims, where.guards, where.time)
        reads = self._reads((said, *where.data), (), domain)
        self._assumptions.append(AssumedFact(domain, condition, reads, stmt))

    def _block(self, stmt: Block, where: Where) -> _Walk:
        if stmt.match_buffers:
            raise NotModelled(f"block {stmt.name} matches a region as a buffer of its own", stmt)
        current = where
        for iter_var in stmt.iter_vars:
            current = current.binding({iter_var.var: self.values.say(iter_var.binding, where.at(0))})
        for buffer in stmt.alloc_buffers:
            self._new_memory(buffer, current, stmt)
        said = self.values.say(stmt.where, current.at(2))
        guarded = self.values.under(said, True, current)
        yield body_of(stmt), guarded.at(4)

    # Stores and reads

    def _store(self, stmt: BufferStore, where: Where) -> None:
        number, self._number = self._number, self._number + 1
        data = self._root(stmt.buffer)
        self._memories.check_view(data, stmt.buffer, stmt)
        inner, lane = where, None
        if stmt.value.dtype.lanes > 1:
            lane = Dim(
                Var(self.values.fresh("lane")), const(0), const(stmt.value.dtype.lanes), ForKind.VECTORIZED, lane=True
            )
            inner = replace(where, dims=(*where.dims, lane))
        timestamp = inner.at(0)
        stored = self.values.say(stmt.value, timestamp, lane.var if lane is not None else None)
        indices, sub_lane = self.values.indices(
            stmt.indices, stmt.buffer.dtype.lanes, timestamp, lane.var if lane is not None else None
        )
        if where.data:
            inner = inner.under(self._inside(stmt.buffer, indices, len(inner.dims)))
        access = Access(
            AccessKind.WRITE,
            stmt.buffer,
            data,
            tuple(indices),
            IterationDomain(inner.dims, inner.guards),
            stmt,
            self._spot,
        )
        coordinates, unmatched, targets = self._cell(access, sub_lane)
        dims = (*inner.dims, *unmatched)
        time = (*where.time, 1, *dims[len(where.dims) :])
        conditions = (*where.data, *targets)
        domain = IterationDomain(dims, inner.guards, time)
        reads, value = self._reads((stored,), conditions, domain), stored
        if conditions:
            now = Var(self.values.fresh(f"{stmt.buffer.name}_value"), stored.dtype)
            value = IfThenElseExpr(logical_and(*conditions), stored, now)
            domain = replace(domain, time=(*time, 1))
            looked = replace(access, kind=AccessKind.READ, domain=replace(domain, time=(*time, 0)))
            reads = (*reads, Read(now, looked, coordinates, ReadRole.CURRENT, sure=False))
        access = replace(access, domain=domain)
        self._statements.append(
            Statement(number, dims, domain, data, coordinates, value, reads, access, len(unmatched))
        )

    def _root(self, buffer: Buffer) -> Var:
        return self._roots.get(buffer.data, buffer.data)

    def _inside(self, buffer: Buffer, indices: list[Expr], depth: int) -> Condition:
        """That indices without data are in bounds: where data prevents an access, they need not be."""
        guards = list[Guard]()
        for index, extent in zip(indices, buffer.shape, strict=True):
            if self.values.is_index(index):
                guards += [Guard(at_least(index, 0)), Guard(below(index, extent))]
        return Condition(depth, tuple(guards), ())

    def _cell(
        self, access: Access, sub_lane: Expr | None
    ) -> tuple[tuple[Expr, ...], tuple[Dim, ...], tuple[Expr, ...]]:
        """The coordinates of an access, with dims and conditions for those that depend on data."""
        indices = access.indices
        if all(self.values.is_index(index) for index in indices):
            return self._memories.coordinates(access, sub_lane), (), ()
        memory = self._memories.of(access.data, access.node)
        plain = self._memories.same_shape(access.data, access.buffer, access.node)
        cells, unmatched, targets = list[Expr](), list[Dim](), list[Expr]()
        for position, extent in enumerate(memory.shape):
            index = indices[position] if plain else None
            if index is not None and self.values.is_index(index):
                cells.append(index)
                continue
            dim = Dim(Var(self.values.fresh("cell"), extent.dtype), IntImm(0, extent.dtype), extent, ForKind.SERIAL)
            unmatched.append(dim)
            cells.append(dim.var)
            if index is not None:
                targets.append(same(index, dim.var))
        if not plain:
            targets.append(self._memories.cell_condition(access, tuple(cells)))
        leading = (d.var for d in memory.leading)
        return (*leading, *cells, *((sub_lane,) if sub_lane is not None else ())), tuple(unmatched), tuple(targets)

    def _reads(
        self, values: tuple[Expr, ...], conditions: tuple[Expr, ...], domain: IterationDomain
    ) -> tuple[Read, ...]:
        """What values and conditions read, at a statement's iteration domain."""
        direct = {v for expr in values for v in free_variables(expr)}
        deciding = {v for expr in conditions for v in free_variables(expr)}
        found = []
        for var, load in self.values.loads_of(*values, *conditions).items():
            role = ReadRole.VALUE if var in direct else ReadRole.CONDITION if var in deciding else ReadRole.INDEX
            found.append(self._read(load, role, domain))
        return tuple(found)

    def _read(self, load: Load, role: ReadRole, domain: IterationDomain) -> Read:
        data = self._root(load.node.buffer)
        self._memories.check_view(data, load.node.buffer, load.node)
        guards = (*domain.guards, *load.where.guards)
        if load.where.data:
            guards += self._inside(load.node.buffer, list(load.indices), 0).guards
        around = IterationDomain(domain.dims, tuple(dict.fromkeys(guards)), load.where.time)
        access = Access(AccessKind.READ, load.node.buffer, data, load.indices, around, load.node, load.spot)
        coordinates, unmatched, _ = self._cell(access, load.sub_lane)
        if unmatched:
            access = replace(access, domain=replace(around, dims=(*around.dims, *unmatched)))
        return Read(load.var, access, coordinates, role, bool(unmatched), not load.where.data)


_STATEMENTS: dict[type[Stmt], Callable[[StatementReader, Any, Where], _Walk | None]] = {
    Seq: StatementReader._seq,
    For: StatementReader._for,
    IfThenElse: StatementReader._if,
    Let: StatementReader._let,
    BufferStore: StatementReader._store,
    Allocate: StatementReader._allocate,
    DeclBuffer: StatementReader._nested,
    AttrStmt: StatementReader._nested,
    Evaluate: StatementReader._effect,
    Block: StatementReader._block,
}


def read_statements(
    program: Program,
    structures: Mapping[str, tuple[Expr, ...]] | None = None,
    *,
    apart: bool | None = None,
    gathered: Gathered = UNRECORDED,
) -> Statements:
    """The statements of a program. `structures` gives, by a data variable's name, the shape whose cells a flattened
    memory has; else that of its layout record, else its own. `apart` says whether parameters do not overlap; None asks
    the program.

    Raises NotModelled where the program cannot be said exactly.
    """
    noalias = program.function.noalias if apart is None else apart
    return StatementReader(program, structures if structures is not None else {}, noalias, gathered).read()
