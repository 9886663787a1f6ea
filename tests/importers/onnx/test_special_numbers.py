"""NaN, infinities and zeros with a sign come out of operators as runtimes of ONNX have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.importers.onnx.nodes import calls, graph_from, ints, one
from tests.importers.onnx.random_nodes import Node

from layoutproof.graph.model.graph_run import run_graph
from layoutproof.importers.onnx.convert import graph_of
from layoutproof.importers.onnx.onnx_model import model_of
from layoutproof.ir.interp.run import same_values

Array = NDArray[Any]
NAN, INF = float("nan"), float("inf")
GIVEN = np.array([NAN, -0.0, 0.0, -1.0, 1.0, INF, -INF, 0.5, 1.5, 2.5, -0.5, -2.5], np.float32)
ONE: dict[str, list[float]] = {
    "Relu": [NAN, -0.0, 0, 0, 1, INF, 0, 0.5, 1.5, 2.5, 0, 0],
    "Sign": [NAN, 0, 0, -1, 1, 1, -1, 1, 1, 1, -1, -1],
    "Round": [NAN, -0.0, 0, -1, 1, INF, -INF, 0, 2, 2, -0.0, -2],
    "Neg": [NAN, 0.0, -0.0, 1, -1, -INF, INF, -0.5, -1.5, -2.5, 0.5, 2.5],
    "Floor": [NAN, -0.0, 0, -1, 1, INF, -INF, 0, 1, 2, -1, -3],
    "Ceil": [NAN, -0.0, 0, -1, 1, INF, -INF, 1, 2, 3, -0.0, -2],
    "HardSigmoid": [NAN, 0.5, 0.5, 0.3, 0.7, 1, 0, 0.6, 0.8, 1, 0.4, 0],
    "HardSwish": [NAN, -0.0, 0, -1 / 3, 2 / 3, INF, NAN, 7 / 24, 1.125, 55 / 24, -5 / 24, -5 / 24],
    "Softplus": [
        NAN,
        0.6931472,
        0.6931472,
        0.3132617,
        1.3132617,
        INF,
        0,
        0.974077,
        1.7014133,
        2.5788898,
        0.474077,
        0.0788898,
    ],
    "LeakyRelu": [NAN, -0.0, 0, -0.01, 1, INF, -INF, 0.5, 1.5, 2.5, -0.005, -0.025],
    "ThresholdedRelu": [0, 0, 0, 0, 0, INF, 0, 0, 1.5, 2.5, 0, 0],
    "Sqrt": [NAN, -0.0, 0, NAN, 1, INF, NAN, 0.70710677, 1.2247449, 1.5811388, NAN, NAN],
    "Reciprocal": [NAN, -INF, INF, -1, 1, 0, -0.0, 2, 2 / 3, 0.4, -2, -0.4],
    "Erf": [NAN, -0.0, 0, -0.8427008, 0.8427008, 1, -1, 0.5204999, 0.9661052, 0.9995931, -0.5204999, -0.9995931],
}
"""What onnxruntime makes of `GIVEN`."""


def made(node: Node) -> Array:
    """What the graph of a node makes."""
    graph = graph_of(model_of(node.model()))
    return run_graph(graph, dict(zip([value.name for value in graph.inputs], node.inputs().values(), strict=True)))[0]


@pytest.mark.parametrize("operator", list(ONE))
def test_an_operator_of_one_operand(operator: str) -> None:
    """It makes what onnxruntime does of numbers that are none, that are infinite, and of zeros, the signs included."""
    found, wanted = made(Node(operator, [GIVEN], {}, 14)), np.array(ONE[operator], np.float32)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    zeros = found == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))


@pytest.mark.parametrize("held", [frozenset[int](), frozenset([1, 2])])
def test_bounds(held: frozenset[int]) -> None:
    """NaN is in no bounds and stays; bounds that are the wrong way round leave the upper one."""
    low, high = np.array(-1, np.float32), np.array(1, np.float32)
    np.testing.assert_array_equal(made(Node("Clip", [GIVEN, low, high], {}, 13, held)), np.clip(GIVEN, -1, 1))
    turned = made(Node("Clip", [GIVEN, np.array(2, np.float32), high], {}, 13, held))
    np.testing.assert_array_equal(turned, np.where(np.isnan(GIVEN), GIVEN, np.float32(1)))


@pytest.mark.parametrize("operator", ["Max", "Min"])
@pytest.mark.parametrize("turned", [False, True])
def test_the_largest_and_smallest_of_several(operator: str, turned: bool) -> None:
    """A NaN in any operand is the result."""
    operands = [GIVEN, np.zeros_like(GIVEN)]
    found = made(Node(operator, operands[::-1] if turned else operands, {}, 13))
    np.testing.assert_array_equal(found, (np.maximum if operator == "Max" else np.minimum)(*operands))


def test_windows_without_numbers() -> None:
    """The largest of windows of negative infinities is that; a NaN that other elements follow is forgotten, as
    onnxruntime does it.
    """
    data = np.array([1, NAN, 2, 3, -INF, -INF, NAN, NAN, NAN, 5, 4, NAN], np.float32).reshape(1, 1, 1, 12)
    found = made(Node("MaxPool", [data], {"kernel_shape": [1, 2], "strides": [1, 2]}, 12))
    np.testing.assert_array_equal(found.reshape(-1), np.array([NAN, 3, -INF, NAN, 5, NAN], np.float32))


def test_integers_are_divided_towards_zero() -> None:
    """Quotients are cut, remainders have the sign that is asked for, and nothing stops at a divisor of zero."""
    first, second = np.array([7, -7, 7, -7, 5, -(2**31)], np.int32), np.array([2, 2, -2, -2, 0, -1], np.int32)
    np.testing.assert_array_equal(made(Node("Div", [first, second], {}, 14)), [3, -3, -3, 3, 0, -(2**31)])
    np.testing.assert_array_equal(made(Node("Mod", [first, second], {}, 13)), [1, 1, -1, -1, 0, 0])
    np.testing.assert_array_equal(made(Node("Mod", [first, second], {"fmod": 1}, 13)), [1, -1, 1, -1, 0, 0])


def test_exponents_of_another_type() -> None:
    """An odd exponent stays odd, though float32 has none as large; a known one that it has needs no other type."""
    base, large = np.array([-1, -1, 2, -3], np.float32), np.array([2**24 + 1, 2**24, -1, 3], np.int64)
    wanted = [-1, 1, 0.5, -27]
    np.testing.assert_array_equal(made(Node("Pow", [base, large], {}, 15)), wanted)
    np.testing.assert_array_equal(made(Node("Pow", [base, large], {}, 15, frozenset([1]))), wanted)
    assert calls(graph_from(one("Pow", [base, ints(2**24 + 1)]))) == ["cast", "power", "cast"]
    assert calls(graph_from(one("Pow", [base, ints(3)]))) == ["power"]


def test_logarithms_of_sums_of_infinities() -> None:
    """The largest element is taken off only where it is a number."""
    rows = np.array([[INF, 1, 2], [-INF, -INF, -INF], [100, 1000, 3], [NAN, INF, 1], [-INF, 0, -INF]], np.float32)
    found = made(Node("ReduceLogSumExp", [rows, np.array([1])], {"keepdims": 0}, 18, frozenset([1])))
    np.testing.assert_array_equal(found, np.array([INF, -INF, 1000, NAN, 0], np.float32))


@pytest.mark.parametrize(
    ("operator", "others"),
    [
        ("Relu", []),
        ("Max", [[0.0], GIVEN[::-1]]),
        ("Min", [[-0.0], GIVEN[::-1]]),
        ("Clip", [0.0, 1.0]),
        ("Clip", [-0.0, 0.0]),
        ("Clip", [-1.0, -0.0]),
    ],
)
def test_zeros_of_what_is_known(operator: str, others: list[Any]) -> None:
    """A node that is computed when the model is read makes what the graph makes of it, signs of zeros included."""
    operands = [GIVEN, *(np.array(other, np.float32) for other in others)]
    live = made(Node(operator, operands, {}, 14))
    held = made(Node(operator, operands, {}, 14, frozenset(range(len(operands)))))
    assert same_values(live, held).all()
