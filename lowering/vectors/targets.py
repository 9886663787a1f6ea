"""What a target allows of vectors in memory: which lengths, whether pointers may be cast, how parameters are aligned.

Source: the seed `vectorized-tir-buffers` (pointer casting: only where the target supports it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate
from layoutproof.ir.visit import walk
from layoutproof.lowering import codes

# What generated code allocates starts at a cache line, on every target.
ALLOCATED = 64


@dataclass(frozen=True, slots=True)
class VectorTarget:
    """`lanes` are the lengths of vectors that it loads at once, `parameters` the alignment of parameters in bytes that needs no promise
    (0: that of their elements).
    """

    name: str
    pointer_casts: bool
    lanes: frozenset[int]
    parameters: int


TARGETS: Mapping[str, VectorTarget] = {
    target.name: target
    for target in (
        # Arrays of callers are aligned to their elements.
        VectorTarget("c", True, frozenset((2, 4, 8, 16)), 0),
        # A buffer of OpenCL starts at a multiple of its largest type; three lanes take the place of four there.
        VectorTarget("opencl", True, frozenset((2, 4, 8, 16)), 128),
        # Arrays of SPIR-V are typed, and pointers to them cannot be cast.
        VectorTarget("vulkan", False, frozenset((2, 4)), 16),
    )
}


def find_target(name: str) -> VectorTarget:
    """The target of a name. Raises LayoutproofError where there is none."""
    target = TARGETS.get(name)
    if target is None:
        raise error(codes.VECTOR_TARGET, f"there is no target {name!r}", help=f"there are {', '.join(TARGETS)}")
    return target


def alignments(func: PrimFunc, target: VectorTarget) -> dict[str, int]:
    """The alignment in bytes of each memory's start, by its data variable's name."""
    found = {b.data.name: max(b.align, target.parameters, b.dtype.element.bytes) for b in func.buffers}
    for node in walk(func.body):
        if isinstance(node, Allocate):
            found[node.buffer.data.name] = max(node.buffer.align, ALLOCATED)
    return found


def is_aligned(buffer: Buffer, lanes: int, alignment: Mapping[str, int]) -> bool:
    """Whether vectors of `lanes` elements lie at multiples of their size; `alignment` is that of the memories."""
    promised = max(alignment.get(buffer.data.name, 0), buffer.align)
    return promised % (buffer.dtype.element.bytes * lanes) == 0 and promised > 0
