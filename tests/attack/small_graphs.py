"""Random graphs on arrays of any rank and any type, scalars, truth values and 64-bit integers among them."""

from __future__ import annotations

from random import Random

import numpy as np

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Graph, Value
from layoutproof.ir.dtype import DType
from tests.attack.graph_claims import drawn
from tests.attack.graphs import random_bijection
from tests.attack.odd_functions import function, nest

TYPES = ("bool", "bfloat16", "float64", "float32", "int64", "uint64", "int16", "uint16", "int8")


def small_graph(chance: Random) -> Graph:
    """A graph of a few operators on arrays of at most three axes; what comes in may go out as it is, and more than
    once.
    """
    g = GraphBuilder("small")
    dtype = chance.choice(TYPES)
    shape = tuple(chance.randint(1, 5) for _ in range(chance.choice((0, 1, 1, 2, 2, 3))))
    values = [g.input("x", shape, dtype), g.input("z", shape, dtype)]
    if chance.random() < 0.5:
        values.append(g.constant(drawn(np.random.default_rng(chance.randint(0, 99)), shape, DType.parse(dtype)), "c"))
    for _ in range(chance.randint(1, 5)):
        values += _made(g, chance, values)
    return g.build(*(chance.choice(values[-4:]) for _ in range(chance.randint(1, 3))))


def _made(g: GraphBuilder, chance: Random, values: list[Value]) -> tuple[Value, ...]:
    first = chance.choice(values[-3:])
    second = chance.choice([value for value in values if value.shape == first.shape])
    shape, rank, truth = first.shape, len(first.shape), first.dtype.is_bool
    match chance.choice(
        ("moved", "chosen", "pad", "crop", "turned", "turned", "binary", "reduced", "transposed", "flat")
    ):
        case "moved" | "chosen" as kind if rank:
            return _moving(g, kind, first, second)
        case "pad":
            held = (True, False, None) if truth else (0, 1, None)
            return (g.pad(first, [(chance.randint(0, 1), chance.randint(0, 2)) for _ in shape], chance.choice(held)),)
        case "crop":
            starts = [chance.randrange(extent) for extent in shape]
            return (
                g.crop(first, starts, [chance.randint(1, n - start) for n, start in zip(shape, starts, strict=True)]),
            )
        case "turned" if rank:
            return (g.layout_transform(first, random_bijection(chance, shape)),)
        case "binary" if not truth:
            return (g.binary(chance.choice(("add", "multiply", "maximum")), first, second),)
        case "reduced" if not truth and rank:
            return (g.reduce(chance.choice(("sum", "max")), first, (chance.randrange(rank),)),)
        case "transposed" if rank > 1:
            return (g.transpose(first, chance.sample(range(rank), rank)),)
        case "flat" if rank > 1:
            return (g.reshape(first, (int(np.prod(shape)),)),)
        case _:
            return (first,)


def _moving(g: GraphBuilder, kind: str, first: Value, second: Value) -> tuple[Value, ...]:
    """A user's function: elements back to front, or from one of two arrays by turns."""
    shape, array = first.shape, (first.shape, str(first.dtype))
    index = ", ".join(f"i{axis}" for axis in range(len(shape)))
    back = ", ".join(f"{extent - 1} - i{axis}" for axis, extent in enumerate(shape))
    if kind == "moved":
        return g.call(
            function("back_to_front", {"A": array, "Y": array}, nest(shape, f"Y[{index}] = A[{back}]")), first
        )
    lines = nest(shape, f"Y[{index}] = T.if_then_else(i0 % 2 == 0, A[{index}], B[{index}])")
    return g.call(function("by_turns", {"A": array, "B": array, "Y": array}, lines), first, second)
