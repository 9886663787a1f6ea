"""The search for the instances of two programs that compute the same, from the outputs backwards.

The layout of each output relates its last writers: these are to hold one value. Two values that are to be equal are
matched, and their loads paired (`instance_pairs`); the cells that the loads access say which instances of the two
statements correspond (`extend_pairs`); and the values that they find are to be equal in turn, and so on to the inputs.
A copy is looked through; a load of a value that the other program computes in place is replaced by that value. If loads
can be paired in several ways, each is tried.

Nothing is proved here. Work is bounded by counts and by the budget of the workspace.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from layoutproof.lowering.compare.comparison import NoWitness
from layoutproof.lowering.compare.extend_pairs import Extended, Extender, Undecided
from layoutproof.lowering.compare.instance_pairs import Forms, Part, Places, Supposed
from layoutproof.lowering.compare.program_model import Cause, Endings, Side, Stuck, starts_of
from layoutproof.lowering.compare.value_trees import Way
from layoutproof.verify.flow.models import NEW, OLD, RewriteModel
from layoutproof.verify.flow.stored_values import Form
from layoutproof.verify.isl.instance_sets import Link, Points, Relation
from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.isl.proposing import by_pair, in_relation
from layoutproof.verify.program.statement import Read, Statement

# How many copies in a row are looked through, how often one pair of statements is looked at, how many ways of pairing
# loads are tried in all, how many of them inside others, and how many relations between sources are followed.
_COPIES, _VISITS, _ATTEMPTS, _NESTED, _RELATIONS = 12, 48, 256, 48, 20_000


@dataclass(frozen=True, slots=True)
class Seed:
    """Instances of two statements that are to hold one value, and why. Loads of the statements may be replaced by
    values.
    """

    new: Form
    old: Form
    link: Link
    cause: Cause

    @property
    def key(self) -> tuple[int, int]:
        """The numbers of the statements."""
        return self.new.statement.number, self.old.statement.number


@dataclass(frozen=True, slots=True)
class _Saved:
    """The state of a search when it tried one of several ways."""

    theta: dict[tuple[int, int], Link]
    asked: dict[tuple[int, int], list[Link]]
    work: tuple[Seed, ...]
    visits: Counter[tuple[int, int]]


@dataclass(slots=True)
class Search:
    """A search over one `RewriteModel`, whose rewrite has the layouts of parameters and an empty map of instances.

    `unknown` names the data variables of parameters whose layouts are not known; the model needs some cell map of the
    right ranks for them. Such a search cannot be run: it serves the search for layouts, with both programs side by side
    (`new`, `old`).

    `run` fills `theta`: instances of new statements -> instances of old ones, by their numbers, each a function.
    `guesses` says whether statements whose values have different forms are paired, as a last resort: for solvers to
    compare.
    """

    rewrite_model: RewriteModel
    unknown: frozenset[str] = frozenset()
    guesses: bool = False
    new: Side = field(init=False)
    old: Side = field(init=False)
    theta: dict[tuple[int, int], Link] = field(default_factory=dict)
    _asked: dict[tuple[int, int], list[Link]] = field(default_factory=dict)
    _work: deque[Seed] = field(default_factory=deque)
    _visits: Counter[tuple[int, int]] = field(default_factory=Counter)
    _attempts: int = 0
    _depth: int = 0
    _relations: int = 0
    _extender: Extender = field(init=False)
    _carried: set[tuple[int, int]] = field(default_factory=set)
    _forms: Forms = field(init=False)
    _endings: Endings = field(init=False)

    def __post_init__(self) -> None:
        rewrite_model = self.rewrite_model
        self.new = Side(rewrite_model, rewrite_model.after, rewrite_model.new, NEW, "the program after")
        self.old = Side(rewrite_model, rewrite_model.before, rewrite_model.old, OLD, "the program before")
        self._forms = Forms(rewrite_model, self.new, self.old)
        places = Places(rewrite_model, self.new, self.old)
        supposed = Supposed(places, self._forms, self.theta)
        self._extender = Extender(rewrite_model, self.new, self.old, self.theta, places, supposed)
        self._endings = Endings(rewrite_model, self.new, self.old, self.theta)

    def run(self) -> None:
        """Find `theta`. Raises NoWitness; NotModelled, NotQuasiAffine and BudgetExceeded outside of what integer sets
        can say.
        """
        if self.unknown:
            raise ValueError(f"the layouts of {', '.join(sorted(self.unknown))} are not known")
        try:
            with self.rewrite_model.workspace.limited():
                for link, why in self._ends():
                    self._relate(link, Cause(why))
                self._work_off()
                self._take_apart()
        except Stuck as end:
            raise NoWitness(self._endings.told(end)) from None

    def _work_off(self) -> None:
        while self._work:
            self._solve(self._work.popleft())

    def _ends(self) -> Iterator[tuple[Relation, str]]:
        """For each parameter that is written: its final writers in the new program to those in the old one."""
        rewrite_model = self.rewrite_model
        for buffer in rewrite_model.rewrite.old.buffers:
            if buffer.data in self.old.written or buffer.data in self.new.written:
                old_data, new_data, step = rewrite_model.ends_of(rewrite_model.entry(buffer.data.name))
                mine, theirs = self.new.flow.final(new_data), self.old.flow.final(old_data)
                yield (
                    mine.reverse().apply_range(step.reverse()).apply_range(theirs),
                    f"what {buffer.name} holds at the end",
                )

    def _take_apart(self) -> None:
        """A new instance that could compute instances of two old statements computes the first."""
        taken: dict[int, Points] = {}
        for key in sorted(self.theta):
            link, before = self.theta[key], taken.get(key[0])
            if before is not None:
                link = self.theta[key] = coalesced(link.subtract_domain(before))
            points = link.domain()
            taken[key[0]] = points if before is None else before.union(points)

    # From relations between sources to pairs of statements

    def _relate(self, relation: Relation, cause: Cause, depth: int = 0) -> None:
        """New sources and old ones that are to hold one value: plain matches first, then through copies, then with
        values in the place of loads, then guesses.
        """
        for (mine, theirs), link in by_pair(relation).items():
            self._relations += 1
            new, old = self.new.statement(mine), self.old.statement(theirs)
            if self._relations > _RELATIONS:
                raise self._endings.at(new, old, f"gave up after {_RELATIONS} relations", link, cause)
            if new is None and old is None:
                self._check_cells(mine, theirs, link, cause)
            elif (carried := self._carried_by(new, old, link)) is not None and depth < _COPIES:
                self._relate(carried, cause, depth + 1)
            elif not self._queue(new, old, coalesced(link), cause):
                moved = self._past(new, old, coalesced(link))
                if moved is None or depth >= _COPIES:
                    raise self._endings.of_forms(new, old, mine, theirs, link, cause)
                self._relate(moved, cause, depth + 1)

    def _queue(self, new: Statement | None, old: Statement | None, link: Link, cause: Cause) -> bool:
        """Whether two statements have values of one form, perhaps after replacing loads; then they are queued."""
        if new is None or old is None:
            return False
        known = self.theta.get((new.number, old.number))
        if known is not None and link.is_subset(known):
            return True
        forms = [(self.new.whole(new), self.old.whole(old), link)] if self._forms.all_match(new, old, link) else None
        # A value that is one load is a copy: what it copied may have the form of the other value.
        plain = not self.new.is_copy(new) and not self.old.is_copy(old)
        if forms is None and (plain or self._through(new, old, link) is None):
            forms = self._forms.unfolded(new, old, link)
        if forms is None and self.guesses and self._past(new, old, link) is None:
            forms = self._guessed(new, old, link)
        for mine, theirs, part in forms or ():
            self._work.append(Seed(mine, theirs, part, cause))
        return forms is not None

    def _carried_by(self, new: Statement | None, old: Statement | None, link: Link) -> Relation | None:
        """Of two updates of which one adds a partial result, and the other does not, or one that was made in fewer
        stages: the update that contributed to it last in its place, and what both accumulators began with. None for any
        others.
        """
        if new is None or old is None or self.new.is_copy(new) or self.old.is_copy(old):
            return None
        stages = self.new.stages(new), self.old.stages(old)
        if stages[0] == stages[1]:
            return None
        mine = self.new.carrying(new) if stages[0] > stages[1] else None
        side, statement = (self.new, new) if mine is not None else (self.old, old)
        rest = (self.old, old) if mine is not None else (self.new, new)
        if not min(stages) and rest[0].adds_a_temporary(rest[1]):
            return None
        each = side.carrying(statement)
        assert each is not None
        last = side.last_contributions(each)
        relation = in_relation(link)
        if mine is not None:
            moved = last.reverse().apply_range(relation)
        else:
            moved = relation.apply_range(last)
        for one, other in by_pair(moved):
            first, second = self.new.statement(one), self.old.statement(other)
            if first is not None and second is not None:
                self._carried.add((first.number, second.number))
        return moved.union(starts_of(self.new, new, self.old, old, relation))

    def _past(self, new: Statement | None, old: Statement | None, link: Link) -> Relation | None:
        """The sources of a copy in its place, or of a store that may have kept the old value; None if there is
        neither.
        """
        found = self._through(new, old, link)
        return found if found is not None else self._left_alone(new, old, link)

    def _through(self, new: Statement | None, old: Statement | None, link: Link) -> Relation | None:
        moved = self.new.through(new, link, True) if new is not None else None
        return self.old.through(old, link, False) if moved is None and old is not None else moved

    def _left_alone(self, new: Statement | None, old: Statement | None, link: Link) -> Relation | None:
        moved = self.new.past(new, link, True) if new is not None else None
        return self.old.past(old, link, False) if moved is None and old is not None else moved

    def _guessed(self, new: Statement, old: Statement, link: Link) -> list[tuple[Form, Form, Link]] | None:
        """Two statements whose values have different forms, for solvers to compare."""
        key = new.number, old.number
        self._forms.guessed.add(key)
        if self._forms.all_match(new, old, link):
            return [(self.new.whole(new), self.old.whole(old), link)]
        self._forms.guessed.discard(key)
        return None

    def _check_cells(self, mine: str, theirs: str, link: Link, cause: Cause) -> None:
        """The initial values of two programs are equal if the cells are."""
        name = theirs.removeprefix(f"{OLD}in_")
        if all(name != buffer.data.name for buffer in self.rewrite_model.rewrite.old.buffers):
            raise self._endings.at(None, None, "the program before finds what was never written", link, cause)
        entry = self.rewrite_model.entry(name)
        step = (
            self.rewrite_model.cells(entry, f"{OLD}in_", f"{NEW}in_") if mine == f"{NEW}in_{entry.new_data}" else None
        )
        if step is None or not link.reverse().is_subset(step):
            raise self._endings.of_cells(mine.removeprefix(f"{NEW}in_"), name, link, cause)

    # From pairs of statements to theta

    def _solve(self, seed: Seed) -> None:
        """Extend a relation between two statements, and follow their loads; if there are several ways, with all that
        remains to do.
        """
        known = self.theta.get(seed.key)
        if known is not None and seed.link.is_subset(known):
            return
        self._visits[seed.key] += 1
        if self._visits[seed.key] > _VISITS:
            raise self._end(seed, f"gave up after {_VISITS} looks at these two")
        link = self._joined(seed, known)
        if link is None:
            return
        first: Stuck | None = None
        choices = self._choices(seed, link)
        chosen = next(choices, None)
        while chosen is not None:
            further = next(choices, None) if self._depth < _NESTED and self._attempts < _ATTEMPTS else None
            if further is None and first is None:
                self._adopt(seed, *chosen)
                return
            problem = self._tried(seed, *chosen)
            if problem is None:
                return
            first = problem if first is None or problem.matched > first.matched else first
            chosen = further
        raise (
            first
            if first is not None
            else self._end(seed, "no instances go together, since the operands look at different places")
        )

    def _end(self, seed: Seed, reason: str, link: Link | None = None) -> Stuck:
        return self._endings.of(
            seed.new.statement, seed.old.statement, reason, seed.link if link is None else link, seed.cause
        )

    def _tried(self, seed: Seed, found: Extended, way: Way) -> Stuck | None:
        """One of several ways, with all that is left to do; the failure if it has one."""
        saved = _Saved(
            dict(self.theta), {k: list(v) for k, v in self._asked.items()}, tuple(self._work), Counter(self._visits)
        )
        self._attempts, self._depth = self._attempts + 1, self._depth + 1
        try:
            self._adopt(seed, found, way)
            self._work_off()
        except Stuck as problem:
            self._restore(saved)
            return problem
        finally:
            self._depth -= 1
        return None

    def _restore(self, saved: _Saved) -> None:
        # The dictionary is known to others.
        self.theta.clear()
        self.theta.update(saved.theta)
        self._asked, self._work, self._visits = saved.asked, deque(saved.work), Counter(saved.visits)

    def _joined(self, seed: Seed, known: Link | None) -> Link | None:
        """What is required of two statements, with what is known of them; None if nothing follows."""
        self._ask(seed)
        if known is None:
            return seed.link
        joined = coalesced(known.union(seed.link))
        if not joined.is_single_valued():
            if self._extender.are_recursive(seed.new.statement, seed.old.statement):
                return None  # Updates in another order: the checker says whether that may be.
            raise self._end(seed, "one instance would compute two of the other program", joined)
        return joined.intersect_domain(seed.new.points).intersect_range(seed.old.points)

    def _ask(self, seed: Seed) -> None:
        """Record the requirement on two statements, if the new one is to hold what several old ones stored: pairs of
        the new one with another of these, guessed from its loads alone, do not count where this one is required.
        """
        number = seed.key[0]
        self._asked.setdefault(seed.key, []).append(seed.link)
        for other in self._others(seed.key):
            mine = seed.link.domain()
            for link in self._asked[number, other]:
                mine = mine.subtract(link.domain())
            if (number, other) in self.theta:
                self.theta[number, other] = self.theta[number, other].subtract_domain(mine)

    def _others(self, key: tuple[int, int]) -> list[int]:
        """The other old statements whose values a new one is to hold."""
        return [other for number, other in self._asked if number == key[0] and other != key[1]]

    def _choices(self, seed: Seed, link: Link) -> Iterator[tuple[Extended, Way]]:
        """The relations on all instances that each way of pairing the loads allows."""
        new, old = seed.new.statement, seed.old.statement
        undecided: Link | None = None
        found = False
        for way in next((part.ways for part in self._forms.parts(new, old, link) if part.ways), ()):
            try:
                for each in self._extender.extended(seed.new, seed.old, link, way):
                    found = True
                    yield each, way
            except Undecided as problem:
                undecided = undecided if undecided is not None else problem.link
        if undecided is not None and not found:
            raise self._end(
                seed, "several instances of the program before may go with one of the program after", undecided
            )

    def _adopt(self, seed: Seed, found: Extended, way: Way) -> None:
        """Take a relation for what two statements have in common, and follow their loads."""
        known = self.theta.get(seed.key)
        if found.wide is not None:
            before = len(self._work)
            try:
                self._take(seed, known, found.wide, way)
            except Stuck:
                # The function holds there, but the loaded values differ: only instances related by copies are left.
                while len(self._work) > before:
                    self._work.pop()
                if known is None:
                    self.theta.pop(seed.key, None)
                else:
                    self.theta[seed.key] = known
            else:
                return
        self._take(seed, known, found.link, way)

    def _take(self, seed: Seed, known: Link | None, link: Link, way: Way) -> None:
        new, old = seed.new.statement, seed.old.statement
        link = self._own(seed, link)
        if known is not None and link.is_subset(known):
            return
        parts = self._forms.parts(new, old, link)
        matching = [part for part in parts if part.ways]
        if not matching:
            raise self._end(seed, "the values have different forms wherever the operands look at the same places", link)
        whole = link if len(matching) == len(parts) else coalesced(_union([part.link for part in matching]))
        joined = None if known is None else coalesced(known.union(whole))
        self.theta[seed.key] = joined if joined is not None and joined.is_single_valued() else whole
        self._forms.mates.add((new.data, old.data))
        for part in matching:
            self._push(new, old, part, way)

    def _own(self, seed: Seed, link: Link) -> Link:
        """A relation without the new instances that are to hold what another old statement stored."""
        for other in self._others(seed.key):
            for asked in self._asked[seed.key[0], other]:
                points = asked.domain()
                for mine in self._asked[seed.key]:
                    points = points.subtract(mine.domain())
                link = link.subtract_domain(points)
        return link

    def _push(self, new: Statement, old: Statement, part: Part, way: Way) -> None:
        """Require that the sources of matched loads are equal."""
        for mine, theirs in Places.reads_of(new, old, way if way in part.ways else part.ways[0]):
            if mine.data in self.new.written or theirs.data in self.old.written:
                found = self._found(new, mine, old, theirs, part)
                text = mine.access.text
                self._relate(found, Cause(f"what {text} loads in {self.new.told(new)}", text, new, old))

    def _found(self, new: Statement, mine: Read, old: Statement, theirs: Read, part: Part) -> Relation:
        """What two matched loads find: new sources to old ones.

        If the updates of a reduction come in another order, the first of the one program may meet a later one of the
        other. Then updates are related with updates, and the value before the first one with the value before the
        first.
        """
        link = in_relation(part.link)
        found = self.new.sources(new, mine).reverse().apply_range(link).apply_range(self.old.sources(old, theirs))
        whole = self.new.by_number[new.number].reads, self.old.by_number[old.number].reads
        if mine.data != new.data or theirs.data != old.data or mine not in whole[0] or theirs not in whole[1]:
            return found
        first, second = self.new.chain(mine.data), self.old.chain(theirs.data)
        together = self.rewrite_model.nothing
        mixed = False
        for (one, other), each in by_pair(found).items():
            source, goal = self.new.statement(one), self.old.statement(other)
            updates = source is not None and source.number in first, goal is not None and goal.number in second
            if updates[0] is updates[1]:
                together = together.union(in_relation(each)) if updates[0] else together
            elif source is None or goal is None or not self._forms.can_match(source, goal, coalesced(each)):
                mixed = True
        if (new.number, old.number) in self._carried:
            return together  # A partial result begins with a neutral value.
        if not mixed:
            return found
        owners = self.new.flow.reduced(new, mine, first)[0], self.old.flow.reduced(old, theirs, second)[0]
        return together.union(owners[0].reverse().apply_range(link).apply_range(owners[1]))


def _union(links: list[Link]) -> Link:
    result = links[0]
    for link in links[1:]:
        result = result.union(link)
    return result
