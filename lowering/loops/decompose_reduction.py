"""Splitting a block's init off into a block of its own: as a primitive, and if new loops would make it run too late.

An init runs in the instances whose reduce variables are at the start of their domains (`ir/stmt.py`). So the loops of
the new block are those that determine the result; the others are taken at their starts, and the conditions that then
remain are its guard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar

from layoutproof.ir.buffer import BufferRegion
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, Not, Var, const, logical_and
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Attributes, Block, For, IfThenElse, IterKind, Seq, Stmt, at_first_update, seq
from layoutproof.ir.visit import children, free_variables, fresh, stores_in, substitute, walk
from layoutproof.lowering import codes
from layoutproof.lowering.loops.nest import (
    Chain,
    LoopName,
    chain_around,
    find_loop,
    fresh_variable,
    names_of,
    nest,
    parts_of,
    path_to,
    put,
    scope_around,
)
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.effects import conditions_of, data_read, data_written, is_pure
from layoutproof.lowering.passes.find import find_block
from layoutproof.lowering.passes.witness_maps import rewrite_by_values


@dataclass(frozen=True)
class DecomposeReduction(Pass):
    """Give a block's init a block of its own, `<block>_init`, in loops before `loop`.

    The new loops are those from `loop` inwards that determine the result. The rest of the block is its updates. If the
    reduction may be empty, or its first instance guarded off, the new block has that as its guard.
    """

    primitive: ClassVar[str] = "decompose_reduction"
    moves_iterations: ClassVar[bool] = True
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the init before the loop.

        Raises LayoutproofError for an unknown block or loop, a block without an init, and a let, an allocation or a
        condition on data between the two.
        """
        block, loop = find_block(func, self.block), find_loop(func, self.block, self.loop)
        if block.init is None:
            raise error(codes.INIT_PLACE, f"block {block.name} has no init", block.span)
        loops, conditions = _between(loop, block)
        split = _split(func, block, loops, conditions)
        new = put(func, loop, seq(split.init, put(func.with_body(loop), block, replace(block, init=None)).body))
        return rewrite_by_values(func, new, split.values, origins=_origins(func, loop, block))


def hoisted_inits(func: PrimFunc) -> tuple[DecomposeReduction, ...]:
    """The steps that move inits out of their reductions, before the outermost loop of each, to save a branch."""
    found: list[DecomposeReduction] = []
    blocks = list(_blocks_with_loops(func.body))
    names = Counter(block.name for block, _ in blocks)
    for block, around in blocks:
        if block.init is None or names[block.name] > 1:
            continue
        reduced = _used(block, True)
        loops = [loop for loop in around if loop.var in reduced]
        if loops:
            found.append(DecomposeReduction(block.name, loops[0].var.name))
    return tuple(found)


def _blocks_with_loops(body: Stmt) -> Iterator[tuple[Block, tuple[For, ...]]]:
    """Each block with the loops around it, outermost first, in the order of the text."""
    stack: list[tuple[Stmt, tuple[For, ...]]] = [(body, ())]
    while stack:
        stmt, loops = stack.pop()
        if isinstance(stmt, Block):
            yield stmt, loops
        inner = (*loops, stmt) if isinstance(stmt, For) else loops
        stack += [(child, inner) for child in children(stmt)[::-1] if isinstance(child, Stmt)]


def _between(loop: For, block: Block) -> tuple[list[For], list[Expr]]:
    """The loops from `loop` to a block in it, and the conditions of the branches on the way."""
    loops: list[For] = []
    conditions: list[Expr] = []
    path = (*path_to(loop, block), block)
    for stmt, child in pairwise(path):
        match stmt:
            case For():
                loops.append(stmt)
            case IfThenElse(condition=condition, then=then):
                conditions.append(condition if child is then else Not(condition))
            case Seq():
                pass
            case _:
                message = f"between loop {loop.var.name} and block {block.name} stands more than loops and branches"
                raise error(codes.INIT_PLACE, message, stmt.span)
    return loops, conditions


@dataclass(frozen=True, slots=True)
class InitSplit:
    """The init as a nest of its own, and the chain's body without it; `values` give old loops over those of the init's
    nest.

    `origins` are the old numbers of the new stores.
    """

    init: Stmt
    update: Stmt
    values: Mapping[Var, Expr]
    origins: tuple[int, ...]


def plan_init_split(
    func: PrimFunc, chain: Chain, new_loops: Sequence[For], values: Mapping[Var, Expr]
) -> InitSplit | None:
    """How to split off the init below a chain, if it would run too late in the new loops; None if not, or if there is
    none.

    `values` gives the chain's loops over the new ones. Raises LayoutproofError if the init would have to be split off
    and something else is beside its block.
    """
    blocks = [n for n in walk(chain.body) if isinstance(n, Block) and n.init is not None]
    stuck = [b for b in blocks if not _runs_first(func, b, new_loops, values)]
    if not stuck:
        return None
    block = stuck[0]
    inner = path_to(chain.body, block)
    if len(blocks) > 1 or not _is_chain(chain.body, inner, block):
        message = (
            f"the init of block {block.name} would run too late in these loops, and other statements stand beside the "
            "block"
        )
        raise error(
            codes.INIT_PLACE, message, block.span, help=f"split it off first: decompose_reduction of {block.name}"
        )
    loops = [s for s in (*chain.links, *inner) if isinstance(s, For)]
    conditions = [*chain.conditions, *(c for s in inner for c in conditions_of(s))]
    split = _split(func, block, loops, conditions)
    update = put(func.with_body(chain.body), block, replace(block, init=None)).body
    return InitSplit(split.init, update, split.values, _origins(func, chain.links[0], block))


def _runs_first(func: PrimFunc, block: Block, new_loops: Sequence[For], values: Mapping[Var, Expr]) -> bool:
    """Whether the first update of each result is still known to be the one at the start of the reduction."""
    spatial, reduced = (
        {u for old in _used(block, kind) for u in free_variables(values.get(old, old))} for kind in (False, True)
    )
    if spatial & reduced:
        return False
    scope = scope_around(func, block)
    starts: dict[Var, Expr] = {s.var: s.start for s in path_to(func.body, block) if isinstance(s, For)}
    starts |= {loop.var: loop.start for loop in new_loops}
    first = substitute(at_first_update(block), {v.var: substitute(v.binding, dict(values)) for v in block.iter_vars})
    return all(scope.proves(part) for part in parts_of(substitute(first, starts)))


def _used(block: Block, reduction: bool) -> set[Var]:
    return {v for i in block.iter_vars if (i.kind is IterKind.REDUCE) is reduction for v in free_variables(i.binding)}


def _is_chain(body: Stmt, inner: Sequence[Stmt], block: Block) -> bool:
    return len(chain_around(inner, block).links) == len(inner) and (bool(inner) or body is block)


@dataclass(frozen=True, slots=True)
class _Split:
    """An init as a nest of its own; `values` give the old loops over the new ones."""

    init: Stmt
    values: Mapping[Var, Expr]


def _split(func: PrimFunc, block: Block, loops: Sequence[For], conditions: Sequence[Expr]) -> _Split:
    assert block.init is not None
    _check_splittable(block, block.init, conditions)
    taken = names_of(func)
    spatial = _used(block, False)
    values: dict[Var, Expr] = {}
    copies: list[For] = []
    needed: list[Expr] = []
    scope = scope_around(func, loops[0]) if loops else scope_around(func, block)
    for loop in loops:
        start, extent = substitute(loop.start, values), substitute(loop.extent, values)
        if loop.var not in spatial:
            values[loop.var] = start
            needed.append(extent >= const(1, extent.dtype))
            continue
        variable = fresh_variable(f"{loop.var.name}_init", loop.var, taken)
        values[loop.var] = variable
        copies.append(replace(loop, var=variable, start=start, extent=extent))
        scope = scope.with_range(variable, start, extent)
    bound = {v.var: substitute(v.binding, values) for v in block.iter_vars}
    needed += [substitute(c, values) for c in conditions]
    needed += [substitute(c, {**values, **bound}) for c in (*parts_of(block.where), *parts_of(at_first_update(block)))]
    written, read = data_written(block.init), data_read(block.init)
    init = Block(
        fresh(f"{block.name}_init", taken),
        tuple(replace(v, binding=bound[v.var]) for v in block.iter_vars if v.kind is not IterKind.REDUCE),
        block.init,
        where=logical_and(*(c for c in needed if not scope.proves(c))),
        reads=_only(block.reads, read),
        writes=_only(block.writes, written),
        annotations=Attributes(),
        span=block.span,
    )
    # A loop that is not mentioned is at its start in the new block, and unchanged elsewhere.
    return _Split(nest(copies, init), {var: value for var, value in values.items() if var in spatial})


def _check_splittable(block: Block, init: Stmt, conditions: Sequence[Expr]) -> None:
    """Raise LayoutproofError if the init needs what exists only in the block, or if data decides whether it runs."""
    used = {store.buffer.data for store in stores_in(init)} | data_read(init)
    local = next((b.name for b in block.alloc_buffers if b.data in used), None)
    if local is not None:
        message = f"the init of block {block.name} cannot be split off: it uses {local}, which the block allocates"
        raise error(codes.INIT_PLACE, message, block.span)
    if not is_pure(block.where, *conditions, *(v.binding for v in block.iter_vars)):
        message = f"the init of block {block.name} cannot be split off: data decides whether and where it runs"
        raise error(codes.INIT_PLACE, message, block.span)


def _only(regions: tuple[BufferRegion, ...] | None, data: frozenset[Var]) -> tuple[BufferRegion, ...] | None:
    return None if regions is None else tuple(r for r in regions if r.buffer.data in data)


def _origins(func: PrimFunc, outermost: Stmt, block: Block) -> tuple[int, ...]:
    """The init's stores come before all others below the outermost statement; the rest keeps its order."""
    assert block.init is not None
    stores = list(stores_in(func.body))
    ours = {id(s) for s in stores_in(block.init)}
    below = {id(s) for s in stores_in(outermost)}
    first = next(n for n, s in enumerate(stores) if id(s) in below)
    init = [n for n, s in enumerate(stores) if id(s) in ours]
    rest = [n for n in range(len(stores)) if n not in init]
    return (*(n for n in rest if n < first), *init, *(n for n in rest if n >= first))
