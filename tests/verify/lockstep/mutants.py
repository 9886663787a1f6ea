"""Programs that are slightly wrong: one part of a function's body replaced by another of its type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import (
    TRUE,
    Binary,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Select,
    Var,
    const,
)
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import NOTHING, Block, BufferStore, For, IfThenElse, IterKind, Seq, Stmt, seq
from layoutproof.ir.visit import bound_variables, map_children, walk

_TRUNCATING = {BinaryOp.FLOORDIV: BinaryOp.TRUNCDIV, BinaryOp.FLOORMOD: BinaryOp.TRUNCMOD}
_OPERATIONS = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX)


def mutants(func: PrimFunc, rng: Random, count: int) -> Iterator[PrimFunc]:
    """Up to `count` functions that differ from `func` in one place."""
    nodes = [n for n in walk(func.body) if not isinstance(n, Buffer)]
    statements = [n for n in nodes if isinstance(n, Stmt)]
    variables = list(dict.fromkeys(bound_variables(func.body)))
    for _ in range(count):
        node = rng.choice(statements if rng.random() < 0.5 else nodes)
        try:
            others = [*_expressions(node, rng, variables), *_statements(node, rng)]
            body = _with(func.body, node, rng.choice(others)) if others else func.body
        except (TypeError, ValueError):
            # What cannot be built is no program.
            continue
        if body != func.body:
            yield replace(func, body=body)


def _with(body: Stmt, node: Node, other: Node) -> Stmt:
    done = False

    def visit(current: Node) -> Node:
        nonlocal done
        if current is node and not done:
            done = True
            return other
        return current if isinstance(current, Buffer) else map_children(current, visit)

    result = visit(body)
    assert isinstance(result, Stmt)
    return result


def _expressions(node: Node, rng: Random, variables: list[Var]) -> list[Node]:
    match node:
        case IntImm(value=value, dtype=dtype) if not dtype.is_bool:
            return [IntImm(v, dtype) for v in (value + 1, value - 1) if dtype.min_int <= v <= dtype.max_int]
        case FloatImm(value=value, dtype=dtype):
            return [const(v, dtype) for v in (0.0, -0.0, 1.0) if str(v) != str(value)]
        case Binary(op=op, lhs=lhs, rhs=rhs):
            floats = [Binary(o, lhs, rhs) for o in _OPERATIONS if o is not op]
            return [
                *floats,
                Binary(op, rhs, lhs),
                lhs,
                *([Binary(_TRUNCATING[op], lhs, rhs)] if op in _TRUNCATING else []),
            ]
        case Compare(op=op, lhs=lhs, rhs=rhs):
            return [
                *(Compare(o, lhs, rhs) for o in CompareOp if o is not op),
                *([TRUE] if node.dtype.lanes == 1 else []),
            ]
        case Logical(op=op, lhs=lhs, rhs=rhs):
            return [lhs, rhs, Logical(LogicalOp.OR if op is LogicalOp.AND else LogicalOp.AND, lhs, rhs)]
        case Not(operand=operand):
            return [operand]
        case Select(then=then, otherwise=otherwise) | IfThenElseExpr(then=then, otherwise=otherwise):
            return [then, otherwise, replace(node, then=otherwise, otherwise=then)]
        case Var(dtype=dtype) if dtype.is_integer:
            same: list[Expr] = [v for v in variables if v.dtype == dtype and v != node]
            return [rng.choice(same)] if same else []
        case BufferLoad(indices=indices) if len(indices) > 1:
            return [replace(node, indices=(*indices[1:], indices[0]))]
        case _:
            return []


def _statements(node: Node, rng: Random) -> list[Node]:
    match node:
        case BufferStore(indices=indices):
            return [NOTHING, seq(node, node), replace(node, indices=(*indices[1:], *indices[:1]))]
        case IfThenElse(condition=condition, then=then):
            return [then, NOTHING, replace(node, condition=Not(condition))]
        case Seq(body=body) if body:
            k = rng.randrange(len(body))
            return [seq(*body[:k], *body[k + 1 :]), seq(*body[k:], *body[:k]), seq(*body[: k + 1], *body[k:])]
        case For(body=For() as inner):
            return [replace(inner, body=replace(node, body=inner.body)), replace(node, extent=node.extent - 1)]
        case For():
            return [replace(node, extent=node.extent + 1), replace(node, extent=node.extent - 1)]
        case Block(init=init, body=body, iter_vars=iter_vars) if init is not None:
            spatial = tuple(replace(v, kind=IterKind.SPATIAL) for v in iter_vars)
            return [
                replace(node, init=None),
                replace(node, init=None, body=seq(init, body)),
                replace(node, iter_vars=spatial),
            ]
        case Block(where=where) if where != TRUE:
            return [replace(node, where=TRUE)]
        case _:
            return []
