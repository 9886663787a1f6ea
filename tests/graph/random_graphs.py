"""Random graphs of small operators, for tests that compare a planned or folded graph with the graph that it was."""

from __future__ import annotations

from random import Random

from tests.graph.nets import NCHW4C, filled

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Graph, Value

BACK = "lambda n, o, h, w, i: [n, o*4 + i, h, w]"


def random_graph(seed: int, *, rewrites: bool = True, channels: int = 8) -> Graph:
    """A graph of a few operators on images of some channels; where there are eight, some go through layout transforms
    and back.
    """
    chance = Random(seed)
    g = GraphBuilder("random")
    values = [g.input("x", (1, channels, 4, 4)), g.input("z", (1, channels, 4, 4))]
    for _ in range(chance.randint(3, 8)):
        values.append(_step(g, chance, values, rewrites, channels))
    return g.build(*values[-chance.randint(1, 3) :])


def _step(g: GraphBuilder, chance: Random, values: list[Value], rewrites: bool, channels: int) -> Value:
    first, second = chance.choice(values[-3:]), chance.choice(values)
    match chance.choice(
        ("conv", "conv", "depthwise", "add", "bias", "unary", "pool", "norm", "response", "halves", "there", "turned")
    ):
        case "conv":
            return g.conv2d(first, g.constant(filled(channels, channels, 1, 1, seed=chance.randint(0, 9)), "w"))
        case "depthwise":
            return g.depthwise_conv2d(
                first, g.constant(filled(channels, 1, 3, 3, seed=chance.randint(0, 9)), "w"), halo=(1, 1, 1, 1)
            )
        case "add":
            return g.add(first, second)
        case "bias":
            return g.multiply(first, g.constant(filled(channels, 1, 1, seed=chance.randint(0, 9)), "b"))
        case "unary":
            return g.unary(chance.choice(("relu", "abs", "negative")), first)
        case "pool":
            return g.max_pool2d(first, (3, 3), halo=(1, 1, 1, 1))
        case "norm":
            made = [g.constant(abs(filled(channels, seed=k)) + filled(1, seed=1) ** 2, "n") for k in range(4)]
            return g.batch_norm(first, *made)
        case "response":
            return g.response_norm(first, size=3, alpha=0.1, beta=1.0, bias=2.0)
        case "halves":
            parts = g.split(first, (channels // 2,) * 2, axis=1)
            return g.concat(chance.sample(parts, 2), axis=1)
        case "there" if rewrites and channels == 8:
            return g.layout_transform(g.layout_transform(first, NCHW4C), BACK)
        case "turned" if channels == 8:
            return g.reshape(g.transpose(g.reshape(first, (1, 2, 4, 4, 4)), (0, 2, 1, 3, 4)), (1, 8, 4, 4))
        case _:
            return g.relu(second)
