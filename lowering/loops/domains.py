"""Domains of block variables that must grow, once a guard that kept their bindings inside is gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layoutproof.ir.buffer import Range
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.stmt import IterVar
from layoutproof.ir.visit import free_variables
from layoutproof.lowering.affine import Affine, affine_of, expression_of
from layoutproof.lowering.known import Scope, conjuncts

_ROUNDS = 8  # loops whose ranges depend on one another are followed this deep


def grown(iter_var: IterVar, scope: Scope, dropped: Sequence[Expr], kept: Sequence[Expr]) -> IterVar:
    """The iteration variable with a domain that holds all its values, where it needs another one and one is found.

    `kept` are the conditions that still hold where the block runs. A domain that no dropped condition speaks of stays as it is.
    """
    spoken_of = {v for condition in dropped for v in free_variables(condition)}
    if not spoken_of & {*free_variables(iter_var.binding), iter_var.var}:
        return iter_var
    domain, dtype = iter_var.domain, iter_var.domain.start.dtype
    value, start = affine_of(iter_var.binding), affine_of(domain.start)
    end = start + affine_of(domain.extent)
    known = [part for condition in kept for part in conjuncts(condition)]
    low = start if _holds(value - start, scope, known) else _end(value, scope, highest=False)
    last = end + Affine({}, -1) if _holds(end + Affine({}, -1) - value, scope, known) else _end(value, scope, highest=True)
    if low is None or last is None:
        return iter_var
    extent = last - low + Affine({}, 1)
    if low == start and extent == affine_of(domain.extent):
        return iter_var
    if not (_is_sayable(low, dtype) and _is_sayable(extent, dtype)):
        return iter_var
    return replace(iter_var, domain=Range(expression_of(low, dtype), expression_of(extent, dtype)))


def _is_sayable(part: Affine, dtype: DType) -> bool:
    """Whether every number in it has a place in the type; the ends of a fused symbolic loop may have none."""
    return all(abs(number) <= dtype.max_int for number in (part.constant, *part.terms.values()))


def _holds(part: Affine, scope: Scope, known: Sequence[Affine]) -> bool:
    """Whether `part >= 0`, by what loops say or by a condition."""
    if scope.is_nonnegative(part):
        return True
    rests = (part - each for each in known)
    return any(rest.is_constant and rest.constant >= 0 for rest in rests)


def _end(value: Affine, scope: Scope, *, highest: bool) -> Affine | None:
    """The largest or the least value over the loops, in terms of what is the same throughout; None where that is not plain."""
    for _ in range(_ROUNDS):
        step = _one_out(value, scope, highest)
        if step is None:
            return None
        if step == value:
            return value
        value = step
    return None


def _one_out(value: Affine, scope: Scope, highest: bool) -> Affine | None:
    for term, coefficient in value.terms.items():
        upwards = (coefficient > 0) is highest
        rest = Affine({t: c for t, c in value.terms.items() if t != term}, value.constant)
        known = scope.known.get(term) if isinstance(term, Var) else None
        if known is not None:
            end = known.high if upwards else known.low
            if end is not None:
                return rest + end.scaled(coefficient)
            continue
        if any(_is_loop(v, scope) for v in free_variables(term)):
            bounds = scope.bounds(term)
            if not bounds.fits(term.dtype) or bounds.high >= term.dtype.max_int or bounds.low <= term.dtype.min_int:
                return None
            return rest + Affine({}, coefficient * (bounds.high if upwards else bounds.low))
    return value


def _is_loop(variable: Var, scope: Scope) -> bool:
    """Whether a variable changes in the course of the function: symbols have bounds, but no ends."""
    known = scope.known.get(variable)
    return known is not None and (known.low is not None or known.high is not None)
