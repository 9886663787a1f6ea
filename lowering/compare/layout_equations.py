"""What two programs and the known layouts imply for the unknown ones.

From the inputs upwards: two instances may hold one value if their operands may; a load of a parameter with a known
layout separates instances, other loads do not. From the outputs downwards: of these pairs the required ones count. The
rest relates the cells of a parameter before and after: its layout is inside that relation, and if the relation is a
function, it is the layout. Nothing is enumerated, so offsets, padding, swizzles and symbolic extents come out as they
are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from layoutproof.ir.expr import Expr
from layoutproof.lowering.compare.program_model import Side
from layoutproof.lowering.compare.value_meetings import Meeting, Meetings, Operand
from layoutproof.verify.flow.models import NEW, OLD, RewriteModel
from layoutproof.verify.isl.instance_sets import Link, Points, Relation
from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.isl.proposing import by_pair, called, every_pair, in_relation, none_of, part_between
from layoutproof.verify.program.statement import Statement

Pair = tuple[str, str]
# Updates of one memory by several statements ask for each other: twice around is enough to ask for all.
_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Spot:
    """An access of the new program to a parameter: old cell -> new instances, and their accesses, over the loops of
    `statement`.
    """

    instances: Link
    statement: Statement
    coordinates: tuple[Expr, ...]


@dataclass(slots=True)
class Solving:
    """One choice of layouts: `cells` relates old cells to new ones (tuples as accesses have them), by the data
    variable's name.

    After `run`: `spots` are the new program's accesses to each parameter without a layout, and `allowed` what its
    layout is inside. `lost` names the written parameters of which not every cell can hold what it should: a sign that a
    layout is wrong.
    """

    meetings: Meetings
    cells: Mapping[str, Link]
    spots: dict[str, list[Spot]] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    _together: dict[Pair, Link | None] = field(default_factory=dict)
    _begun: set[Pair] = field(default_factory=set)
    _asked: dict[Pair, Link] = field(default_factory=dict)
    _last: dict[str, tuple[Relation, Relation]] = field(default_factory=dict)
    _seen: dict[str, dict[object, list[tuple[Link, Link]]]] = field(default_factory=dict)

    @property
    def rewrite_model(self) -> RewriteModel:
        """Both programs."""
        return self.meetings.search.rewrite_model

    def run(self) -> None:
        """Find out. Raises NotModelled, NotQuasiAffine or BudgetExceeded."""
        with self.rewrite_model.workspace.limited():
            self.lost = tuple(name for name in self._written() if not self._ends(name))
            for _ in range(_ROUNDS):
                self._seen.clear()
                self.spots.clear()
                for pair in reversed(list(self._together)):
                    self._ask_on(pair)
            for name in self._written():
                if name not in self.cells:
                    self._written_cells(name)

    def allowed(self, name: str) -> Link | None:
        """Old cells to new ones: the layout of a parameter is inside, at the cells with a pair. None if nothing is
        known. Raises BudgetExceeded.
        """
        result: Link | None = None
        with self.rewrite_model.workspace.limited():
            for seen in self._seen.get(name, {}).values():
                link = self._met_there(name, seen)
                if result is None:
                    result = link
                elif link is not None:
                    both = result.intersect(link)
                    alone = result.subtract_domain(link.domain()).union(link.subtract_domain(result.domain()))
                    result = both.union(alone)
            return coalesced(result) if result is not None else None

    def _met_there(self, name: str, seen: list[tuple[Link, Link]]) -> Link | None:
        result: Link | None = None
        for instances, accesses in seen:
            link = called(
                instances.apply_range(accesses), f"{OLD}in_{name}", f"{NEW}in_{self.rewrite_model.entry(name).new_data}"
            )
            if not link.is_empty():
                result = link if result is None else result.union(link)
        return result

    def _written(self) -> Iterator[str]:
        search = self.meetings.search
        for buffer in self.rewrite_model.rewrite.old.buffers:
            if buffer.data in search.old.written or buffer.data in search.new.written:
                yield buffer.data.name

    # Upwards: what may hold one value

    def together(self, pair: Pair) -> Link | None:
        """All pairs of points of two tuples that may hold one value; None if there are none."""
        if pair in self._together:
            return self._together[pair]
        mine, theirs = pair
        new, old = self.meetings.search.new.statement(mine), self.meetings.search.old.statement(theirs)
        if new is None and old is None:
            return self._cells_together(mine, theirs)
        if pair in self._begun:
            return self._whole(pair)
        self._begun.add(pair)
        found = self._met(pair, False)
        self._together[pair] = found
        if found is not None and any(o.recursive for meeting in self.meetings.between(*pair) for o in meeting.operands):
            narrowed = self._met(pair, True)
            if narrowed is not None and _same_ends(narrowed, found):
                self._together[pair] = narrowed
        return self._together[pair]

    def _cells_together(self, mine: str, theirs: str) -> Link | None:
        name = theirs.removeprefix(f"{OLD}in_")
        if mine != f"{NEW}in_{self.rewrite_model.entry(name).new_data}" or all(
            name != b.data.name for b in self.rewrite_model.rewrite.old.buffers
        ):
            return None
        known = self.cells.get(name)
        return known.reverse() if known is not None else self._whole((mine, theirs))

    def _whole(self, pair: Pair) -> Link:
        return every_pair(self.meetings.points(pair[0]), self.meetings.points(pair[1]))

    def _met(self, pair: Pair, recursive: bool) -> Link | None:
        result: Link | None = None
        for meeting in self.meetings.between(*pair):
            if meeting.constant:
                continue
            link = self._of(meeting, pair, recursive)
            if not link.is_empty():
                result = link if result is None else result.union(link)
        return coalesced(result) if result is not None else None

    def _of(self, meeting: Meeting, pair: Pair, recursive: bool) -> Link:
        """The pairs of one meeting whose operands may be equal; what the statements stored themselves counts if that is
        required.
        """
        link = meeting.region
        for operand in sorted(meeting.operands, key=lambda operand: operand.recursive):
            if operand.recursive and not recursive:
                continue
            link = self._narrowed(link, operand, pair)
            if link.is_empty():
                break
        return link

    def _narrowed(self, link: Link, operand: Operand, pair: Pair) -> Link:
        """The pairs whose operand may be equal: the last write in both programs, or, if reductions run in other orders,
        any update before it.
        """
        sharp = self._found(operand.mine, operand.theirs, pair, operand.recursive)
        narrow = link.intersect(sharp) if sharp is not None else none_of(link)
        if operand.recursive or not narrow.is_empty():
            return narrow
        mine, theirs = self.meetings.with_runs(operand.mine), self.meetings.with_runs(operand.theirs)
        if mine is operand.mine and theirs is operand.theirs:
            return narrow
        wide = self._found(mine, theirs, pair, False)
        return link.intersect(wide) if wide is not None else none_of(link)

    def _found(self, mine: Relation, theirs: Relation, pair: Pair, constants: bool) -> Link | None:
        """The pairs whose sources may hold one value; of equal constants only if that is required."""
        found: Relation = self.rewrite_model.nothing
        for (_, first), ours in by_pair(mine).items():
            for (_, second), other in by_pair(theirs).items():
                links = list(self._constants((first, second))) if constants else []
                if self._is_open(first, second):
                    found = found.union(in_relation(every_pair(ours.domain(), other.domain())))
                    continue
                together = self.together((first, second))
                for link in links if together is None else [*links, together]:
                    found = found.union(in_relation(ours.apply_range(link).apply_range(other.reverse())))
        return part_between(found, *pair)

    def _is_open(self, first: str, second: str) -> bool:
        """Whether two tuples are the cells of one parameter, before and after, whose layout is not known."""
        name = second.removeprefix(f"{OLD}in_")
        if (
            name == second
            or name in self.cells
            or all(name != buffer.data.name for buffer in self.rewrite_model.rewrite.old.buffers)
        ):
            return False
        return first == f"{NEW}in_{self.rewrite_model.entry(name).new_data}"

    def _constants(self, pair: Pair) -> list[Link]:
        if all(each.statement(name) is None for each, name in zip(self._sides, pair, strict=True)):
            return []
        return [meeting.region for meeting in self.meetings.between(*pair) if meeting.constant]

    @property
    def _sides(self) -> tuple[Side, Side]:
        return self.meetings.search.new, self.meetings.search.old

    # Downwards: what is asked for

    def _ends(self, name: str) -> bool:
        """Require the final values of a parameter; whether every cell can hold its value."""
        mine, theirs, step = self._final(name)
        self._last[name] = mine, theirs
        if self._ask(mine, theirs, name, step):
            return True
        # A reduction may run in another order, or go on over padding: any update of the cell will do.
        self._last[name] = self.meetings.with_runs(mine), self.meetings.with_runs(theirs)
        return self._ask(*self._last[name], name, step)

    def _final(self, name: str) -> tuple[Relation, Relation, Link | None]:
        entry = self.rewrite_model.entry(name)
        old_data, new_data = (
            self.rewrite_model.memory(self.rewrite_model.old, name),
            self.rewrite_model.memory(self.rewrite_model.new, entry.new_data),
        )
        step = self.cells.get(name)
        if step is not None:
            step = called(step, f"{OLD}out_{name}", f"{NEW}out_{entry.new_data}")
        return self.rewrite_model.after.final(new_data), self.rewrite_model.before.final(old_data), step

    def _ask(self, mine: Relation, theirs: Relation, name: str, step: Link | None) -> bool:
        whole: Points | None = None
        for (_, first), ours in by_pair(mine).items():
            for (_, second), other in by_pair(theirs).items():
                pair = first, second
                together = self.together(pair)
                links = [] if together is None else [together]
                for link in (*links, *self._constants(pair)):
                    asked = link.intersect(every_pair(ours.range(), other.range()))
                    if step is not None:
                        asked = asked.intersect(ours.reverse().apply_range(step.reverse()).apply_range(other))
                    cells = other.apply_range(asked.reverse()).domain()
                    whole = cells if whole is None else whole.union(cells)
                    if link is together:
                        self._add(pair, asked)
        everything = self.rewrite_model.before.cell_set(
            self.rewrite_model.memory(self.rewrite_model.old, name)
        ).set_tuple_name(f"{OLD}out_{name}")
        return whole is not None and bool(everything.is_subset(whole))

    def _add(self, pair: Pair, link: Link) -> None:
        if not link.is_empty():
            known = self._asked.get(pair)
            self._asked[pair] = coalesced(link if known is None else known.union(link))

    def _ask_on(self, pair: Pair) -> None:
        """Require of the operands what is required of a pair."""
        asked, together = self._asked.get(pair), self._together[pair]
        if asked is None or together is None:
            return
        asked = self._in_runs(asked, pair).intersect(together)
        self._asked[pair] = coalesced(asked)
        for meeting in self.meetings.between(*pair):
            link = none_of(asked) if meeting.constant else self._of(meeting, pair, False).intersect(asked)
            if link.is_empty():
                continue
            for operand in meeting.operands:
                self._ask_operand(operand, link, pair)

    def _in_runs(self, asked: Link, pair: Pair) -> Link:
        """A requirement on an update is one on all updates of the same value: which correspond is open, and one program
        may do more.
        """
        mine, theirs = self.meetings.run(pair[0]), self.meetings.run(pair[1])
        if mine is None or theirs is None:
            return asked
        found = part_between(mine.apply_range(in_relation(asked)).apply_range(theirs), *pair)
        return asked if found is None else coalesced(found)

    def _ask_operand(self, operand: Operand, link: Link, pair: Pair) -> None:
        for (_, first), ours in by_pair(operand.mine).items():
            for (_, second), other in by_pair(operand.theirs).items():
                if self._is_open(first, second):
                    self._meet_cells(
                        second.removeprefix(f"{OLD}in_"), operand, other.reverse().apply_range(link.reverse()), ours
                    )
                elif (first, second) in self._together and (first, second) != pair:
                    self._add((first, second), ours.reverse().apply_range(link).apply_range(other))

    def _meet_cells(self, name: str, operand: Operand, instances: Link, accesses: Link) -> None:
        """Two loads access a parameter without a layout; `instances` leads from its old cells to the new instances that
        do.
        """
        if not instances.is_empty():
            self._seen.setdefault(name, {}).setdefault(operand.key, []).append((instances, accesses))
            if operand.load is not None and operand.reader is not None:
                self.spots.setdefault(name, []).append(Spot(instances, operand.reader, operand.load.coordinates))

    def _written_cells(self, name: str) -> None:
        """Cells of a written parameter without a layout that end with the same value."""
        mine, theirs = self._last[name]
        for (_, first), ours in by_pair(mine).items():
            for (_, second), other in by_pair(theirs).items():
                asked = self._asked.get((first, second))
                if asked is None:
                    continue
                instances = other.apply_range(asked.reverse())
                if instances.is_empty():
                    continue
                self._seen.setdefault(name, {}).setdefault("end", []).append((instances, ours.reverse()))
                statement = self.meetings.search.new.statement(first)
                if statement is not None:
                    self.spots.setdefault(name, []).append(Spot(instances, statement, statement.coordinates))


def _same_ends(part: Link, whole: Link) -> bool:
    """Whether a part of a link has the domain and the range of the whole."""
    return bool(whole.domain().is_subset(part.domain()) and whole.range().is_subset(part.range()))
