"""The methods of a schedule that put copies, and buffers of another extent, between a block and what it accesses."""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.lowering.caching.cache import CacheRead, CacheWrite
from layoutproof.lowering.caching.compact import CompactBuffer
from layoutproof.lowering.caching.decompose import DecomposePadding
from layoutproof.lowering.caching.double_buffer import InjectDoubleBuffer
from layoutproof.lowering.caching.einsum import PadEinsum
from layoutproof.lowering.caching.reindex import Reindex
from layoutproof.lowering.caching.sink import SinkAllocation
from layoutproof.lowering.methods import Methods
from layoutproof.lowering.step import Step


class CachingMethods(Methods):
    """Caches, and transforms of temporaries."""

    def cache_read(self, block: str, buffer: str, scope: str = "global") -> Step:
        """Copy what a block reads of a buffer before its nest, into `<buffer>_<scope>`, which the block then reads."""
        return self.apply(self.made(CacheRead, block=block, buffer=buffer, scope=scope))

    def cache_write(self, block: str, buffer: str, scope: str = "global") -> Step:
        """Let a block write to `<buffer>_<scope>`, which is copied to the buffer after its nest."""
        return self.apply(self.made(CacheWrite, block=block, buffer=buffer, scope=scope))

    def reindex(self, block: str, buffer: str) -> Step:
        """Let a block access a buffer at its own iterators, through `<buffer>_reindex`, which is copied before or after its nest."""
        return self.apply(self.made(Reindex, block=block, buffer=buffer))

    def compact_buffer(self, buffer: str) -> Step:
        """Shrink a temporary to the box of it that is touched."""
        return self.apply(self.made(CompactBuffer, buffer=buffer))

    def sink_allocation(self, buffer: str, block: str, loop: str | int) -> Step:
        """Allocate a temporary anew in each iteration of a loop around all of its uses."""
        return self.apply(self.made(SinkAllocation, buffer=buffer, block=block, loop=loop))

    def inject_double_buffer(self, block: str, buffer: str, loop: str | int) -> Step:
        """Give a temporary a first axis of 2, which iterations of a loop around the block take in turns."""
        return self.apply(self.made(InjectDoubleBuffer, block=block, buffer=buffer, loop=loop))

    def decompose_padding(self, block: str, loop: str | int) -> Step:
        """Make of a block that pads a fill with the constant before a loop around it, and a copy of what is inside."""
        return self.apply(self.made(DecomposePadding, block=block, loop=loop))

    def pad_einsum(self, block: str, padding: Sequence[int]) -> Step:
        """Pad every iterator of a block to a multiple of its factor, in copies of the buffers that are called `<buffer>_pad`."""
        return self.apply(self.made(PadEinsum, block=block, padding=padding))
