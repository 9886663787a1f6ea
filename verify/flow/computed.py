"""Which values fast-math assumptions speak of: those that the old program computes, not literals or copies that pass
through; and values that are computed once and used in several places, where an operation may not choose anew. Part of
the trust base.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Binary, Broadcast, Cast, Expr, FloatImm, IfThenElseExpr, Select, Var
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import For, Let
from layoutproof.ir.visit import nodes_of, walk
from layoutproof.verify.flow.models import OLD, ProgramModel
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.instance_sets import Points, Region, Relation, Sources, no_points, only, part_of, tuples_of
from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.program.statement import Read, ReadRole, Statement, Statements
from layoutproof.verify.values.fast_math import FastMath
from layoutproof.verify.values.laws import TRANSPARENT
from layoutproof.verify.values.question import ValueAnswer
from layoutproof.verify.values.terms import chooses_zero_sign, constant_value


def chooses_for_several(function: PrimFunc) -> bool:
    """Whether a value with float operations has a name that is used more than once, or in an inner loop."""
    computed: set[Var] = set()
    # Outer names come before inner ones, which may stand for what is made of them.
    for node in nodes_of(function.body, Let):
        if _computes(node.value, computed):
            computed.add(node.var)
            if _is_shared(node):
                return True
    return False


def _computes(value: Expr, computed: Set[Var]) -> bool:
    """Whether an operation on floats stands in a value, by itself or under a name."""
    for part in walk(value):
        if isinstance(part, Var):
            if part in computed:
                return True
        elif isinstance(part, Expr) and part.dtype.is_float and not isinstance(part, BufferLoad | FloatImm):
            return True
    return False


def _is_shared(let: Let) -> bool:
    inside = (loop for loop in nodes_of(let.body, For))
    return sum(part == let.var for part in walk(let.body)) > 1 or any(
        part == let.var for loop in inside for part in walk(loop.body)
    )


def may_have_chosen(answer: ValueAnswer, old: Expr) -> bool:
    """Whether a proof may rest on another sign of a zero within the old value, or on another grouping of it."""
    if FastMath.NSZ in answer.fast_math and set(answer.laws) != {TRANSPARENT}:
        inner = [node for node in walk(old) if node is not old and isinstance(node, Expr) and chooses_zero_sign(node)]
        return bool(inner) or FastMath.REASSOC in answer.fast_math
    return FastMath.REASSOC in answer.fast_math


def passing_on(statements: Statements) -> frozenset[int]:
    """The statements that may store an infinity or NaN that comes from no float operation and no input."""
    found: set[int] = set()
    while True:
        memories = {s.data for s in statements.statements if s.number in found}
        more = {
            s.number
            for s in statements.statements
            if s.value.dtype.is_float and any(_passes(s, e, memories) for e in _ends(s.value))
        }
        if more == found:
            return frozenset(found)
        found = more


def _ends(value: Expr) -> Iterator[Expr]:
    """What a value may be, its choices apart."""
    match value:
        case Select(then=a, otherwise=b) | IfThenElseExpr(then=a, otherwise=b):
            yield from _ends(a)
            yield from _ends(b)
        case Broadcast(value=inner):
            yield from _ends(inner)
        case _:
            yield value


def _passes(statement: Statement, end: Expr, memories: set[Var]) -> bool:
    match end:
        case Binary() | Call() | Cast():
            return False
        case Var():
            return any(read.var == end and read.data in memories for read in statement.reads)
        case _:
            number = constant_value(end)
            return number is None or not math.isfinite(number)


@dataclass(slots=True)
class Computed:
    """The values that reads of one program find, as values of the old one: what a store that theta takes to one of the
    old program wrote (as long as matched stores store what their counterparts do, which is proved apart), and what the
    old program loads, whatever the data. Not what it may leave in place without looking, nor a literal infinity that is
    passed on, nor the results of updates of a reduction that is `regrouped`.
    """

    program_model: ProgramModel
    flow: Dataflow
    regrouped: Sources | None = None
    _stored: Sources | None = None
    _seen: dict[Var, Sources] = field(default_factory=dict)

    def is_computed(self, statement: Statement, read: Read, region: Region) -> bool:
        """Whether all values that a read finds on a region are values of the old program."""
        if read.anywhere:
            return region.is_empty
        # From the cheapest to what takes longest to find: whether it finds what the old program has at all, what stores
        # of it compute, and where it looks.
        name, found = self._found(statement, read, region)
        if not region.outside(part_of(found.domain(), name, region.points)).is_empty:
            return False
        return any(
            region.outside(part_of(found.intersect_range(values(found)).domain(), name, region.points)).is_empty
            for values in (self._of_stores, self._of_the_old_program)
        )

    def where(self, statement: Statement, read: Read, region: Region) -> Points:
        """The part of a region on which what a read finds is a value of the old program."""
        if read.anywhere:
            return region.points.subtract(region.points)
        name, found = self._found(statement, read, region)
        return part_of(found.intersect_range(self._of_the_old_program(found)).domain(), name, region.points)

    def _found(self, statement: Statement, read: Read, region: Region) -> tuple[str, Relation]:
        """The tuple of a statement, and from it to what a read finds on a region, in terms of the old program."""
        name = self.program_model.name(statement)
        flow = self.flow.sources(statement, read).intersect_domain(only(region.named(name)))
        return name, self.program_model.in_old_terms(flow)

    def _of_stores(self, _: Relation) -> Sources:
        """The old instances that compute a value."""
        if self._stored is None:
            rewrite_model = self.program_model.rewrite_model
            stored = no_points(rewrite_model.encoder(()).space.universe())
            for statement in rewrite_model.old.statements:
                if all(read.role is not ReadRole.CURRENT for read in statement.reads):
                    stored = stored.union(only(rewrite_model.before.domain(statement)))
            self._stored = self._without_passed_on(stored)
        return self._stored

    def _of_the_old_program(self, found: Relation) -> Sources:
        """These, and the places (initial cells too) where the old program looks; only places of memories to which
        `found` leads.
        """
        statements, values = self.program_model.rewrite_model.old, self._of_stores(found)
        names = {name for name, _ in tuples_of(found.range())}
        for data in statements.cells:
            if names & {f"{OLD}in_{data.name}", *(f"{OLD}{writer.number}" for writer in statements.writers(data))}:
                values = values.union(self._looked_at(data))
        return values

    def _looked_at(self, data: Var) -> Sources:
        """Where the old program looks in a memory."""
        if data not in self._seen:
            rewrite_model = self.program_model.rewrite_model
            places = no_points(rewrite_model.encoder(()).space.universe())
            for statement in rewrite_model.old.statements:
                for read in statement.reads:
                    if read.data == data and read.sure and not read.anywhere:
                        places = places.union(rewrite_model.before.sources(statement, read).range())
            self._seen[data] = self._without_passed_on(places)
        return self._seen[data]

    def _without_passed_on(self, values: Sources) -> Sources:
        """Values without those that may be a literal infinity or NaN, and those of updates that are regrouped."""
        rewrite_model = self.program_model.rewrite_model
        numbers = passing_on(rewrite_model.old)
        for statement in rewrite_model.old.statements:
            if statement.number in numbers:
                values = values.subtract(only(rewrite_model.before.domain(statement)))
        return coalesced(values if self.regrouped is None else values.subtract(self.regrouped))
