"""What is kept on the nodes of a program is what a walk over them finds, in programs that share statements, too."""

from __future__ import annotations

from random import Random

import pytest
from tests.random.syntax import RandomProgram

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import Cast
from layoutproof.ir.node import FloatToInteger
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, For, ForKind, Seq, ThreadLoop, seq
from layoutproof.ir.visit import buffers_in, kinds_in, walk
from layoutproof.lowering.passes.find import blocks_in, parts_with


def check(func: PrimFunc) -> None:
    """All that is kept, against a walk."""
    nodes = list(walk(func.body))
    assert buffers_in(func.body) == tuple(dict.fromkeys(n for n in nodes if isinstance(n, Buffer)))
    blocks = [n for n in nodes if isinstance(n, Block)]
    found = blocks_in(func.body)
    assert len(found) == len(blocks) and all(a is b for a, b in zip(found, blocks, strict=True))
    kinds: set[type] = set(map(type, nodes))
    if any(isinstance(n, For) and n.kind is ForKind.THREAD_BINDING for n in nodes):
        kinds.add(ThreadLoop)
    if any(isinstance(n, Cast) and n.dtype.is_integer and n.value.dtype.is_float and n.dtype.lanes == 1 for n in nodes):
        kinds.add(FloatToInteger)
    assert kinds_in(func.body) == kinds
    for sequence in (n for n in nodes if isinstance(n, Seq)):
        for block in blocks[:20]:
            assert parts_with(sequence, block) == [p for p in sequence.body if any(n is block for n in walk(p))]


@pytest.mark.parametrize("seed", range(40))
def test_what_is_kept_is_what_a_walk_finds(seed: int) -> None:
    """Of a random program, and of one in which its statements stand among those of another."""
    rng = Random(seed)
    first, second = (RandomProgram(rng).function(depth=3) for _ in range(2))
    check(first)
    check(second)
    both = seq(first.body, second.body, first.body)
    parts = list(both.body) if isinstance(both, Seq) else [both]
    rng.shuffle(parts)
    check(first.with_body(seq(*parts, second.body)))
    check(first.with_body(seq(*parts[1:], first.body)))


def test_the_marks_occur() -> None:
    """Random programs have thread loops and casts of floats to integers, and some have none."""
    kinds = [kinds_in(RandomProgram(Random(seed)).function(depth=3).body) for seed in range(40)]
    for mark in (ThreadLoop, FloatToInteger):
        assert 0 < sum(mark in each for each in kinds) < len(kinds)
