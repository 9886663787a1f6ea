"""Where the values of two programs can meet, whatever the layouts: the parts of two statements whose values have one
form, and for each pair of operands there where either program finds what it holds.

Layouts are not asked about here, so this is worked out once for all choices of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from layoutproof.ir.expr import Expr
from layoutproof.lowering.compare.instance_pairs import Places
from layoutproof.lowering.compare.instance_search import Search
from layoutproof.lowering.compare.program_model import Side
from layoutproof.lowering.compare.value_trees import Compatible, Matcher, Value, Way
from layoutproof.verify.flow.stored_values import Form
from layoutproof.verify.isl.instance_sets import Link, Points, Relation, only
from layoutproof.verify.isl.proposing import by_pair, every_pair, identity_on, in_one_run
from layoutproof.verify.program.statement import Read, Statement

_EXPANSIONS = 16
_AT = "at"


@dataclass(frozen=True, slots=True)
class Operand:
    """Two operands that stand beside each other. `mine` and `theirs` lead from the instances of either program to where
    the value was written, or to the cell that holds it from the start; `load` is what the new program loads there, of
    the statement `reader`.

    `recursive`: both are what the statements themselves stored before.
    """

    mine: Relation
    theirs: Relation
    load: Read | None = None
    reader: Statement | None = None
    key: tuple[int, str] | None = None
    recursive: bool = False


@dataclass(frozen=True, slots=True)
class Meeting:
    """One way in which two statements may hold one value: on pairs of instances in `region`, if all operands are the
    same. Where both store the same number (`constant`), the values tell no instances apart.
    """

    region: Link
    operands: tuple[Operand, ...]
    constant: bool = False


@dataclass(slots=True)
class Meetings:
    """All meetings of two programs, each looked for when it is first asked for."""

    search: Search
    _known: dict[tuple[str, str], list[Meeting]] = field(default_factory=dict)
    _values: dict[tuple[str, int], list[tuple[Points, Value]]] = field(default_factory=dict)
    _runs: dict[str, Relation | None] = field(default_factory=dict)

    def between(self, mine: str, theirs: str) -> list[Meeting]:
        """The meetings of what two tuples stand for: instances of a statement, or cells as they were at the start. Not
        of two cells.
        """
        key = mine, theirs
        if key not in self._known:
            self._known[key] = list(self._meetings(mine, theirs))
        return self._known[key]

    def points(self, name: str) -> Points:
        """All points of a tuple."""
        side = self._side(name)
        statement = side.statement(name)
        if statement is not None:
            return side.domain(statement)
        data = next(data for data in side.statements.cells if f"{side.tag}in_{data.name}" == name)
        return side.flow.cell_set(data)

    def _side(self, name: str) -> Side:
        return self.search.new if name.startswith(self.search.new.tag) else self.search.old

    def _meetings(self, mine: str, theirs: str) -> Iterator[Meeting]:
        new, old = self.search.new.statement(mine), self.search.old.statement(theirs)
        if new is None and old is None:
            raise ValueError(f"{mine} and {theirs} are cells, of which layouts speak")
        if new is not None and old is not None:
            if new.value.dtype.element == old.value.dtype.element:
                yield from self._of_statements(new, old, _EXPANSIONS)
        elif new is not None:
            cells = self.points(theirs)
            for points, value in self._parts(self.search.new, new):
                yield from self._copied(new, value, points, cells)
        else:
            assert old is not None
            cells = self.points(mine)
            for points, value in self._parts(self.search.old, old):
                read = value.read_of(value.expr)
                if read is not None and not read.anywhere:
                    operand = Operand(identity_on(cells), self._found(self.search.old, old, read, points))
                    yield Meeting(every_pair(cells, points), (operand,))

    def _of_statements(self, new: Statement, old: Statement, left: int) -> Iterator[Meeting]:
        for points, value in self._parts(self.search.new, new):
            for others, other in self._parts(self.search.old, old):
                yield from self._of_parts(new, value, points, old, other, others, left)

    def _of_parts(
        self, new: Statement, value: Value, points: Points, old: Statement, other: Value, others: Points, left: int
    ) -> Iterator[Meeting]:
        matcher = Matcher(value, other, self._compatible(new, old))
        ways = matcher.ways()
        for way in ways:
            meeting = self._meeting(new, points, old, others, way)
            if meeting is not None:
                yield meeting
        if ways:
            return
        loads = value.read_of(value.expr), other.read_of(other.expr)
        if loads[0] is not None and loads[1] is not None:
            return
        if loads[0] is not None:
            yield from self._copied(new, value, points, others)
        elif loads[1] is not None:
            if not loads[1].anywhere:
                operand = Operand(identity_on(points), self._found(self.search.old, old, loads[1], others))
                yield Meeting(every_pair(points, others), (operand,))
        elif left:
            yield from self._expanded(matcher, new, points, old, others, left)

    def _copied(self, new: Statement, value: Value, points: Points, others: Points) -> Iterator[Meeting]:
        """A statement that copies, beside what it may have copied."""
        read = value.read_of(value.expr)
        if read is not None and not read.anywhere:
            operand = Operand(self._found(self.search.new, new, read, points), identity_on(others), read, new)
            yield Meeting(every_pair(points, others), (operand,))

    def _expanded(
        self, matcher: Matcher, new: Statement, points: Points, old: Statement, others: Points, left: int
    ) -> Iterator[Meeting]:
        """The meetings of values in which a load is replaced by the value that it finds."""
        for is_new, load in matcher.blocked() or ():
            side, form = (self.search.new, Form(new, points)) if is_new else (self.search.old, Form(old, others))
            more = side.unfolded(form, load)
            for each in more:
                first, second = (each, Form(old, others)) if is_new else (Form(new, points), each)
                for mine, value in self.search.new.values(first.statement, first.points):
                    for theirs, other in self.search.old.values(second.statement, second.points):
                        yield from self._of_parts(
                            first.statement, value, mine, second.statement, other, theirs, left - 1
                        )
            if more:
                return

    def _meeting(self, new: Statement, points: Points, old: Statement, others: Points, way: Way) -> Meeting | None:
        region = every_pair(points, others)
        for first, second in way.indices:
            equal = self._equal(new, first, old, second)
            if equal is not None:
                region = region.intersect(equal)
        if region.is_empty():
            return None
        reads, found = {read.var: read for read in new.reads}, {read.var: read for read in old.reads}
        operands = [self._operand(new, reads[a], points, old, found[b], others) for a, b in way.loads]
        return Meeting(
            region, tuple(operand for operand in operands if operand is not None), not (way.loads or way.indices)
        )

    def _operand(
        self, new: Statement, read: Read, points: Points, old: Statement, other: Read, others: Points
    ) -> Operand | None:
        if read.anywhere or other.anywhere:
            return None
        mine, theirs = self._found(self.search.new, new, read, points), self._found(self.search.old, old, other, others)
        return Operand(
            mine, theirs, read, new, (old.number, other.var.name), read.data == new.data and other.data == old.data
        )

    @staticmethod
    def _found(side: Side, statement: Statement, read: Read, points: Points) -> Relation:
        """Where a load finds what it loads, on some instances."""
        return side.sources(statement, read).intersect_domain(only(points))

    def _equal(self, new: Statement, first: Expr, old: Statement, second: Expr) -> Link | None:
        """The pairs of instances in which two numbers are the same; None where integer sets cannot say them."""
        search = self.search
        return Places(search.rewrite_model, search.new, search.old).of_indices(new, first, old, second)

    def _parts(self, side: Side, statement: Statement) -> list[tuple[Points, Value]]:
        key = side.tag, statement.number
        if key not in self._values:
            self._values[key] = side.values(statement, side.domain(statement))
        return self._values[key]

    def _compatible(self, new: Statement, old: Statement) -> Compatible:
        search = self.search

        def compatible(mine: Read, theirs: Read) -> int | None:
            inputs = mine.data not in search.new.written, theirs.data not in search.old.written
            if all(inputs):
                return 0 if mine.data.name == search.rewrite_model.entry(theirs.data.name).new_data else None
            recursive = mine.data == new.data, theirs.data == old.data
            return int(inputs[0] is not inputs[1]) + int(recursive[0] is not recursive[1])

        return compatible

    # Reductions

    def run(self, name: str) -> Relation | None:
        """From each update of a reduction to all updates of the same value, itself too, and perhaps some more; None for
        what is none.
        """
        if name not in self._runs:
            self._runs[name] = self._run(name)
        return self._runs[name]

    def _run(self, name: str) -> Relation | None:
        side = self._side(name)
        statement = side.statement(name)
        if statement is None:
            return None
        read = next((r for r in statement.reads if r.data == statement.data and not r.anywhere), None)
        if read is None:
            return None
        chain = frozenset(
            s.number for s in side.statements.writers(statement.data) if any(r.data == s.data for r in s.reads)
        )
        earlier = side.flow.reduced(statement, read, chain)[1]
        return in_one_run(earlier.union(identity_on(side.domain(statement))), self.points)

    def with_runs(self, relation: Relation) -> Relation:
        """A relation to last writers, and to all updates that led to them."""
        result = relation
        for _, target in by_pair(relation):
            run = self.run(target)
            if run is not None:
                result = result.union(relation.apply_range(run))
        return result
