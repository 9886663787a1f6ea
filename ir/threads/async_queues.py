"""What a kernel knows of its asynchronous copies at one place: how many groups were committed to a queue, and which of
them are complete, as expressions over the loops around.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.dtype import INT64
from layoutproof.ir.expr import Expr, IntImm, binary, equal, negated, widen
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.stmt import For
from layoutproof.ir.visit import substitute

ZERO = IntImm(0, INT64)
ONE = IntImm(1, INT64)


@dataclass(frozen=True, slots=True)
class Known:
    """Under `conditions`, the groups below `number` are complete."""

    number: Expr
    conditions: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue at one place of the kernel: how many groups were committed, whether copies may have been issued since,
    which groups the thread knows to be complete, and which all threads of its block.
    """

    committed: Expr = ZERO
    is_open: bool = False
    waited: tuple[Known, ...] = (Known(ZERO),)
    done: tuple[Known, ...] = (Known(ZERO),)

    def known(self, *, private: bool) -> tuple[Known, ...]:
        """What is known of the copies to a memory where it is touched."""
        return self.waited if private else self.done


def merged(one: Mapping[object, Queue], other: Mapping[object, Queue]) -> dict[object, Queue]:
    """What is known where only one of two ways was gone, on which nothing was committed or waited for."""
    return {key: replace(queue, is_open=queue.is_open or other[key].is_open) for key, queue in one.items()}


def at_head(loop: For, before: Sequence[Known], left: Sequence[Known], *, waits: bool) -> tuple[Known, ...]:
    """What is known where an iteration begins, from before the loop and from what each iteration leaves."""
    if not waits:
        return tuple(before)
    first, later = equal(loop.var, loop.start), loop.start < loop.var
    earlier = {loop.var: loop.var - IntImm(1, loop.var.dtype)}
    return (
        *(Known(k.number, (*k.conditions, first)) for k in before),
        *(Known(substitute(k.number, earlier), (*(substitute(c, earlier) for c in k.conditions), later)) for k in left),
    )


def after_loop(loop: For, before: Sequence[Known], ended: Sequence[Known], *, waits: bool) -> tuple[Known, ...]:
    """What is known behind a loop."""
    if not waits:
        return tuple(before)
    last = {loop.var: loop.start + loop.extent - IntImm(1, loop.var.dtype)}
    some = IntImm(0, loop.extent.dtype) < loop.extent
    return (
        *(Known(substitute(k.number, last), (*(substitute(c, last) for c in k.conditions), some)) for k in ended),
        *(Known(k.number, (*k.conditions, negated(some))) for k in before),
    )


def iterations(loop: For) -> Expr:
    """The number of iterations, which is not negative."""
    if isinstance(loop.extent, IntImm):
        return IntImm(max(loop.extent.value, 0), INT64)
    return binary(BinaryOp.MAX, widen(loop.extent, INT64), ZERO)


def plus(a: Expr, b: Expr) -> Expr:
    return _joined(BinaryOp.ADD, a, b)


def minus(a: Expr, b: Expr) -> Expr:
    return _joined(BinaryOp.SUB, a, b)


def times(a: Expr, b: Expr) -> Expr:
    if ONE in (widen(a, INT64), widen(b, INT64)):
        return widen(b if widen(a, INT64) == ONE else a, INT64)
    return _joined(BinaryOp.MUL, a, b)


_EXACT: Mapping[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
}


def _joined(op: BinaryOp, a: Expr, b: Expr) -> Expr:
    a, b = widen(a, INT64), widen(b, INT64)
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return IntImm(_EXACT[op](a.value, b.value), INT64)
    if b == ZERO and op is not BinaryOp.MUL:
        return a
    if op is BinaryOp.MUL and ZERO in (a, b):
        return ZERO
    return b if op is BinaryOp.ADD and a == ZERO else binary(op, a, b)
