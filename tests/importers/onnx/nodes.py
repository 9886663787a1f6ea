"""Models of few nodes, and what their graphs make beside what ONNX's own reference makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from layoutproof.graph.model.graph import Graph
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.importers.onnx.convert import graph_of
from layoutproof.importers.onnx.onnx_model import model_of

Array = NDArray[Any]
NEWEST = 21


@dataclass(frozen=True)
class Held:
    """An operand that stands in the model."""

    array: Array


def ints(*numbers: int) -> Held:
    """A list of integers that stands in the model."""
    return Held(np.array(numbers, dtype=np.int64))


def info(name: str, array: Array | None = None) -> onnx.ValueInfoProto:
    """What a model says of an input, or of an output of whose shape it says nothing."""
    if array is None:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def one(
    operator: str, operands: Sequence[Array | Held | None], *, opset: int = NEWEST, results: int = 1, **attributes: Any
) -> onnx.ModelProto:
    """A model of one node; arrays are given when it runs, None is left out."""
    names = [f"x{k}" if operand is not None else "" for k, operand in enumerate(operands)]
    made = [f"y{k}" for k in range(results)]
    given = [
        info(name, operand) for name, operand in zip(names, operands, strict=True) if isinstance(operand, np.ndarray)
    ]
    held = [
        numpy_helper.from_array(item.array, name)
        for name, item in zip(names, operands, strict=True)
        if isinstance(item, Held)
    ]
    node = helper.make_node(operator, names, made, **attributes)
    return model([node], given, [info(name) for name in made], held, opset=opset)


def model(
    nodes: Sequence[onnx.NodeProto],
    given: Sequence[onnx.ValueInfoProto],
    made: Sequence[onnx.ValueInfoProto],
    held: Sequence[onnx.TensorProto] = (),
    *,
    opset: int = NEWEST,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model of some nodes."""
    domains = {function.domain for function in functions}
    versions = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in sorted(domains))]
    graph = helper.make_graph(list(nodes), "some", list(given), list(made), list(held))
    return helper.make_model(graph, opset_imports=versions, functions=list(functions), ir_version=10)


def graph_from(proto: onnx.ModelProto, sizes: Mapping[str, int] | None = None) -> Graph:
    """The graph of a model."""
    return graph_of(model_of(proto, sizes))


def agree(
    proto: onnx.ModelProto,
    *inputs: Array,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    sizes: Mapping[str, int] | None = None,
) -> Graph:
    """The graph of a model, once it is found to make what ONNX's reference makes: the shapes, the types, and nearly the
    numbers.
    """
    graph = graph_from(proto, sizes)
    names = [item.name for item in proto.graph.input]
    wanted = ReferenceEvaluator(proto).run(None, dict(zip(names, inputs, strict=True)))
    made = run_graph(graph, {value.name: array for value, array in zip(graph.inputs, inputs, strict=True)})
    assert len(made) == len(wanted)
    for ours, theirs in zip(made, wanted, strict=True):
        expected = np.asarray(theirs)
        assert (ours.shape, ours.dtype) == (expected.shape, expected.dtype)
        if ours.dtype.kind in "biu":
            np.testing.assert_array_equal(ours, expected)
        else:
            np.testing.assert_allclose(ours.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol)
    return graph


def calls(graph: Graph) -> list[str]:
    """The names of the functions that a graph calls, in order, without the numbers behind them."""
    return [step.function.name.rstrip("0123456789").rstrip("_") for step in graph.steps if hasattr(step, "function")]
