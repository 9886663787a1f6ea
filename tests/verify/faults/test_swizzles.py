"""Cells of swizzled memory by coordinates without `^`: equal exactly where the cells are."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import pytest

import layoutproof as lp
from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.visit import walk
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.no_faults import check_facts
from layoutproof.verify.faults.swizzles import Cell, has_swizzle, unswizzled
from layoutproof.verify.verdict.verdict import Status

ROW, COLUMN, OTHER, N = Var("i"), Var("j"), Var("k"), Var("n")
MASKS: tuple[Callable[[Expr], Expr], ...] = (
    lambda e: e,
    lambda e: e % 4,
    lambda e: e // 2,
    lambda e: e * 3 + N,
    lambda e: (e // 2) % 4,
    lambda e: e - 5,
)


def is_same(first: Cell, second: Cell, here: dict[str, int], there: dict[str, int]) -> bool:
    """Whether two cells are equal, each with values of its own."""
    return [evaluate(c, here) for c in first] == [evaluate(c, there) for c in second]


@pytest.mark.parametrize("seed", range(8))
def test_cells_are_equal_where_they_were(seed: int) -> None:
    """Of all pairs of values, negative ones included; one mask for all, or one that differs somewhere."""
    rng = random.Random(seed)
    mask = rng.choice(MASKS)
    cells: list[Cell] = []
    for row, column in ((ROW, COLUMN), (ROW * 2 + COLUMN, OTHER), (COLUMN - OTHER, ROW + 1)):
        other = mask if rng.random() < 0.8 else rng.choice(MASKS)
        swizzled = column ^ other(row) if rng.random() < 0.5 else other(row) ^ column
        cells.append((row, swizzled))
    found = unswizzled(cells, frozenset((N,)))
    values = [dict(zip("ijk", each, strict=True)) | {"n": 7} for each in product((-3, 0, 2), repeat=3)]
    for a, b in product(range(3), repeat=2):
        for here, there in product(values, values):
            assert is_same(cells[a], cells[b], here, there) == is_same(found[a], found[b], here, there)


def test_a_mask_of_the_other_coordinates_is_undone() -> None:
    """By hand: what is left has no `^`; also where a symbol takes part."""
    cells: list[Cell] = [(ROW, COLUMN ^ (ROW % 4)), (OTHER * 2, ((OTHER * 2) % 4) ^ COLUMN)]
    assert list(unswizzled(cells, frozenset())) == [(ROW, COLUMN), (OTHER * 2, COLUMN)]
    with_symbol: list[Cell] = [(ROW, COLUMN ^ (ROW + N)), (OTHER, COLUMN ^ (OTHER + N))]
    assert list(unswizzled(with_symbol, frozenset((N,)))) == [(ROW, COLUMN), (OTHER, COLUMN)]


@pytest.mark.parametrize(
    "cells",
    [
        [(ROW, COLUMN ^ (ROW % 4)), (OTHER, COLUMN ^ (OTHER % 8))],  # two masks
        [(ROW, COLUMN ^ OTHER), (OTHER, COLUMN ^ ROW)],  # a mask that does not follow from the cell
        [(ROW, COLUMN ^ ROW), (OTHER, COLUMN)],  # one access without a mask
    ],
)
def test_other_masks_stay(cells: list[tuple[Expr, ...]]) -> None:
    """Nothing is taken away that is not the same for all."""
    assert list(unswizzled(cells, frozenset())) == cells


def test_a_mask_from_memory_stays() -> None:
    """What is loaded may differ from one access to the next."""
    func = lp.loads(TILE.format(rows=8, written="i, j ^ i", read="j, i ^ j"))
    load = next(node for node in walk(func.body) if isinstance(node, BufferLoad))
    cells: list[Cell] = [(ROW, COLUMN ^ load), (OTHER, COLUMN ^ load)]
    assert list(unswizzled(cells, frozenset())) == cells


TILE = """from tvm.script import tir as T

@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n * 8, 8), "int32")
    B = T.match_buffer(b, (n * 8, 8), "int32")
    T.func_attr({{"tirx.noalias": True}})
    for k in range(n):
        S = T.decl_buffer((8, 8), "int32")
        for i, j in T.grid({rows}, 8):
            S[{written}] = A[k * 8 + i, j]
        for i, j in T.grid(8, 8):
            B[k * 8 + i, j] = S[{read}]
"""


@pytest.mark.parametrize(
    ("rows", "written", "read", "proved"),
    [
        (8, "i, j ^ i", "j, i ^ j", True),
        (8, "i, i // 2 ^ j", "j, i ^ j // 2", True),
        (7, "i, j ^ i", "j, i ^ j", False),  # a row is missing
        (7, "i, j ^ i", "i % 7, j ^ i % 7", True),
    ],
)
def test_reads_of_a_swizzled_tile(rows: int, written: str, read: str, proved: bool) -> None:
    """For all sizes: initialised where the tile is written as a whole, and refuted or open where it is not."""
    func = lp.loads(TILE.format(rows=rows, written=written, read=read))
    verdicts = check_facts(Facts.of(func))
    assert ({v.status for v in verdicts} == {Status.PROVED}) == proved
    assert any(has_swizzle(index) for node in walk(func.body) if isinstance(node, BufferLoad) for index in node.indices)
