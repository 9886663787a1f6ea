"""All passes by name: what a trace, the command line and the schedule's methods can call."""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.lowering.blocks import LowerBlocks
from layoutproof.lowering.buffer_transforms import ApplyBufferTransforms
from layoutproof.lowering.caching.cache import CacheRead, CacheWrite
from layoutproof.lowering.caching.compact import CompactBuffer
from layoutproof.lowering.caching.decompose import DecomposePadding
from layoutproof.lowering.caching.double_buffer import InjectDoubleBuffer
from layoutproof.lowering.caching.einsum import PadEinsum
from layoutproof.lowering.caching.reindex import Reindex
from layoutproof.lowering.caching.sink import SinkAllocation
from layoutproof.lowering.cleanup.hoist import HoistExpression
from layoutproof.lowering.cleanup.no_op import RemoveNoOp
from layoutproof.lowering.flatten import FlattenBuffer
from layoutproof.lowering.layout import TransformLayout
from layoutproof.lowering.loops.block_layout import TransformBlockLayout
from layoutproof.lowering.loops.decompose_reduction import DecomposeReduction
from layoutproof.lowering.loops.extents import ReduceLoopExtents
from layoutproof.lowering.loops.fuse import Fuse
from layoutproof.lowering.loops.kinds import Parallel, Vectorize
from layoutproof.lowering.loops.merge import MergeAdjacentLoops
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute
from layoutproof.lowering.loops.partition import Partition
from layoutproof.lowering.loops.reorder import Reorder
from layoutproof.lowering.loops.sequential import SequentialBufferAccess
from layoutproof.lowering.loops.split import Split
from layoutproof.lowering.loops.stream import Stream
from layoutproof.lowering.loops.unroll import Unroll
from layoutproof.lowering.padding.branching import RemoveOvercomputeThroughBranching
from layoutproof.lowering.passes import Pass
from layoutproof.lowering.separators import SetAxisSeparators
from layoutproof.lowering.simplify import Simplify
from layoutproof.lowering.undef import RemoveAssume, RemoveStoreUndef
from layoutproof.lowering.vectors.pointer_cast import RewriteRampAsPointerCast
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

# From a scheduled program to one that code generators take: each step is checked like any other. Indices are simplified while they still
# have an axis each, where that is proved for all sizes; once they are flat, symbols stand multiplied in them.
LOWERING: tuple[Pass, ...] = (
    ApplyBufferTransforms(),
    LowerBlocks(),
    Simplify(),
    FlattenBuffer(),
    Simplify(),
    RemoveAssume(),
    RemoveStoreUndef(),
)
