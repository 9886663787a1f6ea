"""Ranges are written by their stop and kept by their extent: the two conversions, each the other's inverse."""

from __future__ import annotations

from layoutproof.ir.expr import Binary, BinaryOp, Expr, IntImm, is_zero, match_operands


def extent_between(start: Expr, stop: Expr) -> Expr:
    """`stop - start`, undone where `stop` was written as `start + extent`; so that what printing adds, reading takes away."""
    if isinstance(start, IntImm) and isinstance(stop, IntImm) and stop.value - start.value <= start.dtype.max_int:
        return IntImm(stop.value - start.value, start.dtype, span=stop.span)
    if isinstance(stop, Binary) and stop.op is BinaryOp.ADD and stop.lhs == start:
        return stop.rhs
    if is_zero(start):
        return stop
    return Binary(BinaryOp.SUB, *match_operands(stop, start), span=stop.span)


def stop_of(start: Expr, extent: Expr) -> Expr:
    """The stop to write for a range, such that `extent_between(start, stop)` is the extent again."""
    if isinstance(start, IntImm) and isinstance(extent, IntImm) and start.value + extent.value <= start.dtype.max_int:
        return IntImm(start.value + extent.value, start.dtype)
    written_as_sum = isinstance(extent, Binary) and extent.op is BinaryOp.ADD and extent.lhs == start
    if is_zero(start) and not written_as_sum:
        return extent
    return Binary(BinaryOp.ADD, *match_operands(start, extent))
