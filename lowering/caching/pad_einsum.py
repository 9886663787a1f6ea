"""Sums of products over domains that divide: every iterator is padded to a multiple, invisibly from outside.

Source: the roadmap's companions of `transform_layout` (`pad_einsum` of upstream); neutral pad values: the table of
padding laws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad, Range
from layoutproof.ir.diagnostic import counted, error
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Binary, Expr, IntImm, Var, const, logical_and
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite
from layoutproof.ir.stmt import Block, BufferStore, For, IfThenElse, IterVar, Stmt
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables, fresh, loads_in, stores_in, walk
from layoutproof.lowering import codes
from layoutproof.lowering.arith.affine import affine_of
from layoutproof.lowering.caching.decompose_padding import own_loop
from layoutproof.lowering.caching.stage import (
    Box,
    Cell,
    Place,
    Redirection,
    apart,
    check_outside,
    check_visible,
    copy_of,
    name_of_cache,
    place_of,
    stage,
    staged_rewrite,
    variant,
    whole,
)
from layoutproof.lowering.loops.nest import Chain, chain_around, names_of, nest, path_to, put
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.witness_maps import rewrite_of

Extents = dict[Var, tuple[For, Expr]]
"""Iterators that are padded, with their loops and new extents."""
Axes = tuple[tuple[Expr, Expr], ...]


@dataclass(frozen=True)
class PadEinsum(Pass):
    """Pad every iterator of a block to a multiple of its factor, in copies of the buffers called `<buffer>_pad`.

    `padding` has a factor for each iterator. Copies are filled with the neutral value of the block's reduction (0 in a
    sum, 1 in a product, the end of the range in a minimum or maximum). The result is copied back after the block.
    """

    primitive: ClassVar[str] = "pad_einsum"
    block: str = field(metadata=option(ArgumentKind.NAME))
    padding: tuple[int, ...] = field(metadata=option(ArgumentKind.INTEGERS))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the larger block; unchanged if every factor divides.

        Raises LayoutproofError for unknown names, factors that are not positive or not one for each iterator, a block
        among other statements in its loops, and accesses at anything but plain iterators.
        """
        place = place_of(func, self.block)
        block = place.target
        if not isinstance(block, Block):
            raise error(codes.NO_ITERATORS, "the body of a function has no iterators to pad", func.span)
        if not any(True for _ in stores_in(block)):
            raise error(codes.NO_EINSUM, f"block {self.block} stores nothing", block.span)
        chain = _chain(place, block)
        extents = _padded(block, chain, self.padding)
        if not extents:
            return rewrite_of(func, func)
        taken = names_of(func)
        written = {store.buffer for store in stores_in(block)}
        found = sorted(_buffers(block, extents).items(), key=lambda item: item[0] in written)
        copies = [_Copy(buffer, axes, name_of_cache(buffer, "pad", taken)) for buffer, axes in found]
        stages = _stages(block, copies, taken)
        target: Stmt = block
        for each in copies:
            check_visible(block, each.old)
            check_outside(place, self.block, each.old)
            target = Redirection(each.old, each.new, stores=True).statement(target)
        assert isinstance(target, Block)
        grown = nest(_loops(chain, extents), replace(target, iter_vars=_iterators(block, extents)))
        new = apart(place.put_nest(func, grown, *stages, tuple(each.new for each in copies)))
        return _where_it_was(staged_rewrite(func, put(func, block, target), new), target, block, extents)


class _Copy:
    """A larger copy of a buffer; `axes` are pairs of the block's extent and the copy's, equal if nothing is padded."""

    def __init__(self, old: Buffer, axes: Axes, name: str) -> None:
        self.old, self.axes = old, axes
        self.new = variant(old, name, old.scope, tuple(after for _, after in axes))

    def inside(self, cell: Sequence[Expr]) -> Expr:
        """Whether a cell of the twin is one of the buffer."""
        return logical_and(*(v < before for v, (before, after) in zip(cell, self.axes, strict=True) if before != after))

    def filled(self, neutral: Expr) -> Callable[[Cell], Stmt]:
        """The buffer's value, or what is neutral."""

        def one(cell: Cell) -> Stmt:
            copy = BufferStore(self.new, cell, BufferLoad(self.old, cell))
            return IfThenElse(self.inside(cell), copy, BufferStore(self.new, cell, neutral))

        return one

    @property
    def visited(self) -> Box:
        """The part of the buffer that the block visits."""
        return Box(tuple(Range(const(0, before.dtype), before) for before, _ in self.axes), self.old.shape)


def _stages(block: Block, copies: Sequence[_Copy], taken: set[str]) -> tuple[list[Stmt], list[Stmt]]:
    """The copies of read buffers before the block, and of written ones after it."""
    written = {store.buffer for store in stores_in(block)}
    operator = _operator(block)

    def brings_in(buffer: Buffer) -> bool:
        return block.init is None and any(load.buffer == buffer for load in loads_in(block))

    before: list[Stmt] = []
    after: list[Stmt] = []
    for each in copies:
        if each.old not in written or brings_in(each.old):
            fill = each.filled(_neutral(operator, each.old.dtype))
            before.append(stage(each.new.name, whole(each.new), taken, fill))
        if each.old in written:
            name = fresh(f"{each.new.name}_back", taken) if brings_in(each.old) else each.new.name
            after.append(stage(name, each.visited, taken, copy_of(each.old, each.new)))
    return before, after


def _chain(place: Place, block: Block) -> Chain:
    """The loops of a block. Raises LayoutproofError if they hold anything else."""
    path = path_to(place.nest, block)
    chain = chain_around(path, block)
    if len(chain.links) != len(path) or chain.conditions:
        raise error(codes.LOOP_NEST, f"the loops of block {block.name} hold more than the block", place.nest.span)
    return chain


def _padded(block: Block, chain: Chain, padding: Sequence[int]) -> Extents:
    """The iterators that a factor does not divide, with their new extents."""
    if len(padding) != len(block.iter_vars):
        said, needed = (
            counted(len(padding), "factor", "factors"),
            counted(len(block.iter_vars), "iterator", "iterators"),
        )
        raise error(codes.NO_EINSUM, f"{said} for block {block.name}, which has {needed}", block.span)
    found: Extents = {}
    for v, factor in zip(block.iter_vars, padding, strict=True):
        if factor < 1:
            raise error(codes.NO_EINSUM, f"{v.var.name} cannot be padded to a multiple of {factor}", block.span)
        extent = _multiple(v.domain.extent, factor)
        if extent == v.domain.extent:
            continue
        loop = own_loop(v, chain, block)
        if loop is None:
            message = f"{v.var.name} of block {block.name} is not bound to a loop of its own, which could run longer"
            raise error(codes.NO_EINSUM, message, block.span, help="padding comes before loops are split or fused")
        found[v.var] = (loop, extent)
    return found


def _multiple(extent: Expr, factor: int) -> Expr:
    if isinstance(extent, IntImm):
        return const(-(-extent.value // factor) * factor, extent.dtype)
    _, rest = affine_of(extent).split(factor)
    return extent if not rest.terms and rest.constant == 0 else (extent + (factor - 1)) // factor * factor


def _buffers(block: Block, extents: Extents) -> dict[Buffer, Axes]:
    """The buffers with an axis that gets longer. Raises LayoutproofError for an index that is more than an iterator."""
    domains = {v.var: v.domain.extent for v in block.iter_vars}
    found: dict[Buffer, Axes] = {}
    for node in walk(block):
        if not isinstance(node, BufferLoad | BufferStore):
            continue
        axes: list[tuple[Expr, Expr]] = []
        for index, extent in zip(node.indices, node.buffer.shape, strict=True):
            if isinstance(index, Var) and index in extents:
                axes.append((domains[index], extents[index][1]))
            elif set(free_variables(index)) & set(extents):
                message = (
                    f"{node.buffer.name} is indexed by `{expr_text(index)}` in block {block.name}, which is no "
                    "iterator by itself"
                )
                raise error(codes.NO_EINSUM, message, node.span or block.span)
            else:
                axes.append((extent, extent))
        if found.setdefault(node.buffer, tuple(axes)) != tuple(axes):
            message = f"block {block.name} accesses {node.buffer.name} at two places that are padded differently"
            raise error(codes.NO_EINSUM, message, node.span or block.span)
    return {buffer: axes for buffer, axes in found.items() if any(before != after for before, after in axes)}


def _operator(block: Block) -> BinaryOp | None:
    """The operator of the block's reduction, if it is one update of an accumulator."""
    store = block.body
    if not isinstance(store, BufferStore) or not isinstance(store.value, Binary):
        return None
    own = BufferLoad(store.buffer, store.indices)
    return store.value.op if own in (store.value.lhs, store.value.rhs) else None


def _neutral(operator: BinaryOp | None, dtype: DType) -> Expr:
    """The neutral value of an operator; 0 if there is no operator."""
    if operator is BinaryOp.MUL:
        return const(1, dtype)
    if operator is BinaryOp.MAX:
        return const(-math.inf if dtype.is_float else dtype.min_int, dtype)
    if operator is BinaryOp.MIN:
        return const(math.inf if dtype.is_float else dtype.max_int, dtype)
    return const(0, dtype)


def _loops(chain: Chain, extents: Extents) -> list[For]:
    longer = {loop.var: extent for loop, extent in extents.values()}
    return [replace(loop, extent=longer.get(loop.var, loop.extent)) for loop in chain.loops]


def _iterators(block: Block, extents: Extents) -> tuple[IterVar, ...]:
    return tuple(
        replace(v, domain=Range(v.domain.start, extents[v.var][1])) if v.var in extents else v for v in block.iter_vars
    )


def _where_it_was(rewrite: Rewrite, target: Block, block: Block, extents: Extents) -> Rewrite:
    """The rewrite in which instances outside the old domains are extra."""
    stores = list(stores_in(rewrite.new.body))
    own = {id(store) for store in stores_in(target)}
    maps: list[InstanceMap] = []
    for claim in rewrite.witness.instances:
        store = id(stores[claim.new_store])
        told = [v for v in block.iter_vars if v.var in extents]
        where = [v.binding < v.domain.extent for v in told]
        maps.append(replace(claim, where=logical_and(*where)) if store in own and where else claim)
    return replace(rewrite, witness=replace(rewrite.witness, instances=tuple(maps)))
