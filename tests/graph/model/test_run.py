"""Running graphs: what the interpreter makes of a whole graph is what numpy makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.graph.nets import NCHW4C, arrays_for, filled, running_example, two_results
from tests.shares import one_in

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph_run import last_uses, run_graph, run_values
from layoutproof.graph.tuning.kernels import Kernels
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.interp.memory import Fill, Filling


def test_layout_operators_move_elements() -> None:
    """Transforms, pads and crops put each element where they say."""
    g = GraphBuilder()
    x = g.input("x", (1, 6, 2, 2))
    padded = g.pad(x, [(0, 0), (1, 1), (0, 0), (0, 0)], 7.0)
    moved = g.layout_transform(padded, NCHW4C)
    cropped = g.crop(moved, (0, 1, 0, 0, 1), (1, 1, 2, 2, 2))
    data = filled(1, 6, 2, 2)
    whole, part = run_graph(g.build(moved, cropped), {"x": data})
    wanted = (
        np.pad(data, ((0, 0), (1, 1), (0, 0), (0, 0)), constant_values=7)
        .reshape(1, 2, 4, 2, 2)
        .transpose(0, 1, 3, 4, 2)
    )
    np.testing.assert_array_equal(whole, wanted)
    np.testing.assert_array_equal(part, wanted[:, 1:, :, :, 1:3])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_array_without_axes_stays_an_array(dtype: str) -> None:
    """A crop of one number is an array, which kernels take."""
    g = GraphBuilder()
    x = g.input("x", (), dtype)
    graph = g.build(g.add(g.crop(x, (), ()), x))
    data = np.asarray(1.5, numpy_dtype(DType.parse(dtype)))
    kernels = Kernels()
    for found in (run_graph(graph, {"x": data}), run_graph(graph, {"x": data}, runner=kernels, mover=kernels.move)):
        np.testing.assert_array_equal(found[0], data + data)


def test_undefined_padding_holds_what_the_filling_says() -> None:
    """A pad by undef is filled as the run is told."""
    g = GraphBuilder()
    padded = g.pad(g.input("x", (2,)), [(0, 1)], None)
    (found,) = run_graph(g.build(padded), {"x": filled(2)}, filling=Filling(Fill.INFINITY))
    assert found[2] == np.inf


def test_a_graph_of_functions_computes() -> None:
    """The running example is two convolutions with a bias between them."""
    graph = running_example()
    values = run_values(graph, arrays_for(graph))
    np.testing.assert_allclose(values["add"], values["conv2d"] + values["bias"], rtol=1e-6)
    wanted = np.einsum("ncyx,kc->nkyx", values["add"], values["f2"][:, :, 0, 0])
    np.testing.assert_allclose(values[graph.outputs[0]], wanted, rtol=1e-4, atol=1e-5)


@one_in(4)
def test_kernels_agree_with_the_interpreter() -> None:
    """A graph run with generated C gives what the interpreter gives, the library's functions aside bit for bit."""
    graph = running_example()
    inputs = arrays_for(graph)
    for found, wanted in zip(run_graph(graph, inputs, runner=Kernels()), run_graph(graph, inputs), strict=True):
        np.testing.assert_array_equal(found.view(np.int32), wanted.view(np.int32))


def test_several_results_are_run() -> None:
    """An operator with two results gives both."""
    graph = two_results()
    first, second = run_graph(graph, arrays_for(graph))
    assert first.shape == second.shape == (1, 4, 4, 4)
    np.testing.assert_allclose(second.sum(axis=1), 1, rtol=1e-6)


def test_what_nobody_uses_any_more_is_let_go() -> None:
    """A value is kept until the last step that uses it, an output to the end; what nobody uses is let go at once."""
    g = GraphBuilder()
    x = g.input("x", (2, 2))
    first = g.relu(x)
    second = g.sigmoid(first)
    g.relu(second)
    third = g.add(first, second)
    graph = g.build(third, second)
    unused = graph.steps[2].results[0].name
    assert last_uses(graph) == [["x"], [], [unused], [first.name]]
    kept = run_values(graph, {"x": filled(2, 2)})
    for found, name in zip(run_graph(graph, {"x": filled(2, 2)}), graph.outputs, strict=True):
        np.testing.assert_array_equal(found, kept[name])


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "the input x.* is missing"),
        ({"y": filled(2)}, "no input called y"),
        ({"x": filled(3)}, "is given as float32"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(inputs: dict[str, np.ndarray], message: str) -> None:
    """Missing, unknown and misshapen inputs are errors that name them."""
    g = GraphBuilder()
    graph = g.build(g.relu(g.input("x", (2,))))
    with pytest.raises(LayoutproofError, match=message):
        run_graph(graph, inputs)
