"""Where the values of two programs can be equal, under any layouts: the parts of two statements whose values have one
form, and for each pair of operands its sources in both programs.

This does not depend on layouts, so it is computed once for all choices of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from layoutproof.ir.expr import Var
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
    """A pair of operands. `mine` and `theirs` lead from the instances of either program to where the value was written,
    or to the cell with its initial value; `load` is the new program's load, of the statement `reader`.

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
    """One way in which two statements may hold one value: on pairs of instances in `region`, if all operands are equal.
    If both store the same number (`constant`), the values separate no instances.
    """

    region: Link
    operands: tuple[Operand, ...]
    constant: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """The value of a statement on some of its instances."""

    side: Side
    statement: Statement
    points: Points
    value: Value

    @property
    def load(self) -> Read | None:
        """The load that is the whole value."""
        return self.value.read_of(self.value.expr)

    @property
    def form(self) -> Form:
        return Form(self.statement, self.points)

    def read(self, variable: Var) -> Read:
        return next(read for read in self.statement.reads if read.var == variable)

    def found(self, read: Read) -> Relation:
        """From the instances to the sources of a load."""
        return self.side.sources(self.statement, read).intersect_domain(only(self.points))


def _parts_of(side: Side, form: Form) -> list[_Part]:
    values = side.values(form.statement, form.points)
    return [_Part(side, form.statement, points, value) for points, value in values]


@dataclass(slots=True)
class Meetings:
    """All meetings of two programs, each looked for when it is first asked for."""

    search: Search
    _known: dict[tuple[str, str], list[Meeting]] = field(default_factory=dict)
    _values: dict[tuple[str, int], list[_Part]] = field(default_factory=dict)
    _runs: dict[str, Relation | None] = field(default_factory=dict)

    def between(self, mine: str, theirs: str) -> list[Meeting]:
        """The meetings of two tuples: instances of a statement, or initial cells, but not two cells."""
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
                for part in self._parts(self.search.new, new):
                    for other in self._parts(self.search.old, old):
                        yield from self._of_parts(part, other, _EXPANSIONS)
        elif new is not None:
            cells = self.points(theirs)
            for part in self._parts(self.search.new, new):
                yield from _copied(part, cells)
        else:
            assert old is not None
            cells = self.points(mine)
            for part in self._parts(self.search.old, old):
                yield from _copied_before(cells, part)

    def _of_parts(self, new: _Part, old: _Part, left: int) -> Iterator[Meeting]:
        matcher = Matcher(new.value, old.value, self._compatible(new.statement, old.statement))
        ways = matcher.ways()
        for way in ways:
            meeting = self._meeting(new, old, way)
            if meeting is not None:
                yield meeting
        if ways or (new.load is not None and old.load is not None):
            return
        if new.load is not None:
            yield from _copied(new, old.points)
        elif old.load is not None:
            yield from _copied_before(new.points, old)
        elif left:
            yield from self._expanded(matcher, new, old, left)

    def _expanded(self, matcher: Matcher, new: _Part, old: _Part, left: int) -> Iterator[Meeting]:
        """The meetings of values in which a load is replaced by the value that it finds."""
        for is_new, load in matcher.blocked():
            forms = new.side.unfolded(new.form, load) if is_new else old.side.unfolded(old.form, load)
            for form in forms:
                for mine in _parts_of(new.side, form if is_new else new.form):
                    for theirs in _parts_of(old.side, old.form if is_new else form):
                        yield from self._of_parts(mine, theirs, left - 1)
            if forms:
                return

    def _meeting(self, new: _Part, old: _Part, way: Way) -> Meeting | None:
        region = every_pair(new.points, old.points)
        places = Places(self.search.rewrite_model, self.search.new, self.search.old)
        for first, second in way.indices:
            equal = places.of_indices(new.statement, first, old.statement, second)
            if equal is not None:
                region = region.intersect(equal)
        if region.is_empty():
            return None
        operands = [_operand(new, new.read(mine), old, old.read(theirs)) for mine, theirs in way.loads]
        known = tuple(operand for operand in operands if operand is not None)
        return Meeting(region, known, constant=not (way.loads or way.indices))

    def _parts(self, side: Side, statement: Statement) -> list[_Part]:
        key = side.tag, statement.number
        if key not in self._values:
            self._values[key] = _parts_of(side, Form(statement, side.domain(statement)))
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
        """From each update of a reduction to all updates of the same value, itself included, and perhaps more; None for
        other statements.
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


def _copied(new: _Part, others: Points) -> Iterator[Meeting]:
    """A copy in the new program, beside what it may have copied."""
    if new.load is not None and not new.load.anywhere:
        operand = Operand(new.found(new.load), identity_on(others), new.load, new.statement)
        yield Meeting(every_pair(new.points, others), (operand,))


def _copied_before(points: Points, old: _Part) -> Iterator[Meeting]:
    """A copy in the old program, beside what it may have copied."""
    if old.load is not None and not old.load.anywhere:
        yield Meeting(every_pair(points, old.points), (Operand(identity_on(points), old.found(old.load)),))


def _operand(new: _Part, mine: Read, old: _Part, theirs: Read) -> Operand | None:
    if mine.anywhere or theirs.anywhere:
        return None
    key = old.statement.number, theirs.var.name
    recursive = mine.data == new.statement.data and theirs.data == old.statement.data
    return Operand(new.found(mine), old.found(theirs), mine, new.statement, key, recursive)
