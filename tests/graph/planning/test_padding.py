"""What padding holds, in plans: contracts that are asked for, computed, filled or refused; pads and crops among the
calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.graph.nets import NCHW4C, arrays_for, filled
from tests.graph.random_graphs import random_graph
from tests.shares import one_in

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.flow.layout_flow import relaid
from layoutproof.graph.model.graph import Call, Crop, Graph, LayoutTransform, Pad, Step, number_of
from layoutproof.graph.model.graph_run import run_graph, run_values
from layoutproof.graph.model.graph_witness import GraphRewrite, Place
from layoutproof.graph.operators.elementwise import unary
from layoutproof.graph.planning.planner import Frozen, Plan, plan
from layoutproof.graph.planning.variants import operator_name
from layoutproof.graph.prove.prove_graph import prove_graph_rewrite
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import const
from layoutproof.ir.interp.memory import Filling
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.verify.verdict.verdict import Status

ZEROS: Frozen = {"conv2d": {"X": (NCHW4C, 0.0), "Y": NCHW4C}}
BOTH: Frozen = {"conv2d": {"X": (NCHW4C, 0.0), "Y": (NCHW4C, 0.0)}}
PLAIN: Frozen = {"conv2d": {"X": NCHW4C, "Y": NCHW4C}}


def between(kind: str, name: str = "net") -> Graph:
    """Two convolutions of six channels, which fill no blocks of four, with an operator in between."""
    g = GraphBuilder(name)
    start = g.conv2d(g.input("x", (1, 6, 3, 3)), g.constant(filled(6, 6, 1, 1), "w"))
    return g.build(g.conv2d(g.unary(kind, start), g.constant(filled(6, 6, 1, 1, seed=1), "w2")))


def two_producers() -> Graph:
    """A relu and an exponential that a sum joins, in front of a convolution: padding of zeros and of ones."""
    g = GraphBuilder("two")
    start = g.conv2d(g.input("x", (1, 6, 3, 3)), g.constant(filled(6, 6, 1, 1), "w"))
    joined = g.add(g.relu(start), g.unary("exp", start))
    return g.build(g.conv2d(joined, g.constant(filled(6, 6, 1, 1, seed=1), "w2")))


def diamond() -> Graph:
    """Two ways from one padded value to another, both of which keep zeros."""
    g = GraphBuilder("diamond")
    start = g.conv2d(g.input("x", (1, 6, 3, 3)), g.constant(filled(6, 6, 1, 1), "w"))
    return g.build(
        g.conv2d(g.multiply(g.relu(start), g.unary("tanh", start)), g.constant(filled(6, 6, 1, 1, seed=1), "w2"))
    )


def two_results() -> Graph:
    """An operator with two results, each of which fills no block."""
    g = GraphBuilder("parts")
    start = g.conv2d(g.input("x", (1, 6, 4, 3)), g.constant(filled(6, 6, 1, 1), "w"))
    parts = g.split(start, (2, 2), axis=2)
    return g.build(*(g.conv2d(part, g.constant(filled(6, 6, 1, 1, seed=1), "w2")) for part in parts))


def check_equal(found: Plan) -> None:
    """Every value is proved; outputs are the old ones bit for bit, whatever undefined padding holds; contracts hold in
    the run.
    """
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    inputs = arrays_for(found.graph)
    before = run_graph(found.graph, inputs)
    for filling in (Filling(), Filling(seed=3)):
        values = run_values(found.rewrite.new, inputs, filling=filling)
        for old, name in zip(before, found.rewrite.new.outputs, strict=True):
            np.testing.assert_array_equal(old.view(np.int32), values[name].view(np.int32))
        for name, place in found.rewrite.places.items():
            if place.pad is not None:
                shape = found.graph.by_name()[place.value].shape
                around = values[name][~place.index_map.map_array(np.ones(shape, np.bool_), values[name].shape)]
                wanted = np.full(around.shape, number_of(place.pad), np.float32)
                np.testing.assert_array_equal(around.view(np.int32), wanted.view(np.int32))


GRAPHS: dict[str, Callable[[], Graph]] = {
    "relu": lambda: between("relu"),
    "exp": lambda: between("exp"),
    "two producers": two_producers,
    "diamond": diamond,
    "two results": two_results,
}


@one_in(52)
@pytest.mark.parametrize("name", list(GRAPHS))
@pytest.mark.parametrize("asked", [ZEROS, BOTH, PLAIN], ids=["operands", "both", "none"])
def test_a_plan_with_padding_is_proved_and_computes_the_same(name: str, asked: Frozen) -> None:
    """Padding holds in a run what the plan says, and outputs are the old ones, bit for bit."""
    check_equal(plan(GRAPHS[name](), asked))


def test_zeros_go_through_a_relu() -> None:
    """The padding of a relu is computed from that of its operand: no rewrite or filling between the convolutions."""
    found = plan(between("relu"), BOTH)
    assert any(line.startswith("relu computes its padding: 0.0") for line in found.contracts)
    assert {each.value for each in found.remaining} == {"x", *found.graph.outputs}


def test_an_exponential_over_zeros_is_refused() -> None:
    """The padding of zeros does not go through an exponential, and the plan says so: it fills its padding itself."""
    found = plan(between("exp"), BOTH)
    (line,) = [line for line in found.contracts if line.startswith("exp")]
    assert line.startswith(
        "exp fills its padding: 0.0, since where the padding of X holds 0.0, that of Y does not come out as 0.0"
    )


def test_an_exponential_that_may_not_fill_is_left_a_rewrite() -> None:
    """Where nobody asks for padding no contract is made, and none is relied on."""
    found = plan(between("exp"), PLAIN)
    assert found.contracts == ()
    assert all(place.pad is None for place in found.rewrite.places.values())


def test_different_padding_meets_in_a_sum() -> None:
    """Zeros and ones that meet in a sum do not make zeros; the plan says how the sum's padding comes about."""
    found = plan(two_producers(), BOTH)
    assert any(line.startswith("add") for line in found.contracts)


@one_in(4)
def test_zeros_of_either_sign_are_two_numbers() -> None:
    """Padding of negative zeros is not taken for padding of zeros: what needs the one and gets the other is filled
    anew.
    """
    check_equal(plan(between("relu"), {"conv2d": {"X": (NCHW4C, -0.0), "Y": (NCHW4C, 0.0)}}))
    g = GraphBuilder("signs")
    start = g.conv2d(g.input("x", (1, 6, 3, 3)), g.constant(filled(6, 6, 1, 1), "w"))
    found = plan(
        g.build(g.conv2d(start, g.constant(filled(6, 6, 1, 1), "w2"))),
        {"conv2d": {"X": (NCHW4C, -0.0), "Y": (NCHW4C, 0)}},
    )
    assert "conv2d" in {each.value for each in found.remaining}
    check_equal(found)


@one_in(4)
def test_padding_of_integers() -> None:
    """Padding of integers holds an integer, given as one or as a float of no fraction."""
    g = GraphBuilder("integers")
    graph = g.build(g.unary("negative", g.unary("relu", g.input("x", (1, 6, 2, 2), "int32"))))
    for value in (1, 1.0):
        found = plan(graph, {"relu": {"X": (NCHW4C, value), "Y": (NCHW4C, value)}})
        assert found.contracts == ("relu computes its padding: 1",)
        assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}


@one_in(4)
@pytest.mark.parametrize("value", [True, False, 0, 1.0])
def test_padding_of_truth_values(value: float) -> None:
    """Padding of truth values holds one, given as itself or as a number."""
    g = GraphBuilder("truths")
    graph = g.build(g.binary("less", g.input("x", (1, 6, 2, 2)), g.input("z", (1, 6, 2, 2))))
    found = plan(graph, {"less": {"A": NCHW4C, "Y": (NCHW4C, value)}}, outputs=[("less", NCHW4C)])
    assert found.contracts == (f"less fills its padding: {int(value)}",)
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    (made,) = run_graph(found.rewrite.new, arrays_for(graph))
    assert made.dtype == np.bool_ and set(made[:, 1, :, :, 2:].reshape(-1).tolist()) == {bool(value)}


@pytest.mark.parametrize("value", [True, float("nan"), 0.1, 1e60, 10**400])
def test_padding_that_a_type_cannot_hold(value: float) -> None:
    """A number that the array's type has not is wrong input."""
    with pytest.raises(LayoutproofError, match="padding of X of conv2d cannot hold"):
        plan(between("relu"), {"conv2d": {"X": (NCHW4C, value)}})


def with_pads() -> Graph:
    """A pad and a crop around operators that layouts flow through."""
    g = GraphBuilder("pads")
    start = g.conv2d(g.input("x", (1, 8, 4, 4)), g.constant(filled(8, 8, 1, 1), "w"))
    wide = g.pad(start, [(0, 0), (0, 0), (1, 1), (1, 1)], 0.0)
    pooled = g.max_pool2d(wide, (3, 3))
    return g.build(g.conv2d(g.crop(pooled, (0, 0, 1, 1), (1, 8, 2, 2)), g.constant(filled(8, 8, 1, 1, seed=1), "w2")))


@one_in(4)
def test_layouts_flow_through_pads_and_crops() -> None:
    """Pads and crops are planned as calls: only the rewrites at the interface are left."""
    found = plan(with_pads(), PLAIN)
    assert {each.value for each in found.remaining} == {"x", *found.graph.outputs}
    check_equal(found)


def test_a_pad_of_channels_is_in_the_way() -> None:
    """A pad of the axis that is taken apart is no clean image, unless it pads whole blocks; the plan is proved all the
    same.
    """
    g = GraphBuilder("channels")
    start = g.conv2d(g.input("x", (1, 6, 3, 3)), g.constant(filled(6, 6, 1, 1), "w"))
    wide = g.pad(start, [(0, 0), (0, 2), (0, 0), (0, 0)], 0.0)
    check_equal(plan(g.build(g.conv2d(wide, g.constant(filled(8, 8, 1, 1), "w2"))), PLAIN))


def test_a_crop_that_claims_something_is_planned_as_a_crop() -> None:
    """What a crop says of the cells that it cuts off is no part of what it makes."""
    g = GraphBuilder("claims")
    start = g.conv2d(g.input("x", (1, 8, 4, 4)), g.constant(filled(8, 8, 1, 1), "w"))
    check_equal(plan(g.build(g.crop(start, (0, 0, 0, 0), (1, 8, 2, 2), 5.0)), PLAIN))


def swapped(rewrite: GraphRewrite, old: Step, new: Step) -> GraphRewrite:
    """A planned graph with one step in another's place."""
    return replace(
        rewrite, new=replace(rewrite.new, steps=tuple(new if step is old else step for step in rewrite.new.steps))
    )


def tampered(kind: str) -> GraphRewrite:
    """A planned graph whose padding does not hold what is said or needed."""
    found = plan(between("exp"), ZEROS).rewrite
    pad = next(step for step in found.new.steps if isinstance(step, Pad))
    moved = next(step for step in found.new.steps if isinstance(step, LayoutTransform))
    first = next(step for step in found.new.steps if isinstance(step, Call))
    dtype = pad.result.dtype
    if kind == "another pad value":
        return swapped(found, pad, replace(pad, value=const(1.0, dtype)))
    if kind == "nothing said of the operand":
        place = found.places[first.operands[0]]
        return replace(found, places={**found.places, first.operands[0]: replace(place, pad=None)})
    if kind == "another number said":
        names = [name for name, place in found.places.items() if place.pad is not None]
        return replace(
            found, places={**found.places, **{n: replace(found.places[n], pad=const(1.0, dtype)) for n in names}}
        )
    if kind == "padding of a result made up":
        place = found.places[first.results[0].name]
        return replace(found, places={**found.places, first.results[0].name: replace(place, pad=const(0.0, dtype))})
    if kind == "the sign of zero":
        names = [name for name, place in found.places.items() if place.pad is not None]
        return replace(
            found, places={**found.places, **{n: replace(found.places[n], pad=const(-0.0, dtype)) for n in names}}
        )
    if kind == "elements said to be padding":
        crop = next(step for step in found.new.steps if isinstance(step, Crop))
        return replace(
            found, places={**found.places, crop.result.name: Place("x", found.places[moved.result.name].index_map)}
        )
    name = first.function.name
    other = plan(between("exp"), BOTH).rewrite
    call = next(step for step in other.new.steps if isinstance(step, Call) and step.function.name.startswith("exp"))
    return replace(found, schedules={**found.schedules, name: other.schedules[call.function.name]})


@one_in(9)
@pytest.mark.parametrize(
    "kind",
    [
        "another pad value",
        "nothing said of the operand",
        "another number said",
        "padding of a result made up",
        "the sign of zero",
        "elements said to be padding",
        "another schedule",
    ],
)
def test_wrong_padding_is_not_proved(kind: str) -> None:
    """A planned graph whose padding holds something else than is said or needed is not proved."""
    assert any(verdict.status is not Status.PROVED for verdict in prove_graph_rewrite(tampered(kind)))


def test_a_constant_with_other_padding_is_not_proved() -> None:
    """A constant whose padding is said to hold zeros and holds something else is looked at and refused."""
    both: Frozen = {"conv2d": {"X": (NCHW4C, 0.0), "W": ("lambda o, i, h, w: [o, i//4, h, w, i%4]", 0.0)}}
    found = plan(between("relu"), both)
    check_equal(found)
    padded = next(c for c in found.rewrite.new.constants if found.rewrite.places[c.value.name].pad is not None)
    data = padded.data.copy()
    data[..., -1, :, :, -1] = 1.0
    wrong = replace(padded, data=data)
    constants = tuple(wrong if each is padded else each for each in found.rewrite.new.constants)
    verdicts = prove_graph_rewrite(replace(found.rewrite, new=replace(found.rewrite.new, constants=constants)))
    reasons = [v.reason for v in verdicts if v.status is not Status.PROVED]
    assert reasons[0] == "its padding holds something else than T.float32(0.0)"


def test_what_a_function_of_the_graph_assumes_is_told() -> None:
    """A function that comes with an assumption of its own keeps it, and the plan names it."""
    layout = parse_index_map(NCHW4C)
    assuming = relaid(unary("relu", (1, 6, 2, 2)), {"X": layout, "Y": layout}, {"X": 0.0}).func
    g = GraphBuilder("assuming")
    found = plan(g.build(*g.call(replace(assuming, name="mine"), g.input("x", (1, 2, 2, 2, 4)))), {})
    (line,) = found.assumed
    assert line.startswith("mine takes for granted: ") and line.endswith("== 0.0")
    assert plan(between("relu"), BOTH).assumed == ()


@one_in(7)
@pytest.mark.parametrize("seed", [1, 3, 5, 8])
def test_random_graphs_with_padding(seed: int) -> None:
    """Random graphs on images of six channels, whose convolutions need zeros in the padding: proved, run, equal."""
    graph = random_graph(seed, channels=6)
    names = {operator_name(call) for call in graph.steps if isinstance(call, Call)}
    check_equal(plan(graph, ZEROS if "conv2d" in names else {}))


@one_in(7)
def test_two_results_that_both_hold_something() -> None:
    """Both parts of a split are asked for zeros in their padding, and both compute them: nothing is rewritten behind
    it.
    """
    g = GraphBuilder("halves")
    start = g.relu(g.conv2d(g.input("x", (1, 6, 4, 3)), g.constant(filled(6, 6, 1, 1), "w")))
    parts = g.split(start, (2, 2), axis=2)
    found = plan(g.build(*(g.conv2d(part, g.constant(filled(6, 6, 1, 1, seed=1), "w2")) for part in parts)), ZEROS)
    assert {each.value for each in found.remaining} == {"x", *found.graph.outputs}
    assert {line.partition(":")[0] for line in found.contracts if line.startswith("split")} == {
        "split computes its padding",
        "split_1 computes its padding",
    }
    check_equal(found)


def test_filled_padding_costs_nothing_beside_measured_costs() -> None:
    """Bytes of padding are not added to costs of another unit."""
    found = plan(between("exp"), BOTH, cost=lambda value, source, target: 1)
    assert any("fills its padding" in line for line in found.contracts)
    assert found.cost == found.count(found.choice)
