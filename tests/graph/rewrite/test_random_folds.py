"""Random chains of layout operators: what folding makes of them does nothing that they could not do, and what it
refutes is wrong.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.graph.cells import difference
from tests.shares import one_in

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.graph_files import is_inline, print_graph
from layoutproof.graph.graph_reader import parse_graph
from layoutproof.graph.model.graph import Graph, Pad, Value, scalar
from layoutproof.graph.model.layout_maps import is_bijective
from layoutproof.graph.rewrite.fold import Fold, fold
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.verify.verdict.verdict import Status

TYPES = ("float32", "float16", "bfloat16", "float64", "bool", "int8", "uint8", "int32", "int64", "uint16")


def random_map(chance: Random, shape: tuple[int, ...]) -> str:
    """A map of the shape that is a bijection more often than not."""
    names = [f"i{axis}" for axis in range(len(shape))]
    axis = chance.randrange(len(shape))
    name, extent, after = names[axis], shape[axis], (axis + 1) % len(shape)
    divisors = [n for n in range(2, extent + 1) if extent % n == 0]
    made = list(names)
    match chance.choice(("permute", "rotate", "split", "merge", "reverse", "multiply", "swizzle", "skew")):
        case "permute":
            chance.shuffle(made)
        case "rotate":
            made[axis] = f"({name} + {chance.randint(1, extent + 2)}) % {extent}"
        case "split" if divisors:
            block = chance.choice(divisors)
            made[axis : axis + 1] = chance.sample([f"{name}//{block}", f"{name}%{block}"], 2)
        case "merge" if len(shape) > 1:
            made = [
                f"{name}*{shape[after]} + {names[after]}",
                *(each for each in names if each not in (name, names[after])),
            ]
        case "reverse":
            made[axis] = f"{extent - 1} - {name}"
        case "multiply":
            made[axis] = f"({name}*{chance.choice((3, 5, 7))}) % {extent}"
        case "swizzle" if after != axis:
            made[axis] = f"{name} ^ {names[after]}"
        case "skew" if after != axis:
            made[axis] = f"({name} + {names[after]}) % {extent}"
        case _:
            pass
    return f"lambda {', '.join(names)}: [{', '.join(made)}]"


def random_number(chance: Random, dtype: DType) -> float | int | bool:
    """A number that makes trouble in its type."""
    if dtype.is_float:
        return chance.choice((0.0, -0.0, 1.0, float("inf"), float("nan")))
    return chance.random() < 0.5 if dtype.is_bool else chance.choice((0, 1, 3))


def random_chains(seed: int) -> Graph:
    """A few layout operators, some of whose values have several uses, on an input or a constant of any type."""
    chance = Random(seed)
    g, dtype = GraphBuilder("chains"), DType.parse(chance.choice(TYPES))
    shape = tuple(chance.choice((1, 2, 3, 4, 6, 8)) for _ in range(chance.randint(1, 3)))
    values = [g.input("x", shape, str(dtype))]
    if chance.random() < 0.2:
        elements = np.random.default_rng(seed).integers(0, 2 if dtype.is_bool else 50, shape)
        values.append(g.constant(elements.astype(numpy_dtype(dtype)), "k"))
    for _ in range(chance.randint(2, 6)):
        value = values[-1] if chance.random() < 0.8 else chance.choice(values)
        values += step(g, chance, value, dtype)
        if np.prod(values[-1].shape) > 400:
            break
    return g.build(values[-1], *([chance.choice(values)] if chance.random() < 0.3 else []))


def step(g: GraphBuilder, chance: Random, value: Value, dtype: DType) -> list[Value]:
    """One operator, or a crop and a pad that puts back some of what it took."""

    def number(none: float) -> float | int | bool | None:
        return None if chance.random() < none else random_number(chance, dtype)

    starts = [chance.randint(0, min(2, extent - 1)) for extent in value.shape]
    match chance.choice(("transform", "transform", "pad", "crop", "both")):
        case "transform":
            index_map = parse_index_map(random_map(chance, value.shape))
            return [g.layout_transform(value, index_map)] if is_bijective(index_map, value.shape) else []
        case "pad":
            return [
                g.pad(
                    value,
                    [(chance.choice((0, 0, 1, 2)), chance.choice((0, 0, 1, 3))) for _ in value.shape],
                    number(0.3),
                )
            ]
        case "crop":
            return [g.crop(value, starts, [chance.randint(1, n - s) for s, n in zip(starts, value.shape, strict=True)])]
        case _:
            sizes = [max(1, n - s - chance.choice((0, 1))) for s, n in zip(starts, value.shape, strict=True)]
            cropped = g.crop(value, starts, sizes, number(0.7))
            more = chance.choice((0, 0, 0, 1, 2))
            widths = [(s, n - s - size + more) for s, size, n in zip(starts, sizes, value.shape, strict=True)]
            return [cropped, g.pad(cropped, widths, number(0.4))]


def as_graph(found: Fold, operand: Value, *, new: bool) -> Graph:
    """The operators of a fold, before or after, as a graph of their own."""
    chain = found.new if new else found.old
    return Graph("chain", (operand,), (), chain, (chain[-1].result.name if chain else operand.name,))


def check(seed: int) -> None:
    """Folding agrees with labels, and the text of the graph reads back."""
    graph = random_chains(seed)
    arrays = {constant.value.name: constant.data for constant in graph.constants if not is_inline(constant)}
    text = print_graph(graph)
    again = parse_graph(text, "chains.py", arrays)
    assert again == graph and print_graph(again) == text
    found = fold(graph)
    assert all(each.status is Status.PROVED for each in found.made)
    try:
        assert difference(graph, found.new) is None
        values = {**found.new.by_name(), **graph.by_name()}
        for each in found.refused:
            operand = values[each.old[0].operand]
            agrees = difference(as_graph(each, operand, new=False), as_graph(each, operand, new=True)) is None
            shared = any(step.result.name in found.new.by_name() for step in each.old[:-1])
            assert each.status is (Status.PROVED if agrees and not shared else Status.REFUTED)
    except ValueError:
        assert any(getattr(each, "cropped_value", None) is not None for each in graph.steps)


@one_in(4)
@pytest.mark.parametrize("seed", [0, 16, 53, 57, 147, 225])
def test_random_chains_fold_to_what_they_were(seed: int) -> None:
    """Folded chains do only what they could do before, and a fold that is refused is a wrong one."""
    check(seed)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(10))
def test_many_random_chains(part: int) -> None:
    """The same of hundreds of chains."""
    for seed in range(1000 + part * 60, 1060 + part * 60):
        check(seed)


@one_in(4)
def test_padding_that_others_see_stays_the_same() -> None:
    """A crop of undefined padding is no other undefined padding while what it is cut from is used besides."""
    g = GraphBuilder("shared")
    padded = g.pad(g.input("x", (4,)), [(0, 3)], None)
    part = g.crop(padded, (0,), (6,))
    (refused,) = fold(g.build(padded, part)).refused
    assert refused.status is Status.REFUTED
    alone = fold(g.build(part))
    assert alone.refused == () and [type(each).__name__ for each in alone.new.steps] == ["Pad"]


def test_a_scalar_that_is_undefined_is_padded_by_what_is_not() -> None:
    """Of two pads one of which is undefined the other's number is left; claims of crops that say the same are kept."""
    g = GraphBuilder("chosen")
    x = g.input("x", (4,))
    chosen = g.pad(g.pad(x, [(0, 1)], 2.0), [(1, 0)], None)
    cropped = g.crop(g.crop(x, (0,), (3,), 0.0), (0,), (2,), 0.0)
    found = fold(g.build(chosen, g.pad(cropped, [(0, 2)], 0.0)))
    (pad,) = found.new.rewrites
    assert isinstance(pad, Pad) and pad.value == scalar(2.0, x.dtype)
    assert found.new.outputs == (pad.result.name, "x")
