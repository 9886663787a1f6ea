"""Splitting a block's init off, where new loops would make it run again in the middle of a reduction.

Init runs once for each result within one run of the reduction's outermost loop. So the loops around that one must say no more than
which results are meant; a loop there that the reduction takes part in would start results anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.attributes import Attributes
from layoutproof.ir.buffer import BufferRegion
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, Var, logical_and
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, For, IterKind, IterVar, Stmt
from layoutproof.ir.subst import fresh, substitute
from layoutproof.ir.visit import free_variables, stores_in, walk
from layoutproof.lowering import codes
from layoutproof.lowering.inits import conditions_of, data_read, data_written
from layoutproof.lowering.known import Scope
from layoutproof.lowering.loops.nest import Chain, chain_around, depends, fresh_variable, is_zero, names_of, nest, path_to, put, under
from layoutproof.lowering.scopes import symbol_scope


@dataclass(frozen=True, slots=True)
class InitSplit:
    """The init as a nest of its own, and the chain's body without it; `values` give old loops over those of the init's nest.

    `origins` are the old numbers of the new stores.
    """

    init: Stmt
    update: Stmt
    values: Mapping[Var, Expr]
    origins: tuple[int, ...]


def plan_init_split(func: PrimFunc, chain: Chain, new_loops: Sequence[For], values: Mapping[Var, Expr]) -> InitSplit | None:
    """How the init below a chain is split off, where it cannot follow the new loops; None where it can, or there is none.

    `values` gives the chain's loops over the new ones. Raises LayoutproofError where the init would have to be split off and something
    else stands beside its block.
    """
    blocks = [n for n in walk(chain.body) if isinstance(n, Block) and n.init is not None]
    stuck = [b for b in blocks if not _follows(func, b, chain, new_loops, values)]
    if not stuck:
        return None
    block = stuck[0]
    inner = path_to(chain.body, block)
    links = [s for s in (*chain.links, *inner) if isinstance(s, For)]
    conditions = [*chain.conditions, *(c for s in inner for c in conditions_of(s))]
    if len(blocks) > 1 or not _is_chain(chain.body, inner, block) or block.init is None:
        message = f"the init of block {block.name} cannot follow these loops, and other statements stand beside the block"
        raise error(codes.INIT_PLACE, message, block.span)
    used = {i.buffer.data for i in stores_in(block.init)} | data_read(block.init)
    local = next((b.name for b in block.alloc_buffers if b.data in used), None)
    if local is not None:
        message = f"the init of block {block.name} cannot be split off: it uses {local}, which the block allocates"
        raise error(codes.INIT_PLACE, message, block.span)
    return _split(func, chain, block, links, conditions)


def _follows(func: PrimFunc, block: Block, chain: Chain, new_loops: Sequence[For], values: Mapping[Var, Expr]) -> bool:
    """Whether the loops around the reduction's outermost one say only which result is meant."""
    spatial, reduced = _used(block, False), _used(block, True)
    outside = path_to(func.body, chain.links[0])
    if any(isinstance(s, For) and s.var in reduced for s in outside):
        return True
    # The new loops that reductions and results will be bound to.
    taking_part = {v for old in reduced for v in free_variables(values.get(old, old))}
    if taking_part & {v for old in spatial for v in free_variables(values.get(old, old))}:
        return False
    for loop in new_loops:
        if loop.var in taking_part:
            return True
        if not {old for old, value in values.items() if depends(value, (loop.var,))} <= spatial:
            return False
    return True


def _used(block: Block, reduction: bool) -> set[Var]:
    return {v for i in block.iter_vars if (i.kind is IterKind.REDUCE) is reduction for v in free_variables(i.binding)}


def _is_chain(body: Stmt, inner: Sequence[Stmt], block: Block) -> bool:
    return len(chain_around(inner, block).links) == len(inner) and (bool(inner) or body is block)


def _split(func: PrimFunc, chain: Chain, block: Block, loops: Sequence[For], conditions: Sequence[Expr]) -> InitSplit:
    assert block.init is not None
    taken = names_of(func)
    spatial = _used(block, False)
    own = [loop for loop in loops if loop.var in spatial]
    values: dict[Var, Expr] = {loop.var: fresh_variable(f"{loop.var.name}_init", loop.var, taken) for loop in own}
    copies = []
    for loop in own:
        variable = values[loop.var]
        assert isinstance(variable, Var)
        copies.append(replace(loop, var=variable, start=substitute(loop.start, values), extent=substitute(loop.extent, values)))
    gone = {loop.var for loop in loops} - spatial
    told = [substitute(c, values) for c in conditions if not depends(c, gone)]
    iter_vars = tuple(replace(i, binding=substitute(i.binding, values)) for i in block.iter_vars if i.kind is not IterKind.REDUCE)
    scope = symbol_scope(func)
    for loop in copies:
        scope = scope.with_range(loop.var, loop.start, loop.extent)
    written, read = data_written(block.init), data_read(block.init)
    init = Block(
        fresh(f"{block.name}_init", taken),
        iter_vars,
        block.init,
        where=logical_and(*(g for i in iter_vars for g in _domain_guards(i, scope))),
        reads=_only(block.reads, read),
        writes=_only(block.writes, written),
        annotations=Attributes(),
        span=block.span,
    )
    update = _without_init(func, chain, block)
    return InitSplit(nest(copies, under(told, init)), update, values, _origins(func, chain, block))


def _only(regions: tuple[BufferRegion, ...] | None, data: frozenset[Var]) -> tuple[BufferRegion, ...] | None:
    return None if regions is None else tuple(r for r in regions if r.buffer.data in data)


def _domain_guards(iter_var: IterVar, scope: Scope) -> list[Expr]:
    """What is not plain about the binding lying in the domain: init ran only where it does."""
    start, value = iter_var.domain.start, iter_var.binding
    end = iter_var.domain.extent if is_zero(start) else start + iter_var.domain.extent
    guards = (value >= start, value < end)
    return [g for g in guards if not scope.proves(g)]


def _without_init(func: PrimFunc, chain: Chain, block: Block) -> Stmt:
    return put(func.with_body(chain.body), block, replace(block, init=None)).body


def _origins(func: PrimFunc, chain: Chain, block: Block) -> tuple[int, ...]:
    """The init's stores come before all others of the chain; the rest keeps its order."""
    assert block.init is not None
    stores = list(stores_in(func.body))
    ours = {id(s) for s in stores_in(block.init)}
    below = {id(s) for s in stores_in(chain.links[0])}
    first = next(n for n, s in enumerate(stores) if id(s) in below)
    init = [n for n, s in enumerate(stores) if id(s) in ours]
    rest = [n for n in range(len(stores)) if n not in init]
    return (*(n for n in rest if n < first), *init, *(n for n in rest if n >= first))
