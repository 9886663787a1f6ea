"""The primitives of tiling: splitting, fusing, and reordering of perfectly nested loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import ClassVar

from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import TRUE, Expr, IntImm, Var, const, is_zero
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Attributes, For, ForKind, statement_depth
from layoutproof.ir.visit import MAX_NESTING, substitute
from layoutproof.lowering import codes
from layoutproof.lowering.arith.affine import affine_of, expression_of
from layoutproof.lowering.loops.nest import (
    Chain,
    LoopName,
    chain_around,
    check_kind,
    depends,
    find_loop,
    fresh_variable,
    guarded,
    names_of,
    nest,
    path_to,
    put,
    scope_around,
    tidied,
    under,
)
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.witness_maps import rewrite_by_values

MOST_FACTORS = 64  # the index of the old loop is nested as deeply as the new loops are


@dataclass(frozen=True)
class Split(Pass):
    """Make one loop several, with these extents; one factor may be None and is then computed.

    The loop is named by its variable, or by its position among the loops around the block. The new ones are `i_0`,
    `i_1`, ..., outermost first, and of the old one's kind; of a vectorized loop only the innermost is. If the factors
    do not divide the extent, additional iterations are guarded off, in the blocks below or by a branch.
    """

    primitive: ClassVar[str] = "split"
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))
    factors: tuple[int | None, ...] = field(metadata=option(ArgumentKind.FACTORS))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the loop split.

        Raises LayoutproofError for an unknown loop or one bound to a thread, and for factors that do not cover the
        loop, or are too many to read the program again.
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


@dataclass(frozen=True)
class Reorder(Pass):
    """Put perfectly nested loops into this order, outermost first; others keep their places.

    Between the outermost and the innermost of the named loops only loops and branches may be; the branches go inside. A
    block's init goes with the instance at the start of its reduction.
    """

    primitive: ClassVar[str] = "reorder"
    moves_iterations: ClassVar[bool] = True
    block: str = field(metadata=option(ArgumentKind.NAME))
    loops: tuple[LoopName, ...] = field(metadata=option(ArgumentKind.LOOPS))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with its loops in the new order.

        Raises LayoutproofError for unknown or repeated loops, loops that are not perfectly nested, and a range that
        depends on a loop that would move inside.
        """
        wanted = [find_loop(func, self.block, name) for name in self.loops]
        for loop in wanted:
            check_kind(loop)
        chain = chain_of(func, wanted)
        inside = [loop for loop in chain.loops if any(loop is w for w in wanted)]
        if len(inside) != len(wanted):
            twice = next(w for n, w in enumerate(wanted) if any(w is other for other in wanted[:n]))
            raise error(codes.LOOP_NEST, f"loop {twice.var.name} is named twice", twice.span)
        following = iter(wanted)
        order = [next(following) if any(loop is w for w in wanted) else loop for loop in chain.loops]
        check_ranges(order)
        new = put(func, chain.links[0], nest(order, under(chain.conditions, chain.body)))
        return rewrite_by_values(func, new, {})


def chain_of(func: PrimFunc, loops: Sequence[For]) -> Chain:
    """The chain from the outermost to the innermost of some loops. Raises LayoutproofError if there is none."""
    deepest = max(loops, key=lambda loop: len(path_to(func.body, loop)))
    chain = chain_around((*path_to(func.body, deepest), deepest), deepest.body)
    missing = next((loop for loop in loops if not any(loop is link for link in chain.links)), None)
    if missing is not None:
        message = f"between the loops {missing.var.name} and {deepest.var.name} stands more than loops and branches"
        hint = "only loops that stand directly in one another can change places or become one"
        raise error(codes.LOOP_NEST, message, missing.span, help=hint)
    start = min(n for n, link in enumerate(chain.links) if any(link is loop for loop in loops))
    return Chain(chain.links[start:], chain.body)


def check_ranges(order: Sequence[For], why_not: str = "which would come to stand inside it") -> None:
    """Raise LayoutproofError if a loop's range depends on a loop inside it; `why_not` ends the message."""
    for n, loop in enumerate(order):
        for inner in order[n + 1 :]:
            if depends(loop.start, (inner.var,)) or depends(loop.extent, (inner.var,)):
                message = f"the range of loop {loop.var.name} depends on {inner.var.name}, {why_not}"
                raise error(codes.LOOP_NEST, message, loop.span)


@dataclass(frozen=True)
class Fuse(Pass):
    """Fuse perfectly nested loops, named outermost first, into one: `i_j_fused` of `i` and `j`.

    All loops between the first and the last must be named. Branches between them go inside. The new loop counts from 0
    and is of the old ones' kind, serial if they differ; the old loops become its digits.
    """

    primitive: ClassVar[str] = "fuse"
    block: str = field(metadata=option(ArgumentKind.NAME))
    loops: tuple[LoopName, ...] = field(metadata=option(ArgumentKind.LOOPS))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the loops fused.

        Raises LayoutproofError for unknown loops, loops that are not perfectly nested in this order, a range that
        depends on another one's variable, and a number of iterations that does not fit the loops' type.
        """
        wanted = [find_loop(func, self.block, name) for name in self.loops]
        for loop in wanted:
            check_kind(loop)
        chain = chain_of(func, wanted)
        _check_order(wanted, chain.loops)
        # No range may depend on a loop outside it either, which the reversed order checks.
        check_ranges(tuple(reversed(wanted)), "which would be part of the same loop")
        _check_alike(wanted)
        fused = _fused(func, wanted)
        values = _values(wanted, fused.var)
        scope = scope_around(func, chain.links[0]).with_range(fused.var, fused.start, fused.extent)
        body = tidied(substitute(under(chain.conditions, chain.body), values), scope)
        return rewrite_by_values(func, put(func, chain.links[0], replace(fused, body=body)), values)


def _check_order(wanted: Sequence[For], found: Sequence[For]) -> None:
    twice = next((w for n, w in enumerate(wanted) if any(w is other for other in wanted[:n])), None)
    if twice is not None:
        raise error(codes.LOOP_NEST, f"loop {twice.var.name} is named twice", twice.span)
    between = next((loop for loop in found if not any(loop is w for w in wanted)), None)
    if between is not None:
        message = f"loop {between.var.name} stands between the loops that are to be one, and is not named"
        raise error(codes.LOOP_NEST, message, between.span)
    if any(a is not b for a, b in zip(wanted, found, strict=True)):
        order = ", ".join(loop.var.name for loop in found)
        raise error(
            codes.LOOP_NEST,
            "loops that are fused are named outermost first",
            found[0].span,
            help=f"they stand as {order}",
        )


def _check_alike(loops: Sequence[For]) -> None:
    """Raise LayoutproofError for loops that cannot be one: of different types, too long together, or annotated
    inside.
    """
    names = ", ".join(loop.var.name for loop in loops)
    types = dict.fromkeys(loop.var.dtype for loop in loops)
    if len(types) > 1:
        shown = " and ".join(str(t) for t in types)
        raise error(codes.LOOP_NEST, f"the loops {names} count in different types, {shown}", loops[0].span)
    total = prod(loop.extent.value for loop in loops if isinstance(loop.extent, IntImm))
    if total > loops[0].var.dtype.max_int:
        raise error(
            codes.SPLIT_FACTORS,
            f"the loops {names} make {total} iterations, which do not fit {loops[0].var.dtype}",
            loops[0].span,
        )
    marked = next((loop for loop in loops[1:] if loop.annotations != Attributes()), None)
    if marked is not None:
        message = f"loop {marked.var.name} has annotations, which would apply to the other loops as well"
        raise error(codes.LOOP_NEST, message, marked.span)


def _fused(func: PrimFunc, loops: Sequence[For]) -> For:
    variable = fresh_variable("_".join((*(loop.var.name for loop in loops), "fused")), loops[0].var, names_of(func))
    kinds = {loop.kind for loop in loops}
    kind = kinds.pop() if len(kinds) == 1 else ForKind.SERIAL
    return replace(loops[0], var=variable, start=const(0, variable.dtype), extent=_product(loops), kind=kind)


def _product(loops: Sequence[For]) -> Expr:
    """The number of iterations: symbols as they stand, times the constants."""
    known = prod(loop.extent.value for loop in loops if isinstance(loop.extent, IntImm))
    result: Expr | None = None
    for extent in (loop.extent for loop in loops if not isinstance(loop.extent, IntImm)):
        result = extent if result is None else result * extent
    constant = const(known, loops[0].var.dtype)
    if result is None:
        return constant
    return result if known == 1 else result * constant


def _values(loops: Sequence[For], fused: Var) -> dict[Var, Expr]:
    """The old loops as digits of the new one: no remainder in the first, no quotient in the last, 0 for one
    iteration.
    """
    long = [loop for loop in loops if loop.extent != const(1, fused.dtype)]
    values: dict[Var, Expr] = {}
    for loop in loops:
        digit: Expr = const(0, fused.dtype)
        if any(loop is other for other in long):
            position = next(n for n, other in enumerate(long) if other is loop)
            inner = long[position + 1 :]
            digit = fused // _product(inner) if inner else fused
            digit = digit % loop.extent if position > 0 else digit
        values[loop.var] = digit if is_zero(loop.start) else loop.start + digit
    return values
