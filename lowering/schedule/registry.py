"""All passes by name: what a trace, the command line and the schedule's methods can call."""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.lowering.caching.cache_read_write import CacheRead, CacheWrite, Reindex
from layoutproof.lowering.caching.decompose_padding import DecomposePadding
from layoutproof.lowering.caching.pad_einsum import PadEinsum
from layoutproof.lowering.caching.temporaries import CompactBuffer, InjectDoubleBuffer, SinkAllocation
from layoutproof.lowering.cleanup.hoist_expression import HoistExpression
from layoutproof.lowering.cleanup.remove_no_op import RemoveNoOp
from layoutproof.lowering.layout.separators import SetAxisSeparators
from layoutproof.lowering.layout.transform_layout import ApplyBufferTransforms, TransformLayout
from layoutproof.lowering.loops.block_layout import TransformBlockLayout
from layoutproof.lowering.loops.decompose_reduction import DecomposeReduction
from layoutproof.lowering.loops.loop_kinds import Parallel, Stream, Unroll, Vectorize
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute
from layoutproof.lowering.loops.partition_and_merge import MergeAdjacentLoops, Partition
from layoutproof.lowering.loops.reduce_extents import ReduceLoopExtents
from layoutproof.lowering.loops.sequential_access import SequentialBufferAccess
from layoutproof.lowering.loops.tiling import Fuse, Reorder, Split
from layoutproof.lowering.lower.flatten import FlattenBuffer
from layoutproof.lowering.lower.lower_blocks import LowerBlocks
from layoutproof.lowering.lower.simplify import Simplify
from layoutproof.lowering.lower.undef import RemoveAssume, RemoveStoreUndef
from layoutproof.lowering.padding.branching import RemoveOvercomputeThroughBranching
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.vectors.ramps import RewriteRampAsPointerCast
from layoutproof.lowering.vectors.type_rewrite import VectorTypeRewrite
from layoutproof.lowering.vectors.vectorize import VectorizeLoop

PASSES: Mapping[str, type[Pass]] = {
    each.primitive: each
    for each in (
        TransformLayout,
        SetAxisSeparators,
        ApplyBufferTransforms,
        Split,
        Reorder,
        Fuse,
        Parallel,
        Vectorize,
        Unroll,
        Stream,
        Partition,
        DecomposeReduction,
        MergeAdjacentLoops,
        ReduceLoopExtents,
        TransformBlockLayout,
        SequentialBufferAccess,
        RemoveBranchingThroughOvercompute,
        RemoveOvercomputeThroughBranching,
        CacheRead,
        CacheWrite,
        Reindex,
        CompactBuffer,
        SinkAllocation,
        InjectDoubleBuffer,
        DecomposePadding,
        PadEinsum,
        LowerBlocks,
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

# From a scheduled program to one that code generators take: each step is checked like any other. Indices are simplified
# while they have one axis each, which is proved for all sizes; flat indices have products of symbols.
LOWERING: tuple[Pass, ...] = (
    ApplyBufferTransforms(),
    LowerBlocks(),
    Simplify(),
    FlattenBuffer(),
    Simplify(),
    RemoveAssume(),
    RemoveStoreUndef(),
)
