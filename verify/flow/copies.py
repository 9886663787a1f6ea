"""Copies, which store what one load finds: from a reader through copies to what was copied, and sums that are copied
before they are read. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from layoutproof.ir.expr import Expr, IfThenElseExpr, Var
from layoutproof.verify.isl.dataflow import Dataflow, Reduced
from layoutproof.verify.isl.instance_sets import Relation, no_points, no_relation
from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.program.statement import Read, Statement, Statements

# A memory, and by the updates of a sum in it: from readers to what it began with, and to its contributions.
SumFound: TypeAlias = "tuple[Var, Callable[[frozenset[int]], Reduced]]"

_ROUNDS = 16


def resolved(flow: Dataflow, statements: Statements, found: Relation, except_of: frozenset[str]) -> Relation:
    """The relation with copies replaced by their sources, a few times; not copies of memories in `except_of`."""
    copies = [(s, read) for s in statements.statements for read in copied_reads(s) if read.data.name not in except_of]
    if not copies:
        return found
    step, places = no_relation(flow.domain(copies[0][0])), no_points(flow.domain(copies[0][0]))
    for statement, read in copies:
        source = flow.sources(statement, read)
        step, places = step.union(source), places.union(source.domain())
    current = found
    for _ in range(_ROUNDS):
        moved = current.intersect_range(places)
        if moved.is_empty():
            break
        current = coalesced(current.subtract_range(places).union(moved.apply_range(step)))
    return current


def copied_reads(statement: Statement) -> Iterator[Read]:
    """The loads that are all that a statement stores: its value, or one side of a lazy choice on loops."""
    if statement.scatter:
        return
    final_states = list(_lazy_ends(statement.value))
    # A load on a side of a choice on data is not sure to happen; one under a choice on the loops has the condition
    # among its guards.
    yield from (
        r for r in statement.reads if r.var in final_states and not r.anywhere and (r.sure or r.var == statement.value)
    )


def _lazy_ends(value: Expr) -> Iterator[Expr]:
    if isinstance(value, IfThenElseExpr):
        yield from _lazy_ends(value.then)
        yield from _lazy_ends(value.otherwise)
    else:
        yield value


def sums_found(
    flow: Dataflow, data: Var, found: Relation, directly: Callable[[frozenset[int]], Reduced]
) -> list[SumFound]:
    """What readers of a memory may find of a sum: `found` leads from each to the last writer, `directly` to what was
    contributed in the memory itself. A copy of a sum holds what the copy's load found, bit for bit.
    """
    result = [(data, directly)]
    for statement in flow.statements.writers(data):
        for read in copied_reads(statement):
            if read.data != data:
                result.append((read.data, _followed(flow, found, statement, read)))
    return result


def stepped(step: Relation | None, reduced: Reduced) -> Reduced:
    return reduced if step is None else (step.apply_range(reduced[0]), step.apply_range(reduced[1]))


def _followed(flow: Dataflow, found: Relation, copy: Statement, read: Read) -> Callable[[frozenset[int]], Reduced]:
    """The owner and the contributions of a sum that readers find through a copy, by its chain."""
    return lambda chain: stepped(found, flow.reduced(copy, read, chain))


def representatives(flow: Dataflow, statement: Statement) -> dict[Var, Var]:
    """For each load of a statement, the first one that finds the same value wherever both happen."""
    found: dict[Var, Var] = {}
    groups: list[list[Read]] = []
    for read in statement.reads:
        # Loads that never happen together find the same, so each of a group has to be asked.
        group = next((g for g in groups if all(_find_the_same(flow, statement, each, read) for each in g)), None)
        if group is None:
            groups.append(group := [])
        group.append(read)
        found[read.var] = group[0].var
    return found


def _find_the_same(flow: Dataflow, statement: Statement, first: Read, second: Read) -> bool:
    if first.data != second.data or first.var.dtype != second.var.dtype:
        return False
    # Loads in the place of others may say one cell in two ways.
    if first.coordinates != second.coordinates and not (
        flow.is_carried(statement, first) or flow.is_carried(statement, second)
    ):
        return False
    if first.anywhere or second.anywhere:
        return False
    one, other = flow.sources(statement, first), flow.sources(statement, second)
    return bool(one.intersect_domain(other.domain()).is_equal(other.intersect_domain(one.domain())))
