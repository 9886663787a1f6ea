"""The methods of a schedule, one for each primitive, by the folder of the primitive's pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.caching.cache_read_write import CacheRead, CacheWrite, Reindex
from layoutproof.lowering.caching.decompose_padding import DecomposePadding
from layoutproof.lowering.caching.pad_einsum import PadEinsum
from layoutproof.lowering.caching.temporaries import CompactBuffer, InjectDoubleBuffer, SinkAllocation
from layoutproof.lowering.cleanup.hoist_expression import ALL_BUT_THREADS, HoistExpression
from layoutproof.lowering.cleanup.remove_no_op import RemoveNoOp
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.loops.block_layout import TransformBlockLayout, block_map_text
from layoutproof.lowering.loops.decompose_reduction import DecomposeReduction
from layoutproof.lowering.loops.loop_kinds import Parallel, Stream, Unroll, Vectorize
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute, candidates
from layoutproof.lowering.loops.partition_and_merge import MergeAdjacentLoops, Partition
from layoutproof.lowering.loops.reduce_extents import ReduceLoopExtents
from layoutproof.lowering.loops.sequential_access import SequentialBufferAccess
from layoutproof.lowering.loops.tiling import Fuse, Reorder, Split
from layoutproof.lowering.padding.branching import RemoveOvercomputeThroughBranching
from layoutproof.lowering.padding.branching import candidates as padding_candidates
from layoutproof.lowering.padding.value_search import PadValueReport, search_pad_values
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.illegal import IllegalTransform, refusing
from layoutproof.lowering.passes.steps import Step
from layoutproof.lowering.vectors.ramps import RewriteRampAsPointerCast
from layoutproof.lowering.vectors.type_rewrite import VectorTypeRewrite
from layoutproof.lowering.vectors.vectorize import VectorizeLoop

P = TypeVar("P", bound=Pass)


class Methods(ABC):
    """A program under transformation, as methods that apply one pass see it."""

    @property
    @abstractmethod
    def func(self) -> PrimFunc:
        """The program as it is now."""

    @abstractmethod
    def apply(self, transform: Pass) -> Step:
        """Apply a pass: propose, check, keep. Raises IllegalTransform, leaving the schedule as it was."""

    def first_of(self, tries: Sequence[Pass]) -> Step:
        """Apply the first transform that is accepted; where none is, the refusal of the first is raised."""
        for each in tries:
            try:
                return self.attempt(each)
            except IllegalTransform:
                continue
        # Only the last refusal needs a counterexample.
        return self.apply(tries[0])

    @abstractmethod
    def attempt(self, transform: Pass) -> Step:
        """`apply` without a search for counterexamples: for one of several passes that are tried."""

    def made(self, kind: type[P], **arguments: Any) -> P:
        """The pass with these options. Raises IllegalTransform that names the option that is wrong."""
        with refusing():
            return kind.from_arguments(arguments)


class LoopMethods(Methods):
    """Loops made several, put into another order, and rid of branches."""

    def split(self, block: str, loop: str | int, factors: Sequence[int | None]) -> Step:
        """Make one loop several, with these extents; one factor may be None and is then computed.

        The loop is named by its variable, or by its position among the loops around the block. The new ones are `i_0`,
        `i_1`, ...
        """
        return self.apply(self.made(Split, block=block, loop=loop, factors=factors))

    def reorder(self, block: str, loops: Sequence[str | int]) -> Step:
        """Put perfectly nested loops into this order, outermost first; others keep their places."""
        return self.apply(self.made(Reorder, block=block, loops=loops))

    def fuse(self, block: str, loops: Sequence[str | int]) -> Step:
        """Fuse perfectly nested loops, named outermost first, into one: `i_j_fused` of `i` and `j`."""
        return self.apply(self.made(Fuse, block=block, loops=loops))

    def parallel(self, block: str, loop: str | int) -> Step:
        """Run the iterations of a loop in parallel. A refusal names two iterations that race on one cell."""
        return self.apply(self.made(Parallel, block=block, loop=loop))

    def vectorize(self, block: str, loop: str | int) -> Step:
        """Run the iterations of a loop of constant extent as lanes of one vector, refused if two lanes touch
        one cell.
        """
        return self.apply(self.made(Vectorize, block=block, loop=loop))

    def unroll(self, block: str, loop: str | int, expand: bool = False) -> Step:
        """Mark a loop as one that the compiler writes out; with `expand`, write it out here."""
        return self.apply(self.made(Unroll, block=block, loop=loop, expand=expand))

    def stream(self, block: str, loop: str | int) -> Step:
        """Mark a loop and those in it as one tile, which a target that can writes past the cache."""
        return self.apply(self.made(Stream, block=block, loop=loop))

    def partition(self, block: str, loop: str | int, at: int) -> Step:
        """Cut a loop in two, before iteration number `at`; blocks in the second part are called `<block>_rest`."""
        return self.apply(self.made(Partition, block=block, loop=loop, at=at))

    def merge_adjacent_loops(self, block: str, loop: str | int) -> Step:
        """Merge a loop with the next one, which runs equally often.

        Refused if that reverses a dependence; the help names its two accesses.
        """
        return self.apply(self.made(MergeAdjacentLoops, block=block, loop=loop))

    def decompose_reduction(self, block: str, loop: str | int) -> Step:
        """Give a block's init a block of its own, `<block>_init`, in loops before `loop`."""
        return self.apply(self.made(DecomposeReduction, block=block, loop=loop))

    def reduce_loop_extents(self, block: str = ROOT) -> Step:
        """Shrink the loops around a block, or all of them, to the iterations that the guard in them lets through."""
        return self.apply(self.made(ReduceLoopExtents, block=block))

    def transform_block_layout(self, block: str, index_map: IndexMap | Callable[..., Any] | str) -> Step:
        """Run a block over the image of an index map of its variables: an `IndexMap`, a function, or text."""
        with refusing():
            text = block_map_text(self.func, block, index_map)
        return self.apply(self.made(TransformBlockLayout, block=block, index_map=text))

    def sequential_buffer_access(self, block: str, buffer: str) -> Step:
        """Make the loops of a block visit a buffer in the row-major order of its physical layout.

        Other loops go inside. If the dataflow forbids that order, the refusal's help names two accesses whose order
        changes.
        """
        return self.apply(self.made(SequentialBufferAccess, block=block, buffer=buffer))

    def remove_branching_through_overcompute(
        self, block: str, guards: Sequence[int] | None = None, wrap: bool = False
    ) -> Step:
        """Drop guards of a block whose additional iterations are invisible; the step's text and the trace say which.

        Guards are numbered from the outside to the inside, `-1 - k` keeps the alternative of guard `k`. None tries all
        of them, then fewer, and keeps the largest set that is proved. With `wrap` accesses that would leave their
        buffer take their index modulo its extent; a refusal says so if that would be proved.
        """
        given = self.made(RemoveBranchingThroughOvercompute, block=block, guards=guards, wrap=wrap)
        if guards is not None:
            return self.apply(given)
        with refusing():
            tries = candidates(self.func, block, wrap)
        return self.first_of(tries)


class PaddingMethods(Methods):
    """Guards around padding, and values for it."""

    @property
    @abstractmethod
    def steps(self) -> tuple[Step, ...]:
        """What was applied, in order, with its verdicts."""

    def remove_overcompute_through_branching(self, block: str, places: Sequence[int] | None = None) -> Step:
        """Guard what a block does with padding only; the step's text and the trace say which places.

        Places are stores with a buffer whose padding they may touch, in textual order. None tries all of them, then
        fewer, and keeps the largest set that is proved.
        """
        given = self.made(RemoveOvercomputeThroughBranching, block=block, places=places)
        if places is not None:
            return self.apply(given)
        with refusing():
            tries = padding_candidates(self.func, block)
        return self.first_of(tries)

    def pad_value_search(self, block: str, buffer: str) -> PadValueReport:
        """Which pad values of a transformed buffer would make guards of a block unnecessary, each answer proved.

        Candidates are the identities of the block's reductions, zero, one, the limits of the type, `undef` and no
        contract, in the last transform of the buffer; later steps are repeated. The schedule does not change. Raises
        IllegalTransform if no step transformed the buffer, and for unknown names.
        """
        with refusing():
            return search_pad_values(self.steps, block, buffer)


class CachingMethods(Methods):
    """Caches, and transforms of temporaries."""

    def cache_read(self, block: str, buffer: str, scope: str = "global") -> Step:
        """Copy what a block reads of a buffer before its nest, into `<buffer>_<scope>`, which the block then reads."""
        return self.apply(self.made(CacheRead, block=block, buffer=buffer, scope=scope))

    def cache_write(self, block: str, buffer: str, scope: str = "global") -> Step:
        """Let a block write to `<buffer>_<scope>`, which is copied to the buffer after its nest."""
        return self.apply(self.made(CacheWrite, block=block, buffer=buffer, scope=scope))

    def reindex(self, block: str, buffer: str) -> Step:
        """Let a block access a buffer at its own iterators, through the copy `<buffer>_reindex` before or after its
        nest.
        """
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
        """Pad every iterator of a block to a multiple of its factor, in copies of the buffers called `<buffer>_pad`."""
        return self.apply(self.made(PadEinsum, block=block, padding=padding))


class CleanupMethods(Methods):
    """Removal of statements without effect, and hoisting of conditions."""

    def remove_no_op(self) -> Step:
        """Remove stores that are overwritten unread or store what is there, and then empty loops and branches."""
        return self.apply(self.made(RemoveNoOp))

    def hoist_expression(self, block: str = ROOT, flags: Sequence[str] = ALL_BUT_THREADS) -> Step:
        """Move conditions and lets out of the loops that do not change them, in one block or everywhere.

        The flags are `if_else_stmt`, `if_else_expr`, `boolean_expression`, `using_block_var`, `required_by_conditional`
        and `let_stmt`.
        """
        return self.apply(self.made(HoistExpression, block=block, flags=tuple(flags)))


class VectorMethods(Methods):
    """Lanes for vectorized loops, and vectors in memory."""

    def vectorize_loop(self, scalarize: bool = False) -> Step:
        """Make lanes of all vectorized loops; with `scalarize` statements without a form for all lanes run lane by
        lane.
        """
        return self.apply(self.made(VectorizeLoop, scalarize=scalarize))

    def rewrite_ramp_as_pointer_cast(self, target: str = "c") -> Step:
        """Access whole vectors through views with vector elements, if memory is aligned and the target casts
        pointers.
        """
        return self.apply(self.made(RewriteRampAsPointerCast, target=target))

    def vector_type_rewrite(self, target: str = "vulkan", scalarize: bool = False) -> Step:
        """Give buffers of which only whole vectors are accessed vectors as elements; with `scalarize` other vector
        accesses become loops over lanes.
        """
        return self.apply(self.made(VectorTypeRewrite, target=target, scalarize=scalarize))
