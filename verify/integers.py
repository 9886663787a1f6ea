"""Comparisons of index expressions whatever their integer types: over the integers, as all proofs about indices are."""

from __future__ import annotations

from layoutproof.ir.dtype import INT64
from layoutproof.ir.expr import Cast, CompareOp, Expr, IntImm, compare, const


def compare_integers(op: CompareOp, a: Expr, b: Expr | int) -> Expr:
    """`a op b` over the integers. A cast in it never changes a value, and is not meant to be executed."""
    right = const(b) if isinstance(b, int) else b
    if a.dtype.kind is right.dtype.kind:
        return compare(op, a, right)
    return compare(op, _plain(a), _plain(right))


def _plain(expr: Expr) -> Expr:
    if isinstance(expr, IntImm) and INT64.min_int <= expr.value <= INT64.max_int:
        return IntImm(expr.value, INT64)
    return Cast(INT64, expr)


def below(a: Expr, b: Expr | int) -> Expr:
    """`a < b` over the integers."""
    return compare_integers(CompareOp.LT, a, b)


def at_least(a: Expr, b: Expr | int) -> Expr:
    """`a >= b` over the integers."""
    return compare_integers(CompareOp.GE, a, b)


def above(a: Expr, b: Expr | int) -> Expr:
    """`a > b` over the integers."""
    return compare_integers(CompareOp.GT, a, b)


def same(a: Expr, b: Expr | int) -> Expr:
    """`a == b` over the integers."""
    return compare_integers(CompareOp.EQ, a, b)


def differ(a: Expr, b: Expr | int) -> Expr:
    """`a != b` over the integers."""
    return compare_integers(CompareOp.NE, a, b)
