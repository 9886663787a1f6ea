"""Statements that may store what no operation computed: a literal that is no finite number, or a copy of one.

`nnan` and `ninf` speak of what the old program computes. An accumulator that starts at `-inf` and is stored to under a condition may keep
its literal, and whoever loads it finds an infinity that no licence excludes. Part of the trust base.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from layoutproof.ir.expr import Binary, Broadcast, Cast, Expr, IfThenElseExpr, Select, Var
from layoutproof.ir.intrinsics import Call
from layoutproof.verify.statements import Statement, Statements
from layoutproof.verify.values.terms import constant_value


def passing_on(statements: Statements) -> frozenset[int]:
    """The numbers of the statements that may store an infinity or a NaN that no float operation, and no input, brought about."""
    found: set[int] = set()
    while True:
        memories = {s.data for s in statements.statements if s.number in found}
        more = {s.number for s in statements.statements if s.value.dtype.is_float and any(_passes(s, e, memories) for e in _ends(s.value))}
        if more == found:
            return frozenset(found)
        found = more


def _ends(value: Expr) -> Iterator[Expr]:
    """What a value may be, its choices apart."""
    match value:
        case Select(then=a, otherwise=b) | IfThenElseExpr(then=a, otherwise=b):
            yield from _ends(a)
            yield from _ends(b)
        case Broadcast(value=inner):
            yield from _ends(inner)
        case _:
            yield value


def _passes(statement: Statement, end: Expr, memories: set[Var]) -> bool:
    match end:
        case Binary() | Call() | Cast():
            return False
        case Var():
            return any(read.var == end and read.data in memories for read in statement.reads)
        case _:
            number = constant_value(end)
            return number is None or not math.isfinite(number)
