"""Whether a rewrite leaves everything as it was, found by walking both programs in lockstep, and the padding
postconditions of parameters that are written. Sound on its own, given the other obligations of the checker. Part of
the trust base.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.expr import Not, Var, const, logical_and
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.layout_record import Cell, LayoutRecord, LayoutStep, layout_records
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import BufferStore, Stmt
from layoutproof.ir.text import Style, expr_text
from layoutproof.verify.faults.facts import STRUCTURE, Facts, proved
from layoutproof.verify.lockstep.domains import Asking, Mismatch
from layoutproof.verify.lockstep.items import Flattener, Item
from layoutproof.verify.lockstep.memories import (
    ASKED,
    UNSAID,
    Cells,
    Memories,
    Relaid,
    Side,
    are_apart,
    is_asked,
    is_unsaid,
    meeting,
    over_cells,
)
from layoutproof.verify.lockstep.unmatched import (
    Assumptions,
    Leaf,
    UnmatchedSteps,
    cells_of,
    is_contract,
    is_element,
    leaves,
    loads_of,
    new_steps,
    stored,
)
from layoutproof.verify.lockstep.walk import Walk
from layoutproof.verify.maps.map_facts import report_on
from layoutproof.verify.program.instances import IterationDomain
from layoutproof.verify.program.questions import Cover, at_least, below, differ
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Open, Proved, Verdict


@dataclass(frozen=True, slots=True)
class PaddingPostconditions:
    """`added` are the steps at the new program's top that have no counterpart, each with what comes after it."""

    memories: Memories
    asking: Asking
    flattener: Flattener
    grown: Mapping[str, tuple[LayoutStep, ...]]

    def check(self, top: Sequence[tuple[Item, bool]]) -> Proved:
        """The postconditions and what is stored. `top` are the new program's top steps, with whether each was added."""
        paid: list[Proved] = []
        written = stored(self.memories)
        for old, relaid in self.memories.relaid.items():
            data = self.memories.became(old)
            steps = self.grown.get(data.name, ())
            if data not in self.memories.new.parameters or data not in written:
                continue
            if any(step.padding is Cell.PAD_VALUE for step in steps):
                if len(steps) != 1:
                    raise Mismatch(f"several steps at once state a contract for the padding of {relaid.after.name}")
                paid.append(self._paid(data, relaid, steps[0], top))
        return Proved.all(paid)

    def _paid(self, data: Var, relaid: Relaid, step: LayoutStep, top: Sequence[tuple[Item, bool]]) -> Proved:
        name = relaid.after.name
        place = next((n for n, (item, added) in enumerate(top) if added and self._writes(item, data)), None)
        if place is None:
            raise Mismatch(
                f"the contract of the padding of {name} is {step.contract}, and no stage at the function's top "
                "writes it"
            )
        for item, _ in top[place + 1 :]:
            if self._writes(item, data):
                raise Mismatch(f"{name} is written after its padding was filled ({item.place})")
        found = list(leaves(top[place][0], self.flattener, IterationDomain()))
        if len(found) != 1 or not found[0].alone or not isinstance(found[0].item.node, BufferStore):
            raise Mismatch(f"the stage that fills the padding of {name} does more than that, or depends on data")
        cells = cells_of(found[0].item, found[0].item.node)
        what, about = f"padding of `{name}` satisfies its contract `{step.contract}`", (name, str(step.contract))
        return Proved.all(
            (
                self._check_value(found[0], found[0].item.node, cells, data, step),
                self._check_coverage(found[0].domain, cells, relaid),
                Proved((Claim(ClaimKind.PADDING_POSTCONDITION, what, found[0].item.place, about=about),)),
            )
        )

    def _writes(self, item: Item, data: Var) -> bool:
        if not isinstance(item.node, Stmt):
            return False
        touched = self.memories.new.touched(item.node)
        return touched.calls or data in self.memories.new.spread(touched.writes)

    def _check_value(self, leaf: Leaf, store: BufferStore, cells: Cells, data: Var, step: LayoutStep) -> Proved:
        name, value = store.buffer.name, leaf.item.say(store.value)
        cell = [i for i in cells.indices if isinstance(i, Var)]
        symbols = self.memories.old.facts.program.symbols
        if len(cell) != len(cells.indices) or len(set(cell)) != len(cell) or step.contract is None:
            raise Mismatch(
                f"the stage that fills the padding of {name} does not go over its cells one by one ({leaf.item.place})"
            )
        if not is_contract(step.contract, value, cell, symbols):
            raise Mismatch(
                f"padding of {name}: its contract is {step.contract}, "
                f"got {expr_text(value, Style.PLAIN)} ({leaf.item.place})"
            )
        guards = [g.as_expr for g in leaf.domain.guards]
        for load in loads_of(value):
            if not is_element(self.memories, load, cell, leaf.domain, guards, data):
                raise Mismatch(
                    f"what the padding of {name} is filled with depends on other padding ({leaf.item.place})"
                )
        return Proved()

    def _check_coverage(self, domain: IterationDomain, cells: Cells, relaid: Relaid) -> Proved:
        """That every cell of the box is filled, or is one that a cell of the old program became."""
        if cells.buffer != relaid.after:
            raise Mismatch(f"the padding of {relaid.after.name} is filled through another view")
        facts = self.memories.old.facts
        box, cell = over_cells(relaid.after, IterationDomain(), "box'")
        filled = replace(domain, dims=(*box.dims, *domain.dims))
        whole = Cells(relaid.after, cell)
        reached, source = over_cells(relaid.before, box, "from'")
        image = Cells(relaid.after, relaid.cells.map_indices(source))
        covers = [Cover(filled, tuple(meeting(cells, whole))), Cover(reached, tuple(meeting(image, whole)))]
        if facts.model.uncovered(box, covers).is_empty or self._by_inverse(domain, cells, relaid):
            return Proved()
        raise Mismatch(f"some padding of {relaid.after.name} may be left out by the stage that fills it")

    def _by_inverse(self, domain: IterationDomain, cells: Cells, relaid: Relaid) -> bool:
        """The same by a map back: a cell that is not filled comes from an old one, which the map leads to it."""
        cell = [i for i in cells.indices if isinstance(i, Var)]
        bounds = {d.var: d for d in domain.dims}
        if len(cell) != len(cells.indices) or set(cell) != set(bounds):
            return False
        for variable, extent in zip(cell, relaid.after.shape, strict=True):
            dim = bounds[variable]
            if dim.start != const(0, dim.start.dtype) or not self.asking.equal(IterationDomain(), dim.extent, extent):
                return False
        assumed = self.memories.old.facts.program.assumed
        inverse = report_on(relaid.cells, relaid.before.shape, logical_and(*assumed) if assumed else None).inverse
        if inverse is None:
            return False
        source = inverse.map_indices(cell)
        ends = [
            bound
            for index, extent in zip(source, relaid.before.shape, strict=True)
            for bound in (at_least(index, 0), below(index, extent))
        ]
        led = zip(relaid.cells.map_indices(source), cell, strict=True)
        inside, left = replace(domain, guards=()), Not(logical_and(*(g.as_expr for g in domain.guards)))
        return all(self.asking.never(inside, left, Not(bound)) for bound in ends) and all(
            self.asking.never(inside, left, *ends, differ(back, place)) for back, place in led
        )


ENGINE = "simulation"
SAME_ORDER = Claim(
    ClaimKind.SAME_VALUE,
    "both programs execute the same operations in the same order, under the same conditions",
    about=("order",),
)
_UNCHANGED = Claim(ClaimKind.SAME_VALUE, "the program is unchanged", about=("unchanged",))


@dataclass(frozen=True, slots=True)
class Lockstep:
    """The claims of a walk in which everything matched, the first of all of it."""

    verdicts: tuple[Verdict, ...]


def prove_lockstep(
    rewrite: Rewrite, old: Facts, new: Facts, values: ValueProver, *, traps: bool = False
) -> Lockstep | Open:
    """Walk both programs of a rewrite. `values` decides where structure and index arithmetic do not. What is open says
    what does not match, and where. `traps`: operations on data have a result, too, where they have one in the old
    program.
    """
    watch, asking, unchanged = old.watch(), Asking(old), _is_unchanged(rewrite)
    try:
        found = _check_unchanged(rewrite) if unchanged else _walk(rewrite, asking, new, values, traps)
    except Mismatch as problem:
        return Open(problem.reason)
    engine = STRUCTURE if unchanged else "+".join(dict.fromkeys((ENGINE, *asking.engines)))
    return Lockstep(tuple(proved(claim, engine, watch) for claim in found.claims))


def _is_unchanged(rewrite: Rewrite) -> bool:
    same = rewrite.old.body == rewrite.new.body and rewrite.old.buffer_map == rewrite.new.buffer_map
    return same and not rewrite.witness.cells


def _check_unchanged(rewrite: Rewrite) -> Proved:
    _apart(rewrite)
    return Proved.all((_check_records(rewrite, ()), Proved((_UNCHANGED,)), _asked(rewrite)))


def _walk(rewrite: Rewrite, asking: Asking, new: Facts, values: ValueProver, traps: bool) -> Proved:
    apart, old = _apart(rewrite), asking.facts
    before, after = Side.of(old, apart=apart), Side.of(new, apart=apart)
    memories = Memories.of(rewrite, before, after, asking)
    grown = _grown(rewrite, memories)
    origins = {m.new_store: m.old_store for m in rewrite.witness.instances if m.old_store is not None}
    mine, theirs = Flattener(before), Flattener(after)
    unmatched = UnmatchedSteps(memories, asking, Assumptions(memories, asking, grown), traps)
    walking = Walk(memories, asking, values, mine, theirs, origins, unmatched)
    olds, news = mine.items(Item(rewrite.old.body)), theirs.items(Item(rewrite.new.body))
    walked = walking.sequence(olds, news, IterationDomain(), top=True)
    padding = PaddingPostconditions(memories, asking, theirs, grown).check(walking.top)
    return Proved.all((Proved((SAME_ORDER,)), walked, padding, _asked(rewrite)))


def _apart(rewrite: Rewrite) -> bool:
    """Whether parameters do not overlap. Raises Mismatch where the new program just says so."""
    if is_unsaid(rewrite):
        raise Mismatch(UNSAID)
    return are_apart(rewrite)


def _asked(rewrite: Rewrite) -> Proved:
    """What callers are asked from this step on, also where nothing else changes."""
    return Proved((ASKED,) if is_asked(rewrite) else ())


def _grown(rewrite: Rewrite, memories: Memories) -> Mapping[str, tuple[LayoutStep, ...]]:
    """The layout steps that records have more, which must say what the cell maps say.

    Raises Mismatch where a parameter moved and its record says something else.
    """
    old, new = layout_records(rewrite.old), layout_records(rewrite.new)
    found: dict[str, tuple[LayoutStep, ...]] = {}
    for data, relaid in memories.relaid.items():
        name = memories.became(data).name
        steps = new_steps(old.get(data.name), new.get(name))
        if steps:
            new[name].check_names(v.name for v in memories.old.facts.program.symbols)
        composed: IndexMap | None = None
        for step in steps:
            composed = step.index_map if composed is None else step.index_map.compose(composed)
        if (
            composed is not None
            and _said(composed) == _said(relaid.cells)
            and _fits(old.get(data.name), new.get(name), relaid)
        ):
            found[name] = steps
        elif data in memories.old.parameters:
            raise Mismatch(f"the layout record of {relaid.after.name} does not say where its cells went")
    moved = {memories.became(data).name for data in memories.relaid}
    _check_records(rewrite, moved)
    return found


def _fits(old: LayoutRecord | None, new: LayoutRecord | None, relaid: Relaid) -> bool:
    """Whether a record extends the old one, or starts with the old shape, and ends with the new one."""
    if new is None or new.shape != LayoutRecord(relaid.after.shape).shape:
        return False
    if old is None:
        return new.logical_shape == LayoutRecord(relaid.before.shape).shape
    return new.logical_shape == old.logical_shape and new.steps[: len(old.steps)] == old.steps


def _check_records(rewrite: Rewrite, moved: Collection[str]) -> Proved:
    """That no record of memory whose cells stay says that they moved. Raises Mismatch."""
    old = layout_records(rewrite.old)
    for name, record in layout_records(rewrite.new).items():
        if name not in moved and record.steps and old.get(name) != record:
            raise Mismatch(f"the layout record of {name} is another one, and its cells stay where they are")
    return Proved()


def _said(index_map: IndexMap) -> str:
    """An index map's text with its inputs numbered."""
    return index_map_text(index_map.rename([f"x{k}" for k in range(len(index_map.inputs))]))
