"""Mutants: one small wrong thing in a rewritten program or in its witness. Many change the result; the judge says
which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import FLOAT16, INT8
from layoutproof.ir.expr import (
    TRUE,
    Binary,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Select,
    const,
    equal,
)
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.rewrite import InstanceMap, Rewrite
from layoutproof.ir.stmt import NOTHING, Block, BufferStore, Evaluate, For, ForKind, IfThenElse, Seq, Stmt, seq
from layoutproof.ir.visit import buffers_in, map_children, stores_in, walk
from layoutproof.ir.wellformed import check_wellformed

Mutator = Callable[[Rewrite, Random], Rewrite | None]


def mutant(rewrite: Rewrite, rng: Random, tries: int = 12) -> tuple[str, Rewrite] | None:
    """A well-formed mutant with the name of what was done; None where nothing was found in some tries."""
    for _ in range(tries):
        name = rng.choice(list(MUTATORS))
        try:
            changed = MUTATORS[name](rewrite, rng)
        except (TypeError, ValueError):  # nodes refuse what makes no sense
            continue
        if changed is not None and changed != rewrite and not check_wellformed(changed.new):
            return name, changed
    return None


# ---- the new program


def at_one_place(
    root: Stmt, fits: Callable[[Node], bool], change: Callable[[Any], Node | None], rng: Random
) -> Stmt | None:
    """The statement with one place that fits, chosen at random, changed."""
    places = sum(1 for node in walk(root) if fits(node))
    if not places:
        return None
    chosen = rng.randrange(places)
    seen = -1
    result: Node | None = None

    def visit(node: Node) -> Node:
        nonlocal seen, result
        if fits(node):
            seen += 1
            if seen == chosen:
                result = change(node)
                return node if result is None else result
        if isinstance(node, Buffer) or seen > chosen:
            return node
        children = map_children(node, visit)
        return children

    body = visit(root)
    return body if result is not None and isinstance(body, Stmt) else None


def _in_new(
    rewrite: Rewrite, rng: Random, fits: Callable[[Node], bool], change: Callable[[Any], Node | None]
) -> Rewrite | None:
    body = at_one_place(rewrite.new.body, fits, change, rng)
    return None if body is None else replace(rewrite, new=rewrite.new.with_body(body))


def _is(*types: type) -> Callable[[Node], bool]:
    return lambda node: isinstance(node, types)


def index_off(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """One index one too high or too low."""

    def change(node: BufferLoad | BufferStore) -> Node | None:
        if not node.indices:
            return None
        axis = rng.randrange(len(node.indices))
        moved = node.indices[axis] + rng.choice([1, -1])
        return replace(node, indices=(*node.indices[:axis], moved, *node.indices[axis + 1 :]))

    return _in_new(rewrite, rng, _is(BufferLoad, BufferStore), change)


def indices_swapped(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """Two indices of an access change places."""

    def change(node: BufferLoad | BufferStore) -> Node | None:
        if len(node.indices) < 2:
            return None
        a, b, *rest = node.indices
        return replace(node, indices=(b, a, *rest))

    return _in_new(rewrite, rng, _is(BufferLoad, BufferStore), change)


def guard_dropped(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """A guard, or one of its terms, is gone."""

    def change(node: IfThenElse | Block | Logical) -> Node | None:
        if isinstance(node, IfThenElse):
            return node.then
        if isinstance(node, Block):
            return replace(node, where=TRUE) if node.where != TRUE else None
        return node.lhs

    return _in_new(rewrite, rng, _is(IfThenElse, Block, Logical), change)


def constant_changed(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """A constant is another one: a pad value, a start, a factor, a bound."""

    def change(node: IntImm | FloatImm) -> Node | None:
        if isinstance(node, FloatImm):
            return const(rng.choice([0.0, -0.0, 1.0, -1.0, 2.0]), node.dtype)
        return None if node.dtype.is_bool else const(node.value + rng.choice([1, -1, 2]), node.dtype)

    return _in_new(rewrite, rng, _is(IntImm, FloatImm), change)


def loops_swapped(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """Two loops inside one another change places; the witness names its loops as before."""
    done: list[tuple[str, str]] = []

    def change(node: For) -> Node | None:
        inner = node.body
        if not isinstance(inner, For):
            return None
        done.append((node.var.name, inner.var.name))
        return replace(inner, body=replace(node, body=inner.body))

    changed = _in_new(rewrite, rng, _is(For), change)
    if changed is None:
        return None
    a, b = done[-1]
    maps = tuple(_inputs_swapped(m, a, b) for m in changed.witness.instances)
    return replace(changed, witness=replace(changed.witness, instances=maps))


def _inputs_swapped(m: InstanceMap, a: str, b: str) -> InstanceMap:
    if m.instances is None:
        return m
    inputs = list(m.instances.inputs)
    names = [v.name for v in inputs]
    if a not in names or b not in names:
        return m
    i, j = names.index(a), names.index(b)
    inputs[i], inputs[j] = inputs[j], inputs[i]
    return replace(m, instances=replace(m.instances, inputs=tuple(inputs)))


def store_lost(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """A store is gone, from the witness too."""
    number = rng.randrange(max(1, len(list(stores_in(rewrite.new.body)))))
    lost = next((s for k, s in enumerate(stores_in(rewrite.new.body)) if k == number), None)
    if lost is None:
        return None
    seen = -1

    def visit(node: Node) -> Node:
        nonlocal seen
        if isinstance(node, BufferStore):
            seen += 1
            return NOTHING if seen == number else node
        if isinstance(node, Seq):
            return seq(*(s for s in map(visit, node.body) if isinstance(s, Stmt)))
        return map_children(node, visit) if isinstance(node, Stmt) else node

    body = visit(rewrite.new.body)
    assert isinstance(body, Stmt)
    maps = [m for m in rewrite.witness.instances if m.new_store != number]
    maps = [replace(m, new_store=m.new_store - (m.new_store > number)) for m in maps]
    return Rewrite(rewrite.old, rewrite.new.with_body(body), replace(rewrite.witness, instances=tuple(maps)))


def init_moved(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """What stands before a loop stands inside it."""

    def change(node: Seq) -> Node | None:
        for k in range(len(node.body) - 1):
            first, loop = node.body[k], node.body[k + 1]
            if isinstance(first, BufferStore) and isinstance(loop, For):
                inside = replace(loop, body=seq(first, loop.body))
                return seq(*node.body[:k], inside, *node.body[k + 2 :])
        return None

    changed = _in_new(rewrite, rng, _is(Seq), change)
    return None if changed is None else _with_loops(changed)


def _with_loops(rewrite: Rewrite) -> Rewrite:
    """The witness with one more input where a store got one more loop around it."""
    from layoutproof.ir.visit import loops_of_stores

    loops = loops_of_stores(rewrite.new.body)
    maps = []
    for m in rewrite.witness.instances:
        if m.instances is not None and len(m.instances.inputs) != len(loops[m.new_store]):
            m = replace(m, instances=replace(m.instances, inputs=tuple(loop.var for loop in loops[m.new_store])))
        maps.append(m)
    return replace(rewrite, witness=replace(rewrite.witness, instances=tuple(maps)))


_OTHER_OPERATION: Mapping[BinaryOp, BinaryOp] = {
    BinaryOp.FLOORDIV: BinaryOp.TRUNCDIV,
    BinaryOp.FLOORMOD: BinaryOp.TRUNCMOD,
    BinaryOp.ADD: BinaryOp.SUB,
    BinaryOp.SUB: BinaryOp.ADD,
    BinaryOp.MAX: BinaryOp.MIN,
    BinaryOp.MIN: BinaryOp.MAX,
    BinaryOp.MUL: BinaryOp.ADD,
}


def operation_changed(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """Another operation: truncating for flooring, minus for plus, min for max."""
    return _in_new(
        rewrite, rng, _is(Binary), lambda e: replace(e, op=_OTHER_OPERATION[e.op]) if e.op in _OTHER_OPERATION else None
    )


def comparison_changed(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """`<` for `<=`, or the other way."""
    other = {
        CompareOp.LT: CompareOp.LE,
        CompareOp.LE: CompareOp.LT,
        CompareOp.GT: CompareOp.GE,
        CompareOp.GE: CompareOp.GT,
    }
    return _in_new(rewrite, rng, _is(Compare), lambda e: replace(e, op=other[e.op]) if e.op in other else None)


def operands_swapped(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """The operands of max, min, a difference or a quotient change places."""
    ordered = (BinaryOp.MAX, BinaryOp.MIN, BinaryOp.SUB, BinaryOp.DIV)
    return _in_new(rewrite, rng, _is(Binary), lambda e: replace(e, lhs=e.rhs, rhs=e.lhs) if e.op in ordered else None)


def extent_changed(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """A loop runs once more or once less."""
    return _in_new(rewrite, rng, _is(For), lambda e: replace(e, extent=e.extent + rng.choice([1, -1])))


def made_parallel(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """A serial loop becomes parallel, or a vector loop."""
    kind = rng.choice([ForKind.PARALLEL, ForKind.PARALLEL, ForKind.VECTORIZED])
    return _in_new(rewrite, rng, _is(For), lambda e: replace(e, kind=kind) if e.kind is ForKind.SERIAL else None)


def buffer_changed(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """A load from another buffer of the same shape."""
    every = buffers_in(rewrite.new.body)

    def change(load: BufferLoad) -> Node | None:
        others = [b for b in every if b != load.buffer and (b.shape, b.dtype) == (load.buffer.shape, load.buffer.dtype)]
        return replace(load, buffer=rng.choice(others)) if others else None

    return _in_new(rewrite, rng, _is(BufferLoad), change)


def rounded(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """A loaded value goes through a narrower type."""

    def change(load: BufferLoad) -> Node | None:
        if load.dtype.lanes > 1 or load.dtype.is_bool:
            return None
        narrow = FLOAT16 if load.dtype.is_float else INT8
        return Cast(load.dtype, Cast(narrow, load)) if load.dtype != narrow else None

    return _in_new(rewrite, rng, _is(BufferLoad), change)


def choice_changed(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """A lazy choice becomes an eager one, or its sides change places."""

    def change(e: IfThenElseExpr | Select) -> Node:
        if isinstance(e, IfThenElseExpr) and rng.random() < 0.5:
            return Select(e.condition, e.then, e.otherwise)
        return replace(e, condition=Not(e.condition))

    return _in_new(rewrite, rng, _is(IfThenElseExpr, Select), change)


def stages_swapped(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """Two neighbouring statements change places, in the witness too where each is one store."""

    def change(node: Seq) -> Node | None:
        k = rng.randrange(len(node.body) - 1) if len(node.body) > 1 else None
        if k is None or len(list(stores_in(node.body[k]))) != len(list(stores_in(node.body[k + 1]))):
            return None
        body = list(node.body)
        body[k], body[k + 1] = body[k + 1], body[k]
        return seq(*body)

    return _in_new(rewrite, rng, _is(Seq), change)


def store_added(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """An extra store behind another: of the value that is there, one more, or another."""
    every = list(stores_in(rewrite.new.body))
    if not every:
        return None
    number = rng.randrange(len(every))
    if any(isinstance(n, Block) and n.init is not None for n in walk(rewrite.new.body)):
        return None
    store = every[number]
    held = BufferLoad(store.buffer, store.indices)
    if store.buffer.dtype.is_bool:
        return None
    value: Expr = rng.choice([held, held + const(1, store.buffer.dtype), const(0, store.buffer.dtype)])
    seen = -1

    def visit(node: Node) -> Node:
        nonlocal seen
        if isinstance(node, BufferStore):
            seen += 1
            return seq(node, replace(node, value=value)) if seen == number else node
        if isinstance(node, Seq):
            return seq(*(s for s in map(visit, node.body) if isinstance(s, Stmt)))
        return map_children(node, visit) if isinstance(node, Stmt) else node

    body = visit(rewrite.new.body)
    assert isinstance(body, Stmt)
    maps = [replace(m, new_store=m.new_store + (m.new_store > number)) for m in rewrite.witness.instances]
    maps.append(InstanceMap(number + 1, None, None))
    maps.sort(key=lambda m: m.new_store)
    return Rewrite(rewrite.old, rewrite.new.with_body(body), replace(rewrite.witness, instances=tuple(maps)))


def assumption_added(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """The new program assumes what an element of a parameter is."""
    buffers = [b for b in rewrite.new.buffers if b.rank and not b.dtype.is_bool]
    if not buffers:
        return None
    buffer = rng.choice(buffers)
    load = BufferLoad(buffer, tuple(const(0, e.dtype) for e in buffer.shape))
    assumed = Evaluate(Assume(equal(load, const(0, buffer.dtype))))
    body = rewrite.new.body
    if isinstance(body, Block) and body.is_root:
        return replace(rewrite, new=rewrite.new.with_body(replace(body, body=seq(assumed, body.body))))
    return replace(rewrite, new=rewrite.new.with_body(seq(assumed, body)))


# ---- the witness


def _maps(rewrite: Rewrite, number: int, changed: InstanceMap) -> Rewrite:
    maps = list(rewrite.witness.instances)
    maps[number] = changed
    return replace(rewrite, witness=replace(rewrite.witness, instances=tuple(maps)))


def theta_off(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """Theta leads to the neighbour, to another store or nowhere, or holds everywhere."""
    every = rewrite.witness.instances
    if not every:
        return None
    number = rng.randrange(len(every))
    m = every[number]
    if m.instances is None or m.old_store is None:
        return None
    choice = rng.randrange(4)
    if choice == 0 and m.instances.outputs:
        axis = rng.randrange(len(m.instances.outputs))
        return _maps(rewrite, number, replace(m, instances=_output_changed(m.instances, axis, rng)))
    if choice == 1:
        return _maps(rewrite, number, replace(m, where=None)) if m.where is not None else None
    if choice == 2:
        return _maps(rewrite, number, InstanceMap(m.new_store, None, None))
    return _maps(rewrite, number, replace(m, old_store=rng.randrange(len(list(stores_in(rewrite.old.body))))))


def _output_changed(index_map: IndexMap, axis: int, rng: Random) -> IndexMap:
    outputs = list(index_map.outputs)
    outputs[axis] = outputs[axis] + rng.choice([1, -1])
    return replace(index_map, outputs=tuple(outputs))


def cells_changed(rewrite: Rewrite, rng: Random) -> Rewrite | None:
    """A cell map is another one: shifted, or two of its axes exchanged."""
    if not rewrite.witness.cells:
        return None
    number = rng.randrange(len(rewrite.witness.cells))
    moved = rewrite.witness.cells[number]
    outputs = list(moved.cells.outputs)
    if len(outputs) > 1 and rng.random() < 0.5:
        a, b = rng.sample(range(len(outputs)), 2)
        outputs[a], outputs[b] = outputs[b], outputs[a]
        changed = replace(moved.cells, outputs=tuple(outputs))
    else:
        changed = _output_changed(moved.cells, rng.randrange(len(outputs)), rng)
    cells = [*rewrite.witness.cells]
    cells[number] = replace(moved, cells=changed)
    return replace(rewrite, witness=replace(rewrite.witness, cells=tuple(cells)))


MUTATORS: Mapping[str, Mutator] = {
    f.__name__: f
    for f in (
        index_off,
        indices_swapped,
        guard_dropped,
        constant_changed,
        loops_swapped,
        store_lost,
        init_moved,
        operation_changed,
        comparison_changed,
        operands_swapped,
        extent_changed,
        made_parallel,
        buffer_changed,
        rounded,
        choice_changed,
        stages_swapped,
        store_added,
        assumption_added,
        theta_off,
        cells_changed,
    )
}
