"""Witnesses of the passes, checked point by point: the old instance and the old cell of each new one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from random import Random

import pytest
from tests.lowering.small_operators import CONCRETE, random_map, small
from tests.shares import one_in

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import IntImm
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Block, BufferStore, For, IfThenElse, Stmt
from layoutproof.ir.visit import children
from layoutproof.lowering.layout.transform_layout import TransformLayout
from layoutproof.lowering.schedule.schedule import LOWERING

Path = tuple[Stmt, ...]


def stores(stmt: Stmt, path: Path = ()) -> Iterator[Path]:
    """The paths from the body to each store, in program order."""
    if isinstance(stmt, BufferStore):
        yield (*path, stmt)
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from stores(child, (*path, stmt))


def loops(path: Path) -> list[For]:
    """The loops of a path."""
    return [s for s in path if isinstance(s, For)]


def points(path: Path) -> list[dict[str, int]]:
    """Every point of the loops around a store, whatever guards say."""
    ranges = [range(loop.extent.value) for loop in loops(path) if isinstance(loop.extent, IntImm)]
    assert len(ranges) == len(loops(path))
    return [dict(zip([loop.var.name for loop in loops(path)], values, strict=True)) for values in product(*ranges)]


def index_at(path: Path, point: dict[str, int]) -> tuple[int, ...]:
    """What a store's indices are at a point of its loops."""
    env = dict(point)
    for stmt in path:
        if isinstance(stmt, Block):
            env |= {v.var.name: int(evaluate(v.binding, env)) for v in stmt.iter_vars}
    store = path[-1]
    assert isinstance(store, BufferStore)
    return tuple(int(evaluate(i, env)) for i in store.indices)


def happens(path: Path, point: dict[str, int]) -> bool:
    """Whether the branches and guards around a store let it run at a point."""
    env = dict(point)
    for stmt, below in pairwise(path):
        if isinstance(stmt, Block):
            env |= {v.var.name: int(evaluate(v.binding, env)) for v in stmt.iter_vars}
            if below is not stmt.init and not evaluate(stmt.where, env):
                return False
        if isinstance(stmt, IfThenElse) and bool(evaluate(stmt.condition, env)) != (below is stmt.then):
            return False
    return True


def element(store: Stmt, index: Sequence[int]) -> int:
    """The number of an element of the store's buffer, row by row."""
    assert isinstance(store, BufferStore)
    number = 0
    for extent, value in zip(store.buffer.shape, index, strict=True):
        assert isinstance(extent, IntImm)
        number = number * extent.value + value
    return number


def check_witness(rewrite: Rewrite, rng: Random) -> int:
    """Compare cells at sampled points of every paired store; how many were compared."""
    old, new = list(stores(rewrite.old.body)), list(stores(rewrite.new.body))
    moved = {c.old_data: c.cells for c in rewrite.witness.cells}
    compared = 0
    assert [m.new_store for m in rewrite.witness.instances] == list(range(len(new)))
    for pair in rewrite.witness.instances:
        if pair.old_store is None or pair.instances is None:
            continue
        after, before = new[pair.new_store], old[pair.old_store]
        every = [point for point in points(after) if happens(after, point)]
        for point in rng.sample(every, min(40, len(every))):
            theta = pair.instances.evaluate([point[v.name] for v in pair.instances.inputs])
            old_point = dict(zip([loop.var.name for loop in loops(before)], theta, strict=True))
            index = index_at(before, old_point)
            store = before[-1]
            assert isinstance(store, BufferStore)
            cells = moved.get(store.buffer.data.name)
            number = element(after[-1], cells.evaluate(index)) if cells is not None else element(store, index)
            assert element(after[-1], index_at(after, point)) == number
            compared += 1
    return compared


@one_in(21)
@pytest.mark.parametrize("name", CONCRETE)
def test_witnesses_hold_point_by_point(name: str) -> None:
    """For each pass, the paired old instance writes the cell that the new instance's cell came from."""
    rng = Random(f"{name} witness")
    func: PrimFunc = small(name)
    compared = 0
    for buffer in func.buffers:
        rewrite = TransformLayout("root", buffer.name, random_map(rng, buffer.rank), 0).propose(func)
        compared += check_witness(rewrite, rng)
        assert rewrite.witness.changes_interface == (buffer.name,)
        func = rewrite.new
    for step in LOWERING:
        rewrite = step.propose(func)
        compared += check_witness(rewrite, rng)
        func = rewrite.new
    assert compared > 100
