"""Both programs of a rewrite as integer sets in one context, with theta (which old instance each new one computes) and
f (which new cell each old one became) between them, and each program by itself with its unmatched instances. Part of
the trust base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from layoutproof.ir.expr import Expr, IntImm, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite
from layoutproof.ir.stmt import For
from layoutproof.ir.visit import loops_of_stores, substitute
from layoutproof.verify.faults.arithmetic import assumed_sizes
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.flow.statement_reader import read_statements
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.encode import Encoder
from layoutproof.verify.isl.instance_sets import (
    Link,
    Points,
    Region,
    Relation,
    Workspace,
    function_between,
    no_relation,
    part_of,
    relations,
)
from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.isl.space import DEFAULT_OPERATIONS, NamedSpace
from layoutproof.verify.lockstep.memories import UNSAID, are_apart, is_unsaid
from layoutproof.verify.program.instances import Dim
from layoutproof.verify.program.statement import AssumedFact, NotModelled, Statement, Statements


@dataclass(frozen=True, slots=True)
class Counterpart:
    """The claim that instance `d` of `new` (where `where` holds) computes instance `outputs(d)` of `old`, one output
    for each of its dims; both are claims about instances that exist.
    """

    new: Statement
    old: Statement
    outputs: tuple[Expr, ...]
    where: Expr | None


def counterparts(rewrite: Rewrite, old: Statements, new: Statements) -> dict[int, tuple[Counterpart, ...]]:
    """The counterparts of each new statement by number. Raises NotModelled for a witness that does not fit."""
    old_loops, new_loops = loops_of_stores(rewrite.old.body), loops_of_stores(rewrite.new.body)
    olds, news = _by_number(old), _by_number(new)
    found: dict[int, list[Counterpart]] = {}
    for claim in rewrite.witness.instances:
        if claim.old_store is None or claim.instances is None:
            continue
        mine, theirs = news.get(claim.new_store), olds.get(claim.old_store)
        if mine is None or theirs is None:
            # A store that is never executed has no statement, and a store that computes one that never was computes
            # nothing.
            continue
        found.setdefault(claim.new_store, []).append(
            _counterpart(claim, mine, theirs, new_loops[claim.new_store], old_loops[claim.old_store])
        )
    return {number: tuple(claims) for number, claims in found.items()}


def _by_number(statements: Statements) -> Mapping[int, Statement]:
    return {statement.number: statement for statement in statements.statements}


def _counterpart(
    claim: InstanceMap, new: Statement, old: Statement, new_loops: Sequence[For], old_loops: Sequence[For]
) -> Counterpart:
    assert claim.instances is not None
    inputs, outputs = claim.instances.inputs, claim.instances.outputs
    mine, theirs = _lane_said(new, len(inputs) - len(new_loops)), _lane_said(old, len(outputs) - len(old_loops))
    if len(inputs) != len(new_loops) + len(mine) or len(outputs) != len(old_loops) + len(theirs):
        raise NotModelled(
            f"the witness takes {len(inputs)} loops to {len(outputs)}, "
            f"the stores stand in {len(new_loops)} and {len(old_loops)}",
            None,
        )
    values: dict[Var, Expr] = {variable: dim.var for variable, dim in zip(inputs[len(new_loops) :], mine, strict=True)}
    for variable, loop in zip(inputs[: len(new_loops)], new_loops, strict=True):
        dim = _dim_of(new, loop)
        values[variable] = dim.var if dim is not None else loop.start
    said: dict[str, Expr] = {
        dim.var.name: substitute(o, values) for dim, o in zip(theirs, outputs[len(old_loops) :], strict=True)
    }
    for loop, output in zip(old_loops, outputs[: len(old_loops)], strict=True):
        dim = _dim_of(old, loop)
        if dim is not None:
            said[dim.var.name] = substitute(output, values)
    loops = [_dim_of(new, loop) for loop in new_loops]
    rest = [dim for dim in new.dims if dim not in (*loops, *mine) and not _is_single(dim)]
    result: list[Expr] = []
    known: dict[Var, Expr] = {}
    for dim in old.dims:
        if dim.var.name in said:
            value = said[dim.var.name]
        elif _is_single(dim):
            value = substitute(dim.start, known)
        elif rest:
            value = rest.pop(0).var
        else:
            raise NotModelled(
                f"the witness says nothing of {dim.var.name}, a coordinate of the old store {claim.old_store}", None
            )
        known[dim.var] = value
        result.append(value)
    where = substitute(claim.where, values) if claim.where is not None else None
    return Counterpart(new, old, tuple(result), where)


def _lane_said(statement: Statement, further: int) -> tuple[Dim, ...]:
    """The statement's lanes, where a witness has one coordinate more than there are loops."""
    return tuple(dim for dim in statement.dims if dim.lane)[:1] if further == 1 else ()


def _dim_of(statement: Statement, loop: For) -> Dim | None:
    return next((dim for dim in statement.dims if dim.var.name == loop.var.name), None)


def _is_single(dim: Dim) -> bool:
    """Whether the dim stands for a let: it has one value, its start."""
    return not dim.lane and dim.extent == IntImm(1, dim.extent.dtype)


OLD, NEW = "o", "n"
Key: TypeAlias = tuple[int, int, tuple[Expr, ...], Expr | None]


@dataclass(slots=True)
class RewriteModel:
    """Two programs and the witness between them.

    `before` and `after` are the flows of the old and the new program; `pairs` says what each new statement computes,
    with the instances for which it does (`matched`); `theta` takes new instances and the initial cells of new memories
    to old ones.
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
    def of(rewrite: Rewrite, old_facts: Facts, new_facts: Facts, operations: int = DEFAULT_OPERATIONS) -> RewriteModel:
        """The world of a rewrite. Raises NotModelled, NotQuasiAffine or BudgetExceeded."""
        if is_unsaid(rewrite):
            raise NotModelled(UNSAID, None)
        apart = are_apart(rewrite)
        old = read_statements(old_facts.program, apart=apart, gathered=old_facts.gathered)
        new = read_statements(new_facts.program, apart=apart, gathered=old_facts.gathered)
        symbols = tuple(dict.fromkeys((*old_facts.program.symbols, *new_facts.program.symbols)))
        ranges = {**old_facts.ranges, **new_facts.ranges}
        workspace = Workspace(symbols, (*old_facts.assumed, *new_facts.assumed), ranges, operations, old_facts.gathered)
        workspace.fitting = assumed_sizes(new_facts)
        rewrite_model = RewriteModel(
            rewrite,
            old,
            new,
            workspace,
            Dataflow(workspace, old, OLD),
            Dataflow(workspace, new, NEW),
            counterparts(rewrite, old, new),
        )
        with workspace.limited():
            rewrite_model._pair()
        return rewrite_model

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
        step = function_between(
            encoder, f"{NEW}{claim.new.number}", claim.outputs, f"{OLD}{claim.old.number}", claim.where
        )
        return coalesced(
            step.intersect_domain(self.after.domain(claim.new)).intersect_range(self.before.domain(claim.old))
        )

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
        """The cell map of one memory under these tuple prefixes; None where the new program never touches it."""
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
        """The memory in both programs, and the map of its final cells. Raises NotModelled if one never touches it."""
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


@dataclass(frozen=True, slots=True)
class ProgramModel:
    """A program with its flow. `kept` are the instances, by statement number, that have a counterpart."""

    rewrite_model: RewriteModel
    statements: Statements
    flow: Dataflow
    tag: str
    kept: Mapping[int, Sequence[Points]]

    @staticmethod
    def new(rewrite_model: RewriteModel) -> ProgramModel:
        """The new program of a rewrite."""
        kept = {number: [points for _, points in pairs] for number, pairs in rewrite_model.matched.items()}
        return ProgramModel(rewrite_model, rewrite_model.new, rewrite_model.after, NEW, kept)

    @staticmethod
    def old(rewrite_model: RewriteModel) -> ProgramModel:
        """The old program of a rewrite."""
        kept: dict[int, list[Points]] = {}
        for pairs in rewrite_model.matched.values():
            for claim, _ in pairs:
                like = rewrite_model.before.domain(claim.old)
                reached = part_of(rewrite_model.step(claim).range(), f"{OLD}{claim.old.number}", like)
                kept.setdefault(claim.old.number, []).append(reached)
        return ProgramModel(rewrite_model, rewrite_model.old, rewrite_model.before, OLD, kept)

    @property
    def is_old(self) -> bool:
        """Whether this is the old program."""
        return self.tag == OLD

    def name(self, statement: Statement) -> str:
        """The tuple name of a statement's instances."""
        return f"{self.tag}{statement.number}"

    def region(self, statement: Statement) -> Region:
        """All instances of a statement."""
        return self.rewrite_model.region(self.flow, statement)

    def unmatched(self, statement: Statement) -> Region:
        """The instances of a statement without a counterpart."""
        region = self.region(statement)
        for points in self.kept.get(statement.number, ()):
            region = region.outside(points)
        return region

    def in_old_terms(self, origins: Relation) -> Relation:
        """What leads to this program's instances and initial cells, as leading to those of the old one."""
        return origins if self.is_old else origins.apply_range(self.rewrite_model.theta)
