"""Unrolled code as loops: the same program, far fewer statements, and wrong copies are still found."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from benchmarks.mlir_pairs import nest
from tests.importers.mlir.programs import compared, function
from tests.oracle.mlir import arguments_for, differences
from tests.random.mlir_programs import random_program
from tests.shares import one_in

from layoutproof.importers.mlir.translate import read_functions
from layoutproof.ir.interp.run import run, same_values
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import stores_in
from layoutproof.lowering.compare.rolled import rolled


def program(text: str) -> PrimFunc:
    """The only function of a text."""
    (found,) = read_functions(text, "f.mlir").values()
    return found.program


def stores(func: PrimFunc) -> int:
    """How many stores stand in a function."""
    return sum(1 for _ in stores_in(func.body))


def results(func: PrimFunc, seed: int, *more: int) -> list[np.ndarray]:
    """All memories after a run on random integers."""
    numbers = np.random.default_rng(seed)
    shapes = [tuple(int(str(getattr(extent, "value", 4))) for extent in buffer.shape) for buffer in func.buffers]
    given = [numbers.integers(-9, 9, shape).astype(str(b.dtype)) for shape, b in zip(shapes, func.buffers, strict=True)]
    found = run(func, [*given, *more])
    return [found[buffer.name] for buffer in func.buffers]


@pytest.mark.parametrize(
    ("copies", "least"), [((2, 2), 4), ((3, 5), 15), ((8, 1), 8), ((1, 9), 9), ((6, 6), 36)], ids=str
)
def test_nest(copies: tuple[int, int], least: int) -> None:
    """All copies of a nest become one statement, and a run leaves the same."""
    func = program(nest(copies[0] * 2, copies[1] * 2, copies))
    found = rolled(func, 1)
    assert (stores(func), stores(found)) == (least, 1)
    assert all(np.array_equal(a, b) for a, b in zip(results(func, 1), results(found, 1), strict=True))


UNEVEN = """
%c = arith.constant 7 : i32
affine.store %c, %a[0] : memref<64xi32>
affine.store %c, %a[1] : memref<64xi32>
affine.store %c, %a[3] : memref<64xi32>
affine.store %c, %a[5] : memref<64xi32>
affine.store %c, %a[7] : memref<64xi32>
affine.store %c, %a[6] : memref<64xi32>
"""
GROUPS = "\n".join(
    f"""
%x{k} = affine.load %a[{2 * k}] : memref<64xi32>
%y{k} = arith.addi %x{k}, %x{k} : i32
affine.store %y{k}, %a[{63 - k}] : memref<64xi32>
%z{k} = affine.load %a[{2 * k + 1}] : memref<64xi32>
affine.store %z{k}, %b[{k}] : memref<64xi32>"""
    for k in range(20)
)
# A constant that grows beside others that do not, and one that is left out where it is 0.
SUMS = "affine.for %i = 1 to 60 {\n" + "\n".join(
    f"""
%x{k} = affine.load %a[%i + {k} - 1] : memref<64xi32>
affine.store %x{k}, %b[%i + {k - 1}] : memref<64xi32>"""
    for k in range(4)
) + "\n}"  # fmt: skip


@pytest.mark.parametrize(("body", "left"), [(UNEVEN, 3), (GROUPS, 2), (SUMS, 1)], ids=["uneven", "groups", "sums"])
def test_copies(body: str, left: int) -> None:
    """Copies of a group are one group, also backwards; what does not grow evenly stays."""
    func = program(function("%a: memref<64xi32>, %b: memref<64xi32>", body))
    found = rolled(func, 1)
    assert stores(found) == left < stores(func)
    assert all(np.array_equal(a, b) for a, b in zip(results(func, 2), results(found, 2), strict=True))


@one_in(4)
@pytest.mark.parametrize("seed", range(60))
def test_random(seed: int) -> None:
    """A random function does the same, rolled."""
    random = Random(seed)
    made = random_program(random, "f")
    func = program(made.text)
    size = random.randint(0, 6)
    given, index = arguments_for(random, made, size), random.randint(0, size)
    sides = [run(each, [*(array.copy() for array in given), index]) for each in (func, rolled(func, 1))]
    before, after = ([side[buffer.name] for buffer in func.buffers] for side in sides)
    assert all(same_values(a, b).all() for a, b in zip(before, after, strict=True)), differences(before, after)


@one_in(4)
@pytest.mark.parametrize("sizes", [(4, 4), (8, 8), (20, 20)], ids=str)
def test_verdict(sizes: tuple[int, int]) -> None:
    """Hundreds of copies are proved; one that reads its neighbour is refuted, at its line."""
    before, after = nest(40, 40, (1, 1)), nest(40, 40, sizes)
    assert compared(before, after).status.value == "proved"
    read = "%x2_1 = affine.load %a[%i + 2, %j + 1]"
    assert read in after
    found = compared(before, after.replace(read, "%x2_1 = affine.load %a[%i + 2, %j + 2]"))
    assert found.status.value == "refuted"
    line = after.splitlines().index(next(each for each in after.splitlines() if "store %m2_1," in each)) + 1
    assert f"line {line}" in str(found.verdicts[0].reason) or str(line) in str(found.verdicts[0].counterexample)
