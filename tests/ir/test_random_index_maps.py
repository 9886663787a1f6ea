"""What `IndexMap` computes on random maps, against brute force that runs the map's text."""

import math
from functools import cache
from random import Random

import numpy as np
import pytest
from tests.oracle import maps as oracle
from tests.oracle.maps import Truth
from tests.random.index_maps import draw_map
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import INT64
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Var
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.visit import free_variables

FIRSTS = range(0, 600, 200)


@cache
def drawn(first: int) -> list[tuple[IndexMap, Truth]]:
    """The maps of 200 seeds, read from text, with what is true of them."""
    maps = [draw_map(seed) for seed in range(first, first + 200)]
    return [(parse_index_map(m.text), oracle.truth(m.text, m.shape)) for m in maps if m.category != "midsize"]


def some_index(true: Truth) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A logical index and its image."""
    row = Random(true.text).randrange(len(true.image))
    return tuple(int(axis[row]) for axis in true.points), tuple(true.image[row].tolist())


@one_in(10)
@pytest.mark.parametrize("first", FIRSTS)
def test_shape_is_the_least_box(first: int) -> None:
    """The physical shape follows the digit rule, and an image below zero is refused."""
    for index_map, true in drawn(first):
        if true.shape is None:
            with pytest.raises(LayoutproofError):
                index_map.map_shape(true.logical)
        else:
            assert index_map.map_shape(true.logical) == true.shape, true.text


@one_in(7)
@pytest.mark.parametrize("first", FIRSTS)
def test_arrays_go_there_and_back(first: int) -> None:
    """An array moved by an injective map has each element at its image and the fill elsewhere, and moves back."""
    for index_map, true in drawn(first):
        if true.injective and true.shape is not None:
            array = np.arange(1, math.prod(true.logical) + 1).reshape(true.logical)
            expected = np.zeros(true.box_cells, dtype=array.dtype)
            expected[true.flat] = array.reshape(-1)
            physical = index_map.map_array(array)
            assert np.array_equal(physical, expected.reshape(true.shape)), true.text
            assert np.array_equal(index_map.unmap_array(physical, true.logical), array), true.text


@one_in(9)
@pytest.mark.parametrize("first", FIRSTS)
def test_text_reads_back(first: int) -> None:
    """The canonical text means the same to Python and reads back as the same map."""
    for index_map, true in drawn(first):
        text = index_map_text(index_map)
        assert parse_index_map(text) == index_map, true.text
        assert np.array_equal(oracle.images(text, true.points), true.image), f"{true.text} as {text}"


@pytest.mark.parametrize("first", FIRSTS)
def test_single_indices(first: int) -> None:
    """Evaluating, renaming (inputs swapped among themselves too) and putting numbers in agree on an index."""
    for index_map, true in drawn(first):
        index, image = some_index(true)
        swapped = index_map.rename([v.name for v in index_map.inputs][::-1])
        assert index_map.evaluate(index) == swapped.evaluate(index) == image, true.text
        assert tuple(int(evaluate(e, {})) for e in index_map.map_indices(index)) == image, true.text


@pytest.mark.parametrize("first", FIRSTS)
def test_wide_indices(first: int) -> None:
    """With 64-bit indices put in, nothing of the old inputs is left and the values are the same."""
    for index_map, true in drawn(first):
        index, image = some_index(true)
        wide = [Var(f"wide_{axis}", INT64) for axis in range(len(index))]
        mapped = index_map.map_indices(wide)
        assert {v for e in mapped for v in free_variables(e)} <= set(wide), true.text
        env = {v.name: i for v, i in zip(wide, index, strict=True)}
        assert tuple(int(evaluate(e, env)) for e in mapped) == image, true.text


@pytest.mark.parametrize("first", FIRSTS)
def test_composition_is_one_after_the_other(first: int) -> None:
    """`f.compose(g)` maps an index where f maps g's image, also where both use the same names."""
    for index_map, true in drawn(first):
        outer = parse_index_map(f"lambda {', '.join('jizkxyabcd'[: index_map.rank])}: [j * 3 + 1, 5]")
        index, image = some_index(true)
        composed = outer.compose(index_map)
        assert composed.inputs == index_map.inputs
        assert composed.evaluate(index) == (3 * image[0] + 1, 5), true.text


@one_in(10)
@pytest.mark.parametrize("first", FIRSTS)
def test_a_map_without_widths_is_what_its_text_is_read_as(first: int) -> None:
    """A map whose indices are 64 bits wide is, narrowed, the one that its plain text says, and keeps that text."""
    for index_map, true in drawn(first):
        wide = index_map.map_indices([Var(v.name, INT64) for v in index_map.inputs])
        given = IndexMap(tuple(Var(v.name, INT64) for v in index_map.inputs), wide, index_map.separators)
        assert given.narrowed() == parse_index_map(index_map_text(given)), true.text
        assert index_map_text(given.narrowed().narrowed()) == index_map_text(given.narrowed()), true.text
