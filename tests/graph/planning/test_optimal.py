"""An optimal plan is the cheapest of all choices, by an oracle that shares nothing with the planner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import numpy as np
import pytest
from tests.graph.nets import NCHW4C, arrays_for, filled
from tests.graph.planning.brute import FEW, Brute
from tests.graph.planning.brute_choices import bytes_of, least_of, number_of_choices
from tests.graph.planning.small_graphs import LAYOUTS, small_graph
from tests.graph.random_graphs import random_graph
from tests.shares import one_in

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Call, Graph
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.planning.formulation import FREE, Asked
from layoutproof.graph.planning.optimiser import asked
from layoutproof.graph.planning.planner import Frozen, Plan, plan
from layoutproof.graph.planning.planning_problem import cost_of
from layoutproof.graph.planning.variants import operator_name
from layoutproof.verify.verdict.verdict import Status

NHWC = "lambda n, c, h, w: [n, h, w, c]"


def blocks(size: int) -> str:
    """NCHW in blocks of channels."""
    return f"lambda n, c, h, w: [n, c//{size}, h, w, c%{size}]"


def check_equal(found: Plan) -> None:
    """Every value is proved, and the outputs are the old ones, bit for bit."""
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    inputs = arrays_for(found.graph)
    for before, after in zip(run_graph(found.graph, inputs), run_graph(found.rewrite.new, inputs), strict=True):
        np.testing.assert_array_equal(before.view(np.int32), after.view(np.int32))


def check_cheapest(seed: int) -> None:
    """Elimination and z3's optimiser find what trying everything finds, and say so."""
    graph, held = small_graph(seed)
    brute = Brute(graph, held)
    found = plan(graph, {}, calls=held)
    assert not found.refused and not found.cut
    if brute.choices() <= FEW:
        by_z3 = asked(found.problem)
        assert found.cost == found.least == brute.least() == cost_of(found.problem, by_z3.choice) == by_z3.least


@one_in(32)
@pytest.mark.parametrize("seed", range(24))
def test_nothing_is_cheaper(seed: int) -> None:
    """Of all choices of layouts for all arrays of a small random graph none moves fewer bytes than the plan."""
    check_cheapest(seed)


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(24, 624, 50))
def test_nothing_is_cheaper_campaign(first: int) -> None:
    """The same for many more graphs."""
    for seed in range(first, first + 50):
        check_cheapest(seed)


@one_in(4)
@pytest.mark.parametrize("seed", [1, 5, 9, 16, 23])
def test_a_small_graph_computes_the_same(seed: int) -> None:
    """The plans of these graphs are proved and compute the same bits."""
    graph, held = small_graph(seed)
    check_equal(plan(graph, {}, calls=held))


def hard_plans(seed: int) -> Iterator[Plan]:
    """Plans with padding that holds something, with layout transforms in the graph, and with ends that are freed or
    given twice.
    """
    chance = Random(seed)
    zeros: Frozen = {"conv2d": {"X": (NCHW4C, 0.0), "Y": (NCHW4C, 0.0)}}
    operands: Frozen = {"conv2d": {"X": (NCHW4C, 0.0), "Y": NCHW4C}}
    plain: Frozen = {"conv2d": {"X": NCHW4C, "Y": NCHW4C}}
    for graph, asked_for in (
        (random_graph(seed, channels=6), chance.choice([zeros, operands])),
        (random_graph(seed), plain),
    ):
        if any(operator_name(step) == "conv2d" for step in graph.steps if isinstance(step, Call)):
            yield plan(graph, asked_for)
    small, held = small_graph(seed)
    outputs = [(name, chance.choice([FREE, None])) for name in small.outputs]
    inputs: Mapping[str, Asked] = chance.choice([{"x": FREE}, {"x": LAYOUTS[1]}])
    yield plan(small, {}, calls=held, inputs=inputs, outputs=[*outputs, (small.outputs[0], None)])


def check_costs(seed: int) -> None:
    """A plan costs what it is worked out anew to cost, and no choice among its candidates costs less."""
    for found in hard_plans(seed):
        if number_of_choices(found.problem) <= FEW:
            values, by_z3 = found.candidates.values, asked(found.problem)
            assert bytes_of(found.problem, values, found.choice) == found.cost
            assert least_of(found.problem, values) == found.cost == found.least == by_z3.least


@one_in(4)
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_cheaper_where_padding_and_ends_are_chosen(seed: int) -> None:
    """Nor with contracts of padding, values that layout transforms connect, and ends that the planner chooses."""
    check_costs(seed)


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(4, 104, 20))
def test_nothing_is_cheaper_where_padding_and_ends_are_chosen_campaign(first: int) -> None:
    """The same for many more graphs."""
    for seed in range(first, first + 20):
        check_costs(seed)


def between_frozen() -> Graph:
    """A convolution that nobody asked for anything, between two that were."""
    g = GraphBuilder("between")
    first = g.depthwise_conv2d(g.input("x", (1, 8, 4, 4)), g.constant(filled(8, 1, 3, 3), "w"), halo=(1, 1, 1, 1))
    middle = g.conv2d(first, g.constant(filled(8, 8, 1, 1), "w"))
    return g.build(g.depthwise_conv2d(middle, g.constant(filled(8, 1, 3, 3), "w"), halo=(1, 1, 1, 1)))


def test_layouts_flow_together() -> None:
    """A convolution that may take blocks, and may make blocks, may do both, though neither follows from the other."""
    found = plan(between_frozen(), {"depthwise_conv2d": {"X": NCHW4C, "Y": NCHW4C}})
    assert {each.value for each in found.remaining} == {"x", *found.graph.outputs}
    check_equal(found)


def test_both_sides_of_a_product() -> None:
    """A product takes the rows of the one side and the columns of the other in blocks at once."""
    g = GraphBuilder("product")
    graph = g.build(g.matmul(g.relu(g.input("a", (8, 8))), g.sigmoid(g.input("b", (8, 8)))))
    found = plan(graph, {"relu": {"Y": "lambda i, j: [i//4, j, i%4]"}, "sigmoid": {"Y": "lambda i, j: [j//4, i, j%4]"}})
    assert {each.value for each in found.remaining} == {"a", "b", *graph.outputs}
    check_equal(found)


def test_no_layout_is_changed_within_an_operator() -> None:
    """An element-wise operator does not take one layout and make another, which would be a rewrite without cost."""
    g = GraphBuilder("within")
    graph = g.build(g.relu(g.sigmoid(g.input("x", (1, 4, 4, 4)))))
    found = plan(graph, {"sigmoid": {"Y": NHWC}})
    assert found.count(found.choice) == 2
    relu = found.problem.calls[1]
    assert all(variant.operands == variant.results for variant in relu.variants)


def three_ways() -> Graph:
    """One channel that a convolution makes and three others take."""
    g = GraphBuilder("ways")
    made = g.conv2d(g.input("x", (1, 4, 4, 4)), g.constant(filled(1, 4, 1, 1), "w"))
    return g.build(*(g.conv2d(made, g.constant(filled(4, 1, 1, 1, seed=seed), "w")) for seed in range(3)))


@one_in(4)
def test_a_rewrite_starts_from_another_one() -> None:
    """Of one channel in blocks of eight, mostly padding, everything else is made by way of the plain layout."""
    graph = three_ways()
    names = [step.results[0].name for step in graph.steps]
    held = {
        names[0]: {"Y": blocks(8)},
        **{name: {"X": blocks(size)} for name, size in zip(names[1:], (3, 4, 5), strict=True)},
    }
    found = plan(graph, {}, calls=held)
    plain = next(each.target for each in found.remaining if "//8" in each.source)
    assert "//" not in plain
    assert sorted((each.source == plain, each.bytes // 64) for each in found.remaining) == [
        (False, 9),
        (True, 4),
        (True, 5),
        (True, 6),
    ]
    assert found.cost == sum(each.bytes for each in found.remaining) == 64 * 24
    check_equal(found)


@one_in(4)
def test_padding_that_holds_something_serves_whoever_does_not_ask() -> None:
    """A value that is needed with zeros in its padding, and without, is rewritten once."""
    g = GraphBuilder("zeros")
    x = g.input("x", (1, 6, 4, 4))
    graph = g.build(*(g.conv2d(x, g.constant(filled(8, 6, 1, 1, seed=seed), "w")) for seed in range(2)))
    first, second = graph.outputs
    for layouts in ((NCHW4C, 0.0), NCHW4C), (NCHW4C, (NCHW4C, 0.0)):
        found = plan(graph, {}, calls={first: {"X": layouts[0]}, second: {"X": layouts[1]}})
        assert [each.value for each in found.remaining] == ["x"]
        check_equal(found)


def test_rewrites_that_cost_nothing_are_not_made_without_need() -> None:
    """Where all rewrites are free, the fewest are made, and the same ones again."""
    graph = between_frozen()
    plans = [
        plan(graph, {"depthwise_conv2d": {"X": NCHW4C, "Y": NCHW4C}}, cost=lambda value, source, target: 0)
        for _ in range(2)
    ]
    assert [(each.cost, each.count(each.choice)) for each in plans] == [(0, 2), (0, 2)]
    assert plans[0].choice == plans[1].choice


@one_in(7)
@pytest.mark.parametrize(
    ("way", "moved"),
    [
        ("reduce", {"mean"}),
        ("pool", {"max_pool2d"}),
        ("repeat", {"softmax"}),
        ("concat", {"concat"}),
        ("split", {"softmax"}),
    ],
)
def test_a_rewrite_stands_where_the_value_is_smallest(way: str, moved: set[str]) -> None:
    """In front of what makes a value larger, behind what makes it smaller; of sides with as many bytes, that with fewer
    values.
    """
    g = GraphBuilder(way)
    x = g.softmax(g.input("x", (1, 8, 1, 1) if way == "repeat" else (1, 8, 4, 4)), axis=1)
    made = {
        "reduce": lambda: [g.reduce("mean", x, (2, 3), keep=True)],
        "pool": lambda: [g.max_pool2d(x, (4, 4), strides=(4, 4))],
        "repeat": lambda: [g.add(x, g.constant(filled(1, 8, 4, 4), "b"))],
        "concat": lambda: [g.concat([x, g.response_norm(x, size=3, alpha=0.1, beta=0.75, bias=1.0)], axis=2)],
        "split": lambda: list(g.split(x, (2, 2), axis=2)),
    }[way]()
    graph = g.build(*(g.conv2d(each, g.constant(filled(8, 8, 1, 1), "w")) for each in made))
    held = {name: {"X": NCHW4C, "Y": NCHW4C} for name in graph.outputs}
    found = plan(graph, {}, calls=held)
    assert {each.value for each in found.remaining} - set(graph.outputs) == moved
    assert found.cost == found.least == Brute(graph, held).least()
