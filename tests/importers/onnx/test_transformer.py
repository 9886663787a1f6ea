"""A block of a transformer from a file to a planned, proved graph that runs, with its products in blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from tests.graph.nets import filled
from tests.importers.onnx.nodes import calls
from tests.importers.onnx.transformer import transformer_block
from tests.shares import one_in

from layoutproof.graph.model.graph import Array, Graph
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.planning.planner import Plan, plan
from layoutproof.graph.tuning.kernels import Kernels
from layoutproof.importers.onnx import load_model
from layoutproof.verify.verdict.verdict import Status

BLOCKS = "lambda b, t, d: [b, d//8, t, d%8]"
X = filled(2, 4, 16)


def read(path: Path, opset: int) -> Graph:
    """The block's graph by way of a file, for two at a time."""
    onnx.save(transformer_block(opset=opset), path / "block.onnx")
    return load_model(path / "block.onnx", {"batch": 2})


def in_blocks(graph: Graph) -> Plan:
    """The plan with each product of activations and weights in blocks of eight."""
    held = {step.results[0].name: {"A": BLOCKS, "Y": BLOCKS} for step in graph.steps if is_layer(graph, step.operands)}
    return plan(graph, {}, calls=held)


def is_layer(graph: Graph, operands: tuple[str, ...]) -> bool:
    """Whether a step multiplies with weights."""
    shapes = [graph.by_name()[name].shape for name in operands]
    return [len(shape) for shape in shapes] == [3, 2]


def made(graph: Graph, kernels: Kernels) -> Array:
    """What a graph makes of the input, in C."""
    return run_graph(graph, {"x": X}, runner=kernels, mover=kernels.move)[0]


@one_in(10)
@pytest.mark.parametrize("opset", [13, 17])
def test_a_transformer_block_is_planned(opset: int, tmp_path: Path) -> None:
    """Layouts go through heads both ways: of ten rewrites those at the input and the output are left, and all is
    proved.
    """
    graph = read(tmp_path, opset)
    assert calls(graph).count("matmul") == 8 and not {"shape", "gather", "concat", "unsqueeze"} & set(calls(graph))
    found = in_blocks(graph)
    assert not found.refused and (found.count(found.unplanned), found.count(found.choice)) == (10, 2)
    assert [remaining.value for remaining in found.remaining] == ["x", graph.outputs[0]]
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}


@pytest.mark.campaign
def test_a_transformer_block_runs(tmp_path: Path) -> None:
    """In C the planned block makes the same bits as the block, and nearly what the reference makes."""
    graph = read(tmp_path, 17)
    plain, rewrite = made(graph, Kernels()), in_blocks(graph).rewrite
    wanted: object = ReferenceEvaluator(transformer_block(opset=17)).run(None, {"x": X})
    np.testing.assert_allclose(plain, np.asarray(wanted)[0], rtol=1e-5, atol=1e-5)
    assert made(rewrite.new, Kernels(rewrite.schedules)).tobytes() == plain.tobytes()
