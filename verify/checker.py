"""Accepts or refuses a proposed rewrite. Short on purpose: this is what every kept step of a schedule rests on.

The complete checker decides seven conditions under which the new program computes what the old one does. Decided here today:

1. Cells: each cell map of the witness is injective and lands inside the new buffer; no two memories become one; parameters keep their
   shape unless the step declares a change; a parameter that the old program never writes is not written.
2. Instances: only that the witness speaks of stores that exist, each new store once.
3. No fault, wholly: see `verify.program`.
7. Assumptions on symbols alone, and layout records: that no rewrite helps itself to new ones.

Not decided yet: that extra instances do no harm and dropped ones are not missed (2, 4), that every read has the same source (5), that
matched instances compute the same values (6), and that new assumptions about what buffers hold follow from old ones (7). An accepted
rewrite is one that cannot fault and whose cells are right; nothing here says that it computes the same values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import counted
from layoutproof.ir.expr import Expr, Not, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import CellMap, Rewrite
from layoutproof.ir.stmt import ForKind
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import buffers_in, stores_in
from layoutproof.verify.bounds import find_outside
from layoutproof.verify.facts import Facts, Stopwatch, proved, unknown
from layoutproof.verify.instances import Dim, Scene
from layoutproof.verify.maps import prove_injective
from layoutproof.verify.program import check_facts
from layoutproof.verify.verdict import Verdict

STRUCTURE = "structure"


def check_rewrite(rewrite: Rewrite, where: Expr | None = None) -> tuple[Verdict, ...]:
    """The verdicts on a rewrite, cells first; it may be kept when all are proved. `where` is a condition on symbols that callers
    vouch for.

    Raises LayoutproofError for a layout record or a cell map that is malformed (a map that goes below zero, say).
    """
    old, new = Facts.of(rewrite.old, where), Facts.of(rewrite.new, where)
    return (
        *_prove_cell_maps(rewrite, old, new, where),
        *_prove_interface(rewrite),
        *_prove_records(rewrite),
        *_prove_assumptions(old, new),
        _prove_witness_speaks_of_stores(rewrite),
        *check_facts(new),
    )


def _prove_cell_maps(rewrite: Rewrite, old: Facts, new: Facts, where: Expr | None) -> Iterator[Verdict]:
    for cells in rewrite.witness.cells:
        watch = Stopwatch()
        before, after = _memory(old, cells.old_data), _memory(new, cells.new_data)
        if before is None or after is None:
            missing = cells.old_data if before is None else cells.new_data
            yield unknown(f"cells of {cells.old_data}", STRUCTURE, f"the witness speaks of memory {missing}, which is not there", watch)
            continue
        yield prove_injective(cells.cells, before.shape, where)
        yield _prove_inside(old, cells, before, after)
    watch = Stopwatch()
    targets = Counter(cells.new_data for cells in rewrite.witness.cells)
    shared = next((name for name, count in targets.items() if count > 1), None)
    if shared is not None:
        yield unknown("no two memories become one", STRUCTURE, f"the witness maps more than one memory to {shared}", watch)


def _memory(facts: Facts, data: str) -> Buffer | None:
    return next((buffer for buffer in facts.program.buffers if buffer.data.name == data), None)


def _prove_inside(old: Facts, cells: CellMap, before: Buffer, after: Buffer) -> Verdict:
    """That every cell of the old buffer gets a place in the new one."""
    watch = Stopwatch()
    box = ", ".join(expr_text(e, Style.PLAIN) for e in after.shape)
    claim = f"the cells of {before.name} lie within [{box}] of {after.name}"
    if len(cells.cells.inputs) != before.rank or cells.cells.rank != after.rank:
        reason = f"the map leads from {len(cells.cells.inputs)} to {counted(cells.cells.rank, 'axis', 'axes')}"
        return unknown(claim, STRUCTURE, reason, watch)
    scene, index = _over(before.shape, cells.cells)
    engine = STRUCTURE
    for output, extent in zip(index, after.shape, strict=True):
        found = find_outside(old, scene, output, extent)
        if not found.is_empty:
            return unknown(claim, found.engine, f"{expr_text(output, Style.PLAIN)} may leave the box", watch)
        engine = found.engine
    return proved(claim, engine, watch)


def _over(shape: Sequence[Expr], index_map: IndexMap) -> tuple[Scene, Sequence[Expr]]:
    """Every cell of a box as a scene, and where the map takes it."""
    variables = [Var(f"cell{axis}'", extent.dtype) for axis, extent in enumerate(shape)]
    dims = tuple(Dim(v, const(0, v.dtype), e, ForKind.SERIAL) for v, e in zip(variables, shape, strict=True))
    return Scene(dims), index_map.map_indices(variables)


def _prove_interface(rewrite: Rewrite) -> Iterator[Verdict]:
    """That callers find what they found before, declared layout changes aside, and inputs are left alone."""
    watch = Stopwatch()
    claim = "parameters keep their order, types and shapes, declared layout changes aside"
    if rewrite.old.params != rewrite.new.params or [p for p, _ in rewrite.old.buffer_map] != [p for p, _ in rewrite.new.buffer_map]:
        yield unknown(claim, STRUCTURE, "the parameters themselves differ", watch)
        return
    for before, after in zip(rewrite.old.buffers, rewrite.new.buffers, strict=True):
        same = (before.data, before.dtype, before.strides) == (after.data, after.dtype, after.strides)
        if not same or (before.shape != after.shape and before.name not in rewrite.witness.changes_interface):
            yield unknown(claim, STRUCTURE, f"{before.name} is another one", watch)
            return
    yield proved(claim, STRUCTURE, watch)
    for name in _stored(rewrite.new) - _stored(rewrite.old) & {b.data.name for b in rewrite.old.buffers}:
        yield unknown(f"{name} is only read", STRUCTURE, "the old program never writes it, the new one does", watch)


def _stored(function: PrimFunc) -> set[str]:
    return {store.buffer.data.name for store in stores_in(function.body)}


def _prove_records(rewrite: Rewrite) -> Iterator[Verdict]:
    """That the layout records go on where they were: what was padding without a contract stays so."""
    watch = Stopwatch()
    old, new = layout_records(rewrite.old), layout_records(rewrite.new)
    if not old:
        return
    claim = "layout records keep their steps"
    there = {buffer.data.name for buffer in (*buffers_in(rewrite.new.body), *rewrite.new.buffers)}
    for name, record in old.items():
        kept = new.get(name)
        if name in there and (
            kept is None or kept.logical_shape != record.logical_shape or kept.steps[: len(record.steps)] != record.steps
        ):
            yield unknown(claim, STRUCTURE, f"the record of {name} is another one", watch)
            return
    yield proved(claim, STRUCTURE, watch)


def _prove_assumptions(old: Facts, new: Facts) -> Iterator[Verdict]:
    """That what the new program assumes of its symbols follows from what the old one assumes: nothing above rests on more."""
    for condition in new.program.assumed:
        if condition in old.program.assumed:
            continue
        watch = Stopwatch()
        claim = f"the assumption {expr_text(condition, Style.PLAIN)} was made before"
        found = old.search(Scene(), Not(condition))
        if found.is_empty:
            yield proved(claim, found.engine, watch)
        else:
            yield unknown(claim, found.engine, "it does not follow from what the old program assumes", watch)


def _prove_witness_speaks_of_stores(rewrite: Rewrite) -> Verdict:
    watch = Stopwatch()
    claim = "the witness speaks of every new store once, and of old stores that are there"
    old, new = len(list(stores_in(rewrite.old.body))), len(list(stores_in(rewrite.new.body)))
    if sorted(m.new_store for m in rewrite.witness.instances) != list(range(new)):
        return unknown(claim, STRUCTURE, f"it names {len(rewrite.witness.instances)} of {new} new stores", watch)
    wrong = next((m.old_store for m in rewrite.witness.instances if m.old_store is not None and not 0 <= m.old_store < old), None)
    return proved(claim, STRUCTURE, watch) if wrong is None else unknown(claim, STRUCTURE, f"there is no old store {wrong}", watch)
