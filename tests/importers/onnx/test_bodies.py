"""Operators that are nodes again: a model's own functions, branches that are known, and what ONNX defines by other
operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.graph.nets import filled
from tests.importers.onnx.nodes import Array, Held, agree, calls, graph_from, info, model, one

from layoutproof.graph.model.graph_run import run_graph
from layoutproof.importers.onnx import convert
from layoutproof.ir.diagnostic import LayoutproofError

X = filled(2, 3)
OWN = "own.operators"


def function(
    name: str,
    operands: Sequence[str],
    results: Sequence[str],
    nodes: Sequence[onnx.NodeProto],
    attributes: Sequence[str] = (),
) -> onnx.FunctionProto:
    """A function of a model."""
    versions = [helper.make_opsetid("", 21), helper.make_opsetid(OWN, 1)]
    return helper.make_function(OWN, name, list(operands), list(results), list(nodes), versions, list(attributes))


def called(
    functions: Sequence[onnx.FunctionProto], operator: str, operands: Sequence[str] = ("x",), **attributes: Any
) -> onnx.ModelProto:
    """A model that calls one of its functions."""
    node = helper.make_node(operator, list(operands), ["y"], domain=OWN, name="call", **attributes)
    return model([node], [info("x", X)], [info("y")], functions=functions)


def test_a_function_of_a_model() -> None:
    """Its nodes are done in its place, with names of their own: a name outside may be the same."""
    inner = function("Twice", ["x"], ["y"], [helper.make_node("Add", ["x", "x"], ["y"])])
    twice = [helper.make_node("Twice", [a], [b], domain=OWN) for a, b in (("a", "y"), ("y", "x"))]
    outer = function("Four", ["a"], ["x"], twice)
    assert calls(agree(called([inner, outer], "Four"), X)) == ["add", "add"]


def test_attributes_of_a_function() -> None:
    """An attribute inside is that of the call; one that the call lacks is that of the function, or of the operator
    inside.
    """
    node = helper.make_node("Softmax", ["x"], ["y"])
    node.attribute.append(onnx.AttributeProto(name="axis", ref_attr_name="along", type=onnx.AttributeProto.INT))
    own = function("Shares", ["x"], ["y"], [node], ["along"])
    assert sums(called([own], "Shares", along=0)) == [1.0, 1.0, 1.0]
    assert sums(called([own], "Shares"), axis=1) == [1.0, 1.0]
    own.ClearField("attribute")
    own.attribute_proto.append(helper.make_attribute("along", 0))
    assert sums(called([own], "Shares")) == [1.0, 1.0, 1.0]


def sums(proto: onnx.ModelProto, axis: int = 0) -> list[float]:
    """The sums along an axis of what a model makes."""
    found: list[float] = run_graph(graph_from(proto), {"x": X})[0].sum(axis=axis).round(5).tolist()
    return found


def test_attributes_of_a_function_in_its_branches() -> None:
    """A node in a branch has the attributes of the call as well."""
    leaky = helper.make_node("LeakyRelu", ["x"], ["b"])
    leaky.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    branch = helper.make_graph([leaky], "then", [], [info("b")])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["c"])], "else", [], [info("c")])
    held = helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(np.array(True)))
    chosen = helper.make_node("If", ["k"], ["y"], then_branch=branch, else_branch=other)
    own = function("Leaky", ["x"], ["y"], [held, chosen], ["slope"])
    for call, slope in ((called([own], "Leaky", slope=0.5), 0.5), (called([own], "Leaky"), 0.01)):
        made = run_graph(graph_from(call), {"x": X})[0]
        np.testing.assert_allclose(made, np.where(X < 0, np.float32(slope) * X, X), rtol=1e-6)


def test_operands_of_a_function_that_are_left_out() -> None:
    """An operand that the call leaves out is left out inside as well."""
    own = function("Bounded", ["x", "low", "high"], ["y"], [helper.make_node("Clip", ["x", "low", "high"], ["y"])])
    proto = called([own], "Bounded", ["x", "", "most"])
    proto.graph.initializer.append(numpy_helper.from_array(np.array(0.5, np.float32), "most"))
    np.testing.assert_array_equal(run_graph(graph_from(proto), {"x": X})[0], np.minimum(X, np.float32(0.5)))


def test_functions_without_an_end() -> None:
    """Functions that call each other are an error."""
    first = function("First", ["x"], ["y"], [helper.make_node("Second", ["x"], ["y"], domain=OWN)])
    second = function("Second", ["x"], ["y"], [helper.make_node("First", ["x"], ["y"], domain=OWN)])
    with pytest.raises(LayoutproofError, match=r"First call: .*without an end"):
        graph_from(called([first, second], "First"))


def test_functions_that_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions each of which calls the next one twice are an error before there are too many nodes."""
    monkeypatch.setattr(convert, "MOST_NODES", 1000)
    functions = [
        function(
            f"F{k}",
            ["x"],
            ["y"],
            [helper.make_node(f"F{k + 1}", [a], [b], domain=OWN) for a, b in (("x", "h"), ("h", "y"))],
        )
        for k in range(24)
    ]
    last = function("F24", ["x"], ["y"], [helper.make_node("Identity", ["x"], ["y"])])
    with pytest.raises(LayoutproofError, match=r"more than .* nodes"):
        graph_from(called([*functions, last], "F0"))


def test_what_is_wrong_in_a_function() -> None:
    """An error inside names the call and the node."""
    own = function("Wrong", ["x"], ["y"], [helper.make_node("Softmax", ["x"], ["y"], axis=7, name="inside")])
    with pytest.raises(LayoutproofError, match=r"own.operators.Wrong call: Softmax inside: there is no axis 7"):
        graph_from(called([own], "Wrong"))
    with pytest.raises(LayoutproofError, match=r"own.operators.Wrong call: it has 2 operands, expected are 1"):
        graph_from(called([own], "Wrong", ["x", "x"]))


def branches(condition: bool | None, then: str = "Relu") -> onnx.ModelProto:
    """A model with a branch; a condition that is not known is an input."""
    kept = [
        helper.make_graph([helper.make_node(operator, ["x"], [f"{word}_made"])], word, [], [info(f"{word}_made")])
        for word, operator in (("then", then), ("else", "Tanh"))
    ]
    node = helper.make_node("If", ["c"], ["y"], name="choice", then_branch=kept[0], else_branch=kept[1])
    held = [numpy_helper.from_array(np.array(condition), "c")] if condition is not None else []
    more = [helper.make_tensor_value_info("c", TensorProto.BOOL, [])] if condition is None else []
    return model([node], [info("x", X), *more], [info("y")], held)


@pytest.mark.parametrize("condition", [True, False])
def test_branches(condition: bool) -> None:
    """The branch that is taken is done, the other one is not looked at."""
    assert calls(agree(branches(condition), X)) == ["relu" if condition else "tanh"]
    assert calls(graph_from(branches(False, "Hardmax"))) == ["tanh"]


def test_branches_that_are_not_known() -> None:
    """Which branch is taken must be known when the model is read."""
    with pytest.raises(LayoutproofError, match="If choice: c is not known before the model runs"):
        graph_from(branches(None))


@pytest.mark.parametrize("operator", ["Loop", "Scan"])
def test_loops_are_refused(operator: str) -> None:
    """Nodes that run others again and again are an error that names them."""
    body = helper.make_graph([helper.make_node("Identity", ["a"], ["b"])], "body", [info("a", X)], [info("b")])
    attributes: dict[str, Any] = {"body": body, **({"num_scan_inputs": 1} if operator == "Scan" else {})}
    node = helper.make_node(operator, ["x"] if operator == "Scan" else ["", "", "x"], ["y"], **attributes)
    with pytest.raises(LayoutproofError, match=rf"{operator} \(1 node\)"):
        graph_from(model([node], [info("x", X)], [info("y")]))


Q, K, V = filled(1, 2, 3, 4), filled(1, 2, 5, 4, seed=1), filled(1, 2, 5, 4, seed=2)


@pytest.mark.parametrize(
    ("mask", "attributes"),
    [
        (None, {}),
        (None, {"is_causal": 1}),
        (None, {"scale": 0.3, "softcap": 2.0}),
        (filled(3, 5, seed=3), {}),
        (filled(3, 5, seed=3) > 0, {}),
    ],
)
def test_attention(mask: Any, attributes: dict[str, Any]) -> None:
    """Attention is what ONNX defines it by: products, a mask, shares."""
    operands: list[Array | Held | None] = [Q, K, V, *([Held(mask)] if mask is not None else [])]
    assert "softmax" in calls(agree(one("Attention", operands, opset=23, **attributes), Q, K, V))


def test_attention_of_grouped_heads() -> None:
    """Heads stored side by side, several for one of the keys, and the products as a second result."""
    q, k, v = filled(2, 3, 24), filled(2, 5, 12, seed=1), filled(2, 5, 12, seed=2)
    proto = one("Attention", [q, k, v], opset=23, results=4, q_num_heads=4, kv_num_heads=2)
    del proto.graph.output[1:3]
    proto.graph.node[0].output[1] = proto.graph.node[0].output[2] = ""
    agree(proto, q, k, v)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("dim", [0, 4])
def test_rotary_embedding(interleaved: int, dim: int) -> None:
    """Rotated pairs of elements, of all of a head or of its first part, by angles that are looked up."""
    x, half = filled(1, 2, 3, 8), (dim or 8) // 2
    angles = filled(5, half, seed=1)
    places = np.array([[0, 2, 4]])
    operands: list[Array | Held | None] = [x, Held(np.cos(angles)), Held(np.sin(angles)), places]
    agree(one("RotaryEmbedding", operands, opset=23, interleaved=interleaved, rotary_embedding_dim=dim), x, places)


@pytest.mark.parametrize(
    ("operator", "operands", "attributes"),
    [
        ("MeanVarianceNormalization", [filled(2, 3, 2, 2)], {}),
        ("CenterCropPad", [filled(3, 4), Held(np.array([5, 2]))], {}),
        ("ReduceSumSquare", [filled(3, 4)], {}),
        ("SoftmaxCrossEntropyLoss", [filled(3, 4), np.array([0, 3, 1])], {}),
        ("Range", [Held(np.array(1)), Held(np.array(9)), Held(np.array(3))], {}),
    ],
)
def test_what_onnx_defines_by_other_operators(operator: str, operands: list[Any], attributes: dict[str, Any]) -> None:
    """An operator without a translation of its own is done as ONNX defines it."""
    agree(one(operator, operands, **attributes), *(operand for operand in operands if isinstance(operand, np.ndarray)))


def test_values_have_the_names_of_the_model() -> None:
    """What a node makes is called as in the model, of a node that becomes several calls the last one's; what is alike
    gets a number.
    """
    x = filled(2, 3)
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["/layer/0"], alpha=0.5),
        helper.make_node("Relu", ["/layer/0"], ["_layer_0"]),
        helper.make_node("Identity", ["_layer_0"], ["same"]),
        helper.make_node("Tanh", ["same"], ["x.1"]),
        helper.make_node("Identity", ["x.1"], ["last"]),
    ]
    graph = agree(model(nodes, [info("x", x)], [info("last")], [numpy_helper.from_array(filled(3, 3), "w")]), x)
    assert [value.name for step in graph.steps for value in step.results] == [
        "matmul",
        "_layer_0",
        "_layer_0_1",
        "last",
    ]
    assert graph.outputs == ("last",)
