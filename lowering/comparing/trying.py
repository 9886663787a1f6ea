"""A witness tried: the contracts that are open chosen, and the checker asked, until something is proved or enough was tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.expr import Expr, logical_and
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.primfunc import APART, PrimFunc
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite
from layoutproof.ir.visit import loops_of_stores
from layoutproof.lowering.comparing.comparison import PRIMITIVE, BufferLayout
from layoutproof.lowering.comparing.contracts import ABOUT_PADDING, Choice, Choosing, LastStored, options_of
from layoutproof.lowering.comparing.proposal import Moved, proposal
from layoutproof.lowering.comparing.stated import Source, Term, padding_under
from layoutproof.lowering.effects import data_written
from layoutproof.lowering.remembered import verdicts_of
from layoutproof.verify.values.fast_math import Licences
from layoutproof.verify.verdict.verdict import Status, Verdict, worst

MORE_FOR_FEWER_LICENCES = 2


@dataclass(frozen=True, slots=True)
class Asked:
    """A comparison that is asked for. `new` is `after` over the names of `old`; `terms` say how its parameters lie; `stored_as` has their
    names in `after`. `where` is what is known of symbols, from the caller and from the old program, `allowed` the float licences that
    proofs may use.
    """

    old: PrimFunc
    after: PrimFunc
    new: PrimFunc
    terms: tuple[Term, ...]
    stored_as: Mapping[str, str]
    where: Expr | None
    allowed: Licences

    @property
    def unknown(self) -> tuple[str, ...]:
        """The parameters whose layouts are to be found."""
        return tuple(term.old.name for term in self.terms if term.source is Source.UNKNOWN)

    @property
    def may_overlap(self) -> bool:
        """Whether nobody says yet that the parameters do not overlap, and there are some that could."""
        return not self.old.noalias and not self.new.noalias and len(self.old.buffers) > 1

    def apart(self) -> Asked:
        """The same, where every call is asked for parameters that do not overlap."""
        return replace(self, new=replace(self.new, attrs=self.new.attrs.with_value(APART, True)))

    def moved(self, cells: Sequence[CellMap] = ()) -> tuple[Moved, ...]:
        """The parameters that lie elsewhere, those of unknown layouts by the maps that were found for them.

        Raises LayoutproofError for a map whose image the new shape does not hold.
        """
        found = {c.old_data: c.cells for c in cells}
        result: list[Moved] = []
        for term in self.terms:
            index_map = term.index_map if term.source is not Source.UNKNOWN else found.get(term.old.data.name)
            if index_map is not None:
                # A record says itself what its padding holds.
                known = term.source is not Source.RECORDED
                result.append(Moved(term, index_map, padding_under(term, index_map, self.where) if known else None))
        return tuple(result)

    def skeleton(self, moved: Sequence[Moved]) -> Rewrite:
        """The rewrite without a witness, nothing said of padding that is open."""
        return proposal(self.old, self.new, moved, {}, ())


def joined(first: Expr | None, second: Expr | None) -> Expr | None:
    """Both conditions as one; None for none."""
    given = [condition for condition in (first, second) if condition is not None]
    return logical_and(*given) if given else None


@dataclass(frozen=True, slots=True)
class Trial:
    """What the checker said of one rewrite. `contracts` are those that were chosen."""

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
    def licences(self) -> frozenset[str]:
        """What the proof takes for granted of floats."""
        return frozenset(word for v in self.verdicts for word in v.strictness)

    @property
    def rank(self) -> tuple[int, int, int]:
        """Less is better: proved, then with fewer licences, then with less left open."""
        order = (Status.PROVED, Status.VACUOUS, Status.UNKNOWN, Status.REFUTED)
        return order.index(self.status), len(self.licences), sum(v.status is not Status.PROVED for v in self.verdicts)

    def contract(self, place: Moved) -> Choice:
        """What the padding of a parameter is said to hold."""
        if place.term.source is Source.RECORDED:
            return next((step.contract for step in reversed(place.term.steps) if step.contract is not None), None)
        if place.is_open:
            return self.contracts.get(place.name)
        return place.term.pad if place.has_padding else None


def checked(asked: Asked, moved: Sequence[Moved], contracts: Mapping[str, Choice], instances: Sequence[InstanceMap], search: bool) -> Trial:
    """One rewrite, and what the checker says of it, with a search for a counterexample or without."""
    rewrite = proposal(asked.old, asked.new, moved, contracts, instances)
    layouts = [layout.to_dict() for layout in layouts_of(asked, Trial(rewrite, (), tuple(moved), contracts))]
    verdicts = verdicts_of(rewrite, asked.where, asked.allowed, search, PRIMITIVE, {"layouts": layouts})
    return Trial(rewrite, verdicts, tuple(moved), contracts)


def tried(asked: Asked, moved: Sequence[Moved], instances: Sequence[InstanceMap]) -> Trial:
    """The best of what the checker says with the contracts that come into question."""
    last = last_values(asked, moved, instances)
    options = {place.name: options_of(asked.new, place.term.new, last.get(place.name)) for place in moved if place.is_open}
    choosing = Choosing(options, {place.name: place.term.new.data.name for place in moved})
    contracts: dict[str, Choice] | None = choosing.first()
    best: Trial | None = None
    more = MORE_FOR_FEWER_LICENCES
    while contracts is not None:
        trial = checked(asked, moved, contracts, instances, search=False)
        best = trial if best is None or trial.rank < best.rank else best
        if trial.holds:
            if not trial.licences or more == 0:
                break
            more -= 1
        contracts = choosing.next(trial.verdicts)
    assert best is not None
    return best


def in_order(asked: Asked) -> tuple[InstanceMap, ...] | None:
    """The witness that each store is the one of its number, loops one for one; None where the programs are not written so."""
    return store_by_store(asked.old, asked.new)


def store_by_store(old: PrimFunc, new: PrimFunc) -> tuple[InstanceMap, ...] | None:
    """`in_order`, of two functions."""
    mine, theirs = loops_of_stores(new.body), loops_of_stores(old.body)
    if [len(loops) for loops in mine] != [len(loops) for loops in theirs]:
        return None
    every = (tuple(loop.var for loop in loops) for loops in mine)
    return tuple(InstanceMap(number, number, IndexMap(inputs, inputs)) for number, inputs in enumerate(every))


def with_other_contracts(asked: Asked, failed: Trial) -> Trial | None:
    """What is proved where pad values that were given are left open; None where nothing is, or where they were not what failed."""
    freed = tuple(replace(term, pad=None, pad_given=False) if term.source is Source.GIVEN else term for term in asked.terms)
    about = {verdict.claim.kind.code for verdict in failed.verdicts if verdict.status is not Status.PROVED}
    if freed == asked.terms or not about <= ABOUT_PADDING:
        return None
    other = replace(asked, terms=freed)
    trial = tried(other, other.moved(), failed.rewrite.witness.instances)
    return trial if trial.holds else None


def last_values(asked: Asked, moved: Sequence[Moved], instances: Sequence[InstanceMap]) -> dict[str, LastStored]:
    """What open padding ends with, of the parameters that the new program writes, where that is known."""
    from layoutproof.lowering.comparing.endings import endings

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
        found.append(BufferLayout(place.name, asked.stored_as[place.name], text, pad, given, recorded or place.term.pad_given))
    return tuple(found)


def _map_text(index_map: IndexMap, term: Term) -> str:
    return term.steps[0].map_text if len(term.steps) == 1 else index_map_text(index_map)
