"""Accesses that are whole vectors: ramps of stride 1 in the last index that start at a multiple of their length, and views of such."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Binary, BinaryOp, Cast, Expr, IntImm, Ramp, binary, const
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore
from layoutproof.ir.visit import walk
from layoutproof.lowering import codes
from layoutproof.lowering.affine import Affine, affine_of, expression_of

Access = BufferLoad | BufferStore


@dataclass(frozen=True, slots=True)
class WholeVector:
    """An access of a whole vector: its length, and the indices that count vectors on the last axis."""

    lanes: int
    indices: tuple[Expr, ...]


def accesses_in(func: PrimFunc) -> Iterator[Access]:
    """Every load and store of a function."""
    return (n for n in walk(func.body) if isinstance(n, BufferLoad | BufferStore))


def whole_vector(access: Access) -> WholeVector | None:
    """The whole vector that an access is; None for any other access."""
    last = access.indices[-1] if access.indices else None
    if not isinstance(last, Ramp) or access.buffer.dtype.lanes > 1:
        return None
    if not (isinstance(last.stride, IntImm) and last.stride.value == 1):
        return None
    position = divided(last.base, last.lanes)
    return None if position is None else WholeVector(last.lanes, (*access.indices[:-1], position))


def divided(expr: Expr, number: int) -> Expr | None:
    """`expr / number` where that is known to leave nothing over; None elsewhere. Index arithmetic, which does not wrap."""
    quotient, rest = _unwidened(affine_of(expr)).split(number)
    return expression_of(quotient, expr.dtype) if rest.is_constant and rest.constant == 0 else None


def _unwidened(affine: Affine) -> Affine:
    """The same integers: what is widened as a whole a sum of what is widened, a product's constant factor in front of it."""
    result = Affine({}, affine.constant)
    for term, coefficient in affine.terms.items():
        inner = Affine({term: 1})
        match term:
            case Cast(dtype=dtype, value=value) if value.dtype.is_integer and value.dtype.bits <= dtype.bits:
                inner = _unwidened(affine_of(value))
            case Binary(op=BinaryOp.MUL, lhs=lhs, rhs=rhs):
                (left, one), (right, other) = _with_factor(lhs), _with_factor(rhs)
                inner = Affine({Binary(BinaryOp.MUL, left, right): one * other})
            case _:
                pass
        result = result + inner.scaled(coefficient)
    return result


def _with_factor(expr: Expr) -> tuple[Expr, int]:
    """An integer expression without its constant factor, and that factor; the expression as it is where that is 1."""
    affine = _unwidened(affine_of(expr))
    factor = gcd(affine.constant, *affine.terms.values())
    return (expression_of(affine.split(factor)[0], expr.dtype), factor) if factor > 1 else (expr, 1)


def vector_view(buffer: Buffer, lanes: int, name: str) -> Buffer | None:
    """The buffer as one of vectors: a last axis of that many fewer elements. None where rows are no whole number of vectors, and where
    the buffer has strides, an offset, or lanes already.

    The one axis of a flat buffer may have a rest behind its last vector, which the view does not see.
    """
    plain = not buffer.strides and buffer.elem_offset == const(0, buffer.elem_offset.dtype)
    if not plain or not buffer.shape or buffer.dtype.lanes > 1 or "texture" in buffer.scope:
        return None
    extent = divided(buffer.shape[-1], lanes)
    if extent is None:
        if buffer.rank > 1:
            return None
        extent = _quotient(buffer.shape[-1], lanes)
    return replace(buffer, name=name, dtype=buffer.dtype.with_lanes(lanes), shape=(*buffer.shape[:-1], extent))


def _quotient(extent: Expr, lanes: int) -> Expr:
    number = const(lanes, extent.dtype)
    return const(extent.value // lanes, extent.dtype) if isinstance(extent, IntImm) else binary(BinaryOp.FLOORDIV, extent, number)


def check_no_blocks(func: PrimFunc, primitive: str) -> None:
    """Raise LayoutproofError for a function with blocks."""
    block = next((n for n in walk(func.body) if isinstance(n, Block)), None)
    if block is not None:
        message = f"{primitive} takes a program without blocks, and there is block {block.name}: lower_blocks goes first"
        raise error(codes.BLOCKS_FIRST, message, block.span)
