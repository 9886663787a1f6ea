"""Folding: every rule in both directions, legal and illegal, and the graph computes what it computed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.graph.nets import NCHW4C, arrays_for
from tests.shares import one_in

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Graph, Value
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.rewrite.fold import Folding, fold
from layoutproof.ir.interp.memory import Fill, Filling
from layoutproof.ir.script.reader import loads
from layoutproof.verify.verdict.verdict import Status

Make = Callable[[GraphBuilder, Value], Value]
BACK = "lambda n, o, h, w, i: [n, o*4 + i, h, w]"
TURN = "lambda i, j, k: [j, k, i]"


def folded(make: Make, shape: tuple[int, ...]) -> Folding:
    """What folding makes of a graph of one input."""
    g = GraphBuilder("g")
    return fold(g.build(make(g, g.input("x", shape))))


def left(graph: Graph) -> list[str]:
    """The layout operators that a graph has."""
    return [type(step).__name__ for step in graph.rewrites]


# What is left, and whether any fold was refused.
CASES: dict[str, tuple[Make, tuple[int, ...], list[str], bool]] = {
    "a transform and its inverse": (
        lambda g, x: g.layout_transform(g.layout_transform(x, NCHW4C), BACK),
        (1, 8, 3, 3),
        [],
        False,
    ),
    "two transforms": (
        lambda g, x: g.layout_transform(g.layout_transform(x, "lambda i, j: [j, i]"), "lambda i, j: [i//2, j, i%2]"),
        (3, 8),
        ["LayoutTransform"],
        False,
    ),
    "shapes that match and maps that do not": (
        lambda g, x: g.layout_transform(g.layout_transform(x, TURN), TURN),
        (4, 4, 4),
        ["LayoutTransform"],
        False,
    ),
    "a turn three times": (
        lambda g, x: g.layout_transform(g.layout_transform(g.layout_transform(x, TURN), TURN), TURN),
        (4, 4, 4),
        [],
        False,
    ),
    "rotations that do not cancel": (
        lambda g, x: g.layout_transform(g.layout_transform(x, "lambda i: [(i + 3) % 8]"), "lambda i: [(i + 3) % 8]"),
        (8,),
        ["LayoutTransform"],
        False,
    ),
    "rotations that cancel": (
        lambda g, x: g.layout_transform(g.layout_transform(x, "lambda i: [(i + 3) % 8]"), "lambda i: [(i + 5) % 8]"),
        (8,),
        [],
        False,
    ),
    "a crop of what was padded": (
        lambda g, x: g.crop(g.pad(x, [(1, 0), (0, 2)], 0.0), (1, 0), (4, 6)),
        (4, 6),
        [],
        False,
    ),
    "a crop of some of what was padded": (
        lambda g, x: g.crop(g.pad(x, [(0, 0), (1, 2)], 0.0), (0, 0), (4, 8)),
        (4, 6),
        ["Pad"],
        False,
    ),
    "a crop of more than was padded": (
        lambda g, x: g.crop(g.pad(x, [(0, 0), (1, 2)], 0.0), (1, 2), (2, 3)),
        (4, 6),
        ["Crop"],
        False,
    ),
    "two crops": (lambda g, x: g.crop(g.crop(x, (1, 1), (3, 4)), (1, 2), (2, 2)), (4, 6), ["Crop"], False),
    "two pads of one value": (lambda g, x: g.pad(g.pad(x, [(0, 1)], 2.0), [(1, 1)], 2.0), (3,), ["Pad"], False),
    "two pads of different values": (
        lambda g, x: g.pad(g.pad(x, [(0, 1)], 2.0), [(1, 1)], 0.0),
        (3,),
        ["Pad", "Pad"],
        True,
    ),
    "a pad of what was cropped, unknown": (
        lambda g, x: g.pad(g.crop(x, (0, 0), (4, 6)), [(0, 0), (0, 2)], 0.0),
        (4, 8),
        ["Crop", "Pad"],
        True,
    ),
    "a pad by undef of what was cropped": (
        lambda g, x: g.pad(g.crop(x, (0, 0), (4, 6)), [(0, 0), (0, 2)], None),
        (4, 8),
        [],
        False,
    ),
    "a pad of what was padded so and cropped": (
        lambda g, x: g.pad(g.crop(g.pad(x, [(0, 2)], 0.0), (0,), (6,)), [(0, 2)], 0.0),
        (6,),
        ["Pad"],
        False,
    ),
    "a pad of what was padded otherwise and cropped": (
        lambda g, x: g.pad(g.crop(g.pad(x, [(0, 2)], 1.0), (0,), (7,)), [(0, 1)], 0.0),
        (6,),
        ["Pad", "Pad"],
        True,
    ),
    "a pad by +0 of what was padded by -0": (
        lambda g, x: g.pad(g.crop(g.pad(x, [(0, 2)], -0.0), (0,), (7,)), [(0, 1)], 0.0),
        (6,),
        ["Pad", "Pad"],
        True,
    ),
    "a pad of what is claimed": (lambda g, x: g.pad(g.crop(x, (0,), (6,), 0.0), [(0, 2)], 0.0), (8,), [], False),
    "a pad of what is claimed to be something else": (
        lambda g, x: g.pad(g.crop(x, (0,), (6,), 1.0), [(0, 2)], 0.0),
        (8,),
        ["Crop", "Pad"],
        True,
    ),
}


@one_in(4)
@pytest.mark.parametrize("name", list(CASES))
def test_a_rule(name: str) -> None:
    """What may be folded is, what may not is refuted by an input that shows it."""
    make, shape, wanted, refused = CASES[name]
    found = folded(make, shape)
    assert left(found.new) == wanted
    assert bool(found.refused) is refused
    assert all(fold.status is Status.PROVED for fold in found.made)
    assert all(fold.status is Status.REFUTED for fold in found.refused)


@one_in(4)
@pytest.mark.parametrize("name", [name for name in CASES if "claimed" not in name and "undef" not in name])
def test_a_folded_graph_computes_what_it_computed(name: str) -> None:
    """The graph before and after give the same arrays, bit for bit."""
    make, shape, _, _ = CASES[name]
    found = folded(make, shape)
    inputs = arrays_for(found.old)
    for before, after in zip(run_graph(found.old, inputs), run_graph(found.new, inputs), strict=True):
        np.testing.assert_array_equal(before.view(np.int32), after.view(np.int32))


def test_what_was_assumed_is_said() -> None:
    """A fold that rests on a crop's claim says whose word it took."""
    found = folded(CASES["a pad of what is claimed"][0], (8,))
    assert [fold.assumed for fold in found.made if fold.assumed] == ["what cropped cuts off of x is T.float32(0.0)"] * 1


def test_rewrites_of_constants_are_computed() -> None:
    """Layout operators on constants leave other constants, whatever undefined padding holds."""
    g = GraphBuilder()
    moved = g.layout_transform(
        g.pad(g.constant(np.arange(6, dtype=np.float32)), [(0, 2)], None), "lambda i: [i//4, i%4]"
    )
    x = g.input("x", (2, 3))
    found = fold(g.build(g.add(x, g.crop(moved, (0, 0), (2, 3)))))
    assert left(found.new) == [] and len(found.new.constants) == 1
    inputs = arrays_for(found.old)
    before, after = run_graph(found.old, inputs, filling=Filling(Fill.ZERO)), run_graph(found.new, inputs)
    np.testing.assert_array_equal(before[0][:, :2], after[0][:, :2])


def test_a_value_that_others_use_stays() -> None:
    """A fold changes one use; what others need of the operators in between is kept."""
    g = GraphBuilder()
    moved = g.layout_transform(g.input("x", (8,)), "lambda i: [i//4, i%4]")
    back = g.layout_transform(moved, "lambda i, j: [4*i + j]")
    found = fold(g.build(g.relu(moved), back))
    assert left(found.new) == ["LayoutTransform"]
    assert found.new.outputs == ("relu", "x")


def test_padding_and_moving_back_and_forth() -> None:
    """Padded layouts that meet fold into one pad and one transform."""

    def make(g: GraphBuilder, x: Value) -> Value:
        there = g.layout_transform(g.pad(x, [(0, 0), (0, 1), (0, 0), (0, 0)], None), NCHW4C)
        back = g.crop(g.layout_transform(there, BACK), (0, 0, 0, 0), (1, 3, 4, 4))
        return g.relu(g.layout_transform(g.pad(back, [(0, 0), (0, 1), (0, 0), (0, 0)], None), NCHW4C))

    assert left(folded(make, (1, 3, 4, 4)).new) == ["Pad", "LayoutTransform"]


def test_a_call_out_of_the_graph_is_no_unused_step() -> None:
    """A call whose function calls something opaque stays, with what it uses, though no output depends on it."""
    logged = loads(
        """@T.prim_func
def logged(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i]
    T.evaluate(T.call_extern("int32", "log"))
""",
        "f.py",
    )
    g = GraphBuilder("g")
    x = g.input("x", (8,))
    g.call(logged, g.relu(x))
    back = "lambda i: [7 - i]"
    graph = g.build(g.layout_transform(g.layout_transform(x, back), back))
    found = fold(graph).new
    assert left(found) == [] and [func.name for func in found.functions()] == ["relu", "logged"]
