"""All primitives by name, and as methods of a schedule. `python -m docs.generate` writes this file from the passes and
the order of `docs/reference/primitives.md`; it is not edited.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from layoutproof.lowering.caching.cache_read_write import CacheRead, CacheWrite, Reindex
from layoutproof.lowering.caching.compute_at import ComputeAt, ReverseComputeAt
from layoutproof.lowering.caching.decompose_padding import DecomposePadding
from layoutproof.lowering.caching.inline import ComputeInline, ReverseComputeInline
from layoutproof.lowering.caching.pad_einsum import PadEinsum
from layoutproof.lowering.caching.rfactor import Rfactor
from layoutproof.lowering.caching.temporaries import (
    CompactBuffer,
    InjectDoubleBuffer,
    SetScope,
    SinkAllocation,
    StorageAlign,
)
from layoutproof.lowering.cleanup.hoist_expression import HoistExpression
from layoutproof.lowering.cleanup.remove_no_op import RemoveNoOp
from layoutproof.lowering.layout.block_layouts import TransformLayouts
from layoutproof.lowering.layout.separators import SetAxisSeparators
from layoutproof.lowering.layout.transform_layout import ApplyBufferTransforms, TransformLayout
from layoutproof.lowering.loops.block_layout import TransformBlockLayout
from layoutproof.lowering.loops.decompose_reduction import DecomposeReduction
from layoutproof.lowering.loops.loop_kinds import Bind, Parallel, Stream, Unroll, Vectorize
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute
from layoutproof.lowering.loops.partition_and_merge import MergeAdjacentLoops, Partition
from layoutproof.lowering.loops.reduce_extents import ReduceLoopExtents
from layoutproof.lowering.loops.sequential_access import SequentialBufferAccess
from layoutproof.lowering.loops.tiling import Fuse, Reorder, Split
from layoutproof.lowering.lower.barriers import ThreadSync
from layoutproof.lowering.lower.flatten import FlattenBuffer, LowerBlocks
from layoutproof.lowering.lower.simplify import Simplify
from layoutproof.lowering.lower.undef import RemoveAssume, RemoveStoreUndef
from layoutproof.lowering.padding.branching import RemoveOvercomputeThroughBranching
from layoutproof.lowering.passes.base import MapLike, Pass
from layoutproof.lowering.passes.steps import Step
from layoutproof.lowering.vectors.ramps import RewriteRampAsPointerCast
from layoutproof.lowering.vectors.type_rewrite import VectorTypeRewrite
from layoutproof.lowering.vectors.vectorize import VectorizeLoop

PASSES: Mapping[str, type[Pass]] = {
    each.primitive: each
    for each in (
        TransformLayout,
        TransformLayouts,
        SetAxisSeparators,
        ApplyBufferTransforms,
        Split,
        Reorder,
        Fuse,
        Parallel,
        Bind,
        Vectorize,
        Unroll,
        Stream,
        Partition,
        DecomposeReduction,
        Rfactor,
        MergeAdjacentLoops,
        ReduceLoopExtents,
        TransformBlockLayout,
        SequentialBufferAccess,
        RemoveBranchingThroughOvercompute,
        RemoveOvercomputeThroughBranching,
        CacheRead,
        CacheWrite,
        ComputeAt,
        ReverseComputeAt,
        ComputeInline,
        ReverseComputeInline,
        Reindex,
        CompactBuffer,
        SinkAllocation,
        SetScope,
        StorageAlign,
        InjectDoubleBuffer,
        DecomposePadding,
        PadEinsum,
        LowerBlocks,
        ThreadSync,
        FlattenBuffer,
        Simplify,
        RemoveNoOp,
        HoistExpression,
        RemoveAssume,
        RemoveStoreUndef,
        VectorizeLoop,
        RewriteRampAsPointerCast,
        VectorTypeRewrite,
    )
}


class Primitives(ABC):
    """A program under transformation, with a method for each primitive."""

    @abstractmethod
    def _take(self, kind: type[Pass], /, **arguments: Any) -> Step:
        """Apply the pass with these arguments. Raises IllegalTransform, leaving the program as it was."""

    def transform_layout(self, block: str, buffer: str, index_map: MapLike, pad_value: Any = None) -> Step:
        """Store a buffer by an index map: an `IndexMap`, a function of its indices, or text in any notation of layouts.

        `block` is one that reads or writes the buffer, or `root`; the layout changes everywhere. `pad_value` is None
        (padding must not be touched), `undef`, a number, an expression, text in the script syntax, or a function of the
        physical indices that returns one of these. Any but None is a contract: a producer writes it after its last
        write, a consumer assumes it at its start.
        """
        return self._take(TransformLayout, block=block, buffer=buffer, index_map=index_map, pad_value=pad_value)

    def transform_layouts(self, block: str, layout: str, pad_values: Mapping[str, Any] | None = None) -> Step:
        """Store all buffers that a block touches in one layout: `NHWC8c`, `NHWC->NCHW8c`, or the text of an index map.

        The layout is for what the block writes, and for the operand that is indexed most like it. In other buffers an
        axis is taken apart as the variable is that indexes it, with the finer parts last: of a convolution's weights
        both channels. `pad_values` has what padding holds by name of buffer, as `transform_layout` takes it; the
        padding of others must not be touched. `layoutproof suggest` finds values, loops to match, and the branches that
        go.
        """
        return self._take(TransformLayouts, block=block, layout=layout, pad_values=pad_values)

    def set_axis_separators(self, buffer: str, separators: Sequence[int]) -> Step:
        """State the axis groups of a buffer: the index of the last axis of each group but the last."""
        return self._take(SetAxisSeparators, buffer=buffer, separators=separators)

    def apply_buffer_transforms(self) -> Step:
        """Apply the attribute `buffer_layout_transformations` (data variable to index maps, in order), and remove
        it.
        """
        return self._take(ApplyBufferTransforms)

    def split(self, block: str, loop: str | int, factors: Sequence[int | None]) -> Step:
        """Make one loop several, with these extents; one factor may be None and is then computed.

        The loop is named by its variable, or by its position among the loops around the block. The new ones are `i_0`,
        `i_1`, ..., outermost first, and of the old one's kind; of a vectorized loop only the innermost is. If the
        factors do not divide the extent, additional iterations are guarded off, in the blocks below or by a branch.
        """
        return self._take(Split, block=block, loop=loop, factors=factors)

    def reorder(self, block: str, loops: Sequence[str | int]) -> Step:
        """Put perfectly nested loops into this order, outermost first; others keep their places.

        Between the outermost and the innermost of the named loops only loops and branches may be; the branches go
        inside. A block's init goes with the instance at the start of its reduction.
        """
        return self._take(Reorder, block=block, loops=loops)

    def fuse(self, block: str, loops: Sequence[str | int]) -> Step:
        """Fuse perfectly nested loops, named outermost first, into one: `i_j_fused` of `i` and `j`.

        All loops between the first and the last must be named. Branches between them go inside. The new loop counts
        from 0 and is of the old ones' kind, serial if they differ; the old loops become its digits.
        """
        return self._take(Fuse, block=block, loops=loops)

    def parallel(self, block: str, loop: str | int) -> Step:
        """Run the iterations of a loop in parallel. A refusal names two iterations that race on one cell."""
        return self._take(Parallel, block=block, loop=loop)

    def bind(self, block: str, loop: str | int, thread: str, also: Sequence[str] = ()) -> Step:
        """Bind a loop to a thread axis: `blockIdx.x`, `threadIdx.x` (`y`, `z`), `vthread`. Its iterations run as
        threads.

        Loops of one kernel that are bound to one axis have one index and one number of iterations. A refusal names two
        threads that race on one cell. A loop over a reduction joins what threads computed, in any order; floats need
        `reassoc` for that. `also` are loops anywhere in the function that are bound in the same step: a block of a
        kernel that is not bound is run by every thread, and if it is a reduction, they race.
        """
        return self._take(Bind, block=block, loop=loop, thread=thread, also=also)

    def vectorize(self, block: str, loop: str | int) -> Step:
        """Run the iterations of a loop of constant extent as lanes of one vector, refused if two lanes touch one cell.

        There is no vectorized loop around the loop or inside it.
        """
        return self._take(Vectorize, block=block, loop=loop)

    def unroll(self, block: str, loop: str | int, expand: bool = False) -> Step:
        """Mark a loop as one that the compiler writes out; with `expand`, write it out here.

        Memory that the body allocates is a different one in each copy, and blocks in it are named by the iteration:
        `sum_0`, `sum_1`. A block's init stays in the copies in which the reduction may be at its start.
        """
        return self._take(Unroll, block=block, loop=loop, expand=expand)

    def stream(self, block: str, loop: str | int) -> Step:
        """Mark a loop and those in it as one tile, which a target that can writes past the cache.

        A tile is best some kilobytes large, and made of runs that are contiguous in the buffer that is written.
        """
        return self._take(Stream, block=block, loop=loop)

    def partition(self, block: str, loop: str | int, at: int) -> Step:
        """Cut a loop in two, before iteration number `at`; blocks in the second part are called `<block>_rest`.

        33 iterations cut at 32 are 32 and then one. The second part counts from 0 again.
        """
        return self._take(Partition, block=block, loop=loop, at=at)

    def decompose_reduction(self, block: str, loop: str | int) -> Step:
        """Give a block's init a block of its own, `<block>_init`, in loops before `loop`.

        The new loops are those from `loop` inwards that determine the result. The rest of the block is its updates. If
        the reduction may be empty, or its first instance guarded off, the new block has that as its guard.
        """
        return self._take(DecomposeReduction, block=block, loop=loop)

    def rfactor(self, block: str, loop: str | int, factor_axis: int = 0) -> Step:
        """Reduce along all loops but one into a buffer with an axis for that loop, `<buffer>_rf`, and join its cells
        after.

        The block that makes the partial results is `<block>_rf`; the loop is one of its spatial ones, which may run in
        parallel or over threads. `factor_axis` is the place of the new axis. Sums of floats need `reassoc`, and `nsz`
        if they do not begin with 0.0; minima and maxima need `nnan` and `nsz`.
        """
        return self._take(Rfactor, block=block, loop=loop, factor_axis=factor_axis)

    def merge_adjacent_loops(self, block: str, loop: str | int) -> Step:
        """Merge a loop with the next one, which runs equally often.

        Refused if that reverses a dependence; the help names its two accesses. The new loop has the first one's
        variable and range, and its kind if both have the same; else it is serial.
        """
        return self._take(MergeAdjacentLoops, block=block, loop=loop)

    def reduce_loop_extents(self, block: str = "root") -> Step:
        """Shrink the loops around a block, or all of them, to the iterations that the guard in them lets through.

        A serial or parallel loop shrinks if its body is one guard without `else`, or loops over such a guard; a block's
        own guard is one if it has no init. The new range is from the least to the largest iteration that may pass, over
        all inner loops; for a union it is its hull. Conjuncts that the new range implies go. `block` names the loops
        around one block, `root` all loops of the function.
        """
        return self._take(ReduceLoopExtents, block=block)

    def transform_block_layout(self, block: str, index_map: MapLike) -> Step:
        """Run a block over the image of an index map of its variables: an `IndexMap`, a function, or text.

        Each output of the map becomes a loop `ax0`, `ax1`, ... with a variable `v0`, `v1`, ... bound to it. The old
        variables become functions of the new ones. If the map is not surjective, a guard excludes the additional
        iterations. The block's variables must be bound to its loops, one each, over their whole domains.
        """
        return self._take(TransformBlockLayout, block=block, index_map=index_map)

    def sequential_buffer_access(self, block: str, buffer: str) -> Step:
        """Make the loops of a block visit a buffer in the row-major order of its physical layout.

        The loops that determine the cell of the buffer become loops over its physical axes; the others (reductions,
        broadcast axes, and those of sliding windows) go inside, in their order. If an axis has cells that no iteration
        visits, a guard excludes them. A block whose init would no longer run once for each result has it split off,
        into a block of its own before it. If the dataflow forbids that order, the refusal's help names two accesses
        whose order changes.
        """
        return self._take(SequentialBufferAccess, block=block, buffer=buffer)

    def remove_branching_through_overcompute(
        self, block: str, guards: Sequence[int] | None = None, wrap: bool = False
    ) -> Step:
        """Drop guards of a block whose additional iterations are invisible; the step's text and the trace say which.

        Guards are numbered from the outside to the inside: conjuncts of enclosing branches, of the block's own guard,
        of branches inside it, and choices in values. `k` keeps what guard `k` guards, `-1 - k` the alternative of a
        branch or a choice. None tries all of them, then fewer, and keeps the largest set that is proved; in a trace,
        null is all those around the block and its own, or if there are none, all. Domains of block variables grow with
        the additional iterations. With `wrap` accesses that would leave their buffer take their index modulo its
        extent; a refusal says so if that would be proved.
        """
        return self._take(RemoveBranchingThroughOvercompute, block=block, guards=guards, wrap=wrap)

    def remove_overcompute_through_branching(self, block: str, places: Sequence[int] | None = None) -> Step:
        """Guard what a block does with padding only; the step's text and the trace say which places.

        Places are stores with a buffer whose padding they may touch, in textual order. None tries all of them, then
        fewer, and keeps the largest set that is proved; in a trace, null is all. Blocks take a guard into their own;
        among plain loops it is as far out as it holds for everything below.
        """
        return self._take(RemoveOvercomputeThroughBranching, block=block, places=places)

    def cache_read(self, block: str, buffer: str, scope: str = "global") -> Step:
        """Copy what a block reads of a buffer before its nest, into `<buffer>_<scope>`, which the block then reads.

        The cache has the buffer's shape; the box that the block reads is copied. With the block `root` the copy is at
        the start of the function, for all reads in it.
        """
        return self._take(CacheRead, block=block, buffer=buffer, scope=scope)

    def cache_write(self, block: str, buffer: str, scope: str = "global") -> Step:
        """Let a block write to `<buffer>_<scope>`, which is copied to the buffer after its nest.

        The cache has the buffer's shape; the box that the block writes is copied. With the block `root` the copy is at
        the end of the function.
        """
        return self._take(CacheWrite, block=block, buffer=buffer, scope=scope)

    def compute_at(self, block: str, reader: str, loop: str | int) -> Step:
        """Move a block into a loop of one that reads what it writes, before the reads: it computes what an iteration
        needs.

        In loops over threads it computes what they need together, if they share the buffer (`shared` in a block of
        threads, `global` in the grid), and what one of them needs if it is `local`. The new loops are `ax0`, `ax1`, ...
        . Refused if something outside of the loop needs what the block writes.
        """
        return self._take(ComputeAt, block=block, reader=reader, loop=loop)

    def reverse_compute_at(self, block: str, writer: str, loop: str | int) -> Step:
        """Move a block into a loop of one that writes what it reads, after the writes: it uses what an iteration
        leaves.

        In loops over threads it uses what they leave together, if they share the buffer, as for `compute_at`. The new
        loops are `ax0`, `ax1`, ... .
        """
        return self._take(ReverseComputeAt, block=block, writer=writer, loop=loop)

    def compute_inline(self, block: str) -> Step:
        """Compute what a block stores wherever it is loaded, and drop the block and its buffer.

        The block stores one value, at its iterators.
        """
        return self._take(ComputeInline, block=block)

    def reverse_compute_inline(self, block: str) -> Step:
        """Do what a block does with the one buffer that it reads where that is stored, and drop the block and that
        buffer.

        The block stores one value, and loads the buffer at its iterators; one other block stores to the buffer, once.
        """
        return self._take(ReverseComputeInline, block=block)

    def reindex(self, block: str, buffer: str) -> Step:
        """Let a block access a buffer at its own iterators, through the copy `<buffer>_reindex` before or after its
        nest.

        `A[2*i + r, k]` becomes `A_reindex[i, r, k]`. The copy follows the nest if the block writes the buffer, else it
        precedes it. The new buffer has an axis for each iterator that the access uses, in the block's order, as long as
        the iterator's domain.
        """
        return self._take(Reindex, block=block, buffer=buffer)

    def compact_buffer(self, buffer: str) -> Step:
        """Shrink a temporary to the box of it that is touched.

        The box follows from loops, domains of iterators and branches inside the statement that allocates the buffer:
        memory allocated for each tile is as large as a tile. An axis without known bounds stays whole.
        """
        return self._take(CompactBuffer, buffer=buffer)

    def sink_allocation(self, buffer: str, block: str, loop: str | int) -> Step:
        """Allocate a temporary anew in each iteration of a loop around all of its uses.

        Refused if an iteration reads what another one left there. Threads of a parallel loop then have memory of their
        own, and `compact_buffer` can shrink it to the footprint of one iteration: of `shared` memory that stands in the
        loops over blocks to that of one block, of `local` memory in the loops over threads to that of one thread.
        """
        return self._take(SinkAllocation, buffer=buffer, block=block, loop=loop)

    def set_scope(self, buffer: str, scope: str) -> Step:
        """Put a temporary into memory of another scope: `global`, `shared` (one a block of threads) or `local` (one a
        thread).

        Refused if a thread then reads what another one left in memory that is its own.
        """
        return self._take(SetScope, buffer=buffer, scope=scope)

    def storage_align(self, buffer: str, axis: int, factor: int, offset: int = 0) -> Step:
        """Lengthen a temporary so that steps along one axis are `factor * n + offset` elements apart.

        Rows of 32 floats in shared memory, all of which start in one bank, are 33 apart with `axis=0, factor=32,
        offset=1`.
        """
        return self._take(StorageAlign, buffer=buffer, axis=axis, factor=factor, offset=offset)

    def inject_double_buffer(self, block: str, buffer: str, loop: str | int) -> Step:
        """Give a temporary a first axis of 2, which iterations of a loop around the block take in turns.

        The values of one iteration stay while the next one writes. Blocks in the loop get an iterator for it if they
        have none. A buffer is doubled before it is flattened: the new axis is in the first axis group.
        """
        return self._take(InjectDoubleBuffer, block=block, buffer=buffer, loop=loop)

    def decompose_padding(self, block: str, loop: str | int) -> Step:
        """Make of a block that pads a fill with the constant before a loop around it, and a copy of what is inside.

        The block is `y[v] = if_then_else(inside, x[...], constant)`, the fill is called `<block>_pad_const`. Loops that
        are an iterator by themselves run over its inside part, from 0; conditions on other loops become the guard of
        the block.
        """
        return self._take(DecomposePadding, block=block, loop=loop)

    def pad_einsum(self, block: str, padding: Sequence[int]) -> Step:
        """Pad every iterator of a block to a multiple of its factor, in copies of the buffers called `<buffer>_pad`.

        `padding` has a factor for each iterator. Copies are filled with the neutral value of the block's reduction (0
        in a sum, 1 in a product, the end of the range in a minimum or maximum). The result is copied back after the
        block.
        """
        return self._take(PadEinsum, block=block, padding=padding)

    def lower_blocks(self) -> Step:
        """Replace blocks by guards, allocations and inits among the loops.

        A reduction over threads stays a block: that its threads join their values together is said by nothing else.
        Generated code has a loop of one thread in its place.
        """
        return self._take(LowerBlocks)

    def thread_sync(self) -> Step:
        """Put barriers (`T.tvm_storage_sync("shared")`) where the threads of a block meet in shared memory.

        Kernels that have barriers stay as they are. While a kernel has blocks and no barrier, it is taken to have
        these; without blocks it has those of its text, so that this comes before `lower_blocks`.
        """
        return self._take(ThreadSync)

    def flatten_buffer(self) -> Step:
        """Give every buffer as many axes as it has axis groups."""
        return self._take(FlattenBuffer)

    def simplify(self) -> Step:
        """Rewrite expressions by proved rules.

        Branches that are decided go. Consecutive branches become one if their conditions are equal or contrary at every
        instance; conditions that read what the first body writes stay. A value from an assumption or a store replaces a
        load until something may have written the cell, in another iteration too.
        """
        return self._take(Simplify)

    def remove_no_op(self) -> Step:
        """Remove stores that are overwritten unread or store what is there, and then empty loops and branches.

        A store also goes if it writes a temporary that is never read. A cell holds a value already if it was just read
        there, stored there, or is assumed to be there. Calls in a removed store's value stay, and so do assumptions.
        """
        return self._take(RemoveNoOp)

    def hoist_expression(
        self,
        block: str = "root",
        flags: Sequence[str] = (
            "if_else_stmt",
            "if_else_expr",
            "boolean_expression",
            "required_by_conditional",
            "let_stmt",
        ),
    ) -> Step:
        """Move conditions and lets out of the loops that do not change them, in one block or everywhere.

        Of the flags, `if_else_stmt` moves conditions of branches and guards of blocks, `if_else_expr` those of lazy
        choices, `boolean_expression` any boolean part, `required_by_conditional` lets that such a condition needs,
        `let_stmt` all lets; with `using_block_var` also conditions on thread axes. Arithmetic that may trap, and loads,
        stay. The loop of a condition with two arms is written twice, the second time with new block names. `block`
        names the block whose conditions move; `root` is all of the function.
        """
        return self._take(HoistExpression, block=block, flags=flags)

    def remove_assume(self) -> Step:
        """Take out assumptions, which are compile-time statements, and loops, branches and blocks that only held
        one.
        """
        return self._take(RemoveAssume)

    def remove_store_undef(self) -> Step:
        """Take out stores of undefined values."""
        return self._take(RemoveStoreUndef)

    def vectorize_loop(self, scalarize: bool = False) -> Step:
        """Make lanes of all vectorized loops; with `scalarize` statements without a form for all lanes run lane by
        lane.
        """
        return self._take(VectorizeLoop, scalarize=scalarize)

    def rewrite_ramp_as_pointer_cast(self, target: str = "c") -> Step:
        """Access whole vectors through views with vector elements, if memory is aligned and the target casts
        pointers.
        """
        return self._take(RewriteRampAsPointerCast, target=target)

    def vector_type_rewrite(self, target: str = "vulkan", scalarize: bool = False) -> Step:
        """Give buffers of which only whole vectors are accessed vectors as elements; with `scalarize` other vector
        accesses become loops over lanes.

        With `scalarize` no index with lanes is left, except in a let.
        """
        return self._take(VectorTypeRewrite, target=target, scalarize=scalarize)
