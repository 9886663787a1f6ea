"""Double buffers: two copies of a temporary that iterations of a loop take in turns.

Source: the seed `buffer-physical-layout` (a transform of a buffer's shape that comes before flattening).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.buffer import Buffer, Range
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import NOTHING, Block, BufferStore, For, IterKind, IterVar, Stmt
from layoutproof.ir.visit import map_children, walk
from layoutproof.lowering import codes
from layoutproof.lowering.arguments import ArgumentKind
from layoutproof.lowering.caching.redirect import Redirection
from layoutproof.lowering.caching.stage import apart
from layoutproof.lowering.caching.temporary import find_temporary, reallocated, reshaped
from layoutproof.lowering.effects import uses_buffer
from layoutproof.lowering.loops.nest import LoopName, find_loop, fresh_variable, names_of, put
from layoutproof.lowering.passes import Pass, option
from layoutproof.lowering.separators import stated_separators
from layoutproof.lowering.witness import rewrite_of


@dataclass(frozen=True)
class InjectDoubleBuffer(Pass):
    """Give a temporary a new first axis of 2: iteration `i` of a loop around a block works on copy `i % 2`.

    What one iteration wrote then stays while the next one writes. Blocks in the loop get an iterator for it where they have none. A
    buffer is doubled before it is flattened: the new axis is one of the first axis group.
    """

    primitive: ClassVar[str] = "inject_double_buffer"
    block: str = field(metadata=option(ArgumentKind.NAME))
    buffer: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the doubled buffer.

        Raises LayoutproofError for names that mean nothing, a buffer that is not allocated outside the loop or is used outside it, and one
        whose memory something else sees.
        """
        loop = find_loop(func, self.block, self.loop)
        buffer, home = find_temporary(func, self.buffer)
        if any(node is home for node in walk(loop)):
            message = f"{self.buffer} is allocated anew in each iteration of loop {loop.var.name}: there is nothing to take in turns"
            raise error(codes.LOOP_OUTSIDE, message, home.span)
        if not uses_buffer(loop, buffer):
            raise error(codes.NOT_IN_BLOCK, f"loop {loop.var.name} neither reads nor writes {self.buffer}", loop.span)
        if uses_buffer(put(func, loop, replace(loop, body=NOTHING)).body, buffer):
            message = f"{self.buffer} is used outside loop {loop.var.name} too, where no iteration says which copy is meant"
            raise error(codes.LOOP_OUTSIDE, message, loop.span)
        separators = stated_separators(func).get(buffer.data.name, buffer.axis_separators)
        first = const(2, buffer.shape[0].dtype) if buffer.shape else const(2)
        new = reshaped(func, buffer, (first, *buffer.shape), tuple(s + 1 for s in separators))
        doubling = _Doubling(loop, buffer, new, names_of(func))
        moved = put(func, loop, doubling.statement(loop))
        return rewrite_of(func, apart(reallocated(moved, buffer, new)))


@dataclass(slots=True)
class _Doubling:
    loop: For
    old: Buffer
    new: Buffer
    taken: set[str]

    def statement(self, stmt: Stmt) -> Stmt:
        """The statement with each access at the copy of its iteration."""
        if isinstance(stmt, Block):
            return self.block(stmt) if uses_buffer(stmt, self.old) else stmt
        if isinstance(stmt, BufferStore):
            return self.redirection(self.loop.var).statement(stmt)

        def visit(node: Node) -> Node:
            if isinstance(node, Stmt):
                return self.statement(node)
            return self.redirection(self.loop.var).expression(node) if isinstance(node, Expr) else node

        return map_children(stmt, visit)

    def block(self, block: Block) -> Block:
        """A block with an iterator that says which iteration it is in."""
        known = next((v.var for v in block.iter_vars if v.binding == self.loop.var), None)
        if known is None:
            known = fresh_variable(f"v_{self.loop.var.name}", self.loop.var, self.taken)
            own = IterVar(known, IterKind.SPATIAL, Range(self.loop.start, self.loop.extent), self.loop.var)
            block = replace(block, iter_vars=(*block.iter_vars, own))
        result = self.redirection(known).statement(block)
        assert isinstance(result, Block)
        return result

    def redirection(self, iteration: Var) -> Redirection:
        turn: Expr = iteration % const(2, iteration.dtype)
        return Redirection(self.old, self.new, True, lambda indices: (turn, *indices))
