"""Programs as lists of loop nests, and how they become functions with a witness: the small world in which random
rewrites are made.

Every store remembers which store of the first program it computes and at which of its loops (`theta`), over the loops
around it now; a rewrite substitutes loops everywhere, and the witness follows by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from layoutproof.ir.buffer import Buffer, Range
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import TRUE, Expr, IntImm, Var, logical_and
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import Attributes, Block, BufferStore, For, ForKind, IfThenElse, IterKind, IterVar, Stmt, seq
from layoutproof.ir.visit import free_variables, loads_in, substitute

_IDS = count(1)


@dataclass(frozen=True)
class Loop:
    """A loop from 0. `reduce`: its iterations add to one result."""

    var: Var
    extent: Expr
    reduce: bool = False
    kind: ForKind = ForKind.SERIAL


@dataclass(frozen=True)
class Store:
    """A store. `origin` is the store of the first program that it computes, None for one that has no counterpart."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    origin: int | None
    theta: tuple[Expr, ...] = ()
    where: Expr | None = None

    def substituted(self, values: Mapping[Var, Expr]) -> Store:
        """The store with loop variables replaced."""
        return replace(
            self,
            indices=tuple(substitute(i, values) for i in self.indices),
            value=substitute(self.value, values),
            theta=tuple(substitute(t, values) for t in self.theta),
            where=None if self.where is None else substitute(self.where, values),
        )


@dataclass(frozen=True)
class Nest:
    """Loops around stores. `init` is the start of a reduction: stored before the reduction's loops (`block=False`) or a
    block's init.

    `free`: its iterations may run in any order (each writes a cell of its own and reads none of them); else only
    spatial ones may. `ordered`: not even those. `serial`: no loop may become parallel. `stage`: a pad or assumption
    stage, made of statements as they are.
    """

    loops: tuple[Loop, ...]
    stores: tuple[Store, ...]
    guards: tuple[Expr, ...] = ()
    data_guard: Expr | None = None
    init: Store | None = None
    block: bool = False
    free: bool = True
    ordered: bool = False
    serial: bool = False
    stage: Stmt | None = None
    old_reduce: tuple[bool, ...] = ()
    old_block: bool = False

    def substituted(self, values: Mapping[Var, Expr]) -> Nest:
        """Everything in it with loop variables replaced; the loops themselves are left to the caller."""
        return replace(
            self,
            stores=tuple(s.substituted(values) for s in self.stores),
            guards=tuple(substitute(g, values) for g in self.guards),
            data_guard=None if self.data_guard is None else substitute(self.data_guard, values),
            init=None if self.init is None else self.init.substituted(values),
        )

    def written(self) -> set[Buffer]:
        """The buffers that it stores to."""
        return {s.buffer for s in self.all_stores()}

    def read(self) -> set[Buffer]:
        """The buffers that it loads from."""
        parts = [e for s in self.all_stores() for e in (s.value, *s.indices)]
        parts += [] if self.data_guard is None else [self.data_guard]
        return {load.buffer for part in parts for load in loads_in(part)}

    def all_stores(self) -> tuple[Store, ...]:
        """The stores and the init."""
        return self.stores if self.init is None else (*self.stores, self.init)


@dataclass(frozen=True)
class Program:
    """Parameters, temporaries and nests. `cells` says where the cells of the first program's buffers are, by data
    variable.
    """

    params: tuple[Buffer, ...]
    temps: tuple[Buffer, ...]
    nests: tuple[Nest, ...]
    cells: tuple[CellMap, ...] = ()
    interface: tuple[str, ...] = ()
    records: Attributes = field(default_factory=Attributes)
    fast_math: frozenset[str] = frozenset()

    def with_nests(self, nests: Sequence[Nest]) -> Program:
        """The program with other nests."""
        return replace(self, nests=tuple(nests))


def fresh_id() -> int:
    """A number that no other store has."""
    return next(_IDS)


def begun(program: Program) -> Program:
    """The program as the first one: every store is its own origin, at its own loops."""
    return program.with_nests([_begun(nest) for nest in program.nests])


def _begun(nest: Nest) -> Nest:
    loops = tuple(loop.var for loop in nest.loops)
    stores = tuple(replace(s, origin=fresh_id(), theta=loops, where=None) for s in nest.stores)
    init = None if nest.init is None else replace(nest.init, origin=fresh_id(), theta=(), where=None)
    return replace(
        nest, stores=stores, init=init, old_reduce=tuple(loop.reduce for loop in nest.loops), old_block=nest.block
    )


# ---- as functions


def function(program: Program) -> PrimFunc:
    """The program as a function that assumes noalias."""
    body = seq(*(statement(nest) for nest in program.nests))
    if program.temps:
        body = Block("root", (), body, alloc_buffers=program.temps)
    handles = tuple(Var(f"{b.name}_handle", HANDLE) for b in program.params)
    attrs = Attributes({"tirx.noalias": True})
    if program.records:
        attrs = attrs.with_value("layoutproof.layout", program.records)
    return PrimFunc("main", handles, tuple(zip(handles, program.params, strict=True)), body, attrs)


def statement(nest: Nest) -> Stmt:
    """One nest as a statement."""
    if nest.stage is not None:
        return nest.stage
    inner = seq(*(BufferStore(s.buffer, s.indices, s.value) for s in nest.stores))
    if nest.data_guard is not None:
        inner = IfThenElse(nest.data_guard, inner)
    if nest.init is None:
        return _looped(nest.loops, _guarded(nest.guards, inner))
    init = BufferStore(nest.init.buffer, nest.init.indices, nest.init.value)
    outside, inside = split_guards(nest)
    if nest.block:
        return _looped(nest.loops, _guarded(outside, _block(nest, inner, init, inside)))
    spatial = tuple(loop for loop in nest.loops if not loop.reduce)
    below = _looped(tuple(loop for loop in nest.loops if loop.reduce), _guarded(inside, inner))
    return _looped(spatial, _guarded(outside, seq(init, below)))


def split_guards(nest: Nest) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """The guards over spatial loops only, and the others."""
    reduced = {loop.var for loop in nest.loops if loop.reduce}
    inside = tuple(g for g in nest.guards if reduced & set(free_variables(g)))
    return tuple(g for g in nest.guards if g not in inside), inside


def _block(nest: Nest, inner: Stmt, init: Stmt, guards: Sequence[Expr]) -> Stmt:
    names = {loop.var: Var(f"v_{loop.var.name}") for loop in nest.loops}
    kinds = {False: IterKind.SPATIAL, True: IterKind.REDUCE}
    iters = tuple(IterVar(names[x.var], kinds[x.reduce], Range(IntImm(0), x.extent), x.var) for x in nest.loops)
    values: dict[Var, Expr] = dict(names)
    where = logical_and(*guards) if guards else TRUE
    return Block("update", iters, substitute(inner, values), where, init=substitute(init, values))


def _guarded(guards: Sequence[Expr], body: Stmt) -> Stmt:
    return IfThenElse(logical_and(*guards), body) if guards else body


def _looped(loops: Sequence[Loop], body: Stmt) -> Stmt:
    for loop in reversed(loops):
        body = For(loop.var, IntImm(0), loop.extent, loop.kind, body)
    return body


# ---- as a rewrite


def rewrite_of(old: Program, new: Program) -> Rewrite:
    """The rewrite that leads from the first program to a later one."""
    numbers = {store.origin: number for number, (store, _) in enumerate(_in_order(old))}
    maps = []
    for number, (store, inputs) in enumerate(_in_order(new)):
        if store.origin is None:
            maps.append(InstanceMap(number, None, None))
            continue
        maps.append(InstanceMap(number, numbers[store.origin], IndexMap(inputs, store.theta), store.where))
    names = {b.data.name: b.name for b in old.params}
    kept = tuple(c for c in new.cells if c.old_data in names or any(b.data.name == c.new_data for b in new.temps))
    return Rewrite(function(old), function(new), Witness(tuple(maps), kept, new.interface))


def _in_order(program: Program) -> Iterator[tuple[Store, tuple[Var, ...]]]:
    """The stores as `ir.visit.stores_in` finds them, each with the loops around it and theta as a witness states it."""
    for nest in program.nests:
        if nest.stage is not None:
            yield from ((s, tuple(loop.var for loop in nest.loops)) for s in nest.stores)
            continue
        loops = tuple(loop.var for loop in nest.loops)
        spatial = tuple(loop.var for loop in nest.loops if not loop.reduce)
        if nest.init is not None and not nest.block:
            yield _init_of(nest, spatial), spatial
        for store in nest.stores:
            yield store, loops
        if nest.init is not None and nest.block:
            yield _init_of(nest, loops), loops


def _init_of(nest: Nest, loops: Sequence[Var]) -> Store:
    """The init with its theta: the update's, without the reduction's loops where the old one stood outside them."""
    assert nest.init is not None
    update = nest.stores[0]
    theta: list[Expr] = []
    for value, reduced in zip(update.theta, nest.old_reduce, strict=True):
        if not reduced:
            theta.append(value)
        elif nest.old_block:
            theta.append(value if set(free_variables(value)) <= set(loops) else IntImm(0))
    outside = split_guards(nest)[0]
    return replace(nest.init, theta=tuple(theta), where=logical_and(*outside) if outside else None)


def init_as_nest(nest: Nest) -> Nest:
    """The init of a reduction as a nest of its own, over the spatial loops."""
    assert nest.init is not None
    spatial = tuple(loop for loop in nest.loops if not loop.reduce)
    store = _init_of(nest, [loop.var for loop in spatial])
    return Nest(spatial, (store,), split_guards(nest)[0], free=True)
