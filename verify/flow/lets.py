"""Values that have a name: computed once, and used wherever the name stands. Part of the trust base.

Statements are compared with names replaced by what they stand for, so an operation may stand in several values, or twice in one. Where an
operation may choose (the sign of a zero, how a sum is grouped), it would choose in each place by itself.
"""

from __future__ import annotations

from collections.abc import Set

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Expr, FloatImm, Var
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import For, Let
from layoutproof.ir.visit import walk


def chooses_for_several(function: PrimFunc) -> bool:
    """Whether a value that operations on floats take part in has a name, and is used more than once: where its name stands twice, or in a
    loop that it was computed outside of.
    """
    computed: set[Var] = set()
    for node in walk(function.body):  # outer names come before inner ones, which may stand for what is made of them
        if isinstance(node, Let) and _computes(node.value, computed):
            computed.add(node.var)
            if _is_shared(node):
                return True
    return False


def _computes(value: Expr, computed: Set[Var]) -> bool:
    """Whether an operation on floats stands in a value, by itself or under a name."""
    for part in walk(value):
        if isinstance(part, Var):
            if part in computed:
                return True
        elif isinstance(part, Expr) and part.dtype.is_float and not isinstance(part, BufferLoad | FloatImm):
            return True
    return False


def _is_shared(let: Let) -> bool:
    inside = (loop for loop in walk(let.body) if isinstance(loop, For))
    return sum(part == let.var for part in walk(let.body)) > 1 or any(part == let.var for loop in inside for part in walk(loop.body))
