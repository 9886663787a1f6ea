"""Caches: a block works on a copy of a buffer, whose layout may then change without touching the signature.

Source: the seed `buffer-physical-layout` (a cache stage, then `transform_layout` of it); `cache_read` and `cache_write` of upstream.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import NOTHING, Stmt
from layoutproof.ir.visit import stores_in
from layoutproof.lowering import codes
from layoutproof.lowering.arguments import ArgumentKind
from layoutproof.lowering.caching.padding import elements_of
from layoutproof.lowering.caching.redirect import Redirection, accesses_of, check_visible
from layoutproof.lowering.caching.stage import Box, apart, check_outside, copy_of, name_of_cache, place_of, stage, staged_rewrite, twin
from layoutproof.lowering.caching.touched import loaded_box, stored_box
from layoutproof.lowering.effects import uses_buffer
from layoutproof.lowering.find import aliases_of, find_buffer
from layoutproof.lowering.loops.nest import names_of, put
from layoutproof.lowering.passes import Pass, option


@dataclass(frozen=True)
class CacheRead(Pass):
    """Copy a buffer before the nest of a block, which then reads the copy.

    The cache and its block are called `<buffer>_<scope>`. It has the buffer's shape; of it, the box that the block reads is copied.
    With the block `root` the copy stands at the start of the function, for all that is read there.
    """

    primitive: ClassVar[str] = "cache_read"
    block: str = field(metadata=option(ArgumentKind.NAME))
    buffer: str = field(metadata=option(ArgumentKind.NAME))
    scope: str = field(default="global", metadata=option(ArgumentKind.NAME))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the copy.

        Raises LayoutproofError for names that mean nothing, a buffer that the block does not read, and uses of its address or of views of
        it that a copy would not be seen by.
        """
        buffer, place = find_buffer(func, self.buffer), place_of(func, self.block)
        if not any(isinstance(access, BufferLoad) for access in accesses_of(place.target, buffer)):
            raise _not_there(func, self.block, buffer, "read", place.target)
        check_visible(place.target, buffer)
        check_outside(place, self.block, buffer)
        taken = names_of(func)
        cache = twin(buffer, name_of_cache(buffer, self.scope, taken), self.scope)
        box = Box(loaded_box(func, place, buffer), buffer.shape)
        copy = stage(cache.name, box, taken, copy_of(cache, buffer), elements_of(func, buffer))
        target = Redirection(buffer, cache, stores=False).statement(place.target)
        return staged_rewrite(func, put(func, place.target, target), apart(place.put(func, target, before=[copy], allocate=cache)))


@dataclass(frozen=True)
class CacheWrite(Pass):
    """Let a block work on a buffer of its own, which is copied to the old one after the block's nest.

    The cache and its block are called `<buffer>_<scope>`. It has the buffer's shape; of it, the box that the block writes is copied.
    With the block `root` the copy stands at the end of the function.
    """

    primitive: ClassVar[str] = "cache_write"
    block: str = field(metadata=option(ArgumentKind.NAME))
    buffer: str = field(metadata=option(ArgumentKind.NAME))
    scope: str = field(default="global", metadata=option(ArgumentKind.NAME))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the copy.

        Raises LayoutproofError for names that mean nothing, a buffer that the block does not write, and uses of its address or of views
        of it that a copy would not be seen by.
        """
        buffer, place = find_buffer(func, self.buffer), place_of(func, self.block)
        if not any(store.buffer == buffer for store in stores_in(place.target)):
            raise _not_there(func, self.block, buffer, "write", place.target)
        check_visible(place.target, buffer)
        check_outside(place, self.block, buffer)
        for other in aliases_of(func, buffer):
            if uses_buffer(place.target, other):
                message = f"block {self.block} uses {other.name} too, which is another view of the memory of {self.buffer}"
                raise error(codes.ALIASES, message, other.span)
        taken = names_of(func)
        cache = twin(buffer, name_of_cache(buffer, self.scope, taken), self.scope)
        box = Box(stored_box(func, place, buffer), buffer.shape)
        # Padding that is filled by another stage is left to it.
        elsewhere = any(s.buffer.data == buffer.data for s in stores_in(put(func, place.target, NOTHING).body))
        copy = stage(cache.name, box, taken, copy_of(buffer, cache), elements_of(func, buffer, only_elements=elsewhere))
        target = Redirection(buffer, cache, stores=True).statement(place.target)
        return staged_rewrite(func, put(func, place.target, target), apart(place.put(func, target, after=[copy], allocate=cache)))


def _not_there(func: PrimFunc, block: str, buffer: Buffer, verb: str, target: Stmt) -> LayoutproofError:
    others = ", ".join(other.name for other in aliases_of(func, buffer) if uses_buffer(target, other))
    help_text = f"it uses another view of that memory: {others}" if others else None
    return error(codes.NOT_IN_BLOCK, f"block {block} does not {verb} {buffer.name}", target.span, help=help_text)
