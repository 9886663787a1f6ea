"""How the iterations of a loop run: all at once in threads, all at once in lanes, or written out one after the other by the compiler.

The loop's body stays as it is. That no two iterations touch one cell, one of them writing, is proved of the program that results; a
refusal names two that do.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import IntImm
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import For, ForKind
from layoutproof.ir.visit import walk
from layoutproof.lowering import codes
from layoutproof.lowering.arguments import ArgumentKind
from layoutproof.lowering.loops.nest import LoopName, check_kind, find_loop, put
from layoutproof.lowering.passes import Pass, option
from layoutproof.lowering.witness import rewrite_of


@dataclass(frozen=True)
class Parallel(Pass):
    """Run the iterations of a loop in any order, or at the same time (the roadmap's loop transforms)."""

    primitive: ClassVar[str] = "parallel"
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the loop parallel. Raises LayoutproofError for a loop that is not there, and for one bound to a thread."""
        return of_kind(func, find_loop(func, self.block, self.loop), ForKind.PARALLEL)


@dataclass(frozen=True)
class Vectorize(Pass):
    """Run the iterations of a loop as the lanes of one vector (the seed `vectorized-tir-buffers`).

    The number of lanes is a constant, at least 1, and there is no vectorized loop around the loop or inside it.
    """

    primitive: ClassVar[str] = "vectorize"
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the loop vectorized.

        Raises LayoutproofError for a loop that is not there, is bound to a thread, has no constant number of iterations, or would stand
        in or around another vectorized one.
        """
        loop = find_loop(func, self.block, self.loop)
        if not isinstance(loop.extent, IntImm) or loop.extent.value < 1:
            message = f"loop {loop.var.name} has no constant number of iterations, so there is no number of lanes"
            raise error(codes.LANES, message, loop.span, help="split it first, by the number of lanes")
        other = _vectorized_with(func, loop)
        if other is not None:
            message = f"loops {loop.var.name} and {other.var.name} would both be vectorized, one in the other"
            raise error(codes.LANES, message, loop.span, help="fuse them first")
        return of_kind(func, loop, ForKind.VECTORIZED)


def of_kind(func: PrimFunc, loop: For, kind: ForKind) -> Rewrite:
    """The rewrite that changes the kind of one loop. Raises LayoutproofError for a loop that is bound to a thread."""
    check_kind(loop)
    return rewrite_of(func, put(func, loop, replace(loop, kind=kind)))


def _vectorized_with(func: PrimFunc, loop: For) -> For | None:
    """A vectorized loop that contains the loop, or that it contains."""
    for node in walk(func.body):
        if isinstance(node, For) and node.kind is ForKind.VECTORIZED and node is not loop:
            if any(inner is loop for inner in walk(node)) or any(inner is node for inner in walk(loop)):
                return node
    return None
