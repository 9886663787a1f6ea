"""Witnesses for programs that do the same things in the same order, whatever their loops are: the n-th iteration of one
nest is the n-th of the other. Also where integer sets cannot say the programs, or a call's body is not known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from layoutproof.ir.expr import Binary, Cast, Expr, IntImm, Var, binary, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap
from layoutproof.ir.stmt import BufferStore, For
from layoutproof.ir.visit import free_variables, loops_of_stores, stores_in, walk


def in_order(old: PrimFunc, new: PrimFunc) -> tuple[InstanceMap, ...] | None:
    """The witness that pairs stores that look alike, by number if there are as many; None if some nest has no order of
    its own.
    """
    mine, theirs = loops_of_stores(new.body), loops_of_stores(old.body)
    origins = _origins(old, new)
    if origins is None:
        return None
    maps: list[InstanceMap] = []
    for number, origin in enumerate(origins):
        if origin is None:
            maps.append(InstanceMap(number, None, None))
            continue
        index_map = _iteration(mine[number], theirs[origin])
        if index_map is None:
            return None
        maps.append(InstanceMap(number, origin, index_map))
    return tuple(maps)


def unmatched(new: PrimFunc) -> tuple[InstanceMap, ...]:
    """The witness by which nothing corresponds: the checker then says which cells differ, for runs to look at."""
    return tuple(InstanceMap(number, None, None) for number, _ in enumerate(stores_in(new.body)))


def _origins(old: PrimFunc, new: PrimFunc) -> list[int | None] | None:
    """The store of the old program for each of the new one; None if that is not clear."""
    mine, theirs = list(stores_in(new.body)), list(stores_in(old.body))
    if len(mine) == len(theirs):
        return list(range(len(mine)))
    alike: dict[object, list[int]] = defaultdict(list)
    for number, store in enumerate(theirs):
        alike[_look(store)].append(number)
    found: list[int | None] = []
    counts: dict[object, int] = defaultdict(int)
    for store in mine:
        look = _look(store)
        among = alike.get(look, [])
        # A stage cut in several has one store for all of them; of several stages, each has its own.
        found.append(None if not among else among[0] if len(among) == 1 else among[min(counts[look], len(among) - 1)])
        counts[look] += 1
    if any(len(alike[look]) > 1 and counts[look] != len(alike[look]) for look in alike):
        return None
    return found


def _look(store: BufferStore) -> object:
    """What stays of a store when loops change: its buffer, and the operations of its value."""
    kinds = tuple(node.op if isinstance(node, Binary) else type(node) for node in walk(store.value) if _is_float(node))
    return store.buffer.data.name, kinds


def _is_float(node: object) -> bool:
    return isinstance(node, Expr) and not (node.dtype.is_integer and isinstance(node, Var | IntImm | Binary | Cast))


def _iteration(mine: Sequence[For], theirs: Sequence[For]) -> IndexMap | None:
    """From the loops of one nest to those of another with as many iterations; the identity for as many loops."""
    inputs = tuple(loop.var for loop in mine)
    if len(mine) == len(theirs):
        return IndexMap(inputs, inputs)
    bound = {loop.var for loop in (*mine, *theirs)}
    if any(bound & set(free_variables(e)) for loop in (*mine, *theirs) for e in (loop.start, loop.extent)):
        return None
    number: Expr = const(0)
    for loop in mine:
        number = number * loop.extent + (loop.var - loop.start)
    outputs: list[Expr] = []
    for loop in reversed(theirs):
        outputs.append(loop.start + binary(BinaryOp.FLOORMOD, number, loop.extent))
        number = binary(BinaryOp.FLOORDIV, number, loop.extent)
    return IndexMap(inputs, tuple(reversed(outputs)))
