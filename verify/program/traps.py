"""Operations on data that may have no result (quotients, shifts, floats that become integers), in programs that do the
same: the new one evaluates such an operation only where the old one evaluates it on the same operands, so that it has a
fault only where the old one has. Part of the trusted computing base.

That holds at the first store of the new program that has no result: up to there both programs hold the same values, bit
for bit. Only values that are stored are looked into. Whatever else may be without a result is no matter of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Binary, Broadcast, Cast, Expr, IfThenElseExpr, IntImm, Logical, Ramp, Select, Var
from layoutproof.ir.intrinsics import OpaqueCall, Undef
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore
from layoutproof.ir.visit import children, holds_any
from layoutproof.verify.program.instances import can_trap

_SHIFTS = (BinaryOp.SHL, BinaryOp.SHR)


def is_in_stored_values(func: PrimFunc) -> bool:
    """Whether all that may be without a result stands in values that are stored, is evaluated there or not as the
    program says, not as compilers like, and decides nothing about where a value is loaded: of a load only the cell is
    compared, not how its index is computed.
    """
    stack: list[Node] = [func.body]
    while stack:
        node = stack.pop()
        if _may_trap(node):
            return False
        if isinstance(node, BufferStore) and any(lazy is None for _, lazy in _operations(node.value, lazy=False)):
            return False
        stack += [child for child in children(node) if not (isinstance(node, BufferStore) and child is node.value)]
    return True


def traps_in(node: Node) -> int:
    """How many operations of a statement or an expression may be without a result."""
    stack, found = [node], 0
    while stack:
        current = stack.pop()
        found += _may_trap(current)
        stack += children(current)
    return found


def has_operations_of(said: Expr, stored: Expr) -> bool:
    """Whether a value, with its lanes told apart and lets replaced, has the stored one's operations that may be without
    a result, in their order. What a let or a load gives may be anything of its type.
    """
    theirs = [operation for operation, _ in _operations(stored, lazy=False)]
    mine = [operation for operation, _ in _operations(said, lazy=False)]
    return len(mine) == len(theirs) and all(map(_is_said, mine, theirs))


def _is_said(said: Node, stored: Node) -> bool:
    if not (isinstance(said, Expr) and isinstance(stored, Expr)):
        return said == stored
    if isinstance(stored, Broadcast):
        return _is_said(said, stored.value)
    if said.dtype.element != stored.dtype.element:
        return False
    if isinstance(stored, Var | BufferLoad | Ramp):
        return True
    inside = children(said), children(stored)
    alike = type(said) is type(stored) and len(inside[0]) == len(inside[1])
    return alike and _but_parts(said) == _but_parts(stored) and all(map(_is_said, *inside))


def _but_parts(expr: Expr) -> tuple[object, ...]:
    """What an operation has besides its operands and its type, which may have lanes."""
    parts = ((field.name, getattr(expr, field.name)) for field in fields(expr) if field.compare)
    return tuple(part for name, part in parts if name != "dtype" and not isinstance(part, Node | tuple))


def traps_alike(alike: Callable[[Expr, Expr], bool], old: Expr, new: Expr) -> bool:
    """Whether the old value has a result only where the new one has; both without loads. `alike` says of two operands,
    of the old one and the new one, whether they have the same bits.
    """
    mine = list(_operations(new, lazy=False))
    if not mine:
        return True
    if holds_any(new, Undef, OpaqueCall) or holds_any(old, Undef, OpaqueCall) or any(lazy is None for _, lazy in mine):
        return False
    if old == new:
        return True
    theirs = [operation for operation, lazy in _operations(old, lazy=False) if lazy is False]
    return all(any(_is_one(alike, other, operation) for other in theirs) for operation, _ in mine)


def _may_trap(node: Node) -> bool:
    if not can_trap(node):
        return False
    match node:
        case Binary(op=op, rhs=IntImm(value=amount), dtype=dtype) if op in _SHIFTS:
            return not 0 <= amount < dtype.bits
        case Binary(rhs=IntImm(value=divisor)):
            return divisor in (0, -1)
        case _:
            return True


def _operations(expr: Expr, *, lazy: bool | None) -> Iterator[tuple[Expr, bool | None]]:
    """The operations that may trap, each with whether it is evaluated only where a condition says so; None where it
    may be evaluated or not, as compilers like, or is part of an index.
    """
    if _may_trap(expr):
        yield expr, lazy
    for child in children(expr):
        if not isinstance(child, Expr):
            continue
        match expr:
            case Select(condition=condition) | IfThenElseExpr(condition=condition) if child is condition:
                inside = lazy
            case IfThenElseExpr():
                inside = True if lazy is not None else None
            case Select() | Logical() | BufferLoad():
                inside = None
            case _:
                inside = lazy
        yield from _operations(child, lazy=inside)


def _is_one(alike: Callable[[Expr, Expr], bool], old: Expr, new: Expr) -> bool:
    """Whether two operations are one, on operands with the same bits."""
    if type(old) is not type(new) or old.dtype != new.dtype:
        return False
    match old, new:
        case Binary(op=first), Binary(op=second) if first is not second:
            return False
        case Cast(value=first), Cast(value=second):
            return first.dtype == second.dtype and alike(first, second)
        case Binary(lhs=a, rhs=b), Binary(lhs=c, rhs=d):
            return alike(a, c) and alike(b, d)
        case _:
            return False
