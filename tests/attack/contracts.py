"""Inputs that satisfy what a program assumes of its parameters: assumed cells are set, other conditions are met by tame
values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Binary, Broadcast, Cast, Compare, Expr, FloatImm, IntImm, Logical, Not, Var
from layoutproof.ir.intrinsics import Assume, Call, Limit, LimitKind, Undef
from layoutproof.ir.operators import COMPARISONS, BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import max_finite
from layoutproof.ir.stmt import Allocate, Block, DeclBuffer, Evaluate, For, IfThenElse, Seq, Stmt
from layoutproof.ir.visit import kinds_in, loads_in

Arrays = dict[str, NDArray[Any]]
Env = Mapping[str, int]
_TAME = (1.0, 0.0, 2.0, -1.0, 3.0, 0.5)


class NotSaid(Exception):
    """An assumption that cannot be read here: whoever needs it tries inputs until the interpreter accepts one."""


def satisfy(func: PrimFunc, arrays: Arrays, symbols: Env) -> None:
    """Change `arrays` (by buffer name, in place) so that assumptions about parameters hold where they can be read."""
    if Assume not in kinds_in(func.body):
        return
    for condition, env in _assumptions(func.body, dict(symbols)):
        try:
            _settle(condition, env, arrays)
        except NotSaid:
            continue


def _assumptions(stmt: Stmt, env: dict[str, int]) -> Iterator[tuple[Expr, dict[str, int]]]:
    match stmt:
        case For():
            start, extent = int(evaluate(stmt.start, env)), int(evaluate(stmt.extent, env))
            if any(isinstance(s, Evaluate) for s in _below(stmt)):
                for value in range(start, start + extent):
                    yield from _assumptions(stmt.body, {**env, stmt.var.name: value})
        case Seq():
            for each in stmt.body:
                yield from _assumptions(each, env)
        case IfThenElse():
            if not list(loads_in(stmt.condition)) and evaluate(stmt.condition, env):
                yield from _assumptions(stmt.then, env)
        case Block():
            inner = {**env, **{v.var.name: int(evaluate(v.binding, env)) for v in stmt.iter_vars}}
            if list(loads_in(stmt.where)) or evaluate(stmt.where, inner):
                yield from _assumptions(stmt.body, inner)
        case Allocate() | DeclBuffer():
            yield from _assumptions(stmt.body, env)
        case Evaluate():
            if isinstance(stmt.value, Assume):
                yield stmt.value.condition, env
        case _:
            return


def _below(stmt: Stmt) -> Iterator[Stmt]:
    yield stmt
    for name in ("body", "then", "otherwise"):
        child = getattr(stmt, name, None)
        for each in child if isinstance(child, tuple) else (child,):
            if isinstance(each, Stmt):
                yield from _below(each)


def _terms(condition: Expr, op: LogicalOp) -> list[Expr]:
    if isinstance(condition, Logical) and condition.op is op:
        return [*_terms(condition.lhs, op), *_terms(condition.rhs, op)]
    return [condition]


def _settle(condition: Expr, env: Env, arrays: Arrays) -> None:
    for part in _terms(condition, LogicalOp.AND):
        choices = _terms(part, LogicalOp.OR)
        open_ones = [c for c in choices if list(loads_in(c))]
        if any(number(c, env, arrays) for c in choices if c not in open_ones) or not open_ones:
            continue
        last = open_ones[-1]
        if isinstance(last, Compare) and last.op is CompareOp.EQ and isinstance(last.lhs, BufferLoad):
            if not isinstance(last.rhs, Undef):
                _put(last.lhs, number(last.rhs, env, arrays), env, arrays)
        else:
            _tame(last, env, arrays)


def _tame(condition: Expr, env: Env, arrays: Arrays) -> None:
    for value in _TAME:
        if number(condition, env, arrays):
            return
        for load in loads_in(condition):
            _put(load, value, env, arrays)


def _put(load: BufferLoad, value: Any, env: Env, arrays: Arrays) -> None:
    array = arrays.get(load.buffer.name)
    if array is None:
        raise NotSaid
    index = tuple(int(number(i, env, arrays)) for i in load.indices)
    if all(0 <= i < n for i, n in zip(index, array.shape, strict=True)):
        array[index] = value


_ARITHMETIC: Mapping[BinaryOp, Callable[[Any, Any], Any]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.FLOORDIV: lambda a, b: a // b,
    BinaryOp.FLOORMOD: lambda a, b: a % b,
    BinaryOp.MIN: lambda a, b: a if a < b else b,
    BinaryOp.MAX: lambda a, b: a if a > b else b,
    BinaryOp.BITAND: lambda a, b: a & b,
    BinaryOp.BITOR: lambda a, b: a | b,
    BinaryOp.BITXOR: lambda a, b: a ^ b,
}


def number(expr: Expr, env: Env, arrays: Arrays) -> Any:
    """The value of a scalar expression that assumptions are made of. Raises NotSaid for anything else."""
    match expr:
        case IntImm() | FloatImm():
            return expr.value
        case Var():
            if expr.name not in env:
                raise NotSaid
            return env[expr.name]
        case Not():
            return not number(expr.operand, env, arrays)
        case Logical():
            parts = (bool(number(e, env, arrays)) for e in (expr.lhs, expr.rhs))
            return all(parts) if expr.op is LogicalOp.AND else any(parts)
        case Compare():
            return COMPARISONS[expr.op](number(expr.lhs, env, arrays), number(expr.rhs, env, arrays))
        case Binary() if expr.op in _ARITHMETIC:
            with np.errstate(all="ignore"):
                return _ARITHMETIC[expr.op](number(expr.lhs, env, arrays), number(expr.rhs, env, arrays))
        case BufferLoad():
            array = arrays.get(expr.buffer.name)
            index = tuple(int(number(i, env, arrays)) for i in expr.indices)
            if array is None or not all(0 <= i < n for i, n in zip(index, array.shape, strict=True)):
                raise NotSaid
            return array[index].item()
        case Call() if expr.function == "abs":
            return abs(number(expr.arguments[0], env, arrays))
        case Limit():
            return _limit(expr)
        case Cast() | Broadcast():
            return number(expr.value, env, arrays)
        case _:
            raise NotSaid


def _limit(expr: Limit) -> Any:
    if expr.kind is LimitKind.INFINITY:
        return math.inf
    if expr.dtype.is_float:
        return max_finite(expr.dtype) if expr.kind is LimitKind.MAX else -max_finite(expr.dtype)
    return expr.dtype.max_int if expr.kind is LimitKind.MAX else expr.dtype.min_int
