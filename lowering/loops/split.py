"""Splitting a loop into several: the digits of its iterations in a mixed radix."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import ClassVar

from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import TRUE, Expr, IntImm, Var, const, is_zero
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Attributes, For, ForKind
from layoutproof.ir.visit import MAX_NESTING, statement_depth, substitute
from layoutproof.lowering import codes
from layoutproof.lowering.affine import affine_of, expression_of
from layoutproof.lowering.arguments import ArgumentKind
from layoutproof.lowering.loops.guards import guarded
from layoutproof.lowering.loops.nest import LoopName, check_kind, find_loop, fresh_variable, names_of, nest, put
from layoutproof.lowering.passes import Pass, option
from layoutproof.lowering.witness import rewrite_by_values

MOST_FACTORS = 64  # the index of the old loop is nested as deeply as the new loops are


@dataclass(frozen=True)
class Split(Pass):
    """Make one loop several, outermost first (the roadmap's row sum: `j` becomes `j_outer`, `j_inner`).

    `factors` are the extents of the new loops; one may be null, and is as large as it takes. Where the factors do not divide the
    extent, the iterations beyond it are guarded off, in the blocks below or by a branch. The new loops are called `i_0`, `i_1`, ...
    and are of the old one's kind; of a vectorized loop only the innermost is.
    """

    primitive: ClassVar[str] = "split"
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))
    factors: tuple[int | None, ...] = field(metadata=option(ArgumentKind.FACTORS))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the loop split.

        Raises LayoutproofError for a loop that is not there or is bound to a thread, and for factors that do not cover the loop, or
        are so many that the program could not be read again.
        """
        loop = find_loop(func, self.block, self.loop)
        check_kind(loop)
        count = len(self.factors)
        if count > MOST_FACTORS or statement_depth(func.body, nested=True) + count > MAX_NESTING:
            message = f"{count} factors are too many: a program whose loops are nested so deeply cannot be read again"
            raise error(codes.SPLIT_FACTORS, message, loop.span)
        extents = _extents(loop, self.factors)
        taken = names_of(func)
        variables = [fresh_variable(f"{loop.var.name}_{k}", loop.var, taken) for k in range(len(extents))]
        offset = _offset(variables, extents)
        value = offset if is_zero(loop.start) else loop.start + offset
        guard = TRUE if _divides(loop.extent, extents) else offset < loop.extent
        body = guarded(substitute(loop.body, {loop.var: value}), guard)
        new = put(func, loop, nest(_loops(loop, variables, extents), body))
        return rewrite_by_values(func, new, {loop.var: value})


def _extents(loop: For, factors: tuple[int | None, ...]) -> tuple[Expr, ...]:
    """The extents of the new loops, of the loop's type."""
    dtype = loop.var.dtype
    known = prod(f for f in factors if f is not None)
    shown = ", ".join("null" if f is None else str(f) for f in factors)
    if known > dtype.max_int:
        raise error(codes.SPLIT_FACTORS, f"the factors {shown} of loop {loop.var.name} do not fit {dtype}", loop.span)
    if None not in factors:
        if not isinstance(loop.extent, IntImm):
            message = f"loop {loop.var.name} has no constant extent; the factors {shown} need not cover it"
            raise error(codes.SPLIT_FACTORS, message, loop.span, help="let one factor be null")
        if known < loop.extent.value:
            message = f"the factors {shown} make {known} iterations, loop {loop.var.name} has {loop.extent.value}"
            raise error(codes.SPLIT_FACTORS, message, loop.span, help="let one factor be null, or larger")
    return tuple(_quotient(loop.extent, known, dtype) if f is None else const(f, dtype) for f in factors)


def _quotient(extent: Expr, divisor: int, dtype: DType) -> Expr:
    """`extent / divisor`, rounded up."""
    if isinstance(extent, IntImm):
        return const(-(-extent.value // divisor), dtype)
    whole, rest = affine_of(extent).split(divisor)
    if not rest.terms and rest.constant == 0:
        return expression_of(whole, dtype)
    return extent if divisor == 1 else (extent + (divisor - 1)) // divisor


def _divides(extent: Expr, extents: tuple[Expr, ...]) -> bool:
    """Whether the new loops make exactly as many iterations."""
    factors = [e.value for e in extents if isinstance(e, IntImm)]
    total = affine_of(const(1, extent.dtype))
    for rest in (e for e in extents if not isinstance(e, IntImm)):
        total = affine_of(rest)
    difference = affine_of(extent) - total.scaled(prod(factors))
    return difference.is_constant and difference.constant == 0


def _offset(variables: list[Var], extents: tuple[Expr, ...]) -> Expr:
    """The iteration of the old loop, counted from 0. No partial sum is larger than the whole."""
    total: Expr = variables[-1]
    for k in reversed(range(len(variables) - 1)):
        weight = _weight(extents[k + 1 :])
        part = variables[k] if weight == const(1, variables[k].dtype) else variables[k] * weight
        total = part + total
    return total


def _weight(extents: tuple[Expr, ...]) -> Expr:
    known = prod(e.value for e in extents if isinstance(e, IntImm))
    open_ended = [e for e in extents if not isinstance(e, IntImm)]
    dtype = extents[0].dtype
    if not open_ended:
        return const(known, dtype)
    return open_ended[0] if known == 1 else open_ended[0] * const(known, dtype)


def _loops(loop: For, variables: list[Var], extents: tuple[Expr, ...]) -> list[For]:
    zero = const(0, loop.var.dtype)
    outer = ForKind.SERIAL if loop.kind is ForKind.VECTORIZED else loop.kind
    last = len(variables) - 1
    return [
        replace(
            loop,
            var=variable,
            start=zero,
            extent=extent,
            kind=loop.kind if k == last else outer,
            annotations=loop.annotations if k == 0 else Attributes(),
        )
        for k, (variable, extent) in enumerate(zip(variables, extents, strict=True))
    ]
