"""Temporaries allocated where they are used: memory of each iteration, which may then be as small as what one iteration touches.

Source: the seed `clarifying-buffer-declaration-and-access` (allocations and their scope); upstream plans the place of allocations itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import error
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import NOTHING, Allocate, Block, BufferStore
from layoutproof.ir.visit import walk
from layoutproof.lowering import codes
from layoutproof.lowering.arguments import ArgumentKind
from layoutproof.lowering.caching.temporary import find_temporary
from layoutproof.lowering.loops.nest import LoopName, check_kind, find_loop, put
from layoutproof.lowering.passes import Pass, option
from layoutproof.lowering.witness import rewrite_of


@dataclass(frozen=True)
class SinkAllocation(Pass):
    """Allocate a temporary anew in each iteration of a loop instead of once outside of it.

    Right where no iteration reads what another one left there, which is for the checker to find out. Threads of a parallel loop then
    have memory of their own, and `compact_buffer` can make it as small as what one iteration touches.
    """

    primitive: ClassVar[str] = "sink_allocation"
    buffer: str = field(metadata=option(ArgumentKind.NAME))
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the allocation inside of the loop.

        Raises LayoutproofError for names that mean nothing, a buffer that the function does not allocate or whose memory something else
        sees, one that a block allocates (blocks are lowered first), a loop outside of the allocation or bound to a thread, and uses of
        the buffer outside of the loop.
        """
        buffer, home = find_temporary(func, self.buffer)
        if isinstance(home, Block):
            message = f"{self.buffer} is allocated by block {home.name}; allocations are moved once blocks are lowered"
            raise error(codes.NOT_TEMPORARY, message, buffer.span, help="lower_blocks comes first")
        loop = find_loop(func, self.block, self.loop)
        check_kind(loop)
        if not any(node is loop for node in walk(home.body)):
            message = f"loop {loop.var.name} is not inside of the statement that allocates {self.buffer}"
            raise error(codes.NOT_IN_BLOCK, message, loop.span)
        around = func.with_body(home.body)
        if _uses(put(around, loop, NOTHING).body, buffer):
            message = f"{self.buffer} is used outside of loop {loop.var.name} too, and would not be there"
            raise error(codes.NOT_IN_BLOCK, message, buffer.span, help="name a loop around all of its uses")
        inside = replace(loop, body=Allocate(buffer, loop.body))
        return rewrite_of(func, put(func, home, put(around, loop, inside).body))


def _uses(node: Node, buffer: Buffer) -> bool:
    """Whether a load or store below goes to the buffer's memory."""
    return any(isinstance(n, BufferLoad | BufferStore) and n.buffer.data == buffer.data for n in walk(node))
