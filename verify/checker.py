"""Accepts or refuses a proposed rewrite. Short on purpose: this is what every kept step of a schedule rests on.

The conditions, under which the new program does what the old one does, for every input that satisfies the assumptions
and on which the old program does not fault:

1. Cells: each cell map of the witness is injective and lands inside the new buffer; no two memories become one;
parameters keep their shape and cells unless the step declares a change, which is then recorded; a parameter that is
never written stays so.
2. to 6. Instances, no-ops, flow and values: the two programs run in lockstep (`verify.lockstep`), or every value that
the new one reads has the source that it had (`verify.flow`); `verify.faults` proves that the new one does not fault.
7. Assumptions, on symbols here and on contents there, and layout records: no rewrite helps itself to new ones.
8. Some input satisfies all assumptions, and on it the old program runs and stores something observable
(`verify.faults.vacuity`).

What is not proved may be run: where two runs differ, the rewrite is refuted with the input (`verify.replay.refute`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import counted
from layoutproof.ir.expr import Expr, Not, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.layout_record import LayoutRecord, layout_records
from layoutproof.ir.primfunc import Kept, PrimFunc
from layoutproof.ir.rewrite import CellMap, Rewrite
from layoutproof.ir.stmt import ForKind
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import buffers_in, holds_any, stores_in
from layoutproof.verify.faults.bounds import find_outside
from layoutproof.verify.faults.decisions import may_make_undefined, roots_of, undefined_decisions
from layoutproof.verify.faults.facts import STRUCTURE, Facts, Stopwatch, proved, unknown
from layoutproof.verify.faults.no_faults import not_excluded
from layoutproof.verify.faults.reads import no_layout
from layoutproof.verify.faults.vacuity import CLAIM as RUNS
from layoutproof.verify.faults.vacuity import is_idle, note_faultless, note_no_new_fault, possible_faults, prove_runs
from layoutproof.verify.flow.forwarded import known_contents, prove_no_faults
from layoutproof.verify.lockstep.memories import is_asked
from layoutproof.verify.maps.equal_maps import prove_equal_maps
from layoutproof.verify.maps.injective import prove_injective
from layoutproof.verify.program.evidence import UNRECORDED, Gathered
from layoutproof.verify.program.instances import AccessKind, Dim, IterationDomain
from layoutproof.verify.program.questions import Because, below
from layoutproof.verify.program.window import Window, try_window
from layoutproof.verify.same_program import Checked, prove_results, prove_same_program
from layoutproof.verify.settings import settings
from layoutproof.verify.values.fast_math import ALL, IEEE, FastMathSet
from layoutproof.verify.values.float_indices import rewrite_in_integers
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Open, Proved, Status, Verdict


@cache
def prover_at(allowed: FastMathSet, factor: float) -> ValueProver:
    """The shared prover of all checks under these fast-math assumptions and budget scale; its memory changes no
    answer.
    """
    return ValueProver(allowed)


def prove_rewrite(
    rewrite: Rewrite, where: Expr | None = None, *, allowed: FastMathSet = ALL, gathered: Gathered = UNRECORDED
) -> Checked:
    """The verdicts on a rewrite; it may be kept when all are proved. `where` is a precondition on symbols.

    Fast-math assumptions in `allowed` may be used, the fewest that suffice; each verdict's `strictness` says which.
    Evidence is `gathered` for the verdicts where that records. Only `verify.replay.refute` runs programs.

    Raises LayoutproofError for a layout record or a cell map that is malformed (a map that goes below zero, say).
    """
    rewrite = rewrite_in_integers(rewrite)
    if not gathered.is_recording:
        found = _prove_in_window(rewrite, where)
        if found is not None:
            return found
    return _prove_whole(rewrite, where, allowed, gathered)


def _prove_in_window(rewrite: Rewrite, where: Expr | None) -> Checked | None:
    """The verdicts on the window of two long programs, if it is proved and the old one is sound; else None."""
    window = try_window(rewrite)
    if window is None or not _is_sound(rewrite.old, where):
        return None
    states = rewrite.witness.changes_interface and holds_any(rewrite.new.body, Assume)
    if states or all(is_idle(stmt, where) for stmt in window.stores_outside()):
        return None
    # Undefined values may be made outside of the window, and come into it by a memory.
    if may_make_undefined(rewrite.new) and undefined_decisions(Facts.of(rewrite.new, where, rewrite.old)):
        return None
    checked = _prove_whole(window.rewrite, where, IEEE, UNRECORDED)
    if any(v.status is not Status.PROVED or v.strictness for v in checked.verdicts):
        return None
    if note_faultless(rewrite.new, where, rewrite.old):
        _SOUND.get(rewrite.new, (where,), lambda: True)  # It does what the old one does.
    return Checked((_shared(window), *checked.verdicts))


def _is_sound(function: PrimFunc, where: Expr | None) -> bool:
    """Whether it is proved that the program has no fault, and that it runs."""

    def decide() -> bool:
        return not possible_faults(function, where) and prove_runs(function, where).status is Status.PROVED

    return _SOUND.get(function, (where,), decide)


_SOUND: Kept[bool] = Kept(8)


def _shared(window: Window) -> Verdict:
    what = f"{counted(len(window.shared), 'statement', 'statements')} that both programs share are left out"
    return proved(Claim(ClaimKind.OTHER, what, about=("shared",)), STRUCTURE, Stopwatch())


def _prove_whole(rewrite: Rewrite, where: Expr | None, allowed: FastMathSet, gathered: Gathered) -> Checked:
    old = Facts.of(rewrite.old, where, gathered=gathered)
    new = Facts.of(rewrite.new, where, rewrite.old, gathered=gathered)  # may not state sizes of its own
    # Where only calls with parameters apart are spoken of, what the old program stores changes no other parameter.
    apart = Facts.of(rewrite.old.with_parameters_apart(), where) if is_asked(rewrite) else old
    contents = known_contents(rewrite, apart, new, where)
    others = (
        *_prove_cell_maps(rewrite, old, new, where),
        *_where_open(_prove_apart(rewrite)),
        _prove_parameters_kept(rewrite, old, where),
        *_where_open(*_prove_inputs_kept(rewrite, old, new)),
        *_prove_records(rewrite, where),
        *_prove_assumptions(old, new),
        _prove_witness_speaks_of_stores(rewrite),
        *_where_open(_prove_decisions(new)),
    )
    faults = not_excluded(prove_no_faults(new, where, contents, old), old)
    if any(v.status is Status.REFUTED for v in faults):
        before = possible_faults(rewrite.old, where)
        if before:
            return _left_to_runs(others, faults, before)
    if not contents and all(v.status is Status.PROVED for v in faults):
        note_no_new_fault(new, rewrite.old, where)  # it is the old one of the next step
    values = prover_at(allowed, settings().budget_scale)
    if all(v.status is Status.PROVED for v in others):
        faults = prove_results(rewrite, old, new, faults, values)
    verdicts = (*others, *faults)
    checked = Checked(verdicts)
    if all(v.status in (Status.PROVED, Status.VACUOUS) for v in verdicts):
        same = prove_same_program(rewrite, old, new, where, values)
        checked = replace(same, verdicts=(*verdicts, *same.verdicts))
    return replace(checked, verdicts=(*checked.verdicts, *_prove_runs(rewrite, where, checked.verdicts)))


def _left_to_runs(others: Sequence[Verdict], faults: Sequence[Verdict], before: Sequence[Verdict]) -> Checked:
    """The verdicts, with the new program's `faults` open, since the old one may have one on the same input: runs show
    whose they are. The hints are the values with which they happen.
    """
    first = min(before, key=lambda v: v.status is not Status.REFUTED)
    refuted = {v.claim.kind for v in before if v.status is Status.REFUTED}
    verdicts, hints = list(others), []
    for each in faults:
        if each.counterexample is not None:
            # A race has two instances, and the symbols apart.
            hints.append(each.counterexample.get("values", each.counterexample.get("symbols", {})))
            if each.claim.kind in refuted:
                reason = f"{each.reason}; the program before has a fault of this kind, too"
                each = replace(each, status=Status.UNKNOWN, reason=reason, because=frozenset((Because.OLD_FAULT,)))
            else:
                reason = f"{each.reason}; in the old program, {first.claim.text} is not proved either: {first.reason}"
                each = replace(each, status=Status.UNKNOWN, counterexample=None, reason=reason)
        verdicts.append(each)
    return Checked(tuple(verdicts), hints)


def _prove_runs(rewrite: Rewrite, where: Expr | None, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """That what is proved is not proved of nothing; no verdict where that is shown."""
    if any(v.status is not Status.PROVED for v in verdicts):
        return ()
    found = prove_runs(rewrite.old, where)
    if found.status is Status.PROVED and is_idle(rewrite.new, where):
        reason = "the new program stores nothing to a parameter, so that nothing can be observed"
        found = Verdict(Status.VACUOUS, RUNS, STRUCTURE, reason=reason, because=frozenset((Because.NOTHING_SEEN,)))
    # What else the new one assumes follows, but not what it assumes of padding that callers are to fill.
    assumes = holds_any(rewrite.new.body, Assume)
    if found.status is Status.PROVED and rewrite.witness.changes_interface and assumes:
        found = prove_runs(rewrite.new, where)
    return _where_open(found)


def _where_open(*verdicts: Verdict) -> tuple[Verdict, ...]:
    """Verdicts on conditions that nearly every rewrite satisfies, which are told only where they are not proved."""
    return tuple(verdict for verdict in verdicts if verdict.status is not Status.PROVED)


def _prove_decisions(new: Facts) -> Verdict:
    """That nothing undefined decides what the new program does, even if it may decide the same in the old one."""
    watch = Stopwatch()
    what = "no undefined value decides a branch, a range or an index"
    claim = Claim(ClaimKind.DEFINED_READ, what, about=("decisions",))
    found = undefined_decisions(new)
    if found:
        reason = f"`{min(found)}` may depend on an undefined value"
        return unknown(claim, STRUCTURE, reason, watch)
    return proved(claim, STRUCTURE, watch)


def _prove_cell_maps(rewrite: Rewrite, old: Facts, new: Facts, where: Expr | None) -> Iterator[Verdict]:
    for cells in rewrite.witness.cells:
        watch = old.watch()
        before, after = _memory(old, cells.old_data), _memory(new, cells.new_data)
        if before is None or after is None:
            missing = cells.old_data if before is None else cells.new_data
            claim = Claim(ClaimKind.OTHER, f"cells of {cells.old_data}", about=("cells", cells.old_data))
            yield unknown(claim, STRUCTURE, f"the witness names memory `{missing}`, which does not exist", watch)
            continue
        negative = old.negative_names(before.shape, where, cells.cells)
        yield prove_injective(cells.cells, before.shape, where, old.gathered, negative)
        yield _prove_inside(old, cells, before, after)


def _prove_apart(rewrite: Rewrite) -> Verdict:
    watch, claim = Stopwatch(), Claim(ClaimKind.CELLS, "no two memories become one", about=("apart",))
    targets = Counter((*(cells.new_data for cells in rewrite.witness.cells), *_kept_memories(rewrite)))
    shared = next((name for name, count in targets.items() if count > 1), None)
    if shared is not None:
        return unknown(claim, STRUCTURE, f"the witness maps more than one memory to {shared}", watch)
    return proved(claim, STRUCTURE, watch)


def _kept_memories(rewrite: Rewrite) -> Iterator[str]:
    """Parameters of which the witness says nothing: they keep their cells."""
    moved = {cells.old_data for cells in rewrite.witness.cells}
    yield from (buffer.data.name for buffer in rewrite.old.buffers if buffer.data.name not in moved)


def _memory(facts: Facts, data: str) -> Buffer | None:
    return next((buffer for buffer in facts.program.buffers if buffer.data.name == data), None)


def _prove_inside(old: Facts, cells: CellMap, before: Buffer, after: Buffer) -> Verdict:
    """That every cell of the old buffer gets a place in the new one."""
    watch = old.watch()
    box = ", ".join(expr_text(e, Style.PLAIN) for e in after.shape)
    what, about = f"the cells of {before.name} lie within [{box}] of {after.name}", (before.name, box, after.name)
    claim = Claim(ClaimKind.CELLS, what, about=("inside", *about))
    if len(cells.cells.inputs) != before.rank or cells.cells.rank != after.rank:
        reason = f"the map leads from {len(cells.cells.inputs)} to {counted(cells.cells.rank, 'axis', 'axes')}"
        return unknown(claim, STRUCTURE, reason, watch)
    domain, index = _over(before.shape, cells.cells)
    engine = STRUCTURE
    for output, extent in zip(index, after.shape, strict=True):
        found = find_outside(old, domain, output, extent)
        if not found.is_empty:
            return unknown(claim, found.engine, f"{expr_text(output, Style.PLAIN)} may leave the box", watch)
        engine = found.engine
    return proved(claim, engine, watch)


def _over(shape: Sequence[Expr], index_map: IndexMap) -> tuple[IterationDomain, Sequence[Expr]]:
    """Every cell of a box as an iteration domain, and where the map takes it."""
    variables = [Var(f"cell{axis}'", extent.dtype) for axis, extent in enumerate(shape)]
    dims = tuple(Dim(v, const(0, v.dtype), e, ForKind.SERIAL) for v, e in zip(variables, shape, strict=True))
    return IterationDomain(dims), index_map.map_indices(variables)


def _prove_inputs_kept(rewrite: Rewrite, old: Facts, new: Facts) -> Iterator[Verdict]:
    """One verdict for each parameter that the old program never writes, in the order of their names."""
    watch, written = Stopwatch(), _stored(new)
    for name in sorted({b.data.name for b in rewrite.old.buffers} - _stored(old)):
        claim = Claim(ClaimKind.INTERFACE, f"{name} is only read", about=("only-read", name))
        if name in written:
            yield unknown(claim, STRUCTURE, "the old program never writes it, the new one does", watch)
        else:
            yield proved(claim, STRUCTURE, watch)


def _prove_parameters_kept(rewrite: Rewrite, old: Facts, where: Expr | None) -> Verdict:
    """That callers find what they found before, declared layout changes aside."""
    watch, asked = old.watch(), list[str]()
    what = "parameters keep their order, types and shapes, declared layout changes aside"
    claim = Claim(ClaimKind.INTERFACE, what, about=("parameters",))
    handles = [[param for param, _ in function.buffer_map] for function in (rewrite.old, rewrite.new)]
    if rewrite.old.params != rewrite.new.params or handles[0] != handles[1]:
        return unknown(claim, STRUCTURE, "the parameters themselves differ", watch)
    moved = {cells.old_data: cells for cells in rewrite.witness.cells}
    for before, after in zip(rewrite.old.buffers, rewrite.new.buffers, strict=True):
        declared = before.name in rewrite.witness.changes_interface
        if _but_shape(before) != _but_shape(after) or (before.shape != after.shape and not declared):
            return unknown(claim, STRUCTURE, f"{before.name} is another one", watch)
        if _alignment(rewrite.new, before.data) > _alignment(rewrite.old, before.data):
            return unknown(claim, STRUCTURE, f"callers have to align {before.name} further", watch)
        asked += _extents_asked(old, before, after)
        cells = moved.get(before.data.name)
        if cells is None:
            continue
        if cells.new_data != before.data.name:
            reason = f"the cells of the parameter {before.name} are said to be in {cells.new_data}"
            return unknown(claim, STRUCTURE, reason, watch)
        if not declared:
            stays = IndexMap(cells.cells.inputs, cells.cells.inputs)
            negative = old.negative_names(before.shape, where, cells.cells)
            verdict = prove_equal_maps(cells.cells, stays, before.shape, where, negative)
            if verdict.status is not Status.PROVED:
                reason = f"the cells of {before.name} move, and no layout change is declared"
                return unknown(claim, verdict.engine, reason, watch)
    return proved(claim, STRUCTURE, watch, f"precondition: {', '.join(dict.fromkeys(asked))}" if asked else None)


def _extents_asked(old: Facts, before: Buffer, after: Buffer) -> Iterator[str]:
    """That no extent is negative, where an empty parameter would have one: 2*n - 1, say. No such call is spoken of."""
    for extent in after.shape if after.shape != before.shape else ():
        if not old.search(IterationDomain(), below(extent, 0)).is_empty:
            yield expr_text(extent >= 0, Style.PLAIN)


def _but_shape(buffer: Buffer) -> tuple[object, ...]:
    return buffer.data, buffer.dtype, buffer.strides, buffer.elem_offset, buffer.scope, buffer.offset_factor or 1


def _alignment(function: PrimFunc, data: Var) -> int:
    """In bytes, as any view of a parameter has it, by whatever pointer; 64 where none is given, as in TVM."""
    roots, views = roots_of(function), (*function.buffers, *buffers_in(function.body))
    memory = roots.get(data.name, data.name)
    return max(b.align or 64 for b in views if roots.get(b.data.name, b.data.name) == memory)


def _stored(facts: Facts) -> set[str]:
    """The memories that a program writes, by whatever pointer."""
    return {access.data.name for access in facts.program.accesses if access.kind is AccessKind.WRITE}


def _prove_records(rewrite: Rewrite, where: Expr | None) -> Iterator[Verdict]:
    """Layout records extend the old ones, so that padding without a contract stays so, and state declared changes."""
    old, new = layout_records(rewrite.old), layout_records(rewrite.new)
    if not (old or new or rewrite.witness.changes_interface):
        return
    watch, claim = Stopwatch(), Claim(ClaimKind.RECORDS, "layout metadata is consistent")
    wrong = no_layout(Facts.of(rewrite.old, where), (*old.items(), *new.items()))
    answer = _records(rewrite, old, new, where) if wrong is None else wrong
    if isinstance(answer, Open):
        yield unknown(claim, STRUCTURE, answer.reason, watch)
    elif old or rewrite.witness.changes_interface:
        yield proved(claim, STRUCTURE, watch)


def _records(
    rewrite: Rewrite, old: Mapping[str, LayoutRecord], new: Mapping[str, LayoutRecord], where: Expr | None
) -> Proved | Open:
    declared = rewrite.witness.changes_interface
    invented = next((b.name for b in rewrite.new.buffers if b.name not in declared and _is_longer(b, old, new)), None)
    if invented is not None:
        return Open(f"the record of {invented} states a change that is not declared")
    if not (old or declared):
        return Proved()
    there = {buffer.data.name for buffer in (*buffers_in(rewrite.new.body), *rewrite.new.buffers)}
    for name, record in old.items():
        kept = new.get(name)
        if name in there and not (kept is not None and _continues(kept, record)):
            return Open(f"the record of {name} is another one")
    if len(rewrite.old.buffers) != len(rewrite.new.buffers):
        return Open("there are more or fewer parameters")
    for before, after in zip(rewrite.old.buffers, rewrite.new.buffers, strict=True):
        if before.name in declared:
            records = old.get(before.data.name), new.get(after.data.name)
            answer = _change_recorded(rewrite, before, after, *records, where)
            if isinstance(answer, Open):
                return answer
    return Proved()


def _continues(record: LayoutRecord, before: LayoutRecord) -> bool:
    return record.logical_shape == before.logical_shape and record.steps[: len(before.steps)] == before.steps


def _is_longer(buffer: Buffer, old: Mapping[str, LayoutRecord], new: Mapping[str, LayoutRecord]) -> bool:
    """Whether the new record of a parameter has more steps than the old one."""
    name = buffer.data.name
    return len(new[name].steps if name in new else ()) > len(old[name].steps if name in old else ())


def _change_recorded(
    rewrite: Rewrite,
    before: Buffer,
    after: Buffer,
    old: LayoutRecord | None,
    new: LayoutRecord | None,
    where: Expr | None,
) -> Proved | Open:
    """Whether the declared change of a parameter's layout is what its record says."""
    cells = next((c for c in rewrite.witness.cells if c.old_data == before.data.name), None)
    done = len(old.steps) if old is not None else 0
    if cells is None:
        changes = before.shape != after.shape or (new is not None and len(new.steps) > done)
        return Open(f"the layout of {before.name} changes, and no cell map says how") if changes else Proved()
    if new is None or len(new.steps) <= done:
        return Open(f"the layout of {before.name} changes, and its record does not say so")
    logical = old.shape if old is not None else new.logical_shape
    for shape, buffer in ((logical, before), (new.shape, after)):
        if shape != LayoutRecord(buffer.shape).shape:
            return Open(f"the record of {before.name} is of another shape")
    new.check_names(v.name for v in Facts.of(rewrite.new, where).program.symbols)
    outputs: Sequence[Expr] = cells.cells.inputs
    for step in new.steps[done:]:
        outputs = step.index_map.map_indices(outputs)
    composed = IndexMap(cells.cells.inputs, tuple(outputs))
    if composed.outputs == cells.cells.outputs:
        return Proved()
    negative = Facts.of(rewrite.old, where).negative_names(before.shape, where, composed, cells.cells)
    if prove_equal_maps(composed, cells.cells, before.shape, where, negative).status is Status.PROVED:
        return Proved()
    return Open(f"the record of {before.name} states another map than the witness")


def _prove_assumptions(old: Facts, new: Facts) -> Iterator[Verdict]:
    """That what the new program assumes of its symbols follows from what the old one assumes."""
    for condition in new.program.assumed:
        if condition in old.program.assumed:
            continue
        watch, text = old.watch(), expr_text(condition, Style.PLAIN)
        claim = Claim(ClaimKind.ASSUMPTION, f"the assumption {text} was made before", about=("symbols", text))
        found = old.search(IterationDomain(), Not(condition))
        if found.is_empty:
            yield proved(claim, found.engine, watch)
        else:
            yield unknown(claim, found.engine, "it does not follow from what the old program assumes", watch)


def _prove_witness_speaks_of_stores(rewrite: Rewrite) -> Verdict:
    """Each new store has an instance map, several only if each names an old store (the simulation refuses overlaps)."""
    watch = Stopwatch()
    claim = Claim(ClaimKind.WITNESS, "the witness maps every store of the new program to a store of the old one")
    old, new = len(list(stores_in(rewrite.old.body))), len(list(stores_in(rewrite.new.body)))
    said = Counter(m.new_store for m in rewrite.witness.instances)
    if sorted(said) != list(range(new)):
        return unknown(claim, STRUCTURE, f"it names {len(said)} of {new} new stores", watch)
    free = (m.new_store for m in rewrite.witness.instances if m.old_store is None and said[m.new_store] > 1)
    twice = next(free, None)
    if twice is not None:
        reason = f"it says that new store {twice} has a counterpart, and that it has none"
        return unknown(claim, STRUCTURE, reason, watch)
    named = (m.old_store for m in rewrite.witness.instances if m.old_store is not None)
    wrong = next((store for store in named if not 0 <= store < old), None)
    if wrong is not None:
        return unknown(claim, STRUCTURE, f"there is no old store {wrong}", watch)
    return proved(claim, STRUCTURE, watch)
