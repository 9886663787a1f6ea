"""Fusing loops that stand directly in one another: one loop over the numbers whose digits they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import ClassVar

from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, IntImm, Var, const, is_zero
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Attributes, For, ForKind
from layoutproof.ir.visit import substitute
from layoutproof.lowering import codes
from layoutproof.lowering.arguments import ArgumentKind
from layoutproof.lowering.loops.guards import tidied
from layoutproof.lowering.loops.nest import LoopName, check_kind, find_loop, fresh_variable, names_of, put, scope_around, under
from layoutproof.lowering.loops.reorder import chain_of, check_ranges
from layoutproof.lowering.passes import Pass, option
from layoutproof.lowering.witness import rewrite_by_values


@dataclass(frozen=True)
class Fuse(Pass):
    """Make loops that stand directly in one another one loop, `i_j_fused` of `i` and `j` (the roadmap's loop transforms).

    The loops are named outermost first, and all loops between the first and the last must be named. Branches between them go inside.
    The new loop counts from 0 and is of the old ones' kind, serial where they differ; what was bound to the old loops is bound to its
    digits.
    """

    primitive: ClassVar[str] = "fuse"
    block: str = field(metadata=option(ArgumentKind.NAME))
    loops: tuple[LoopName, ...] = field(metadata=option(ArgumentKind.LOOPS))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the loops fused.

        Raises LayoutproofError for loops that are not there, do not stand directly in one another in this order, or whose range depends
        on another one's variable, and where the number of iterations does not fit the loops' type.
        """
        wanted = [find_loop(func, self.block, name) for name in self.loops]
        for loop in wanted:
            check_kind(loop)
        chain = chain_of(func, wanted)
        _check_order(wanted, chain.loops)
        # In this order no range may depend on a loop outside it either, which is what it says of the reversed order.
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
        raise error(codes.LOOP_NEST, "loops that are fused are named outermost first", found[0].span, help=f"they stand as {order}")


def _check_alike(loops: Sequence[For]) -> None:
    """Raise LayoutproofError for loops that cannot be one: of different types, too long together, or inner ones with annotations."""
    names = ", ".join(loop.var.name for loop in loops)
    types = dict.fromkeys(loop.var.dtype for loop in loops)
    if len(types) > 1:
        shown = " and ".join(str(t) for t in types)
        raise error(codes.LOOP_NEST, f"the loops {names} count in different types, {shown}", loops[0].span)
    total = prod(loop.extent.value for loop in loops if isinstance(loop.extent, IntImm))
    if total > loops[0].var.dtype.max_int:
        raise error(codes.SPLIT_FACTORS, f"the loops {names} make {total} iterations, which do not fit {loops[0].var.dtype}", loops[0].span)
    marked = next((loop for loop in loops[1:] if loop.annotations != Attributes()), None)
    if marked is not None:
        message = f"loop {marked.var.name} has annotations, which would be said of more than it"
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
    """The old loops as digits of the new one. The first digit needs no remainder, the last no quotient; of one iteration is none."""
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
