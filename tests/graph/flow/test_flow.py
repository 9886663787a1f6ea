"""How layouts flow through functions: examples, the operator library in both directions, and where flow stops."""

from __future__ import annotations

import pytest
from tests.graph.nets import NCHW4C
from tests.shares import one_in

from layoutproof.graph.flow.layout_flow import NoFlow, flow, relaid
from layoutproof.graph.operators.convolution import Sliding, conv2d
from layoutproof.graph.operators.elementwise import binary, unary
from layoutproof.graph.operators.moving import concat, reshape, split, strided_slice, take, transpose
from layoutproof.graph.operators.normalise import batch_norm, response_norm, softmax
from layoutproof.graph.operators.reduction import dense, reduce
from layoutproof.graph.operators.spatial import avg_pool2d, max_pool2d
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.verify.verdict.verdict import Status

PAIR = "lambda n, c: [n, c//4, c%4]"
CHANNEL = "lambda c: [c//4, c%4]"
BLOCKS = "lambda b, t, d: [b, d//8, t, d%8]"
HEADS = "lambda b, t, h, d: [b, h, t, d]"
WEIGHT = "lambda c, a0, h, w: [c//4, a0, h, w, c%4]"

CASES: dict[str, tuple[PrimFunc, dict[str, str], dict[str, str]]] = {
    "relu, backward": (unary("relu", (1, 8, 3, 3)), {"Y": NCHW4C}, {"X": NCHW4C}),
    "relu, forward": (unary("relu", (1, 8, 3, 3)), {"X": NCHW4C}, {"Y": NCHW4C}),
    "bias, backward": (
        binary("add", (2, 8, 3, 3), (8, 1, 1)),
        {"Y": NCHW4C},
        {"A": NCHW4C, "B": "lambda c, a0, a1: [c//4, a0, a1, c%4]"},
    ),
    "bias, forward from the bias": (
        binary("add", (2, 8, 3, 3), (8, 1, 1)),
        {"B": "lambda c, a0, a1: [c//4, a0, a1, c%4]"},
        {"A": "lambda a0, c, a1, a2: [a0, c//4, a1, a2, c%4]", "Y": "lambda a0, c, a1, a2: [a0, c//4, a1, a2, c%4]"},
    ),
    "sum, backward": (
        reduce("sum", (2, 8, 3, 3), (2, 3)),
        {"Y": PAIR},
        {"X": "lambda n, c, a0, a1: [n, c//4, a0, a1, c%4]"},
    ),
    "sum, forward": (reduce("sum", (2, 8, 3, 3), (2, 3)), {"X": NCHW4C}, {"Y": PAIR}),
    "mean through a temporary": (reduce("mean", (2, 8, 3, 3), (2, 3)), {"X": NCHW4C}, {"S": PAIR, "Y": PAIR}),
    "pooling": (max_pool2d((1, 8, 7, 7), (3, 3), (2, 2), (1, 1, 1, 1)), {"Y": NCHW4C}, {"X": NCHW4C}),
    "pooling to NHWC": (
        avg_pool2d((1, 8, 7, 7), (3, 3), (2, 2)),
        {"X": "lambda n, c, h, w: [n, h, w, c]"},
        {"S": "lambda n, c, h, w: [n, h, w, c]", "Y": "lambda n, c, h, w: [n, h, w, c]"},
    ),
    "batch norm": (
        batch_norm((1, 8, 3, 3)),
        {"Y": NCHW4C},
        {"X": NCHW4C, "G": CHANNEL, "B": CHANNEL, "M": CHANNEL, "V": CHANNEL},
    ),
    "softmax along the tiled axis": (softmax((2, 8, 1, 1), 1), {"X": NCHW4C}, {"E": NCHW4C, "Y": NCHW4C}),
    "concat": (concat(((1, 8, 3, 3), (1, 4, 3, 3)), 1), {"Y": NCHW4C}, {"X0": NCHW4C, "X1": NCHW4C}),
    "concat, from one part": (concat(((1, 8, 3, 3), (1, 4, 3, 3)), 1), {"X1": NCHW4C}, {"X0": NCHW4C, "Y": NCHW4C}),
    "split": (split((1, 12, 3, 3), (4, 8), 1), {"Y1": NCHW4C}, {"X": NCHW4C, "Y0": NCHW4C}),
    "transpose": (
        transpose((1, 4, 8, 3), (0, 2, 1, 3)),
        {"Y": NCHW4C},
        {"X": "lambda n, h, c, w: [n, c//4, h, w, c%4]"},
    ),
    "flattening of ones": (reshape((1, 8, 1, 1), (1, 8)), {"X": NCHW4C}, {"Y": "lambda a0, c: [a0, c//4, c%4]"}),
    "slice beside the tiles": (
        strided_slice((8, 8), (0, 0), (4, 8), (2, 1)),
        {"Y": "lambda i, j: [i, j//4, j%4]"},
        {"X": "lambda i, j: [i, j//4, j%4]"},
    ),
    "swizzle": (unary("relu", (8, 8)), {"Y": "lambda i, j: [i, i ^ j]"}, {"X": "lambda i, j: [i, i ^ j]"}),
    "convolution, both layouts given": (
        conv2d((1, 8, 5, 5), (8, 8, 3, 3), Sliding(halo=(1, 1, 1, 1))),
        {"X": NCHW4C, "Y": NCHW4C},
        {"P": NCHW4C, "W": "lambda c, a0, h, w: [c//4, a0//4, h, w, a0%4, c%4]"},
    ),
    "depthwise convolution": (conv2d((1, 8, 5, 5), (8, 1, 3, 3), groups=8), {"Y": NCHW4C}, {"X": NCHW4C, "W": WEIGHT}),
    "grouped convolution, groups of whole blocks": (
        conv2d((1, 16, 3, 3), (16, 8, 1, 1), groups=2),
        {"X": NCHW4C, "Y": NCHW4C},
        {"W": "lambda c, a0, h, w: [c//4, a0//4, h, w, a0%4, c%4]"},
    ),
    "channels taken apart in whole blocks": (
        reshape((1, 16, 2, 2), (1, 2, 8, 2, 2)),
        {"X": NCHW4C},
        {"Y": "lambda a0, a1, c, h, w: [a0, a1, c//4, h, w, c%4]"},
    ),
    "heads taken apart, forward": (
        reshape((1, 4, 16), (1, 4, 2, 8)),
        {"X": BLOCKS},
        {"Y": "lambda a0, t, a1, a2: [a0, a1, t, a2]"},
    ),
    "heads taken apart, backward": (
        reshape((1, 4, 16), (1, 4, 2, 8)),
        {"Y": HEADS},
        {"X": "lambda a0, t, a1: [a0, a1//8, t, a1%8]"},
    ),
    "heads put together, forward": (
        reshape((1, 4, 2, 8), (1, 4, 16)),
        {"X": HEADS},
        {"Y": "lambda a0, t, a1: [a0, a1//8, t, a1%8]"},
    ),
    "heads put together, backward": (
        reshape((1, 4, 2, 8), (1, 4, 16)),
        {"Y": BLOCKS},
        {"X": "lambda a0, t, a1, a2: [a0, a1, t, a2]"},
    ),
    "parts of heads": (
        reshape((1, 4, 2, 8), (1, 4, 16)),
        {"X": "lambda b, t, h, d: [b, h, d//4, t, d%4]"},
        {"Y": "lambda a0, t, a1: [a0, a1//8, a1%8//4, t, a1%4]"},
    ),
    "two axes taken apart": (
        reshape((6, 20), (2, 3, 4, 5)),
        {"Y": "lambda a, b, c, d: [c, a, d, b]"},
        {"X": "lambda a0, a1: [a1//5, a0//3, a1%5, a0%3]"},
    ),
    "axes put together that stand as they did": (
        reshape((2, 3, 4), (6, 4)),
        {"X": "lambda a, b, c: [c, a, b]"},
        {"Y": "lambda a, c: [c, a]"},
    ),
    "dense": (dense((2, 8), (4, 8)), {"X": PAIR}, {"W": "lambda a0, c: [a0, c//4, c%4]"}),
}


@one_in(10)
@pytest.mark.parametrize("name", list(CASES))
def test_a_layout_flows_and_is_proved(name: str) -> None:
    """Each array gets the layout that follows, and the function in these layouts is proved to be the function, bit for
    bit.
    """
    func, given, wanted = CASES[name]
    found = flow(func, {buffer: parse_index_map(text) for buffer, text in given.items()})
    assert {buffer: index_map_text(index_map) for buffer, index_map in found.items()} == {**given, **wanted}
    schedule = relaid(func, found)
    assert all(step.status is Status.PROVED for step in schedule.steps)
    assert not any(verdict.strictness for step in schedule.steps for verdict in step.verdicts)


STOPS: dict[str, tuple[PrimFunc, dict[str, str], str]] = {
    "a strided slice on a tiled axis": (
        strided_slice((8, 8), (0, 0), (4, 8), (2, 1)),
        {"Y": "lambda i, j: [i//4, j, i%4]"},
        r"X\[v0\*2, v1\] mixes",
    ),
    "windows on a tiled axis": (
        max_pool2d((1, 2, 8, 8), (2, 2), (2, 2)),
        {"Y": "lambda n, c, h, w: [n, c, h//2, w, h%2]"},
        "takes `h//2` from an index that X",
    ),
    "neighbours on a tiled axis": (
        response_norm((1, 8, 2, 2), 3, 0.1, 0.75, 1.0),
        {"Y": NCHW4C},
        r"X\[v0, v1 \+ d - 1, v2, v3\] would not be a clean image",
    ),
    "parts that are no whole blocks": (
        concat(((1, 24, 3, 3), (1, 24, 3, 3)), 1),
        {"Y": "lambda n, c, h, w: [n, c//16, h, w, c%16]"},
        "would not be a clean image",
    ),
    "channels taken apart": (reshape((1, 12, 2, 2), (1, 4, 3, 2, 2)), {"X": NCHW4C}, r"Y\[v0, v1, v2, v3, v4\] mixes"),
    "groups that are no whole blocks": (
        conv2d((1, 12, 3, 3), (12, 6, 1, 1), groups=2),
        {"X": NCHW4C, "Y": NCHW4C},
        r"W\[k, c, r, s\] mixes",
    ),
    "rows that become one axis": (reshape((1, 8, 3, 3), (1, 72)), {"X": NCHW4C}, r"Y\[v0, v1\] mixes"),
    "an axis that is turned around": (
        take((8, 4), 0, (7, 6, 5, 0, 0, 2)),
        {"X": "lambda i, j: [i//4, j, i%4]"},
        "is no layout: .* below|at least 0",
    ),
    "two layouts that do not agree": (
        binary("add", (8, 8), (8, 8)),
        {"A": "lambda i, j: [i, j//4, j%4]", "B": "lambda i, j: [i, j//2, j%2]"},
        "another way",
    ),
}


@pytest.mark.parametrize("name", list(STOPS))
def test_a_layout_stops_and_says_why(name: str) -> None:
    """Where an access would not be a clean image, the flow stops there and names the access."""
    func, given, reason = STOPS[name]
    with pytest.raises(NoFlow, match=reason):
        flow(func, {buffer: parse_index_map(text) for buffer, text in given.items()})


def test_a_gather_stops_the_flow() -> None:
    """An index that is loaded follows nothing."""
    func = loads(
        """
@T.prim_func
def gather(X: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), Y: T.Buffer((8,), "float32")):
    T.func_attr({"tir.noalias": True})
    for i in range(8):
        with T.block("gather"):
            v = T.axis.spatial(8, i)
            Y[v] = X[I[v]]
""",
        "gather.py",
    )
    with pytest.raises(NoFlow, match=r"X\[I\[v\]\]"):
        flow(func, {"Y": parse_index_map(CHANNEL)})


def test_names_and_maps_that_do_not_fit_are_errors() -> None:
    """A buffer that is not there, and a map of another arity, are wrong input."""
    func = unary("relu", (8,))
    with pytest.raises(LayoutproofError, match="no buffer called 'Z'"):
        flow(func, {"Z": parse_index_map(CHANNEL)})
    with pytest.raises(LayoutproofError, match="takes 2 indices"):
        flow(func, {"Y": parse_index_map(PAIR)})
