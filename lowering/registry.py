"""All passes by name: what a trace, the command line and the schedule's methods can call."""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.lowering.blocks import LowerBlocks
from layoutproof.lowering.buffer_transforms import ApplyBufferTransforms
from layoutproof.lowering.flatten import FlattenBuffer
from layoutproof.lowering.layout import TransformLayout
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute
from layoutproof.lowering.loops.reorder import Reorder
from layoutproof.lowering.loops.sequential import SequentialBufferAccess
from layoutproof.lowering.loops.split import Split
from layoutproof.lowering.passes import Pass
from layoutproof.lowering.separators import SetAxisSeparators
from layoutproof.lowering.simplify import Simplify
from layoutproof.lowering.undef import RemoveAssume, RemoveStoreUndef

PASSES: Mapping[str, type[Pass]] = {
    each.primitive: each
    for each in (
        TransformLayout,
        SetAxisSeparators,
        ApplyBufferTransforms,
        Split,
        Reorder,
        SequentialBufferAccess,
        RemoveBranchingThroughOvercompute,
        LowerBlocks,
        FlattenBuffer,
        Simplify,
        RemoveAssume,
        RemoveStoreUndef,
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
