"""Rewrites that the passes propose: layouts, loop transforms and lowering of the operators, legal or not; the checker
has to tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Block, For, Stmt
from layoutproof.ir.visit import children
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering.layout.transform_layout import TransformLayout
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute
from layoutproof.lowering.loops.sequential_access import SequentialBufferAccess
from layoutproof.lowering.loops.tiling import Reorder, Split
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.schedule.schedule import LOWERING
from tests.lowering.small_operators import CONCRETE, random_map, small


def random_schedule(rng: Random) -> Iterator[tuple[str, Rewrite]]:
    """What some random passes propose, one after the other; each works on what the last one made, whether that is right
    or not.
    """
    func = small(rng.choice(CONCRETE))
    for _ in range(rng.randint(1, 3)):
        step = _random_pass(func, rng)
        rewrite = None if step is None else proposed(step, func)
        if step is not None and rewrite is not None:
            yield str(step), rewrite
            func = rewrite.new
    if rng.random() < 0.5:
        for lowering in LOWERING:
            rewrite = proposed(lowering, func)
            if rewrite is None:
                return
            yield str(lowering), rewrite
            func = rewrite.new


def proposed(step: Pass, func: PrimFunc) -> Rewrite | None:
    """What a pass proposes, if it does and the program is well-formed."""
    try:
        rewrite = step.propose(func)
    except LayoutproofError:
        return None
    return None if check_wellformed(rewrite.new) else rewrite


def _blocks(node: Node, loops: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The blocks with the loops around each."""
    if isinstance(node, Block) and not node.is_root:
        yield node.name, loops
    inside = (*loops, node.var.name) if isinstance(node, For) else loops
    for child in children(node):
        if isinstance(child, Stmt):
            yield from _blocks(child, inside)


def _random_pass(func: PrimFunc, rng: Random) -> Pass | None:
    blocks = [b for b in _blocks(func.body) if b[1]]
    if not blocks:
        return None
    block, loops = rng.choice(blocks)
    buffer = rng.choice(func.buffers)
    match rng.randrange(6):
        case 0 | 1:
            pad = rng.choice([None, 0, 0, 1, "T.undef()"])
            return TransformLayout("root", buffer.name, random_map(rng, buffer.rank), pad)
        case 2:
            return Split(block, rng.choice(loops), (None, rng.choice([2, 3, 4])))
        case 3:
            order = list(loops)
            rng.shuffle(order)
            return Reorder(block, tuple(order))
        case 4:
            return SequentialBufferAccess(block, buffer.name)
        case _:
            return RemoveBranchingThroughOvercompute(block)
