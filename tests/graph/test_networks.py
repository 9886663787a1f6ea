"""Real networks: planned, every value proved, run; and what was proved once is not proved again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from benchmarks.bench_plan import convolutions, layout, plan_figures
from benchmarks.networks import NETWORKS, network
from benchmarks.plan_tables import RESULTS, Results
from tests.graph.nets import NCHW4C, filled
from tests.shares import one_in

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Graph
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.planning.apply import planned
from layoutproof.graph.planning.planner import Plan, plan
from layoutproof.graph.tuning.kernels import Kernels
from layoutproof.importers.onnx.convert import graph_of
from layoutproof.importers.onnx.onnx_model import model_of
from layoutproof.verify.settings import Settings, within
from layoutproof.verify.verdict.verdict import Status

KEPT: Results = json.loads(RESULTS.read_text(encoding="utf-8"))


def squeezenet(block: int) -> Plan:
    """The plan of squeezenet in blocks of channels."""
    graph = graph_of(model_of(network("squeezenet")))
    return plan(graph, {name: {"X": layout(block), "Y": layout(block)} for name in convolutions(graph)})


@one_in(10)
def test_squeezenet() -> None:
    """44 rewrites become two, which is the least there is, and every value of the planned network is proved."""
    found = squeezenet(8)
    assert found.optimal and not found.refused
    assert (found.count(found.unplanned), found.count(found.choice)) == (44, 2)
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    assert found.rewrite.new.inputs == found.graph.inputs and len(found.verdicts) > len(found.graph.steps)


def repeated() -> Graph:
    """Three times the same convolution and the same operator behind it."""
    g = GraphBuilder("repeated")
    value = g.input("x", (1, 8, 4, 4))
    for seed in range(3):
        value = g.relu(g.conv2d(value, g.constant(filled(8, 8, 1, 1, seed=seed), "w")))
    return g.build(value)


@dataclass
class Counting:
    """A proof cache that counts."""

    entries: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    hits: int = 0
    puts: int = 0

    def get(self, table: str, key: str) -> dict[str, Any] | None:
        """The value under a key."""
        found = self.entries.get(f"{table} {key}")
        self.hits += found is not None
        return found

    def put(self, table: str, key: str, value: dict[str, Any]) -> None:
        """Keep a value."""
        self.puts += 1
        self.entries[f"{table} {key}"] = value


def test_equal_operators_share_their_proofs_and_a_second_run_has_them() -> None:
    """Six calls of two functions take two proofs; planned again, everything is known."""
    memory = Counting()
    frozen = {"conv2d": {"X": NCHW4C, "Y": NCHW4C}}
    with within(Settings(memory=memory)):
        first = plan(repeated(), frozen)
        assert {verdict.status for verdict in first.verdicts} == {Status.PROVED}
        proved, memory.puts, memory.hits = memory.puts, 0, 0
        again = plan(repeated(), frozen)
        assert {verdict.status for verdict in again.verdicts} == {Status.PROVED}
    assert proved == len(first.graph.functions()) == 2
    assert memory.puts == 0 and memory.hits > 0


@pytest.mark.campaign
@pytest.mark.parametrize("block", [4, 8])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_planned_and_proved(name: str, block: int) -> None:
    """As few rewrites as the documentation says, no choice cheaper, every value proved."""
    found, figures = plan_figures(graph_of(model_of(network(name))), block)
    kept = KEPT[name][str(block)]
    assert {key: figures[key] for key in ("calls", "refused", "optimal", "before", "greedy", "exact")} == {
        key: kept[key] for key in ("calls", "refused", "optimal", "before", "greedy", "exact")
    }
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}


@pytest.mark.campaign
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_runs_bit_for_bit_the_same(name: str) -> None:
    """By kernels, as it is, with its rewrites unplanned, and planned: the same bits."""
    found, _ = plan_figures(graph_of(model_of(network(name))), 8)
    unplanned = planned(found.graph, found.problem, found.unplanned)
    (given,) = found.graph.inputs
    image = filled(*given.shape, seed=1)
    kernels = Kernels()
    runs = [
        (found.graph, kernels),
        (unplanned.new, kernels.also(unplanned.schedules)),
        (found.rewrite.new, kernels.also(found.rewrite.schedules)),
    ]
    made = [run_graph(graph, {given.name: image}, runner=runner, mover=runner.move)[0] for graph, runner in runs]
    assert np.isfinite(made[0]).all() and made[0].any()
    for other in made[1:]:
        np.testing.assert_array_equal(made[0].view(np.int32), other.view(np.int32))
