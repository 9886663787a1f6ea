"""No uninitialised reads: every cell that is read may be read, and no padding without a contract is read or written.

A parameter's cells may be read from the start, a temporary's once they were written in the same allocation. A write
counts only where it certainly happens. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, pairwise

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var, const, equal, logical_and
from layoutproof.ir.index_map import IndexMap, retype
from layoutproof.ir.interp.layout_cells import cells_of
from layoutproof.ir.layout_record import Cell, LayoutRecord, layout_records
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import ForKind
from layoutproof.ir.visit import free_variables
from layoutproof.verify.faults.bounds import Place, in_box, places_of
from layoutproof.verify.faults.facts import (
    STRUCTURE,
    Facts,
    Stopwatch,
    left_open,
    proved,
    refuted,
    unknown,
    values_text,
    visible,
)
from layoutproof.verify.faults.races import pairs_before
from layoutproof.verify.maps.injective import is_into, is_onto
from layoutproof.verify.maps.symbolic_shapes import with_signs
from layoutproof.verify.program.instances import Access, AccessKind, Dim, IterationDomain
from layoutproof.verify.program.questions import Cover, Search, at_least, below, nothing, same
from layoutproof.verify.smt.index_arithmetic import search_instances
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Open, Verdict


def has_forbidden(record: LayoutRecord) -> bool:
    """Whether some step introduced padding without a contract (if it introduced any)."""
    return any(step.padding is Cell.PAD_FORBIDDEN for step in record.steps)


def record_shape(record: LayoutRecord, symbols: Sequence[Var]) -> tuple[Expr, ...]:
    """The last box, as expressions over the symbols."""
    return _shape(record.shape, symbols)


def padding_covers(
    facts: Facts, domain: IterationDomain, cell: Sequence[Expr], record: LayoutRecord, padding: Cell
) -> Iterator[Cover]:
    """The instances whose `cell` is padding of one kind, one cover for each step that introduced such padding."""
    for _, inside, conditions, cover in _steps(facts, domain, cell, record, padding):
        yield Cover(inside, tuple(conditions), (cover,))


def find_forbidden(facts: Facts, domain: IterationDomain, cell: Sequence[Expr], record: LayoutRecord) -> Search:
    """An instance whose `cell`, an index of the record's last box, is padding without a contract."""
    engine = STRUCTURE
    for number, inside, conditions, cover in _steps(facts, domain, cell, record, Cell.PAD_FORBIDDEN):
        found = facts.model.uncovered(inside, [cover], *conditions)
        if not found.is_empty and not _is_certain(found) and _is_onto(facts, record, number):
            found = nothing(STRUCTURE)
        if not found.is_empty:
            return found
        engine = found.engine
    return nothing(engine)


def _is_certain(found: Search) -> bool:
    """Whether the point of an answer satisfies all that was asked; a cell that the map may reach (its indices have
    products of symbols, say) is none.
    """
    return found.point is not None and found.exact


def _is_onto(facts: Facts, record: LayoutRecord, number: int) -> bool:
    """Whether a step's map certainly reaches every cell of its box (a swizzle, say): no padding."""
    step = record.steps[number]
    before = record.steps[number - 1].shape if number > 0 else record.logical_shape
    negative = facts.negative_names(_shape(step.shape, facts.program.symbols), None, step.index_map)
    return _reaches_all(step.index_map, before, step.shape, negative)


def no_layout(facts: Facts, records: Iterable[tuple[str, LayoutRecord]]) -> Open | None:
    """Why a record of several steps is no layout; None where each is one.

    Each map is to be one-to-one from the box before it into its own: else a later one may put padding where an element
    is, or take an element for padding.
    """
    for name, record in records:
        shapes = (record.logical_shape, *(step.shape for step in record.steps))
        boxes = [_shape(shape, facts.program.symbols) for shape in shapes]
        several = zip(record.steps, pairwise(boxes), strict=True) if len(record.steps) > 1 else ()
        for step, (before, after) in several:
            negative = facts.negative_names(before, None, step.index_map)
            if not _is_one_to_one(step.index_map, before, after, facts.assumed, negative):
                why = f"`{step.map_text}` is not proved to be one-to-one into its box"
                return Open(f"the record of {name} is no layout: {why}")
    return None


@lru_cache(maxsize=256)
def _is_one_to_one(
    index_map: IndexMap,
    shape: tuple[Expr, ...],
    box: tuple[Expr, ...],
    assumed: tuple[Expr, ...],
    negative: frozenset[str],
) -> bool:
    if not _speaks_of_extents(index_map, shape):
        return False
    symbols = {v.name for extent in shape for v in free_variables(extent)}
    told = [c for c in assumed if {v.name for v in free_variables(c)} <= symbols]
    (asked,), extents, where = with_signs([index_map], (*shape, *box), logical_and(*told) if told else None, negative)
    try:
        return is_into(asked, extents[: len(shape)], extents[len(shape) :], where)
    except LayoutproofError:
        return False


def _speaks_of_extents(index_map: IndexMap, shape: tuple[Expr, ...]) -> bool:
    """Whether a map has no symbols but those of a shape: any other may be negative."""
    names = {v.name for v in (*index_map.inputs, *(v for extent in shape for v in free_variables(extent)))}
    return all(v.name in names for output in index_map.outputs for v in free_variables(output))


@lru_cache(maxsize=64)
def _reaches_all(index_map: IndexMap, shape: tuple[Expr, ...], box: tuple[Expr, ...], negative: frozenset[str]) -> bool:
    if not _speaks_of_extents(index_map, shape):
        return False
    (asked,), extents, _ = with_signs([index_map], (*shape, *box), None, negative)
    try:
        return is_onto(asked, extents[: len(shape)], extents[len(shape) :])
    except LayoutproofError:
        # What is wrong with the record is said where records are checked.
        return False


def _steps(
    facts: Facts, domain: IterationDomain, cell: Sequence[Expr], record: LayoutRecord, padding: Cell
) -> Iterator[tuple[int, IterationDomain, Sequence[Expr], Cover]]:
    """For each step that introduced this kind of padding: its number, the instances with the cell of its box, how that
    comes to be `cell`, and which it reaches.
    """
    symbols = facts.program.symbols
    record.check_names(v.name for v in symbols)
    maps = [step.index_map for step in record.steps]
    boxes = [_shape(record.logical_shape, symbols), *(_shape(step.shape, symbols) for step in record.steps)]
    for number, step in enumerate(record.steps):
        if step.padding is not padding:
            continue
        inside, target = domain, list(cell)
        # What lies outside the box is no padding; that nothing does is an obligation of its own.
        conditions = [
            c for part, extent in zip(cell, boxes[-1], strict=True) for c in (at_least(part, 0), below(part, extent))
        ]
        last = number + 1 == len(record.steps)
        if not last or padding is not Cell.PAD_FORBIDDEN:
            # The cell of this step's box from which later steps made the one that is touched.
            inside, target = _with_index(domain, boxes[number + 1], f"box{number}'")
            conditions += [same(a, b) for a, b in zip(cell, _through(maps[number + 1 :], target), strict=True)]
        reached, source = _with_index(inside, boxes[number], "from'")
        cover = [same(a, b) for a, b in zip(target, _through(maps[number : number + 1], source), strict=True)]
        yield number, inside, conditions, Cover(reached, tuple(cover))


def _through(maps: Sequence[IndexMap], index: Sequence[Expr]) -> Sequence[Expr]:
    for index_map in maps:
        index = index_map.map_indices(index)
    return index


def _with_index(domain: IterationDomain, shape: Sequence[Expr], name: str) -> tuple[IterationDomain, list[Expr]]:
    """The iteration domain with one more coordinate for each axis of a box."""
    dims = [
        Dim(Var(f"{name}{axis}", extent.dtype), const(0, extent.dtype), extent, ForKind.SERIAL)
        for axis, extent in enumerate(shape)
    ]
    return replace(domain, dims=(*domain.dims, *dims)), [dim.var for dim in dims]


def _shape(shape: Sequence[Expr], symbols: Sequence[Var]) -> tuple[Expr, ...]:
    types = {v.name: v.dtype for v in symbols}
    return tuple(retype(extent, types) for extent in shape)


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
                ClaimKind.OFF_PADDING,
                f"write {access.text} stays off padding that has no contract",
                access.place,
                buffers=_names(access),
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
    claim = Claim(ClaimKind.DEFINED_READ, f"read `{access.text}` is initialised", access.place, buffers=_names(access))
    program = facts.program
    record = layout_records(program.function).get(access.data.name)
    if record is not None and has_forbidden(record):
        verdict = _prove_off_padding(facts, access, record, claim, watch)
        if verdict.status.value != "proved":
            return verdict
    if program.allocation(access.data) is None:
        return unknown(
            claim, STRUCTURE, f"the memory of {access.buffer.name} is neither a parameter nor allocated here", watch
        )
    if access.data not in program.temporaries:
        return proved(claim, STRUCTURE, watch, "a parameter")
    if program.allocations(access.data) > 1:
        return unknown(claim, STRUCTURE, f"{access.buffer.name} is allocated in two places", watch)
    certain = [write for write in writes if not write.access.data_dependent]
    arbitrary: Iterable[Cover] = ()
    if record is not None and any(step.padding is Cell.PAD_UNDEF for step in record.steps):
        boxed = in_box(facts, access, record_shape(record, program.symbols))
        if boxed is None:
            return unknown(claim, STRUCTURE, f"the cell of {access.text} in the layout's box is not known", watch)
        # Padding whose contract is `undef` holds something from the start.
        arbitrary = padding_covers(facts, boxed.access.domain, boxed.coordinates, record, Cell.PAD_UNDEF)
        # Of a vector each scalar is asked for.
        place = replace(place, access=replace(access, domain=boxed.access.domain))
    found = facts.model.uncovered(place.access.domain, chain(_covers(place, certain), arbitrary))
    if found.is_empty:
        return proved(claim, found.engine, watch)
    return _unwritten(facts, place, writes, found, claim, watch)


def _covers(place: Place, writes: Iterable[Place]) -> Iterator[Cover]:
    """The earlier writes of the cell that is read, those of the same iteration first, which are mostly enough."""
    cases = [list(pairs_before(place, write)) for write in writes]
    for depth in range(max((len(c) for c in cases), default=0)):
        for case in cases:
            if depth < len(case):
                yield case[depth]


def _unwritten(
    facts: Facts, place: Place, writes: Sequence[Place], found: Search, claim: Claim, watch: Stopwatch
) -> Verdict:
    access = place.access
    if found.point is None:
        return left_open(claim, found, watch)
    values = visible(access.domain, found.point, facts.program)
    index = _index_at(facts, access, found.point)
    if index is None:
        return left_open(claim, found, watch)
    text = f"{access.buffer.name}{index} is read at {values_text(values)} before it is written"
    doubtful = next((w.access for w in writes if w.access.data_dependent), None)
    if facts.program.obstacles or access.data_dependent or doubtful is not None:
        why = f"the write at {doubtful.place} depends on data" if doubtful is not None else "that depends on data"
        return unknown(claim, found.engine, f"{text}; {why}", watch)
    if not found.exact and access.data.name in layout_records(facts.program.function):
        return left_open(claim, found, watch, f"{text}, or so it seems: ")
    if not all(_never(facts, pairs, found.point) for write in writes for pairs in pairs_before(place, write)):
        return unknown(claim, found.engine, f"{text}, or so it seems: an earlier write could not be excluded", watch)
    counterexample = {"buffer": access.buffer.name, "place": str(access.place), "indices": index, "values": values}
    return refuted(claim, found.engine, counterexample, text, watch)


def _never(facts: Facts, pairs: Cover, point: Mapping[str, int]) -> bool:
    """Whether no earlier write reaches the cell read at `point`: the other engine's word."""
    variables = (*facts.program.symbols, *(dim.var for dim in pairs.domain.dims))
    fixed = [equal(v, const(point[v.name], v.dtype)) for v in variables if v.name in point]
    return search_instances(pairs.domain, (), {}, (*pairs.conditions, *fixed)).is_empty


def _index_at(facts: Facts, access: Access, point: Mapping[str, int]) -> list[int] | None:
    if not facts.happens(access.domain, point):
        return None
    try:
        return [int(evaluate(index, point)) for index in access.indices]
    except (Trap, KeyError, TypeError):
        return None


def _prove_off_padding(facts: Facts, access: Access, record: LayoutRecord, claim: Claim, watch: Stopwatch) -> Verdict:
    boxed = in_box(facts, access, record_shape(record, facts.program.symbols))
    if boxed is None:
        return unknown(claim, STRUCTURE, f"the cell of {access.text} in the layout's box is not known", watch)
    found = find_forbidden(facts, boxed.access.domain, boxed.coordinates, record)
    if found.is_empty:
        return proved(claim, found.engine, watch)
    index = _index_at(facts, access, found.point) if found.point is not None else None
    if found.point is None or index is None or not _is_forbidden(facts, boxed.coordinates, record, found.point):
        return left_open(claim, found, watch)
    values = visible(access.domain, found.point, facts.program)
    text = f"{access.buffer.name}{index} is padding without a contract, at {values_text(values)}"
    if access.data_dependent:
        return unknown(claim, found.engine, f"{text}, depending on data", watch)
    counterexample = {"buffer": access.buffer.name, "place": str(access.place), "indices": index, "values": values}
    return refuted(claim, found.engine, counterexample, text, watch)


def _is_forbidden(facts: Facts, cell: Sequence[Expr], record: LayoutRecord, point: Mapping[str, int]) -> bool:
    """Whether the cell at `point` is forbidden padding, by laying out all cells; False for large boxes."""
    symbols = {v.name: point[v.name] for v in facts.program.symbols}
    size = 1
    for extent in record_shape(record, facts.program.symbols):
        size *= int(evaluate(extent, symbols))
    if size > _MAX_CELLS:
        return False
    index = tuple(int(evaluate(part, point)) for part in cell)
    return bool(cells_of(record, symbols)[index] == Cell.PAD_FORBIDDEN)
