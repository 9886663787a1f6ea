"""Values that have a name: computed once, and used wherever the name stands. Part of the trust base.

Statements are compared with names replaced by what they stand for, so an operation may stand in several values, or twice in one. Where an
operation may choose (the sign of a zero, how a sum is grouped), it would choose in each place by itself.
"""

from __future__ import annotations

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Expr, FloatImm, Var
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Let
from layoutproof.ir.visit import walk


def chooses_for_several(function: PrimFunc) -> bool:
    """Whether a value of floats that is computed under a name is used more than once."""
    return any(
        isinstance(node, Let) and _computes(node.value) and sum(part == node.var for part in walk(node.body)) > 1
        for node in walk(function.body)
    )


def _computes(value: Expr) -> bool:
    """Whether an operation on floats stands in a value."""
    return any(isinstance(part, Expr) and part.dtype.is_float and not isinstance(part, BufferLoad | FloatImm | Var) for part in walk(value))
