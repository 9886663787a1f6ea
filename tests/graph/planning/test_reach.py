"""Layouts of many kinds in networks of many kinds: how few rewrites are left, proved and run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from tests.graph.nets import arrays_for, filled
from tests.shares import one_in

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Call, Graph
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.planning.formulation import FREE
from layoutproof.graph.planning.planner import plan
from layoutproof.graph.planning.variants import operator_name
from layoutproof.verify.verdict.verdict import Status

NHWC = "lambda n, c, h, w: [n, h, w, c]"
IN_TILES = "lambda o, i, h, w: [o//4, i//4, h, w, i%4, o%4]"


def blocks(size: int) -> str:
    """NCHW in blocks of channels."""
    return f"lambda n, c, h, w: [n, c//{size}, h, w, c%{size}]"


def images(size: int) -> Mapping[str, str]:
    """Blocks for what a convolution takes and makes."""
    return {"X": blocks(size), "Y": blocks(size)}


def padded(channels: int) -> Graph:
    """Three channels that are padded to whole blocks."""
    g = GraphBuilder("padded")
    wide = g.pad(g.input("x", (1, 3, 5, 5)), [(0, 0), (0, channels - 3), (0, 0), (0, 0)], 0.0)
    start = g.relu(g.conv2d(wide, g.constant(filled(8, channels, 3, 3), "w"), halo=(1, 1, 1, 1)))
    return g.build(g.conv2d(start, g.constant(filled(8, 8, 1, 1), "w")))


def reduced() -> Graph:
    """A sum over rows and columns, and a product with a constant."""
    g = GraphBuilder("reduced")
    start = g.conv2d(g.input("x", (2, 8, 4, 4)), g.constant(filled(8, 8, 1, 1), "w"))
    return g.build(g.dense(g.reduce("sum", start, (2, 3)), g.constant(filled(4, 8), "w")))


def attended() -> Graph:
    """A value times its largest channel."""
    g = GraphBuilder("attended")
    start = g.conv2d(g.input("x", (2, 8, 4, 4)), g.constant(filled(8, 8, 1, 1), "w"))
    scaled = g.multiply(start, g.reduce("max", start, (1,), keep=True))
    return g.build(g.conv2d(scaled, g.constant(filled(8, 8, 1, 1), "w")))


def mixed() -> Graph:
    """Three convolutions and a shortcut."""
    g = GraphBuilder("mixed")
    start = g.relu(g.conv2d(g.input("x", (1, 8, 4, 4)), g.constant(filled(16, 8, 1, 1), "w")))
    joined = g.add(g.relu(g.conv2d(start, g.constant(filled(16, 16, 1, 1), "w"))), start)
    return g.build(g.conv2d(joined, g.constant(filled(8, 16, 1, 1), "w")))


def each_its_own(number: int) -> Mapping[str, str]:
    """Blocks of 4, of 8, and of both."""
    return (images(4), images(8), {"X": blocks(4), "Y": blocks(8)})[number]


@one_in(21)
@pytest.mark.parametrize(
    ("make", "layouts", "left", "free"),
    [
        (lambda: padded(4), lambda _: images(4), 2, False),
        (lambda: padded(8), lambda _: images(8), 2, False),
        (reduced, lambda _: images(4), 1, False),
        (attended, lambda _: images(4), 2, False),
        (mixed, each_its_own, 4, False),
        (mixed, each_its_own, 2, True),
        (mixed, lambda _: {"X": NHWC, "Y": NHWC}, 2, False),
        (mixed, lambda _: {"X": blocks(4)}, 3, False),
        (mixed, lambda _: {"Y": blocks(4)}, 3, False),
        (mixed, lambda _: {"W": IN_TILES}, 2, False),
    ],
    ids=[
        "pad 3 to 4",
        "pad 3 to 8",
        "sum",
        "max",
        "4c and 8c",
        "4c and 8c, free",
        "NHWC",
        "operands",
        "results",
        "filters",
    ],
)
def test_few_rewrites_are_left(
    make: Callable[[], Graph], layouts: Callable[[int], Mapping[str, str]], left: int, free: bool
) -> None:
    """As many as stand here; the plan is the cheapest, proved, and computes the same bits."""
    graph = make()
    convolutions = [step for step in graph.steps if isinstance(step, Call) and operator_name(step) == "conv2d"]
    calls = {call.results[0].name: layouts(number) for number, call in enumerate(convolutions)}
    ends = {name: FREE for name in ("x",) if free}
    found = plan(
        graph, {}, calls=calls, inputs=ends, outputs=[(name, FREE if free else None) for name in graph.outputs]
    )
    assert found.optimal and not found.refused and not found.cut
    assert found.count(found.choice) == left
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    inputs = arrays_for(graph)
    old = dict(zip(graph.outputs, run_graph(graph, inputs), strict=True))
    for name, array in found.interface.taken(graph, run_graph(found.rewrite.new, found.interface.given(inputs))):
        np.testing.assert_array_equal(old[name].view(np.int32), array.view(np.int32))
