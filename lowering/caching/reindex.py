"""Caches indexed by the iterators of a block, so that the block's accesses of a buffer become plain.

Source: `reindex` of upstream, a companion of `transform_block_layout` in the roadmap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad, Range
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, const, is_zero, logical_and
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Block, BufferStore, IterVar, Stmt
from layoutproof.ir.visit import bound_variables, free_variables, stores_in, substitute
from layoutproof.lowering import codes
from layoutproof.lowering.arguments import ArgumentKind
from layoutproof.lowering.caching.redirect import Redirection, accesses_of, check_visible
from layoutproof.lowering.caching.stage import Box, Cell, Place, apart, check_outside, name_of_cache, place_of, stage, staged_rewrite, twin
from layoutproof.lowering.caching.touched import common_conditions
from layoutproof.lowering.effects import is_pure
from layoutproof.lowering.find import find_buffer
from layoutproof.lowering.loops.nest import names_of, put
from layoutproof.lowering.passes import Pass, option

Indices = tuple[Expr, ...]


@dataclass(frozen=True)
class Reindex(Pass):
    """Let a block access a buffer at its own iterators: `A[2*i + r, k]` becomes `A_reindex[i, r, k]`.

    Where the block writes the buffer, the copy to it follows the nest; else the copy from it stands before. The new buffer has an axis
    for each iterator that the access uses, in the block's order, as long as the iterator's domain.
    """

    primitive: ClassVar[str] = "reindex"
    block: str = field(metadata=option(ArgumentKind.NAME))
    buffer: str = field(metadata=option(ArgumentKind.NAME))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the copy.

        Raises LayoutproofError for names that mean nothing, a buffer that the block accesses at several places or at one that more than
        its iterators decide, and uses of the buffer's address or of views of it.
        """
        buffer, place = find_buffer(func, self.buffer), place_of(func, self.block)
        block = place.target
        if not isinstance(block, Block):
            raise error(codes.NO_ITERATORS, "the body of a function has no iterators to index a buffer by", func.span)
        check_visible(block, buffer)
        check_outside(place, self.block, buffer)
        indices = _one_access(block, buffer)
        used = _used(place, block, buffer, indices)
        taken = names_of(func)
        copy = twin(buffer, name_of_cache(buffer, "reindex", taken), buffer.scope, tuple(v.domain.extent for v in used))
        box = Box(tuple(Range(const(0, e.dtype), e) for e in copy.shape), copy.shape)
        writes = any(store.buffer == buffer for store in stores_in(block))

        def one(cell: Cell) -> Stmt:
            there = _at(indices, used, cell)
            return BufferStore(buffer, there, BufferLoad(copy, cell)) if writes else BufferStore(copy, cell, BufferLoad(buffer, there))

        stages = [stage(copy.name, box, taken, one, _where(block, buffer, used))]
        own = tuple(v.var if is_zero(v.domain.start) else v.var - v.domain.start for v in used)
        target = Redirection(buffer, copy, stores=writes, indices=lambda _: own).statement(block)
        new = place.put(func, target, before=() if writes else stages, after=stages if writes else (), allocate=copy)
        return staged_rewrite(func, put(func, block, target), apart(new))


def _one_access(block: Block, buffer: Buffer) -> Indices:
    """The indices of all accesses of a buffer in a block. Raises LayoutproofError where they differ, or there are none."""
    accesses = list(accesses_of(block, buffer))
    if not accesses:
        raise error(codes.NOT_IN_BLOCK, f"block {block.name} neither reads nor writes {buffer.name}", block.span)
    first = accesses[0].indices
    other = next((a for a in accesses if a.indices != first), None)
    if other is not None:
        message = f"block {block.name} accesses {buffer.name} at two places, which one buffer over its iterators cannot hold"
        raise error(codes.SEVERAL_ACCESSES, message, other.span or block.span)
    return first


def _used(place: Place, block: Block, buffer: Buffer, indices: Indices) -> tuple[IterVar, ...]:
    """The iterators that indices use. Raises LayoutproofError where something else decides them too."""
    names = {v for index in indices for v in free_variables(index)}
    used = tuple(v for v in block.iter_vars if v.var in names)
    # What is bound around the nest is the same for all of it.
    inner = names & ({*bound_variables(place.nest)} - {v.var for v in block.iter_vars})
    if inner or not is_pure(*indices):
        what = f"on {min(v.name for v in inner)}, which is none of its iterators" if inner else "on what is in memory"
        message = f"where block {block.name} accesses {buffer.name} depends {what}; only its iterators may decide that"
        raise error(codes.NO_ITERATORS, message, block.span)
    return used


def _at(expressions: Indices, used: tuple[IterVar, ...], cell: Sequence[Expr]) -> Indices:
    """Expressions over iterators at a cell of the new buffer."""
    values = {v.var: c if is_zero(v.domain.start) else c + v.domain.start for v, c in zip(used, cell, strict=True)}
    return tuple(substitute(e, values) for e in expressions)


def _where(block: Block, buffer: Buffer, used: tuple[IterVar, ...]) -> Callable[[Sequence[Expr]], Expr] | None:
    """The conditions that the block accesses the buffer under, as far as the new buffer's cells decide them."""
    own = {v.var for v in used}
    told = tuple(c for c in common_conditions(block, buffer) if set(free_variables(c)) <= own and is_pure(c))
    return (lambda cell: logical_and(*_at(told, used, cell))) if told else None
