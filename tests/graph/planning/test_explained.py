"""Why a rewrite is left is true: forbidden, it cannot be, or the cheapest plan without it costs what is said."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from tests.graph.nets import NCHW4C, filled
from tests.graph.planning.small_graphs import small_graph
from tests.shares import one_in

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Graph
from layoutproof.graph.planning.planner import Frozen, Plan, plan
from layoutproof.graph.planning.planning_problem import cost_of, rewrites_of

CONV: Frozen = {"conv2d": {"X": NCHW4C, "Y": NCHW4C}}
FEW = 3000


def check_forbidden(found: Plan) -> None:
    """Of all choices that do without a rewrite that is left, the cheapest costs so much more; or there is none."""
    every = list(product(*(range(len(call.variants)) for call in found.problem.calls)))
    assert len(every) <= FEW
    used = [(cost_of(found.problem, choice), set(rewrites_of(found.problem, choice))) for choice in every]
    for each in found.remaining:
        without = [cost for cost, rewrites in used if (each.value, each.source, each.target) not in rewrites]
        assert each.needed == (not without)
        assert each.more == (min(without) - found.cost if without else None)


@one_in(4)
@pytest.mark.parametrize("seed", [0, 1, 3, 5, 11, 12, 17, 21])
def test_a_rewrite_is_forbidden(seed: int) -> None:
    """What is said of each rewrite that is left is what trying all choices without it finds."""
    graph, held = small_graph(seed)
    found = plan(graph, {}, calls=held)
    if len(list(product(*(range(len(call.variants)) for call in found.problem.calls)))) <= FEW:
        check_forbidden(found)


def in_the_way() -> Graph:
    """A value in blocks that goes through a relu to an operator which takes no blocks."""
    g = GraphBuilder("way")
    start = g.conv2d(g.input("x", (1, 8, 4, 4)), g.constant(filled(8, 8, 1, 1), "w"))
    return g.build(g.response_norm(g.relu(start), size=3, alpha=0.1, beta=0.75, bias=1.0))


def test_the_reason_may_lie_further_on() -> None:
    """Where a call could take blocks, and would pass them on to one that cannot, that one and its access are named."""
    found = plan(in_the_way(), CONV)
    check_forbidden(found)
    (left,) = [each for each in found.remaining if each.value == "conv2d"]
    assert (left.more, left.needed) == (0, False)
    assert "relu could use the other layout at the same cost" in left.why
    assert "behind relu, response_norm cannot take relu so: " in left.why and "X[" in left.why


def test_an_end_is_a_reason() -> None:
    """Between an input and what is frozen nothing can go."""
    found = plan(in_the_way(), CONV)
    (left,) = [each for each in found.remaining if each.value == "x"]
    assert left.needed and left.more is None
    assert left.why == "x is an input; the layouts of conv2d are frozen"


def test_a_plan_that_is_not_the_cheapest() -> None:
    """A choice that somebody made otherwise is explained too: rewrites that a cheaper one does without say so."""
    g = GraphBuilder("worse")
    start = g.conv2d(g.input("x", (1, 8, 4, 4)), g.constant(filled(8, 8, 1, 1), "w"))
    graph = g.build(g.conv2d(g.relu(start), g.constant(filled(8, 8, 1, 1), "w")))
    found = plan(graph, CONV)
    worse = replace(found, choice=found.unplanned)
    assert not worse.optimal and worse.least == found.cost
    check_forbidden(worse)
    assert [each.more for each in worse.remaining if each.value == "relu"] == [found.cost - worse.cost]
    assert any("relu could use the other layout at lower cost" in each.why for each in worse.remaining)


def test_a_rewrite_as_plain_data() -> None:
    """JSON has what is said."""
    found = plan(in_the_way(), CONV).remaining[0].to_dict()
    assert set(found) == {"value", "from", "to", "bytes", "why", "needed", "more"}
