"""Graphs of shapes that planners get wrong: planned, proved, run by the interpreter and by C kernels, equal bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.graph.nets import NCHW4C, arrays_for, diamond, filled, two_results

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.kernels import Kernels
from layoutproof.graph.model import Graph
from layoutproof.graph.planning.plan import Frozen, plan
from layoutproof.graph.planning.problem import cost_of
from layoutproof.graph.run import run_graph
from layoutproof.verify.verdict import Status

CONV: Frozen = {"conv2d": {"X": NCHW4C, "Y": NCHW4C}}
BACK = "lambda n, o, h, w, i: [n, o*4 + i, h, w]"


def two_pad_values(kind: str = "multiply") -> Graph:
    """Two producers whose results are padded by different values, and one consumer over both, padding included."""
    g = GraphBuilder("pads")
    x = g.input("x", (1, 4, 3, 3))
    left = g.conv2d(x, g.constant(filled(6, 4, 1, 1), "w"))
    right = g.relu(g.conv2d(x, g.constant(filled(6, 4, 1, 1, seed=2), "w2")))
    widths = [(0, 0), (0, 2), (0, 0), (0, 0)]
    made = g.binary(kind, g.pad(left, widths, 0.0), g.pad(right, widths, 1.0))
    return g.build(g.conv2d(made, g.constant(filled(4, 8, 1, 1, seed=3), "w3")), made)


def two_layouts() -> Graph:
    """An output in two layouts, both of them used besides."""
    g = GraphBuilder("layouts")
    made = g.conv2d(g.input("x", (1, 8, 4, 4)), g.constant(filled(8, 8, 1, 1), "w"))
    blocks = g.layout_transform(made, NCHW4C)
    return g.build(made, blocks, g.relu(made), g.layout_transform(g.relu(blocks), BACK))


def wide_diamond() -> Graph:
    """A value that goes three ways, one of which no layout flows through, and an output from the middle."""
    g = GraphBuilder("wide")
    x = g.input("x", (1, 8, 4, 4))
    start = g.conv2d(x, g.constant(filled(8, 8, 1, 1), "w"))
    normed = g.response_norm(start, size=3, alpha=0.1, beta=0.75, bias=1.0)
    joined = g.add(g.add(g.relu(start), normed), start)
    return g.build(g.conv2d(joined, g.constant(filled(8, 8, 1, 1, seed=1), "w2")), start)


GRAPHS: dict[str, Callable[[], Graph]] = {
    "two producers with different pad values": two_pad_values,
    "their sum": lambda: two_pad_values("add"),
    "a diamond": diamond,
    "a diamond with a way that no layout takes": wide_diamond,
    "an output in two layouts": two_layouts,
    "an operator with two results": two_results,
}


@pytest.mark.parametrize("name", list(GRAPHS))
def test_a_hard_shape(name: str) -> None:
    """Nothing cheaper exists, every value is proved, and by interpreter and by kernels the bits are those of the graph as it was."""
    graph = GRAPHS[name]()
    found = plan(graph, CONV)
    assert found.optimal and found.cost <= cost_of(found.problem, found.unplanned)
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    kernels = Kernels()
    ways: list[dict[str, Any]] = [{}, {"runner": kernels, "mover": kernels.move}]
    for way in ways:
        wanted, made = (run_graph(each, arrays_for(graph), **way) for each in (graph, found.rewrite.new))
        for before, after in zip(wanted, made, strict=True):
            np.testing.assert_array_equal(before.view(np.int32), after.view(np.int32))
