"""Layouts that two shapes allow: which come first, and that each is one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import pytest

from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.map_text import parse_shape
from layoutproof.lowering.compare.layout_candidates import LIMIT, candidates

NAMES = "abcdef"


def maps(shape: str | Sequence[int], box: str | Sequence[int], limit: int = LIMIT) -> list[IndexMap]:
    """The layouts from one shape into another, symbols of one name being one."""
    symbols: dict[str, Var] = {}
    first, second = (_extents(each, symbols) for each in (shape, box))
    names = [Var(name) for name in NAMES[: len(first)]]
    return [candidate.index_map for candidate in candidates(names, first, second, limit)]


def _extents(shape: str | Sequence[int], symbols: dict[str, Var]) -> list[Expr]:
    if not isinstance(shape, str):
        return [const(extent) for extent in shape]
    return list(parse_shape(shape))


def texts(shape: str | Sequence[int], box: str | Sequence[int], limit: int = LIMIT) -> list[str]:
    """The same as text."""
    return [index_map_text(each) for each in maps(shape, box, limit)]


@pytest.mark.parametrize(
    ("shape", "box", "first"),
    [
        ((2, 3, 4), (2, 3, 4), "lambda a, b, c: [a, b, c]"),
        ((8, 8, 8), (8, 8, 8), "lambda a, b, c: [a, b, c]"),
        ((16, 30, 64), (16, 64, 30), "lambda a, b, c: [a, c, b]"),
        ((16, 16), (16, 4, 4), "lambda a, b: [a, b//4, b%4]"),
        ((1, 56, 56, 70), (1, 18, 56, 56, 4), "lambda a, b, c, d: [a, d//4, b, c, d%4]"),
        ((100, 50), (7, 4, 16, 16), "lambda a, b: [a//16, b//16, a%16, b%16]"),
        ((20, 13, 3, 3), (3, 2, 3, 3, 8, 8), "lambda a, b, c, d: [a//8, b//8, c, d, a%8, b%8]"),
        ((64,), (2, 4, 8), "lambda a: [a//32, a//8%4, a%8]"),
        ((30, 1, 1), (8, 1, 1, 4), "lambda a, b, c: [a//4, b, c, a%4]"),
        ((7, 1), (7,), "lambda a, b: [a]"),
        ((4, 6, 5), (24, 5), "lambda a, b, c: [a*6 + b, c]"),
        ((4, 6), (24,), "lambda a, b: [a*6 + b]"),
        ((6, 4), (8, 3), "lambda a, b: [(a*4 + b)//3, (a*4 + b)%3]"),
        ((30,), (32,), "lambda a: [a]"),
    ],
    ids=str,
)
def test_simplest_first(shape: Sequence[int], box: Sequence[int], first: str) -> None:
    """Candidates that keep the axes in order, blocked and padded, come before those that swap or merge them."""
    assert texts(shape, box)[0] == first


@pytest.mark.parametrize(
    ("shape", "box", "first"),
    [
        ("n", "(n + 3)//4, 4", "lambda a: [a//4, a%4]"),
        ("n, 16", "(n + 3)//4, 4, 16", "lambda a, b: [a//4, a%4, b]"),
        ("n, 16", "n//4, 4, 16", "lambda a, b: [a//4, a%4, b]"),
        ("n, m", "m, n", "lambda a, b: [b, a]"),
        ("n, m", "n*m", "lambda a, b: [a*m + b]"),
        ("n, 3", "3, n", "lambda a, b: [b, a]"),
    ],
)
def test_extents_over_symbols(shape: str, box: str, first: str) -> None:
    """Extents over symbols are compared by value, rounded up or divided exactly."""
    assert texts(shape, box)[0] == first


@pytest.mark.parametrize(
    ("shape", "box"),
    [
        ((6, 4), (6, 2, 2)),
        ((5, 7), (2, 3, 4, 3)),
        ((4, 4), (2, 2, 2, 2)),
        ((3, 4, 2), (8, 3)),
        ((10,), (3, 4)),
        ((2, 1, 3), (1, 3, 2)),
        ((8,), (2, 4)),
    ],
    ids=str,
)
def test_each_is_a_layout(shape: Sequence[int], box: Sequence[int]) -> None:
    """Every candidate is injective and inside the box, and no two are the same function."""
    found = maps(shape, box)
    functions = []
    for index_map in found:
        cells = [index_map.evaluate(index) for index in product(*map(range, shape))]
        assert len(set(cells)) == prod(shape), index_map_text(index_map)
        assert all(0 <= c < extent for cell in cells for c, extent in zip(cell, box, strict=True)), index_map_text(
            index_map
        )
        functions.append(tuple(cells))
    assert found
    assert len(set(functions)) == len(functions)


@pytest.mark.parametrize(("shape", "box"), [((16,), (3, 4)), ((4, 4), (15,)), ((5,), (1,))], ids=str)
def test_too_small(shape: Sequence[int], box: Sequence[int]) -> None:
    """A box without room for all elements has no layout."""
    assert texts(shape, box) == []


def test_both_orders_of_blocks() -> None:
    """Blocks of two axes come in both orders, the axes' own first."""
    found = texts((20, 13), (3, 2, 8, 8))
    assert found[:2] == ["lambda a, b: [a//8, b//8, a%8, b%8]", "lambda a, b: [a//8, b//8, b%8, a%8]"]


def test_swizzles_come_last() -> None:
    """Places on an axis permuted by another axis are proposed after all plain layouts."""
    found = texts((64,), (8, 8))
    swizzled = ["^" in text for text in found]
    assert "lambda a: [a//8, a%8 ^ a//8]" in found
    assert swizzled == sorted(swizzled)


def test_limit() -> None:
    """No more are given than are asked for, and the first are the same."""
    many = texts((8, 8, 8, 8), (8, 8, 8, 8))
    assert len(many) == LIMIT
    assert texts((8, 8, 8, 8), (8, 8, 8, 8), 5) == many[:5]
