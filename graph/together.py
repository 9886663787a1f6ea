"""Several passes as one step: what they propose one after the other is composed, and proved once, from the first program to the last.

Nothing is believed of a pass: the checker sees one rewrite, with one witness. A proof of one long step takes about as long as that of a
short one, and so a fraction of all of them. It is a way to prove passes, and no transform of its own: a trace states the passes one by one,
and so nothing reads this one from a trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, ClassVar

from layoutproof.graph import codes
from layoutproof.ir.diagnostic import error
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.illegal import IllegalTransform, refusing
from layoutproof.lowering.passes.steps import Step
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.lowering.vectors.vectorize import VectorizeLoop


@dataclass(frozen=True)
class Together(Pass):
    """Passes one after the other, as one step. `drafted` is what they proposed when they were tried, to save doing it again."""

    primitive: ClassVar[str] = "together"
    passes: tuple[Pass, ...]
    drafted: tuple[Rewrite, ...] = field(default=(), compare=False, repr=False)

    def propose(self, func: PrimFunc) -> Rewrite:
        """What the last pass makes, with a witness from the first one's program. Raises LayoutproofError where they do not compose."""
        rewrites = self.drafted if self.drafted and self.drafted[0].old == func else self._proposed(func)
        return reduce(_composed, rewrites)

    def _proposed(self, func: PrimFunc) -> tuple[Rewrite, ...]:
        found: list[Rewrite] = []
        for each in self.passes:
            found.append(each.propose(found[-1].new if found else func))
        return tuple(found)

    def stated(self) -> list[list[Any]]:
        """The passes one after the other: a trace of them replays."""
        return [stated for each in self.passes for stated in each.stated()]

    def arguments(self) -> dict[str, Any]:
        """The passes in their order, each with its options."""
        return {"passes": [[each.primitive, each.arguments()] for each in self.passes]}


def _composed(first: Rewrite, second: Rewrite) -> Rewrite:
    """Two rewrites as one. Raises LayoutproofError for a witness that says more than which instances are which."""
    if any(each.cells or each.changes_interface for each in (first.witness, second.witness)):
        raise error(codes.NO_FLOW, "steps that change layouts are not put together")
    earlier = {each.new_store: each for each in first.witness.instances}
    return Rewrite(first.old, second.new, Witness(tuple(_linked(each, earlier) for each in second.witness.instances)))


def _linked(later: InstanceMap, earlier: dict[int, InstanceMap]) -> InstanceMap:
    if later.old_store is None or later.instances is None:
        return later
    before = earlier.get(later.old_store)
    if before is None or later.where is not None or before.where is not None:
        raise error(codes.NO_FLOW, "steps whose witness has conditions are not put together")
    if before.instances is None:
        return InstanceMap(later.new_store, None, None)
    if len(before.instances.inputs) != later.instances.rank:
        raise error(codes.NO_FLOW, "steps that make lanes are not put together")
    return InstanceMap(later.new_store, before.old_store, before.instances.compose(later.instances))


class _Draft(Schedule):
    """A schedule that takes what is proposed, unproved, to see what passes its steps would be."""

    def _proved(self, transform: Pass, *, search: bool = True) -> Step:
        with refusing():
            return Step(transform, transform.propose(self.func), (), None, self.allowed)


Drafted = tuple[Pass, Rewrite]
"""A pass, and what it proposed."""


def drafted(func: PrimFunc, steps: Callable[[Schedule], object]) -> tuple[Drafted, ...]:
    """The passes that some steps on a function apply, nothing of them proved. Raises IllegalTransform where one does not apply."""
    draft = _Draft(func, allowed=frozenset())
    steps(draft)
    return tuple((step.transform, step.rewrite) for step in draft.steps)


def apply_together(schedule: Schedule, groups: Iterable[Sequence[Drafted]]) -> None:
    """Apply passes, those of a group as one step or, where that is not proved, one by one. Raises IllegalTransform."""
    for group in groups:
        passes, rewrites = tuple(each for each, _ in group), tuple(rewrite for _, rewrite in group)
        try:
            schedule.attempt(Together(passes, rewrites) if len(passes) > 1 else passes[0])
        except IllegalTransform:
            if len(passes) < 2:
                raise
            for each in passes:
                schedule.attempt(each)


def up_to_lanes(passes: Sequence[Drafted]) -> Iterator[tuple[Drafted, ...]]:
    """All passes up to the one that makes lanes, and each one from there on: witnesses over lanes are not composed."""
    first = next((number for number, (each, _) in enumerate(passes) if each.primitive == VectorizeLoop.primitive), len(passes))
    yield tuple(passes[:first])
    yield from ((each,) for each in passes[first:])


def attempted(schedule: Schedule, steps: Callable[[Schedule], object]) -> Schedule | None:
    """A schedule that goes on by some steps, as few as can be; None where one of them does not apply or is not proved."""
    found = schedule.fork()
    try:
        apply_together(found, up_to_lanes(drafted(found.func, steps)))
    except IllegalTransform:
        return None
    return found
