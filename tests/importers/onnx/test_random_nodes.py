"""Nodes with random attributes and shapes compute what ONNX says: beside sums written out here, and beside ONNX's own
reference.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from tests.importers.onnx.oracle import wanted
from tests.importers.onnx.random_nodes import NODES, random_node
from tests.shares import one_in

from layoutproof.graph.model.graph_run import run_graph
from layoutproof.importers.onnx.convert import graph_of
from layoutproof.importers.onnx.onnx_model import model_of

WINDOWS = ("Conv", "ConvTranspose", "MaxPool", "AveragePool")
"""What the reference of ONNX does wrong in some cases, such as groups over three axes."""


def check(kind: str, seed: int) -> None:
    """Fail unless a random node is read, and makes what it should."""
    node = random_node(kind, seed)
    model, inputs = node.model(), node.inputs()
    graph = graph_of(model_of(model))
    (found,) = run_graph(graph, {value.name: array for value, array in zip(graph.inputs, inputs.values(), strict=True)})
    if kind in WINDOWS:
        expected = wanted(node.operator, node.operands, node.attributes)
    else:
        made = ReferenceEvaluator(model).run(None, inputs)
        assert isinstance(made, list)
        expected = np.asarray(made[0])
        assert found.dtype == expected.dtype
    assert found.shape == expected.shape, f"{node.attributes}"
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=f"{node.attributes}")


@one_in(10)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", list(NODES))
def test_a_random_node(kind: str, seed: int) -> None:
    """It is read, whatever its attributes, and makes the right elements."""
    check(kind, seed)


@pytest.mark.campaign
@pytest.mark.parametrize("kind", list(NODES))
def test_many_random_nodes(kind: str) -> None:
    """A thousand of each kind are read, and make the right elements."""
    for seed in range(1000, 2000):
        check(kind, seed)
