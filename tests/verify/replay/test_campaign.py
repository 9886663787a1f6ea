"""Steps that are right are never refuted, and nearly every mutant of a program is, over many random programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from tests.lowering.small_operators import NAMES, random_map, small
from tests.random.objects import RandomProgram
from tests.shares import one_in

from layoutproof.ir.buffer import Buffer, BufferRegion
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Binary, Compare, FloatImm, IntImm
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.node import Node
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite, Witness
from layoutproof.ir.stmt import NOTHING, Block, BufferStore, IfThenElse, Seq, Stmt, seq
from layoutproof.ir.visit import children, map_children, walk
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering.layout.transform_layout import relay
from layoutproof.lowering.loops.tiling import Split
from layoutproof.lowering.passes.find import all_buffers
from layoutproof.lowering.schedule.schedule import LOWERING
from layoutproof.verify.replay.refute import Budget, find_counterexample

QUICK = Budget(instances=400_000, runs=25)


def a_program(seed: int) -> PrimFunc:
    """A small operator, or a random program that mostly does not fault."""
    rng = Random(seed)
    if seed % 2 == 0:
        return small(rng.choice(NAMES))
    return RandomProgram(seed, faults=False, undef=rng.random() < 0.5, shared=rng.random() < 0.5).function()


def steps_of(seed: int) -> Iterator[Rewrite]:
    """What passes make of a program, one after the other: buffers re-laid, a loop split, everything lowered."""
    rng, func = Random(seed * 7 + 1), a_program(seed)
    proposals = []
    for _ in range(rng.randint(1, 2)):
        buffers = [b for b in all_buffers(func) if b.rank >= 1 and not b.strides]
        buffer = rng.choice(buffers)
        pad = rng.choice([None, "T.undef()", 2.5 if buffer.dtype.is_float else 3, 0.0 if buffer.dtype.is_float else 0])
        proposals.append((buffer.name, random_map(rng, buffer.rank), pad))
    for name, index_map, pad in proposals:
        buffer = next(b for b in all_buffers(func) if b.name == name)
        try:
            step = relay(func, buffer, parse_index_map(index_map), pad)
        except LayoutproofError:
            continue
        yield step
        func = step.new
    blocks = [node.name for node in walk(func.body) if isinstance(node, Block) and node.iter_vars]
    passes = [Split(rng.choice(blocks), 0, (None, rng.choice([2, 3, 4])))] if blocks else []
    for each in (*passes, *LOWERING):
        try:
            step = each.propose(func)
        except LayoutproofError:
            continue
        yield step
        func = step.new


def assert_none_is_refuted(seeds: range) -> int:
    """No step of these programs has a counterexample; how many steps there were."""
    count = 0
    for seed in seeds:
        for step in steps_of(seed):
            if step.new != step.old and not check_wellformed(step.new):
                count += 1
                found = find_counterexample(step, budget=QUICK)
                assert found is None, (seed, found.text())
    return count


@one_in(10)
def test_right_steps_are_not_refuted() -> None:
    """A few programs through layouts, splits and lowering."""
    assert assert_none_is_refuted(range(5)) > 15


@pytest.mark.campaign
def test_two_thousand_right_steps_are_not_refuted() -> None:
    """Many programs through layouts, splits and lowering."""
    assert assert_none_is_refuted(range(5, 500)) > 2_000


def changed(node: Node, rng: Random) -> Node | None:
    """A node that is wrong in its place, where there is one that is likely to show."""
    others = {
        CompareOp.LT: CompareOp.LE,
        CompareOp.LE: CompareOp.LT,
        CompareOp.GE: CompareOp.GT,
        CompareOp.GT: CompareOp.GE,
    }
    match node:
        case Compare(op=op) if op in others:
            return replace(node, op=others[op])
        case IntImm(value=value, dtype=dtype) if dtype.is_integer and value < dtype.max_int:
            return replace(node, value=value + 1)
        case FloatImm(value=value):
            return replace(node, value=-1.0 if value != -1.0 else 2.0)
        case Binary(op=BinaryOp.ADD):
            return replace(node, op=BinaryOp.SUB)
        case IfThenElse(then=then):
            return then
        case BufferStore():
            return NOTHING
        case Seq(body=body) if len(body) == 2:
            return replace(node, body=(body[1], body[0]))
        case Block(init=init) if init is not None:
            return replace(node, init=None)
        case _:
            return None


def mutants(func: PrimFunc, rng: Random, count: int) -> Iterator[PrimFunc]:
    """Programs that differ from `func` in one node."""
    nodes: list[Node] = []

    def collect(node: Node) -> None:
        if not isinstance(node, Buffer | BufferRegion | Assume):
            nodes.append(node)
            for child in children(node):
                collect(child)

    collect(func.body)
    for _ in range(count):
        target = rng.choice(nodes)
        wrong = changed(target, rng)
        if wrong is None:
            continue
        try:
            body = _with(func.body, target, wrong)
        except (TypeError, ValueError):
            continue
        assert isinstance(body, Stmt)
        mutant = func.with_body(body)
        if mutant != func and not check_wellformed(mutant):
            yield mutant


def _with(node: Node, target: Node, wrong: Node) -> Node:
    if isinstance(node, Buffer | BufferRegion | Assume):
        return node
    if node is target:
        return wrong
    if isinstance(node, Seq):
        return seq(*(s for s in (_with(part, target, wrong) for part in node.body) if isinstance(s, Stmt)))
    return map_children(node, lambda child: _with(child, target, wrong))


@one_in(9)
def test_mutants_of_operators_are_refuted() -> None:
    """Of one-node mutants of operators whose code is all alive, most are refuted; no mutant is missed that a longer
    search finds.
    """
    refuted = missed = total = 0
    for name in ("row_sum", "max_axis1", "bias_add", "softmax", "relu_nhwc", "sym_row_sum", "pad"):
        func = small(name)
        for mutant in mutants(func, Random(name), 20):
            total += 1
            rewrite = Rewrite(func, mutant, Witness(()))
            if find_counterexample(rewrite, budget=QUICK) is not None:
                refuted += 1
            elif find_counterexample(rewrite, budget=Budget(instances=4_000_000, runs=400)) is not None:
                missed += 1
    assert total > 30 and missed <= 1
    assert refuted > 0.7 * total
