"""Whether what a function makes depends on its operands alone: a graph gives results fresh memory, which holds anything."""

from __future__ import annotations

from dataclasses import replace

from layoutproof.graph.signature import signature_of
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Var
from layoutproof.ir.primfunc import Kept, PrimFunc
from layoutproof.ir.stmt import Block, Let, Stmt
from layoutproof.ir.visit import replace_buffers, walk
from layoutproof.lowering.passes.effects import data_read
from layoutproof.verify.faults.facts import Facts, obstacle_reason
from layoutproof.verify.faults.races import prove_race_free
from layoutproof.verify.faults.reads import prove_readable
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

STRUCTURE = "structure"
"""The engine of what the text of a function says by itself."""

_VERDICTS: Kept[Verdict] = Kept(4096)


def is_fresh(func: PrimFunc) -> bool:
    """Whether `prove_fresh` proves it, asked once for a function object."""
    return _VERDICTS.get(func, (), lambda: prove_fresh(func)).status is Status.PROVED


def prove_fresh(func: PrimFunc) -> Verdict:
    """Whether no result is read before it is written. Raises LayoutproofError for a function that a graph cannot call.

    Where nothing in the text reads a result, nothing needs to be asked. Else the function is asked about with memory of its own in place of
    the results: also a reduction, whose init may come late, or be kept off by a guard. What is proved is said of calls without a fault.
    """
    claim = Claim(ClaimKind.OTHER, f"{func.name} reads no result before it is written")
    results = signature_of(func).results
    if not _may_read(func, results):
        return Verdict(Status.PROVED, claim, STRUCTURE)
    facts = Facts.of(_with_own_memory(func, results))
    problem = obstacle_reason(facts.program)
    if problem is not None:
        return Verdict(Status.UNKNOWN, claim, STRUCTURE, reason=problem)
    for verdict in (*prove_readable(facts), *prove_race_free(facts)):
        if verdict.status not in (Status.PROVED, Status.VACUOUS):
            return replace(verdict, claim=replace(verdict.claim, head=f"{claim}: {verdict.claim.head}"))
    return Verdict(Status.PROVED, claim, "facts")


def _may_read(func: PrimFunc, results: tuple[Buffer, ...]) -> bool:
    """Whether a result is loaded, or a pointer goes where others load through it."""
    named = any(isinstance(node, Let) and node.var.dtype == HANDLE for node in walk(func.body))
    return named or not data_read(func.body).isdisjoint(buffer.data for buffer in results)


def _with_own_memory(func: PrimFunc, results: tuple[Buffer, ...]) -> PrimFunc:
    """The function, its results in allocations that nobody sees; what becomes of them does not matter here."""
    inner = {buffer: replace(buffer, name=f"{buffer.name}_made", data=Var(f"{buffer.name}_made_data", HANDLE)) for buffer in results}
    body: Stmt = replace_buffers(func.body, dict(inner))
    made = tuple(inner.values())
    if isinstance(body, Block) and body.is_root:
        return func.with_body(replace(body, alloc_buffers=(*body.alloc_buffers, *made)))
    return func.with_body(Block("root", (), body, alloc_buffers=made))
