"""Which instances of two statements may hold one value, judged by their values alone, before anything asks for them.

Where a statement loads temporaries only, nothing says yet which of its instances go with which of another statement. What writes the
temporaries may say so: two writers whose values have one form, and whose loads look at the same places, are supposed to hold the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from layoutproof.lowering.pairing.forms import Forms
from layoutproof.lowering.pairing.places import Places
from layoutproof.lowering.pairing.sides import Side
from layoutproof.lowering.pairing.trees import Way
from layoutproof.verify.flow.statement_reader import Read, Statement
from layoutproof.verify.flow.stored_values import Form
from layoutproof.verify.isl.instance_sets import Link, Relation
from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.isl.proposing import by_pair, every_pair, in_relation

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
        """For each pair of loads of temporaries, the instances of two statements that find values which are supposed to be the same."""
        yield from self._by_values(new, old, way, _DEPTH)

    def _by_values(self, new: Statement, old: Statement, way: Way, depth: int) -> Iterator[tuple[Read, Link]]:
        mine, theirs = self.places.new, self.places.old
        for read, other in self.places.reads_of(new, old, way):
            if read.data not in mine.written or other.data not in theirs.written:
                continue
            if read.data == new.data or other.data == old.data:
                continue
            found, wanted = mine.sources(new, read), theirs.sources(old, other)
            link = self._between(found, wanted, depth)
            if link is None:
                continue
            pairs = found.apply_range(link).apply_range(wanted.reverse())
            here = by_pair(pairs).get((mine.name(new), theirs.name(old)))
            if here is not None:
                yield read, here

    def _between(self, found: Relation, wanted: Relation, depth: int) -> Relation | None:
        """The instances of two programs that hold one value, among those that two loads find; None where nothing is supposed."""
        result: Relation | None = None
        for new in _writers(self.places.new, found):
            for old in _writers(self.places.old, wanted):
                # What is supposed is kept, also where what was found turns out to be wrong: it does not rest on that.
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
        link, way = self.agreeing(self.places.new.whole(new), self.places.old.whole(old))
        if not (way.loads or way.indices):
            return None
        if not link.is_single_valued() and depth:
            for read, each in self._by_values(new, old, way, depth - 1):
                link = link.intersect(each.union(self.places.idle(new, read, old)))
        return coalesced(link) if not link.is_empty() and link.is_single_valued() else None

    def agreeing(self, first: Form, second: Form, preferred: Way | None = None) -> tuple[Link, Way]:
        """All pairs of instances of two statements whose values have one form and look at the same places, part by part where conditions on
        indices tell parts apart, and the way in which loads are paired: the preferred one where there are several.
        """
        new, old = first.statement, second.statement
        whole = every_pair(first.points, second.points)
        links: list[Link] = []
        way = Way()
        for part in self.forms.parts(new, old, whole):
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
