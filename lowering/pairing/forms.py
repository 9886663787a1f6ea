"""Which values of two statements have one form, and how their loads go together."""

from __future__ import annotations

from dataclasses import dataclass, field

from layoutproof.ir.expr import Var
from layoutproof.lowering.pairing.sides import Side
from layoutproof.lowering.pairing.trees import Matcher, Value, Way
from layoutproof.verify.flow.models import World
from layoutproof.verify.flow.statement_reader import Read, Statement
from layoutproof.verify.flow.stored_values import Form
from layoutproof.verify.isl.instance_sets import Link
from layoutproof.verify.isl.operations import coalesced

# How many loads of two statements are replaced by values until these match.
_UNFOLDINGS = 48


@dataclass(frozen=True, slots=True)
class Part:
    """Instances of two statements that are to hold one value, where both values are decided; `ways` are those to pair their loads."""

    link: Link
    new: Value
    old: Value
    ways: tuple[Way, ...]


@dataclass(slots=True)
class Forms:
    """The values of two programs, side by side. `mates` are the memories that were found to hold the same, new and old: a hint which loads
    go together. Of the pairs of statements in `guessed`, by their numbers, loads are paired although their values have different forms.
    """

    world: World
    new: Side
    old: Side
    mates: set[tuple[Var, Var]] = field(default_factory=set)
    guessed: set[tuple[int, int]] = field(default_factory=set)

    def parts(self, new: Statement, old: Statement, link: Link) -> list[Part]:
        """The parts of a relation between instances of two statements on which both values are decided, with the ways to match them."""
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
        return new.value.dtype.element == old.value.dtype.element and all(part.ways for part in self.parts(new, old, link))

    def can_match(self, new: Statement, old: Statement, link: Link) -> bool:
        """The same, perhaps after loads are replaced by the values that they find."""
        return self.all_match(new, old, link) or self.unfolded(new, old, link) is not None

    def unfolded(self, new: Statement, old: Statement, link: Link) -> list[tuple[Form, Form, Link]] | None:
        """Forms of two statements whose values match, with loads replaced by the values that they find, part by part of a relation; None
        where there are none for some part.
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
        """The same with one load replaced, that keeps values from matching on a part, wherever it can be; None where none can."""
        for is_new, load in self._matcher(mine.statement, theirs.statement, part.new, part.old).blocked():
            found = self._replaced(mine, theirs, link, part, load, is_new)
            if found is not None:
                return found
        return None

    def _replaced(self, mine: Form, theirs: Form, link: Link, part: Part, load: Var, is_new: bool) -> list[tuple[Form, Form, Link]] | None:
        """The same with that load replaced wherever it can be; None where that is not all of the part."""
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
                return 0 if self._is_moved(theirs, mine) else None
            updates = mine.data == new.data, theirs.data == old.data
            strange = not any(updates) and (mine.data, theirs.data) not in self.mates and mine.data.name != theirs.data.name
            return 2 * int(inputs[0] is not inputs[1]) + 2 * int(updates[0] is not updates[1]) + int(strange)

        return Matcher(value, other, compatible)

    def _is_moved(self, theirs: Read, mine: Read) -> bool:
        """Whether the memory of one load is, in the new program, that of the other."""
        return self.world.entry(theirs.data.name).new_data == mine.data.name
