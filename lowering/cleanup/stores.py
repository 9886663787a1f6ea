"""Which old store each store of a rebuilt program is: followed by the objects themselves, since one text may stand in many places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from layoutproof.ir.expr import Expr, logical_and
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import BufferStore, Stmt
from layoutproof.ir.visit import loops_of_stores, map_children, stores_in


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
    """What each store object stands for. `body` is the old body with an object of its own for every store; rebuild that one.

    A rewriting that makes a store anew says so with `same`; one that puts a store twice needs to say nothing.
    """

    old: PrimFunc
    body: Stmt = field(init=False)
    known: dict[int, tuple[BufferStore, tuple[Origin, ...]]] = field(default_factory=dict[int, tuple[BufferStore, tuple[Origin, ...]]])

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
        """The rewrite that makes `body` of the old one. Loops are those of the same variable; one that is gone is taken at its start."""
        new = self.old.with_body(body)
        old_loops, new_loops = loops_of_stores(self.old.body), loops_of_stores(body)
        maps: list[InstanceMap] = []
        for number, (store, loops) in enumerate(zip(stores_in(body), new_loops, strict=True)):
            inputs = tuple(loop.var for loop in loops)
            for origin in self.of(store):
                outputs: tuple[Expr, ...] = tuple(loop.var if loop.var in inputs else loop.start for loop in old_loops[origin.number])
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
