"""Networks as exporters write them are read, planned to blocks of channels, proved, and run: layouts go through all
their operators.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from tests.importers.onnx.nets import NETS
from tests.shares import one_in

from layoutproof.cli.plan.plan_layouts import asked_of, wishes_of
from layoutproof.graph.model.graph import Call, Graph
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.planning.planner import Plan, plan
from layoutproof.graph.planning.variants import operator_name
from layoutproof.graph.tuning.kernels import Kernels
from layoutproof.importers.onnx.convert import graph_of
from layoutproof.importers.onnx.onnx_model import model_of
from layoutproof.verify.verdict.verdict import Status

Array = NDArray[Any]
LEFT = {"one-dimensional": 512}
"""How many bytes are moved beside those at the ends: the means of groups are made of several channels, and are small.
"""


def planned(graph: Graph, block: int) -> Plan:
    """The plan with all convolutions in blocks of channels."""
    places = ", ".join("xyz"[: len(graph.inputs[0].shape) - 2])
    layout = f"lambda n, c, {places}: [n, c//{block}, {places}, c%{block}]"
    names = {operator_name(step) for step in graph.steps if isinstance(step, Call) and "conv" in step.function.name}
    return plan(graph, {name: {"X": layout, "Y": layout} for name in sorted(names)})


def image(graph: Graph) -> Array:
    """What the network is given."""
    return np.random.default_rng(5).normal(size=graph.inputs[0].shape).astype(np.float32)


def run(graph: Graph, data: Array, kernels: Kernels | None = None) -> Array:
    """The one output of a graph, by the interpreter or by kernels."""
    inputs = {graph.inputs[0].name: data}
    (made,) = (
        run_graph(graph, inputs) if kernels is None else run_graph(graph, inputs, runner=kernels, mover=kernels.move)
    )
    return made


@one_in(12)
@pytest.mark.parametrize("name", list(NETS))
def test_a_network_makes_what_the_reference_makes(name: str) -> None:
    """The graph of a network computes what ONNX's reference computes, rounding aside."""
    model = NETS[name]()
    graph = graph_of(model_of(model))
    made = ReferenceEvaluator(model).run(None, {"x": image(graph)})
    assert isinstance(made, list)
    np.testing.assert_allclose(run(graph, image(graph)), made[0], rtol=1e-4, atol=1e-5)


@one_in(28)
@pytest.mark.parametrize("name", list(NETS))
def test_layouts_go_through_a_network(name: str) -> None:
    """What is moved is what goes in and what comes out, some few bytes aside; every value is proved, and the bits are
    the same.
    """
    graph = graph_of(model_of(NETS[name]()))
    found = planned(graph, 4)
    assert found.optimal and not found.refused
    values = graph.by_name()
    ends = [*graph.inputs, *(values[name] for name in graph.outputs)]
    assert found.cost == sum(2 * 4 * prod(value.shape) for value in ends) + LEFT.get(name, 0)
    assert 2 <= found.count(found.choice) <= found.count(found.unplanned)
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    data = image(graph)
    np.testing.assert_array_equal(run(graph, data).view(np.int32), run(found.rewrite.new, data).view(np.int32))


@pytest.mark.campaign
@pytest.mark.parametrize("block", [4, 8])
@pytest.mark.parametrize("name", list(NETS))
def test_kernels_of_a_planned_network_make_the_same_bits(name: str, block: int) -> None:
    """In generated C a network makes the same bits planned and as it was read."""
    graph = graph_of(model_of(NETS[name]()))
    found = planned(graph, block)
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    data = image(graph)
    plain = run(graph, data, Kernels())
    np.testing.assert_array_equal(
        plain.view(np.int32), run(found.rewrite.new, data, Kernels(dict(found.rewrite.schedules))).view(np.int32)
    )
    np.testing.assert_allclose(plain, run(graph, data), rtol=1e-4, atol=1e-5)


@one_in(10)
def test_kernels_of_one_planned_network_make_the_same_bits() -> None:
    """So they do for the network that segments, with transposed convolutions: the bits that the interpreter makes of it
    as it was read.
    """
    graph = graph_of(model_of(NETS["unet by transposed convolutions"]()))
    rewrite, data = planned(graph, 4).rewrite, image(graph)
    made = run(rewrite.new, data, Kernels(dict(rewrite.schedules)))
    np.testing.assert_array_equal(made.view(np.int32), run(graph, data).view(np.int32))


@pytest.mark.parametrize(
    ("name", "layout", "number"), [("one-dimensional", "NCW4c", 3), ("unet by transposed convolutions", "NCHW4c", 5)]
)
def test_convolutions_of_all_kinds_are_one_family(name: str, layout: str, number: int) -> None:
    """On the command line `conv` stands for convolutions over one axis, in groups, and transposed, too."""
    graph = graph_of(model_of(NETS[name]()))
    asked = asked_of(graph, wishes_of([f"conv={layout}"], [], []))
    assert len(asked.calls) == number
