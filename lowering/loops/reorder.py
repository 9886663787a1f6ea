"""Putting loops that stand directly in one another into another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from layoutproof.ir.diagnostic import error
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import For
from layoutproof.lowering import codes
from layoutproof.lowering.arguments import ArgumentKind
from layoutproof.lowering.loops.nest import Chain, LoopName, chain_around, check_kind, depends, find_loop, nest, path_to, put, under
from layoutproof.lowering.passes import Pass, option
from layoutproof.lowering.witness import rewrite_by_values


@dataclass(frozen=True)
class Reorder(Pass):
    """Put loops into the order given, outermost first (the roadmap's nests of split loops).

    Loops that are not named keep their places. Between the outermost and the innermost of the named loops only loops and branches may
    stand; the branches go inside. A block's init goes with the instance at the start of its reduction.
    """

    primitive: ClassVar[str] = "reorder"
    moves_iterations: ClassVar[bool] = True
    block: str = field(metadata=option(ArgumentKind.NAME))
    loops: tuple[LoopName, ...] = field(metadata=option(ArgumentKind.LOOPS))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with its loops in the new order.

        Raises LayoutproofError for loops that are not there, are named twice, do not stand directly in one another, or whose range
        depends on a loop that would come to stand inside.
        """
        wanted = [find_loop(func, self.block, name) for name in self.loops]
        for loop in wanted:
            check_kind(loop)
        chain = chain_of(func, wanted)
        inside = [loop for loop in chain.loops if any(loop is w for w in wanted)]
        if len(inside) != len(wanted):
            twice = next(w for n, w in enumerate(wanted) if any(w is other for other in wanted[:n]))
            raise error(codes.LOOP_NEST, f"loop {twice.var.name} is named twice", twice.span)
        following = iter(wanted)
        order = [next(following) if any(loop is w for w in wanted) else loop for loop in chain.loops]
        check_ranges(order)
        new = put(func, chain.links[0], nest(order, under(chain.conditions, chain.body)))
        return rewrite_by_values(func, new, {})


def chain_of(func: PrimFunc, loops: Sequence[For]) -> Chain:
    """The chain from the outermost to the innermost of some loops. Raises LayoutproofError where there is none."""
    deepest = max(loops, key=lambda loop: len(path_to(func.body, loop)))
    chain = chain_around((*path_to(func.body, deepest), deepest), deepest.body)
    missing = next((loop for loop in loops if not any(loop is link for link in chain.links)), None)
    if missing is not None:
        message = f"between the loops {missing.var.name} and {deepest.var.name} stands more than loops and branches"
        hint = "only loops that stand directly in one another can change places or become one"
        raise error(codes.LOOP_NEST, message, missing.span, help=hint)
    start = min(n for n, link in enumerate(chain.links) if any(link is loop for loop in loops))
    return Chain(chain.links[start:], chain.body)


def check_ranges(order: Sequence[For], why_not: str = "which would come to stand inside it") -> None:
    """Raise LayoutproofError where a loop's range depends on a loop inside it; `why_not` ends the message."""
    for n, loop in enumerate(order):
        for inner in order[n + 1 :]:
            if depends(loop.start, (inner.var,)) or depends(loop.extent, (inner.var,)):
                message = f"the range of loop {loop.var.name} depends on {inner.var.name}, {why_not}"
                raise error(codes.LOOP_NEST, message, loop.span)
