"""The methods of a schedule that transform loops and branches."""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.lowering.illegal import IllegalTransform, refusing
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute, candidates
from layoutproof.lowering.loops.reorder import Reorder
from layoutproof.lowering.loops.sequential import SequentialBufferAccess
from layoutproof.lowering.loops.split import Split
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

    def sequential_buffer_access(self, block: str, buffer: str) -> Step:
        """Make the loops of a block visit a buffer in the row-major order of its physical layout; other loops go inside."""
        return self.apply(self.made(SequentialBufferAccess, block=block, buffer=buffer))

    def remove_branching_through_overcompute(self, block: str, guards: Sequence[int] | None = None, wrap: bool = False) -> Step:
        """Drop guards of a block whose missing iterations are invisible; the step's text and the trace say which.

        Guards are numbered from the outside to the inside, `-1 - k` keeps the alternative of guard `k`. None tries all of them, then
        fewer, and keeps the largest set that is proved. With `wrap` loads that would leave their buffer take their index modulo its
        extent; a refusal says so where that would be proved.
        """
        given = self.made(RemoveBranchingThroughOvercompute, block=block, guards=guards, wrap=wrap)
        with refusing():
            tries = candidates(self.func, block, wrap) if guards is None else (given,)
        if guards is None:
            for each in tries:
                try:
                    return self.attempt(each)
                except IllegalTransform:
                    continue
        # Of what is refused in the end, the counterexample is looked for; among what is only tried, it would be thrown away.
        return self.apply(tries[0])
