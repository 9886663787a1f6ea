"""Reads a function as a program model: one walk over its statements. Part of the trusted computing base."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import TRUE, Cast, Compare, Expr, IfThenElseExpr, IntImm, Logical, Var, const, logical_and
from layoutproof.ir.intrinsics import Assume, OpaqueCall, PointerCast
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import LogicalOp
from layoutproof.ir.primfunc import Kept, PrimFunc
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
    IterVar,
    Let,
    Seq,
    Stmt,
    body_of,
)
from layoutproof.ir.visit import children, free_variables, holds_any, nodes_of, walk
from layoutproof.verify.program.abstraction import Abstraction, Env, Inexpressible, in_lane, survey_of
from layoutproof.verify.program.instances import (
    Access,
    AccessKind,
    Allocation,
    Arithmetic,
    Binding,
    Dim,
    IterationDomain,
    Loop,
    Obstacle,
    Program,
    can_trap,
    conjuncts,
    is_index_like,
    is_larger,
)
from layoutproof.verify.program.location import Spot
from layoutproof.verify.program.questions import at_least, below

_Given = tuple[Stmt, IterationDomain, Env]
_Walk = Steps[_Given, None]
_LARGEST_LET = 24
# The result of one step of a schedule is the start of the next one, and of others that begin like it.
_READ: Kept[Program] = Kept(16)


def read_program(function: PrimFunc, where: Expr | None = None) -> Program:
    """All instances of `function`. `where` is a condition on its symbols that callers vouch for."""
    return _READ.get(function, (where,), lambda: _read(function, where))


def _read(function: PrimFunc, where: Expr | None) -> Program:
    collector = _Collector(function)
    env: Env = {}
    domain = IterationDomain()
    collector.statement(function.body, domain, env)
    given = tuple(g.as_expr for g in conjuncts(where)) if where is not None else ()
    arithmetic = tuple(collector.arithmetic)
    return Program(
        function,
        collector.symbols,
        (*given, *collector.assumed),
        tuple(collector.accesses),
        arithmetic,
        tuple(collector.loops),
        tuple(collector.bindings),
        tuple(collector.views),
        tuple(collector.obstacles),
        frozenset(buffer.data for buffer in collector.allocated),
        (*function.buffers, *collector.allocated),
        _eager(function) if _may_trap_beside(function) else arithmetic,
        tuple(collector.made),
    )


def _may_trap_beside(function: PrimFunc) -> bool:
    """Whether something that may trap stands on the right of an `and` or an `or`."""
    return any(any(map(can_trap, walk(node.rhs))) for node in nodes_of(function.body, Logical))


def _eager(function: PrimFunc) -> tuple[Arithmetic, ...]:
    collector = _Collector(function, eager=True)
    collector.statement(function.body, IterationDomain(), {})
    return tuple(collector.arithmetic)


class _Collector:
    """One walk over one function; with `eager` both sides of `and` and `or` are evaluated."""

    def __init__(self, function: PrimFunc, *, eager: bool = False) -> None:
        self._eager = eager
        self.accesses: list[Access] = []
        self.arithmetic: list[Arithmetic] = []
        self.loops: list[Loop] = []
        self.bindings: list[Binding] = []
        self.views: list[tuple[Buffer, Node]] = []
        self.obstacles: list[Obstacle] = []
        self.allocated: list[Buffer] = []
        self.made: list[Allocation] = []
        self.assumed: list[Expr] = []
        survey = survey_of(function)
        self.symbols = survey.symbols
        self._abstraction = Abstraction(survey)
        self._roots: dict[Var, Var] = {}
        self._spot = Spot(function.body)
        self._symbols = {symbol.name for symbol in survey.symbols}

    # Statements

    def statement(self, stmt: Stmt, domain: IterationDomain, env: Env) -> None:
        """Everything that `stmt` does at `domain`."""
        trampoline(self._statement, (stmt, domain, env))

    def _statement(self, given: _Given) -> _Walk:
        stmt = given[0]
        outer = self._spot
        self._spot = Spot(stmt, stmt.name if isinstance(stmt, Block) and not stmt.is_root else outer.block)
        inside = _STATEMENTS[type(stmt)](self, *given)
        if inside is not None:
            yield from inside
        self._spot = outer

    def _seq(self, stmt: Seq, domain: IterationDomain, env: Env) -> _Walk:
        for position, part in enumerate(stmt.body):
            yield part, domain.at(position), env

    def _for(self, stmt: For, domain: IterationDomain, env: Env) -> _Walk:
        start, first = self._index(stmt.start, domain.at(0), env, stmt)
        extent, second = self._index(stmt.extent, first, env, stmt)
        var = self._loop_variable(stmt.var, domain)
        dim = Dim(var, start, extent, stmt.kind)
        if start != IntImm(0, start.dtype):
            self.arithmetic.append(Arithmetic(start + extent, second, stmt, self._spot))
        outer = replace(second, time=domain.time)
        self.loops.append(Loop(dim, outer, stmt, self._spot))
        yield stmt.body, outer.at(1).inside(dim), {**env, stmt.var: var}

    def _if(self, stmt: IfThenElse, domain: IterationDomain, env: Env) -> _Walk:
        self._evaluate(stmt.condition, domain.at(0), env, stmt)
        yield stmt.then, self._abstraction.under(stmt.condition, True, domain, env).at(1), env
        if stmt.otherwise is not None:
            yield stmt.otherwise, self._abstraction.under(stmt.condition, False, domain, env).at(2), env

    def _let(self, stmt: Let, domain: IterationDomain, env: Env) -> _Walk:
        dtype = stmt.var.dtype
        value: Expr
        if dtype == HANDLE:
            self._pointer(stmt)
            value, inner = stmt.var, domain
        elif dtype.is_integer and dtype.lanes == 1 and is_index_like(stmt.value):
            value, inner = self._index(stmt.value, domain.at(0), env, stmt)
            inner = replace(inner, time=domain.time)
            if is_larger(value, _LARGEST_LET):
                # Substitution could grow exponentially from let to let: a loop of one iteration is equivalent.
                yield from self._loop_of_one(stmt, value, inner, env)
                return
        elif dtype.is_integer and dtype.lanes == 1:
            # Arithmetic on data wraps, so it is no integer expression: the variable is an unknown.
            self._evaluate(stmt.value, domain.at(0), env, stmt)
            value, inner = self._abstraction.unknown(stmt.var, domain, stmt.var.name)
        else:
            # Floats and truth values are not modelled: a condition on one is dropped.
            self._evaluate(stmt.value, domain.at(0), env, stmt)
            value, inner = stmt.var, domain
        yield stmt.body, inner.at(1), {**env, stmt.var: value}

    def _loop_of_one(self, stmt: Let, value: Expr, domain: IterationDomain, env: Env) -> _Walk:
        var = self._loop_variable(stmt.var, domain)
        dim = Dim(var, value, const(1, var.dtype), ForKind.SERIAL)
        yield stmt.body, domain.at(1).inside(dim), {**env, stmt.var: var}

    def _loop_variable(self, var: Var, domain: IterationDomain) -> Var:
        """Names are bound once on any path; where they are not, inner and outer ones must stay distinct."""
        taken = self._symbols | {dim.var.name for dim in domain.dims}
        return Var(self._abstraction.fresh(var.name), var.dtype) if var.name in taken else var

    def _pointer(self, stmt: Let) -> None:
        """Another name for memory."""
        pointer = stmt.value
        while isinstance(pointer, PointerCast):
            pointer = pointer.pointer
        if isinstance(pointer, Var):
            self._roots[stmt.var] = self._roots.get(pointer, pointer)
        else:
            self.obstacles.append(Obstacle(f"the pointer {stmt.var.name}", stmt, self._spot))

    def _store(self, stmt: BufferStore, domain: IterationDomain, env: Env) -> None:
        self._evaluate(stmt.value, domain.at(0), env, stmt)
        self._access(AccessKind.WRITE, stmt.buffer, stmt.indices, domain.at(1), env, stmt)

    def _allocate(self, stmt: Allocate, domain: IterationDomain, env: Env) -> _Walk:
        self._new_buffer(stmt.buffer, domain, env, stmt)
        yield stmt.body, self._allocating((stmt.buffer,), domain), env

    def _new_buffer(self, buffer: Buffer, domain: IterationDomain, env: Env, node: Node) -> None:
        self.allocated.append(buffer)
        around, extents = domain, list[Expr]()
        for extent in buffer.shape:
            value, around = self._index(extent, around, env, node)
            extents.append(value)
        self.made.append(Allocation(buffer, tuple(extents), around, node, self._spot))

    @staticmethod
    def _allocating(buffers: tuple[Buffer, ...], domain: IterationDomain) -> IterationDomain:
        if not buffers:
            return domain
        return replace(domain, allocations={**domain.allocations, **{b.data: len(domain.dims) for b in buffers}})

    def _declare(self, stmt: DeclBuffer, domain: IterationDomain, env: Env) -> _Walk:
        self.views.append((stmt.buffer, stmt))
        for extent in stmt.buffer.shape:
            self._index(extent, domain, env, stmt)
        yield stmt.body, domain, env

    def _attr(self, stmt: AttrStmt, domain: IterationDomain, env: Env) -> _Walk:
        yield stmt.body, domain, env

    def _effect(self, stmt: Evaluate, domain: IterationDomain, env: Env) -> None:
        match stmt.value:
            case Assume(condition=condition):
                self._assume(condition, domain, env, stmt)
            case IntImm():
                pass
            case _:
                self._evaluate(stmt.value, domain, env, stmt)

    def _assume(self, condition: Expr, domain: IterationDomain, env: Env, stmt: Stmt) -> None:
        always = not (domain.dims or domain.guards or domain.dropped or domain.unknowns)
        # The name of a block variable or a let may stand for something else elsewhere.
        of_symbols = not any(variable in env for variable in free_variables(condition))
        if always and of_symbols and not holds_any(condition, BufferLoad):
            self.assumed += [g.as_expr for g in conjuncts(condition)]
        before = len(self.accesses)
        # An assumption is not compiled.
        eager, self._eager = self._eager, False
        self._evaluate(condition, domain, env, stmt)
        self._eager = eager
        self.accesses[before:] = [replace(a, kind=AccessKind.ASSUME) for a in self.accesses[before:]]

    def _block(self, stmt: Block, domain: IterationDomain, env: Env) -> _Walk:
        inner_env, current = dict(env), domain
        for iter_var in stmt.iter_vars:
            value, current = self._index(iter_var.binding, current.at(0), env, stmt)
            inner_env[iter_var.var] = value
        current = replace(current, time=domain.time)
        self._evaluate(stmt.where, current.at(0), inner_env, stmt)
        if stmt.match_buffers:
            source = stmt.match_buffers[0].source.buffer.name
            self.obstacles.append(
                Obstacle(
                    f"block {stmt.name}, which matches a region of {source} as a buffer of its own,", stmt, self._spot
                )
            )
        for buffer in stmt.alloc_buffers:
            self._new_buffer(buffer, current, inner_env, stmt)
        current = self._allocating(stmt.alloc_buffers, current)
        guarded = self._abstraction.under(stmt.where, True, current, inner_env)
        for iter_var in stmt.iter_vars:
            self.bindings.append(
                Binding(iter_var, self._domain(iter_var, guarded, inner_env), guarded, stmt, self._spot)
            )
        yield body_of(stmt), guarded.at(2), inner_env

    def _domain(self, iter_var: IterVar, domain: IterationDomain, env: Env) -> Expr:
        """That a block variable lies in its domain, as a condition on the loops."""
        start, extent = iter_var.domain.start, iter_var.domain.extent
        end = extent if start == IntImm(0, start.dtype) else start + extent
        value = env[iter_var.var]
        low, high = (self._abstraction.abstract(e, domain, env)[0] for e in (start, end))
        if isinstance(value, Var) and isinstance(low, IntImm) and isinstance(high, IntImm) and low.value == 0:
            loop = next((dim for dim in domain.dims if dim.var == value), None)
            if loop is not None and loop.start == low and loop.extent == high:
                return TRUE
        return logical_and(at_least(value, low), below(value, high))

    # Expressions

    def _index(
        self, expr: Expr, domain: IterationDomain, env: Env, node: Node, extent: Expr | None = None
    ) -> tuple[Expr, IterationDomain]:
        """A scalar integer over dims, unknowns and symbols. Records its loads, and itself as index arithmetic."""
        if isinstance(expr, IntImm):
            return expr, domain
        self._evaluate(expr, domain, env, node, traps=False)
        try:
            result, current = self._abstraction.abstract(expr, domain, env)
        except Inexpressible:
            return self._abstraction.unknown(expr, domain, "value")
        if not isinstance(result, Var | IntImm):
            self.arithmetic.append(Arithmetic(result, current, node, self._spot, extent=extent))
        return result, current

    def _evaluate(self, expr: Expr, domain: IterationDomain, env: Env, node: Node, *, traps: bool = True) -> None:
        """Records the loads of `expr`, each under its guards, and the operations that may trap.

        Without `traps` the arithmetic itself is recorded by the caller, as index arithmetic.
        """
        match expr:
            case IntImm() | Var():
                pass
            case BufferLoad():
                self._access(AccessKind.READ, expr.buffer, expr.indices, domain, env, expr)
            case IfThenElseExpr(condition=condition, then=then, otherwise=otherwise):
                self._evaluate(condition, domain, env, node, traps=traps)
                self._evaluate(then, self._abstraction.under(condition, True, domain, env), env, node, traps=traps)
                self._evaluate(
                    otherwise, self._abstraction.under(condition, False, domain, env), env, node, traps=traps
                )
            case Logical(op=op, lhs=lhs, rhs=rhs):
                self._evaluate(lhs, domain, env, node, traps=traps)
                inside = domain if self._eager else self._abstraction.under(lhs, op is LogicalOp.AND, domain, env)
                self._evaluate(rhs, inside, env, node, traps=traps)
            case Compare(lhs=lhs, rhs=rhs) if (
                traps and is_index_like(lhs) and is_index_like(rhs) and lhs.dtype.lanes == 1
            ):
                for side in (lhs, rhs):
                    self._record(side, domain, env, node)
            case OpaqueCall(function=function):
                self.obstacles.append(Obstacle(f"the call of {function}, whose body is not known,", expr, self._spot))
                self._operation(expr, domain, env, node, traps)
            case _:
                self._operation(expr, domain, env, node, traps)

    def _operation(self, expr: Expr, domain: IterationDomain, env: Env, node: Node, traps: bool) -> None:
        # The integer that a float becomes is an unknown of index arithmetic, which does not say how it comes about.
        traps = traps or (isinstance(expr, Cast) and expr.value.dtype.is_float)
        if traps and can_trap(expr):
            self._record(expr, domain, env, node, is_index=False)
        for child in children(expr):
            if isinstance(child, Expr):
                self._evaluate(child, domain, env, node, traps=traps)

    def _record(self, expr: Expr, domain: IterationDomain, env: Env, node: Node, *, is_index: bool = True) -> None:
        """Arithmetic that is evaluated here; an inexpressible one is recorded as it is."""
        if isinstance(expr, Var | IntImm):
            return
        try:
            if isinstance(expr, Cast) and not is_index:
                result, current = self._converted(expr, domain, env)
            elif expr.dtype.lanes > 1:
                lane = self._abstraction.lane(expr)
                result, current = self._abstraction.abstract(in_lane(expr, lane.var), domain.inside(lane), env)
            else:
                result, current = self._abstraction.abstract(expr, domain, env)
        except Inexpressible:
            result, current = expr, replace(domain, exact=False)
        self.arithmetic.append(Arithmetic(result, current, node, self._spot, is_index))

    def _converted(self, expr: Cast, domain: IterationDomain, env: Env) -> tuple[Expr, IterationDomain]:
        """A cast from float to integer; only of a float made from index arithmetic the value is known."""
        match expr.value:
            case Cast(dtype=dtype, value=inner) if inner.dtype.is_integer and inner.dtype.lanes == 1:
                result, current = self._abstraction.abstract(inner, domain, env)
                return Cast(expr.dtype, Cast(dtype, result)), current
            case _:
                return expr, domain

    def _access(
        self, kind: AccessKind, buffer: Buffer, indices: tuple[Expr, ...], domain: IterationDomain, env: Env, node: Node
    ) -> None:
        result, current = [], domain
        for index, size in zip(indices, buffer.shape, strict=True):
            if index.dtype.lanes == 1:
                value, current = self._index(index, current, env, node, size)
            else:
                value, current = self._vector_index(index, current, env, node, size)
            result.append(value)
        data = self._roots.get(buffer.data, buffer.data)
        self.accesses.append(Access(kind, buffer, data, tuple(result), current, node, self._spot))

    def _vector_index(
        self, index: Expr, domain: IterationDomain, env: Env, node: Node, extent: Expr
    ) -> tuple[Expr, IterationDomain]:
        self._evaluate(index, domain, env, node, traps=False)
        lane = self._abstraction.lane(index)
        inner = domain.inside(lane)
        try:
            result, current = self._abstraction.abstract(in_lane(index, lane.var), inner, env)
        except Inexpressible:
            return self._abstraction.unknown(index, inner, "value")
        self.arithmetic.append(Arithmetic(result, current, node, self._spot, extent=extent))
        return result, current


_STATEMENTS: dict[type[Stmt], Callable[[_Collector, Any, IterationDomain, Env], _Walk | None]] = {
    Seq: _Collector._seq,
    For: _Collector._for,
    IfThenElse: _Collector._if,
    Let: _Collector._let,
    BufferStore: _Collector._store,
    Allocate: _Collector._allocate,
    DeclBuffer: _Collector._declare,
    AttrStmt: _Collector._attr,
    Evaluate: _Collector._effect,
    Block: _Collector._block,
}
