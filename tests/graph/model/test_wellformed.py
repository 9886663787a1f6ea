"""The rules of graphs: each is broken once, and said to be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.graph.nets import filled, running_example

from layoutproof.graph import codes
from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Call, Constant, Crop, Graph, LayoutTransform, Pad, Value
from layoutproof.graph.model.wellformed_graph import check_graph, require_graph
from layoutproof.graph.operators.elementwise import unary
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import const
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.script.reader import loads

F32 = DType.parse("float32")


def made(*steps: Call | LayoutTransform | Pad | Crop, outputs: tuple[str, ...] = ("y",)) -> Graph:
    """A graph of one input `x` of 2 by 8 elements."""
    return Graph("g", (Value("x", (2, 8), F32),), (), steps, outputs)


def value(*shape: int, name: str = "y") -> Value:
    return Value(name, shape, F32)


def transform(text: str, *shape: int) -> LayoutTransform:
    return LayoutTransform(value(*shape), "x", parse_index_map(text))


RELU = unary("relu", (2, 8))
BROKEN = {
    codes.VALUE_NAME: made(Call((value(2, 8, name="y/0"),), RELU, ("x",)), outputs=("y/0",)),
    codes.TWO_VALUES: made(Call((value(2, 8, name="x"),), RELU, ("x",)), outputs=("x",)),
    codes.NO_VALUE: made(Call((value(2, 8),), RELU, ("z",))),
    codes.OPERANDS: made(Call((value(2, 8),), RELU, ("x", "x"))),
    codes.OPERAND_TYPE: made(Call((value(8, 2),), unary("relu", (8, 2)), ("x",))),
    codes.RESULT_TYPE: made(Call((value(2, 9),), RELU, ("x",))),
    codes.NO_OUTPUT: made(outputs=("nothing",)),
    codes.TRANSFORM_MAP: made(transform("lambda i, j: [i, j//3, j%3]", 2, 3, 3)),
    codes.PAD_WIDTHS: made(Pad(value(2, 8), "x", ((0, 0), (1, -1)), const(0.0, F32))),
    codes.PAD_SCALAR: made(Pad(value(2, 9), "x", ((0, 0), (0, 1)), const(0))),
    codes.CROP_BOX: made(Crop(value(2, 4), "x", (0, 5), (2, 4))),
}


@pytest.mark.parametrize("code", list(BROKEN))
def test_a_broken_rule_is_named(code: str) -> None:
    """Each rule that a graph breaks is found by its code, and no other one."""
    assert {found.code for found in check_graph(BROKEN[code])} == {code}


def test_two_functions_of_one_name_are_told_apart() -> None:
    """Two functions that differ may not have one name."""
    graph = made(
        Call((value(2, 8, name="a"),), RELU, ("x",)),
        Call((value(2, 8),), replace(unary("exp", (2, 8)), name="relu"), ("a",)),
    )
    assert [found.code for found in check_graph(graph)] == [codes.TWO_FUNCTIONS]


def test_a_constant_holds_what_its_value_says() -> None:
    """A constant with an array of another shape is refused."""
    graph = replace(made(outputs=("c",)), constants=(Constant(value(3, name="c"), filled(4)),))
    assert [found.code for found in check_graph(graph)] == [codes.CONSTANT_DATA]


def test_functions_that_graphs_cannot_call_are_named() -> None:
    """A function with a scalar parameter is no operator of a graph, and the message says why."""
    func = loads(
        """
@T.prim_func
def scaled(X: T.Buffer((2, 8), "float32"), k: T.int32, Y: T.Buffer((2, 8), "float32")):
    for i, j in T.grid(2, 8):
        Y[i, j] = X[i, j]
""",
        "scaled.py",
    )
    with pytest.raises(LayoutproofError, match=r"LP606.*parameter k, which is no array"):
        GraphBuilder().call(func)


def test_a_wellformed_graph_is_given_back() -> None:
    """The issue's running example breaks no rule."""
    graph = running_example()
    assert require_graph(graph) is graph


def test_what_graphs_know_of_themselves() -> None:
    """Producers, consumers and functions are those of the steps."""
    graph = running_example()
    assert [function.name for function in graph.functions()] == ["conv2d", "add", "conv2d_1"]
    assert graph.producers()["add"] is graph.steps[1]
    assert graph.consumers()["conv2d"] == (graph.steps[1],)
    assert graph.rewrites == ()
