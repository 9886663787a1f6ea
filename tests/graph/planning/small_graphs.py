"""Small random graphs of shapes that are hard to plan, with layouts for some of their calls."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from tests.graph.nets import filled

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Call, Graph, Value

LAYOUTS = (
    "lambda n, c, h, w: [n, c//4, h, w, c%4]",
    "lambda n, c, h, w: [n, h, w, c]",
    "lambda n, c, h, w: [n, c//2, h, w, c%2]",
)


def small_graph(seed: int, steps: int = 5) -> tuple[Graph, Mapping[str, Mapping[str, str]]]:
    """A graph on images of four or of three channels, and maps for some of its calls, by their first results."""
    chance = Random(seed)
    g = GraphBuilder("small")
    channels = chance.choice((4, 4, 3))
    values = [g.input("x", (1, channels, 2, 2)), g.input("z", (1, channels, 2, 2))]
    for _ in range(steps):
        values += step(g, chance, values)
    graph = g.build(*dict.fromkeys([values[-1], *chance.sample(values[2:], chance.randint(0, 2))]))
    held: dict[str, Mapping[str, str]] = {}
    layouts = chance.sample(LAYOUTS, chance.randint(1, 2))
    for call in graph.steps:
        assert isinstance(call, Call)
        name = call.function.name
        if name.startswith("conv2d") and chance.random() < 0.7:
            layout = chance.choice(layouts)
            held[call.results[0].name] = chance.choice(({"X": layout, "Y": layout}, {"X": layout}, {"Y": layout}))
        elif name.startswith("sigmoid"):
            held[call.results[0].name] = {"Y": chance.choice(layouts)}
    return graph, held


def step(g: GraphBuilder, chance: Random, values: list[Value]) -> list[Value]:
    """One operator more, and what it makes."""
    images = [value for value in values if len(value.shape) == 4]
    first = chance.choice(images[-3:])
    channels = first.shape[1]
    alike = [value for value in images if value.shape == first.shape]
    match chance.choice(
        ("conv", "conv", "conv", "add", "add", "bias", "relu", "sigmoid", "pool", "softmax", "split", "concat", "mean")
    ):
        case "conv":
            weight = g.constant(filled(chance.choice((4, channels)), channels, 1, 1), "w")
            return [g.conv2d(first, weight)]
        case "add":
            return [g.add(first, chance.choice(alike))]
        case "bias":
            return [g.multiply(first, g.constant(filled(channels, 1, 1), "b"))]
        case "relu":
            return [g.relu(first)]
        case "sigmoid":
            return [g.sigmoid(first)]
        case "pool" if first.shape[2:] == (2, 2):
            return [g.max_pool2d(first, (2, 2))]
        case "softmax":
            return [g.softmax(first, axis=chance.choice((1, 3)))]
        case "split" if channels == 4:
            return list(g.split(first, (2, 2), axis=1))
        case "concat":
            return [g.concat([first, chance.choice(alike)], axis=chance.choice((1, 2)))]
        case "mean":
            return [g.reduce("mean", first, (2, 3), keep=True)]
        case _:
            return [g.relu(first)]
