"""Partial results that are added later: `Q[o] += X[o * 8 + i]`, and then `Y += Q[o]`. What `Y` gets by such an update
is what was contributed to `Q[o]`. Part of the trust base.

That holds if `Q[o]` began with a neutral value, and if no contribution is carried twice. The operator has to be
associative and commutative; on floats this takes `reassoc` like any regrouping, and `nsz`, since there are more zeros
to begin with.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.operators import BinaryOp
from layoutproof.verify.flow.copies import copied_reads
from layoutproof.verify.flow.sources import (
    Agreement,
    Carrying,
    Regrouped,
    Reordered,
    Sums,
    accumulator,
    contribution,
    update_operator,
)
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.instance_sets import Relation, only, tuples_of
from layoutproof.verify.program.statement import Statements
from layoutproof.verify.values.fast_math import Licence, Licences
from layoutproof.verify.values.terms import converted_constant


def carrying_updates(
    flow: Dataflow, statements: Statements, matched: frozenset[int], operator: BinaryOp | None = None
) -> Iterator[Carrying]:
    """The updates without a counterpart whose contribution is one load of another memory that is updated, too, or of
    what one store copied from there.
    """
    updated = {s.data for s in statements.statements if update_operator(flow, s) is not None}
    for statement in statements.statements:
        op = update_operator(flow, statement) if statement.number not in matched else None
        if op is None or op is BinaryOp.SUB or (operator is not None and op is not operator):
            continue
        acc = accumulator(flow, statement)
        assert acc is not None
        added = contribution(statement.value, op, acc.var)
        read = next((r for r in statement.reads if r.var == added), None)
        if read is None or read.data == statement.data or read.anywhere:
            continue
        if read.data in updated:
            yield Carrying(statement, read)
            continue
        copies = [(s, r) for s in statements.writers(read.data) for r in copied_reads(s)]
        if len(copies) == 1 and copies[0][1].data in updated - {statement.data}:
            # Where another store wrote last, no copy is found, and the update carries nothing that is known.
            yield Carrying(statement, read, copies[0])


def sums_of(
    flow: Dataflow,
    statements: Statements,
    direct: Mapping[Var, frozenset[int]],
    operator: BinaryOp,
    matched: frozenset[int],
) -> Sums:
    """The accumulators to which the updates in `direct` contribute, by memory, also through partial results."""
    chains, carrying = dict(direct), list[Carrying]()
    todo = list(carrying_updates(flow, statements, matched, operator))
    while True:
        more = [
            each
            for each in todo
            if each.data in chains and statements.dtypes[each.data] == statements.dtypes[each.statement.data]
        ]
        if not more:
            break
        for each in more:
            todo.remove(each)
            carrying.append(each)
            data = each.statement.data
            chains[data] = chains.get(data, frozenset()) | {each.statement.number}
    carried: Relation | None = None
    for each in carrying:
        parts = _parts(flow, statements, each, chains[each.data], operator)
        if parts is None:
            return Sums(direct, (), None)
        carried = parts if carried is None else carried.union(parts)
    if carried is None or not carries_once(carried):
        return Sums(direct, (), None)
    return Sums(chains, tuple(carrying), carried)


def _parts(
    flow: Dataflow, statements: Statements, each: Carrying, chain: frozenset[int], operator: BinaryOp
) -> Relation | None:
    """What an update carries; None if a partial result may begin with something that is not neutral."""
    owners, parts = each.reduced(flow, chain)
    if not only(flow.domain(each.statement)).is_subset(owners.domain()):
        return None
    by_name = {f"{flow.tag}{s.number}": s for s in statements.statements}
    for name, _ in tuples_of(owners.range()):
        start = by_name.get(name)
        if start is None or not is_neutral(operator, start.value):
            return None
    return parts


def carries_once(carried: Relation) -> bool:
    """Whether no contribution is carried by two updates."""
    return bool(carried.is_injective())


def is_neutral(operator: BinaryOp, value: Expr) -> bool:
    """Whether a value is a literal that changes nothing, but for the sign of a zero."""
    number = converted_constant(value)
    if number is None:
        return False
    dtype = value.dtype
    match operator:
        case BinaryOp.ADD | BinaryOp.BITOR | BinaryOp.BITXOR:
            return number == 0
        case BinaryOp.MUL:
            return number == 1
        case BinaryOp.MAX | BinaryOp.MIN:
            largest = operator is BinaryOp.MIN
            if dtype.is_float:
                return number == (math.inf if largest else -math.inf)
            return number == (dtype.max_int if largest else dtype.min_int)
        case BinaryOp.BITAND:
            return number == -1 if dtype.min_int < 0 else number == dtype.max_int
        case _:
            return False


@dataclass(frozen=True, slots=True)
class WithPartials:
    """Regrouped reductions, the ones that go through partial results included, and these in both programs."""

    reordered: tuple[Reordered, ...]
    new: Sums | None = None
    old: Sums | None = None


def with_partials(agreement: Agreement, reordered: Sequence[Reordered], allowed: Licences) -> WithPartials:
    """The reductions with those that they become if partial results are followed to what made them."""
    plain = WithPartials(tuple(reordered))
    operators = {each.operator for each in reordered}
    if len(operators) != 1:
        return plain
    (operator,) = operators
    rewrite_model, after = agreement.rewrite_model, agreement.after
    new_direct: dict[Var, frozenset[int]] = {}
    old_direct: dict[Var, frozenset[int]] = {}
    by_number = {s.number: s for s in rewrite_model.old.statements}
    for each in reordered:
        new_direct[each.chains.data] = new_direct.get(each.chains.data, frozenset()) | each.chains.new_chain
        for number in each.chains.old_chain:
            data = by_number[number].data
            old_direct[data] = old_direct.get(data, frozenset()) | {number}
    new = sums_of(after, rewrite_model.new, new_direct, operator, frozenset(rewrite_model.matched))
    old = sums_of(rewrite_model.before, rewrite_model.old, old_direct, operator, agreement.reached())
    types = {rewrite_model.new.dtypes[data] for data in new.chains} | {
        rewrite_model.old.dtypes[data] for data in old.chains
    }
    if not (new.carrying or old.carrying) or len(types) != 1 or not _is_one_to_one(agreement, reordered):
        return plain
    licences = frozenset(licence for each in reordered for licence in each.licences)
    if next(iter(types)).is_float:
        licences |= {Licence.NSZ}
    if not licences <= allowed:
        return plain
    found = [
        Reordered(Regrouped(data, theirs, mine), operator, licences)
        for data, mine in new.chains.items()
        for theirs in old.chains.values()
    ]
    return WithPartials(tuple(found), new, old)


def _is_one_to_one(agreement: Agreement, reordered: Sequence[Reordered]) -> bool:
    """Whether theta takes no two updates of all these reductions to one."""
    numbers = {number for each in reordered for number in each.chains.new_chain}
    rewrite_model = agreement.rewrite_model
    steps = rewrite_model.nothing
    for number in numbers:
        for claim, _ in rewrite_model.matched.get(number, ()):
            steps = steps.union(rewrite_model.step(claim))
    return bool(steps.is_injective())


def involved(flow: Dataflow, statements: Statements, matched: frozenset[int]) -> frozenset[Var]:
    """The memories of partial results, and those to which they are added."""
    return frozenset(
        data for each in carrying_updates(flow, statements, matched) for data in (each.statement.data, each.data)
    )
