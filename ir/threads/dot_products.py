"""The instruction that multiplies and adds four bytes: as CUDA describes `__dp4a`, and TVM's `dp4a_desc`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import INT32, DType
from layoutproof.ir.expr import Binary, Broadcast, Cast, Expr, IntImm, Ramp, Var, binary, widen
from layoutproof.ir.intrinsics import OpaqueCall, StringImm
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.stmt import BufferStore, For, ForKind, Stmt
from layoutproof.ir.visit import loads_in, map_children, take_fresh


def with_dot_products(stmt: Stmt, names: set[str]) -> Stmt:
    """A statement with what `__dp4a` computes in its place: the sum of a number and of the products of four
    bytes, which wraps. Of two types of bytes there is no such function.

    Sums are not regrouped here: a store that adds to its own cell adds the products one after the other. `names` are
    taken, and grow.
    """

    def visit(node: Node) -> Node:
        if isinstance(node, BufferStore):
            own = BufferLoad(node.buffer, node.indices)
            dot = _added(node.value, own)
            if dot is not None:
                lane = Var(take_fresh("lane", names), INT32)
                update = replace(node, value=binary(BinaryOp.ADD, own, dot(lane)))
                return For(lane, IntImm(0), IntImm(4), ForKind.SERIAL, update, span=node.span)
        rebuilt = map_children(node, visit)
        dot = _dot(rebuilt) if isinstance(rebuilt, OpaqueCall) else None
        if dot is None or not isinstance(rebuilt, OpaqueCall):
            return rebuilt
        total = rebuilt.arguments[3]
        for k in range(4):
            total = binary(BinaryOp.ADD, total, dot(IntImm(k)))
        return total

    result = visit(stmt)
    assert isinstance(result, Stmt)
    return result


_BYTES = DType.parse("int8x4"), DType.parse("uint8x4")
_DOT_PRODUCTS = frozenset({(_BYTES[0],) * 2 + (INT32,) * 2, (_BYTES[1],) * 2 + (DType.parse("uint32"),) * 2})


def _added(value: Expr, own: BufferLoad) -> Callable[[Expr], Expr] | None:
    """The products that a value adds to a cell, by lane; None for any other value."""
    parts = (value.lhs, value.rhs) if isinstance(value, Binary) and value.op is BinaryOp.ADD else (value,)
    call = next((part for part in parts if isinstance(part, OpaqueCall)), None)
    dot = _dot(call) if call is not None else None
    if call is None or dot is None:
        return None
    rest = [part for part in (*parts, call.arguments[3]) if part is not call and part != IntImm(0, part.dtype)]
    # What is read may not change on the way: the cell is in memory of the kernel, and what says which one it is, and
    # the bytes, are in other memory.
    read = {load.buffer.data for part in (dot(IntImm(0)), *own.indices) for load in loads_in(part)}
    apart = own.buffer.scope != "global" and own.buffer.data not in read
    return dot if rest == [own] and apart else None


def _dot(call: OpaqueCall) -> Callable[[Expr], Expr] | None:
    """The product of one lane of the operands of a `__dp4a`; None for another call, or other operands."""
    if call.function not in ("call_pure_extern", "call_extern") or call.arguments[:1] != (StringImm("__dp4a"),):
        return None
    types = tuple(argument.dtype for argument in call.arguments[1:])
    if (*types, call.dtype) not in _DOT_PRODUCTS or not all(map(_has_lanes, call.arguments[1:3])):
        return None
    a, b = call.arguments[1:3]
    return lambda k: binary(BinaryOp.MUL, Cast(call.dtype, _lane(a, k)), Cast(call.dtype, _lane(b, k)))


def _has_lanes(expr: Expr) -> bool:
    match expr:
        case Ramp() | Broadcast():
            return True
        case Binary(lhs=lhs, rhs=rhs):
            return _has_lanes(lhs) and _has_lanes(rhs)
        case BufferLoad(buffer=buffer, indices=indices):
            return buffer.dtype.lanes == 1 and all(i.dtype.lanes == 1 or _has_lanes(i) for i in indices)
        case _:
            return False


def _lane(expr: Expr, lane: Expr) -> Expr:
    """One lane of a vector that has them one by one."""
    match expr:
        case Ramp(base=base, stride=stride):
            step = widen(lane, stride.dtype)
            return base + (step if stride == IntImm(1, stride.dtype) else step * stride)
        case Broadcast(value=value):
            return value
        case Binary(op=op, lhs=lhs, rhs=rhs):
            return binary(op, _lane(lhs, lane), _lane(rhs, lane))
        case BufferLoad(indices=indices):
            return replace(expr, indices=tuple(i if i.dtype.lanes == 1 else _lane(i, lane) for i in indices))
        case _:
            return expr
