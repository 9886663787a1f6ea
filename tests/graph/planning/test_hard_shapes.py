"""Graphs of shapes that planners get wrong: planned, proved, run by the interpreter and by C kernels, equal bit for
bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.graph.nets import NCHW4C, arrays_for, diamond, filled, two_results
from tests.shares import one_in

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Graph, number_of
from layoutproof.graph.model.graph_run import run_graph, run_values
from layoutproof.graph.planning.planner import Frozen, plan
from layoutproof.graph.planning.planning_problem import cost_of
from layoutproof.graph.tuning.kernels import Kernels
from layoutproof.ir.interp.memory import Fill, Filling
from layoutproof.verify.verdict.verdict import Status

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


@dataclass(frozen=True)
class Padded:
    """A graph on six channels, which fill no blocks of four, with what is asked of it, and what is said of padding in
    its plan.
    """

    graph: Graph
    asked: Frozen
    told: tuple[str, ...]


def met(kind: str, wanted: float) -> Padded:
    """Two producers whose padding in blocks holds zeros and ones, and one consumer of both, of whose padding something
    is asked.
    """
    g = GraphBuilder("met")
    x, z = g.input("x", (1, 6, 3, 3)), g.input("z", (1, 6, 3, 3))
    graph = g.build(g.binary(kind, g.relu(x), g.unary("exp", z)))
    asked: Frozen = {
        "relu": {"Y": (NCHW4C, 0.0)},
        "exp": {"Y": (NCHW4C, 1.0)},
        kind: {"A": NCHW4C, "Y": (NCHW4C, wanted)},
    }
    return Padded(
        graph,
        asked,
        (f"{kind} fills its padding: {wanted}", "relu fills its padding: 0.0", "exp fills its padding: 1.0"),
    )


def flowed(kind: str, wanted: float) -> Padded:
    """The same, the consumer left to the planner, in front of something that needs its padding to hold a number."""
    g = GraphBuilder("flowed")
    x, z = g.input("x", (1, 6, 3, 3)), g.input("z", (1, 6, 3, 3))
    graph = g.build(g.unary("tanh", g.binary(kind, g.relu(x), g.unary("exp", z))))
    asked: Frozen = {
        "relu": {"Y": (NCHW4C, 0.0)},
        "exp": {"Y": (NCHW4C, 1.0)},
        "tanh": {"X": (NCHW4C, wanted), "Y": NCHW4C},
    }
    return Padded(graph, asked, (f"{kind} computes its padding: {wanted}",))


def padded_parts() -> Padded:
    """An operator with two results, one of which goes where zeros are needed, the other where ones are."""
    g = GraphBuilder("parts")
    first, second = g.split(g.relu(g.input("x", (1, 6, 4, 3))), (2, 2), axis=2)
    graph = g.build(g.unary("tanh", first), g.unary("exp", second), first)
    asked: Frozen = {
        "tanh": {"X": (NCHW4C, 0.0), "Y": NCHW4C},
        "exp": {"X": (NCHW4C, 1.0), "Y": NCHW4C},
        "relu": {"Y": NCHW4C},
    }
    return Padded(graph, asked, ())


def padded_diamond() -> Padded:
    """Two ways from one padded value to another, zeros all along, and the value in the middle going out besides."""
    g = GraphBuilder("diamond")
    start = g.relu(g.input("x", (1, 6, 3, 3)))
    graph = g.build(g.unary("tanh", g.add(g.unary("abs", start), start)), start)
    return Padded(
        graph,
        {"relu": {"Y": (NCHW4C, 0.0)}, "tanh": {"X": (NCHW4C, 0.0), "Y": NCHW4C}},
        ("abs computes its padding: 0.0",),
    )


PADDED: dict[str, Callable[[], Padded]] = {
    "zeros and ones that meet in a product, filled": lambda: met("multiply", 0.0),
    "zeros and ones whose product is computed": lambda: flowed("multiply", 0.0),
    "zeros and ones whose sum is computed": lambda: flowed("add", 1.0),
    "two results": padded_parts,
    "a diamond": padded_diamond,
}


@one_in(35)
@pytest.mark.parametrize("name", list(PADDED))
def test_padding_that_holds_something(name: str) -> None:
    """Padding of planned values holds what the plan says, in runs of the interpreter and of kernels whose loops follow
    what is stored; every value is proved, and outputs are the old ones, bit for bit.
    """
    case = PADDED[name]()
    found = plan(case.graph, case.asked)
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    assert all(any(line.startswith(told) for line in found.contracts) for told in case.told), found.contracts
    inputs, new = arrays_for(case.graph), found.rewrite.new
    kernels = Kernels(found.rewrite.schedules)
    ways: list[dict[str, Any]] = [{}, {"runner": kernels, "mover": kernels.move}]
    for way in ways:
        before, values = run_graph(case.graph, inputs, **way), run_values(new, inputs, filling=Filling(Fill.NAN), **way)
        for old, output in zip(before, new.outputs, strict=True):
            np.testing.assert_array_equal(old.view(np.int32), values[output].view(np.int32))
        said = {name: (place, place.pad) for name, place in found.rewrite.places.items() if place.pad is not None}
        assert said
        for each, (place, pad) in said.items():
            shape = case.graph.by_name()[place.value].shape
            around = values[each][~place.index_map.map_array(np.ones(shape, np.bool_), values[each].shape)]
            assert around.size and set(map(repr, around.tolist())) == {repr(number_of(pad))}


@one_in(21)
@pytest.mark.parametrize("name", list(GRAPHS))
def test_a_hard_shape(name: str) -> None:
    """Nothing cheaper exists, every value is proved, and by interpreter and by kernels the bits are those of the graph
    as it was.
    """
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
