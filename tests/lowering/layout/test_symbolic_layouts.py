"""Layouts of buffers with symbolic extents, of either width: proved for all of them, and right for some."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.lowering.small_operators import assert_same_results
from tests.shares import one_in, some

from layoutproof.ir.script.reader import loads
from layoutproof.lowering.schedule.schedule import LOWERING, Schedule

PROGRAM = """
@T.prim_func
def main(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.{symbol}()
    T.func_attr({{"tir.noalias": True}})
    for i in range(n):
        with T.block("b"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] * T.float32(2)
"""
MAPS = [
    "lambda i: [i//2, i%2]",
    "lambda i: [(i+2)//3, (i+2)%3]",
    "lambda i: [i+1]",
    "lambda i: [2*i+1]",
    "lambda i: [i//32, i//4%8, i%4]",
]


# Any three of the four choices meet in some case of every run.
WAYS = [
    (symbol, index_map, buffer, pad)
    for odd in (False, True)
    for s, symbol in enumerate(("int32", "int64"))
    for m, index_map in enumerate(MAPS)
    for b, buffer in enumerate("AB")
    for p, pad in enumerate((None, 0.0, "T.undef()"))
    if (s + m + b + p) % 2 == odd
]


@one_in(42)
@pytest.mark.parametrize("way", some(WAYS, len(WAYS) // 2))
def test_every_extent_is_proved_and_some_are_run(way: tuple[str, str, str, Any]) -> None:
    """Offsets and gaps near the end of the integers are the call's business; the kernel is right on small extents,
    empty ones too.
    """
    symbol, index_map, buffer, pad = way
    schedule = Schedule(loads(PROGRAM.format(symbol=symbol)))
    schedule.transform_layout("b", buffer, index_map, pad_value=pad)
    schedule.transform_layout("b", "B" if buffer == "A" else "A", "lambda j: [j//5, j%5]")
    kernel = schedule.build("c")
    # No pass was left out: what the simplifier proposes is proved too.
    assert [step.transform for step in schedule.lowering_steps] == list(LOWERING)
    for extent in (0, 1, 2, 31, 100):
        array = np.arange(extent, dtype=np.float32) - 3
        assert np.array_equal(kernel(array), array * 2)


def test_sizes_in_shapes_are_assumed_and_named() -> None:
    """What the physical shape computes must fit at every call, and the kernel lists it."""
    schedule = Schedule(loads(PROGRAM.format(symbol="int32")))
    schedule.transform_layout("b", "A", "lambda i: [2*i+1]")
    texts = [assumption.text for assumption in schedule.build("c").assumptions]
    assert any("2*n" in text or "n*2" in text for text in texts), texts


TIED = """
@T.prim_func
def main(A: T.Buffer(("n",), "float32"), B: T.Buffer(("m",), "float32")):
    n, m = T.int32(), T.int32()
    T.func_attr({"tirx.noalias": True})
    T.evaluate(T.assume(CONDITION))
    for i in range(m):
        with T.block("b"):
            vi = T.axis.spatial(m, i)
            B[vi] = A[vi] + A[INDEX]
"""


@one_in(4)
@pytest.mark.parametrize(
    ("condition", "index", "sizes"),
    [
        ("n == m + 2", "vi + 2", {"n": 9, "m": 7}),
        ("n == 2 * m", "vi * 2", {"n": 14, "m": 7}),
        ("n == 16 and m == 10", "vi + 2", {"n": 16, "m": 10}),
        ("n == m and n % 4 == 0", "vi", {"n": 8, "m": 8}),
    ],
)
def test_symbols_that_are_tied_to_others_stay_in_the_shape_that_binds_them(
    condition: str, index: str, sizes: dict[str, int]
) -> None:
    """Where an assumption says what a symbol is, the shape still speaks of the symbol: nothing else says at a call what
    it is.
    """
    func = loads(TIED.replace("CONDITION", condition).replace("INDEX", index))
    schedule = Schedule(func)
    for buffer in "AB":
        schedule.transform_layout("b", buffer, "lambda i: [i//4, i%4]", pad_value=0.0)
    assert_same_results(func, schedule.func, {"A": [0.0]}, sizes)
    assert_same_results(func, schedule.lower(), {"A": [0.0]}, sizes)
