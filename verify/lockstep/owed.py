"""Padding that is owed: where a step gives the padding of a parameter that is written a value, the cells hold it at the end.

The stage that fills them stands at the function's top, nothing after it writes the parameter, it reaches every cell that no element
became, and what it stores is the contract's value. Padding that was owed before is kept by the walk itself: every old cell, padding or
not, ends with the value that it had. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.expr import Not, Var, const, logical_and, widen
from layoutproof.ir.layout_record import Cell, LayoutStep
from layoutproof.ir.stmt import BufferStore, Stmt
from layoutproof.ir.subst import substitute
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.verify.claim import Claim, ClaimKind
from layoutproof.verify.instances import Scene
from layoutproof.verify.lockstep.asking import Asking
from layoutproof.verify.lockstep.assumptions import is_element, stored
from layoutproof.verify.lockstep.contracts import is_contract, loads_of
from layoutproof.verify.lockstep.extras import Leaf, cells_of, leaves
from layoutproof.verify.lockstep.items import Flattener, Item
from layoutproof.verify.lockstep.memory import Cells, Memories, Relaid, meeting, over_cells
from layoutproof.verify.lockstep.refusal import Mismatch
from layoutproof.verify.map_report import report_on
from layoutproof.verify.search import Cover


@dataclass(frozen=True, slots=True)
class Owed:
    """`added` are the steps at the new program's top that have no counterpart, each with what comes after it."""

    memories: Memories
    asking: Asking
    flattener: Flattener
    grown: Mapping[str, tuple[LayoutStep, ...]]

    def check(self, top: Sequence[tuple[Item, bool]]) -> list[Claim]:
        """What is owed and paid. `top` are the new program's steps at its top, each with whether it was added."""
        said: list[Claim] = []
        written = stored(self.memories)
        for old, relaid in self.memories.relaid.items():
            data = self.memories.became(old)
            steps = self.grown.get(data.name, ())
            if data not in self.memories.new.parameters or data not in written:
                continue
            if any(step.padding is Cell.PAD_VALUE for step in steps):
                if len(steps) != 1:
                    raise Mismatch(f"the padding of {relaid.after.name} is owed by several steps at once")
                said.append(self._paid(data, relaid, steps[0], top))
        return said

    def _paid(self, data: Var, relaid: Relaid, step: LayoutStep, top: Sequence[tuple[Item, bool]]) -> Claim:
        name = relaid.after.name
        place = next((n for n, (item, added) in enumerate(top) if added and self._writes(item, data)), None)
        if place is None:
            raise Mismatch(f"the padding of {name} is owed {step.contract}, and no stage at the function's top writes it")
        for item, _ in top[place + 1 :]:
            if self._writes(item, data):
                raise Mismatch(f"{name} is written after its padding was filled ({item.place})")
        found = list(leaves(top[place][0], self.flattener, Scene()))
        if len(found) != 1 or not found[0].alone or not isinstance(found[0].item.node, BufferStore):
            raise Mismatch(f"the stage that fills the padding of {name} does more than that, or depends on data")
        cells = cells_of(found[0].item, found[0].item.node)
        self._check_value(found[0], found[0].item.node, cells, data, step)
        self._check_coverage(found[0].scene, cells, relaid)
        return Claim(ClaimKind.OWED_PADDING, f"every cell of the padding of {name} holds {step.contract} at the end", found[0].item.place)

    def _writes(self, item: Item, data: Var) -> bool:
        if not isinstance(item.node, Stmt):
            return False
        touched = self.memories.new.touched(item.node)
        return touched.calls or data in self.memories.new.spread(touched.writes)

    def _check_value(self, leaf: Leaf, store: BufferStore, cells: Cells, data: Var, step: LayoutStep) -> None:
        name, value = store.buffer.name, leaf.item.say(store.value)
        cell = [i for i in cells.indices if isinstance(i, Var)]
        symbols = self.memories.old.facts.program.symbols
        if len(cell) != len(cells.indices) or len(set(cell)) != len(cell) or step.contract is None:
            raise Mismatch(f"the stage that fills the padding of {name} does not go over its cells one by one ({leaf.item.place})")
        if not is_contract(step.contract, value, cell, symbols):
            raise Mismatch(f"the padding of {name} is owed {step.contract}, and gets {expr_text(value, Style.PLAIN)} ({leaf.item.place})")
        guards = [g.as_expr for g in leaf.scene.guards]
        for load in loads_of(value):
            if not is_element(self.memories, self.asking, load, cell, leaf.scene, guards, data):
                raise Mismatch(f"what the padding of {name} is filled with depends on other padding ({leaf.item.place})")

    def _check_coverage(self, scene: Scene, cells: Cells, relaid: Relaid) -> None:
        """That every cell of the box is filled, or is one that a cell of the old program became."""
        if cells.buffer != relaid.after:
            raise Mismatch(f"the padding of {relaid.after.name} is filled through another view")
        facts = self.memories.old.facts
        box, cell = over_cells(relaid.after, Scene(), "box'")
        filled = replace(scene, dims=(*box.dims, *scene.dims))
        whole = Cells(relaid.after, cell)
        reached, source = over_cells(relaid.before, box, "from'")
        image = Cells(relaid.after, relaid.cells.map_indices(source))
        covers = [Cover(filled, tuple(meeting(cells, whole))), Cover(reached, tuple(meeting(image, whole)))]
        if facts.model.uncovered(box, covers).is_empty or self._by_predicate(scene, cells, relaid):
            return
        raise Mismatch(f"some padding of {relaid.after.name} may be left out by the stage that fills it")

    def _by_predicate(self, scene: Scene, cells: Cells, relaid: Relaid) -> bool:
        """The same by the padding's predicate, which holds for every cell that the map does not reach."""
        cell = [i for i in cells.indices if isinstance(i, Var)]
        bounds = {d.var: d for d in scene.dims}
        if len(cell) != len(cells.indices) or set(cell) != set(bounds):
            return False
        for variable, extent in zip(cell, relaid.after.shape, strict=True):
            dim = bounds[variable]
            if dim.start != const(0, dim.start.dtype) or not self.asking.equal(Scene(), dim.extent, extent):
                return False
        assumed = self.memories.old.facts.program.assumed
        report = report_on(relaid.cells, relaid.before.shape, logical_and(*assumed) if assumed else None)
        predicate = report.padding.predicate
        if predicate is None or len(report.physical_shape) != len(cell):
            return False
        for said, extent in zip(report.physical_shape, relaid.after.shape, strict=True):
            if said is None or not self.asking.equal(Scene(), said, extent):
                return False
        names = {v.name: v for v in free_variables(predicate)}
        values = {names[f"p{k}"]: widen(v, names[f"p{k}"].dtype) for k, v in enumerate(cell) if f"p{k}" in names}
        inside = replace(scene, guards=())
        return self.asking.never(inside, substitute(predicate, values), Not(logical_and(*(g.as_expr for g in scene.guards))))
