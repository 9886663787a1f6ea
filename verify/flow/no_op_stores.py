"""Instances without a counterpart that store the value that is there, proved in the full program, and then deleted.

All are present while this is proved: a store that is deleted changed nothing, so deleting all such stores at once
leaves every other value what it was. In the new program they are what it does besides, in the old one what the new one
drops. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.intrinsics import OpaqueCall, Undef
from layoutproof.ir.visit import free_variables, holds_any, substitute
from layoutproof.verify.flow.computed import Computed
from layoutproof.verify.flow.known_values import Invariants, Knowledge, Known
from layoutproof.verify.flow.models import ProgramModel
from layoutproof.verify.flow.observable import ends_that_matter, observable_ends
from layoutproof.verify.flow.stored_values import Leaves, decided
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.instance_sets import (
    Points,
    Region,
    Relation,
    Sources,
    joined,
    no_points,
    only,
    part_of,
    relations,
)
from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.program.statement import Read, ReadRole, Statement
from layoutproof.verify.values.fast_math import IEEE, FastMath, FastMathSet, names_of
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.values.question import Given, Property, Question, ValueAnswer, together
from layoutproof.verify.verdict.verdict import Status

_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Candidate:
    """Unmatched instances that are no-ops, with the answer that proves it and the invariants that it uses."""

    region: Region
    answer: ValueAnswer
    invariants: Mapping[str, ValueAnswer]


@dataclass(slots=True)
class NoOps:
    """One statement's unmatched instances: those whose cells are never read (`dead`), those that are deleted, with the
    answers that prove it, and the first answer that `failed`.
    """

    statement: Statement
    unmatched: Region
    dead: Region | None = None
    deleted: Region | None = None
    answers: list[ValueAnswer] = field(default_factory=list)
    invariants: dict[str, ValueAnswer] = field(default_factory=dict)
    failed: ValueAnswer | None = None

    @property
    def left(self) -> Region:
        """The unmatched instances that are neither dead nor deleted."""
        left = self.unmatched
        for gone in (self.dead, self.deleted):
            left = left if gone is None else left.outside(gone.points)
        return left

    def delete(self, candidates: Sequence[Candidate]) -> None:
        """Record no-ops as deleted."""
        for candidate in candidates:
            self.answers.append(candidate.answer)
            self.invariants.update(candidate.invariants)
        gone = [candidate.region for candidate in candidates]
        self.deleted = joined(gone if self.deleted is None else [self.deleted, *gone])


def find_no_ops(
    program_model: ProgramModel, facts: Knowledge, regrouped: Sources | None, values: ValueProver
) -> list[NoOps]:
    """The unmatched instances of each statement that has any, with those that are no-ops.

    Round by round: no-ops are deleted, the cheapest (in fast-math assumptions) first; then more is known of what the
    others find. Only instances are tried that write a cell in which something that matters would find an unmatched
    one's value.
    """
    found = [
        NoOps(statement, unmatched)
        for statement in program_model.statements.statements
        if not (unmatched := program_model.unmatched(statement)).is_empty
    ]
    _find_dead(program_model, found)
    spent: FastMathSet = IEEE
    for _ in range(_ROUNDS):
        if all(record.left.is_empty for record in found):
            break
        flow = without_no_ops(program_model, found)
        knowledge = facts.with_flow(flow)
        computed = Computed(program_model, flow, regrouped)
        cells = _cells_that_matter(program_model, flow, found)
        asking = _Asking(computed, Invariants(program_model, knowledge, computed, values, cells), values)
        candidates = [
            (record, candidate)
            for record in found
            for read in _current_reads(record.statement)
            for candidate in _try(program_model, record, read, cells, knowledge, asking)
        ]
        if not candidates:
            break
        if not any(candidate.answer.fast_math <= spent for _, candidate in candidates):
            spent |= min(
                (candidate.answer.fast_math for _, candidate in candidates),
                key=lambda each: (len(each - spent), names_of(each)),
            )
        for record in found:
            chosen = [
                candidate for owner, candidate in candidates if owner is record and candidate.answer.fast_math <= spent
            ]
            if chosen:
                record.delete(chosen)
        if FastMath.NSZ in spent:
            # What is left finds zeros of another sign than the program as it stands: no more may be concluded from what
            # it finds.
            break
    return found


def _find_dead(program_model: ProgramModel, found: Sequence[NoOps]) -> None:
    """Record as dead the instances whose cells no matched instance, no other live one and no end that matters reads."""
    if not found:
        return
    seen = _cells_looked_at(program_model)
    for _ in range(_ROUNDS):
        more = seen
        for record in found:
            alive = _writing(program_model, record, seen).named(program_model.name(record.statement))
            for read in record.statement.reads:
                more = more.union(_looked_at(program_model, record.statement, read, alive))
        if more.is_subset(seen):
            break
        seen = coalesced(more)
    else:
        return
    for record in found:
        dead = record.unmatched.outside(_writing(program_model, record, seen).points)
        record.dead = None if dead.is_empty else dead


def _writing(program_model: ProgramModel, record: NoOps, cells: Sources) -> Region:
    """The unmatched instances that write some of the cells."""
    access = Relation.from_map(program_model.flow.access(record.statement)).intersect_range(cells)
    return record.unmatched.within(
        part_of(access.domain(), program_model.name(record.statement), record.unmatched.points)
    )


def _cells_looked_at(program_model: ProgramModel) -> Sources:
    """The cells that matched instances load from, and those that matter at the end."""
    seen = ends_that_matter(program_model)
    for statement in program_model.statements.statements:
        for points in program_model.kept.get(statement.number, ()):
            for read in statement.reads:
                seen = seen.union(_looked_at(program_model, statement, read, points))
    return coalesced(seen)


def _looked_at(program_model: ProgramModel, statement: Statement, read: Read, points: Points) -> Sources:
    """The cells at which a read looks in some instances of its statement."""
    if read.anywhere:
        return only(program_model.flow.cell_set(read.data))
    return Relation.from_map(program_model.flow.access(read, statement)).intersect_domain(only(points)).range()


def _cells_that_matter(program_model: ProgramModel, flow: Dataflow, found: Sequence[NoOps]) -> Sources:
    """The cells where a matched instance or an observable end may depend on what an unmatched one wrote."""
    universe = program_model.rewrite_model.encoder(()).space.universe()
    unmatched = no_points(universe)
    for record in found:
        unmatched = unmatched.union(only(record.left.named(program_model.name(record.statement))))
    written = {record.statement.data for record in found}
    read = _read_by_matched(program_model, flow, written, no_points(universe)).intersect(unmatched)
    for _ in range(_ROUNDS):
        more = read
        for record in found:
            for each in record.statement.reads:
                if each.data in written:
                    more = more.union(
                        flow.sources(record.statement, each).intersect_domain(read).range().intersect(unmatched)
                    )
        if more.is_subset(read):
            break
        read = coalesced(more)
    accesses = relations([program_model.flow.access(record.statement) for record in found], universe)
    return coalesced(read.apply(accesses))


def _read_by_matched(program_model: ProgramModel, flow: Dataflow, written: Container[Var], found: Sources) -> Sources:
    """`found`, and the sources of matched instances and observable ends in the memories `written`."""
    for statement in program_model.statements.statements:
        for points in program_model.kept.get(statement.number, ()):
            for each in statement.reads:
                if each.data in written:
                    found = found.union(flow.sources(statement, each).intersect_domain(only(points)).range())
    for data, seen in observable_ends(program_model):
        if data in written:
            found = found.union(flow.final(data).intersect_domain(seen).range())
    return found


def without_no_ops(program_model: ProgramModel, found: Sequence[NoOps]) -> Dataflow:
    """The flow of the program without what is dead or changes nothing."""
    removed: dict[int, Points] = {}
    for each in found:
        for gone in (each.dead, each.deleted):
            if gone is not None and not gone.is_empty:
                points = gone.named(program_model.name(each.statement))
                removed[each.statement.number] = (
                    removed[each.statement.number].union(points) if each.statement.number in removed else points
                )
    return program_model.flow.without(removed) if removed else program_model.flow


def _current_reads(statement: Statement) -> Iterator[Read]:
    """The loads that happen with the store itself, of the memory that it writes."""
    timestamp = statement.domain.time[:-1]
    for read in statement.reads:
        if read.access.data != statement.data or read.anywhere:
            continue
        if read.role is ReadRole.CURRENT or read.access.domain.time[: len(timestamp)] == timestamp:
            yield read


@dataclass(frozen=True, slots=True)
class _Asking:
    computed: Computed
    invariants: Invariants
    values: ValueProver


def _try(
    program_model: ProgramModel, record: NoOps, current: Read, cells: Sources, knowledge: Knowledge, asking: _Asking
) -> Iterator[Candidate]:
    """The unmatched instances that are proved to store the value that is there, piece by piece."""
    statement = record.statement
    access = program_model.flow.access(statement)
    matter = part_of(
        Relation.from_map(access).intersect_range(cells).domain(),
        program_model.name(statement),
        record.unmatched.points,
    )
    same = program_model.flow.access(current, statement).intersect(access).domain()
    region = record.left.within(same).within(matter)
    variables = frozenset(read.var for read in statement.reads)
    for part, (term,) in decided(region, variables, statement.value):
        if holds_any(term, Undef, OpaqueCall):
            continue
        used = set(free_variables(term))
        reads = [read for read in statement.reads if read.var in used and read is not current]
        for piece, known in knowledge.together(statement, [current, *reads], part):
            question = _Question(statement, current, reads, known, piece, term)
            candidate = _ask(question, asking)
            if candidate.answer.status is Status.PROVED:
                yield candidate
                continue
            if record.failed is None:
                record.failed = candidate.answer
            yield from (
                each
                for smaller in _apart(question, asking)
                if (each := _ask(smaller, asking)).answer.status is Status.PROVED
            )


@dataclass(frozen=True, slots=True)
class _Question:
    statement: Statement
    current: Read
    reads: Sequence[Read]
    known: Sequence[Known]
    region: Region
    term: Expr


def _apart(question: _Question, asking: _Asking) -> list[_Question]:
    """The parts of a question where each load finds old values everywhere or nowhere; empty if it is one part."""
    regions = [question.region]
    for read in (question.current, *question.reads):
        computed = asking.computed.where(question.statement, read, question.region)
        parts = (part for region in regions for part in (region.within(computed), region.outside(computed)))
        regions = [part for part in parts if not part.is_empty]
    return [replace(question, region=region) for region in regions] if len(regions) > 1 else []


def _ask(question: _Question, asking: _Asking) -> Candidate:
    """Whether the value stored is the one that is there: without invariants first, then with those that hold."""
    invariants, current = asking.invariants, question.current
    constants: dict[Var, Expr] = {}
    given: list[Given] = []
    all_reads = [current, *question.reads]
    for read, known in zip(all_reads, question.known, strict=True):
        given += [Given(read.var, each) for each in known.properties]
        if known.value is not None:
            constants[read.var] = known.value
    leaves = Leaves(question.region, frozenset(read.var for read in question.statement.reads))
    term = substitute(leaves.abstract(question.term), constants)
    target = constants.get(current.var, current.var)
    trusted = frozenset(
        read.var
        for read in all_reads
        if read.var not in constants and asking.computed.is_computed(question.statement, read, question.region)
    )

    def ask(more: Iterable[Property]) -> ValueAnswer:
        hypotheses = (*given, *(Given(current.var, each) for each in more))
        return asking.values.answer(Question(term, target, hypotheses, computed=trusted, old_is_computed=False))

    best, used = ask(()), dict[str, ValueAnswer]()
    if best.status is Status.PROVED and not best.fast_math:
        return Candidate(question.region, best, {})
    for candidate in invariants.candidates(current.access.data):
        answer = ask((candidate,))
        if not _better(answer, best):
            continue
        proof = invariants.prove(question.statement, current, question.region, candidate)
        if proof.status is Status.PROVED and _better(together((answer, proof)), best):
            best, used = together((answer, proof)), {f"{current.access.buffer.name} {candidate}": proof}
    if best.status is not Status.PROVED:
        holding = invariants.together(question.statement, current, question.region)
        if len(holding) > 1 and ask(holding).status is Status.PROVED:
            needed = _needed(holding, ask)
            best = together((ask(needed), *needed.values()))
            used = {f"{current.access.buffer.name} {each}": proof for each, proof in needed.items()}
    return Candidate(question.region, best, used)


def _needed(
    holding: Mapping[Property, ValueAnswer], ask: Callable[[Iterable[Property]], ValueAnswer]
) -> dict[Property, ValueAnswer]:
    """The invariants that a proof needs; those that take fast-math assumptions are left out first."""
    needed = dict(holding)
    for each in sorted(holding, key=lambda one: -len(holding[one].fast_math)):
        if ask(one for one in needed if one != each).status is Status.PROVED:
            del needed[each]
    return needed


def _better(answer: ValueAnswer, than: ValueAnswer) -> bool:
    if answer.status is not Status.PROVED:
        return False
    return than.status is not Status.PROVED or len(answer.fast_math) < len(than.fast_math)
