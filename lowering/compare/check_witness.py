"""Checking a witness under each choice of open padding contracts, until one is proved, a difference is seen, or enough
was tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod
from typing import TYPE_CHECKING, Any

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import FALSE, Expr, logical_and
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.layout_record import Contract, LayoutRecord, LayoutStep, layout_records, with_record
from layoutproof.ir.primfunc import APART, PrimFunc
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite, Witness
from layoutproof.lowering.compare.comparison import PRIMITIVE, BufferLayout
from layoutproof.lowering.compare.padding_contracts import (
    ABOUT_PADDING,
    Choice,
    Choosing,
    LastStored,
    assumed_contracts,
    options_of,
)
from layoutproof.lowering.compare.stated_layouts import Source, Term, padding_under
from layoutproof.lowering.layout.pad_value import with_assume_stage
from layoutproof.lowering.layout.transform_layout import padding_of
from layoutproof.lowering.passes.effects import data_written
from layoutproof.lowering.proof_cache.remembered import verdicts_of
from layoutproof.verify.settings import scaled
from layoutproof.verify.values.fast_math import FastMathSet
from layoutproof.verify.verdict import codes as claims
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

if TYPE_CHECKING:
    from layoutproof.verify.replay.counterexample import Counterexample


@dataclass(frozen=True, slots=True)
class Moved:
    """A parameter whose layout changes by a known map. `padding` is where its padding is: FALSE if there is none, None
    if that is not known.
    """

    term: Term
    index_map: IndexMap
    padding: Expr | None

    @property
    def name(self) -> str:
        """Its name before."""
        return self.term.old.name

    @property
    def is_open(self) -> bool:
        """Whether its contract is to be found."""
        return self.term.source is not Source.RECORDED and not self.term.pad_given and self.padding != FALSE

    @property
    def has_padding(self) -> bool:
        """Whether there may be padding."""
        return self.padding != FALSE

    @property
    def cells(self) -> CellMap:
        """Where its cells went."""
        return CellMap(self.term.old.data.name, self.term.new.data.name, self.index_map)


def proposal(
    old: PrimFunc,
    new: PrimFunc,
    moved: Sequence[Moved],
    contracts: Mapping[str, Choice],
    instances: Sequence[InstanceMap],
) -> Rewrite:
    """The rewrite from `old` to `new`, which is over the names of `old`, with parameters moved and their padding under
    these contracts.

    The new program gets the layout records; and, if it reads padding under a contract that is a value without assuming
    it, the assumption that its callers keep the contract.
    """
    for place in moved:
        new = _recorded(old, new, place, contracts.get(place.name))
    for data, record in layout_records(old).items():
        if data not in layout_records(new) and any(b.data.name == data for b in new.buffers):
            new = replace(new, attrs=with_record(new, data, record))
    if moved and not old.noalias and len(old.buffers) > 1:
        # Two parameters in one memory cannot have different layouts.
        new = replace(new, attrs=new.attrs.with_value(APART, True))
    witness = Witness(tuple(instances), tuple(place.cells for place in moved), tuple(place.name for place in moved))
    return Rewrite(old, new, witness)


def _recorded(old: PrimFunc, new: PrimFunc, place: Moved, contract: Choice) -> PrimFunc:
    term = place.term
    if term.source is Source.RECORDED:
        return new
    contract = term.pad if term.pad_given else contract
    contract = None if place.padding == FALSE else contract
    data = term.new.data.name
    record = layout_records(old).get(data, LayoutRecord(term.old.shape))
    step = LayoutStep(place.index_map, term.new.shape, contract)
    new = replace(new, attrs=with_record(new, data, record.with_step(step)))
    return _assuming(new, place, contract)


def _assuming(new: PrimFunc, place: Moved, contract: Choice) -> PrimFunc:
    """The program with assumptions about its input's padding, if it does not have them itself."""
    buffer = place.term.new
    if contract is None or contract.is_undef or place.padding is None or buffer.dtype.lanes > 1:
        return new
    if buffer.data in data_written(new.body) or any(True for _ in assumed_contracts(new, buffer)):
        return new
    return with_assume_stage(new, padding_of(new, buffer, place.padding, contract))


MORE_FOR_FEWER_FAST_MATH = 2


@dataclass(frozen=True, slots=True)
class Asked:
    """A requested comparison. `new` is `after` over the names of `old`; `terms` are the layouts of its parameters;
    `stored_as` has their names in `after`. `where` is the condition on symbols, from the caller and from the old
    program, `allowed` the fast-math assumptions that proofs may use.
    """

    old: PrimFunc
    after: PrimFunc
    new: PrimFunc
    terms: tuple[Term, ...]
    stored_as: Mapping[str, str]
    where: Expr | None
    allowed: FastMathSet

    @property
    def unknown(self) -> tuple[str, ...]:
        """The parameters whose layouts are to be found."""
        return tuple(term.old.name for term in self.terms if term.source is Source.UNKNOWN)

    @property
    def may_overlap(self) -> bool:
        """Whether parameters could overlap, and nothing excludes it yet."""
        return not self.old.noalias and not self.new.noalias and len(self.old.buffers) > 1

    def apart(self) -> Asked:
        """The same, where every call is asked for parameters that do not overlap."""
        return replace(self, new=replace(self.new, attrs=self.new.attrs.with_value(APART, True)))

    def moved(self, cells: Sequence[CellMap] = ()) -> tuple[Moved, ...]:
        """The parameters whose layouts change, those of unknown layouts by the maps that were found.

        Raises LayoutproofError for a map whose image the new shape does not contain.
        """
        found = {c.old_data: c.cells for c in cells}
        result: list[Moved] = []
        for term in self.terms:
            index_map = term.index_map if term.source is not Source.UNKNOWN else found.get(term.old.data.name)
            if index_map is not None:
                # A record has the contract of its padding.
                known = term.source is not Source.RECORDED
                result.append(Moved(term, index_map, padding_under(term, index_map, self.where) if known else None))
        return tuple(result)

    def skeleton(self, moved: Sequence[Moved]) -> Rewrite:
        """The rewrite without a witness, with open padding contracts left out."""
        return proposal(self.old, self.new, moved, {}, ())


def joined(first: Expr | None, second: Expr | None) -> Expr | None:
    """Both conditions as one; None for none."""
    given = [condition for condition in (first, second) if condition is not None]
    return logical_and(*given) if given else None


@dataclass(frozen=True, slots=True)
class Trial:
    """The checker's verdicts on one rewrite. `contracts` are those that were chosen."""

    rewrite: Rewrite
    verdicts: tuple[Verdict, ...]
    moved: tuple[Moved, ...]
    contracts: Mapping[str, Choice]

    @property
    def status(self) -> Status:
        """The worst verdict's."""
        return worst(v.status for v in self.verdicts)

    @property
    def holds(self) -> bool:
        """Whether all is proved, be it of nothing."""
        return self.status in (Status.PROVED, Status.VACUOUS)

    @property
    def fast_math(self) -> frozenset[str]:
        """What the proof takes for granted of floats."""
        return frozenset(word for v in self.verdicts for word in v.strictness)

    @property
    def rank(self) -> tuple[int, int, int]:
        """Less is better: proved, then with fewer fast-math assumptions, then with less left open."""
        order = (Status.PROVED, Status.VACUOUS, Status.UNKNOWN, Status.REFUTED)
        return order.index(self.status), len(self.fast_math), sum(v.status is not Status.PROVED for v in self.verdicts)

    def contract(self, place: Moved) -> Choice:
        """The stated contract of a parameter's padding."""
        if place.term.source is Source.RECORDED:
            return next((step.contract for step in reversed(place.term.steps) if step.contract is not None), None)
        if place.is_open:
            return self.contracts.get(place.name)
        return place.term.pad if place.has_padding else None


def checked(
    asked: Asked,
    moved: Sequence[Moved],
    contracts: Mapping[str, Choice],
    instances: Sequence[InstanceMap],
    search: bool,
) -> Trial:
    """One rewrite, and what the checker says of it, with a search for a counterexample or without."""
    rewrite = proposal(asked.old, asked.new, moved, contracts, instances)
    layouts = [layout.to_dict() for layout in layouts_of(asked, Trial(rewrite, (), tuple(moved), contracts))]
    verdicts = verdicts_of(rewrite, asked.where, asked.allowed, search, PRIMITIVE, {"layouts": layouts})
    return Trial(rewrite, verdicts, tuple(moved), contracts)


def tried(asked: Asked, moved: Sequence[Moved], instances: Sequence[InstanceMap]) -> Trial:
    """The best of what the checker says with the contracts that come into question."""
    last = last_values(asked, moved, instances)
    options = {
        place.name: options_of(asked.new, place.term.new, last.get(place.name)) for place in moved if place.is_open
    }
    choosing = Choosing(options, {place.name: place.term.new.data.name for place in moved})
    contracts: dict[str, Choice] | None = choosing.first()
    best: Trial | None = None
    more = MORE_FOR_FEWER_FAST_MATH
    while contracts is not None:
        trial = checked(asked, moved, contracts, instances, search=False)
        best = trial if best is None or trial.rank < best.rank else best
        if trial.holds:
            if not trial.fast_math or more == 0:
                break
            more -= 1
        contracts = choosing.next(trial.verdicts)
    assert best is not None
    return best


def with_other_contracts(asked: Asked, failed: Trial) -> Trial | None:
    """What is proved if given pad values are left open; None if nothing is, or if they were not the failure."""
    freed = tuple(
        replace(term, pad=None, pad_given=False) if term.source is Source.GIVEN else term for term in asked.terms
    )
    about = {verdict.claim.kind.code for verdict in failed.verdicts if verdict.status is not Status.PROVED}
    if freed == asked.terms or not about <= ABOUT_PADDING:
        return None
    other = replace(asked, terms=freed)
    trial = tried(other, other.moved(), failed.rewrite.witness.instances)
    return trial if trial.holds else None


def last_values(asked: Asked, moved: Sequence[Moved], instances: Sequence[InstanceMap]) -> dict[str, LastStored]:
    """The final values of open padding, of the parameters that the new program writes, if they are known."""
    from layoutproof.lowering.compare.padding_contracts import endings

    written = data_written(asked.new.body)
    names = [place.name for place in moved if place.is_open and place.term.new.data in written]
    return endings(proposal(asked.old, asked.new, moved, {}, instances), asked.where, names)


def layouts_of(asked: Asked, trial: Trial) -> tuple[BufferLayout, ...]:
    """How parameters lie in the program after, as reports have it."""
    found: list[BufferLayout] = []
    for place in trial.moved:
        recorded = place.term.source is Source.RECORDED
        given = recorded or place.term.source is Source.GIVEN
        text, contract = _map_text(place.index_map, place.term), trial.contract(place)
        pad = None if contract is None else contract.text
        found.append(
            BufferLayout(place.name, asked.stored_as[place.name], text, pad, given, recorded or place.term.pad_given)
        )
    return tuple(found)


def _map_text(index_map: IndexMap, term: Term) -> str:
    return term.steps[0].map_text if len(term.steps) == 1 else index_map_text(index_map)


_MOST_CHOICES = 6
# Faults that do not depend on the layouts of parameters and the contents of their padding.
_ALONE = frozenset({claims.OUTSIDE, claims.RACE})


def refuted(asked: Asked, moved: Sequence[Moved], instances: Sequence[InstanceMap]) -> list[Trial]:
    """A refutation for each choice of the open contracts; empty if one choice has none."""
    found: list[Trial] = []
    for contracts in _choices(asked, moved, instances):
        trial = _seen_to_differ(asked, checked(asked, moved, contracts, instances, search=True))
        if trial is None:
            return []
        found.append(trial)
    return found


def _choices(asked: Asked, moved: Sequence[Moved], instances: Sequence[InstanceMap]) -> Iterator[dict[str, Choice]]:
    written, last = data_written(asked.new.body), last_values(asked, moved, instances)
    lists: dict[str, tuple[Choice, ...]] = {}
    for place in moved:
        buffer = place.term.new
        if place.is_open and buffer.data in written:
            # A contract of a written buffer is an obligation of the new program; one that it keeps is no reason to
            # differ.
            value = last[place.name].value if place.name in last else None
            lists[place.name] = (value if value is not None else Contract.undef(buffer.dtype),)
        elif place.is_open:
            stated = tuple(dict.fromkeys(assumed_contracts(asked.new, buffer)))
            if len(stated) > 1:
                return  # It assumes different things of different padding, which no single contract says.
            # The strongest contract first: if even that does not help, the others will not.
            lists[place.name] = stated if stated else tuple(reversed(options_of(asked.new, buffer, None)))
    for choice in islice(product(*lists.values()), _MOST_CHOICES):
        yield dict(zip(lists, choice, strict=True))


def _seen_to_differ(asked: Asked, trial: Trial) -> Trial | None:
    """The trial if it refutes that both programs do the same; None if not.

    A fault of the new program does not, if the old one may fault itself: then a run has to show that only the new one
    does.
    """
    from layoutproof.verify.replay.refute import REPLAY, find_counterexample

    shown = next((v for v in trial.verdicts if v.status is Status.REFUTED), None)
    if shown is None or shown.engine == REPLAY or _is_faultless(asked):
        return trial if shown is not None else None
    found = find_counterexample(trial.rewrite, where=asked.where, fast_math=asked.allowed)
    if found is None:
        return None
    rest = (v for v in trial.verdicts if v.status is not Status.REFUTED)
    seen = Verdict(
        Status.REFUTED, shown.claim, REPLAY, reason=found.text(), counterexample=found.to_dict(), seconds=shown.seconds
    )
    return replace(trial, verdicts=(seen, *rest))


MOST_POSSIBLE = 64
_MOST_CHOSEN = 16  # choices for each that is run: more are not looked at


def refuted_by_all(asked: Asked, layouts: Mapping[str, Sequence[IndexMap]]) -> tuple[Trial, int] | None:
    """A refutation with the first of all choices of these layouts, by the data variables' names, if runs differ with
    each of them, whatever padding holds; and the number of choices. None if one is left, or if there are too many.
    """
    fitting = _fitting(asked, layouts)
    if fitting is None:
        return None
    first: Trial | None = None
    telling: list[dict[str, Any]] = []
    for moved in fitting:
        for contracts in _choices(asked, moved, ()):
            rewrite = proposal(asked.old, asked.new, moved, contracts, ())
            if any(_tells(asked, rewrite, each) for each in reversed(telling)):
                continue
            found = _difference(asked, rewrite, shown=first is None)
            if found is None:
                return None
            telling.append(found.to_dict())
            first = Trial(rewrite, (_seen(found),), moved, contracts) if first is None else first
    return None if first is None else (first, len(fitting))


def _fitting(asked: Asked, layouts: Mapping[str, Sequence[IndexMap]]) -> list[tuple[Moved, ...]] | None:
    """The choices of layouts that fit; None if these are too many to be run."""
    most = scaled(MOST_POSSIBLE)
    if prod(len(each) for each in layouts.values()) > _MOST_CHOSEN * most:
        return None
    found: list[tuple[Moved, ...]] = []
    for choice in product(*layouts.values()):
        cells = [CellMap(name, name, each) for name, each in zip(layouts, choice, strict=True)]
        try:
            found.append(asked.moved(cells))
        except LayoutproofError:
            continue  # It does not fit.
        if len(found) > most:
            return None
    return found


def _tells(asked: Asked, rewrite: Rewrite, known: Mapping[str, Any]) -> bool:
    """Whether an input on which another rewrite differs tells these two apart too."""
    from layoutproof.verify.replay.refute import replays

    return replays(rewrite, known, where=asked.where, fast_math=asked.allowed)


def _difference(asked: Asked, rewrite: Rewrite, *, shown: bool) -> Counterexample | None:
    """What a run shows of a rewrite that need not have a witness."""
    from layoutproof.verify.replay.refute import Budget, find_counterexample

    # Only the one that is shown is made small.
    budget = None if shown else Budget(minimising_runs=0)
    return find_counterexample(rewrite, where=asked.where, fast_math=asked.allowed, budget=budget)


def _seen(found: Counterexample) -> Verdict:
    """The verdict of what a run showed."""
    from layoutproof.verify.replay.refute import REPLAY

    claim = Claim(ClaimKind.SAME_END, "output buffers are preserved", about=("outputs",))
    return Verdict(Status.REFUTED, claim, REPLAY, reason=found.text(), counterexample=found.to_dict())


def fault_alone(asked: Asked, trial: Trial) -> Verdict | None:
    """A fault of the new program under any layouts, and not of the old one: an access out of bounds, or a race."""
    found = (v for v in trial.verdicts if v.status is Status.REFUTED and v.claim.kind.code in _ALONE)
    shown = next(found, None)
    return shown if shown is not None and _is_faultless(asked) else None


def of_nothing(asked: Asked) -> Verdict | None:
    """The verdict that the question is vacuous: no input satisfies all assumptions, the old program always faults, or
    neither program stores anything observable. None if that is not known.
    """
    from layoutproof.verify.faults.vacuity import is_idle, prove_runs

    found = prove_runs(asked.old, asked.where)
    if found.status is not Status.VACUOUS:
        return None
    # Where only the old one stores nothing, the new one may do what it should not.
    return found if not is_idle(asked.old, asked.where) or is_idle(asked.new, asked.where) else None


def _is_faultless(asked: Asked) -> bool:
    """Whether the old program is proved to have no fault."""
    return all(v.status is Status.PROVED for v in _verdicts_on_old(asked))


def _verdicts_on_old(asked: Asked) -> tuple[Verdict, ...]:
    from layoutproof.verify.faults.facts import Facts
    from layoutproof.verify.faults.no_faults import check_facts

    return check_facts(Facts.of(asked.old, asked.where), calls=False)
