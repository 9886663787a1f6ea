"""What the methods of a schedule stand on. Each room of transforms has its own methods; `Schedule` has them all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.illegal import IllegalTransform, refusing
from layoutproof.lowering.passes import Pass
from layoutproof.lowering.step import Step

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
        # Of what is refused in the end, the counterexample is looked for; among what is only tried, it would be thrown away.
        return self.apply(tries[0])

    @abstractmethod
    def attempt(self, transform: Pass) -> Step:
        """`apply`, without a search for a counterexample where the pass is refused: for one of several that are tried."""

    def made(self, kind: type[P], **arguments: Any) -> P:
        """The pass with these options. Raises IllegalTransform that names the option that is wrong."""
        with refusing():
            return kind.from_arguments(arguments)
