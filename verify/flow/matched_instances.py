"""Matched instances compute equal values once equal loads are one symbol and loads of known cells are their values.

Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from layoutproof.ir.expr import Expr, Var, equal
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.visit import free_variables, holds_any, substitute
from layoutproof.verify.flow.computed import may_have_chosen, passing_on
from layoutproof.verify.flow.copies import representatives
from layoutproof.verify.flow.known_values import Knowledge
from layoutproof.verify.flow.models import NEW, OLD, Counterpart, RewriteModel
from layoutproof.verify.flow.sources import Agreement, accumulator, contribution
from layoutproof.verify.flow.stored_values import Leaves, StoredValues, decided
from layoutproof.verify.isl.instance_sets import Points, Region, covers, only, part_of, tuples_of
from layoutproof.verify.program.statement import NotModelled, Read, ReadRole, Statement
from layoutproof.verify.program.traps import traps_alike
from layoutproof.verify.values.fast_math import FastMath
from layoutproof.verify.values.laws import agrees_up_to_zero_signs
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.values.question import Given, Holds, Identical, Question, ValueAnswer, placeholder, together
from layoutproof.verify.verdict.verdict import Status


@dataclass(frozen=True, slots=True)
class Match:
    """Whether a new statement computes its counterpart on a region; `unpaired` are loads of unknown value."""

    claim: Counterpart
    region: Region
    answer: ValueAnswer
    unpaired: tuple[Read, ...] = ()


@dataclass(frozen=True, slots=True)
class _Bound:
    """A region on which each load of the new statement is a load of the old one, a constant, or free with facts."""

    region: Region
    values: Mapping[Var, Expr]
    given: tuple[Given, ...] = ()
    unpaired: tuple[Read, ...] = ()


@dataclass(slots=True)
class Matcher:
    """Compares statements with their counterparts. With `loose`, values may differ in the sign of a zero already;
    `passes_zeros`: that is passed on where no operation may choose a sign. `traps`: values have a result, too, where
    they have one in the old program.
    """

    rewrite_model: RewriteModel
    agreement: Agreement
    new_facts: Knowledge
    old_facts: Knowledge
    values: ValueProver
    reductions: Mapping[int, BinaryOp] = field(default_factory=dict)
    loose: bool = False
    passes_zeros: bool = False
    traps: bool = False
    _chosen: set[int] = field(default_factory=set)
    _looked_through: set[int] = field(default_factory=set)
    _once: Matcher | None = None
    _passing: frozenset[int] | None = None

    def matches(self, claim: Counterpart, points: Points) -> Iterator[Match]:
        """The answers for one counterpart by region; if not proved, asked again with values in place of loads."""
        for match in self._matches(claim, self.rewrite_model.of_points(claim.new, points)):
            found = [match]
            if match.answer.status is not Status.PROVED:
                found = self._with_values(match, every=False) or self._with_values(match, every=True) or found
            if any(may_have_chosen(each.answer, claim.old.value) for each in found):
                self._chosen.add(claim.old.number)
                if not self.computes_once(claim.old.number):
                    self._looked_through.add(claim.old.number)
            yield from found

    def _with_values(self, match: Match, *, every: bool) -> list[Match] | None:
        """Proofs for all of the region of one that failed, where values stand for loads of what only one of the
        programs stores; with `every` of what both do too, but for updates of what is loaded.
        """
        proofs: list[Match] = []
        try:
            for matcher, claim, region in self._inlined(match.claim, match.region, every=every):
                if (claim.new, claim.old) == (match.claim.new, match.claim.old) and region.points.is_equal(
                    match.region.points
                ):
                    return None
                for each in matcher._matches(claim, region):
                    if each.answer.status is not Status.PROVED:
                        return None
                    proofs.append(each)
            return proofs if covers((each.region for each in proofs), match.region) else None
        except NotModelled:
            return None

    def _inlined(
        self, claim: Counterpart, region: Region, *, every: bool
    ) -> Iterator[tuple[Matcher, Counterpart, Region]]:
        """The claim on the parts of a region where it has one form in both programs, and who is to be asked."""
        step, name = self.rewrite_model.step(claim), f"{NEW}{claim.new.number}"
        before, like = self.rewrite_model.before, self.rewrite_model.before.domain(claim.old)
        no_operand = self.rewrite_model.nothing.domain()
        kept = (
            (no_operand if every else self.rewrite_model.theta.domain()).union(self.agreement.moved),
            no_operand if every else self.rewrite_model.theta.range(),
        )
        used = self._looked_through if every else set[int]()
        stored_values = StoredValues(self.new_facts.flow, kept[0], updates=not every, loose=self.loose)
        back = StoredValues(before, kept[1], updates=not every, used=used)
        new_stay, old_stay = self._accumulators(claim)
        for mine in stored_values.through(claim.new, region.named(name), stay=new_stay):
            reached = part_of(only(mine.points).apply(step), f"{OLD}{claim.old.number}", like)
            for theirs in back.through(claim.old, reached, stay=old_stay):
                points = mine.points.intersect(
                    part_of(step.intersect_range(only(theirs.points)).domain(), name, mine.points)
                )
                asked = Counterpart(mine.statement, theirs.statement, claim.outputs, claim.where)
                yield (
                    self if theirs.statement is claim.old else self._choosing_once(),
                    asked,
                    self.rewrite_model.of_points(claim.new, points),
                )

    def _accumulators(self, claim: Counterpart) -> tuple[frozenset[Var], frozenset[Var]]:
        """The loads of the accumulators of updates that were regrouped. They stay loads: what single updates find is
        not compared, only what they contribute. Values in the place of other loads are those that were contributed: no
        regrouped update of the new program is looked through, and each program's own values are exact.
        """
        if claim.new.number not in self.reductions:
            return frozenset(), frozenset()
        found = accumulator(self.new_facts.flow, claim.new), accumulator(self.rewrite_model.before, claim.old)
        return (
            frozenset() if found[0] is None else frozenset((found[0].var,)),
            frozenset() if found[1] is None else frozenset((found[1].var,)),
        )

    def chosen_twice(self) -> frozenset[int]:
        """The old statements whose operations chose the sign of a zero, or a grouping, where they were compared, and
        whose values are computed anew elsewhere, by IEEE 754 in the place of loads, or by other new instances.
        """
        return frozenset(self._chosen & self._looked_through)

    def _choosing_once(self) -> Matcher:
        """The matcher without fast-math assumptions to choose: one computed value, loaded in several places, is one
        choice.
        """
        if self._once is None:
            self._once = replace(
                self,
                values=self.values.under(self.values.allowed - {FastMath.NSZ, FastMath.REASSOC}),
                passes_zeros=self.loose and FastMath.NSZ in self.values.allowed,
            )
        return self._once

    def _matches(self, claim: Counterpart, whole: Region) -> Iterator[Match]:
        if holds_any(claim.old.value, Undef) and not self.computes_once(claim.old.number):
            reason = "a value that is undefined is computed more than once, and may come out differently each time"
            yield Match(claim, whole, ValueAnswer(Status.UNKNOWN, reason=reason))
            return
        dims = {dim.var: output for dim, output in zip(claim.old.dims, claim.outputs, strict=True)}
        theirs = _named(claim.old, representatives(self.rewrite_model.before, claim.old), ".")
        renamed = _named(claim.new, representatives(self.new_facts.flow, claim.new), "'")
        old_value = substitute(claim.old.value, {**theirs, **dims})
        new_value = substitute(claim.new.value, renamed)
        loads = frozenset((*renamed.values(), *theirs.values()))
        for part, (new, old) in decided(whole, loads, new_value, old_value):
            new_part, old_part = self._contribution(claim, new, old, renamed, theirs)
            if new_part is None or old_part is None:
                failed = ValueAnswer(Status.UNKNOWN, reason="an update that was moved is not of the form `acc (+) e`")
                yield Match(claim, part, failed)
                continue
            groups = _grouped(
                claim.new.needed([v for v, name in renamed.items() if name in free_variables(new_part)]), renamed
            )
            for bound in self._bound(claim, groups, renamed, theirs, part):
                yield self._compared(claim, bound, new_part, old_part, theirs, loads)

    def computes_once(self, number: int) -> bool:
        """Whether no instance of an old statement is computed by two new instances."""
        steps = self.rewrite_model.nothing
        for pairs in self.rewrite_model.matched.values():
            for pair, _ in pairs:
                if pair.old.number == number:
                    steps = steps.union(self.rewrite_model.step(pair))
        return bool(steps.is_injective())

    def _contribution(
        self, claim: Counterpart, new: Expr, old: Expr, renamed: Mapping[Var, Var], theirs: Mapping[Var, Var]
    ) -> tuple[Expr | None, Expr | None]:
        """The values to compare: all of them, or, of updates that were regrouped, what is contributed."""
        op = self.reductions.get(claim.new.number)
        if op is None:
            return new, old
        mine, other = accumulator(self.new_facts.flow, claim.new), accumulator(self.rewrite_model.before, claim.old)
        if mine is None or other is None:
            return None, None
        return contribution(new, op, renamed[mine.var]), contribution(old, op, theirs[other.var])

    def _bound(
        self,
        claim: Counterpart,
        groups: Mapping[Var, Sequence[Read]],
        renamed: Mapping[Var, Var],
        theirs: Mapping[Var, Var],
        part: Region,
    ) -> Iterator[_Bound]:
        """The parts of a region on which each load is bound in one way."""
        bounds = [_Bound(part, {})]
        for variable, reads in groups.items():
            bounds = [
                refined for bound in bounds for refined in self._bind(claim, variable, reads, renamed, theirs, bound)
            ]
        yield from bounds

    def _bind(
        self,
        claim: Counterpart,
        variable: Var,
        reads: Sequence[Read],
        renamed: Mapping[Var, Var],
        theirs: Mapping[Var, Var],
        bound: _Bound,
    ) -> Iterator[_Bound]:
        """Binds what `variable` stands for, which each of `reads` loads where it happens."""
        rest = bound.region
        for read in reads:
            if rest.is_empty:
                return
            for old, agreed in self._agreeing(claim, read, renamed, theirs, replace(bound, region=rest)):
                inside = rest.within(agreed)
                if not inside.is_empty:
                    yield replace(bound, region=inside, values={**bound.values, variable: theirs[old.var]})
                    rest = rest.outside(agreed)
        if not rest.is_empty:
            yield from self._bind_by_facts(claim, variable, reads[0], replace(bound, region=rest))

    def _agreeing(
        self, claim: Counterpart, read: Read, renamed: Mapping[Var, Var], theirs: Mapping[Var, Var], bound: _Bound
    ) -> list[tuple[Read, Points]]:
        """The loads of the counterpart that agree with a load, and where; first the one that agrees everywhere."""
        whole = self.rewrite_model.of_points(claim.new, self.rewrite_model.matched_points(claim))
        found: list[tuple[Read, Points]] = []
        for old in self._candidates(claim, read):
            if read.anywhere and not self._same_index(claim, read, old, renamed, theirs, bound):
                continue
            found.append((old, self.agreement.of_reads(claim, read, old, whole)))
            if bound.region.outside(found[-1][1]).is_empty:
                # What agrees everywhere is the load that is meant; others agree by accident on a part.
                return [found[-1], *found[:-1]]
        return found

    def _bind_by_facts(self, claim: Counterpart, variable: Var, read: Read, bound: _Bound) -> Iterator[_Bound]:
        """Binds `variable` to what is known of a load that has no counterpart on the region."""
        for known in self.new_facts.of_read(claim.new, read, bound.region):
            if known.value is not None and self.loose and known.value.dtype.is_float:
                # What stands there may be a zero of the other sign.
                stated = Holds(equal(placeholder(known.value.dtype), known.value))
                given: tuple[Given, ...] = (Given(variable, stated),)
            elif known.value is not None:
                yield replace(bound, region=known.region, values={**bound.values, variable: known.value})
                continue
            else:
                given = tuple(Given(variable, each) for each in known.properties)
            yield replace(bound, region=known.region, given=(*bound.given, *given), unpaired=(*bound.unpaired, read))

    def _same_index(
        self,
        claim: Counterpart,
        new: Read,
        old: Read,
        renamed: Mapping[Var, Var],
        theirs: Mapping[Var, Var],
        bound: _Bound,
    ) -> bool:
        """Whether two loads at indices that depend on data have the same indices, in a memory that kept its cells."""
        if not old.anywhere or new.access.buffer.shape != old.access.buffer.shape:
            return False
        dims = {dim.var: output for dim, output in zip(claim.old.dims, claim.outputs, strict=True)}
        leaves = Leaves(bound.region, frozenset((*renamed.values(), *theirs.values())))
        for mine, other in zip(new.access.indices, old.access.indices, strict=True):
            term = substitute(leaves.abstract(substitute(mine, renamed)), bound.values)
            if term != leaves.abstract(substitute(other, {**theirs, **dims})):
                return False
        return True

    @staticmethod
    def _candidates(claim: Counterpart, read: Read) -> list[Read]:
        """The loads of the counterpart that may be this one: those of its buffer first, and of these the one at the
        same position. (On a part of a region two of them may find one value; then it is the right one's name that the
        counterpart uses.)
        """
        position = claim.new.reads.index(read)
        same = [(number, old) for number, old in enumerate(claim.old.reads) if old.var.dtype == read.var.dtype]
        return [
            old for _, old in sorted(same, key=lambda each: (each[1].data.name != read.data.name, each[0] != position))
        ]

    def _compared(
        self, claim: Counterpart, bound: _Bound, new: Expr, old: Expr, theirs: Mapping[Var, Var], loads: frozenset[Var]
    ) -> Match:
        leaves = Leaves(bound.region, loads)
        new_term = substitute(leaves.abstract(new), bound.values)
        old_term = leaves.abstract(old)
        answer = self._ask(claim, bound, new_term, old_term, theirs, ())
        if answer.status is not Status.PROVED or answer.fast_math:
            answer = self._with_old_facts(claim, bound, new_term, old_term, theirs, answer)
        bare = substitute(new, bound.values)
        if self.traps and answer.status is Status.PROVED and not traps_alike(leaves.are_alike, old, bare):
            answer = ValueAnswer(Status.UNKNOWN, reason="it may have no result where it had one")
        return Match(claim, bound.region, answer, bound.unpaired)

    def _ask(
        self, claim: Counterpart, bound: _Bound, new: Expr, old: Expr, theirs: Mapping[Var, Var], more: Sequence[Given]
    ) -> ValueAnswer:
        loose = self._loose(claim.old, theirs) if self.loose else frozenset()
        question = Question(new, old, (*bound.given, *more)).loosened(loose)
        if new == old:
            # Then it mostly does not matter what is computed, which takes long to find out.
            answer = self.values.answer(question)
            if answer.status is Status.PROVED and not answer.fast_math:
                return answer
        computed = _looked_at(claim.old, theirs) - self._passed_on(claim, bound.region, theirs)
        question = replace(question, computed=computed)
        answer = self.values.answer(question)
        if answer.status is not Status.PROVED and self.passes_zeros:
            # A zero's sign that differed before may be passed on: nothing chooses it here.
            passed = agrees_up_to_zero_signs(question)
            return answer if passed is None else passed
        return answer

    def _loose(self, old: Statement, theirs: Mapping[Var, Var]) -> frozenset[Var]:
        """The names of the floats that may have another zero in the new program. What an input holds has not, also
        where copies lead to it, if no store was taken out of the new program that may have changed a copy.
        """
        after, flow = self.agreement.after, self.rewrite_model.before
        dtypes = self.rewrite_model.new.dtypes
        kept = all(after.is_whole(data) for data, dtype in dtypes.items() if dtype.is_float)
        return frozenset(
            theirs[read.var]
            for read in old.reads
            if read.var.dtype.is_float and not (kept and not flow.statements.writers(read.data))
        )

    def _passed_on(self, claim: Counterpart, region: Region, theirs: Mapping[Var, Var]) -> frozenset[Var]:
        """The counterpart's loads that may find an infinity or NaN that the old program did not compute."""
        if self._passing is None:
            self._passing = passing_on(self.rewrite_model.old)
        if not self._passing:
            return frozenset()
        memories = {s.data for s in self.rewrite_model.old.statements if s.number in self._passing}
        names = {f"{OLD}{number}" for number in self._passing}
        name, step, found = f"{NEW}{claim.new.number}", self.rewrite_model.step(claim), set[Var]()
        for read in claim.old.reads:
            if read.data in memories:
                if read.anywhere:
                    found.add(theirs[read.var])
                    continue
                flow = step.apply_range(self.rewrite_model.before.sources(claim.old, read)).intersect_domain(
                    only(region.named(name))
                )
                if any(origin in names for origin, _ in tuples_of(flow.range())):
                    found.add(theirs[read.var])
        return frozenset(found)

    def _with_old_facts(
        self, claim: Counterpart, bound: _Bound, new: Expr, old: Expr, theirs: Mapping[Var, Var], plain: ValueAnswer
    ) -> ValueAnswer:
        """The answer with the old program's facts of its own loads: the worst over the parts with one fact each."""
        used = {*free_variables(old), *free_variables(new)}
        reads = [read for read in claim.old.reads if theirs[read.var] in used and not read.anywhere]
        if not reads:
            return plain
        name = f"{NEW}{claim.new.number}"
        step = self.rewrite_model.step(claim)
        parts: list[tuple[Region, dict[Var, Expr], tuple[Given, ...]]] = [(bound.region, {}, ())]
        for read in reads:
            refined = []
            for region, constants, given in parts:
                flow = step.apply_range(self.rewrite_model.before.sources(claim.old, read)).intersect_domain(
                    only(region.named(name))
                )
                for known in self.old_facts.of_flow(flow, name, region):
                    exact = known.value is not None and not (self.loose and known.value.dtype.is_float)
                    more = {theirs[read.var]: known.value} if known.value is not None and exact else {}
                    stated = (
                        known.properties
                        if known.value is None or exact
                        else (*known.properties, Identical(known.value))
                    )
                    facts = tuple(Given(theirs[read.var], each) for each in stated)
                    refined.append((known.region, {**constants, **more}, (*given, *facts)))
            parts = refined
        if len(parts) == 1 and not parts[0][1] and not parts[0][2]:
            return plain
        if not covers((region for region, *_ in parts), bound.region):
            return plain
        answers = [
            self._ask(
                claim,
                replace(bound, region=region),
                substitute(new, constants),
                substitute(old, constants),
                theirs,
                given,
            )
            for region, constants, given in parts
        ]
        return together(answers)


def _looked_at(statement: Statement, names: Mapping[Var, Var]) -> frozenset[Var]:
    """The names of what an old statement looks at in its value: not of what it leaves in place."""
    kept = {names[read.var] for read in statement.reads if read.role is ReadRole.CURRENT}
    return frozenset(names[read.var] for read in statement.reads if read.sure or names[read.var] not in kept)


def _named(statement: Statement, firsts: Mapping[Var, Var], mark: str) -> dict[Var, Var]:
    """A name for what each load finds, which tells its buffer; loads that find the same have one."""
    numbers = {read.var: number for number, read in enumerate(statement.reads)}
    return {
        read.var: Var(f"{read.access.buffer.name}{mark}{numbers[firsts[read.var]]}", read.var.dtype)
        for read in statement.reads
    }


def _grouped(reads: Sequence[Read], names: Mapping[Var, Var]) -> dict[Var, list[Read]]:
    """The loads by the name of what they find."""
    groups: dict[Var, list[Read]] = {}
    for read in reads:
        groups.setdefault(names[read.var], []).append(read)
    return groups
