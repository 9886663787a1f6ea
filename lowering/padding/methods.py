"""The methods of a schedule that deal with padding."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from layoutproof.lowering.illegal import refusing
from layoutproof.lowering.methods import Methods
from layoutproof.lowering.padding.branching import RemoveOvercomputeThroughBranching, candidates
from layoutproof.lowering.padding.report import PadValueReport
from layoutproof.lowering.padding.search import search_pad_values
from layoutproof.lowering.step import Step


class PaddingMethods(Methods):
    """Guards around padding, and values for it."""

    @property
    @abstractmethod
    def steps(self) -> tuple[Step, ...]:
        """What was applied, in order, with its verdicts."""

    def remove_overcompute_through_branching(self, block: str, places: Sequence[int] | None = None) -> Step:
        """Guard what a block does with padding only; the step's text and the trace say which places.

        Places are stores with a buffer whose padding they may touch, numbered in the order of the text. None tries all of them, then
        fewer, and keeps the largest set that is proved.
        """
        given = self.made(RemoveOvercomputeThroughBranching, block=block, places=places)
        if places is not None:
            return self.apply(given)
        with refusing():
            tries = candidates(self.func, block)
        return self.first_of(tries)

    def pad_value_search(self, block: str, buffer: str) -> PadValueReport:
        """Which pad values of a buffer that was re-laid would make guards of a block unnecessary, each answer proved.

        Tried are the identities of the reductions seen, zero, one, the ends of the type, `undef` and no contract, in place of what the
        last transform of the buffer says; what was done since is done again. The schedule stays as it is. Raises IllegalTransform where
        no step re-laid the buffer, and for names that mean nothing.
        """
        with refusing():
            return search_pad_values(self.steps, block, buffer)
