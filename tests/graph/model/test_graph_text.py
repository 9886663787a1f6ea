"""Graphs as text: printed, read back equal, and refused at the right place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.graph.nets import NCHW4C, diamond, filled, running_example, two_results

from layoutproof.graph import codes
from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.graph_files import load_graph, print_graph, save_graph
from layoutproof.graph.graph_reader import parse_graph
from layoutproof.graph.model.graph import Graph
from layoutproof.ir.diagnostic import LayoutproofError


def rewriting() -> Graph:
    """All layout operators, with undef and without, and constants of several types."""
    g = GraphBuilder("rewriting")
    x = g.input("x", (1, 6, 2, 2))
    padded = g.pad(x, [(0, 0), (0, 2), (0, 0), (0, 0)], None)
    moved = g.layout_transform(padded, NCHW4C)
    back = g.layout_transform(moved, "lambda n, o, h, w, i: [n, o*4 + i, h, w]")
    cropped = g.crop(back, (0, 0, 0, 0), (1, 6, 2, 2), -0.0)
    counted = g.constant(np.array([1, -2, 3], dtype=np.int8), "counted")
    special = g.constant(np.array([np.inf, -0.0, 1e-45], dtype=np.float32), "special")
    return g.build(cropped, moved, counted, special, g.constant(np.float64(0.1), "scalar"))


def arrays(graph: Graph) -> dict[str, np.ndarray]:
    """The data of all constants."""
    return {constant.value.name: constant.data for constant in graph.constants}


@pytest.mark.parametrize(
    "graph", [running_example(), diamond(), two_results(), rewriting()], ids=lambda graph: graph.name
)
def test_a_graph_reads_back_equal(graph: Graph) -> None:
    """Print, parse, compare: equal, and the text is the same again."""
    text = print_graph(graph)
    again = parse_graph(text, arrays=arrays(graph))
    assert again == graph
    assert print_graph(again) == text


def test_the_text_of_a_small_graph() -> None:
    """The body of a graph is one assignment for each constant and step."""
    text = print_graph(rewriting())
    body = text[text.index("@G.graph") :]
    assert body == (
        "@G.graph\n"
        'def rewriting(x: G.Tensor((1, 6, 2, 2), "float32")):\n'
        '    counted = G.constant((3,), "int8", data=[1, -2, 3])\n'
        '    special = G.constant((3,), "float32", data=["inf", -0.0, 1.401298464324817e-45])\n'
        '    scalar = G.constant((), "float64", data=[0.1])\n'
        '    padded = G.pad(x, [(0, 0), (0, 2), (0, 0), (0, 0)], T.undef(dtype="float32"))\n'
        "    transformed = G.layout_transform(padded, lambda n, c, h, w: [n, c//4, h, w, c%4])\n"
        "    transformed_1 = G.layout_transform(transformed, lambda n, o, h, w, i: [n, o*4 + i, h, w])\n"
        "    cropped = G.crop(transformed_1, [0, 0, 0, 0], [1, 6, 2, 2], cropped_value=T.float32(-0.0))\n"
        "    return cropped, transformed, counted, special, scalar\n"
    )


def test_files_hold_a_graph_and_its_arrays(tmp_path: Path) -> None:
    """What was saved is loaded, large constants from the file beside the text."""
    graph = running_example()
    save_graph(graph, tmp_path / "net.py")
    assert load_graph(tmp_path / "net.py") == graph
    (tmp_path / "net.npz").unlink()
    with pytest.raises(LayoutproofError, match=f"{codes.CONSTANT_DATA}.*the array of f is missing"):
        load_graph(tmp_path / "net.py")


def test_another_array_is_refused() -> None:
    """An array with another digest than the text says is not taken."""
    graph = running_example()
    wrong = {**arrays(graph), "f": filled(8, 8, 3, 3, seed=9)}
    with pytest.raises(LayoutproofError, match="not the one that the text speaks of"):
        parse_graph(print_graph(graph), arrays=wrong)


HEAD = """
@T.prim_func
def relu(X: T.Buffer((2, 8), "float32"), Y: T.Buffer((2, 8), "float32")):
    for i, j in T.grid(2, 8):
        with T.block("relu"):
            a, b = T.axis.remap("SS", [i, j])
            Y[a, b] = T.max(X[a, b], T.float32(0))

@G.graph
def net(x: G.Tensor((2, 8), "float32")):
"""


@pytest.mark.parametrize(
    ("body", "code", "place"),
    [
        ("    y = relu(z)\n    return y", codes.NO_VALUE, "11:14"),
        ("    y = rule(x)\n    return y", codes.GRAPH_NAME, "11:9"),
        ("    y = G.crap(x)\n    return y", codes.GRAPH_NAME, "11:9"),
        ("    y = relu(x)\n    y = relu(x)\n    return y", codes.TWO_VALUES, "12:5"),
        ("    y, z = relu(x)\n    return y", codes.OPERANDS, "11:12"),
        ("    relu(x)\n    return x", codes.GRAPH_TEXT, "11:5"),
        ("    y = relu(x)", codes.GRAPH_TEXT, "11:5"),
        ("    y = G.layout_transform(x, lambda i: [i])\n    return y", codes.TRANSFORM_MAP, "11:31"),
        ("    y = G.layout_transform(x, lambda i, j: [i, k])\n    return y", "LP116", "11:48"),
        ("    y = G.layout_transform(x, lambda i, j: [i, j//3, j%3])\n    return y", codes.TRANSFORM_MAP, "11:9"),
        ("    y = G.pad(x, [(0, 1)], T.float32(0))\n    return y", codes.PAD_WIDTHS, "11:18"),
        ("    y = G.pad(x, [(0, 1), (0, 0, 0)], T.float32(0))\n    return y", codes.GRAPH_TEXT, "11:27"),
        ("    y = G.pad(x, [(0, 1), (0, 0)], T.float64(0))\n    return y", codes.PAD_SCALAR, "11:9"),
        ("    y = G.crop(x, [0, 4], [2, 5])\n    return y", codes.CROP_BOX, "11:9"),
        ("    y = G.crop(x, [0, 4], [2, 4], value=T.float32(0))\n    return y", codes.GRAPH_TEXT, "11:41"),
        ('    y = G.constant((2,), "float32", data=[1])\n    return y', codes.CONSTANT_DATA, "11:42"),
        ('    y = G.constant((2,), "float33", data=[1, 2])\n    return y', codes.GRAPH_TEXT, "11:26"),
        ('    y = G.constant((2,), "float32")\n    return y', codes.CONSTANT_DATA, "11:9"),
        ('    y = G.constant((1,), "int8", data=[1000])\n    return y', "LP115", "11:40"),
    ],
)
def test_an_error_has_its_place(body: str, code: str, place: str) -> None:
    """What is not understood is an error with a code, at its line and column."""
    with pytest.raises(LayoutproofError) as caught:
        parse_graph(f"{HEAD}{body}\n", "net.py")
    first = caught.value.diagnostics[0]
    assert (first.code, str(first.span)) == (code, f"net.py:{place}")


def test_a_text_has_one_graph() -> None:
    """A text without a graph, and one with other code, are refused."""
    with pytest.raises(LayoutproofError, match=r"one function decorated with G\.graph"):
        parse_graph(HEAD[: HEAD.index("@G")])
    with pytest.raises(LayoutproofError, match="only functions decorated"):
        parse_graph("import os\nos.remove('x')\n")


@pytest.mark.parametrize(
    "parameters", ["*x", 'x: G.Tensor((2, 3), "float32"), /', 'x: G.Tensor((2, 3), "float32") = 3']
)
def test_inputs_are_plain_parameters(parameters: str) -> None:
    """Stars, defaults and parameters by place or name alone are refused, and never left out."""
    with pytest.raises(LayoutproofError, match=f"{codes.GRAPH_TEXT}.*inputs are plain parameters"):
        parse_graph(f"@G.graph\ndef m({parameters}):\n    return x\n")


@pytest.mark.parametrize("name", ["a b", "lambda", "1x"])
def test_a_graph_has_a_name_that_its_text_can_have(name: str) -> None:
    """A graph whose text could not be read back is not well-formed."""
    g = GraphBuilder(name)
    with pytest.raises(LayoutproofError, match=f"{codes.VALUE_NAME}.*no name in a text"):
        g.build(g.input("x", (2, 3)))


def test_an_input_holds_numbers() -> None:
    """A handle is no element of an array."""
    with pytest.raises(LayoutproofError, match=f"{codes.RESULT_TYPE}.*elements are numbers"):
        parse_graph('@G.graph\ndef m(x: G.Tensor((2,), "handle")):\n    return x\n')


def test_arrays_that_were_tampered_with_are_refused(tmp_path: Path) -> None:
    """Whatever bytes of the arrays change, they are the same arrays or an error."""
    g = GraphBuilder("held")
    graph = g.build(g.constant(filled(40), "file"))
    save_graph(graph, tmp_path / "held.py")
    arrays, random = (tmp_path / "held.npz"), np.random.default_rng(1)
    data = arrays.read_bytes()
    for _ in range(60):
        spoilt = bytearray(data)
        for place in random.integers(len(data), size=3):
            spoilt[place] = random.integers(256)
        arrays.write_bytes(bytes(spoilt[: random.integers(len(data) // 2, len(data) * 2)]))
        try:
            assert load_graph(tmp_path / "held.py") == graph
        except LayoutproofError as refusal:
            assert refusal.diagnostics[0].code == codes.CONSTANT_DATA
    with pytest.raises(LayoutproofError, match="where the arrays of a graph stand"):
        save_graph(graph, arrays)


@pytest.mark.parametrize("value", [300, 1.5])
def test_a_number_that_the_type_has_not_pads_nothing(value: float) -> None:
    """A builder refuses it with a code."""
    g = GraphBuilder()
    with pytest.raises(LayoutproofError, match=codes.PAD_SCALAR):
        g.pad(g.input("x", (4,), "int8"), [(1, 0)], value)
