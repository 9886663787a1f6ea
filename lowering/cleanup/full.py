"""Simplifying in stages, of which those are kept that can be proved: branches merged, known values put in, expressions simplified."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Stmt
from layoutproof.lowering.cleanup.branches import Merging
from layoutproof.lowering.cleanup.contents import Contents
from layoutproof.lowering.cleanup.stores import Origins
from layoutproof.lowering.cleanup.trying import is_proved, tries_for

MAX_TRIES = 16
"""Changes that are tried one by one, at most, where they cannot all be proved together."""

Simplified = Callable[[PrimFunc, Origins, Stmt, Callable[[], bool]], Stmt]
"""A body with its expressions simplified, of a function and with the origins of its stores; asked about what may not be provable."""


@dataclass(slots=True)
class Choice:
    """Changes in the order in which they turn up, by number: all of them are made, or those in `only`."""

    only: Collection[int] | None = None
    offered: list[int] = field(default_factory=list[int])

    def __call__(self) -> bool:
        """Whether the change that turned up now is made."""
        number = len(self.offered)
        self.offered.append(number)
        return self.only is None or number in self.only


def first_proved(func: PrimFunc, simplified: Simplified) -> Rewrite:
    """The simplified function with all changes that can be proved together, tried one by one where they cannot all."""
    everything = Choice()
    rewrite = _rewrite(func, simplified, everything)
    count = len(everything.offered)
    # What expressions alone give rests on lemmas and needs no question before it is proposed.
    if count == 0 or is_proved(rewrite):
        return rewrite
    chosen: list[int] = []
    rewrite = _rewrite(func, simplified, Choice(()))
    for number in range(min(count, MAX_TRIES, tries_for(func))) if count > 1 else ():
        tried = _rewrite(func, simplified, Choice((*chosen, number)))
        if is_proved(tried):
            chosen.append(number)
            rewrite = tried
    return rewrite


def _rewrite(func: PrimFunc, simplified: Simplified, choice: Choice) -> Rewrite:
    origins = Origins(func)
    body = simplified(func, origins, origins.body, choice)
    merged = Merging(func, origins, choice).run(body)
    known = Contents(func, origins, choice).run(merged if merged is body else simplified(func, origins, merged, choice))
    return origins.rewrite(known if known is body else simplified(func, origins, known, choice))
