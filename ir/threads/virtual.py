"""Memory of virtual threads. What is allocated inside a loop over them, each of them has for itself, in any scope; what
is allocated outside they share.

Source: TVM's passes PlanAndUpdateBufferAllocationLocation, which puts the memory of a block where all that touches it
is, and InjectVirtualThread, which gives each virtual thread a copy of what is allocated inside.
"""

from __future__ import annotations

from layoutproof.ir.expr import Var
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import Block, For, ForKind, Stmt
from layoutproof.ir.threads.axes import is_virtual
from layoutproof.ir.visit import children


def virtual_home(data: Var, body: Stmt) -> frozenset[str]:
    """The tags of the loops over virtual threads in `body` that are around everything that touches a memory."""
    home: tuple[For, ...] | None = None
    stack: list[tuple[Node, tuple[For, ...]]] = [(body, ())]
    while stack:
        node, inside = stack.pop()
        if node == data:
            home = inside if home is None else _common(home, inside)
        elif isinstance(node, Block):
            # The regions that a block says it reads and writes touch nothing.
            parts = (node.body, node.init, node.where, *node.iter_vars, *(view.source for view in node.match_buffers))
            stack += [(part, inside) for part in parts if part is not None]
        else:
            if isinstance(node, For) and node.kind is ForKind.THREAD_BINDING and is_virtual(str(node.thread)):
                inside = (*inside, node)
            stack += [(child, inside) for child in children(node)]
    return frozenset(str(loop.thread) for loop in home or ())


def _common(one: tuple[For, ...], other: tuple[For, ...]) -> tuple[For, ...]:
    """The loops around both: the same statements, not loops of the same text."""
    number = 0
    while number < min(len(one), len(other)) and one[number] is other[number]:
        number += 1
    return one[:number]
