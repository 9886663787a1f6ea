"""What an assumption about data says, by its form: that a load is arbitrary, or that floats are the same values. Whoever runs an assumption
and whoever proves from it reads it here, so that neither takes the other's word.
"""

from __future__ import annotations

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Compare, CompareOp, Expr, Logical
from layoutproof.ir.intrinsics import Undef


def undef_loads(condition: Expr) -> list[BufferLoad]:
    """The loads that an assumption says to hold an arbitrary value: `A[...] == undef` in its top-level connectives."""
    if isinstance(condition, Logical):
        return undef_loads(condition.lhs) + undef_loads(condition.rhs)
    load = assumed_undef(condition)
    return [load] if load is not None else []


def assumed_undef(condition: Expr) -> BufferLoad | None:
    """The load of `A[...] == undef`, either way round."""
    if isinstance(condition, Compare) and condition.op is CompareOp.EQ:
        for one, other in ((condition.lhs, condition.rhs), (condition.rhs, condition.lhs)):
            if isinstance(one, BufferLoad) and isinstance(other, Undef):
                return one
    return None


def is_identity(condition: Expr) -> bool:
    """Whether a top-level comparison of an assumption is value identity: `A[...] == v` with a load of floats on either side."""
    if not isinstance(condition, Compare) or condition.op is not CompareOp.EQ or not condition.lhs.dtype.is_float:
        return False
    return isinstance(condition.lhs, BufferLoad) or isinstance(condition.rhs, BufferLoad)
