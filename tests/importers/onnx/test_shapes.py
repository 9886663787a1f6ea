"""What is known when a model is read is computed then: shapes and all that exporters make of them, against ONNX's
reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.graph.nets import filled
from tests.importers.onnx.nodes import Array, Held, agree, calls, graph_from, info, ints, model, one

from layoutproof.graph.model.graph_run import run_graph
from layoutproof.importers.onnx.constant_nodes import FOLDED
from layoutproof.importers.onnx.convert import graph_of
from layoutproof.importers.onnx.onnx_model import MOST_BYTES, model_of
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import DType
from layoutproof.ir.semantics import round_float

N = np.array([[3, -4, 5], [7, 2, -9]])
J = np.array([[2, 3, -2], [-3, 1, 4]])
F = filled(2, 3)
G = np.abs(filled(2, 3, seed=1)) + 0.5
B = np.array([[True, False, True], [False, False, True]])
AXIS = np.array(1)
KNOWN: dict[str, tuple[list[Array | None], dict[str, Any]]] = {
    "Abs": ([N], {}),
    "Add": ([N, J[0]], {}),
    "And": ([B, B[1]], {}),
    "ArgMax": ([F], {"axis": 1, "keepdims": 0}),
    "ArgMin": ([N], {"axis": 0, "select_last_index": 1}),
    "BitwiseAnd": ([N, J], {}),
    "BitwiseNot": ([N], {}),
    "BitwiseOr": ([N, J], {}),
    "BitwiseXor": ([N, J], {}),
    "Cast": ([F * 9], {"to": TensorProto.INT64}),
    "CastLike": ([F, N], {}),
    "Ceil": ([F], {}),
    "Clip": ([N, np.array(-3), np.array(4)], {}),
    "Cos": ([F], {}),
    "CumSum": ([N, AXIS], {"exclusive": 1, "reverse": 1}),
    "Div": ([F, G], {}),
    "Equal": ([N, N.T[:1, :1]], {}),
    "Erf": ([F], {}),
    "Exp": ([F], {}),
    "Floor": ([F], {}),
    "Greater": ([N, J], {}),
    "GreaterOrEqual": ([N, N], {}),
    "Less": ([F, G], {}),
    "LessOrEqual": ([N, J], {}),
    "Log": ([G], {}),
    "MatMul": ([F, G.T], {}),
    "Max": ([N, J, np.array(1)], {}),
    "Min": ([F, G], {}),
    "Mod": ([N, J], {}),
    "Mul": ([N, J], {}),
    "Neg": ([F], {}),
    "Not": ([B], {}),
    "OneHot": ([np.array([0, 2, -1]), np.array(3), np.array([0.0, 5.0], np.float32)], {"axis": 0}),
    "Or": ([B, B[1]], {}),
    "Pow": ([N, np.array([2, 0, 1])], {}),
    "Reciprocal": ([G], {}),
    "Relu": ([F], {}),
    "Round": ([np.array([0.5, 1.5, -2.5, 1.2], np.float32)], {}),
    "ScatterND": ([N, np.array([[0, 1], [-1, 2]]), np.array([50, 60])], {}),
    "Sigmoid": ([F], {}),
    "Sign": ([N], {}),
    "Sin": ([F], {}),
    "Sqrt": ([G], {}),
    "Sub": ([N, J], {}),
    "Sum": ([F, G, F], {}),
    "Tanh": ([F], {}),
    "Where": ([B, N, J], {}),
    "Xor": ([B, B[1]], {}),
}
OTHERS: dict[str, tuple[list[Array | None], dict[str, Any]]] = {
    "Clip from below": ([F, np.array(0, np.float32)], {}),
    "Clip from above": ([F, None, np.array(0.5, np.float32)], {}),
    "Concat": ([N, J], {"axis": -1}),
    "CumSum of large and small": ([np.array([1, 1e20, 5, np.inf, 2], np.float32), np.array(0)], {"exclusive": 1}),
    "ConstantOfShape": ([np.array([2, 3])], {"value": numpy_helper.from_array(np.array([7], np.int32))}),
    "Expand": ([N, np.array([2, 2, 3])], {}),
    "Gather": ([N, np.array([2, -1])], {"axis": 1}),
    "Gather one": ([N[0], np.array(-1)], {}),
    "GatherElements": ([N, np.array([[1, 0, 0]])], {"axis": 0}),
    "Mod of floats": ([F, G], {"fmod": 1}),
    "NonZero": ([B], {}),
    "Pad": ([N, np.array([1, 0, 0, 2])], {"mode": "reflect"}),
    "Range": ([np.array(10), np.array(1), np.array(-3)], {}),
    "Range of floats": ([np.array(0, np.float32), np.array(1.0, np.float32), np.array(0.3, np.float32)], {}),
    "ReduceMax": ([N, np.array([1])], {"keepdims": 0}),
    "ReduceProd": ([N], {}),
    "Reshape": ([N, np.array([-1, 2])], {}),
    "Slice": ([N, np.array([2]), np.array([-(2**31)]), np.array([1]), np.array([-2])], {}),
    "Split": ([N, np.array([3])], {"axis": 1}),
    "Squeeze": ([N[None], np.array([0])], {}),
    "Tile": ([N, np.array([2, 1])], {}),
    "Transpose": ([N], {}),
    "Trilu": ([N], {}),
    "Unsqueeze": ([N, np.array([-1])], {}),
    "EyeLike": ([N], {"k": 1, "dtype": TensorProto.FLOAT}),
    "Shape": ([N], {"start": 1}),
    "Size": ([N], {}),
}


@pytest.mark.parametrize("name", [*KNOWN, *OTHERS])
def test_known_operands(name: str) -> None:
    """A node whose operands stand in the model is computed when it is read: the graph calls nothing for it."""
    operands, attributes = {**KNOWN, **OTHERS}[name]
    proto = one(name.split()[0], [Held(a) if a is not None else None for a in operands], **attributes)
    assert calls(agree(proto)) == []


def test_all_that_is_folded_is_tested() -> None:
    """Each operator of the table has an example above."""
    assert set(KNOWN) == set(FOLDED)


@pytest.mark.parametrize(("first", "second", "wanted"), [(7, 2, 3), (-7, 2, -3), (7, -2, -3), (-7, -2, 3), (6, -3, -2)])
def test_integers_are_divided_towards_zero(first: int, second: int, wanted: int) -> None:
    """As ONNX says; its reference does otherwise."""
    graph = graph_from(one("Div", [ints(first), ints(second)]))
    assert graph.constants[0].data.tolist() == [wanted]


def test_known_operands_of_old_versions() -> None:
    """Before version 7 the second operand may stand at an axis: such nodes are calls of the graph."""
    proto = one("Add", [Held(F), Held(np.array([1, 2], np.float32))], opset=6, broadcast=1, axis=0)
    graph = graph_from(proto)
    np.testing.assert_array_equal(run_graph(graph, {})[0], F + np.array([[1], [2]], np.float32))


def test_a_shape_on_its_way() -> None:
    """What exporters write for `x.view(x.size(0), -1, 2)`: only the reshape is left."""
    x = filled(2, 3, 4)
    held = {"zero": np.array(0), "axis": np.array([0]), "rest": np.array([-1, 2])}
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"]),
        helper.make_node("Unsqueeze", ["batch", "axis"], ["first"]),
        helper.make_node("Concat", ["first", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["y"]),
    ]
    proto = model(nodes, [info("x", x)], [info("y")], [numpy_helper.from_array(a, name) for name, a in held.items()])
    assert calls(agree(proto, x)) == ["reshape"]


def test_masks_and_positions() -> None:
    """A triangular mask made of ranges, comparisons and choices is a constant; only the addition is left."""
    x = filled(4, 4)
    held = {"four": np.array(4), "zero": np.array(0), "one": np.array(1), "axis": np.array([1])}
    floats = {"none": np.array(0, np.float32), "much": np.array(-np.inf, np.float32)}
    nodes = [
        helper.make_node("Range", ["zero", "four", "one"], ["columns"]),
        helper.make_node("Unsqueeze", ["columns", "axis"], ["rows"]),
        helper.make_node("LessOrEqual", ["columns", "rows"], ["seen"]),
        helper.make_node("Where", ["seen", "none", "much"], ["mask"]),
        helper.make_node("Add", ["x", "mask"], ["y"]),
    ]
    arrays = [numpy_helper.from_array(a, name) for name, a in {**held, **floats}.items()]
    assert calls(agree(model(nodes, [info("x", x)], [info("y")], arrays), x)) == ["add"]


@pytest.mark.parametrize("form", ["value_float", "value_floats", "value_int", "value_ints", "value"])
def test_constants(form: str) -> None:
    """Each form of a constant."""
    values: dict[str, Any] = {
        "value_float": 1.5,
        "value_floats": [1.0, 2.0],
        "value_int": 3,
        "value_ints": [4, 5],
        "value": numpy_helper.from_array(np.array([True])),
    }
    agree(one("Constant", [], **{form: values[form]}))


@pytest.mark.parametrize(
    ("operator", "operands", "attributes", "message"),
    [
        ("ConstantOfShape", [ints(2**20, 2**20)], {}, f"more than {MOST_BYTES} bytes"),
        ("ConstantOfShape", [ints(-1)], {}, "the shape of no array"),
        ("Expand", [ints(1), ints(2**40)], {}, f"more than {MOST_BYTES} bytes"),
        ("Tile", [ints(1, 2), ints(2**40)], {}, f"more than {MOST_BYTES} bytes"),
        ("Pad", [ints(1), ints(0, 2**40)], {}, f"more than {MOST_BYTES} bytes"),
        ("Range", [Held(np.array(0)), Held(np.array(2**40)), Held(np.array(1))], {}, f"more than {MOST_BYTES} bytes"),
        ("Range", [Held(np.array(0)), Held(np.array(4)), Held(np.array(0))], {}, "no range"),
        ("OneHot", [ints(1), Held(np.array(2**40)), ints(0, 1)], {}, f"more than {MOST_BYTES} bytes"),
        ("Add", [ints(1, 2), ints(1, 2, 3)], {}, "do not go together"),
        ("Add", [ints(1, 2), Held(F)], {}, "differ in type"),
        ("Add", [Held(B), Held(B)], {}, "which it does not take"),
        ("Div", [ints(1), ints(0)], {}, "it divides by zero"),
        ("Mod", [ints(1), ints(0)], {}, "a remainder by zero"),
        ("Mod", [Held(F), Held(G)], {}, "asked for by fmod"),
        ("Pow", [ints(2), ints(-1)], {}, "below zero"),
        ("Cast", [ints(2)], {"to": 8}, "under 8"),
        ("Cast", [ints(2)], {"to": 999}, "under 999"),
        ("MatMul", [Held(F), Held(F)], {}, "no product"),
        ("Where", [ints(1), ints(1), ints(1)], {}, "it chooses by int64"),
        ("ReduceMax", [ints()], {}, "nothing in"),
        ("ArgMax", [ints()], {}, "nothing to choose"),
        ("ScatterND", [ints(1, 2), Held(np.array([[2]])), ints(3)], {}, "places outside"),
        ("NonZero", [F], {}, "not known before the model runs"),
        ("Range", [np.array(0), Held(np.array(4)), Held(np.array(1))], {}, "not known before the model runs"),
        ("Gather", [ints(1, 2), ints(2)], {}, "places outside"),
    ],
)
def test_what_cannot_be_computed_is_named(
    operator: str, operands: list[Any], attributes: dict[str, Any], message: str
) -> None:
    """Too large arrays and operands that do not fit are errors that name the node, before memory is allocated."""
    with pytest.raises(LayoutproofError, match=f"{operator} that makes y0: .*{message}"):
        graph_from(one(operator, operands, **attributes))


def test_what_is_made_adds_up() -> None:
    """Many arrays that are each small enough are not made where all of them are too large."""
    count = MOST_BYTES // 2**29 + 1
    nodes = [helper.make_node("ConstantOfShape", ["shape"], [f"y{k}"]) for k in range(count)]
    proto = model(nodes, [], [info("y0")], [numpy_helper.from_array(np.array([2**27]), "shape")])
    with pytest.raises(LayoutproofError, match=f"ConstantOfShape that makes y{count - 1}: .*more than"):
        graph_of(model_of(proto))


@pytest.mark.parametrize("number", [1 + 2.0**-8 + 2.0**-40, -(1 + 2.0**-8 + 2.0**-40), 2**30 + 2**22 + 1])
def test_bfloat16_is_rounded_once(number: float) -> None:
    """What is just past the middle of two numbers is not first rounded to the middle."""
    graph = graph_from(one("Cast", [Held(np.array([number]))], to=TensorProto.BFLOAT16))
    wanted = round_float(number, DType.parse("bfloat16"))
    assert graph.constants[0].data.astype(np.float64).tolist() == [wanted]
