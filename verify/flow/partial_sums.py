"""Partial results that are added later: `Q[o] += X[o * 8 + i]`, and then `Y += Q[o]`. What `Y` gets by such an update
is what was contributed to `Q[o]`. Part of the trust base.

That holds if `Q[o]` began with a neutral value (or with one that makes no difference to a maximum that `Y` began with),
and if no contribution is carried twice. The operator has to be associative and commutative; on floats this takes
`reassoc` like any regrouping, and `nsz` if there are more zeros to begin with: -0.0 + 0.0 is 0.0. Sums that begin with
0.0 are never -0.0, so that these need no `nsz`.
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
from layoutproof.verify.program.statement import Statement, Statements
from layoutproof.verify.values.fast_math import FastMath, FastMathSet
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
    keeps_zeros = True
    for each in carrying:
        parts = _parts(flow, statements, each, chains, operator)
        if parts is None:
            return Sums(direct, (), None)
        carried = parts[0] if carried is None else carried.union(parts[0])
        keeps_zeros &= parts[1]
    if carried is None or not carries_once(carried):
        return Sums(direct, (), None)
    return Sums(chains, tuple(carrying), carried, keeps_zeros)


def _parts(
    flow: Dataflow, statements: Statements, each: Carrying, chains: Mapping[Var, frozenset[int]], operator: BinaryOp
) -> tuple[Relation, bool] | None:
    """What an update carries, and whether zeros keep their signs; None if a partial result may begin with something
    that makes a difference.
    """
    owners, parts = each.reduced(flow, chains[each.data])
    starts = _starts(flow, statements, each.statement, owners)
    if starts is None:
        return None
    neutral = all(is_neutral(operator, start) for start in starts)
    if neutral and all(_keeps_zeros(operator, start, None) for start in starts):
        return parts, True
    acc = accumulator(flow, each.statement)
    assert acc is not None
    own, _ = flow.reduced(each.statement, acc, chains[each.statement.data])
    firsts = _starts(flow, statements, each.statement, own)
    if firsts is None:
        return (parts, False) if neutral else None
    pairs = [(start, first) for start in starts for first in firsts]
    if not all(is_neutral(operator, start) or is_absorbed(operator, start, first) for start, first in pairs):
        return None
    return parts, all(_keeps_zeros(operator, *pair) for pair in pairs)


def _starts(flow: Dataflow, statements: Statements, statement: Statement, owners: Relation) -> tuple[Expr, ...] | None:
    """What the accumulators that the instances of a statement find began with; None where that is not all stored."""
    if not only(flow.domain(statement)).is_subset(owners.domain()):
        return None
    by_name = {f"{flow.tag}{s.number}": s for s in statements.statements}
    starts = [by_name.get(name) for name, _ in tuples_of(owners.range())]
    found = tuple(start.value for start in starts if start is not None)
    return found if len(found) == len(starts) else None


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


def is_absorbed(operator: BinaryOp, value: Expr, first: Expr) -> bool:
    """Whether a literal changes nothing of what began with another one: a maximum is at least what it began with."""
    number, begun = converted_constant(value), converted_constant(first)
    if number is None or begun is None or operator not in (BinaryOp.MAX, BinaryOp.MIN):
        return False
    return begun >= number if operator is BinaryOp.MAX else begun <= number  # false of NaN


def _keeps_zeros(operator: BinaryOp, value: Expr, first: Expr | None) -> bool:
    """Whether a neutral literal, joined to what began with `first`, changes no sign of a zero, either."""
    if not value.dtype.is_float or operator is BinaryOp.MUL:
        return True
    numbers = [converted_constant(e) for e in (value, first) if e is not None]
    if operator is not BinaryOp.ADD or any(number != 0 for number in numbers):
        return False
    signs = [math.copysign(1, float(number)) for number in numbers if number is not None]
    return signs[0] < 0 or (len(signs) == 2 and signs[1] > 0)


@dataclass(frozen=True, slots=True)
class WithPartials:
    """Regrouped reductions, the ones that go through partial results included, and these in both programs."""

    reordered: tuple[Reordered, ...]
    new: Sums | None = None
    old: Sums | None = None


def with_partials(agreement: Agreement, reordered: Sequence[Reordered], allowed: FastMathSet) -> WithPartials:
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
    fast_math = frozenset(flag for each in reordered for flag in each.fast_math)
    if next(iter(types)).is_float and not (new.keeps_zeros and old.keeps_zeros):
        fast_math |= {FastMath.NSZ}
    if not fast_math <= allowed:
        return plain
    found = [
        Reordered(Regrouped(data, theirs, mine), operator, fast_math)
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
