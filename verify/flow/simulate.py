"""Conditions 2, 4, 5, 6 and 7 of the checker, by dataflow: every read of the new program has the source of the read
that it stands for.

The argument: let every matched instance store what its counterpart stored, as long as each value that it reads is what
its counterpart read; let each value that it reads be so, because both come from one source, or from constants; then, by
induction over the new program's time, output buffers are preserved. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from layoutproof.ir.diagnostic import counted
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.visit import stores_in
from layoutproof.verify.faults.facts import Facts, Stopwatch
from layoutproof.verify.flow.computed import chooses_for_several
from layoutproof.verify.flow.constant_parts import Constants, without_constants
from layoutproof.verify.flow.hints import SuspectCell, Suspicion
from layoutproof.verify.flow.known_values import Knowledge
from layoutproof.verify.flow.matched_instances import Match, Matcher
from layoutproof.verify.flow.models import NEW, OLD, ProgramModel, RewriteModel
from layoutproof.verify.flow.no_op_stores import NoOps, find_no_ops, without_no_ops
from layoutproof.verify.flow.observable import (
    FinalState,
    answer_assumption,
    assumption_claim,
    compare_final_states,
    stored_floats,
)
from layoutproof.verify.flow.partial_sums import involved, with_partials
from layoutproof.verify.flow.sources import Agreement, Reordered, find_reordered
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.instance_sets import Sources, covers, no_points, only
from layoutproof.verify.isl.space import BudgetExceeded
from layoutproof.verify.lockstep.memories import ASKED, is_asked
from layoutproof.verify.program.questions import Because, SmtQuery
from layoutproof.verify.program.statement import NotModelled, Statement
from layoutproof.verify.program.traps import has_operations_of, traps_in
from layoutproof.verify.values.fast_math import FastMath, FastMathSet, names_of
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.values.question import ValueAnswer
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

ENGINE = "dataflow"
# What isl may spend on one rewrite: some seconds, ten times what the largest usual step takes.
OPERATIONS = 5_000_000
_UNMATCHED = 10


@dataclass(slots=True)
class Simulation:
    """The verdicts, and, where something failed, models by variable name and cells for a counterexample run."""

    verdicts: tuple[Verdict, ...]
    hints: list[Mapping[str, float | int]] = field(default_factory=list)
    suspect_cells: list[SuspectCell] = field(default_factory=list)


def simulate(rewrite: Rewrite, old: Facts, new: Facts, values: ValueProver, *, traps: bool = False) -> Simulation:
    """Whether the new program simulates the old one. What integer sets cannot express is one verdict `unknown`.
    `traps`: operations on data have a result, too, where they have one in the old program.
    """
    watch, simulator = Stopwatch(), None
    try:
        simulator = _Simulator(rewrite, old, new, values, traps)
        found = simulator.run()
    except (NotModelled, NotQuasiAffine, BudgetExceeded) as problem:
        because = frozenset(() if isinstance(problem, NotQuasiAffine) else problem.because)
        claim = Claim(ClaimKind.SAME_VALUE, "every read has the same last writer", about=("sources",))
        hints = simulator.hints if simulator is not None else []
        open_one = Verdict(Status.UNKNOWN, claim, ENGINE, reason=str(problem), seconds=watch.seconds(), because=because)
        return Simulation((open_one,), hints)
    cells, sizes = simulator.suspicion.found()
    return replace(found, hints=[*found.hints, *sizes], suspect_cells=cells)


@dataclass(frozen=True, slots=True)
class _State:
    """What holds of the new program without its no-ops."""

    unmatched: tuple[Verdict, ...]
    reordered: tuple[Reordered, ...]
    agreement: Agreement
    facts: Knowledge


class _Simulator:
    def __init__(self, rewrite: Rewrite, old: Facts, new: Facts, values: ValueProver, traps: bool) -> None:
        if chooses_for_several(rewrite.old):
            values = values.under(values.allowed - {FastMath.NSZ, FastMath.REASSOC})
        self.values, self.traps = values, traps
        # Where nothing corresponds, cells that differ are looked for, and hardly a proof.
        matched = any(claim.old_store is not None for claim in rewrite.witness.instances)
        self.rewrite_model = RewriteModel.of(rewrite, old, new, OPERATIONS if matched else OPERATIONS // _UNMATCHED)
        with self.rewrite_model.workspace.limited():
            self.old_facts = Knowledge.of(self.rewrite_model, self.rewrite_model.before, self.rewrite_model.old, OLD)
            self.full_facts = Knowledge.of(self.rewrite_model, self.rewrite_model.after, self.rewrite_model.new, NEW)
            if traps:
                self._require_results()
            self.constants = without_constants(self.rewrite_model, self.full_facts)
            if self.constants:
                self.full_facts = Knowledge.of(
                    self.rewrite_model, self.rewrite_model.after, self.rewrite_model.new, NEW
                )
        self.hints: list[Mapping[str, float | int]] = []
        self.suspicion = Suspicion(self.rewrite_model)

    def _require_results(self) -> None:
        """What has no counterpart has a result. Raises NotModelled where it may have none."""
        program_model = ProgramModel.new(self.rewrite_model)
        stores = list(stores_in(self.rewrite_model.rewrite.new.body))
        for statement in self.rewrite_model.new.statements:
            if traps_in(statement.value) and not program_model.unmatched(statement).is_empty:
                raise NotModelled("a store without a counterpart may have no result", statement.access.node)
            if not has_operations_of(statement.value, stores[statement.number].value):
                raise NotModelled("the model of a store has other operations that may have no result", None)

    def run(self) -> Simulation:
        # One budget for all that is asked of integer sets, also outside the flows themselves.
        with self.rewrite_model.workspace.limited():
            return self._run()

    def _run(self) -> Simulation:
        dropped = self._without_dropped()
        state = self._settled()
        operators = {number: each.operator for each in state.reordered for number in each.chains.new_chain}
        taken_out = [self._taken_out(each) for each in self.constants]
        changes = [*taken_out, *dropped, *state.unmatched, *(self._regrouped(each) for each in state.reordered)]
        loose = _may_change_zero_signs(changes)
        found = self._same(state, operators, loose=loose)
        if not loose and _may_change_zero_signs(found):
            # Values that may differ in the sign of a zero are read by others: everything is asked again with that in
            # mind.
            earlier = tuple(piece for v in found for piece in v.evidence)
            loose = True
            found = self._same(state, operators, loose=True)
            found[:1] = [replace(v, evidence=(*earlier, *v.evidence)) for v in found[:1]]
        asked = [self._proved(ASKED)] if is_asked(self.rewrite_model.rewrite) else []
        return Simulation((*asked, *self._assumptions(state.agreement, loose=loose), *changes, *found), self.hints)

    def _without_dropped(self) -> list[Verdict]:
        """Take what the new program drops and what changed nothing out of the old program's flow; the verdicts say why.

        The result is the old program bit for bit, so that nothing has to be asked again: no fast-math assumptions on a
        zero's sign or on grouping.
        """
        program_model = ProgramModel.old(self.rewrite_model)
        careful = self.values.under(self.values.allowed - {FastMath.NSZ, FastMath.REASSOC})
        found = find_no_ops(program_model, self.old_facts, None, careful)
        for each in found:
            # Nobody looks at what these wrote, but assumptions may speak of it.
            each.dead = None
        self.rewrite_model.before = without_no_ops(program_model, found)
        self.old_facts = self.old_facts.with_flow(self.rewrite_model.before)
        return self._told(found, "dropped")

    def _settled(self) -> _State:
        """The no-ops, and the reductions that are regrouped without them, under the facts of both."""
        state = self._state(None)
        if not any(each.fast_math for each in state.reordered):
            return state
        again = self._state(self._updates(state.reordered))
        if not {each.chains.data for each in again.reordered} <= {each.chains.data for each in state.reordered}:
            raise NotModelled("the reductions that are regrouped do not settle", None)
        return again

    def _state(self, regrouped: Sources | None) -> _State:
        program_model = ProgramModel.new(self.rewrite_model)
        no_ops = find_no_ops(program_model, self.full_facts, regrouped, self.values)
        after = without_no_ops(program_model, no_ops)
        agreement = Agreement(self.rewrite_model, after)
        partial = involved(after, self.rewrite_model.new, frozenset(self.rewrite_model.matched))
        partial |= involved(self.rewrite_model.before, self.rewrite_model.old, agreement.reached())
        found = tuple(find_reordered(self.rewrite_model, agreement, self.values.allowed, partial))
        sums = with_partials(agreement, found, self.values.allowed)
        reordered = sums.reordered
        if reordered:
            groups = {
                (name, each.chains.data.name): each.chains for each in reordered for name in self._old_names(each)
            }
            agreement = Agreement(self.rewrite_model, after, groups, sums.new, sums.old)
        return _State(tuple(self._told(no_ops, "overcomputed")), reordered, agreement, self.full_facts.with_flow(after))

    def _updates(self, reordered: Sequence[Reordered]) -> Sources:
        """The old updates of regrouped reductions."""
        numbers = {number for each in reordered for number in each.chains.old_chain}
        result = no_points(self.rewrite_model.encoder(()).space.universe())
        for statement in self.rewrite_model.old.statements:
            if statement.number in numbers:
                result = result.union(only(self.rewrite_model.before.domain(statement)))
        return result

    def _old_names(self, each: Reordered) -> Iterator[str]:
        for statement in self.rewrite_model.old.statements:
            if statement.number in each.chains.old_chain:
                yield statement.data.name

    # Conditions

    def _assumptions(self, agreement: Agreement, *, loose: bool) -> Iterator[Verdict]:
        # A zero's sign is told apart by an assumption of a float that is stored.
        moved = agreement.moved.union(stored_floats(self.rewrite_model)) if loose else agreement.moved
        for number, assumption in enumerate(self.rewrite_model.new.assumptions):
            answer = answer_assumption(self.rewrite_model, number, self.full_facts, self.old_facts, moved)
            claim = assumption_claim(assumption)
            if answer.status is Status.PROVED:
                yield self._proved(claim, reason=answer.reason)
            else:
                yield Verdict(answer.status, claim, ENGINE, reason=answer.reason)

    def _told(self, found: Sequence[NoOps], kind: str) -> list[Verdict]:
        for each in found:
            if each.failed is not None and each.failed.model is not None:
                self.hints.append(dict(each.failed.model))
        verdicts = [self._extra(each, kind) for each in found]
        return [v for v in verdicts if v is not None]

    def _taken_out(self, each: Constants) -> Verdict:
        access = each.statement.access
        numbers = ", ".join(str(number) for number in sorted(each.added))
        tail = f" adds {numbers} where it has no counterpart, which is taken into account where the sum is read"
        claim = Claim(ClaimKind.SAME_VALUE, f"`{access.text}`", access.place, tail, about=("constants", access.text))
        return self._proved(claim)

    def _regrouped(self, each: Reordered) -> Verdict:
        what = f"the updates of `{each.chains.data.name}` by `{each.operator.value}` may be reordered"
        about = ("reordered", each.chains.data.name, each.operator.value)
        return self._proved(Claim(ClaimKind.SAME_VALUE, what, about=about), each.fast_math)

    def _same(self, state: _State, operators: dict[int, BinaryOp], *, loose: bool) -> list[Verdict]:
        facts = state.facts.loosened() if loose else state.facts
        matcher = Matcher(
            self.rewrite_model, state.agreement, facts, self.old_facts, self.values, operators, loose, traps=self.traps
        )
        statements = [s for s in self.rewrite_model.new.statements if self.rewrite_model.matched.get(s.number)]
        verdicts = [self._matched(statement, matcher) for statement in statements]
        verdicts += self._chosen_twice(matcher.chosen_twice().union(self._regrouped_twice(state, matcher)))
        exact = self.full_facts if loose else state.facts
        final_states = compare_final_states(
            self.rewrite_model, state.agreement, facts, self.old_facts, self.values, exact
        )
        return [*verdicts, *(self._end(end) for end in final_states)]

    def _regrouped_twice(self, state: _State, matcher: Matcher) -> Iterator[int]:
        """The old updates that are computed more than once, where each result may be grouped in its own way."""
        for each in state.reordered:
            if each.fast_math & {FastMath.NSZ, FastMath.REASSOC}:
                yield from (number for number in each.chains.old_chain if not matcher.computes_once(number))

    def _chosen_twice(self, found: Set[int]) -> list[Verdict]:
        """Refusals of values that are computed once and chosen in two ways."""
        return [
            Verdict(
                Status.UNKNOWN,
                Claim(ClaimKind.SAME_VALUE, f"`{s.access.text}`", s.access.place, " has one value wherever it is used"),
                ENGINE,
                reason="the sign of a zero or a grouping was chosen where it is compared, and not where it is loaded",
            )
            for s in self.rewrite_model.old.statements
            if s.number in found
        ]

    def _matched(self, statement: Statement, matcher: Matcher) -> Verdict:
        watch = Stopwatch()
        access = statement.access
        tail, about = " stores the same value at the remapped index", ("store", access.text)
        claim = Claim(ClaimKind.SAME_VALUE, f"`{access.text}`", access.place, tail, about=about)
        matches: list[Match] = []
        for pair, points in self.rewrite_model.matched[statement.number]:
            done = len(matches)
            for match in matcher.matches(pair, points):
                if match.answer.status is not Status.PROVED:
                    return self._failed(match, claim, watch)
                matches.append(match)
            if not covers((each.region for each in matches[done:]), self.rewrite_model.of_points(pair.new, points)):
                reason = "some instances of it were compared with nothing"
                return Verdict(Status.UNKNOWN, claim, ENGINE, reason=reason, seconds=watch.seconds())
        return self._proved_by(claim, [match.answer for match in matches], (), watch)

    def _failed(self, match: Match, claim: Claim, watch: Stopwatch) -> Verdict:
        answer = match.answer
        self.suspicion.failed.append(match)
        if answer.model is not None:
            self.hints.append(dict(answer.model))
        seconds = watch.seconds()
        return Verdict(Status.UNKNOWN, claim, ENGINE, reason=_why(match), seconds=seconds, because=answer.because)

    def _end(self, end: FinalState) -> Verdict:
        answer = end.answer
        if answer.status is Status.PROVED:
            return self._proved_by(end.claim, (answer,))
        self.suspicion.failed.append(end)
        if answer.model is not None:
            self.hints.append(dict(answer.model))
        reason = answer.reason or "the values differ"
        return Verdict(Status.UNKNOWN, end.claim, ENGINE, reason=reason, because=answer.because)

    def _extra(self, each: NoOps, kind: str) -> Verdict | None:
        """The report of unmatched instances; None if none is a no-op and the flow decides whether that matters."""
        if each.deleted is None or each.deleted.is_empty:
            return None
        which = f"{kind} iterations" if each.left.is_empty else f"some {kind} iterations"
        access = each.statement.access
        about = (kind, access.text)
        claim = Claim(ClaimKind.SAME_END, f"{which} leave `{access.text}`", access.place, " unchanged", about=about)
        notes = [f"invariant: {name}" for name in each.invariants]
        found = self._proved_by(claim, each.answers, notes, proofs=tuple(each.invariants.values()))
        return replace(found, because=found.because | {Because.INVARIANT}) if each.invariants else found

    def _proved_by(
        self,
        claim: Claim,
        answers: Sequence[ValueAnswer],
        notes: Sequence[str] = (),
        watch: Stopwatch | None = None,
        proofs: Sequence[ValueAnswer] = (),
    ) -> Verdict:
        """The verdict that rests on answers about values, and on the proofs of the invariants that these use."""
        fast_math: FastMathSet = frozenset(flag for answer in answers for flag in answer.fast_math)
        why = [_without_fast_math(answer.model) for answer in answers if answer.fast_math and answer.model is not None][
            :1
        ]
        every = (*answers, *proofs)
        laws = sorted({law for answer in every for law in answer.laws})
        queries = tuple(dict.fromkeys(query for answer in every for query in answer.queries))
        reason = "; ".join((*notes, *why)) or None
        because = frozenset[Because]().union(*(answer.because for answer in every))
        return replace(self._proved(claim, fast_math, reason, queries, (*notes, *laws), watch), because=because)

    def _proved(
        self,
        claim: Claim,
        fast_math: FastMathSet = frozenset(),
        reason: str | None = None,
        queries: tuple[SmtQuery, ...] = (),
        rests_on: tuple[str, ...] = (),
        watch: Stopwatch | None = None,
    ) -> Verdict:
        seconds = watch.seconds() if watch is not None else 0.0
        return Verdict(
            Status.PROVED,
            claim,
            ENGINE,
            names_of(fast_math),
            reason,
            seconds=seconds,
            rests_on=rests_on,
            queries=queries,
            evidence=self.rewrite_model.workspace.gathered.taken(),
        )


def _may_change_zero_signs(verdicts: Sequence[Verdict]) -> bool:
    return any(FastMath.NSZ.value in v.strictness for v in verdicts)


def _without_fast_math(model: Mapping[str, float | int]) -> str:
    """Why the fast-math assumptions are needed, in words."""
    values = ", ".join(f"{name} = {value}" for name, value in model.items())
    return f"without: {values} breaks it" if values else "without, the values differ"


def _why(match: Match) -> str:
    if match.unpaired:
        read = match.unpaired[0]
        what = counted(len(match.unpaired), "load finds", "loads find")
        return f"{what} another value than before, {read.access.text} ({read.access.place}) first"
    return match.answer.reason or "the values differ"
