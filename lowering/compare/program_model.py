"""One of the two programs in a search for a witness: its statements, their values, and the sources of their loads; and
the failure of a search for people, with the two statements that it had reached and the reason.

A statement's value may be unfolded, by the checker's means: a load of what one statement stored is replaced by that
statement's value, whose loads become loads of the reader. The result is a form of the statement, on some instances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from layoutproof.ir.diagnostic import Span
from layoutproof.ir.expr import TRUE, Compare, IfThenElseExpr, Select, Var
from layoutproof.ir.stmt import BufferStore
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import walk
from layoutproof.lowering.compare.comparison import Furthest
from layoutproof.lowering.compare.value_trees import Value
from layoutproof.verify.flow.copies import copied_reads, resolved
from layoutproof.verify.flow.models import NEW, OLD, RewriteModel
from layoutproof.verify.flow.partial_sums import carrying_updates
from layoutproof.verify.flow.sources import (
    Carrying,
    accumulator,
    contribution,
    update_operator,
)
from layoutproof.verify.flow.stored_values import Form, decided, unfolded
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.instance_sets import Link, Points, Region, Relation, no_points, only
from layoutproof.verify.isl.proposing import (
    by_pair,
    condition_on,
    every_pair,
    functions_of,
    in_relation,
    read_as_condition,
)
from layoutproof.verify.isl.space import BudgetExceeded
from layoutproof.verify.program.statement import NotModelled, Read, ReadRole, Statement, Statements
from layoutproof.verify.values.terms import converted_constant

# The longest texts of values in messages.
_SHOWN = 70


@dataclass(slots=True)
class Side:
    """A program of the comparison; `tag` starts the names of its tuples, `label` names it to people."""

    rewrite_model: RewriteModel
    flow: Dataflow
    statements: Statements
    tag: str
    label: str
    by_number: dict[int, Statement] = field(init=False)
    written: frozenset[Var] = field(init=False)
    _chains: dict[Var, frozenset[int]] = field(default_factory=dict)
    _carrying: dict[int, Carrying] | None = None

    def __post_init__(self) -> None:
        self.by_number = {statement.number: statement for statement in self.statements.statements}
        self.written = frozenset(statement.data for statement in self.statements.statements)

    # Statements and tuples

    def name(self, statement: Statement) -> str:
        """The tuple name of a statement's instances."""
        return f"{self.tag}{statement.number}"

    def statement(self, tuple_name: str) -> Statement | None:
        """The statement whose instances have this tuple name; None for the cells of a memory before the program."""
        number = tuple_name.removeprefix(self.tag)
        return self.by_number.get(int(number)) if number.isdigit() else None

    def domain(self, statement: Statement) -> Points:
        """All instances of a statement."""
        return self.flow.domain(statement)

    def access(self, statement: Statement, read: Read | None = None) -> Link:
        """Instance -> cell that a statement writes, or that one of its reads accesses."""
        return self.flow.access(statement) if read is None else self.flow.access(read, statement)

    def sources(self, statement: Statement, read: Read) -> Relation:
        """Instance -> the last writer of a read, or the cell with its initial value."""
        return self.flow.sources(statement, read)

    def resolved(self, found: Relation) -> Relation:
        """Sources with copies replaced by what they copied."""
        return resolved(self.flow, self.statements, found, frozenset())

    # Values

    def values(self, statement: Statement, points: Points) -> list[tuple[Points, Value]]:
        """What a statement stores on some of its instances, part by part: conditions on indices are decided on each."""
        if not any(isinstance(node, Select | IfThenElseExpr | Compare) for node in walk(statement.value)):
            return [(points, Value(statement.value, statement.reads))]
        region = Region(
            self.rewrite_model.encoder_of(statement.dims),
            self.rewrite_model.encoder_of(statement.dims).space.universe(),
        )
        loads = frozenset(read.var for read in statement.reads)
        return [
            (part.named(self.name(statement)), Value(value, statement.reads))
            for part, (value,) in decided(region.within(points), loads, statement.value)
        ]

    def is_copy(self, statement: Statement) -> bool:
        """Whether a statement's value is one load."""
        return isinstance(statement.value, Var)

    def is_recursive(self, statement: Statement) -> bool:
        """Whether a statement reads the memory that it writes."""
        return any(read.data == statement.data for read in statement.reads)

    def chain(self, data: Var) -> frozenset[int]:
        """The numbers of the statements that update a memory: what they store depends on what is there."""
        known = self._chains.get(data)
        if known is None:
            found = (s.number for s in self.statements.writers(data) if self.is_recursive(s))
            known = self._chains[data] = frozenset(found)
        return known

    def carrying(self, statement: Statement) -> Carrying | None:
        """The update that a statement is, if it adds a partial result."""
        if self._carrying is None:
            found = carrying_updates(self.flow, self.statements, frozenset())
            self._carrying = {each.statement.number: each for each in found if self._adds_up(each)}
        return self._carrying.get(statement.number)

    def stages(self, statement: Statement, within: frozenset[int] = frozenset()) -> int:
        """How many partial results stand between an update and what is summed up: 0 if it adds none."""
        each = self.carrying(statement)
        if each is None or statement.number in within:
            return 0
        within |= {statement.number}
        return 1 + max(self.stages(self.by_number[number], within) for number in self.chain(each.data))

    def last_contributions(self, each: Carrying) -> Relation:
        """From updates that add partial results to the last contribution that each adds; if to its partial result
        nothing was contributed, to the last one of the updates before it.
        """
        parts = self._parts(each)
        last = parts.intersect(each.sources(self.flow))
        last = last.union(parts.subtract_domain(last.domain()).lexmax())
        empty = only(self.domain(each.statement)).subtract(last.domain())
        acc = accumulator(self.flow, each.statement)
        if empty.is_empty() or acc is None:
            return last
        _, before = self.flow.reduced(each.statement, acc, self.chain(each.statement.data))
        return last.union(before.intersect_domain(empty).intersect_range(last.domain()).lexmax().apply_range(last))

    def _parts(self, each: Carrying) -> Relation:
        """From updates that add partial results to the updates that contributed something to them."""
        _, parts = each.reduced(self.flow, self.chain(each.data))
        for number in self.chain(each.data):
            inner = self.carrying(self.by_number[number])
            if inner is not None and self.stages(each.statement) > self.stages(inner.statement):
                nothing = only(self.domain(inner.statement)).subtract(self._parts(inner).domain())
                parts = parts.subtract_range(nothing)
        return parts

    def adds_a_temporary(self, statement: Statement) -> bool:
        """Whether a statement updates what it writes by one load of another memory that the program writes."""
        operator, acc = update_operator(self.flow, statement), accumulator(self.flow, statement)
        added = contribution(statement.value, operator, acc.var) if operator is not None and acc is not None else None
        return any(r.var == added and r.data in self.written and r.data != statement.data for r in statement.reads)

    def _adds_up(self, each: Carrying) -> bool:
        """Whether what is added was stored by updates with the same operator, at least in part."""
        operator = update_operator(self.flow, each.statement)
        found = (self.statement(name) for _, name in by_pair(each.sources(self.flow)))
        sources = [source for source in found if source is not None]
        updates = [source for source in sources if update_operator(self.flow, source) is operator]
        return bool(updates) and all(s in updates or converted_constant(s.value) is not None for s in sources)

    def through(self, statement: Statement, link: Link, inward: bool) -> Relation | None:
        """A link with a copying statement replaced by what it copied; None if it copies nothing on it. `inward`: the
        link starts at the statement. Instances that copy nothing stay.
        """
        return self._past(statement, list(copied_reads(statement)), link, inward)

    def past(self, statement: Statement, link: Link, inward: bool) -> Relation | None:
        """The same for a store under a condition that integer sets cannot say: as if it left what was there."""
        return self._past(statement, [read for read in statement.reads if read.role is ReadRole.CURRENT], link, inward)

    def _past(self, statement: Statement, reads: Sequence[Read], link: Link, inward: bool) -> Relation | None:
        result: Relation | None = None
        left = link
        for read in reads:
            if read.anywhere:
                continue
            source = self.sources(statement, read)
            here = only(link.domain() if inward else link.range()).intersect(source.domain())
            if here.is_empty():
                continue
            part = source.reverse().apply_range(in_relation(link)) if inward else in_relation(link).apply_range(source)
            result = part if result is None else result.union(part)
            rest = in_relation(left)
            rest = rest.subtract_domain(here) if inward else rest.subtract_range(here)
            left = next(iter(by_pair(rest).values()), left.subtract(left))
        if result is None:
            return None
        return result if left.is_empty() else result.union(in_relation(left))

    # Expansion

    def whole(self, statement: Statement) -> Form:
        """A statement without replaced loads, on all its instances."""
        return Form(statement, self.domain(statement))

    def unfolded(self, form: Form, load: Var) -> list[Form]:
        """The form with a load replaced by the values of its sources, on the parts where these are one statement's."""
        read = next((read for read in form.statement.reads if read.var == load), None)
        if read is None:
            return []
        found = list(unfolded(self.flow, form.statement, read, form.points, no_points(form.points)))
        return [Form(each.statement, each.points.set_tuple_name(self.name(form.statement))) for each in found]

    # For people

    def told(self, statement: Statement) -> str:
        """A statement for a message: the store, its line if that is known, and its program."""
        node = statement.access.node
        line = self.line(statement)
        value = expr_text(node.value if isinstance(node, BufferStore) else statement.value, Style.PLAIN)
        shown = value if len(value) <= _SHOWN else value[: _SHOWN - 3] + "..."
        at = f"line {line} of {self.label}" if line is not None else f"store {statement.number} of {self.label}"
        return f"`{statement.access.text} = {shown}` ({at})"

    @staticmethod
    def line(statement: Statement) -> int | None:
        """The line of a store in its source, from 1; None for a program that was not read from text."""
        span: Span | None = statement.access.node.span
        return span.line if span is not None else None


def starts_of(new_side: Side, new: Statement, old_side: Side, old: Statement, relation: Relation) -> Relation:
    """What the accumulators of related updates began with."""
    mine, theirs = accumulator(new_side.flow, new), accumulator(old_side.flow, old)
    if mine is None or theirs is None:
        return new_side.rewrite_model.nothing
    first = new_side.flow.reduced(new, mine, new_side.chain(new.data))[0]
    second = old_side.flow.reduced(old, theirs, old_side.chain(old.data))[0]
    return first.reverse().apply_range(relation).apply_range(second)


# The longest text of a relation in a message.
_LONGEST = 400


def told_relation(rewrite_model: RewriteModel, new: Statement, old: Statement, link: Link) -> str:
    """The pairs of instances of two statements: as functions of the new loops if they are, else as a condition on both
    loops.
    """
    text = (
        _as_functions(rewrite_model, new, link)
        if link.is_single_valued()
        else _as_condition(rewrite_model, new, old, link)
    )
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _as_functions(rewrite_model: RewriteModel, new: Statement, link: Link) -> str:
    space = rewrite_model.encoder_of(new.dims).space
    names = {dim.var.name: dim.var for dim in new.dims}
    head = f"[{', '.join(dim.var.name for dim in new.dims)}]"
    whole = rewrite_model.after.domain(new)
    told: list[str] = []
    for piece in functions_of(link, space, names):
        outputs = ", ".join(expr_text(each, Style.PLAIN) for each in piece.outputs)
        where = condition_on(piece.where, whole, space, names)
        told.append(f"{head} -> [{outputs}]" + (f" where {expr_text(where, Style.PLAIN)}" if where is not None else ""))
    return "; ".join(told)


def _as_condition(rewrite_model: RewriteModel, new: Statement, old: Statement, link: Link) -> str:
    mine = [dim.var.name for dim in new.dims]
    theirs = [_fresh(dim.var.name, mine) for dim in old.dims]
    among = every_pair(rewrite_model.after.domain(new), rewrite_model.before.domain(old))
    within = read_as_condition(link, among, [*mine, *theirs], rewrite_model.workspace.params)
    head = f"[{', '.join(mine)}] -> [{', '.join(theirs)}]"
    return head if within == TRUE else f"{head} where {expr_text(within, Style.PLAIN)}"


def _fresh(name: str, taken: list[str]) -> str:
    return f"{name}_before" if name in taken else name


@dataclass(frozen=True, slots=True)
class Cause:
    """Why two places are to hold one value: `why` in words; if two matched loads find them, the new one's text and both
    readers.
    """

    why: str
    operand: str | None = None
    new: Statement | None = None
    old: Statement | None = None


class Stuck(Exception):
    """The end of a search: at these two statements, if there are any, whose instances `link` were to hold one value.
    `matched` new stores had counterparts by then.
    """

    def __init__(
        self, reason: str, new: Statement | None, old: Statement | None, link: Link, cause: Cause, matched: int
    ) -> None:
        super().__init__(reason)
        self.reason, self.new, self.old, self.link, self.cause, self.matched = reason, new, old, link, cause, matched


@dataclass(slots=True)
class Endings:
    """Makes the messages of one search; `theta` has what it found so far."""

    rewrite_model: RewriteModel
    new: Side
    old: Side
    theta: Mapping[tuple[int, int], Link]

    def of(self, new: Statement, old: Statement, reason: str, link: Link, cause: Cause) -> Stuck:
        """The end at two statements that were looked at."""
        return self.at(new, old, f"{self.new.told(new)} against {self.old.told(old)}: {reason}", link, cause)

    def of_forms(
        self, new: Statement | None, old: Statement | None, mine: str, theirs: str, link: Link, cause: Cause
    ) -> Stuck:
        """The end at two places that should hold one value, and whose values have nothing in common."""
        first = (
            self.new.told(new)
            if new is not None
            else f"what {self._buffer(mine.removeprefix(f'{NEW}in_'))} holds at the start"
        )
        second = (
            self.old.told(old)
            if old is not None
            else f"what {self._buffer(theirs.removeprefix(f'{OLD}in_'))} holds at the start"
        )
        if new is not None and old is not None:
            return self.at(new, old, f"{first} and {second} compute values of different forms", link, cause)
        return self.at(new, old, f"the program after has {first} there, the one before {second}", link, cause)

    def of_cells(self, mine: str, theirs: str, link: Link, cause: Cause) -> Stuck:
        """The end at cells of parameters, as they were at the start, that are not those of the layout."""
        said = (
            f"a cell of {self._buffer(mine)} in the program after is not where the one of {self._buffer(theirs)} went"
        )
        return self.at(None, None, said, link, cause)

    def _buffer(self, data: str) -> str:
        """The name of the buffer whose memory has a name; the memory's where no parameter has it."""
        return next(
            (buffer.name for buffer in self.rewrite_model.rewrite.old.buffers if buffer.data.name == data), data
        )

    def at(self, new: Statement | None, old: Statement | None, reason: str, link: Link, cause: Cause) -> Stuck:
        """The end of the search, at these two statements, if there are any."""
        return Stuck(f"{cause.why}: {reason}", new, old, link, cause, len({number for number, _ in self.theta}))

    def told(self, end: Stuck) -> Furthest:
        """An end for a report. An initial value has no line; the load that finds it has one."""
        new = end.new if end.new is not None else end.cause.new
        old = end.old if end.old is not None else end.cause.old
        return Furthest(
            end.reason,
            new.number if new is not None else None,
            old.number if old is not None else None,
            self.new.line(new) if new is not None else None,
            self.old.line(old) if old is not None else None,
            end.cause.operand,
            self._relation(end.new, end.old, end.link) if end.new is not None and end.old is not None else None,
            end.matched,
        )

    def _relation(self, new: Statement, old: Statement, link: Link) -> str | None:
        """A relation as text; None if isl does not find one, or not within what is left of the budget."""
        try:
            with self.rewrite_model.workspace.limited():
                return told_relation(self.rewrite_model, new, old, link)
        except (BudgetExceeded, NotModelled):
            return None
