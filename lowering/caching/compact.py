"""Temporaries as small as what is touched of them.

Source: the seed `clarifying-buffer-declaration-and-access` (aliases); compaction of allocations, upstream's pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.buffer import Range
from layoutproof.ir.expr import Broadcast, Expr, Ramp, const, is_zero
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.visit import free_variables
from layoutproof.lowering.affine import affine_of, expression_of
from layoutproof.lowering.arguments import ArgumentKind
from layoutproof.lowering.caching.redirect import Redirection
from layoutproof.lowering.caching.stage import Place, apart
from layoutproof.lowering.caching.temporary import find_temporary, reallocated, reshaped
from layoutproof.lowering.caching.touched import touched_box
from layoutproof.lowering.loops.nest import put
from layoutproof.lowering.passes import Pass, option
from layoutproof.lowering.scopes import constants_of
from layoutproof.lowering.separators import stated_separators
from layoutproof.lowering.witness import rewrite_of


@dataclass(frozen=True)
class CompactBuffer(Pass):
    """Shrink a temporary to the box of it that is touched.

    What is touched is told from loops, domains of iterators and branches inside the statement that allocates the buffer: memory that is
    allocated for each tile is as large as a tile. An axis of which nothing is known stays whole.
    """

    primitive: ClassVar[str] = "compact_buffer"
    buffer: str = field(metadata=option(ArgumentKind.NAME))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the smaller buffer; as it is where all of it is touched.

        Raises LayoutproofError for a buffer that is not allocated by the function, or whose memory something else sees.
        """
        buffer, home = find_temporary(func, self.buffer)
        box = touched_box(func, Place(home.body, home.body, None), buffer)
        symbols = set(constants_of(func))
        ranges = tuple(
            r if set(free_variables(r.extent)) <= symbols else Range(const(0, e.dtype), e) for r, e in zip(box, buffer.shape, strict=True)
        )
        shape = tuple(r.extent for r in ranges)
        if shape == buffer.shape:
            return rewrite_of(func, func)
        separators = stated_separators(func).get(buffer.data.name, buffer.axis_separators)
        new = reshaped(func, buffer, shape, separators)
        starts = [r.start for r in ranges]
        redirection = Redirection(buffer, new, True, lambda indices: tuple(_less(i, s) for i, s in zip(indices, starts, strict=True)))
        moved = put(func, home.body, redirection.statement(home.body))
        return rewrite_of(func, apart(reallocated(moved, buffer, new)))


def _less(index: Expr, start: Expr) -> Expr:
    """An index counted from where the box begins."""
    if is_zero(start):
        return index
    if isinstance(index, Ramp):
        return replace(index, base=_less(index.base, start))
    if isinstance(index, Broadcast):
        return replace(index, value=_less(index.value, start))
    return expression_of(affine_of(index) - affine_of(start), index.dtype)
