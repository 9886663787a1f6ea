"""Programs rebuilt after a removal: empty statements go, and the witness traces each new store to its old one."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from layoutproof.ir.buffer import Buffer, BufferRegion
from layoutproof.ir.expr import FALSE, TRUE, Expr, logical_and
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import NOTHING, Allocate, Block, BufferStore, DeclBuffer, For, IfThenElse, Let, Stmt
from layoutproof.ir.visit import loads_in, loops_of_stores, map_children, stores_in, walk
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering.cleanup.guard_conditions import negated
from layoutproof.lowering.passes.witness_maps import count_stores
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.values.fast_math import IEEE
from layoutproof.verify.verdict.verdict import Status


@dataclass(frozen=True, slots=True)
class Origin:
    """That a store computes old store `number`, in those of its instances where all `conditions` over loops hold."""

    number: int
    conditions: tuple[Expr, ...] = ()

    def under(self, *conditions: Expr) -> Origin:
        """The same where more conditions hold."""
        return Origin(self.number, (*self.conditions, *conditions))


@dataclass(slots=True)
class Origins:
    """The old stores of each store object. `body` is the old body with a distinct object for every store; rebuild that
    one.

    A rewriting that makes a new store object declares it with `same`; copies of an object need no declaration.
    """

    old: PrimFunc
    body: Stmt = field(init=False)
    known: dict[int, tuple[BufferStore, tuple[Origin, ...]]] = field(
        default_factory=dict[int, tuple[BufferStore, tuple[Origin, ...]]]
    )

    def __post_init__(self) -> None:
        self.body = _own_objects(self.old.body)
        for number, store in enumerate(stores_in(self.body)):
            self.set(store, (Origin(number),))

    def set(self, store: BufferStore, origins: Sequence[Origin]) -> None:
        """State what a store object computes."""
        # The object is kept as well, so that no other gets its identity.
        self.known[id(store)] = (store, tuple(origins))

    def of(self, store: BufferStore) -> tuple[Origin, ...]:
        """What a store object computes."""
        return self.known[id(store)][1]

    def same(self, new: BufferStore, old: BufferStore) -> BufferStore:
        """`new`, noted as computing what `old` does."""
        self.set(new, self.of(old))
        return new

    def rewrite(self, body: Stmt) -> Rewrite:
        """The rewrite that makes `body` of the old one; loops correspond by variable, or are taken at their start."""
        new = self.old.with_body(body)
        old_loops, new_loops = loops_of_stores(self.old.body), loops_of_stores(body)
        maps: list[InstanceMap] = []
        for number, (store, loops) in enumerate(zip(stores_in(body), new_loops, strict=True)):
            inputs = tuple(loop.var for loop in loops)
            for origin in self.of(store):
                outputs: tuple[Expr, ...] = tuple(
                    loop.var if loop.var in inputs else loop.start for loop in old_loops[origin.number]
                )
                where = logical_and(*origin.conditions) if origin.conditions else None
                maps.append(InstanceMap(number, origin.number, IndexMap(inputs, outputs), where))
        return Rewrite(self.old, new, Witness(tuple(maps)))


def _own_objects(stmt: Stmt) -> Stmt:
    def visit(node: Node) -> Node:
        if isinstance(node, BufferStore):
            return replace(node)
        return map_children(node, visit) if isinstance(node, Stmt) else node

    result = visit(stmt)
    assert isinstance(result, Stmt)
    return result


def tidied(new: Stmt, old: Stmt) -> Stmt:
    """`new`, made from `old` by replacing parts: nothing if it does nothing, one arm if the condition is decided."""
    match new:
        case For() | Let() | Allocate() | DeclBuffer():
            return NOTHING if new.body == NOTHING else new
        case IfThenElse():
            return branch(new)
        case Block():
            return new if new is old else _block(new)
        case _:
            return new


def branch(stmt: IfThenElse) -> Stmt:
    """A branch whose arms may be empty or whose condition may be decided, without what never runs."""
    if stmt.condition == TRUE:
        return stmt.then
    if stmt.condition == FALSE:
        return NOTHING if stmt.otherwise is None else stmt.otherwise
    if stmt.otherwise is None or stmt.otherwise == NOTHING:
        return NOTHING if stmt.then == NOTHING else replace(stmt, otherwise=None)
    if stmt.then == NOTHING:
        return IfThenElse(negated(stmt.condition), stmt.otherwise)
    return stmt


def _block(new: Block) -> Stmt:
    """A block after a removal, with region annotations for the rest."""
    init = None if new.init == NOTHING else new.init
    if new.where == FALSE or (init is None and new.body == NOTHING):
        return NOTHING
    parts = [part for part in (init, new.body) if part is not None]
    loaded = {load.buffer for part in parts for load in loads_in(part)} | {load.buffer for load in loads_in(new.where)}
    stored = {store.buffer for part in parts for store in stores_in(part)}
    opaque = any(isinstance(node, OpaqueCall) for part in parts for node in walk(part))
    reads, writes = (new.reads, new.writes) if opaque else (_about(new.reads, loaded), _about(new.writes, stored))
    return replace(new, init=init, reads=reads, writes=writes)


def _about(regions: Sequence[BufferRegion] | None, buffers: AbstractSet[Buffer]) -> tuple[BufferRegion, ...] | None:
    return None if regions is None else tuple(region for region in regions if region.buffer in buffers)


MAX_WORK = 2048
"""Stores of all programs that one pass asks about, together: a large program is asked about less often."""


def tries_for(func: PrimFunc) -> int:
    """How many rewrites of a function a pass asks about, at most."""
    return MAX_WORK // max(1, count_stores(func.body))


def is_proved(rewrite: Rewrite) -> bool:
    """Whether the checker accepts a rewrite bit for bit, without other assumptions; also of an empty program."""
    if rewrite.new == rewrite.old:
        return True
    if check_wellformed(rewrite.new):
        return False
    return all(v.status in (Status.PROVED, Status.VACUOUS) for v in prove_rewrite(rewrite, allowed=IEEE).verdicts)
