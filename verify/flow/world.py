"""Both programs of a rewrite as integer sets in one context, with theta and f between them.

Everything that the conditions of the simulation ask is asked of a `World`. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.rewrite import CellMap, Rewrite
from layoutproof.verify.apart import UNSAID, are_apart, is_unsaid
from layoutproof.verify.facts import Facts
from layoutproof.verify.flow.theta import Counterpart, counterparts
from layoutproof.verify.instances import Dim
from layoutproof.verify.isl.coalesce import coalesced
from layoutproof.verify.isl.dataflow import Dataflow, Workspace
from layoutproof.verify.isl.encode import Encoder
from layoutproof.verify.isl.pairing import (
    Link,
    Points,
    Region,
    Relation,
    function_between,
    no_relation,
    part_of,
    relations,
)
from layoutproof.verify.isl.space import DEFAULT_OPERATIONS, NamedSpace
from layoutproof.verify.statements import AssumedFact, NotModelled, Statement, Statements, read_statements

OLD, NEW = "o", "n"
Key: TypeAlias = tuple[int, int, tuple[Expr, ...], Expr | None]


@dataclass(slots=True)
class World:
    """Two programs and the witness between them.

    `before` and `after` are the flows of the old and the new program; `pairs` says what each new statement computes, with the
    instances for which it does (`matched`); `theta` takes new instances and the initial cells of new memories to old ones.
    """

    rewrite: Rewrite
    old: Statements
    new: Statements
    workspace: Workspace
    before: Dataflow
    after: Dataflow
    pairs: Mapping[int, tuple[Counterpart, ...]]
    matched: dict[int, list[tuple[Counterpart, Points]]] = field(default_factory=dict)
    theta: Relation = field(init=False)
    _steps: dict[Key, Relation] = field(default_factory=dict)
    _encoders: dict[tuple[str, ...] | tuple[Dim, ...], Encoder] = field(default_factory=dict)

    @staticmethod
    def of(rewrite: Rewrite, old_facts: Facts, new_facts: Facts, operations: int = DEFAULT_OPERATIONS) -> World:
        """The world of a rewrite. Raises NotModelled, NotQuasiAffine or BudgetExceeded."""
        if is_unsaid(rewrite):
            raise NotModelled(UNSAID, None)
        apart = are_apart(rewrite)
        old = read_statements(old_facts.program, apart=apart, gathered=old_facts.gathered)
        new = read_statements(new_facts.program, apart=apart, gathered=old_facts.gathered)
        symbols = tuple(dict.fromkeys((*old_facts.program.symbols, *new_facts.program.symbols)))
        ranges = {**old_facts.ranges, **new_facts.ranges}
        workspace = Workspace(symbols, (*old_facts.assumed, *new_facts.assumed), ranges, operations, old_facts.gathered)
        world = World(
            rewrite,
            old,
            new,
            workspace,
            Dataflow(workspace, old, OLD),
            Dataflow(workspace, new, NEW),
            counterparts(rewrite, old, new),
        )
        with workspace.limited():
            world._pair()
        return world

    # Sets

    def encoder(self, names: Sequence[str]) -> Encoder:
        """The encoder of expressions over dims of these names."""
        key = tuple(names)
        found = self._encoders.get(key)
        if found is None:
            space = NamedSpace(self.workspace.ctx, key, [symbol.name for symbol in self.workspace.symbols])
            found = self._encoders[key] = Encoder(space, space.universe())
        return found

    def encoder_of(self, dims: Sequence[Dim]) -> Encoder:
        """The encoder of expressions over these dims, for points that lie in them. Raises NotModelled."""
        key = tuple(dims)
        found = self._encoders.get(key)
        if found is None:
            found = self._encoders[key] = self.workspace.boxed(key).encoder
        return found

    def region(self, flow: Dataflow, statement: Statement) -> Region:
        """All instances of a statement."""
        return self.of_points(statement, flow.domain(statement))

    def of_points(self, statement: Statement, points: Points) -> Region:
        """Some instances of a statement."""
        encoder = self.encoder_of(statement.dims)
        return Region(encoder, encoder.space.universe()).within(points)

    def of_assumption(self, assumption: AssumedFact, flow: Relation, name: str) -> Region:
        """The instances of an assumption from which a relation leads somewhere."""
        encoder = self.encoder_of(assumption.dims)
        universe = encoder.space.universe()
        return Region(encoder, universe).within(part_of(flow.domain(), name, universe))

    @property
    def nothing(self) -> Relation:
        """The relation that leads nowhere."""
        return no_relation(self.encoder(()).space.universe())

    def step(self, claim: Counterpart) -> Relation:
        """Theta on one counterpart."""
        return self._steps[key_of(claim)]

    def matched_points(self, claim: Counterpart) -> Points:
        """The instances for which the witness makes this claim."""
        return next(points for found, points in self.matched[claim.new.number] if key_of(found) == key_of(claim))

    def _pair(self) -> None:
        """Theta as a relation, and the instances that it takes to ones that exist."""
        universe = self.encoder(()).space.universe()
        theta = relations([], universe)
        for statement in self.new.statements:
            taken: Points | None = None
            for claim in self.pairs.get(statement.number, ()):
                step = self._step(claim)
                points = coalesced(step.domain())
                if taken is not None and not taken.intersect(points).is_empty():
                    raise NotModelled(f"the witness says twice what the new store {statement.number} computes", None)
                taken = points if taken is None else taken.union(points)
                self.matched.setdefault(statement.number, []).append((claim, points))
                relation = relations([step], universe)
                self._steps[key_of(claim)] = relation
                theta = theta.union(relation)
        for entry in self._entries():
            cells = self.cells(entry, f"{OLD}in_", f"{NEW}in_")
            if cells is not None:
                theta = theta.union(relations([cells.reverse()], universe))
        self.theta = theta

    def _step(self, claim: Counterpart) -> Link:
        encoder = self.encoder_of(claim.new.dims)
        step = function_between(encoder, f"{NEW}{claim.new.number}", claim.outputs, f"{OLD}{claim.old.number}", claim.where)
        return coalesced(step.intersect_domain(self.after.domain(claim.new)).intersect_range(self.before.domain(claim.old)))

    # Cells

    def _entries(self) -> list[CellMap]:
        """f on each memory that is there from start to end in the old program."""
        stated = {cells.old_data: cells for cells in self.rewrite.witness.cells}
        return [self.entry(data.name, stated) for data in self.old.cells if data not in self.old.program.temporaries]

    def entry(self, name: str, stated: Mapping[str, CellMap] | None = None) -> CellMap:
        """f on one memory: what the witness states, else the identity."""
        known = stated if stated is not None else {cells.old_data: cells for cells in self.rewrite.witness.cells}
        if name in known:
            return known[name]
        box = self.old.cells[self.memory(self.old, name)]
        variables = tuple(Var(f"c{axis}", extent.dtype) for axis, extent in enumerate(box))
        return CellMap(name, name, IndexMap(variables, variables))

    def moved(self, name: str) -> bool:
        """Whether the witness says that a memory's cells are elsewhere now."""
        return any(cells.old_data == name for cells in self.rewrite.witness.cells)

    @staticmethod
    def memory(statements: Statements, name: str) -> Var:
        """The data variable of that name. Raises NotModelled where the program never touches it."""
        found = next((data for data in statements.cells if data.name == name), None)
        if found is None:
            raise NotModelled(f"memory {name} is touched in one program only", None)
        return found

    def cells(self, entry: CellMap, old_prefix: str, new_prefix: str) -> Link | None:
        """f on one memory, from old cells to new ones, under tuple names with these prefixes; None where the new program never touches
        it.
        """
        new_data = next((data for data in self.new.cells if data.name == entry.new_data), None)
        if new_data is None:
            return None
        old_data = self.memory(self.old, entry.old_data)
        box, target = self.old.cells[old_data], self.new.cells[new_data]
        if self.old.dtypes[old_data] != self.new.dtypes[new_data]:
            seen = f"as {self.old.dtypes[old_data]}, the new one as {self.new.dtypes[new_data]}"
            raise NotModelled(f"the old program sees the memory {entry.old_data} {seen}", None)
        if len(entry.cells.inputs) != len(box) or entry.cells.rank != len(target):
            raise NotModelled(f"the cells of {entry.old_data} are not those that its cell map speaks of", None)
        names = [f"c{axis}" for axis in range(len(box))]
        outputs = entry.cells.map_indices([Var(n, e.dtype) for n, e in zip(names, box, strict=True)])
        step = function_between(self.encoder(names), old_prefix + entry.old_data, outputs, new_prefix + entry.new_data)
        return step.intersect_domain(self.before.cell_set(old_data).set_tuple_name(old_prefix + entry.old_data))

    def ends_of(self, entry: CellMap) -> tuple[Var, Var, Relation]:
        """The memory before and after, and f between their cells at the end. Raises NotModelled where one program never touches it."""
        step = self.cells(entry, f"{OLD}out_", f"{NEW}out_")
        if step is None:
            raise NotModelled(f"memory {entry.new_data} is touched in one program only", None)
        relation = relations([step], self.encoder(()).space.universe())
        return self.memory(self.old, entry.old_data), self.memory(self.new, entry.new_data), relation

    def cells_region(self, flow: Dataflow, data: Var) -> Region:
        """All cells of a memory, as a region."""
        statements = self.old if flow is self.before else self.new
        encoder = self.encoder([f"c{axis}" for axis in range(len(statements.cells[data]))])
        return Region(encoder, encoder.space.universe()).within(flow.cell_set(data))


def key_of(claim: Counterpart) -> Key:
    """What tells one claim from all others of a rewrite."""
    return claim.new.number, claim.old.number, claim.outputs, claim.where
