"""Folds that shapes allow and maps or values do not: claimed outright, each is refuted by an input, or proved where it
is right.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.graph.nets import NCHW4C
from tests.shares import one_in

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Value
from layoutproof.graph.operators.copies import prove_chains
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status

Make = Callable[[GraphBuilder, Value], Value]
TURN = "lambda i, j, k: [j, k, i]"
SHIFT = "lambda i: [(i + 3) % 8]"
SWAP = "lambda i, j: [j, i]"
BACK = "lambda n, o, h, w, i: [n, o*4 + i, h, w]"
WRONG_BACK = "lambda n, o, h, w, i: [n, i*2 + o, h, w]"
SWIZZLE = "lambda i, j: [i, i ^ j]"

# Chains that begin and end with one shape, and whether they leave every element where it was.
CHAINS: dict[str, tuple[Make, tuple[int, ...], Status]] = {
    "two turns of a cube": (
        lambda g, x: g.layout_transform(g.layout_transform(x, TURN), TURN),
        (4, 4, 4),
        Status.REFUTED,
    ),
    "three turns of a cube": (
        lambda g, x: g.layout_transform(g.layout_transform(g.layout_transform(x, TURN), TURN), TURN),
        (4, 4, 4),
        Status.PROVED,
    ),
    "two shifts by 3 of 8": (
        lambda g, x: g.layout_transform(g.layout_transform(x, SHIFT), SHIFT),
        (8,),
        Status.REFUTED,
    ),
    "shifts by 3 and 5 of 8": (
        lambda g, x: g.layout_transform(g.layout_transform(x, SHIFT), "lambda i: [(i + 5) % 8]"),
        (8,),
        Status.PROVED,
    ),
    "blocks of channels, and back by another order": (
        lambda g, x: g.layout_transform(g.layout_transform(x, NCHW4C), WRONG_BACK),
        (1, 8, 3, 3),
        Status.REFUTED,
    ),
    "blocks of channels, and back": (
        lambda g, x: g.layout_transform(g.layout_transform(x, NCHW4C), BACK),
        (1, 8, 3, 3),
        Status.PROVED,
    ),
    "a square transposed once": (lambda g, x: g.layout_transform(x, SWAP), (5, 5), Status.REFUTED),
    "a square transposed twice": (
        lambda g, x: g.layout_transform(g.layout_transform(x, SWAP), SWAP),
        (5, 5),
        Status.PROVED,
    ),
    "a swizzle twice": (
        lambda g, x: g.layout_transform(g.layout_transform(x, SWIZZLE), SWIZZLE),
        (8, 8),
        Status.PROVED,
    ),
    "a swizzle, then a turn of the same shape": (
        lambda g, x: g.layout_transform(g.layout_transform(x, SWIZZLE), SWAP),
        (8, 8),
        Status.REFUTED,
    ),
    "a crop, then a pad by zero of what nobody knows": (
        lambda g, x: g.pad(g.crop(x, (0,), (6,)), [(0, 2)], 0.0),
        (8,),
        Status.REFUTED,
    ),
    "a crop of what is said to be one, then a pad by zero": (
        lambda g, x: g.pad(g.crop(x, (0,), (6,), 1.0), [(0, 2)], 0.0),
        (8,),
        Status.REFUTED,
    ),
    "a crop of what is said to be zero, then a pad by zero": (
        lambda g, x: g.pad(g.crop(x, (0,), (6,), 0.0), [(0, 2)], 0.0),
        (8,),
        Status.PROVED,
    ),
    "a crop of what is said to be zero, then a pad by minus zero": (
        lambda g, x: g.pad(g.crop(x, (0,), (6,), 0.0), [(0, 2)], -0.0),
        (8,),
        Status.REFUTED,
    ),
    "a crop, then a pad by undef": (lambda g, x: g.pad(g.crop(x, (0,), (6,)), [(0, 2)], None), (8,), Status.PROVED),
    "a crop of the end, then a pad of the start": (
        lambda g, x: g.pad(g.crop(x, (0,), (6,)), [(2, 0)], None),
        (8,),
        Status.REFUTED,
    ),
    "a pad, then a crop of the same": (lambda g, x: g.crop(g.pad(x, [(1, 2)], 7.0), (1,), (8,)), (8,), Status.PROVED),
    "a pad, then a crop of its other end": (
        lambda g, x: g.crop(g.pad(x, [(1, 2)], 7.0), (0,), (8,)),
        (8,),
        Status.REFUTED,
    ),
}


@one_in(18)
@pytest.mark.parametrize("name", list(CHAINS))
def test_a_chain_that_ends_where_it_began(name: str) -> None:
    """That nothing is left of the chain is proved where it is so; elsewhere it is refuted, by an input that was run."""
    make, shape, wanted = CHAINS[name]
    g = GraphBuilder("chain")
    root = g.input("x", shape)
    graph = g.build(make(g, root))
    assert graph.by_name()[graph.outputs[0]].shape == shape
    verdicts = prove_chains(root, graph.rewrites, ())
    assert worst(verdict.status for verdict in verdicts) is wanted
    if wanted is Status.REFUTED:
        assert any(verdict.counterexample is not None for verdict in verdicts)
