"""Every view of a memory stays inside it: the whole of the view, or at least every access that is made through it."""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.semantics import Trap
from layoutproof.verify.cells import element_number
from layoutproof.verify.claim import Claim, ClaimKind
from layoutproof.verify.facts import Facts, Stopwatch, left_open, proved, refuted, unknown, values_text, visible
from layoutproof.verify.instances import Access, Scene
from layoutproof.verify.integers import above, below
from layoutproof.verify.radix import Polynomial
from layoutproof.verify.verdict import Verdict


def prove_views(facts: Facts) -> tuple[Verdict, ...]:
    """One verdict a view that is not the buffer with which its memory came into being, in the order of the text."""
    verdicts: dict[tuple[Buffer, Var], Verdict] = {}
    for access in facts.program.accesses:
        owner = facts.program.allocation(access.data)
        key = (access.buffer, access.data)
        if owner is not None and key not in verdicts and _box(owner) != _box(access.buffer):
            verdicts[key] = _prove_view(facts, access.buffer, access.data, owner)
    return tuple(verdicts.values())


def _box(buffer: Buffer) -> tuple[object, ...]:
    return (buffer.shape, buffer.strides, buffer.elem_offset, buffer.dtype.bytes)


def _size(buffer: Buffer) -> Polynomial:
    """How many bytes from the start of the memory the buffer reaches, where no extent is 0."""
    count = Polynomial.of(buffer.elem_offset)
    if buffer.strides:
        for extent, stride in zip(buffer.shape, buffer.strides, strict=True):
            count = count.plus(Polynomial.of(extent).plus(Polynomial({(): 1}), -1).times(Polynomial.of(stride)))
        count = count.plus(Polynomial({(): 1}))
    else:
        product = Polynomial({(): 1})
        for extent in buffer.shape:
            product = product.times(Polynomial.of(extent))
        count = count.plus(product)
    return count.times(Polynomial({(): buffer.dtype.bytes}))


def _prove_view(facts: Facts, view: Buffer, data: Var, owner: Buffer) -> Verdict:
    watch = facts.watch()
    claim = Claim(ClaimKind.WITHIN_MEMORY, f"the view {view.name} stays inside the memory of {owner.name}")
    spare = _size(owner).plus(_size(view), -1)
    number = spare.constant
    if number is not None and number >= 0:
        return proved(claim, "structure", watch)
    if number is None and facts.search(Scene(), below(spare.to_expr(), 0)).is_empty:
        return proved(claim, "isl", watch)
    end = _size(owner).to_expr()
    undecided: Verdict | None = None
    for access in facts.program.touching(data):
        if access.buffer != view:
            continue
        verdict = _prove_access(facts, access, end, claim, watch)
        if verdict is not None and verdict.counterexample is not None:
            return verdict
        undecided = undecided if undecided is not None else verdict
    return undecided if undecided is not None else proved(claim, "isl", watch)


def _prove_access(facts: Facts, access: Access, end: Expr, claim: Claim, watch: Stopwatch) -> Verdict | None:
    """None when the access stays inside the memory."""
    first = Polynomial.of(element_number(access.buffer, access.indices)).times(Polynomial({(): access.buffer.dtype.bytes})).to_expr()
    last = Polynomial.of(first).plus(Polynomial({(): access.buffer.dtype.bytes})).to_expr()
    for condition in (below(first, 0), above(last, end)):
        found = facts.search(access.scene, condition)
        if found.is_empty:
            continue
        if found.point is None or not _replays(facts, access, condition, found.point):
            return left_open(claim, found, watch)
        values = visible(access.scene, found.point, facts.program)
        text = f"{access.text} ({access.place}) lies outside the memory at {values_text(values)}"
        if access.data_dependent:
            return unknown(claim, found.engine, f"{text}, depending on data", watch)
        index = [int(evaluate(i, found.point)) for i in access.indices]
        counterexample = {"buffer": access.buffer.name, "place": str(access.place), "indices": index, "values": values}
        return refuted(claim, found.engine, counterexample, text, watch)
    return None


def _replays(facts: Facts, access: Access, condition: Expr, point: Mapping[str, int]) -> bool:
    try:
        return facts.happens(access.scene, point) and bool(evaluate(condition, point))
    except (Trap, KeyError, TypeError):
        return False
