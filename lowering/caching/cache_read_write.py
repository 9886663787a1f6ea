"""Caches: a block works on a copy of a buffer, whose layout may change without touching the signature.

Source: TVM's RFC `buffer-physical-layout` (a cache stage, then `transform_layout` of it); `cache_read` and
`cache_write` of upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad, Range
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.expr import FALSE, Expr, Not, Var, const, is_zero, logical_and
from layoutproof.ir.index_map import IndexMap, retype
from layoutproof.ir.layout_record import Cell, layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import NOTHING, Block, BufferStore, IterVar, Stmt
from layoutproof.ir.visit import bound_variables, free_variables, stores_in, substitute
from layoutproof.lowering import codes
from layoutproof.lowering.arith.known_facts import assumed_of_constants, constants_of
from layoutproof.lowering.caching.footprint import common_conditions, loaded_box, stored_box
from layoutproof.lowering.caching.stage import (
    Box,
    Place,
    Redirection,
    accesses_of,
    apart,
    check_outside,
    check_visible,
    copy_of,
    name_of_cache,
    place_of,
    stage,
    staged_rewrite,
    variant,
)
from layoutproof.lowering.caching.stage import Cell as StagedCell
from layoutproof.lowering.layout.transform_layout import padding_predicate
from layoutproof.lowering.loops.nest import names_of, put
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.effects import is_pure, uses_buffer
from layoutproof.lowering.passes.find import aliases_of, find_buffer
from layoutproof.verify.maps.check_map import check_map


def elements_of(
    func: PrimFunc, buffer: Buffer, *, only_elements: bool = False
) -> Callable[[Sequence[Expr]], Expr] | None:
    """The condition on a cell of a buffer under which it is copied; None if every cell is.

    Padding without a contract is left out, and all of it with `only_elements`. Raises LayoutproofError if no formula
    for the padding is known.
    """
    record = layout_records(func).get(buffer.data.name)
    if record is None:
        return None
    if not only_elements and all(step.padding is not Cell.PAD_FORBIDDEN for step in record.steps):
        return None
    symbols = constants_of(func)
    maps = [step.index_map.with_symbols(symbols) for step in record.steps]
    inputs = maps[0].inputs
    outputs: tuple[Expr, ...] = inputs
    for each in maps:
        outputs = each.map_indices(outputs)
    shape = tuple(retype(extent, {v.name: v.dtype for v in symbols}) for extent in record.logical_shape)
    report = check_map(IndexMap(inputs, outputs), shape, assumed_of_constants(func))
    predicate = padding_predicate(buffer, report)
    if predicate == FALSE:
        return None

    def condition(cell: Sequence[Expr]) -> Expr:
        types = {f"p{axis}": v.dtype for axis, v in enumerate(cell)} | {v.name: v.dtype for v in symbols}
        values = {Var(f"p{axis}", v.dtype): v for axis, v in enumerate(cell)}
        return Not(substitute(retype(predicate, types), values))

    return condition


@dataclass(frozen=True)
class CacheRead(Pass):
    """Copy what a block reads of a buffer before its nest, into `<buffer>_<scope>`, which the block then reads.

    The cache has the buffer's shape; the box that the block reads is copied. With the block `root` the copy is at the
    start of the function, for all reads in it.
    """

    primitive: ClassVar[str] = "cache_read"
    block: str = field(metadata=option(ArgumentKind.NAME))
    buffer: str = field(metadata=option(ArgumentKind.NAME))
    scope: str = field(default="global", metadata=option(ArgumentKind.NAME))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the copy.

        Raises LayoutproofError for unknown names, a buffer that the block does not read, and uses of its address or of
        views that would not see a copy.
        """
        buffer, place = find_buffer(func, self.buffer), place_of(func, self.block)
        if not any(isinstance(access, BufferLoad) for access in accesses_of(place.target, buffer)):
            raise _not_there(func, self.block, buffer, "read", place.target)
        check_visible(place.target, buffer)
        check_outside(place, self.block, buffer)
        taken = names_of(func)
        cache = variant(buffer, name_of_cache(buffer, self.scope, taken), self.scope)
        box = Box(loaded_box(func, place, buffer), buffer.shape)
        copy = stage(cache.name, box, taken, copy_of(cache, buffer), elements_of(func, buffer))
        target = Redirection(buffer, cache, stores=False).statement(place.target)
        return staged_rewrite(
            func, put(func, place.target, target), apart(place.put(func, target, before=[copy], allocate=cache))
        )


@dataclass(frozen=True)
class CacheWrite(Pass):
    """Let a block write to `<buffer>_<scope>`, which is copied to the buffer after its nest.

    The cache has the buffer's shape; the box that the block writes is copied. With the block `root` the copy is at the
    end of the function.
    """

    primitive: ClassVar[str] = "cache_write"
    block: str = field(metadata=option(ArgumentKind.NAME))
    buffer: str = field(metadata=option(ArgumentKind.NAME))
    scope: str = field(default="global", metadata=option(ArgumentKind.NAME))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the copy.

        Raises LayoutproofError for unknown names, a buffer that the block does not write, and uses of its address or of
        views that would not see a copy.
        """
        buffer, place = find_buffer(func, self.buffer), place_of(func, self.block)
        if not any(store.buffer == buffer for store in stores_in(place.target)):
            raise _not_there(func, self.block, buffer, "write", place.target)
        check_visible(place.target, buffer)
        check_outside(place, self.block, buffer)
        for other in aliases_of(func, buffer):
            if uses_buffer(place.target, other):
                message = (
                    f"block {self.block} uses {other.name} too, which is another view of the memory of {self.buffer}"
                )
                raise error(codes.ALIASES, message, other.span)
        taken = names_of(func)
        cache = variant(buffer, name_of_cache(buffer, self.scope, taken), self.scope)
        box = Box(stored_box(func, place, buffer), buffer.shape)
        # Padding that is filled by another stage is left to it.
        elsewhere = any(s.buffer.data == buffer.data for s in stores_in(put(func, place.target, NOTHING).body))
        copy = stage(cache.name, box, taken, copy_of(buffer, cache), elements_of(func, buffer, only_elements=elsewhere))
        target = Redirection(buffer, cache, stores=True).statement(place.target)
        return staged_rewrite(
            func, put(func, place.target, target), apart(place.put(func, target, after=[copy], allocate=cache))
        )


def _not_there(func: PrimFunc, block: str, buffer: Buffer, verb: str, target: Stmt) -> LayoutproofError:
    others = ", ".join(other.name for other in aliases_of(func, buffer) if uses_buffer(target, other))
    help_text = f"it uses another view of that memory: {others}" if others else None
    return error(codes.NOT_IN_BLOCK, f"block {block} does not {verb} {buffer.name}", target.span, help=help_text)


Indices = tuple[Expr, ...]


@dataclass(frozen=True)
class Reindex(Pass):
    """Let a block access a buffer at its own iterators, through the copy `<buffer>_reindex` before or after its nest.

    `A[2*i + r, k]` becomes `A_reindex[i, r, k]`. The copy follows the nest if the block writes the buffer, else it
    precedes it. The new buffer has an axis for each iterator that the access uses, in the block's order, as long as the
    iterator's domain.
    """

    primitive: ClassVar[str] = "reindex"
    block: str = field(metadata=option(ArgumentKind.NAME))
    buffer: str = field(metadata=option(ArgumentKind.NAME))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the copy.

        Raises LayoutproofError for unknown names, a buffer that the block accesses at several places or at one that
        does not depend on its iterators alone, and uses of the buffer's address or of views of it.
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
        copy = variant(
            buffer, name_of_cache(buffer, "reindex", taken), buffer.scope, tuple(v.domain.extent for v in used)
        )
        box = Box(tuple(Range(const(0, e.dtype), e) for e in copy.shape), copy.shape)
        writes = any(store.buffer == buffer for store in stores_in(block))

        def one(cell: StagedCell) -> Stmt:
            there = _at(indices, used, cell)
            return (
                BufferStore(buffer, there, BufferLoad(copy, cell))
                if writes
                else BufferStore(copy, cell, BufferLoad(buffer, there))
            )

        stages = [stage(copy.name, box, taken, one, _where(block, buffer, used))]
        own = tuple(v.var if is_zero(v.domain.start) else v.var - v.domain.start for v in used)
        target = Redirection(buffer, copy, stores=writes, indices=lambda _: own).statement(block)
        new = place.put(func, target, before=() if writes else stages, after=stages if writes else (), allocate=copy)
        return staged_rewrite(func, put(func, block, target), apart(new))


def _one_access(block: Block, buffer: Buffer) -> Indices:
    """The indices of all accesses of a buffer in a block. Raises LayoutproofError if they differ, or there are none."""
    accesses = list(accesses_of(block, buffer))
    if not accesses:
        raise error(codes.NOT_IN_BLOCK, f"block {block.name} neither reads nor writes {buffer.name}", block.span)
    first = accesses[0].indices
    other = next((a for a in accesses if a.indices != first), None)
    if other is not None:
        message = (
            f"block {block.name} accesses {buffer.name} at two places, which one buffer over its iterators cannot hold"
        )
        raise error(codes.SEVERAL_ACCESSES, message, other.span or block.span)
    return first


def _used(place: Place, block: Block, buffer: Buffer, indices: Indices) -> tuple[IterVar, ...]:
    """The iterators that indices use. Raises LayoutproofError if something else decides them too."""
    names = {v for index in indices for v in free_variables(index)}
    used = tuple(v for v in block.iter_vars if v.var in names)
    # Variables bound around the nest are invariant in it.
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
