"""Models with something changed in them: each is refused with an error that says where, or means what ONNX's reference
says it means.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from tests.graph.nets import filled
from tests.importers.onnx.nodes import graph_from
from tests.importers.onnx.transformer import transformer_block
from tests.shares import one_in

from layoutproof.graph.model.graph_run import run_graph
from layoutproof.importers.onnx.constant_nodes import FOLDED
from layoutproof.importers.onnx.convert import OPERATORS
from layoutproof.importers.onnx.quantized_nodes import QUANTIZED
from layoutproof.ir.diagnostic import LayoutproofError

X = filled(2, 3, 8)
NASTY = (0, 1, -1, 2, 3, 7, -100, 2**31 - 1, -(2**31), 2**62, -(2**63))
OTHERS = sorted({*OPERATORS, *FOLDED, "If", "Loop", "Attention"} - {*QUANTIZED})
"""The reference has quantised operators of the newest versions alone."""


def changed(proto: onnx.ModelProto, random: np.random.Generator) -> None:
    """One change to a node, or to an array."""
    graph = proto.graph
    node = graph.node[int(random.integers(len(graph.node)))]
    item = graph.initializer[int(random.integers(len(graph.initializer)))]
    match int(random.integers(7)):
        case 0:
            for attribute in node.attribute[:1]:
                attribute.i = int(random.choice(NASTY))
                attribute.ints[:] = [
                    int(random.choice(NASTY)) if random.integers(3) == 0 else number for number in attribute.ints
                ]
        case 1:
            node.op_type = str(random.choice(OTHERS))
        case 2:
            names = [
                "",
                *(name for other in graph.node for name in other.output),
                *(held.name for held in graph.initializer),
            ]
            node.input[int(random.integers(len(node.input)))] = str(random.choice(names))
        case 3:
            array = numpy_helper.to_array(item)
            forms = (
                array.reshape(-1),
                array[None],
                array.astype(np.float64),
                array.astype(np.int32),
                array.reshape(-1)[:0],
            )
            item.CopyFrom(
                numpy_helper.from_array(np.ascontiguousarray(forms[int(random.integers(len(forms)))]), item.name)
            )
        case 4:
            array = numpy_helper.to_array(item).copy()
            if array.dtype == np.int64:
                array.reshape(-1)[0] = int(random.choice(NASTY))
            item.CopyFrom(numpy_helper.from_array(array, item.name))
        case 5:
            del node.attribute[:]
        case _:
            node.output.append("more")


def outcome(seed: int) -> str:
    """What becomes of the block with one to three changes; only an error of ours, or what the reference makes, is let
    through.
    """
    random = np.random.default_rng(seed)
    proto = transformer_block(width=8, heads=2, hidden=8, length=3, opset=int(random.choice([13, 17])))
    for _ in range(int(random.integers(1, 4))):
        changed(proto, random)
    try:
        graph = graph_from(proto, {"batch": 2})
    except LayoutproofError as refusal:
        assert all(found.code.startswith("LP6") for found in refusal.diagnostics)
        return "refused"
    with np.errstate(all="ignore"):
        wanted: object = ReferenceEvaluator(proto).run(None, {"x": X})
    (made,) = run_graph(graph, {"x": X})
    expected = np.asarray(wanted)[0]
    assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
    # A quotient by what is nearly nothing makes the last bits of a number large.
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    np.testing.assert_allclose(made, expected, rtol=1e-2, atol=1e-3 * largest)
    return "read"


@one_in(4)
def test_models_that_were_changed() -> None:
    """Most are refused, some mean something else; none is anything but that."""
    found = Counter(outcome(seed) for seed in range(40))
    assert found["read"] > 3 and found["refused"] > 10


@pytest.mark.campaign
def test_many_models_that_were_changed() -> None:
    """The same for many more."""
    found = Counter(outcome(seed) for seed in range(1000, 2500))
    assert found["read"] > 200
