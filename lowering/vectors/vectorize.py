"""Vectorized loops become lanes: each iteration a lane of a ramp in the last index, of a broadcast, or of a value of
them.

A loop has as many lanes as iterations, a constant of at least 2. A statement that has no form for all lanes (every lane
would store to one cell, a branch is taken in some lanes only, an index before the last differs) is refused by name, or
runs lane by lane if requested. Sources: TVM's RFCs `vectorized-tir-buffers` and
`clarifying-buffer-declaration-and-access` (VectorizeLoop).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, ClassVar

from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import INT32
from layoutproof.ir.expr import Expr, IntImm, Var, binary, widen
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import (
    Allocate,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Let,
    Seq,
    Stmt,
    seq,
)
from layoutproof.ir.visit import free_variables, fresh, loops_of_stores, mapped, names_in, stores_in, substitute, walk
from layoutproof.lowering import codes
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.vectors.lanes import Lanes, NoLanes
from layoutproof.lowering.vectors.ramps import check_no_blocks


@dataclass(frozen=True)
class VectorizeLoop(Pass):
    """Make lanes of all vectorized loops; with `scalarize` statements without a form for all lanes run lane by lane."""

    primitive: ClassVar[str] = "vectorize_loop"
    scalarize: bool = field(default=False, metadata=option(ArgumentKind.FLAG))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function without vectorized loops.

        Raises LayoutproofError for blocks, which are lowered first, and, unless `scalarize` is set, for a statement
        that has no form for all lanes and for a loop whose iterations are not a constant number.
        """
        check_no_blocks(func, self.primitive)
        lets = frozenset(n.var for n in walk(func.body) if isinstance(n, Let))
        body = trampoline(_Vectorizing(self.scalarize, lets).visit, func.body)
        assert isinstance(body, Stmt)
        new = func.with_body(body)
        return Rewrite(func, new, Witness(tuple(_pairs(func, new))))


@dataclass(frozen=True, slots=True)
class _Vectorizing:
    scalarize: bool
    lets: frozenset[Var]

    def visit(self, node: Node) -> Node | Steps[Node, Node]:
        return self.inside(node) if isinstance(node, Stmt) else node

    def inside(self, stmt: Stmt) -> Steps[Node, Node]:
        if isinstance(stmt, For) and stmt.kind is ForKind.VECTORIZED:
            body: Any = yield stmt.body
            return self.loop(replace(stmt, body=body))
        rebuilt: Node = yield from mapped(stmt)
        return rebuilt

    def loop(self, loop: For) -> Stmt:
        if isinstance(loop.extent, IntImm) and loop.extent.value == 1:
            return substitute(loop.body, {loop.var: loop.start})
        try:
            lanes = self.lanes_of(loop)
        except NoLanes as problem:
            return self.instead(loop, loop.body, problem)
        return _Laning(self, loop, lanes).part(loop.body)

    def lanes_of(self, loop: For) -> Lanes:
        if not isinstance(loop.extent, IntImm) or loop.extent.value < 1:
            raise NoLanes("the number of its iterations is no constant of at least 1", loop)
        if set(free_variables(loop.start)) & self.lets:
            raise NoLanes("it starts at a value that a let stands for", loop)
        return Lanes(loop.var, loop.start, loop.extent.value)

    def instead(self, loop: For, body: Stmt, problem: NoLanes) -> Stmt:
        """A part of a loop's body that has no lanes, lane by lane. Raises LayoutproofError if that was not
        requested.
        """
        if not self.scalarize:
            place = next((s for s in (problem.node.span, body.span, loop.span) if s is not None), None)
            message = f"loop {loop.var.name} cannot become lanes: {problem.reason}"
            raise error(codes.NO_LANES, message, place, help="with scalarize=True such statements run lane after lane")
        return replace(loop, kind=ForKind.SERIAL, body=body)


@dataclass(frozen=True, slots=True)
class _Laning:
    outer: _Vectorizing
    loop: For
    lanes: Lanes

    def part(self, stmt: Stmt) -> Stmt:
        """A statement in lanes, or lane by lane: the smallest part around what has none that uses no vector bound
        outside.
        """
        try:
            return self.statement(stmt)
        except NoLanes as problem:
            if self.lanes.values:
                raise
            return self.outer.instead(self.loop, stmt, problem)

    def statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case BufferStore():
                return self.store(stmt)
            case Seq(body=body):
                return seq(*map(self.part, body))
            case For():
                start, extent = (
                    self.same(e, f"the range of loop {stmt.var.name}", stmt) for e in (stmt.start, stmt.extent)
                )
                return replace(stmt, start=start, extent=extent, body=self.part(stmt.body))
            case IfThenElse(condition=condition, then=then, otherwise=otherwise):
                other = self.part(otherwise) if otherwise is not None else None
                said = self.same(condition, "the branch that is taken", condition)
                return replace(stmt, condition=said, then=self.part(then), otherwise=other)
            case Let():
                return self.let(stmt)
            case DeclBuffer():
                return self.view(stmt)
            case Evaluate(value=IntImm()):
                return stmt
            case Allocate(buffer=buffer):
                raise NoLanes(f"each iteration has memory of its own for {buffer.name}", stmt)
            case AttrStmt(key=key):
                raise NoLanes(f"the attribute {key} is about each iteration", stmt)
            case _:
                raise NoLanes("it has an effect that is no store", stmt)

    def same(self, expr: Expr, what: str, node: Node) -> Expr:
        """An expression that decides what all lanes do."""
        said = self.lanes.said(expr)
        if said.dtype.lanes > 1:
            raise NoLanes(f"{what} differs from lane to lane", node)
        return said

    def store(self, stmt: BufferStore) -> Stmt:
        indices = self.lanes.indices(stmt.buffer, stmt.indices, stmt)
        if not indices or indices[-1].dtype.lanes == 1:
            raise NoLanes(f"every lane stores to one element of {stmt.buffer.name}", stmt)
        return replace(stmt, indices=indices, value=self.lanes.wide(stmt.value))

    def view(self, stmt: DeclBuffer) -> Stmt:
        buffer = stmt.buffer
        for expr in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            self.same(expr, f"where {buffer.name} lies", stmt)
        return replace(stmt, body=self.part(stmt.body))

    def let(self, stmt: Let) -> Stmt:
        value = self.lanes.said(stmt.value)
        if value.dtype.lanes == 1:
            return replace(stmt, value=value, body=self.part(stmt.body))
        vector = Var(stmt.var.name, value.dtype)
        self.lanes.values[stmt.var] = vector
        try:
            return replace(stmt, var=vector, value=value, body=self.part(stmt.body))
        finally:
            del self.lanes.values[stmt.var]


def _pairs(old: PrimFunc, new: PrimFunc) -> Iterator[InstanceMap]:
    """Store n computes the old store n; additional lanes are the iterations of the removed loop."""
    taken = names_in(old.body) | names_in(new.body)
    lane = Var(fresh("lane", taken), INT32)
    loops = zip(loops_of_stores(old.body), loops_of_stores(new.body), strict=True)
    stores = zip(stores_in(old.body), stores_in(new.body), strict=True)
    for number, (before, after), (was, now) in zip(count(), loops, stores, strict=False):
        inputs = tuple(loop.var for loop in after)
        spoken = lane if now.value.dtype.lanes > was.value.dtype.lanes else None
        outputs = tuple(_coordinate(loop, inputs, spoken) for loop in before)
        yield InstanceMap(number, number, IndexMap((*inputs, spoken) if spoken is not None else inputs, outputs))


def _coordinate(loop: For, inputs: Sequence[Var], lane: Var | None) -> Expr:
    if loop.var in inputs:
        return loop.var
    if lane is None or loop.extent == IntImm(1, loop.extent.dtype):
        return loop.start
    step = widen(lane, loop.var.dtype)
    return step if loop.start == IntImm(0, loop.start.dtype) else binary(BinaryOp.ADD, loop.start, step)
