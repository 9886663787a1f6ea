"""Conditions as statements are: turned around, taken apart, and whether evaluating one can neither fail nor see memory."""

from __future__ import annotations

from layoutproof.ir.expr import Binary, BinaryOp, Compare, Expr, IntImm, Logical, LogicalOp, Not, const
from layoutproof.ir.visit import walk
from layoutproof.lowering.known import is_index_like

_DIVISIONS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD)
_SHIFTS = (BinaryOp.SHL, BinaryOp.SHR)


def negated(condition: Expr) -> Expr:
    """A condition that holds where the given one does not, without a `not` in front where comparisons of integers can be turned around."""
    match condition:
        case IntImm(value=truth):
            return const(not truth)
        case Not(operand=operand):
            return operand
        case Compare(op=op, lhs=left, rhs=right) if left.dtype.is_integer:
            return Compare(op.negated, left, right)
        case Logical(op=op, lhs=left, rhs=right):
            return Logical(LogicalOp.OR if op is LogicalOp.AND else LogicalOp.AND, negated(left), negated(right))
        case _:
            return Not(condition)


def is_total(expr: Expr) -> bool:
    """Whether an expression is index arithmetic that has a value wherever its variables have one: no load, no division that may trap."""
    return is_index_like(expr) and not any(isinstance(node, Binary) and _may_trap(node) for node in walk(expr))


def _may_trap(node: Binary) -> bool:
    if node.op in _SHIFTS:
        return True
    return node.op in _DIVISIONS and not (isinstance(node.rhs, IntImm) and node.rhs.value > 0)


def conjuncts_of(condition: Expr) -> tuple[Expr, ...]:
    """The parts of a conjunction, from left to right."""
    if isinstance(condition, Logical) and condition.op is LogicalOp.AND:
        return (*conjuncts_of(condition.lhs), *conjuncts_of(condition.rhs))
    return (condition,)


def truths_of(condition: Expr, holds: bool) -> dict[Expr, bool]:
    """The truth values that follow from one: of the condition, of its parts, and of what they are the contrary of."""
    found = {condition: holds, negated(condition): not holds}
    match condition:
        case Not(operand=operand):
            found |= truths_of(operand, not holds)
        case Logical(op=op, lhs=left, rhs=right) if (op is LogicalOp.AND) == holds:
            found |= truths_of(left, holds) | truths_of(right, holds)
        case _:
            pass
    return found
