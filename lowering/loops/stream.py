"""Marking a loop whose stores go past the cache: what it writes is large, and nothing reads it again soon.

The mark changes no result. A code generator that has such stores uses them; every other one writes the loop as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import For
from layoutproof.lowering.arguments import ArgumentKind
from layoutproof.lowering.loops.nest import LoopName, check_kind, find_loop, put
from layoutproof.lowering.passes import Pass, option
from layoutproof.lowering.witness import rewrite_of

STREAM = "layoutproof.stream"
"""The annotation of a loop whose nest is one tile: gathered in a small buffer, then written past the cache."""


@dataclass(frozen=True)
class Stream(Pass):
    """Mark a loop and the loops in it as one tile that is written past the cache (non-temporal stores).

    A tile is best some kilobytes large, and made of runs that are contiguous in the buffer that is written.
    """

    primitive: ClassVar[str] = "stream"
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the loop marked. Raises LayoutproofError for a loop that is not there, and for one bound to a thread."""
        loop = find_loop(func, self.block, self.loop)
        check_kind(loop)
        return rewrite_of(func, put(func, loop, replace(loop, annotations=loop.annotations.with_value(STREAM, True))))


def is_streamed(loop: For) -> bool:
    """Whether a loop is marked."""
    return loop.annotations.get(STREAM) is True
