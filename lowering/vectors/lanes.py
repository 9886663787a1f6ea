"""Expressions for all lanes at once: an expression of one iteration of a loop, for all its iterations.

A part that does not depend on the loop keeps one lane and is broadcast if it meets others. Sums and multiples of the
loop's variable become ramps, so that an index with a constant step says so. Source: TVM's RFC `vectorized-tir-buffers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import counted
from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
    const,
)
from layoutproof.ir.intrinsics import (
    Assume,
    Call,
    Limit,
    OpaqueCall,
    PointerCast,
    Reducer,
    Reinterpret,
    StringImm,
    Undef,
)
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.visit import walk
from layoutproof.lowering.arith.affine import fold_constants
from layoutproof.verify.program.instances import can_trap

_RAMPED = frozenset((BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL))


class NoLanes(Exception):
    """Something that has no form for all lanes; `reason` says why, `node` where."""

    def __init__(self, reason: str, node: Node) -> None:
        super().__init__(reason)
        self.reason = reason
        self.node = node


@dataclass(slots=True)
class Lanes:
    """The iterations of one loop as lanes: `var` runs from `start` over `count` values. `values` are lets that have
    become vectors.
    """

    var: Var
    start: Expr
    count: int
    values: dict[Var, Var] = field(default_factory=dict)

    def said(self, expr: Expr) -> Expr:
        """An expression for all lanes, with one lane if it is uniform. Raises NoLanes."""
        return self._say(expr, index=False)

    def wide(self, expr: Expr) -> Expr:
        """The same, broadcast if it is uniform. Raises NoLanes."""
        return self.spread(self.said(expr))

    def spread(self, expr: Expr) -> Expr:
        """A result of `said` with the full number of lanes."""
        return expr if expr.dtype.lanes > 1 else Broadcast(expr, self.count)

    def indices(self, buffer: Buffer, indices: tuple[Expr, ...], node: Node) -> tuple[Expr, ...]:
        """The indices of an access: only the last may differ between lanes, and only for one-lane elements. Raises
        NoLanes.
        """
        said = tuple(self._say(index, index=True) for index in indices)
        for axis, index in enumerate(said):
            if index.dtype.lanes == 1:
                continue
            if axis < len(said) - 1:
                raise NoLanes(
                    f"index {axis} of {buffer.name} differs from lane to lane, and only the last one may", node
                )
            if buffer.dtype.lanes > 1:
                raise NoLanes(
                    f"{buffer.name} has {counted(buffer.dtype.lanes, 'lane', 'lanes')} in each element already", node
                )
        return said

    def _say(self, expr: Expr, *, index: bool) -> Expr:
        if expr.dtype.lanes > 1:
            raise NoLanes(f"a value of {expr.dtype} has lanes already", expr)
        return _SAID[type(expr)](self, expr, index)

    def _one(self, expr: Expr, index: bool) -> Expr:
        return expr

    def _variable(self, expr: Var, index: bool) -> Expr:
        if expr == self.var:
            return Ramp(self.start, const(1, self.var.dtype), self.count)
        return self.values.get(expr, expr)

    def _binary(self, expr: Binary, index: bool) -> Expr:
        lhs, rhs = self._say(expr.lhs, index=index), self._say(expr.rhs, index=index)
        # Products in values, which wrap, stay in place, so that provers see the same value.
        if (expr.op is BinaryOp.ADD or (index and expr.op in _RAMPED)) and (
            isinstance(lhs, Ramp) or isinstance(rhs, Ramp)
        ):
            ramp = _ramp(expr.op, lhs, rhs)
            if ramp is not None:
                return ramp
        return self._like(expr, lhs, rhs)

    def _pair(self, expr: Compare, index: bool) -> Expr:
        return self._like(expr, self._say(expr.lhs, index=index), self._say(expr.rhs, index=index))

    def _logical(self, expr: Logical, index: bool) -> Expr:
        lhs, rhs = self._say(expr.lhs, index=index), self._say(expr.rhs, index=index)
        if max(lhs.dtype.lanes, rhs.dtype.lanes) > 1:
            self._check_harmless(expr.rhs, f"the right side of `{expr.op}`")
        return self._like(expr, lhs, rhs)

    def _like(self, expr: Binary | Compare | Logical, lhs: Expr, rhs: Expr) -> Expr:
        if max(lhs.dtype.lanes, rhs.dtype.lanes) > 1:
            lhs, rhs = self.spread(lhs), self.spread(rhs)
        return replace(expr, lhs=lhs, rhs=rhs)

    def _not(self, expr: Not, index: bool) -> Expr:
        return replace(expr, operand=self._say(expr.operand, index=index))

    def _select(self, expr: Select, index: bool) -> Expr:
        condition = self._say(expr.condition, index=False)
        then, otherwise = (self._say(side, index=index) for side in (expr.then, expr.otherwise))
        if max(part.dtype.lanes for part in (condition, then, otherwise)) > 1:
            then, otherwise = self.spread(then), self.spread(otherwise)
        return replace(expr, condition=condition, then=then, otherwise=otherwise)

    def _choice(self, expr: IfThenElseExpr, index: bool) -> Expr:
        condition = self._say(expr.condition, index=False)
        then, otherwise = (self._say(side, index=index) for side in (expr.then, expr.otherwise))
        if max(then.dtype.lanes, otherwise.dtype.lanes, condition.dtype.lanes) > 1:
            then, otherwise = self.spread(then), self.spread(otherwise)
        if condition.dtype.lanes == 1:
            return replace(expr, condition=condition, then=then, otherwise=otherwise)
        for side in (expr.then, expr.otherwise):
            self._check_harmless(side, "a side of `if_then_else`")
        return Select(condition, then, otherwise, span=expr.span)

    def _check_harmless(self, expr: Expr, what: str) -> None:
        """Raise NoLanes if evaluating an expression that one lane does not need could fault."""
        for node in walk(expr):
            if isinstance(node, BufferLoad | OpaqueCall) or can_trap(node):
                raise NoLanes(f"{what} is evaluated in some lanes only, and could fault in others", expr)

    def _cast(self, expr: Cast, index: bool) -> Expr:
        value = self._say(expr.value, index=index)
        if value.dtype.lanes == 1:
            return replace(expr, value=value)
        widens = expr.dtype.is_integer and value.dtype.is_integer and expr.dtype.bits >= value.dtype.bits
        if index and isinstance(value, Ramp) and widens:
            # Index arithmetic does not wrap, so it may be done in the wider type from the start.
            base, stride = (fold_constants(Cast(expr.dtype, part)) for part in (value.base, value.stride))
            return Ramp(base, stride, value.lanes)
        return replace(expr, dtype=expr.dtype.with_lanes(value.dtype.lanes), value=value)

    def _reinterpret(self, expr: Reinterpret, index: bool) -> Expr:
        value = self._say(expr.value, index=False)
        return replace(expr, dtype=expr.dtype.with_lanes(value.dtype.lanes), value=value)

    def _load(self, expr: BufferLoad, index: bool) -> Expr:
        return replace(expr, indices=self.indices(expr.buffer, expr.indices, expr))

    def _call(self, expr: Call, index: bool) -> Expr:
        arguments = tuple(self._say(argument, index=False) for argument in expr.arguments)
        if any(a.dtype.lanes > 1 for a in arguments):
            arguments = tuple(map(self.spread, arguments))
        return replace(expr, arguments=arguments)

    def _undef(self, expr: Undef, index: bool) -> Expr:
        # One undefined value would be the same in each lane; each evaluation has its own.
        return replace(expr, dtype=expr.dtype.with_lanes(self.count))

    def _refused(self, expr: Expr, index: bool) -> Expr:
        what = f"the call of {expr.function}" if isinstance(expr, OpaqueCall) else "a pointer or an assumption"
        raise NoLanes(f"{what} has no form for several lanes", expr)


def _ramp(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr | None:
    """A sum, difference or multiple of ramps as a ramp; the one value if all lanes are equal; None if it is no ramp."""
    match op, lhs, rhs:
        case (BinaryOp.ADD | BinaryOp.SUB, Ramp(base=a, stride=s), Ramp(base=b, stride=t)):
            return _stepping(_folded(op, a, b), _folded(op, s, t), lhs.lanes)
        case (_, Ramp(base=base, stride=stride, lanes=lanes), _) if rhs.dtype.lanes == 1:
            return Ramp(_folded(op, base, rhs), _folded(op, stride, rhs) if op is BinaryOp.MUL else stride, lanes)
        case (_, _, Ramp(base=base, stride=stride, lanes=lanes)) if lhs.dtype.lanes == 1:
            first = _folded(op, lhs, base)
            if op is BinaryOp.ADD:
                return Ramp(first, stride, lanes)
            return Ramp(first, _folded(op, lhs if op is BinaryOp.MUL else const(0, stride.dtype), stride), lanes)
        case _:
            return None


def _stepping(base: Expr, stride: Expr, lanes: int) -> Expr:
    return base if isinstance(stride, IntImm) and stride.value == 0 else Ramp(base, stride, lanes)


def _folded(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr:
    """An operation of scalars, folded if both are constants or one is neutral."""
    neutral = 1 if op is BinaryOp.MUL else 0
    if isinstance(rhs, IntImm) and rhs.value == neutral:
        return lhs
    if isinstance(lhs, IntImm) and lhs.value == neutral and op is not BinaryOp.SUB:
        return rhs
    if op is BinaryOp.MUL and any(isinstance(e, IntImm) and e.value == 0 for e in (lhs, rhs)):
        return const(0, lhs.dtype)
    return fold_constants(Binary(op, lhs, rhs))


_SAID: Mapping[type[Expr], Callable[[Lanes, Any, bool], Expr]] = {
    IntImm: Lanes._one,
    FloatImm: Lanes._one,
    Limit: Lanes._one,
    Var: Lanes._variable,
    Binary: Lanes._binary,
    Compare: Lanes._pair,
    Logical: Lanes._logical,
    Not: Lanes._not,
    Select: Lanes._select,
    IfThenElseExpr: Lanes._choice,
    Cast: Lanes._cast,
    Reinterpret: Lanes._reinterpret,
    BufferLoad: Lanes._load,
    Call: Lanes._call,
    Undef: Lanes._undef,
    OpaqueCall: Lanes._refused,
    PointerCast: Lanes._refused,
    StringImm: Lanes._refused,
    Reducer: Lanes._refused,
    Assume: Lanes._refused,
    Ramp: Lanes._refused,  # Never reached: both have lanes already.
    Broadcast: Lanes._refused,
}
HANDLED = frozenset(_SAID)
