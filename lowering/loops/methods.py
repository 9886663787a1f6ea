"""The methods of a schedule that transform loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from layoutproof.ir.index_map import IndexMap
from layoutproof.lowering.illegal import refusing
from layoutproof.lowering.layout import ROOT
from layoutproof.lowering.loops.block_layout import TransformBlockLayout, block_map_text
from layoutproof.lowering.loops.decompose_reduction import DecomposeReduction
from layoutproof.lowering.loops.extents import ReduceLoopExtents
from layoutproof.lowering.loops.fuse import Fuse
from layoutproof.lowering.loops.kinds import Parallel, Vectorize
from layoutproof.lowering.loops.merge import MergeAdjacentLoops
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute, candidates
from layoutproof.lowering.loops.partition import Partition
from layoutproof.lowering.loops.reorder import Reorder
from layoutproof.lowering.loops.sequential import SequentialBufferAccess
from layoutproof.lowering.loops.split import Split
from layoutproof.lowering.loops.stream import Stream
from layoutproof.lowering.loops.unroll import Unroll
from layoutproof.lowering.methods import Methods
from layoutproof.lowering.step import Step


class LoopMethods(Methods):
    """Loops made several, put into another order, and rid of branches."""

    def split(self, block: str, loop: str | int, factors: Sequence[int | None]) -> Step:
        """Make one loop several, with these extents; one factor may be None, and is as large as it takes.

        The loop is named by its variable, or by its position among the loops around the block. The new ones are `i_0`, `i_1`, ...
        """
        return self.apply(self.made(Split, block=block, loop=loop, factors=factors))

    def reorder(self, block: str, loops: Sequence[str | int]) -> Step:
        """Put loops that stand directly in one another into this order, outermost first; others keep their places."""
        return self.apply(self.made(Reorder, block=block, loops=loops))

    def fuse(self, block: str, loops: Sequence[str | int]) -> Step:
        """Make loops that stand directly in one another, named outermost first, one loop: `i_j_fused` of `i` and `j`."""
        return self.apply(self.made(Fuse, block=block, loops=loops))

    def parallel(self, block: str, loop: str | int) -> Step:
        """Run the iterations of a loop at the same time. A refusal names two iterations that touch one cell, one writing."""
        return self.apply(self.made(Parallel, block=block, loop=loop))

    def vectorize(self, block: str, loop: str | int) -> Step:
        """Run the iterations of a loop of constant extent as lanes of one vector, refused where two lanes touch one cell."""
        return self.apply(self.made(Vectorize, block=block, loop=loop))

    def unroll(self, block: str, loop: str | int, expand: bool = False) -> Step:
        """Mark a loop as one that the compiler writes out; with `expand`, write it out here."""
        return self.apply(self.made(Unroll, block=block, loop=loop, expand=expand))

    def stream(self, block: str, loop: str | int) -> Step:
        """Mark a loop and those in it as one tile, which a target that can writes past the cache."""
        return self.apply(self.made(Stream, block=block, loop=loop))

    def partition(self, block: str, loop: str | int, at: int) -> Step:
        """Cut a loop in two, the iterations before number `at` and the rest; blocks in the second are called `<block>_rest`."""
        return self.apply(self.made(Partition, block=block, loop=loop, at=at))

    def merge_adjacent_loops(self, block: str, loop: str | int) -> Step:
        """Merge a loop with the one that stands right behind it and runs as often.

        Refused where an access would come before another one of the same cell that it comes after now, and that makes a difference; the
        help names the two.
        """
        return self.apply(self.made(MergeAdjacentLoops, block=block, loop=loop))

    def decompose_reduction(self, block: str, loop: str | int) -> Step:
        """Give a block's init a block of its own, `<block>_init`, in loops before `loop`; what remains of the block is its updates."""
        return self.apply(self.made(DecomposeReduction, block=block, loop=loop))

    def reduce_loop_extents(self, block: str = ROOT) -> Step:
        """Shrink the loops around a block, or all of them, to the iterations that the guard in them lets through."""
        return self.apply(self.made(ReduceLoopExtents, block=block))

    def transform_block_layout(self, block: str, index_map: IndexMap | Callable[..., Any] | str) -> Step:
        """Run a block over the iteration space that an index map of its variables makes: an `IndexMap`, a function of them, or text."""
        with refusing():
            text = block_map_text(self.func, block, index_map)
        return self.apply(self.made(TransformBlockLayout, block=block, index_map=text))

    def sequential_buffer_access(self, block: str, buffer: str) -> Step:
        """Make the loops of a block visit a buffer in the row-major order of its physical layout; other loops go inside.

        Where the dataflow forbids that order, the refusal's help names two accesses that would change places.
        """
        return self.apply(self.made(SequentialBufferAccess, block=block, buffer=buffer))

    def remove_branching_through_overcompute(self, block: str, guards: Sequence[int] | None = None, wrap: bool = False) -> Step:
        """Drop guards of a block whose missing iterations are invisible; the step's text and the trace say which.

        Guards are numbered from the outside to the inside, `-1 - k` keeps the alternative of guard `k`. None tries all of them, then
        fewer, and keeps the largest set that is proved. With `wrap` accesses that would leave their buffer take their index modulo its
        extent; a refusal says so where that would be proved.
        """
        given = self.made(RemoveBranchingThroughOvercompute, block=block, guards=guards, wrap=wrap)
        if guards is not None:
            return self.apply(given)
        with refusing():
            tries = candidates(self.func, block, wrap)
        return self.first_of(tries)
