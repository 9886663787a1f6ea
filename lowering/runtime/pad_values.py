"""What padding holds, computed for all padding cells of an array at once.

A pad value is a constant, or an expression over the physical indices that may load the buffer itself (a border that is
repeated). Floats round in their own type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from layoutproof.ir import semantics
from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import (
    Binary,
    BinaryOp,
    Broadcast,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Select,
    Var,
)
from layoutproof.ir.intrinsics import Limit, LimitKind
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.runtime.arrays import Array

_FLOAT: Mapping[BinaryOp, Callable[[Any, Any], Any]] = {
    BinaryOp.ADD: np.add,
    BinaryOp.SUB: np.subtract,
    BinaryOp.MUL: np.multiply,
    BinaryOp.DIV: np.divide,
    BinaryOp.MIN: lambda a, b: np.where(a < b, a, b),
    BinaryOp.MAX: lambda a, b: np.where(a > b, a, b),
}


class _Cells:
    """The padding cells of one array: their indices, and the array itself for loads."""

    def __init__(self, env: Mapping[str, Any], flat: Array, shape: Sequence[int], count: int) -> None:
        self.env, self.flat, self.shape, self.count = env, flat, shape, count

    def spread(self, value: Any, dtype: DType) -> Array:
        """One value for every cell and lane."""
        return np.full((self.count, dtype.lanes), value, dtype=numpy_dtype(dtype))


def pad_values(pad: Expr, env: Mapping[str, Any], flat: Array, shape: Sequence[int], count: int) -> Array:
    """The values of `count` padding cells, (cells, lanes); `env` has the physical indices by name, `flat` the array so far.

    Raises LayoutproofError (LP430) for a pad value that contains something else.
    """
    return _value(pad, _Cells(env, flat, shape, count))


def _value(expr: Expr, cells: _Cells) -> Array:
    rule = _RULES.get(type(expr))
    if rule is None:
        raise error(codes.PAD_FILLING, f"a pad value with {type(expr).__name__} cannot be filled in before a call", expr.span)
    return rule(expr, cells)


def _constant(expr: IntImm | FloatImm, cells: _Cells) -> Array:
    return cells.spread(expr.value, expr.dtype)


def _limit(expr: Limit, cells: _Cells) -> Array:
    if expr.dtype.is_float:
        largest = semantics.max_finite(expr.dtype)
        values = {LimitKind.INFINITY: float("inf"), LimitKind.MAX: largest, LimitKind.MIN: -largest}
        return cells.spread(values[expr.kind], expr.dtype)
    return cells.spread(expr.dtype.max_int if expr.kind is LimitKind.MAX else expr.dtype.min_int, expr.dtype)


def _index(expr: Expr, cells: _Cells) -> Array:
    """Index arithmetic over the physical indices, which wraps where it is a value."""
    values = np.broadcast_to(np.asarray(evaluate(expr, cells.env)), (cells.count,)).reshape(-1, 1)
    return values.astype(numpy_dtype(expr.dtype))


def _binary(expr: Binary, cells: _Cells) -> Array:
    if not expr.dtype.is_float:
        return _index(expr, cells)
    with np.errstate(all="ignore"):
        result: Array = _FLOAT[expr.op](_value(expr.lhs, cells), _value(expr.rhs, cells))
    return result.astype(numpy_dtype(expr.dtype))


def _cast(expr: Cast, cells: _Cells) -> Array:
    """Through `semantics.cast_value`, one value at a time: int64 to bfloat16 must not round twice."""
    values = _value(expr.value, cells)
    source, target = expr.value.dtype.element, expr.dtype.element
    convert = float if source.is_float else int
    converted = [semantics.cast_value(convert(v), source, target) for v in values.reshape(-1).tolist()]
    return np.array(converted, dtype=numpy_dtype(target)).reshape(values.shape)


def _choice(expr: Select | IfThenElseExpr, cells: _Cells) -> Array:
    condition = np.broadcast_to(np.asarray(evaluate(expr.condition, cells.env)), (cells.count,)).reshape(-1, 1)
    return np.where(condition, _value(expr.then, cells), _value(expr.otherwise, cells))


def _broadcast(expr: Broadcast, cells: _Cells) -> Array:
    return np.repeat(_value(expr.value, cells), expr.lanes, axis=1)


def _load(expr: BufferLoad, cells: _Cells) -> Array:
    """The buffer's own cells, as they are before padding is filled. Raises LayoutproofError (LP430) outside the array."""
    places = [np.broadcast_to(np.asarray(evaluate(index, cells.env)), (cells.count,)) for index in expr.indices]
    for axis, (place, extent) in enumerate(zip(places, cells.shape, strict=True)):
        if place.size and not (int(place.min()) >= 0 and int(place.max()) < extent):
            raise error(
                codes.PAD_FILLING, f"a pad value loads {expr.buffer.name} outside of axis {axis}, whose extent is {extent}", expr.span
            )
    result: Array = cells.flat[np.ravel_multi_index(places, tuple(cells.shape))]
    return result


_RULES: Mapping[type[Expr], Callable[[Any, _Cells], Array]] = {
    IntImm: _constant,
    FloatImm: _constant,
    Limit: _limit,
    Var: _index,
    Compare: _index,
    Logical: _index,
    Not: _index,
    Binary: _binary,
    Cast: _cast,
    Select: _choice,
    IfThenElseExpr: _choice,
    Broadcast: _broadcast,
    BufferLoad: _load,
}
