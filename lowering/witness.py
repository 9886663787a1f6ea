"""Helpers that state witnesses: stores in program order, the loops around each, and maps between two numberings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import BufferStore, For, Stmt
from layoutproof.ir.visit import children


def loops_of_stores(stmt: Stmt) -> list[tuple[For, ...]]:
    """The loops around every store, outermost first, in the order of `visit.stores_in`."""
    return list(_stores(stmt, ()))


def _stores(node: Node, loops: tuple[For, ...]) -> Iterator[tuple[For, ...]]:
    if isinstance(node, BufferStore):
        yield loops
    inside = (*loops, node) if isinstance(node, For) else loops
    for child in children(node):
        if isinstance(child, Stmt):
            yield from _stores(child, inside)


def count_stores(stmt: Stmt) -> int:
    """The number of stores below a statement."""
    return len(loops_of_stores(stmt))


def pair_instances(old: PrimFunc, new: PrimFunc, origins: Sequence[int | None]) -> tuple[InstanceMap, ...]:
    """The instance maps of stores that kept their loops: new store `n` computes old store `origins[n]`.

    A loop of the old store that the new one lacks is taken at its start, which is where a block's init stands. Raises ValueError
    when `origins` does not have one entry for each new store.
    """
    old_loops, new_loops = loops_of_stores(old.body), loops_of_stores(new.body)
    maps: list[InstanceMap] = []
    for number, (loops, origin) in enumerate(zip(new_loops, origins, strict=True)):
        if origin is None:
            maps.append(InstanceMap(number, None, None))
            continue
        inputs = tuple(loop.var for loop in loops)
        outputs: tuple[Expr, ...] = tuple(loop.var if loop.var in inputs else loop.start for loop in old_loops[origin])
        maps.append(InstanceMap(number, origin, IndexMap(inputs, outputs)))
    return tuple(maps)


def rewrite_of(
    old: PrimFunc,
    new: PrimFunc,
    origins: Sequence[int | None] | None = None,
    cells: tuple[CellMap, ...] = (),
    changes_interface: tuple[str, ...] = (),
) -> Rewrite:
    """A rewrite whose stores kept their loops; `origins` says which old store each new one is (the same numbering when not given)."""
    pairs = origins if origins is not None else range(count_stores(old.body))
    return Rewrite(old, new, Witness(pair_instances(old, new, pairs), cells, changes_interface))


def variables_of(loops: Sequence[For]) -> tuple[Var, ...]:
    """The variables of loops."""
    return tuple(loop.var for loop in loops)
