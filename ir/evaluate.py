"""Index arithmetic on numbers: one value at a time (Python integers, exact) or whole arrays of them (numpy int64).

Only what may stand in an index map, a shape or a predicate: no loads, no floats. Arrays may be of int64, then a result
that leaves 64 bits raises Overflow, or of Python integers (object), which are exact. `and`, `or` and `if_then_else`
evaluate a side only where it is used, on arrays too: `if_then_else(j != 0, i // j, 0)` has no trap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from layoutproof.ir import semantics
from layoutproof.ir.expr import (
    FALSE,
    TRUE,
    Binary,
    Cast,
    Compare,
    Expr,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Select,
    Var,
)
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.node import Node
from layoutproof.ir.operators import COMPARISONS, BinaryOp, LogicalOp
from layoutproof.ir.semantics import Trap
from layoutproof.ir.visit import children, free_variables

if TYPE_CHECKING:
    import numpy as np
else:
    from layoutproof.ir.late import np


Value = Any  # int, bool, or an int64 / bool array of one common shape


class Overflow(Exception):
    """An int64 array operation whose exact result may not fit 64 bits; evaluate on object arrays instead."""


_LIMIT = 1 << 63
_WIDEST_SHIFT = 63


def _reach(value: Value) -> int:
    """The largest magnitude in a value."""
    if isinstance(value, np.ndarray):
        return max(abs(int(value.min())), abs(int(value.max()))) if value.size else 0
    return abs(int(value))


def _is_narrow(*values: Value) -> bool:
    """Whether an operation on these happens in int64: an array of it is among them."""
    return any(isinstance(v, np.ndarray | np.integer) and v.dtype != object for v in values)


def _guarded(
    operation: Callable[[Value, Value], Value], reach: Callable[[int, int], int]
) -> Callable[[Value, Value], Value]:
    """The operation; refuses int64 operands whose result may leave 64 bits, by the bound `reach` of magnitudes."""

    def apply(a: Value, b: Value) -> Value:
        if type(a) is int and type(b) is int:
            return operation(a, b)
        if _is_narrow(a, b) and (reach(_reach(a), _reach(b)) >= _LIMIT):
            raise Overflow
        return operation(a, b)

    return apply


def _divisor(b: Value) -> Value:
    if b == 0 if isinstance(b, int) else np.any(np.equal(b, 0)):
        raise Trap("a division by zero")
    return b


def _amount(b: Value) -> Value:
    outside = (
        not 0 <= b <= _WIDEST_SHIFT if isinstance(b, int) else np.any(np.less(b, 0) | np.greater(b, _WIDEST_SHIFT))
    )
    if outside:
        raise Trap(f"a shift by a negative amount or by more than {_WIDEST_SHIFT}")
    return b


def _truncdiv(a: Value, b: Value) -> Value:
    if isinstance(a, int) and isinstance(b, int):
        return semantics.truncdiv(a, b)
    quotient = np.abs(a) // np.abs(_divisor(b))
    return np.where((np.asarray(a) >= 0) == (np.asarray(b) >= 0), quotient, -quotient)


def _truncmod(a: Value, b: Value) -> Value:
    if isinstance(a, int) and isinstance(b, int):
        return semantics.truncmod(a, b)
    remainder = np.abs(a) % np.abs(_divisor(b))
    return np.where(np.asarray(a) >= 0, remainder, -remainder)


_BINARY: dict[BinaryOp, Callable[[Value, Value], Value]] = {
    BinaryOp.ADD: _guarded(lambda a, b: a + b, lambda a, b: a + b),
    BinaryOp.SUB: _guarded(lambda a, b: a - b, lambda a, b: a + b),
    BinaryOp.MUL: _guarded(lambda a, b: a * b, lambda a, b: a * b),
    BinaryOp.FLOORDIV: lambda a, b: a // _divisor(b),
    BinaryOp.FLOORMOD: lambda a, b: a % _divisor(b),
    BinaryOp.TRUNCDIV: _truncdiv,
    BinaryOp.TRUNCMOD: _truncmod,
    BinaryOp.MIN: lambda a, b: min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b),
    BinaryOp.MAX: lambda a, b: max(a, b) if isinstance(a, int) and isinstance(b, int) else np.maximum(a, b),
    BinaryOp.BITAND: lambda a, b: a & b,
    BinaryOp.BITOR: lambda a, b: a | b,
    BinaryOp.BITXOR: lambda a, b: a ^ b,
    BinaryOp.SHL: _guarded(lambda a, b: a << _amount(b), lambda a, b: a << min(b, _WIDEST_SHIFT)),
    BinaryOp.SHR: lambda a, b: a >> _amount(b),
}


def _is_exact(env: Mapping[str, Value]) -> bool:
    """Whether the arrays are of Python integers."""
    return any(isinstance(v, np.ndarray) and v.dtype == object for v in env.values())


def _merged(condition: Value, then: Value, otherwise: Value, env: Mapping[str, Value]) -> Value:
    """Each where it is chosen; of Python integers where the variables are, also when both sides are constants."""
    if not _is_exact(env) or (_is_truth(then) and _is_truth(otherwise)):
        return np.where(condition, then, otherwise)
    return np.where(condition, np.asarray(then, dtype=object), np.asarray(otherwise, dtype=object))


def _is_truth(value: Value) -> bool:
    return bool(np.asarray(value).dtype == np.bool_)


def _is_single(value: Value) -> bool:
    return isinstance(value, bool | int) or isinstance(value, np.bool_)


def _choose(expr: Select | IfThenElseExpr, env: Mapping[str, Value]) -> Value:
    condition = evaluate(expr.condition, env)
    if isinstance(expr, Select):
        then, otherwise = evaluate(expr.then, env), evaluate(expr.otherwise, env)
        if _is_single(condition):
            return then if condition else otherwise
        return _merged(condition, then, otherwise, env)
    if _is_single(condition):
        return evaluate(expr.then if condition else expr.otherwise, env)
    return _where(condition, expr.then, expr.otherwise, env)


def _logical(expr: Logical, env: Mapping[str, Value]) -> Value:
    left = evaluate(expr.lhs, env)
    if _is_single(left):
        stays = bool(left) is (expr.op is LogicalOp.OR)
        return bool(left) if stays else evaluate(expr.rhs, env)
    if expr.op is LogicalOp.AND:
        return _where(left, expr.rhs, FALSE, env)
    return _where(left, TRUE, expr.rhs, env)


def _where(condition: Value, then: Expr, otherwise: Expr, env: Mapping[str, Value]) -> Value:
    """`then` where the condition holds, else `otherwise`; each only where it is used if elsewhere it could fail."""
    try:
        return _merged(condition, evaluate(then, env), evaluate(otherwise, env), env)
    except (Trap, Overflow):
        names = {v.name for side in (then, otherwise) for v in free_variables(side)}
        arrays = {name: env[name] for name in names if isinstance(env.get(name), np.ndarray)}
        shape = np.broadcast_shapes(np.shape(condition), *(a.shape for a in arrays.values()))
        mask = np.broadcast_to(np.asarray(condition, dtype=bool), shape)
        wide = {name: np.broadcast_to(a, shape) for name, a in arrays.items()}
        parts = []
        for side, chosen in ((then, mask), (otherwise, ~mask)):
            part = np.zeros(0, dtype=np.int64)
            if chosen.any():
                part = np.asarray(evaluate(side, {**env, **{name: a[chosen] for name, a in wide.items()}}))
            parts.append((chosen, part))
        types = [part.dtype for chosen, part in parts if chosen.any()]
        exact = _is_exact(env) and any(dtype != np.bool_ for dtype in types)
        result = np.zeros(shape, dtype=object if exact else np.result_type(*types))
        for chosen, part in parts:
            result[chosen] = part
        return result


def _variable(expr: Var, env: Mapping[str, Value]) -> Value:
    if expr.name not in env:
        raise KeyError(f"no value for {expr.name}")
    return env[expr.name]


def _call(expr: Call, env: Mapping[str, Value]) -> Value:
    if expr.function != "abs":
        raise TypeError(f"{expr.function} is not index arithmetic")
    return abs(evaluate(expr.arguments[0], env))


def _not(value: Value) -> Value:
    return np.logical_not(value) if isinstance(value, np.ndarray) else not value


_EVALUATORS: dict[type[Expr], Callable[[Any, Mapping[str, Value]], Value]] = {
    IntImm: lambda e, env: bool(e.value) if e.dtype.is_bool else e.value,
    Var: _variable,
    Binary: lambda e, env: _BINARY[e.op](evaluate(e.lhs, env), evaluate(e.rhs, env)),
    Compare: lambda e, env: COMPARISONS[e.op](evaluate(e.lhs, env), evaluate(e.rhs, env)),
    Logical: _logical,
    Not: lambda e, env: _not(evaluate(e.operand, env)),
    Select: _choose,
    IfThenElseExpr: _choose,
    # Index arithmetic is over the integers: a cast between integer widths is the identity, proved to fit elsewhere.
    Cast: lambda e, env: evaluate(e.value, env),
    Call: _call,
}


def foreign_part(expr: Expr) -> Node | None:
    """The first part of an expression that is not index arithmetic: an undefined value, a load, a float; or None."""
    seen: set[int] = set()  # a map may use its own results again and again: few nodes that are very many written out
    stack: list[Node] = [expr]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if type(node) not in _EVALUATORS or (isinstance(node, Call) and node.function != "abs"):
            return node
        stack += children(node)[::-1]
    return None


def evaluate(expr: Expr, env: Mapping[str, Value]) -> Value:
    """The value of index arithmetic where variables (by name) have the values of `env`.

    Raises Trap for a division by zero or a bad shift, Overflow where int64 arrays do not suffice (arrays of Python
    integers do), KeyError for a variable without a value, TypeError for anything that index arithmetic does not
    contain.
    """
    evaluator = _EVALUATORS.get(type(expr))
    if evaluator is None:
        raise TypeError(f"{type(expr).__name__} is not index arithmetic")
    return evaluator(expr, env)
