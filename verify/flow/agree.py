"""Where a read of the new program finds what a read of the old one found: both lead to one source, up to theta and f.

A source that is a copy (a value that is one load of the same type, or takes one by a lazy choice on the loops) stands for the source of
that load, in both programs; a source in a reduction that was regrouped stands for its owner and the multiset of its contributions. Part
of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from layoutproof.ir.expr import Expr, IfThenElseExpr, Var
from layoutproof.verify.flow.theta import Counterpart
from layoutproof.verify.flow.world import NEW, OLD, Key, World, key_of
from layoutproof.verify.isl.agreement_evidence import note_agreement, note_contributions
from layoutproof.verify.isl.coalesce import coalesced
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.pairing import (
    Points,
    Region,
    Relation,
    Sources,
    agreement,
    function_between,
    no_points,
    no_relation,
    only,
    part_of,
    relations,
    without_dim,
)
from layoutproof.verify.statements import Read, Statement, Statements

_ROUNDS = 16


@dataclass(frozen=True, slots=True)
class Regrouped:
    """A reduction whose updates the new program does in another order: the chains' statement numbers in both programs."""

    data: Var
    old_chain: frozenset[int]
    new_chain: frozenset[int]


@dataclass(slots=True)
class Agreement:
    """Sources in both programs, compared. `after` is the flow of the new program without its no-ops.

    `regrouped` is by the names of the memories in the old and the new program. What single updates of such a reduction store in the new
    program is not what they stored before: nothing agrees because it leads to one of them.
    """

    world: World
    after: Dataflow
    regrouped: Mapping[tuple[str, str], Regrouped] = field(default_factory=dict)
    _moved: Sources | None = None
    _found: dict[tuple[Key, Var, Var], Points] = field(default_factory=dict)

    def of_reads(self, claim: Counterpart, new: Read, old: Read, region: Region) -> Points:
        """The instances of a new statement in which its read finds what its counterpart's read finds."""
        key = (key_of(claim), new.var, old.var)
        if key not in self._found:
            self._found[key] = self._of_reads(claim, new, old, region)
        return self._found[key]

    def _of_reads(self, claim: Counterpart, new: Read, old: Read, region: Region) -> Points:
        step = self.world.step(claim)
        if new.anywhere or old.anywhere:
            return self._anywhere(claim, new, old, region)
        return self._compared(claim, new, old, step, region)

    def _compared(self, claim: Counterpart, new: Read, old: Read, step: Relation, region: Region) -> Points:
        """Where a read finds the source that its counterpart finds, or, of a reduction that was regrouped, the same contributions."""
        name = f"{NEW}{claim.new.number}"
        group = self.regrouped.get((old.data.name, new.data.name))
        if group is not None:
            mine = self.after.reduced(claim.new, new, group.new_chain)
            theirs = self.world.before.reduced(claim.old, old, group.old_chain)
            return self._regrouped(mine, (step.apply_range(theirs[0]), step.apply_range(theirs[1])), name, region)
        found = self.after.sources(claim.new, new)
        wanted = step.apply_range(self.world.before.sources(claim.old, old))
        return self.of_flows(found, wanted, name, region)

    def of_flows(self, found: Relation, wanted: Relation, name: str, region: Region) -> Points:
        """Where two relations from one tuple, to sources of the new and of the old program, lead to one source."""
        found = found.subtract_range(self.moved)
        points = agreement(found.apply_range(self.world.theta), wanted, name, region.points)
        missing = region.outside(points)
        gathered = self.world.workspace.gathered
        note_agreement(gathered, f"that what {name} finds is what it found", found, self.world.theta, wanted, points)
        if missing.is_empty:
            return points
        mine = resolved(self.after, self.world.new, found, frozenset(name for _, name in self.regrouped))
        mine = mine.subtract_range(self.moved)
        theirs = resolved(self.world.before, self.world.old, wanted, frozenset(name for name, _ in self.regrouped))
        if mine is found and theirs is wanted:
            return points
        more = agreement(mine.apply_range(self.world.theta), theirs, name, region.points)
        note_agreement(gathered, f"that what {name} finds is a copy of what it found", mine, self.world.theta, theirs, more)
        return coalesced(points.union(more))

    def of_ends(self, data: Var, new_data: Var, step: Relation, region: Region, name: str) -> Points:
        """The cells (old names) of a memory that end with what their counterparts end with; `step` is f on them."""
        group = self.regrouped.get((data.name, new_data.name))
        if group is not None:
            owner, parts = self.after.reduced_final(new_data, group.new_chain)
            theirs = self.world.before.reduced_final(data, group.old_chain)
            return self._regrouped((step.apply_range(owner), step.apply_range(parts)), theirs, name, region)
        found = step.apply_range(self.after.final(new_data))
        return self.of_flows(found, self.world.before.final(data), name, region)

    def _regrouped(self, found: tuple[Relation, Relation], wanted: tuple[Relation, Relation], name: str, region: Region) -> Points:
        """Where owner and contributions are the same: theta is one to one on the chain, so equal relations are equal multisets."""
        theta = self.world.theta
        points = self.of_flows(found[0], wanted[0], name, region)
        carried = found[1].apply_range(theta)
        lost = found[1].subtract_range(theta.domain()).domain()
        differ = carried.subtract(wanted[1]).domain().union(wanted[1].subtract(carried).domain()).union(lost)
        points = coalesced(points.subtract(part_of(differ, name, region.points)))
        note_contributions(self.world.workspace.gathered, f"that {name} finds the same contributions", found[1], theta, wanted[1], points)
        return points

    @property
    def moved(self) -> Sources:
        """The new updates of regrouped reductions."""
        if self._moved is None:
            updates = no_points(self.world.encoder(()).space.universe())
            numbers = {number for group in self.regrouped.values() for number in group.new_chain}
            for statement in self.world.new.statements:
                if statement.number in numbers:
                    updates = updates.union(only(self.world.after.domain(statement)))
            self._moved = updates
        return self._moved

    def _anywhere(self, claim: Counterpart, new: Read, old: Read, region: Region) -> Points:
        """The instances in which every cell of a memory, one to one, has the source that it had. The memory keeps its cells."""
        name = f"{NEW}{claim.new.number}"
        nowhere = region.named(name).subtract(region.named(name))
        more, rest = new.access.scene.dims[len(claim.new.dims) :], old.access.scene.dims[len(claim.old.dims) :]
        moved = self.world.moved(old.data.name)
        if not (new.anywhere and old.anywhere) or len(more) != len(rest) or moved:
            return nowhere
        encoder = self.world.encoder_of(new.access.scene.dims)
        outputs = (*claim.outputs, *(dim.var for dim in more))
        step = relations([function_between(encoder, name, outputs, f"{OLD}{claim.old.number}", claim.where)], region.points)
        everywhere = Region(encoder, encoder.space.universe()).within(self.after.access(new, claim.new).domain())
        agreeing = self._compared(claim, new, old, step, everywhere)
        differ = everywhere.outside(agreeing).points
        for position in reversed(range(len(claim.new.dims), len(new.access.scene.dims))):
            differ = without_dim(differ, position)
        return coalesced(region.named(name).subtract(differ.set_tuple_name(name)))


def resolved(flow: Dataflow, statements: Statements, found: Relation, except_of: frozenset[str]) -> Relation:
    """The relation with sources that are copies replaced by what they copied, a few times over; copies of the memories in `except_of`
    stay.
    """
    copies = [(s, read) for s in statements.statements for read in copied_reads(s) if read.data.name not in except_of]
    if not copies:
        return found
    step, places = no_relation(flow.domain(copies[0][0])), no_points(flow.domain(copies[0][0]))
    for statement, read in copies:
        source = flow.sources(statement, read)
        step, places = step.union(source), places.union(source.domain())
    current = found
    for _ in range(_ROUNDS):
        moved = current.intersect_range(places)
        if moved.is_empty():
            break
        current = coalesced(current.subtract_range(places).union(moved.apply_range(step)))
    return current


def copied_reads(statement: Statement) -> Iterator[Read]:
    """The loads each of which is all that a statement stores, in the instances in which it happens: its value, or what a lazy choice on
    the loops takes from one of its sides.
    """
    if statement.scatter:
        return
    ends = list(_lazy_ends(statement.value))
    # A load on a side of a choice on data is not sure to happen; one under a choice on the loops has the condition among its guards.
    yield from (r for r in statement.reads if r.var in ends and not r.anywhere and (r.sure or r.var == statement.value))


def _lazy_ends(value: Expr) -> Iterator[Expr]:
    if isinstance(value, IfThenElseExpr):
        yield from _lazy_ends(value.then)
        yield from _lazy_ends(value.otherwise)
    else:
        yield value


def representatives(flow: Dataflow, statement: Statement) -> dict[Var, Var]:
    """For each load of a statement, the first one that finds the same value wherever both happen."""
    found: dict[Var, Var] = {}
    groups: list[list[Read]] = []
    for read in statement.reads:
        # Loads that never happen together find the same, so each of a group has to be asked.
        group = next((g for g in groups if all(_find_the_same(flow, statement, each, read) for each in g)), None)
        if group is None:
            groups.append(group := [])
        group.append(read)
        found[read.var] = group[0].var
    return found


def _find_the_same(flow: Dataflow, statement: Statement, first: Read, second: Read) -> bool:
    if first.data != second.data or first.var.dtype != second.var.dtype:
        return False
    # Loads in the place of others may say one cell in two ways.
    if first.coordinates != second.coordinates and not (flow.is_carried(statement, first) or flow.is_carried(statement, second)):
        return False
    if first.anywhere or second.anywhere:
        return False
    one, other = flow.sources(statement, first), flow.sources(statement, second)
    return bool(one.intersect_domain(other.domain()).is_equal(other.intersect_domain(one.domain())))
