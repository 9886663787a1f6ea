"""Helpers that state witnesses: stores in program order, the loops around each, and maps between two numberings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import For, Stmt
from layoutproof.ir.visit import free_variables, loops_of_stores


def count_stores(stmt: Stmt) -> int:
    """The number of stores below a statement."""
    return len(loops_of_stores(stmt))


def pair_instances(old: PrimFunc, new: PrimFunc, origins: Sequence[int | None]) -> tuple[InstanceMap, ...]:
    """The instance maps of stores that kept their loops: new store `n` computes old store `origins[n]`.

    A loop of the old store that the new one lacks is taken at its start, where a block's init is. Raises ValueError if
    `origins` does not have one entry for each new store.
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
    """A rewrite whose stores kept their loops; `origins` has the old store of each new one (by default the same
    number).
    """
    pairs = origins if origins is not None else range(count_stores(old.body))
    return Rewrite(old, new, Witness(pair_instances(old, new, pairs), cells, changes_interface))


def rewrite_by_values(
    old: PrimFunc,
    new: PrimFunc,
    *values: Mapping[Var, Expr],
    origins: Sequence[int | None] | None = None,
) -> Rewrite:
    """A rewrite of loops: `values` give old loop variables over new ones.

    An old loop of a store is the new loop of its name; else the first of its `values` over loops around the new store;
    else it is taken at its start, where a block's init is. `origins` is as in `pair_instances`.
    """
    pairs = origins if origins is not None else range(count_stores(old.body))
    old_loops, new_loops = loops_of_stores(old.body), loops_of_stores(new.body)
    bound = {loop.var for loops in new_loops for loop in loops}
    maps: list[InstanceMap] = []
    for number, (loops, origin) in enumerate(zip(new_loops, pairs, strict=True)):
        if origin is None:
            maps.append(InstanceMap(number, None, None))
            continue
        inputs = tuple(loop.var for loop in loops)
        gone = bound - set(inputs)
        outputs = tuple(_coordinate(loop, inputs, gone, values) for loop in old_loops[origin])
        maps.append(InstanceMap(number, origin, IndexMap(inputs, outputs)))
    return Rewrite(old, new, Witness(tuple(maps)))


def from_before(old: PrimFunc, rewrite: Rewrite, origins: Sequence[int]) -> Rewrite:
    """A rewrite of a program after its statements moved, as a rewrite of `old`: its store `n` was `origins[n]` there,
    in loops of the same names.
    """
    loops = loops_of_stores(old.body)
    maps: list[InstanceMap] = []
    for claim in rewrite.witness.instances:
        if claim.old_store is None or claim.instances is None:
            maps.append(claim)
            continue
        before = loops_of_stores(rewrite.old.body)[claim.old_store]
        known = {loop.var: output for loop, output in zip(before, claim.instances.outputs, strict=True)}
        number = origins[claim.old_store]
        outputs = tuple(known[loop.var] for loop in loops[number])
        maps.append(replace(claim, old_store=number, instances=IndexMap(claim.instances.inputs, outputs)))
    return Rewrite(old, rewrite.new, replace(rewrite.witness, instances=tuple(maps)))


def _coordinate(loop: For, inputs: Sequence[Var], gone: AbstractSet[Var], values: Sequence[Mapping[Var, Expr]]) -> Expr:
    if loop.var in inputs:
        return loop.var
    usable = (
        known[loop.var] for known in values if loop.var in known and not set(free_variables(known[loop.var])) & gone
    )
    return next(usable, loop.start)


def variables_of(loops: Sequence[For]) -> tuple[Var, ...]:
    """The variables of loops."""
    return tuple(loop.var for loop in loops)
