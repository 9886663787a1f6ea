"""Random graphs of every feature, and random options of their plans: layouts, contracts, callbacks, ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.flow.layout_flow import Layouts, NoFlow, flow, relaid
from layoutproof.graph.model.graph import Call, Graph, Shape, Value, shape_of, signature_of
from layoutproof.graph.planning.formulation import FREE, Asked
from layoutproof.graph.planning.planner import Frozen, Plan, plan
from layoutproof.graph.planning.variants import Callback, operator_name
from layoutproof.graph.prove.graph_matching import Replacement
from layoutproof.graph.rewrite.hoist_rewrites import hoisted_graph
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.passes.illegal import IllegalTransform
from tests.attack.function_tampering import other_body
from tests.attack.graph_claims import drawn
from tests.attack.odd_functions import ODD

TYPES = ("float32", "float32", "float32", "float16", "int32", "int8", "uint8")
FLOATS = ("relu", "abs", "negative", "exp", "sigmoid", "tanh")
WHOLE = ("relu", "abs", "negative")


def varied_graph(chance: Random) -> Graph:
    """A graph of a few operators, and of functions that no library has, on images of few and odd channels."""
    g = GraphBuilder("varied")
    dtype = chance.choice(TYPES)
    shape = (1, chance.choice((1, 2, 3, 4, 6)), chance.randint(1, 3), chance.randint(1, 4))
    values = [g.input("x", shape, dtype), g.input("z", shape, dtype)]
    if chance.random() < 0.5:
        values.append(g.constant(drawn(np.random.default_rng(chance.randint(0, 99)), shape, DType.parse(dtype)), "c"))
    for _ in range(chance.randint(1, 6)):
        values += _made(g, chance, values)
        if chance.random() < 0.15:
            # Whatever is left open in a value is the same for all who use it.
            values.append(g.binary("subtract", values[-1], values[-1]))
    outputs = [chance.choice(values[-4:]) for _ in range(chance.randint(1, 3))]
    graph = g.build(*outputs)
    return hoisted_graph(graph) if chance.random() < 0.2 else graph


def _made(g: GraphBuilder, chance: Random, values: list[Value]) -> tuple[Value, ...]:
    first = chance.choice(values[-4:])
    second = chance.choice([value for value in values if (value.shape, value.dtype) == (first.shape, first.dtype)])
    kind = chance.choice(
        (
            "odd",
            "odd",
            "odd",
            "unary",
            "unary",
            "binary",
            "binary",
            "bias",
            "conv",
            "pool",
            "parts",
            "moved",
            "pad",
            "crop",
            "sum",
        )
    )
    floats = first.dtype.is_float
    match kind:
        case "odd":
            return ODD[chance.choice(list(ODD))](g, chance, first, second)
        case "unary":
            return (g.unary(chance.choice(FLOATS if floats else WHOLE), first),)
        case "binary":
            return (g.binary(chance.choice(("add", "subtract", "multiply", "maximum")), first, second),)
        case "bias":
            return (g.add(first, _constant(g, chance, (first.shape[1], 1, 1), first.dtype)),)
        case "conv":
            filters = chance.choice((1, 3, 4))
            return (g.conv2d(first, _constant(g, chance, (filters, first.shape[1], 1, 1), first.dtype)),)
        case "pool":
            return (g.max_pool2d(first, (1, 2), halo=(0, 1, 0, 0)),)
        case "parts" if first.shape[1] > 1:
            parts = g.split(first, (1, first.shape[1] - 1), axis=1)
            return (*parts, g.concat(list(reversed(parts)), axis=1))
        case "moved":
            return (
                g.layout_transform(
                    first, chance.choice((f"lambda n, c, h, w: [n, {first.shape[1] - 1} - c, h, w]", _TURNED, _WIDE))
                ),
            )
        case "pad":
            held = (0.0, -0.0, 1.0, float("nan"), None) if floats else (0, 1, None)
            return (
                g.pad(
                    first, [(0, 0), (0, chance.randint(0, 2)), (0, 0), (chance.randint(0, 1), 0)], chance.choice(held)
                ),
            )
        case "crop" if first.shape[3] > 1:
            return (g.crop(first, (0, 0, 0, 1), (*first.shape[:3], first.shape[3] - 1)),)
        case _:
            return (g.unary("relu", first),)


_TURNED = "lambda n, c, h, w: [n, c, w, h]"
_WIDE = "lambda n, c, h, w: [n, h, w, c]"


def _constant(g: GraphBuilder, chance: Random, shape: Shape, dtype: DType) -> Value:
    return g.constant(drawn(np.random.default_rng(chance.randint(0, 9)), shape, dtype).astype(numpy_dtype(dtype)), "k")


def random_layout(chance: Random, shape: Shape) -> str:
    """An injective map of a shape: axes permuted, one of them split, with padding or without."""
    names = [f"a{axis}" for axis in range(len(shape))]
    outputs = list(names)
    if names and chance.random() < 0.8:
        axis, factor = chance.choice([1, 1, *range(len(shape))]) % len(shape), chance.choice((2, 4, 4))
        outputs[axis] = f"{names[axis]} // {factor}"
        outputs.insert(chance.choice((len(outputs), axis + 1)), f"{names[axis]} % {factor}")
    if chance.random() < 0.3:
        chance.shuffle(outputs)
    return f"lambda {', '.join(names)}: [{', '.join(outputs)}]"


@dataclass
class Wish:
    """What is asked of a plan."""

    frozen: Frozen = field(default_factory=dict)
    callbacks: Mapping[str, Callback] = field(default_factory=dict)
    inputs: Mapping[str, Asked] = field(default_factory=dict)
    outputs: list[tuple[str, Asked | None]] | None = None

    def plan(self, graph: Graph) -> Plan:
        """The plan. Raises LayoutproofError where it cannot be."""
        return plan(graph, self.frozen, callbacks=self.callbacks, inputs=self.inputs, outputs=self.outputs)


def random_wish(graph: Graph, chance: Random) -> Wish:
    """Layouts for some arrays of some operators, some with a number for the padding, and for some of the ends."""
    wish, values = Wish(), graph.by_name()
    frozen: dict[str, dict[str, Any]] = {}
    callbacks: dict[str, Callback] = {}
    pads = chance.sample((0, 1, -0.0, float("inf"), -1, 127), 2)
    for call in graph.steps:
        if not isinstance(call, Call):
            continue
        signature = signature_of(call.function)
        if chance.random() < 0.5:
            for buffer in chance.sample((*signature.operands, *signature.results), 1):
                layout = random_layout(chance, shape_of(buffer))
                pad = chance.choice(pads) if chance.random() < 0.5 else None
                fits = pad is not None and (
                    buffer.dtype.is_float or (isinstance(pad, int) and buffer.dtype.min_int <= pad)
                )
                frozen.setdefault(operator_name(call), {})[buffer.name] = (layout, pad) if fits else layout
        elif chance.random() < 0.3:
            callbacks[operator_name(call)] = _callback(chance)
    wish.frozen, wish.callbacks = frozen, callbacks
    if chance.random() < 0.5:
        wish.inputs = {value.name: _end(value, chance) for value in graph.inputs if chance.random() < 0.5}
        names = [*graph.outputs, *(chance.choice(graph.outputs) for _ in range(chance.randint(0, 2)))]
        chance.shuffle(names)
        wish.outputs = [(name, None if chance.random() < 0.3 else _end(values[name], chance)) for name in names]
    return wish


def _end(value: Value, chance: Random) -> Asked:
    return FREE if chance.random() < 0.7 else random_layout(chance, value.shape)


def _callback(chance: Random) -> Callback:
    """A callback that knows what flows, or knows it wrongly, or gives a function, which may be another one."""
    kind, seed = chance.choice(("flow", "wrong", "function", "other function")), chance.randint(0, 99)

    def known(func: PrimFunc, given: Layouts) -> Layouts | Replacement | None:
        try:
            layouts = flow(func, given)
            if kind == "wrong":
                return {
                    name: parse_index_map(random_layout(Random(seed), shape_of(b)))
                    for name, b in _buffers(func).items()
                }
            if kind == "flow":
                return layouts
            own = {name: layout for name, layout in layouts.items() if name in _buffers(func)}
            changed = other_body(func, Random(seed)) if kind == "other function" else func
            return None if changed is None else Replacement(relaid(changed, own).func, own)
        except (NoFlow, IllegalTransform):
            return None

    return known


def _buffers(func: PrimFunc) -> Mapping[str, Any]:
    return {buffer.name: buffer for buffer in func.buffers}
