"""The greedy walk: what it follows, and where that costs more than need be."""

from __future__ import annotations

import pytest
from tests.graph.nets import NCHW4C, filled
from tests.graph.planning.small_graphs import small_graph
from tests.shares import one_in

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Graph
from layoutproof.graph.planning.planner import Plan, plan
from layoutproof.graph.planning.planning_problem import cost_of

NHWC = "lambda n, c, h, w: [n, h, w, c]"


def greedy_layout(found: Plan, result: str) -> str:
    """The layout in which the walk makes a value: plain, in blocks, or turned."""
    number = next(k for k, call in enumerate(found.problem.calls) if result in call.results)
    call = found.problem.calls[number]
    layout = call.variants[found.greedy[number]].results[call.results.index(result)]
    return "blocks" if "//" in layout else "plain" if layout.endswith("[i0, i1, i2, i3]") else "turned"


def joined(first: str, second: str) -> tuple[Graph, Plan]:
    """A sum of two values: a convolution's result, or an input."""
    g = GraphBuilder("joined")
    x, z = g.input("x", (1, 4, 4, 4)), g.input("z", (1, 4, 4, 4))
    sides = {"blocks": g.conv2d(x, g.constant(filled(4, 4, 1, 1), "w")), "turned": g.sigmoid(x), "plain": z}
    graph = g.build(g.add(sides[first], sides[second]))
    return graph, plan(graph, {"conv2d": {"X": NCHW4C, "Y": NCHW4C}, "sigmoid": {"X": NHWC}})


@pytest.mark.parametrize(
    ("first", "second", "made"),
    [
        ("blocks", "plain", "blocks"),
        ("plain", "blocks", "blocks"),
        ("turned", "blocks", "blocks"),
        ("turned", "plain", "turned"),
        ("plain", "turned", "plain"),
    ],
)
def test_what_is_followed(first: str, second: str, made: str) -> None:
    """A sum follows the operand in blocks, whichever side it comes from; else the first one."""
    _, found = joined(first, second)
    assert greedy_layout(found, "add") == made


def test_what_cannot_be_followed() -> None:
    """An operator that layouts do not flow through takes and makes everything plain."""
    g = GraphBuilder("norm")
    start = g.conv2d(g.input("x", (1, 8, 4, 4)), g.constant(filled(8, 8, 1, 1), "w"))
    found = plan(
        g.build(g.response_norm(start, size=3, alpha=0.1, beta=0.75, bias=1.0)), {"conv2d": {"X": NCHW4C, "Y": NCHW4C}}
    )
    assert greedy_layout(found, "response_norm") == "plain"


def test_it_does_not_look_ahead() -> None:
    """In front of a large value that is needed plain it keeps the blocks that it was given; the plan rewrites the small
    one.
    """
    g = GraphBuilder("ahead")
    small = g.conv2d(g.input("x", (1, 8, 1, 1)), g.constant(filled(8, 8, 1, 1), "w"))
    large = g.add(small, g.constant(filled(1, 8, 16, 16), "b"))
    found = plan(g.build(large), {"conv2d": {"X": NCHW4C, "Y": NCHW4C}})
    assert greedy_layout(found, "add") == "blocks"
    assert (found.cost, cost_of(found.problem, found.greedy)) == (128, 64 + 2 * 8 * 256 * 4)


def test_it_may_cost_more_than_no_plan() -> None:
    """It follows a small operand in blocks, and rewrites a large one for that."""
    g = GraphBuilder("more")
    small = g.conv2d(g.input("x", (1, 8, 1, 1)), g.constant(filled(8, 8, 1, 1), "w"))
    found = plan(g.build(g.add(small, g.input("z", (1, 8, 16, 16)))), {"conv2d": {"X": NCHW4C, "Y": NCHW4C}})
    assert cost_of(found.problem, found.greedy) > cost_of(found.problem, found.unplanned) == found.cost


@one_in(4)
@pytest.mark.parametrize("seed", range(12))
def test_it_never_costs_less(seed: int) -> None:
    """No walk is better than the cheapest choice."""
    graph, held = small_graph(seed)
    found = plan(graph, {}, calls=held)
    assert cost_of(found.problem, found.greedy) >= found.cost
