"""Layout transforms folded into calls, where that is asked for: before and after the call, proved, and refused where it
cannot be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.graph.nets import NCHW4C, arrays_for, filled

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Graph
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.prove.prove_graph import prove_graph_rewrite
from layoutproof.graph.rewrite.absorb import fold_into_call
from layoutproof.graph.rewrite.fold import fold
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.verify.verdict.verdict import Status

TURN = "lambda i, j: [j, i]"


def stored(layout: str = NCHW4C) -> Graph:
    """A convolution whose result goes out in blocks of channels."""
    g = GraphBuilder("stored")
    made = g.conv2d(g.input("x", (1, 4, 5, 5)), g.constant(filled(8, 4, 3, 3), "w"))
    return g.build(g.layout_transform(made, layout))


def read() -> Graph:
    """A matrix product of a transposed matrix with itself, padded afterwards."""
    g = GraphBuilder("read")
    turned = g.layout_transform(g.input("x", (4, 4)), TURN)
    return g.build(g.pad(g.matmul(turned, turned), [(0, 1), (0, 0)], 0.0))


def shared() -> Graph:
    """A transposed matrix that two operators take, and a transform before it."""
    g = GraphBuilder("shared")
    start = g.relu(g.input("x", (4, 6)))
    turned = g.layout_transform(start, TURN)
    return g.build(g.sigmoid(turned), g.sum(turned, (1,)))


CASES: dict[str, tuple[Callable[[], Graph], str, str, int]] = {
    "stored so": (stored, "transformed", "conv2d", 0),
    "read so, twice": (read, "transformed", "matmul", 0),
    "stored so, for two": (shared, "transformed", "relu", 0),
    "read so by one of two": (shared, "transformed", "sum", 1),
}


@pytest.mark.parametrize("name", list(CASES))
def test_a_transform_goes_into_a_call(name: str) -> None:
    """What is asked for is done, every value is proved to be what it was, and the graph computes the same."""
    make, transformed, call, left = CASES[name]
    graph = make()
    found = fold_into_call(graph, transformed, call)
    assert len(found.new.rewrites) == left
    assert {verdict.status for verdict in prove_graph_rewrite(found)} == {Status.PROVED}
    inputs = arrays_for(graph)
    for before, after in zip(run_graph(graph, inputs), run_graph(found.new, inputs), strict=True):
        np.testing.assert_array_equal(before.view(np.int32), after.view(np.int32))


def test_nothing_goes_into_a_call_unasked() -> None:
    """Folding leaves a transform beside a call."""
    assert len(fold(stored()).new.rewrites) == 1


def test_a_function_of_another_layout_is_not_proved() -> None:
    """A call that stores its result by another map than the transform's is not taken for the fold."""
    found = fold_into_call(stored(), "transformed", "conv2d")
    other = fold_into_call(stored("lambda n, c, h, w: [n, c//4, w, h, c%4]"), "transformed", "conv2d")
    mixed = replace(found, new=other.new, schedules=other.schedules)
    assert any(verdict.status is not Status.PROVED for verdict in prove_graph_rewrite(mixed))


@pytest.mark.parametrize(
    ("make", "transformed", "call", "message"),
    [
        (stored, "conv2d", "conv2d", "no layout_transform makes conv2d"),
        (stored, "transformed", "x", "no call makes x"),
        (shared, "transformed", "sums", "no call makes sums"),
        (lambda: used_besides(), "transformed", "relu", "relu is used besides by others"),
        (lambda: used_besides(), "transformed", "sigmoid", "sigmoid neither makes relu nor takes transformed"),
    ],
)
def test_what_does_not_fit_is_refused(make: Callable[[], Graph], transformed: str, call: str, message: str) -> None:
    """A transform or a call that is not there, and operands that others use too, are wrong input."""
    with pytest.raises(LayoutproofError, match=message):
        fold_into_call(make(), transformed, call)


def used_besides() -> Graph:
    """A value that is transformed, and taken as it is."""
    g = GraphBuilder("besides")
    start = g.relu(g.input("x", (4, 6)))
    return g.build(g.layout_transform(start, TURN), g.sigmoid(start))
