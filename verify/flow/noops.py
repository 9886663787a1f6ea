"""Extra instances that store the value that is there, proved in the full new program, and then deleted.

All extra instances are present while this is proved: a store that is deleted changed nothing, so deleting all such stores at once
leaves every other value what it was. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.intrinsics import OpaqueCall, Undef
from layoutproof.ir.subst import substitute
from layoutproof.ir.visit import free_variables, walk
from layoutproof.verify.clauses import Clause
from layoutproof.verify.flow.ends import ends_that_matter, observable_ends
from layoutproof.verify.flow.invariants import Invariants, joint
from layoutproof.verify.flow.knowledge import Knowledge, Known
from layoutproof.verify.flow.origins import Computed
from layoutproof.verify.flow.terms import Leaves, decided
from layoutproof.verify.flow.world import NEW, World
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.pairing import Points, Region, Relation, Sources, joined, no_points, only, part_of, relations
from layoutproof.verify.statements import Read, ReadRole, Statement
from layoutproof.verify.values.answer import ValueAnswer
from layoutproof.verify.values.licences import IEEE, Licence, Licences, names_of
from layoutproof.verify.values.properties import Given
from layoutproof.verify.values.prove import ValueProver
from layoutproof.verify.verdict import Status

_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Candidate:
    """Extra instances that were found to be no-ops, with the answer that says so and the invariants that it rests on."""

    region: Region
    answer: ValueAnswer
    invariants: Mapping[str, ValueAnswer]


@dataclass(slots=True)
class NoOps:
    """What was found of one new statement's extra instances: those that write cells at which nobody looks (`dead`), those that are
    deleted, with the answers that say why, and the first answer that did not suffice.
    """

    statement: Statement
    extra: Region
    dead: Region | None = None
    deleted: Region | None = None
    answers: list[ValueAnswer] = field(default_factory=list)
    invariants: dict[str, ValueAnswer] = field(default_factory=dict)
    failed: ValueAnswer | None = None

    @property
    def left(self) -> Region:
        """The extra instances that are not gone."""
        left = self.extra
        for gone in (self.dead, self.deleted):
            left = left if gone is None else left.outside(gone.points)
        return left

    def delete(self, candidates: Sequence[Candidate]) -> None:
        """Take answers over into what is known."""
        for candidate in candidates:
            self.answers.append(candidate.answer)
            self.invariants.update(candidate.invariants)
        gone = [candidate.region for candidate in candidates]
        self.deleted = joined(gone if self.deleted is None else [self.deleted, *gone])


def find_no_ops(world: World, facts: Knowledge, regrouped: Sources | None, values: ValueProver, without: frozenset[Clause]) -> list[NoOps]:
    """The extra instances of each new statement that has any, with those that are no-ops.

    Round by round: what changes nothing is deleted, the cheapest (in licences) first; then more is known of what the others find.
    Only instances are tried that write a cell in which something that matters would find an extra instance's value.
    """
    found = [NoOps(statement, extra) for statement in world.new.statements if not (extra := extra_of(world, statement)).is_empty]
    if Clause.NO_OPS in without:
        for record in found:
            record.deleted = record.extra
        return found
    _find_dead(world, found)
    spent: Licences = IEEE
    for _ in range(_ROUNDS):
        if all(record.left.is_empty for record in found):
            break
        flow = without_no_ops(world, found)
        knowledge = facts.with_flow(flow)
        computed = Computed(world, flow, without, regrouped)
        cells = _cells_that_matter(world, flow, found)
        asking = _Asking(computed, Invariants(world, knowledge, computed, values, without, cells), values)
        candidates = [
            (record, candidate)
            for record in found
            for read in _current_reads(record.statement)
            for candidate in _try(world, record, read, cells, knowledge, asking)
        ]
        if not candidates:
            break
        if not any(candidate.answer.licences <= spent for _, candidate in candidates):
            spent |= min((candidate.answer.licences for _, candidate in candidates), key=lambda each: (len(each - spent), names_of(each)))
        for record in found:
            chosen = [candidate for owner, candidate in candidates if owner is record and candidate.answer.licences <= spent]
            if chosen:
                record.delete(chosen)
        if Licence.NSZ in spent:
            # What is left finds zeros of another sign than the program as it stands: no more may be concluded from what it finds.
            break
    return found


def _find_dead(world: World, found: Sequence[NoOps]) -> None:
    """Note the extra instances that write cells at which no matched instance, no end that matters and no other extra instance ever
    looks: without them, all that these find is what it was.
    """
    if not found:
        return
    seen = _cells_looked_at(world)
    for _ in range(_ROUNDS):
        more = seen
        for record in found:
            alive = _writing(world, record, seen).named(f"{NEW}{record.statement.number}")
            for read in record.statement.reads:
                more = more.union(_looked_at(world, record.statement, read, alive))
        if more.is_subset(seen):
            break
        seen = more.coalesce()
    else:
        return
    for record in found:
        dead = record.extra.outside(_writing(world, record, seen).points)
        record.dead = None if dead.is_empty else dead


def _writing(world: World, record: NoOps, cells: Sources) -> Region:
    """The extra instances that write some of the cells."""
    access = Relation.from_map(world.after.access(record.statement)).intersect_range(cells)
    return record.extra.within(part_of(access.domain(), f"{NEW}{record.statement.number}", record.extra.points))


def _cells_looked_at(world: World) -> Sources:
    """The cells that matched instances load from, and those that matter at the end."""
    seen = ends_that_matter(world)
    for number, pairs in world.matched.items():
        statement = next(s for s in world.new.statements if s.number == number)
        for read in statement.reads:
            for _, points in pairs:
                seen = seen.union(_looked_at(world, statement, read, points))
    return seen.coalesce()


def _looked_at(world: World, statement: Statement, read: Read, points: Points) -> Sources:
    """The cells at which a read looks in some instances of its statement."""
    if read.anywhere:
        return only(world.after.cell_set(read.data))
    return Relation.from_map(world.after.access(read, statement)).intersect_domain(only(points)).range()


def _cells_that_matter(world: World, flow: Dataflow, found: Sequence[NoOps]) -> Sources:
    """The cells in which a matched instance or an observable end finds what an extra instance wrote."""
    extra = no_points(world.encoder(()).space.universe())
    for record in found:
        extra = extra.union(only(record.left.named(f"{NEW}{record.statement.number}")))
    written = {record.statement.data for record in found}
    read = extra.subtract(extra)
    for number, pairs in world.matched.items():
        statement = next(s for s in world.new.statements if s.number == number)
        for each in statement.reads:
            if each.data in written:
                source = flow.sources(statement, each)
                for _, points in pairs:
                    read = read.union(source.intersect_domain(only(points)).range())
    for data, seen in observable_ends(world):
        if data in written:
            read = read.union(flow.final(data).intersect_domain(seen).range())
    read = read.intersect(extra)
    accesses = relations([world.after.access(record.statement) for record in found], world.encoder(()).space.universe())
    return read.apply(accesses).coalesce()


def extra_of(world: World, statement: Statement) -> Region:
    """The instances of a new statement that compute no old instance."""
    region = world.region(world.after, statement)
    for _, points in world.matched.get(statement.number, ()):
        region = region.outside(points)
    return region


def without_no_ops(world: World, found: Sequence[NoOps]) -> Dataflow:
    """The flow of the new program without what is dead or changes nothing."""
    removed: dict[int, Points] = {}
    for each in found:
        for gone in (each.dead, each.deleted):
            if gone is not None and not gone.is_empty:
                name = f"{NEW}{each.statement.number}"
                points = gone.named(name)
                removed[each.statement.number] = (
                    removed[each.statement.number].union(points) if each.statement.number in removed else points
                )
    return world.after.without(removed) if removed else world.after


def _current_reads(statement: Statement) -> Iterator[Read]:
    """The loads that happen with the store itself, of the memory that it writes."""
    moment = statement.scene.time[:-1]
    for read in statement.reads:
        if read.access.data != statement.data or read.anywhere:
            continue
        if read.role is ReadRole.CURRENT or read.access.scene.time[: len(moment)] == moment:
            yield read


@dataclass(frozen=True, slots=True)
class _Asking:
    computed: Computed
    invariants: Invariants
    values: ValueProver


def _try(world: World, record: NoOps, current: Read, cells: Sources, knowledge: Knowledge, asking: _Asking) -> Iterator[Candidate]:
    """The extra instances that certainly store the value that is there, piece by piece."""
    statement = record.statement
    access = world.after.access(statement)
    matter = part_of(Relation.from_map(access).intersect_range(cells).domain(), f"{NEW}{statement.number}", record.extra.points)
    same = world.after.access(current, statement).intersect(access).domain()
    region = record.left.within(same).within(matter)
    variables = frozenset(read.var for read in statement.reads)
    for part, (term,) in decided(region, variables, statement.value):
        if any(isinstance(node, Undef | OpaqueCall) for node in walk(term)):
            continue
        used = set(free_variables(term))
        reads = [read for read in statement.reads if read.var in used and read is not current]
        for piece, known in knowledge.together(statement, [current, *reads], part):
            candidate = _ask(_Question(statement, current, reads, known, piece, term), asking)
            if candidate.answer.status is Status.PROVED:
                yield candidate
            elif record.failed is None:
                record.failed = candidate.answer


@dataclass(frozen=True, slots=True)
class _Question:
    statement: Statement
    current: Read
    reads: Sequence[Read]
    known: Sequence[Known]
    region: Region
    term: Expr


def _ask(question: _Question, asking: _Asking) -> Candidate:
    """Whether the value stored is the one that is there: without invariants first, then with those that hold."""
    computed, invariants, values = asking.computed, asking.invariants, asking.values
    constants: dict[Var, Expr] = {}
    given: list[Given] = []
    all_reads = [question.current, *question.reads]
    for read, known in zip(all_reads, question.known, strict=True):
        given += [Given(read.var, each) for each in known.properties]
        if known.value is not None:
            constants[read.var] = known.value
    leaves = Leaves(question.region, frozenset(read.var for read in question.statement.reads))
    term = substitute(leaves.abstract(question.term), constants)
    target = constants.get(question.current.var, question.current.var)
    trusted = frozenset(
        read.var for read in all_reads if read.var not in constants and computed.is_computed(question.statement, read, question.region)
    )

    def ask(more: Sequence[Given]) -> ValueAnswer:
        return values.prove_same(term, target, given=(*given, *more), computed=trusted, old_is_computed=False)

    best = ask(())
    if best.status is Status.PROVED and not best.licences:
        return Candidate(question.region, best, {})
    current, used = question.current, dict[str, ValueAnswer]()
    for candidate in invariants.candidates(current.access.data):
        answer = ask([Given(current.var, candidate)])
        if not _better(answer, best):
            continue
        proof = invariants.prove(question.statement, current, question.region, candidate)
        if proof.status is Status.PROVED and _better(joint((answer, proof)), best):
            best, used = joint((answer, proof)), {f"{current.access.buffer.name} {candidate}": proof}
    if best.status is not Status.PROVED:
        holding = invariants.together(question.statement, current, question.region)
        if len(holding) > 1 and ask([Given(current.var, each) for each in holding]).status is Status.PROVED:
            needed = dict(holding)
            # The ones that take licences are done without first.
            for each in sorted(holding, key=lambda one: -len(holding[one].licences)):
                rest = [one for one in needed if one != each]
                if ask([Given(current.var, one) for one in rest]).status is Status.PROVED:
                    del needed[each]
            answer = ask([Given(current.var, each) for each in needed])
            best = joint((answer, *needed.values()))
            used = {f"{current.access.buffer.name} {each}": proof for each, proof in needed.items()}
    return Candidate(question.region, best, used)


def _better(answer: ValueAnswer, than: ValueAnswer) -> bool:
    if answer.status is not Status.PROVED:
        return False
    return than.status is not Status.PROVED or len(answer.licences) < len(than.licences)
