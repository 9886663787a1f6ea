"""Graphs that several tests use: the running example of Relax's issue, a diamond, two results, and arrays to run them
on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Graph
from layoutproof.ir.dtype import numpy_dtype

NCHW4C = "lambda n, c, h, w: [n, c//4, h, w, c%4]"


def filled(*shape: int, seed: int = 0) -> NDArray[Any]:
    """An array of small numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def arrays_for(graph: Graph, seed: int = 1) -> Mapping[str, NDArray[Any]]:
    """An array for each input."""
    random = np.random.default_rng(seed)
    return {value.name: random.normal(size=value.shape).astype(numpy_dtype(value.dtype)) for value in graph.inputs}


def running_example() -> Graph:
    """The issue's: a convolution, the addition of a constant bias, another convolution."""
    g = GraphBuilder("running")
    x = g.input("x", (1, 8, 6, 6))
    first = g.conv2d(x, g.constant(filled(8, 8, 3, 3), "f"), halo=(1, 1, 1, 1))
    added = g.add(first, g.constant(filled(8, 1, 1, seed=2), "bias"))
    return g.build(g.conv2d(added, g.constant(filled(4, 8, 1, 1, seed=3), "f2")))


def diamond() -> Graph:
    """Two ways from one value to another."""
    g = GraphBuilder("diamond")
    x = g.input("x", (1, 4, 4, 4))
    start = g.conv2d(x, g.constant(filled(8, 4, 1, 1), "w"))
    left, right = g.relu(start), g.sigmoid(start)
    return g.build(g.conv2d(g.add(left, right), g.constant(filled(4, 8, 1, 1), "w2")))


def two_results() -> Graph:
    """A split whose parts go different ways."""
    g = GraphBuilder("parts")
    x = g.input("x", (1, 8, 4, 4))
    start = g.conv2d(x, g.constant(filled(8, 8, 1, 1), "w"))
    first, second = g.split(start, (4, 4), axis=1)
    return g.build(g.relu(first), g.softmax(second, axis=1))
