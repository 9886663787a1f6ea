"""What a block means, written once: the reduction's `init` becomes a branch at the head of the body.

A block is sugar. At each point of the loops around it, the iteration variables take their values; then
`if where: { if every reduce variable is at the start of its domain: init; body }`. So `init` does not run where the guard is false, nor
where the reduction is empty; and where a binding does not begin at its start, it runs late. Source: upstream's lowering of blocks.
"""

from __future__ import annotations

from layoutproof.ir.expr import Expr, equal, logical_and
from layoutproof.ir.stmt import Block, IfThenElse, IterKind, Stmt, seq


def at_first_update(block: Block) -> Expr:
    """That every reduce variable of the block is at the start of its domain, over the block's variables; true where none is there."""
    return logical_and(*(equal(v.var, v.domain.start) for v in block.iter_vars if v.kind is IterKind.REDUCE))


def body_of(block: Block) -> Stmt:
    """What an instance of a block runs once its variables are bound and its guard holds: the same object each time."""
    if block.init is None:
        return block.body
    if block._whole is None:
        first = at_first_update(block)
        reduces = any(v.kind is IterKind.REDUCE for v in block.iter_vars)
        init = IfThenElse(first, block.init, span=block.init.span) if reduces else block.init
        object.__setattr__(block, "_whole", seq(init, block.body))
    assert block._whole is not None
    return block._whole
