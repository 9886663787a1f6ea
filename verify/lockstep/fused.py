"""Loops that were fused: one over `n * m` iterations is one over `n` with one over `m` inside, in the same order.

Part of the trust base.
"""

from __future__ import annotations

from dataclasses import replace

from layoutproof.ir.expr import Expr, IntImm, Var, const
from layoutproof.ir.stmt import For, ForKind, Let
from layoutproof.verify.instances import Scene
from layoutproof.verify.integers import at_least
from layoutproof.verify.lockstep.asking import Asking
from layoutproof.verify.lockstep.items import Item
from layoutproof.verify.lockstep.scenes import is_speakable
from layoutproof.verify.radix import Polynomial


def try_apart(old: Item, new: Item, scene: Scene, asking: Asking) -> tuple[list[Item], list[Item]] | None:
    """Two loops, one of which has the other's iterations and more: that one as two. None where they are nothing of the sort."""
    match old.node, new.node:
        case (For() as a, For() as b):
            theirs = _two_of(new, b, old.say(a.extent), scene, asking)
            if theirs is not None:
                return [old], [theirs]
            mine = _two_of(old, a, new.say(b.extent), scene, asking)
            return None if mine is None else ([mine], [new])
        case _:
            return None


def _two_of(item: Item, loop: For, outer: Expr, scene: Scene, asking: Asking) -> Item | None:
    """A loop from 0 over `outer * inner` iterations, with `inner` found here, as two; None where it is no such loop.

    The loop's variable is `v_outer * inner + v_inner` then, which counts up one by one, as the two go through their iterations: as long as
    one of the two extents is not negative, both ways have none where the other has none.
    """
    start, extent, dtype = item.say(loop.start), item.say(loop.extent), loop.var.dtype
    if loop.kind is ForKind.THREAD_BINDING or not (isinstance(start, IntImm) and start.value == 0):
        return None
    if not all(is_speakable(e) and asking.is_of_symbols(e, dtype) for e in (extent, outer)):
        return None
    quotient, rest = Polynomial.of(extent).divided(Polynomial.of(outer))
    if rest.terms or quotient.constant in (0, 1):
        return None
    inner = quotient.to_expr() if quotient.constant is None else const(quotient.constant, dtype)
    if inner.dtype != dtype or not any(asking.always(scene, at_least(e, 0)) for e in (inner, outer)):
        return None
    # No program's names have such marks, so nothing in the body is captured.
    first, second = (Var(f"{loop.var.name}'{mark}", dtype) for mark in ("outer", "inner"))
    zero = const(0, dtype)
    body = Let(loop.var, first * inner + second, loop.body, span=loop.span)
    inside = replace(loop, var=second, start=zero, extent=inner, body=body)
    return replace(item, node=replace(loop, var=first, start=zero, extent=outer, body=inside))
