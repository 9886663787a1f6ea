"""Random graphs, folds and tampered witnesses, judged by runs of the reference interpreter: nothing proved may be told
apart.

Graphs are wider than those of `tests.graph.random_graphs`: odd channels, integers, two operands that are one value,
rewrites of all kinds in the graph that is planned, frozen layouts drawn at random. Elements are -0.0, NaN and infinity
among others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Call, Constant, Graph, LayoutTransform, Step, Value
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.model.graph_witness import GraphRewrite
from layoutproof.graph.planning.planner import plan
from layoutproof.graph.prove.prove_graph import prove_graph_rewrite
from layoutproof.graph.rewrite.fold import fold
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import DType
from layoutproof.ir.interp.memory import Filling
from layoutproof.ir.interp.run import same_values
from layoutproof.verify.verdict.verdict import Status
from tests.graph.nets import filled

Array = NDArray[Any]
Inputs = Mapping[str, Array]

IMAGES = (
    "lambda n, c, h, w: [n, c//4, h, w, c%4]",
    "lambda n, c, h, w: [n, c//2, h, w, c%2]",
    "lambda n, c, h, w: [n, h, w, c]",
    "lambda n, c, h, w: [n, w//2, c, h, w%2]",
)
SPECIAL = (-0.0, float("nan"), float("inf"), -float("inf"), 0.0)


@dataclass
class Tally:
    """What was tried, by name, and what must never be: claims that were proved, of programs that a run tells apart."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def judge(self, name: str, verdicts: set[Status], equal: bool) -> None:
        """Enter an attempt. A proof of programs that are not equal is wrong."""
        proved = verdicts == {Status.PROVED}
        self.counts[f"{name}: {'proved' if proved else 'not proved'}"] += 1
        if proved and not equal:
            self.wrong.append(name)


class Fixed(Filling):
    """Undefined padding that holds one number: runs with two of them say which elements are undefined."""

    def __init__(self, number: int) -> None:
        self.number = number

    def value(self, dtype: DType) -> int | float:
        """The number, whatever the type."""
        return self.number


def wide_graph(chance: Random) -> Graph:
    """A graph of a few operators on an image of few channels."""
    g = GraphBuilder("wide")
    shape = (1, chance.choice((3, 4, 6, 8)), chance.randint(2, 4), chance.randint(2, 4))
    values = [g.input("x", shape), g.input("z", shape)]
    values.append(_conv(g, chance, values[0]))
    for _ in range(chance.randint(1, 5)):
        values.append(_step(g, chance, values))
    return g.build(*{value.name: value for value in values[-chance.randint(1, 3) :]}.values())


def _conv(g: GraphBuilder, chance: Random, data: Value) -> Value:
    channels = data.shape[1]
    groups = chance.choice([k for k in (1, 1, 1, 2, channels) if channels % k == 0])
    filters = groups * chance.choice((1, 2, 4))
    weight = g.constant(filled(filters, channels // groups, 1, chance.choice((1, 2)), seed=chance.randint(0, 99)), "w")
    return g.conv2d(
        data,
        weight,
        strides=(chance.choice((1, 2)), 1),
        halo=chance.choice(((0, 0, 0, 1), (0, 1, 0, 1))),
        groups=groups,
    )


def _step(g: GraphBuilder, chance: Random, values: list[Value]) -> Value:
    first = chance.choice(values[-3:])
    alike = chance.choice([value for value in values if value.shape == first.shape])
    match chance.choice(
        (
            "conv",
            "conv",
            "twice",
            "alike",
            "bias",
            "unary",
            "turned",
            "rolled",
            "parts",
            "softmax",
            "pooled",
            "pad",
            "crop",
        )
    ):
        case "conv":
            return _conv(g, chance, first)
        case "twice":
            return g.binary(chance.choice(("add", "subtract", "maximum")), first, first)
        case "alike":
            return g.binary(chance.choice(("add", "multiply", "subtract")), first, alike)
        case "bias":
            return g.add(first, g.constant(filled(first.shape[1], 1, 1, seed=chance.randint(0, 99)), "b"))
        case "unary":
            return g.unary(chance.choice(("relu", "abs", "negative", "sigmoid")), first)
        case "turned":
            return g.transpose(first, (0, 1, 3, 2))
        case "rolled":
            return g.layout_transform(first, f"lambda n, c, h, w: [n, (c + 1) % {first.shape[1]}, h, w]")
        case "parts" if first.shape[1] > 1:
            left, right = g.split(first, (1, first.shape[1] - 1), axis=1)
            return g.concat([right, left], axis=1)
        case "softmax":
            return g.softmax(first, axis=chance.choice((1, 2)))
        case "pooled":
            return g.max_pool2d(first, (1, 2), halo=(0, 1, 0, 0))
        case "pad":
            return g.pad(first, [(0, 0), (0, chance.randint(0, 2)), (0, 0), (1, 0)], chance.choice((0.0, -0.0, 1.0)))
        case "crop" if first.shape[3] > 1:
            return g.crop(first, (0, 0, 0, 1), (*first.shape[:3], first.shape[3] - 1))
        case _:
            return g.relu(first)


def wide_layouts(graph: Graph, chance: Random) -> Mapping[str, Mapping[str, str]]:
    """Layouts for some of a graph's operators on images."""
    names = dict.fromkeys(step.function.name for step in graph.steps if isinstance(step, Call))
    kinds = [name for name in ("conv2d", "grouped_conv2d", "depthwise_conv2d") if name in names]
    found: dict[str, Mapping[str, str]] = {}
    for kind in kinds:
        layout = chance.choice(IMAGES)
        found[kind] = (
            {"X": chance.choice((layout, layout, *IMAGES)), "Y": layout} if chance.random() < 0.8 else {"Y": layout}
        )
    if "relu" in names and chance.random() < 0.3:
        found["relu"] = {"Y": chance.choice(IMAGES)}
    return found


def special_arrays(graph: Graph, seed: int) -> Inputs:
    """Arrays for the inputs, a tenth of the elements special."""
    random = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for value in graph.inputs:
        array = random.normal(size=value.shape) * 3
        if value.dtype.is_float:
            array = np.where(random.random(value.shape) < 0.1, random.choice(SPECIAL, size=value.shape), array)
        found[value.name] = array.astype(str(value.dtype))
    return found


def attack_plans(seed: int, graphs: int) -> Tally:
    """Plan graphs, and tamper with what was planned."""
    tally, chance = Tally(), Random(seed)
    for number in range(graphs):
        graph = wide_graph(chance)
        inputs = special_arrays(graph, seed + number)
        try:
            rewrite = plan(graph, wide_layouts(graph, chance)).rewrite
        except LayoutproofError as refusal:
            tally.counts[f"refused: {refusal.diagnostics[0].code}"] += 1
            continue
        wanted = run_graph(graph, inputs)
        tally.judge("as planned", _statuses(rewrite), _equal(wanted, run_graph(rewrite.new, inputs)))
        for name, tampered in _tampered(rewrite, chance):
            try:
                statuses = _statuses(tampered)
            except LayoutproofError:
                tally.counts[f"{name}: malformed"] += 1
                continue
            equal = statuses != {Status.PROVED} or _equal(wanted, run_graph(tampered.new, inputs))
            tally.judge(name, statuses, equal)
    return tally


def _statuses(rewrite: GraphRewrite) -> set[Status]:
    return {verdict.status for verdict in prove_graph_rewrite(rewrite)}


def _equal(first: tuple[Array, ...], second: tuple[Array, ...]) -> bool:
    shapes = [array.shape for array in first] == [array.shape for array in second]
    return shapes and all(bool(same_values(a, b).all()) for a, b in zip(first, second, strict=True))


def _tampered(rewrite: GraphRewrite, chance: Random) -> Iterator[tuple[str, GraphRewrite]]:
    """The rewrite with one thing in it changed, most of which make another program or a witness that lies."""
    new, places, names = rewrite.new, rewrite.places, list(rewrite.places)
    one, other = chance.choice(names), chance.choice(names)
    yield "places swapped", replace(rewrite, places={**places, one: places[other], other: places[one]})
    shuffled = chance.sample(places[one].index_map.outputs, len(places[one].index_map.outputs))
    moved = replace(places[one], index_map=replace(places[one].index_map, outputs=tuple(shuffled)))
    yield "place moved", replace(rewrite, places={**places, one: moved})
    yield (
        "place of another value",
        replace(rewrite, places={**places, one: replace(places[one], value=places[other].value)}),
    )
    if len(rewrite.schedules) > 1:
        first, second = chance.sample(list(rewrite.schedules), 2)
        swapped = {**rewrite.schedules, first: rewrite.schedules[second], second: rewrite.schedules[first]}
        yield "schedules swapped", replace(rewrite, schedules=swapped)
    if new.constants:
        number = chance.randrange(len(new.constants))
        constants = (*new.constants[:number], _spoilt(new.constants[number], chance), *new.constants[number + 1 :])
        yield "constant changed", replace(rewrite, new=replace(new, constants=constants))
    outputs = tuple(chance.choice(like(new, name)) for name in new.outputs)
    yield "other outputs", replace(rewrite, new=replace(new, outputs=outputs))
    for number, step in enumerate(new.steps):
        if chance.random() < 0.4:
            steps = (*new.steps[:number], _turned(new, step, chance), *new.steps[number + 1 :])
            yield f"{type(step).__name__} changed", replace(rewrite, new=replace(new, steps=steps))


def _spoilt(constant: Constant, chance: Random) -> Constant:
    data = constant.data.copy()
    place = chance.randrange(data.size)
    data.reshape(-1)[place] = chance.choice((-data.reshape(-1)[place], *SPECIAL))
    return replace(constant, data=data)


def like(graph: Graph, name: str) -> list[str]:
    """The values of a graph with the shape and the type of one."""
    wanted = graph.by_name()[name]
    return [value.name for value in graph.values() if (value.shape, value.dtype) == (wanted.shape, wanted.dtype)]


def _turned(graph: Graph, step: Step, chance: Random) -> Step:
    """A step on other operands, or with another map."""
    if isinstance(step, LayoutTransform) and chance.random() < 0.5:
        outputs = chance.sample(step.index_map.outputs, len(step.index_map.outputs))
        return replace(step, index_map=replace(step.index_map, outputs=tuple(outputs)))
    if isinstance(step, Call):
        calls = [other for other in graph.steps if isinstance(other, Call)]
        if chance.random() < 0.5:
            return replace(step, function=chance.choice(calls).function)
        return replace(step, operands=tuple(chance.choice(like(graph, name)) for name in step.operands))
    return replace(step, operand=chance.choice(like(graph, step.operand)))


def attack_folds(seed: int, graphs: int) -> Tally:
    """Fold chains of layout operators on inputs and constants; where the old graph's elements are defined, the new
    one's are the same.
    """
    tally, chance = Tally(), Random(seed)
    for number in range(graphs):
        graph = chain_graph(chance)
        inputs = special_arrays(graph, seed + number)
        found = fold(graph)
        tally.counts["folds made"] += len(found.made)
        tally.counts["folds refused"] += len(found.refused)
        first, second = (run_graph(graph, inputs, filling=Fixed(value)) for value in (77, 55))
        made = run_graph(found.new, inputs, filling=Fixed(77))
        for old, other, new in zip(first, second, made, strict=True):
            defined = same_values(old, other)
            if old.shape != new.shape or not (same_values(old, new) | ~defined).all():
                tally.wrong.append(f"graph {number} of {seed}")
    return tally


def chain_graph(chance: Random) -> Graph:
    """Layout operators in a row, with a branch here and there."""
    g = GraphBuilder("chain")
    dtype = chance.choice(("float32", "float32", "int8", "float16"))
    shape = tuple(chance.choice((1, 2, 3, 4, 6)) for _ in range(chance.randint(1, 3)))
    values = [g.input("x", shape, dtype) if chance.random() < 0.8 else g.constant(filled(*shape).astype(dtype), "x")]
    for _ in range(chance.randint(1, 5)):
        source = values[-1] if chance.random() < 0.85 else chance.choice(values)
        kind = chance.random()
        if kind < 0.45:
            values.append(g.layout_transform(source, random_bijection(chance, source.shape)))
        elif kind < 0.75:
            held = (0, 1, -128, None) if dtype == "int8" else (0.0, -0.0, 1.0, float("nan"), None)
            widths = [(chance.choice((0, 0, 1, 2)), chance.choice((0, 0, 1, 2))) for _ in source.shape]
            values.append(g.pad(source, widths, chance.choice(held)))
        else:
            starts = [chance.randrange(min(extent, 3)) for extent in source.shape]
            rest = [extent - start for extent, start in zip(source.shape, starts, strict=True)]
            values.append(g.crop(source, starts, [chance.choice((chance.randint(1, size), size)) for size in rest]))
        if np.prod(values[-1].shape) > 400:
            break
    return g.build(values[-1], *(value for value in values if chance.random() < 0.15))


def random_bijection(chance: Random, shape: tuple[int, ...]) -> str:
    """The text of a bijection of a box: axes in another order, taken apart, put together, turned in a circle, or back
    to front.
    """
    names = [f"a{axis}" for axis in range(len(shape))]
    outputs = list(names)
    axis, kind = (
        chance.randrange(len(shape)),
        chance.choice(("order", "order", "apart", "apart", "joined", "circle", "back")),
    )
    factors = [factor for factor in range(2, shape[axis]) if shape[axis] % factor == 0]
    if kind == "order":
        chance.shuffle(outputs)
    elif kind == "apart" and factors:
        factor = chance.choice(factors)
        outputs[axis] = f"{names[axis]} // {factor}"
        outputs.insert(chance.randrange(len(outputs) + 1), f"{names[axis]} % {factor}")
    elif kind == "joined" and axis + 1 < len(shape):
        outputs[axis : axis + 2] = [f"{names[axis]} * {shape[axis + 1]} + {names[axis + 1]}"]
    elif kind == "circle":
        outputs[axis] = f"({names[axis]} + {chance.randrange(shape[axis])}) % {shape[axis]}"
    elif kind == "back":
        outputs[axis] = f"{shape[axis] - 1} - {names[axis]}"
    return f"lambda {', '.join(names)}: [{', '.join(outputs)}]"
