"""Which instances of two statements may hold one value: by the form of values, and by the cells that loads access.

If a statement loads temporaries only, their writers may tell: two writers whose values have one form, and whose loads
access the same cells, are supposed to hold the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from layoutproof.ir.expr import Expr, Var
from layoutproof.lowering.compare.program_model import Side
from layoutproof.lowering.compare.value_trees import Matcher, Value, Way
from layoutproof.verify.flow.models import NEW, OLD, RewriteModel
from layoutproof.verify.flow.stored_values import Form
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.instance_sets import Link, Relation, function_between
from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.isl.proposing import by_pair, every_pair, in_relation
from layoutproof.verify.program.statement import Read, Statement
from layoutproof.verify.values.terms import converted_constant

# How many loads of two statements are replaced by values until these match.
_UNFOLDINGS = 48


@dataclass(frozen=True, slots=True)
class Part:
    """Instances of two statements that are to hold one value, if both values are decided; `ways` are those to pair
    their loads.
    """

    link: Link
    new: Value
    old: Value
    ways: tuple[Way, ...]


@dataclass(slots=True)
class Forms:
    """The values of two programs, side by side. `mates` are memories that were found to hold the same, new and old: a
    hint which loads to pair. Statements in `guessed`, by their numbers, have their loads paired although their values
    have different forms.
    """

    rewrite_model: RewriteModel
    new: Side
    old: Side
    mates: set[tuple[Var, Var]] = field(default_factory=set)
    guessed: set[tuple[int, int]] = field(default_factory=set)

    def parts(self, new: Statement, old: Statement, link: Link) -> list[Part]:
        """The parts of a relation between instances of two statements on which both values are decided, with the ways
        to match them.
        """
        if link.is_empty():
            return []
        found: list[Part] = []
        values, others = self.new.values(new, link.domain()), self.old.values(old, link.range())
        for mine, value in values:
            here = link if len(values) == 1 else coalesced(link.intersect_domain(mine))
            for theirs, other in others:
                part = here if len(others) == 1 else coalesced(here.intersect_range(theirs))
                if not part.is_empty():
                    found.append(Part(part, value, other, tuple(self._ways(new, old, value, other))))
        return found

    def _ways(self, new: Statement, old: Statement, value: Value, other: Value) -> list[Way]:
        matcher = self._matcher(new, old, value, other)
        ways = matcher.ways()
        return ways if ways or (new.number, old.number) not in self.guessed else matcher.guesses()

    def all_match(self, new: Statement, old: Statement, link: Link) -> bool:
        """Whether two statements have values of one form everywhere."""
        return new.value.dtype.element == old.value.dtype.element and all(
            part.ways for part in self.parts(new, old, link)
        )

    def can_match(self, new: Statement, old: Statement, link: Link) -> bool:
        """The same, perhaps after loads are replaced by the values that they find."""
        return self.all_match(new, old, link) or self.unfolded(new, old, link) is not None

    def unfolded(self, new: Statement, old: Statement, link: Link) -> list[tuple[Form, Form, Link]] | None:
        """Forms of two statements whose values match after loads are replaced by the values that they find, part by
        part of a relation; None if some part has none.
        """
        if new.value.dtype.element != old.value.dtype.element:
            return None
        done: list[tuple[Form, Form, Link]] = []
        todo = [(self.new.whole(new), self.old.whole(old), link)]
        for _ in range(_UNFOLDINGS):
            if not todo:
                return done
            mine, theirs, here = todo.pop()
            part = next((part for part in self.parts(mine.statement, theirs.statement, here) if not part.ways), None)
            if part is None:
                done.append((mine, theirs, here))
                continue
            more = self._once(mine, theirs, here, part)
            if more is None:
                return None
            todo += more
        return None

    def _once(self, mine: Form, theirs: Form, link: Link, part: Part) -> list[tuple[Form, Form, Link]] | None:
        """The same with one load replaced, wherever possible, that keeps values from matching on a part; None if none
        can be.
        """
        blocked = self._matcher(mine.statement, theirs.statement, part.new, part.old).blocked()
        number = any(converted_constant(value.expr) is not None for value in (part.new, part.old))
        # An accumulator that is replaced is only the update before it: other loads are tried first, and no number comes
        # of it.
        for own, (is_new, load) in self._ordered(mine, theirs, blocked):
            found = self._replaced(mine, theirs, link, part, load, is_new) if not (own and number) else None
            if found is not None:
                return found
        return None

    @staticmethod
    def _ordered(mine: Form, theirs: Form, loads: Sequence[tuple[bool, Var]]) -> list[tuple[bool, tuple[bool, Var]]]:
        """Loads with whether they are of the memory that their statement writes; those that are not come first."""
        owned = [(_is_own(mine if each[0] else theirs, each[1]), each) for each in loads]
        return sorted(owned, key=lambda each: each[0])

    def _replaced(
        self, mine: Form, theirs: Form, link: Link, part: Part, load: Var, is_new: bool
    ) -> list[tuple[Form, Form, Link]] | None:
        """The same with that load replaced wherever it can be; None if that is not all of the part."""
        result: list[tuple[Form, Form, Link]] = []
        rest = link
        for form in self.new.unfolded(mine, load) if is_new else self.old.unfolded(theirs, load):
            here = link.intersect_domain(form.points) if is_new else link.intersect_range(form.points)
            rest = rest.subtract(here)
            if not here.is_empty():
                result.append((form, theirs, here) if is_new else (mine, form, here))
        if not result or not part.link.intersect(rest).is_empty():
            return None
        return result if rest.is_empty() else [*result, (mine, theirs, rest)]

    def _matcher(self, new: Statement, old: Statement, value: Value, other: Value) -> Matcher:
        def compatible(mine: Read, theirs: Read) -> int | None:
            inputs = mine.data not in self.new.written, theirs.data not in self.old.written
            if all(inputs):
                return 0 if self.rewrite_model.entry(theirs.data.name).new_data == mine.data.name else None
            updates = mine.data == new.data, theirs.data == old.data
            strange = (
                not any(updates) and (mine.data, theirs.data) not in self.mates and mine.data.name != theirs.data.name
            )
            return 2 * int(inputs[0] is not inputs[1]) + 2 * int(updates[0] is not updates[1]) + int(strange)

        return Matcher(value, other, compatible)


def _is_own(form: Form, load: Var) -> bool:
    """Whether a load is of the memory that the statement writes."""
    return any(read.var == load and read.data == form.statement.data for read in form.statement.reads)


_AT = "at"


@dataclass(slots=True)
class Places:
    """Both programs, and where the cells of parameters went."""

    rewrite_model: RewriteModel
    new: Side
    old: Side

    def shared(self, new: Statement, old: Statement, way: Way, link: Link) -> Link:
        """The pairs of a link whose loads of parameters, index arithmetic and written cells of parameters agree."""
        for mine, theirs in self.reads_of(new, old, way):
            found = self.of_loads(new, mine, old, theirs)
            if found is not None:
                link = link.intersect(found)
        for number, other in way.indices:
            found = self.of_indices(new, number, old, other)
            if found is not None:
                link = link.intersect(found)
        step = self.cells_of(old.data)
        if step is not None and new.data.name == self.rewrite_model.entry(old.data.name).new_data:
            link = link.intersect(
                self.new.access(new).apply_range(step.reverse()).apply_range(self.old.access(old).reverse())
            )
        return link

    @staticmethod
    def reads_of(new: Statement, old: Statement, way: Way) -> Iterator[tuple[Read, Read]]:
        """The pairs of loads of a way whose accesses integer sets can represent."""
        mine, theirs = {read.var: read for read in new.reads}, {read.var: read for read in old.reads}
        for first, second in way.loads:
            if first in mine and second in theirs and not mine[first].anywhere and not theirs[second].anywhere:
                yield mine[first], theirs[second]

    def of_loads(self, new: Statement, mine: Read, old: Statement, theirs: Read) -> Link | None:
        """All pairs of instances in which two loads of a parameter that is never written access one cell; a load that
        does not happen allows all. None if this says nothing.
        """
        if mine.data in self.new.written or theirs.data in self.old.written:
            return None
        step = self.cells_of(theirs.data)
        if step is None:
            return None
        together = (
            self.new.access(new, mine).apply_range(step.reverse()).apply_range(self.old.access(old, theirs).reverse())
        )
        return together.union(self.idle(new, mine, old))

    def idle(self, new: Statement, read: Read, old: Statement) -> Link:
        """All pairs of instances in which a load of the new statement does not happen."""
        return every_pair(self.new.domain(new).subtract(self.new.access(new, read).domain()), self.old.domain(old))

    def cells_of(self, data: Var) -> Link | None:
        """Where the cells of a parameter went; None for a temporary."""
        if all(data != buffer.data for buffer in self.rewrite_model.rewrite.old.buffers):
            return None
        return self.rewrite_model.cells(self.rewrite_model.entry(data.name), f"{OLD}in_", f"{NEW}in_")

    def of_indices(self, new: Statement, first: Expr, old: Statement, second: Expr) -> Link | None:
        """All pairs of instances in which two numbers are equal; None if integer sets cannot say them."""
        try:
            mine = function_between(self.rewrite_model.encoder_of(new.dims), self.new.name(new), [first], _AT)
            theirs = function_between(self.rewrite_model.encoder_of(old.dims), self.old.name(old), [second], _AT)
        except NotQuasiAffine:
            return None
        return mine.apply_range(theirs.reverse())


# How many temporaries in a row are looked through.
_DEPTH = 4


@dataclass(slots=True)
class Supposed:
    """What is supposed in one search; `theta` has what it found, which is better."""

    places: Places
    forms: Forms
    theta: Mapping[tuple[int, int], Link]
    _known: dict[tuple[int, int], Link | None] = field(default_factory=dict)

    def by_values(self, new: Statement, old: Statement, way: Way) -> Iterator[tuple[Read, Link]]:
        """For each pair of loads of temporaries, the instances of two statements that find values which are supposed to
        be equal.
        """
        yield from self._by_values(new, old, way, _DEPTH)

    def _by_values(self, new: Statement, old: Statement, way: Way, depth: int) -> Iterator[tuple[Read, Link]]:
        mine, theirs = self.places.new, self.places.old
        for read, other in self.places.reads_of(new, old, way):
            computed = read.data in mine.written, other.data in theirs.written
            if not any(computed) or read.data == new.data or other.data == old.data:
                continue
            found, wanted = mine.sources(new, read), theirs.sources(old, other)
            link = self._between(found, wanted, depth) if all(computed) else None
            if link is None:
                # Copies of parameters are as good as these.
                pairs = mine.resolved(found).apply_range(self.places.rewrite_model.theta)
                pairs = pairs.apply_range(theirs.resolved(wanted).reverse())
            else:
                pairs = found.apply_range(link).apply_range(wanted.reverse())
            here = by_pair(pairs).get((mine.name(new), theirs.name(old)))
            if here is not None:
                yield read, here

    def _between(self, found: Relation, wanted: Relation, depth: int) -> Relation | None:
        """The instances of two programs that hold one value, among those that two loads find; None if nothing is
        supposed.
        """
        result: Relation | None = None
        for new in _writers(self.places.new, found):
            for old in _writers(self.places.old, wanted):
                # The supposition is kept even if the finding turns out to be wrong: it does not depend on it.
                link = self.theta.get((new.number, old.number)) if depth == _DEPTH else None
                if link is None:
                    link = self._supposed(new, old, depth)
                if link is not None:
                    result = in_relation(link) if result is None else result.union(in_relation(link))
        return result

    def _supposed(self, new: Statement, old: Statement, depth: int) -> Link | None:
        key = new.number, old.number
        if key not in self._known:
            self._known[key] = None  # Whoever comes back here meanwhile knows no more.
            self._known[key] = self._suppose(new, old, depth)
        return self._known[key]

    def _suppose(self, new: Statement, old: Statement, depth: int) -> Link | None:
        link, way = self.agreeing(self.places.new.whole(new), self.places.old.whole(old), firmly=True)
        if not (way.loads or way.indices):
            return None
        if not link.is_single_valued() and depth:
            for read, each in self._by_values(new, old, way, depth - 1):
                link = link.intersect(each.union(self.places.idle(new, read, old)))
        return coalesced(link) if not link.is_empty() and link.is_single_valued() else None

    def agreeing(
        self, first: Form, second: Form, preferred: Way | None = None, *, firmly: bool = False
    ) -> tuple[Link, Way]:
        """All pairs of instances of two statements whose values have one form and the same accesses, part by part if
        conditions on indices separate parts, and the preferred pairing of loads. `firmly`: without the parts on which a
        load would have to find a number, if there are others.
        """
        new, old = first.statement, second.statement
        whole = every_pair(first.points, second.points)
        links: list[Link] = []
        way = Way()
        parts = [part for part in self.forms.parts(new, old, whole) if part.ways]
        firm = [part for part in parts if not part.ways[0].constants] if firmly else []
        for part in firm if firm else parts:
            if part.ways:
                chosen = preferred if preferred is not None and preferred in part.ways else part.ways[0]
                links.append(self.places.shared(new, old, chosen, part.link))
                way = way.joined(chosen)
        return (_union(links) if links else whole.subtract(whole)), way


def _union(links: list[Link]) -> Link:
    result = links[0]
    for link in links[1:]:
        result = result.union(link)
    return result if len(links) == 1 else coalesced(result)


def _writers(side: Side, found: Relation) -> list[Statement]:
    """The statements that a relation leads to."""
    return list({s.number: s for _, target in by_pair(found) if (s := side.statement(target)) is not None}.values())
