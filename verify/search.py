"""The terms in which engines are asked and answer: instances that reach others, and what a search for an instance found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from layoutproof.ir.expr import Expr
from layoutproof.verify.instances import Scene


class Because(StrEnum):
    """What code asks of the reason of a verdict."""

    NOTHING_SEEN = "nothing-seen"  # nothing is stored that callers see
    CONTRADICTION = "contradiction"  # the assumptions cannot all hold
    OVERLAP = "overlap"  # parameters may overlap
    BUDGET = "budget"  # an engine was not allowed to do more
    CLOCK = "clock"  # the clock, or a solver's death, had a part in it: it may come out otherwise next time
    INVARIANT = "invariant"  # the proof uses an inductive invariant


@dataclass(frozen=True, slots=True)
class Cover:
    """Instances over the dims of another scene, which come first, and further ones; all `conditions` hold, and no cover of `without`
    reaches them.

    It reaches an instance of that scene when some values of the further dims satisfy everything.
    """

    scene: Scene
    conditions: tuple[Expr, ...]
    without: tuple[Cover, ...] = ()


@dataclass(frozen=True, slots=True)
class Search:
    """What a search found: nothing (`point` and `reason` None: there is certainly none), a point, or why there is no answer.

    `exact` says that the point satisfies everything that was asked; without it something could not be said to the engine, named in
    `reason`. `because` is what code asks of the reason.
    """

    point: Mapping[str, int] | None
    exact: bool = True
    reason: str | None = None
    engine: str = "isl"
    because: frozenset[Because] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether it is certain that there is none."""
        return self.point is None and self.reason is None


def nothing(engine: str) -> Search:
    """The certainty that there is none."""
    return Search(None, engine=engine)


def no_answer(engine: str, reason: str, *because: Because) -> Search:
    """No answer, and why."""
    return Search(None, False, reason, engine, frozenset(because))
