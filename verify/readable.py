"""Every cell that is read may be read, and no padding without a contract is written.

A parameter's cells may be read from the start, a temporary's once they were written in the same allocation; padding only under a
contract. A write counts only where it certainly happens: one under a guard that depends on data does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var, const, equal
from layoutproof.ir.layout_record import Cell, LayoutRecord, cells_of, layout_records
from layoutproof.ir.semantics import Trap
from layoutproof.verify.cells import Place, in_box, places_of
from layoutproof.verify.claim import Claim, ClaimKind
from layoutproof.verify.facts import Facts, Stopwatch, left_open, proved, refuted, unknown, values_text, visible
from layoutproof.verify.instances import Access, AccessKind
from layoutproof.verify.order import pairs_before
from layoutproof.verify.padding_cells import find_forbidden, has_forbidden, padding_covers, record_shape
from layoutproof.verify.search import Cover, Search
from layoutproof.verify.smt.search import search_instances
from layoutproof.verify.verdict import Verdict

STRUCTURE = "structure"
_MAX_CELLS = 1 << 22
# An assumption that loads is no statement about nothing: what it looks at must be there.
_LOOKS = (AccessKind.READ, AccessKind.ASSUME)


def prove_readable(facts: Facts) -> tuple[Verdict, ...]:
    """One verdict a load: what it reads is a parameter's cell, padding with a contract, or was written before."""
    verdicts: list[Verdict] = []
    for data in _memories(facts):
        reads = [access for access in facts.program.touching(data) if access.kind in _LOOKS]
        if not reads:
            continue
        if data in facts.program.temporaries:
            places = _places(facts, data)
            writes = [place for place in places if place.access.kind is AccessKind.WRITE]
            verdicts += [_prove_read(facts, place, writes) for place in places if place.access.kind in _LOOKS]
        else:
            verdicts += [_prove_read(facts, Place(access, access.indices), ()) for access in reads]
    return tuple(verdicts)


def prove_no_forbidden_write(facts: Facts) -> tuple[Verdict, ...]:
    """One verdict a store to a buffer that has padding without a contract: it stays off that padding."""
    records = layout_records(facts.program.function)
    verdicts = []
    for access in facts.program.accesses:
        record = records.get(access.data.name)
        if access.kind is AccessKind.WRITE and record is not None and has_forbidden(record):
            claim = Claim(
                ClaimKind.OFF_PADDING, f"write {access.text} stays off padding that has no contract", access.place, buffers=_names(access)
            )
            verdicts.append(_prove_off_padding(facts, access, record, claim, facts.watch()))
    return tuple(verdicts)


def _names(access: Access) -> tuple[str, ...]:
    return access.buffer.name, access.data.name


def _memories(facts: Facts) -> list[Var]:
    return list(dict.fromkeys(access.data for access in facts.program.accesses))


def _places(facts: Facts, data: Var) -> list[Place]:
    record = layout_records(facts.program.function).get(data.name)
    return places_of(facts, data, record_shape(record, facts.program.symbols) if record is not None else None)


def _prove_read(facts: Facts, place: Place, writes: Sequence[Place]) -> Verdict:
    access, watch = place.access, facts.watch()
    claim = Claim(ClaimKind.DEFINED_READ, f"read {access.text} finds a value", access.place, buffers=_names(access))
    program = facts.program
    record = layout_records(program.function).get(access.data.name)
    if record is not None and has_forbidden(record):
        verdict = _prove_off_padding(facts, access, record, claim, watch)
        if verdict.status.value != "proved":
            return verdict
    if program.allocation(access.data) is None:
        return unknown(claim, STRUCTURE, f"the memory of {access.buffer.name} is neither a parameter nor allocated here", watch)
    if access.data not in program.temporaries:
        return proved(claim, STRUCTURE, watch, "a parameter")
    if sum(buffer.data == access.data for buffer in program.buffers) > 1:
        return unknown(claim, STRUCTURE, f"{access.buffer.name} is allocated in two places", watch)
    certain = [write for write in writes if not write.access.data_dependent]
    arbitrary: Iterable[Cover] = ()
    if record is not None and any(step.padding is Cell.PAD_UNDEF for step in record.steps):
        boxed = in_box(facts, access, record_shape(record, program.symbols))
        if boxed is None:
            return unknown(claim, STRUCTURE, f"the cell of {access.text} in the layout's box is not known", watch)
        # Padding whose contract is `undef` holds something from the start.
        arbitrary = padding_covers(facts, boxed.access.scene, boxed.coordinates, record, Cell.PAD_UNDEF)
        # Of a vector each scalar is asked for.
        place = replace(place, access=replace(access, scene=boxed.access.scene))
    found = facts.model.uncovered(place.access.scene, chain(_covers(place, certain), arbitrary))
    if found.is_empty:
        return proved(claim, found.engine, watch)
    return _unwritten(facts, place, writes, found, record, claim, watch)


def _covers(place: Place, writes: Iterable[Place]) -> Iterator[Cover]:
    """The earlier writes of the cell that is read, those of the same iteration first: they are cheap and mostly enough."""
    cases = [list(pairs_before(place, write)) for write in writes]
    for depth in range(max((len(c) for c in cases), default=0)):
        for case in cases:
            if depth < len(case):
                yield case[depth]


def _unwritten(
    facts: Facts, place: Place, writes: Sequence[Place], found: Search, record: LayoutRecord | None, claim: Claim, watch: Stopwatch
) -> Verdict:
    access = place.access
    if found.point is None:
        return left_open(claim, found, watch)
    values = visible(access.scene, found.point, facts.program)
    index = _index_at(facts, access, found.point)
    if index is None:
        return left_open(claim, found, watch)
    text = f"{access.buffer.name}{index} is read at {values_text(values)} before it is written"
    doubtful = next((w.access for w in writes if w.access.data_dependent), None)
    if facts.program.obstacles or access.data_dependent or doubtful is not None:
        why = f"the write at {doubtful.place} depends on data" if doubtful is not None else "that depends on data"
        return unknown(claim, found.engine, f"{text}; {why}", watch)
    if not found.exact and record is not None:
        return left_open(claim, found, watch, f"{text}, or so it seems: ")
    if not all(_never(facts, pairs, found.point) for write in writes for pairs in pairs_before(place, write)):
        return unknown(claim, found.engine, f"{text}, or so it seems: an earlier write could not be excluded", watch)
    counterexample = {"buffer": access.buffer.name, "place": str(access.place), "indices": index, "values": values}
    return refuted(claim, found.engine, counterexample, text, watch)


def _never(facts: Facts, pairs: Cover, point: Mapping[str, int]) -> bool:
    """Whether no earlier write reaches the cell read at `point`: the other engine's word."""
    fixed = [equal(v, const(point[v.name], v.dtype)) for v in _variables(facts, pairs) if v.name in point]
    return search_instances(pairs.scene, (), {}, (*pairs.conditions, *fixed)).is_empty


def _variables(facts: Facts, pairs: Cover) -> list[Var]:
    return [*facts.program.symbols, *(dim.var for dim in pairs.scene.dims)]


def _index_at(facts: Facts, access: Access, point: Mapping[str, int]) -> list[int] | None:
    if not facts.happens(access.scene, point):
        return None
    try:
        return [int(evaluate(index, point)) for index in access.indices]
    except (Trap, KeyError, TypeError):
        return None


def _prove_off_padding(facts: Facts, access: Access, record: LayoutRecord, claim: Claim, watch: Stopwatch) -> Verdict:
    boxed = in_box(facts, access, record_shape(record, facts.program.symbols))
    if boxed is None:
        return unknown(claim, STRUCTURE, f"the cell of {access.text} in the layout's box is not known", watch)
    found = find_forbidden(facts, boxed.access.scene, boxed.coordinates, record)
    if found.is_empty:
        return proved(claim, found.engine, watch)
    index = _index_at(facts, access, found.point) if found.point is not None else None
    if found.point is None or index is None or not _is_forbidden(facts, boxed.coordinates, record, found.point):
        return left_open(claim, found, watch)
    values = visible(access.scene, found.point, facts.program)
    text = f"{access.buffer.name}{index} is padding without a contract, at {values_text(values)}"
    if access.data_dependent:
        return unknown(claim, found.engine, f"{text}, depending on data", watch)
    counterexample = {"buffer": access.buffer.name, "place": str(access.place), "indices": index, "values": values}
    return refuted(claim, found.engine, counterexample, text, watch)


def _is_forbidden(facts: Facts, cell: Sequence[Expr], record: LayoutRecord, point: Mapping[str, int]) -> bool:
    """Whether the cell at `point` is forbidden padding, by laying out every cell; boxes too large for that are not refuted."""
    symbols = {v.name: point[v.name] for v in facts.program.symbols}
    size = 1
    for extent in record_shape(record, facts.program.symbols):
        size *= int(evaluate(extent, symbols))
    if size > _MAX_CELLS:
        return False
    index = tuple(int(evaluate(part, point)) for part in cell)
    return bool(cells_of(record, symbols)[index] == Cell.PAD_FORBIDDEN)
