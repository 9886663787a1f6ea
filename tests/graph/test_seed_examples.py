"""The functions that Relax's issue shows, as it writes them: layouts that flow through them, and rewrites lifted
out of them.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.graph.nets import arrays_for, filled
from tests.tree import ROOT

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.flow.layout_flow import flow, relaid
from layoutproof.graph.model.graph import Call, Graph, LayoutTransform, is_frozen, shape_of
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.planning.planner import plan
from layoutproof.graph.rewrite.hoist_rewrites import hoist_layout_rewrites, hoisted_graph
from layoutproof.graph.rewrite.recognise import operators_of
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import load_module, loads
from layoutproof.verify.verdict.verdict import Status

MODULE = load_module(ROOT / "tests" / "data" / "seeds" / "relax_layouts.py")
RELU, TRANSFORM, MATMUL = MODULE["relu"], MODULE["layout_transform"], MODULE["matmul"]
# The issue draws these two, and gives no text of them at these sizes.
ADD = loads(
    """
@T.prim_func
def add(
    input: T.Buffer((32, 256, 213, 213), "float32"),
    bias: T.Buffer((256, 1, 1), "float32"),
    output: T.Buffer((32, 256, 213, 213), "float32"),
) -> None:
    for i0, i1, i2, i3 in T.grid(32, 256, 213, 213):
        with T.block("T_add"):
            ax0, ax1, ax2, ax3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
            T.reads(input[ax0, ax1, ax2, ax3], bias[ax1, 0, 0])
            T.writes(output[ax0, ax1, ax2, ax3])
            output[ax0, ax1, ax2, ax3] = input[ax0, ax1, ax2, ax3] + bias[ax1, 0, 0]
""",
    "add.py",
)
SUM = loads(
    """
@T.prim_func
def sum(input: T.Buffer((32, 256, 213, 213), "float32"), output: T.Buffer((32, 256), "float32")) -> None:
    for i0, i1, i2, i3 in T.grid(32, 256, 213, 213):
        with T.block("rxplaceholder_red"):
            ax0, ax1, k2, k3 = T.axis.remap("SSRR", [i0, i1, i2, i3])
            T.reads(input[ax0, ax1, k2, k3])
            T.writes(output[ax0, ax1])
            with T.init():
                output[ax0, ax1] = T.float32(0)
            output[ax0, ax1] = output[ax0, ax1] + input[ax0, ax1, k2, k3]
""",
    "sum.py",
)
BLOCKS = "lambda n, c, h, w: [n, c//4, h, w, c%4]"


@pytest.mark.parametrize(
    ("func", "given", "wanted"),
    [
        (RELU, {"output": BLOCKS}, {"input": BLOCKS}),
        (ADD, {"output": BLOCKS}, {"input": BLOCKS, "bias": "lambda c, a0, a1: [c//4, a0, a1, c%4]"}),
        (SUM, {"output": "lambda n, c: [n, c//4, c%4]"}, {"input": "lambda n, c, a0, a1: [n, c//4, a0, a1, c%4]"}),
        (RELU, {"input": BLOCKS}, {"output": BLOCKS}),
        (SUM, {"input": BLOCKS}, {"output": "lambda n, c: [n, c//4, c%4]"}),
    ],
    ids=["relu", "add", "sum", "relu, forward", "sum, forward"],
)
def test_the_seeds_flows(func: PrimFunc, given: dict[str, str], wanted: dict[str, str]) -> None:
    """The maps that the issue names follow, and each function in them is proved at the issue's sizes; three channels
    leave padding.
    """
    found = flow(func, {buffer: parse_index_map(text) for buffer, text in given.items()})
    assert {buffer: index_map_text(index_map) for buffer, index_map in found.items()} == {**given, **wanted}
    assert all(step.status is Status.PROVED for step in relaid(func, found).steps)


def test_the_seeds_layout_transform_is_recognised() -> None:
    """A layout rewrite written as a function is one bijection, proved to be the function."""
    found = operators_of(TRANSFORM)
    (step,) = found.operators
    assert isinstance(step, LayoutTransform)
    assert index_map_text(step.index_map.rename(["n", "c", "h", "w"])) == BLOCKS
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}


def matmul_graph() -> Graph:
    """A call of the matrix product that stores an operand anew before it starts; the operand is a constant."""
    g = GraphBuilder("main")
    return g.build(*g.call(MATMUL, g.input("x", (16, 16)), g.constant(filled(16, 16), "w")))


def test_the_seeds_hoisting() -> None:
    """The marked block becomes a function of its own, proved; the rest takes the array that it made, and is frozen."""
    parts = hoist_layout_rewrites(MATMUL)
    assert parts.status is Status.PROVED and is_frozen(parts.rest)
    assert [(buffer.name, shape_of(buffer)) for buffer in parts.rest.buffers] == [
        ("A", (16, 16)),
        ("B_", (16, 4, 4)),
        ("C", (16, 16)),
    ]
    (lifted,) = parts.lifted
    (step,) = operators_of(lifted.function).operators
    assert isinstance(step, LayoutTransform)
    assert index_map_text(step.index_map.rename(["i", "j"])) == "lambda i, j: [j, i//4, i%4]"


def test_the_hoisted_rewrite_goes_into_the_constant() -> None:
    """In a graph the lifted rewrite is one of a constant, so a plan removes it, and the computation stays."""
    graph = matmul_graph()
    hoisted = hoisted_graph(graph)
    assert [isinstance(step, Call) for step in hoisted.steps] == [True, True]
    found = plan(hoisted, {})
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    assert found.count(found.choice) == 0
    inputs = arrays_for(graph)
    np.testing.assert_array_equal(run_graph(graph, inputs)[0], run_graph(found.rewrite.new, inputs)[0])


def test_a_sum_follows_a_convolution_to_nhwc() -> None:
    """The issue's first example: a convolution in NHWC by HWIO, then a sum over the rows, whose result follows without
    an axis' number.
    """
    g = GraphBuilder("relay")
    x = g.input("x", (2, 4, 6, 6))
    made = g.conv2d(x, g.constant(filled(4, 4, 3, 3), "weight"), halo=(1, 1, 1, 1))
    graph = g.build(g.sum(made, (2,)))
    last = "lambda n, c, h, w: [n, h, w, c]"
    found = plan(graph, {"conv2d": {"X": last, "Y": last, "W": "lambda k, c, r, s: [r, s, c, k]"}})
    assert [(each.value, each.target) for each in found.remaining] == [
        ("x", "lambda i0, i1, i2, i3: [i0, i2, i3, i1]"),
        ("sum", "lambda i0, i1, i2: [i0, i1, i2]"),
    ]
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    inputs = arrays_for(graph)
    np.testing.assert_array_equal(run_graph(graph, inputs)[0], run_graph(found.rewrite.new, inputs)[0])
