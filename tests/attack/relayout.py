"""Legal changes of layout: a buffer's cells move by an injective map, everywhere at once, with or without a contract
for the padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import Expr, IntImm, Logical, Not, Var, const, equal, logical_and
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import Assume, Undef
from layoutproof.ir.layout_record import Contract, LayoutRecord, LayoutStep
from layoutproof.ir.operators import LogicalOp
from layoutproof.ir.rewrite import CellMap
from layoutproof.ir.stmt import Attributes, BufferStore, Evaluate, For, ForKind, IfThenElse, Stmt
from layoutproof.ir.visit import map_expressions
from tests.attack.nests import Loop, Nest, Program, Store


class Mapped:
    """A map with its box and, over the physical indices, where its padding is (None: nowhere)."""

    def __init__(
        self, index_map: IndexMap, shape: tuple[Expr, ...], padding: Expr | None, variables: tuple[Var, ...]
    ) -> None:
        self.index_map, self.shape, self.padding, self.variables = index_map, shape, padding, variables


def random_map(shape: Sequence[Expr], rng: Random) -> Mapped:
    """A map made of splits (with an offset, now and then) and a permutation of the axes."""
    inputs = tuple(Var(f"x{axis}") for axis in range(len(shape)))
    outputs: list[tuple[Expr, Expr, Var]] = []
    bad: list[Expr] = []
    for axis, (x, extent) in enumerate(zip(inputs, shape, strict=True)):
        p = Var(f"q{axis}")
        if rng.random() < 0.45:
            outputs.append((x, extent, p))
            continue
        k = rng.choice([2, 3, 4])
        shift = rng.choice([0, 0, 0, 1, 2])
        moved: Expr = x + shift if shift else x
        chunks: Expr = (
            IntImm(-(-(extent.value + shift) // k)) if isinstance(extent, IntImm) else (extent + (shift + k - 1)) // k
        )
        lane = Var(f"q{axis}l")
        outputs += [(moved // k, chunks, p), (moved % k, IntImm(k), lane)]
        place = p * k + lane
        if not (isinstance(extent, IntImm) and (extent.value + shift) % k == 0):
            bad.append(place >= extent + shift)
        if shift:
            bad.append(place < shift)
    rng.shuffle(outputs)
    padding = None
    for term in bad:
        padding = term if padding is None else Logical(LogicalOp.OR, padding, term)
    index_map = IndexMap(inputs, tuple(o for o, _, _ in outputs))
    return Mapped(index_map, tuple(e for _, e, _ in outputs), padding, tuple(v for _, _, v in outputs))


def relayout(
    program: Program, rng: Random, *, buffer: Buffer | None = None, mapped: Mapped | None = None, pad: Any = ...
) -> Program | None:
    """A random buffer gets a random layout. `pad`: None for no contract, an expression, or `undef`."""
    every = [b for b in (*program.params, *program.temps) if b.rank]
    if not every:
        return None
    old = rng.choice(every) if buffer is None else buffer
    if any(c.new_data == old.data.name for c in program.cells):
        return None
    plan = random_map(old.shape, rng) if mapped is None else mapped
    new = replace(old, shape=plan.shape)
    if pad is ...:
        zero: Expr = const(rng.choice([0, 0, 1]), old.dtype)
        pad = rng.choice([None, None, zero, zero, Undef(old.dtype)])
    moved = program.with_nests([_moved(nest, old, new, plan.index_map) for nest in program.nests])
    moved = replace(moved, cells=(*program.cells, CellMap(old.data.name, new.data.name, plan.index_map)))
    if old in program.temps:
        return replace(moved, temps=tuple(new if b == old else b for b in program.temps))
    return _parameter(moved, old, new, plan, pad)


def _parameter(program: Program, old: Buffer, new: Buffer, plan: Mapped, pad: Expr | None) -> Program:
    written = any(old.data in {b.data for b in nest.written()} for nest in program.nests)
    stages = list(program.nests)
    if plan.padding is not None and pad is not None:
        stage = _stage(new, plan, pad, written)
        stages = [*stages, stage] if written else [stage, *stages]
    record = LayoutRecord(
        old.shape, (LayoutStep(plan.index_map, plan.shape, None if pad is None else Contract((), pad)),)
    )
    return replace(
        program,
        nests=tuple(stages),
        params=tuple(new if b == old else b for b in program.params),
        interface=(*program.interface, old.name),
        records=program.records.with_value(old.data.name, record),
    )


def _stage(buffer: Buffer, plan: Mapped, pad: Expr, written: bool) -> Nest:
    """The stage that establishes a padding postcondition, or the one that assumes an input's padding."""
    assert plan.padding is not None
    names: dict[Var, Expr] = {v: Var(f"{buffer.name}_{v.name}") for v in plan.variables}
    variables = tuple(Var(f"{buffer.name}_{v.name}") for v in plan.variables)
    padding = map_expressions(plan.padding, lambda e: names.get(e, e) if isinstance(e, Var) else e)
    body: Stmt
    if written:
        body = IfThenElse(padding, BufferStore(buffer, variables, pad))
    else:
        held = equal(BufferLoad(buffer, variables), pad)
        body = Evaluate(Assume(Logical(LogicalOp.OR, Not(padding), held)))
    loops = tuple(Loop(v, e) for v, e in zip(variables, plan.shape, strict=True))
    for loop in reversed(loops):
        body = For(loop.var, IntImm(0), loop.extent, ForKind.SERIAL, body)
    stores = (Store(buffer, variables, pad, None),) if written else ()
    return Nest(loops, stores, stage=body, ordered=True)


def _moved(nest: Nest, old: Buffer, new: Buffer, index_map: IndexMap) -> Nest:
    """Every access of the old buffer as one of the new."""

    def access(e: Expr) -> Expr:
        if isinstance(e, BufferLoad) and e.buffer == old:
            return BufferLoad(new, index_map.map_indices(e.indices))
        return e

    def store(s: Store) -> Store:
        indices = tuple(map_expressions(i, access) for i in s.indices)
        buffer = s.buffer
        if buffer == old:
            buffer, indices = new, index_map.map_indices(indices)
        return replace(s, buffer=buffer, indices=indices, value=map_expressions(s.value, access))

    if nest.stage is not None:
        return nest
    return replace(
        nest,
        stores=tuple(store(s) for s in nest.stores),
        init=None if nest.init is None else store(nest.init),
        data_guard=None if nest.data_guard is None else map_expressions(nest.data_guard, access),
    )


def attributes(program: Program) -> Attributes:
    """The layout records of a program."""
    return program.records


__all__ = ["Mapped", "attributes", "logical_and", "random_map", "relayout"]
