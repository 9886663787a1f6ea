"""Reductions whose updates the new program does in another order: what may be regrouped, and under which licences.

Regrouped is only what has the form `acc (+) e` with `e` independent of `acc`, and an operator that is associative and commutative
under the licences in force: integers always, `min` and `max` of floats with `nnan nsz`, sums and products of floats with `reassoc`.
Every reader outside the chain then has to see the same owner and the same multiset of contributions. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from layoutproof.ir.expr import Binary, BinaryOp, Var
from layoutproof.verify.flow.agree import Agreement, Regrouped
from layoutproof.verify.flow.theta import Counterpart
from layoutproof.verify.flow.world import World
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.statements import Read, Statement
from layoutproof.verify.values.licences import IEEE, Licence, Licences

# `acc - e` adds the opposite of `e`.
_SUMS = frozenset((BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL))
_EXTREMES = frozenset((BinaryOp.MIN, BinaryOp.MAX))
_BITS = frozenset((BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR))


@dataclass(frozen=True, slots=True)
class Reordered:
    """A regrouped reduction with its operator and what regrouping it takes."""

    chains: Regrouped
    operator: BinaryOp
    licences: Licences


def find_reordered(world: World, agreement: Agreement, allowed: Licences) -> Iterator[Reordered]:
    """The reductions whose accumulator does not find, update by update, what it found before."""
    for data in world.new.cells:
        pairs = [claim for claims in world.matched.values() for claim, _ in claims if claim.new.data == data]
        if not any(_out_of_order(world, agreement, claim) for claim in pairs):
            continue
        found = _chain(world, agreement, pairs, data, allowed)
        if found is not None:
            yield found


def _out_of_order(world: World, agreement: Agreement, claim: Counterpart) -> bool:
    """Whether an update's load of its own accumulator finds another update's result than before."""
    mine, theirs = accumulator(agreement.after, claim.new), accumulator(world.before, claim.old)
    if mine is None or theirs is None:
        return False
    region = world.of_points(claim.new, world.matched_points(claim))
    return not region.outside(agreement.of_reads(claim, mine, theirs, region)).is_empty


def _chain(world: World, agreement: Agreement, pairs: list[Counterpart], data: Var, allowed: Licences) -> Reordered | None:
    operators = {op for claim in pairs if (op := update_operator(agreement.after, claim.new)) is not None}
    for operator in sorted(operators):
        licences = _licences(operator, world.new.dtypes[data].is_float)
        if licences is None or not licences <= allowed:
            continue
        chain = [
            claim
            for claim in pairs
            if update_operator(agreement.after, claim.new) is operator and update_operator(world.before, claim.old) is operator
        ]
        old_data = {claim.old.data for claim in chain}
        if len(old_data) != 1 or not _one_to_one(world, chain):
            continue
        numbers = frozenset(c.new.number for c in chain), frozenset(c.old.number for c in chain)
        return Reordered(Regrouped(data, numbers[1], numbers[0]), operator, licences)
    return None


def _licences(operator: BinaryOp, is_float: bool) -> Licences | None:
    if not is_float:
        return IEEE if operator in _SUMS | _EXTREMES | _BITS else None
    if operator in _SUMS:
        return frozenset((Licence.REASSOC,))
    return frozenset((Licence.NNAN, Licence.NSZ)) if operator in _EXTREMES else None


def _one_to_one(world: World, chain: list[Counterpart]) -> bool:
    """Whether theta takes no two updates to one."""
    steps = world.nothing
    for claim in chain:
        steps = steps.union(world.step(claim))
    return bool(steps.is_injective())


def update_operator(flow: Dataflow, statement: Statement) -> BinaryOp | None:
    """The operator of a statement that updates the cell that it writes, `acc (+) e`; None for any other."""
    match statement.value:
        case Binary(op=op) if accumulator(flow, statement) is not None:
            return op
        case _:
            return None


def accumulator(flow: Dataflow, statement: Statement) -> Read | None:
    """The load of the written cell that is one operand of the value, at the moment of the store."""
    value = statement.value
    if not isinstance(value, Binary):
        return None
    moment = statement.scene.time[:-1]
    for read in statement.reads:
        if read.var not in (value.lhs, value.rhs) or read.data != statement.data or read.anywhere:
            continue
        if read.access.scene.time[: len(moment)] == moment and _same_cell(flow, statement, read):
            return read
    return None


def _same_cell(flow: Dataflow, statement: Statement, read: Read) -> bool:
    own = flow.access(statement).intersect_domain(flow.domain(statement))
    return bool(own.is_subset(flow.access(read, statement)))
