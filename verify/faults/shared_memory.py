"""How much memory the threads of a block share: within a limit, for all sizes. A program that asks for more does not
run on that device, so this is asked of a device or of a number, not of every program.
"""

from __future__ import annotations

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import INT64
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var, const, is_zero, widen
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, AttrStmt, Block
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.threads.axes import KERNEL, Sharing, sharing_of
from layoutproof.ir.threads.sequential import Barriers, NoSequence, sequential
from layoutproof.ir.visit import free_variables, nodes_of, walk
from layoutproof.verify.faults.facts import STRUCTURE, Facts, left_open, proved, refuted, unknown, values_text
from layoutproof.verify.program.instances import IterationDomain
from layoutproof.verify.program.questions import above, below
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Verdict


def prove_shared_fits(func: PrimFunc, limit: int, where: Expr | None = None) -> tuple[Verdict, ...]:
    """One verdict a kernel: its shared buffers together have at most `limit` bytes, whatever the sizes.

    All buffers of a kernel count, also where they are not needed at the same time, and each copy that virtual threads
    have of one.
    """
    form = sequential(func, Barriers.OF_BLOCKS, marked=True)
    if isinstance(form, NoSequence):
        claim = Claim(ClaimKind.OTHER, f"shared memory is within {limit} bytes", about=("shared", str(limit)))
        return (unknown(claim, STRUCTURE, form.reason, Facts.of(func, where).watch()),)
    facts = Facts.of(form.func, where)
    kernels = [node for node in walk(form.func.body) if isinstance(node, AttrStmt) and node.key == KERNEL]
    # As the text has them: where they are parallel loops, elements have no gaps between them.
    own = [node.buffer for node in nodes_of(func.body, Allocate)]
    own += [buffer for node in nodes_of(func.body, Block) for buffer in node.alloc_buffers]
    loose = {buffer.data for buffer in own if buffer.strides or not is_zero(buffer.elem_offset)}
    return tuple(_prove(facts, kernel, number, limit, loose) for number, kernel in enumerate(kernels, start=1))


def _prove(facts: Facts, kernel: AttrStmt, number: int, limit: int, loose: set[Var]) -> Verdict:
    watch = facts.watch()
    allocated = [node.buffer for node in walk(kernel) if isinstance(node, Allocate)]
    shared = [buffer for buffer in allocated if sharing_of(buffer.scope, in_kernel=True) is Sharing.BLOCK]
    what = f"shared memory of kernel {number} is within {limit} bytes"
    names = tuple(buffer.name for buffer in shared)
    claim = Claim(ClaimKind.OTHER, what, buffers=names, about=("shared", str(number), str(limit)))
    larger = next((buffer for buffer in shared if buffer.data in loose), None)
    if larger is not None:
        reason = f"{larger.name} has strides or an offset: its extents do not say its size"
        return unknown(claim, STRUCTURE, reason, watch)
    size = _bytes(shared)
    inner = next((v for v in free_variables(size) if v not in facts.program.symbols), None)
    if inner is not None:
        return unknown(claim, STRUCTURE, f"its size depends on {inner.name}", watch)
    found = facts.search(IterationDomain(), above(size, limit))
    negative = next((b for b in shared if _may_be_negative(facts, b)), None) if found.is_empty else None
    if negative is not None:
        # It would take from the sum what the others have.
        return unknown(claim, STRUCTURE, f"an extent of {negative.name} may be negative", watch)
    if found.is_empty:
        return proved(claim, found.engine, watch, f"{expr_text(size, Style.PLAIN)} bytes")
    if found.point is None or not found.exact:
        return left_open(claim, found, watch)
    values = {v.name: found.point[v.name] for v in facts.program.symbols}
    taken = int(evaluate(size, values))
    text = f"{taken} bytes ({expr_text(size, Style.PLAIN)})" + (f" at {values_text(values)}" if values else "")
    return refuted(claim, found.engine, {"bytes": taken, "values": values}, text, watch)


def _may_be_negative(facts: Facts, buffer: Buffer) -> bool:
    return any(not facts.search(IterationDomain(), below(extent, 0)).is_empty for extent in buffer.shape)


def _bytes(buffers: list[Buffer]) -> Expr:
    total: Expr = const(0, INT64)
    for buffer in buffers:
        size: Expr = const(buffer.dtype.bytes, INT64)
        for extent in buffer.shape:
            size = size * widen(extent, INT64)
        total = total + size
    return total
