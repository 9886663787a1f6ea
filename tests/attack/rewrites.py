"""Legal rewrites of nests, each with its witness: written for the tests, with no code of the passes.

Each takes a program and a stream of random numbers and returns a program that computes the same, or None where it does
not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import Binary, Expr, IntImm, Var, logical_and
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.stmt import ForKind
from layoutproof.ir.visit import free_variables, loads_in, map_children
from tests.attack.nests import Loop, Nest, Program, init_as_nest

Rewriter = Callable[[Program, Random], Program | None]


class Names:
    """Fresh names that are not in a program."""

    def __init__(self, program: Program) -> None:
        self.taken = {loop.var.name for nest in program.nests for loop in nest.loops}

    def fresh(self, base: str) -> Var:
        """A loop variable."""
        name, number = base, 0
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return Var(name)


def _pick(program: Program, rng: Random, fits: Callable[[Nest], bool]) -> int | None:
    """The number of a nest that fits, None where none does."""
    found = [k for k, nest in enumerate(program.nests) if nest.stage is None and fits(nest)]
    return rng.choice(found) if found else None


def _changed(program: Program, number: int, *nests: Nest) -> Program:
    return program.with_nests([*program.nests[:number], *nests, *program.nests[number + 1 :]])


def _and(a: Expr | None, b: Expr) -> Expr:
    return b if a is None else logical_and(a, b)


def _guarded(nest: Nest, guard: Expr) -> Nest:
    """The nest with a guard that says where theta is, too."""
    stores = tuple(replace(s, where=_and(s.where, guard)) for s in nest.stores)
    return replace(nest, guards=(*nest.guards, guard), stores=stores)


def _with_loop(nest: Nest, position: int, loops: Sequence[Loop], value: Expr) -> Nest:
    """The nest with one loop replaced by others; its variable becomes `value`."""
    changed = nest.substituted({nest.loops[position].var: value})
    return replace(changed, loops=(*nest.loops[:position], *loops, *nest.loops[position + 1 :]))


# ---- loops


def split(
    program: Program, rng: Random, *, nest: int | None = None, position: int | None = None, factor: int | None = None
) -> Program | None:
    """One loop becomes two, with a guard where the factor does not divide."""
    number = _pick(program, rng, lambda n: bool(n.loops)) if nest is None else nest
    if number is None:
        return None
    chosen = program.nests[number]
    at = rng.randrange(len(chosen.loops)) if position is None else position
    loop, names = chosen.loops[at], Names(program)
    k = rng.choice([2, 3, 4, 5]) if factor is None else factor
    outer, inner = names.fresh(f"{loop.var.name}o"), names.fresh(f"{loop.var.name}i")
    exact = isinstance(loop.extent, IntImm) and loop.extent.value % k == 0
    chunks: Expr = (
        IntImm(-(-loop.extent.value // k)) if isinstance(loop.extent, IntImm) else (loop.extent + (k - 1)) // k
    )
    value = outer * k + inner
    parts = [Loop(outer, chunks, loop.reduce, loop.kind), Loop(inner, IntImm(k), loop.reduce)]
    result = _with_loop(chosen, at, parts, value)
    return _changed(program, number, result if exact else _guarded(result, value < loop.extent))


def reorder(program: Program, rng: Random) -> Program | None:
    """The loops of a nest in another order: any, where its iterations are free; reductions keep theirs, spatial loops
    move.
    """
    number = _pick(program, rng, lambda n: len(n.loops) > 1 and not n.ordered)
    if number is None:
        return None
    nest = program.nests[number]
    loops = list(nest.loops)
    rng.shuffle(loops)
    loops = [replace(loop, kind=ForKind.SERIAL) for loop in loops]
    if not nest.free and not _integers(nest):
        reduced = iter([loop for loop in nest.loops if loop.reduce])
        loops = [next(reduced) if loop.reduce else loop for loop in loops]
    kinds = [loop.reduce for loop in loops]
    if nest.init is not None and kinds != sorted(kinds):
        update = replace(nest, init=None, block=False, loops=tuple(loops))
        return _changed(program, number, init_as_nest(_renamed(nest, program)), update)
    if nest.block:
        # The block's init runs before the first update of its instance, whatever the loops are.
        return _changed(program, number, replace(nest, loops=tuple(loops)))
    return _changed(program, number, replace(nest, loops=tuple(loops)))


def _integers(nest: Nest) -> bool:
    return all(s.buffer.dtype.is_integer for s in nest.stores)


def _renamed(nest: Nest, program: Program) -> Nest:
    """The nest with fresh loop variables, so that two copies can stand side by side."""
    names = Names(program)
    for loop in list(nest.loops):
        fresh = names.fresh(loop.var.name)
        position = [x.var for x in nest.loops].index(loop.var)
        nest = _with_loop(nest, position, [replace(loop, var=fresh)], fresh)
    return nest


def fuse(program: Program, rng: Random) -> Program | None:
    """Two neighbouring loops of one kind become one."""

    def pairs(nest: Nest) -> list[int]:
        both = zip(nest.loops, nest.loops[1:], strict=False)
        return [k for k, (a, b) in enumerate(both) if a.reduce == b.reduce and isinstance(b.extent, IntImm)]

    number = _pick(program, rng, lambda n: bool(pairs(n)))
    if number is None:
        return None
    nest = program.nests[number]
    at = rng.choice(pairs(nest))
    a, b = nest.loops[at], nest.loops[at + 1]
    fused = Names(program).fresh(f"{a.var.name}f")
    extent: Expr = (
        IntImm(a.extent.value * b.extent.value)
        if isinstance(a.extent, IntImm) and isinstance(b.extent, IntImm)
        else a.extent * b.extent
    )
    changed = nest.substituted({a.var: fused // b.extent, b.var: fused % b.extent})
    loop = Loop(fused, extent, a.reduce, a.kind if a.kind is ForKind.PARALLEL else ForKind.SERIAL)
    return _changed(program, number, replace(changed, loops=(*nest.loops[:at], loop, *nest.loops[at + 2 :])))


def _keeps_init(nest: Nest, loop: Loop) -> bool:
    """Whether the init of a block still happens where a loop runs backwards: a guard may forbid the iteration that it
    belongs to.
    """
    return nest.init is None or not loop.reduce or not any(loop.var in free_variables(guard) for guard in nest.guards)


def reverse(program: Program, rng: Random) -> Program | None:
    """A loop whose iterations are free runs backwards."""

    def fits(nest: Nest, x: Loop) -> bool:
        return nest.free or not x.reduce or _integers(nest)

    return _backwards(program, rng, lambda nest: True, fits)


def reverse_sum(program: Program, rng: Random) -> Program | None:
    """A reduction runs backwards: for floats that takes fast-math assumptions."""
    return _backwards(program, rng, lambda nest: nest.init is not None, lambda nest, x: x.reduce)


def _backwards(
    program: Program, rng: Random, suits: Callable[[Nest], bool], fits: Callable[[Nest, Loop], bool]
) -> Program | None:
    def places(nest: Nest) -> list[int]:
        return [k for k, x in enumerate(nest.loops) if fits(nest, x) and _keeps_init(nest, x)]

    number = _pick(program, rng, lambda nest: not nest.ordered and suits(nest) and bool(places(nest)))
    if number is None:
        return None
    nest = program.nests[number]
    at = rng.choice(places(nest))
    loop = nest.loops[at]
    back = Names(program).fresh(f"{loop.var.name}r")
    return _changed(program, number, _with_loop(nest, at, [replace(loop, var=back)], loop.extent - 1 - back))


def parallelise(program: Program, rng: Random) -> Program | None:
    """The outermost loop, where its iterations are free, becomes parallel, or the innermost a vector loop."""
    number = _pick(program, rng, lambda n: bool(n.loops) and not n.ordered and not n.serial and not n.loops[0].reduce)
    if number is None:
        return None
    nest = program.nests[number]
    last = nest.loops[-1]
    wide = (
        nest.free
        and isinstance(last.extent, IntImm)
        and not nest.guards
        and nest.data_guard is None
        and rng.random() < 0.3
    )
    at = len(nest.loops) - 1 if wide else 0
    kind = ForKind.VECTORIZED if wide else ForKind.PARALLEL
    loops = (*nest.loops[:at], replace(nest.loops[at], kind=kind), *nest.loops[at + 1 :])
    return _changed(program, number, replace(nest, loops=loops))


def serialise(program: Program, rng: Random) -> Program | None:
    """A parallel loop becomes serial."""
    number = _pick(program, rng, lambda n: any(x.kind is not ForKind.SERIAL for x in n.loops))
    if number is None:
        return None
    nest = program.nests[number]
    return _changed(program, number, replace(nest, loops=tuple(replace(x, kind=ForKind.SERIAL) for x in nest.loops)))


# ---- stages


def hoist_init(program: Program, rng: Random) -> Program | None:
    """The init of a reduction gets loops of its own; where no iteration runs, as n may be 0, it would be the only one
    to store.
    """
    number = _pick(
        program,
        rng,
        lambda n: n.init is not None and all(isinstance(each.extent, IntImm) for each in n.loops if each.reduce),
    )
    if number is None:
        return None
    nest = program.nests[number]
    update = replace(nest, init=None, block=False)
    return _changed(program, number, init_as_nest(_renamed(nest, program)), update)


def swap_stages(program: Program, rng: Random) -> Program | None:
    """Two neighbouring stages that touch nothing in common but inputs change places."""
    pairs = [k for k in range(len(program.nests) - 1) if _independent(program.nests[k], program.nests[k + 1])]
    if not pairs:
        return None
    k = rng.choice(pairs)
    nests = list(program.nests)
    nests[k], nests[k + 1] = nests[k + 1], nests[k]
    return program.with_nests(nests)


def _independent(a: Nest, b: Nest) -> bool:
    if a.stage is not None or b.stage is not None:
        return False
    datas = [{buffer.data for buffer in buffers} for buffers in (a.written(), b.written(), a.read(), b.read())]
    return not (datas[0] & (datas[1] | datas[3]) or datas[1] & datas[2])


def merge_stages(program: Program, rng: Random) -> Program | None:
    """Two neighbouring stages over the same box become one, where the second reads what the first wrote only at the
    same place.
    """
    pairs = [k for k in range(len(program.nests) - 1) if _mergeable(program.nests[k], program.nests[k + 1])]
    if not pairs:
        return None
    k = rng.choice(pairs)
    first, second = program.nests[k], program.nests[k + 1]
    values: dict[Var, Expr] = {b.var: a.var for a, b in zip(first.loops, second.loops, strict=True)}
    moved = second.substituted(values)
    merged = replace(first, stores=(*first.stores, *moved.stores), guards=first.guards)
    return program.with_nests([*program.nests[:k], merged, *program.nests[k + 2 :]])


def _mergeable(a: Nest, b: Nest) -> bool:
    simple = all(
        n.stage is None and n.free and n.init is None and not n.guards and n.data_guard is None and not n.ordered
        for n in (a, b)
    )
    if not simple or [x.extent for x in a.loops] != [x.extent for x in b.loops]:
        return False
    if {x.data for x in b.written()} & {x.data for x in a.read() | a.written()}:
        return False
    shared = {x.data for x in a.written()} & {x.data for x in b.read()}
    places = {s.buffer.data: s.indices for s in a.stores}
    values: dict[Var, Expr] = {y.var: x.var for x, y in zip(a.loops, b.loops, strict=True)}
    moved = b.substituted(values)
    return all(load.indices == places[load.buffer.data] for load in _loads(moved) if load.buffer.data in shared)


def _loads(nest: Nest) -> list[BufferLoad]:
    return [load for s in nest.stores for e in (s.value, *s.indices) for load in loads_in(e)]


def recompute(program: Program, rng: Random) -> Program | None:
    """A stage that writes a temporary runs twice: each of its instances is computed by two."""
    temps = {b.data for b in program.temps}

    def fits(nest: Nest) -> bool:
        alone = {b.data for b in nest.written()}
        return nest.free and nest.init is None and alone <= temps and not alone & {b.data for b in nest.read()}

    number = _pick(program, rng, fits)
    if number is None:
        return None
    nest = program.nests[number]
    return _changed(program, number, nest, _renamed(nest, program))


def repeat(program: Program, rng: Random) -> Program | None:
    """A stage that writes a temporary runs in each iteration of a loop around it."""
    temps = {b.data for b in program.temps}

    def fits(nest: Nest) -> bool:
        alone = {b.data for b in nest.written()}
        serial = all(x.kind is ForKind.SERIAL for x in nest.loops)
        return (
            serial and nest.free and nest.init is None and alone <= temps and not alone & {b.data for b in nest.read()}
        )

    number = _pick(program, rng, fits)
    if number is None:
        return None
    nest = program.nests[number]
    extra = Loop(Names(program).fresh("rep"), IntImm(2))
    return _changed(program, number, replace(nest, loops=(extra, *nest.loops), serial=True))


def dead_stores(program: Program, rng: Random) -> Program | None:
    """Stores to a temporary that is never read are removed."""
    read = {b.data for nest in program.nests for b in nest.read()}
    temps = {b.data for b in program.temps}
    dead = [
        k
        for k, nest in enumerate(program.nests)
        if nest.stage is None and all(b.data in temps - read for b in nest.written())
    ]
    if not dead or len(program.nests) == 1:
        return None
    k = rng.choice(dead)
    gone = {b.data for b in program.nests[k].written()}
    rest = [*program.nests[:k], *program.nests[k + 1 :]]
    kept = tuple(
        b for b in program.temps if b.data not in gone or any(b.data in {w.data for w in n.written()} for n in rest)
    )
    return replace(program, nests=tuple(rest), temps=kept)


# ---- values


def commute(program: Program, rng: Random) -> Program | None:
    """The operands of sums and products change places."""
    number = _pick(program, rng, lambda n: bool(n.stores))
    if number is None:
        return None
    nest = program.nests[number]

    def flip(node: Node) -> Node:
        if isinstance(node, Buffer):
            return node
        changed = map_children(node, flip)
        if isinstance(changed, Binary) and changed.op in (BinaryOp.ADD, BinaryOp.MUL) and rng.random() < 0.7:
            return Binary(changed.op, changed.rhs, changed.lhs)
        return changed

    values = [flip(s.value) for s in nest.stores]
    stores = tuple(replace(s, value=v) for s, v in zip(nest.stores, values, strict=True) if isinstance(v, Expr))
    return _changed(program, number, replace(nest, stores=stores))


def respell(program: Program, rng: Random) -> Program | None:
    """An index is written otherwise: `i` as `(3*i + 2)//3`, or as `i//2*2 + i%2`."""
    number = _pick(program, rng, lambda n: bool(n.stores) and bool(n.loops))
    if number is None:
        return None
    nest = program.nests[number]
    at = rng.randrange(len(nest.stores))
    store = nest.stores[at]
    if not store.indices:
        return None
    axis = rng.randrange(len(store.indices))
    i = store.indices[axis]
    k = rng.choice([2, 3, 4])
    spelled = rng.choice([(i * k + (k - 1)) // k, i // k * k + i % k, (i + k) - k, IntImm(0) + i])
    indices = (*store.indices[:axis], spelled, *store.indices[axis + 1 :])
    stores = (*nest.stores[:at], replace(store, indices=indices), *nest.stores[at + 1 :])
    return _changed(program, number, replace(nest, stores=stores))


LOOPS: tuple[Rewriter, ...] = (split, split, reorder, reorder, fuse, reverse, parallelise, serialise)
STAGES: tuple[Rewriter, ...] = (hoist_init, swap_stages, merge_stages, recompute, repeat, dead_stores)
VALUES: tuple[Rewriter, ...] = (commute, respell)
