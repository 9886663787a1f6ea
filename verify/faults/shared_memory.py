"""How much memory the threads of a block share: within a limit, for all sizes. A program that asks for more does not
run on that device, so this is asked of a device or of a number, not of every program.
"""

from __future__ import annotations

from collections.abc import Iterator

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import INT64
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, const, widen
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, Block, For, ForKind, Stmt
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.threads.axes import Sharing, sharing_of
from layoutproof.ir.visit import buffers_in, children, free_variables, walk
from layoutproof.verify.faults.facts import STRUCTURE, Facts, left_open, proved, refuted, unknown, values_text
from layoutproof.verify.program.instances import IterationDomain
from layoutproof.verify.program.questions import above
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Verdict


def prove_shared_fits(func: PrimFunc, limit: int, where: Expr | None = None) -> tuple[Verdict, ...]:
    """One verdict a kernel: its shared buffers together have at most `limit` bytes, whatever the sizes.

    All buffers count that a kernel uses, also where they are not needed at the same time.
    """
    facts = Facts.of(func, where)
    allocated = set(_allocated(func.body))
    return tuple(_prove(facts, kernel, allocated, limit) for kernel in _kernels(func.body))


def _kernels(stmt: Stmt) -> Iterator[For]:
    if isinstance(stmt, For) and stmt.kind is ForKind.THREAD_BINDING:
        yield stmt
        return
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from _kernels(child)


def _allocated(stmt: Stmt) -> Iterator[Buffer]:
    for node in walk(stmt):
        if isinstance(node, Allocate):
            yield node.buffer
        elif isinstance(node, Block):
            yield from node.alloc_buffers


def _prove(facts: Facts, kernel: For, allocated: set[Buffer], limit: int) -> Verdict:
    watch = facts.watch()
    shared = [
        buffer
        for buffer in dict.fromkeys(buffers_in(kernel))
        if buffer in allocated and sharing_of(buffer.scope, in_kernel=True) is Sharing.BLOCK
    ]
    what = f"shared memory of the kernel {kernel.var.name} is within the limit of {limit} bytes"
    claim = Claim(ClaimKind.OTHER, what, buffers=tuple(b.name for b in shared), about=("shared", str(limit)))
    size = _bytes(shared)
    inner = next((v for v in free_variables(size) if v not in facts.program.symbols), None)
    if inner is not None:
        return unknown(claim, STRUCTURE, f"its size depends on {inner.name}", watch)
    found = facts.search(IterationDomain(), above(size, limit))
    if found.is_empty:
        return proved(claim, found.engine, watch, f"{expr_text(size, Style.PLAIN)} bytes")
    if found.point is None or not found.exact:
        return left_open(claim, found, watch)
    values = {v.name: found.point[v.name] for v in facts.program.symbols}
    number = int(evaluate(size, values))
    text = f"{number} bytes ({expr_text(size, Style.PLAIN)})" + (f" at {values_text(values)}" if values else "")
    return refuted(claim, found.engine, {"bytes": number, "values": values}, text, watch)


def _bytes(buffers: list[Buffer]) -> Expr:
    total: Expr = const(0, INT64)
    for buffer in buffers:
        size: Expr = const(buffer.dtype.bytes, INT64)
        for extent in buffer.shape:
            size = size * widen(extent, INT64)
        total = total + size
    return total
