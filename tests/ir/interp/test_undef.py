"""Undefined values: what may be done with them, what may not, and what comes to depend on them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.running import fault, floats, program, result

from layoutproof.ir.interp import FaultKind, Fill, Filling, all_fillings, run_fillings
from layoutproof.ir.interp.memory import DEFINED, POISON

COPY = """
    def main(B: T.Buffer((2,), "float32")):
        C = T.sblock_alloc_buffer((1,))
        C[0] = T.undef("float32")
        B[0] = C[0]
        B[1] = C[0]
"""


def test_a_stored_undefined_value_stays_what_it_is() -> None:
    """A cell that an undefined value was stored to holds one value until the next write, whatever the filling."""
    for filling in all_fillings():
        found = result(program(COPY), [None], filling=filling)
        assert np.array_equal(found["B"][0], found["B"][1], equal_nan=True)
        assert found.states["B"].tolist() == [POISON, POISON]


def test_each_evaluation_is_fresh() -> None:
    """Two evaluations of the expression need not agree."""
    func = program("""
        def main(B: T.Buffer((2,), "float32")):
            for i in range(2):
                B[i] = T.undef("float32")
    """)
    found = result(func, [None], filling=Filling(Fill.RANDOM, 3))
    assert found["B"][0] != found["B"][1]


def test_two_random_integers_have_an_odd_sum() -> None:
    """Two cells of padding times the least integer are 0 where their sum is even: no random filling has only those."""
    func = program("""
        def main(B: T.Buffer((1,), "int32")):
            C = T.sblock_alloc_buffer((2,), "int32")
            for i in range(2):
                C[i] = T.undef("int32")
            B[0] = C[0] * T.min_value("int32") + C[1] * T.min_value("int32")
    """)
    for seed in range(20):
        assert result(func, [None], filling=Filling(Fill.RANDOM, seed))["B"].tolist() == [-(2**31)]


def test_a_later_write_makes_the_cell_ordinary() -> None:
    """After a defined value is stored the cell depends on nothing undefined any more."""
    func = program("""
        def main(B: T.Buffer((2,), "float32")):
            B[0] = T.undef("float32")
            B[0] = T.float32(2)
            if B[0] > T.float32(1):
                B[1] = T.float32(3)
    """)
    found = result(func, [floats(0, 0)])
    assert found["B"].tolist() == [2, 3]
    assert found.states["B"].tolist() == [DEFINED, DEFINED]


@pytest.mark.parametrize(
    "use",
    [
        "if C[0] > 0:\n                B[0] = 1",
        "B[C[0] % 2] = 1",
        "B[0] = B[C[0] % 2]",
        "B[0] = T.if_then_else(C[0] > 0, 1, 2)",
        "for i in range(C[0] % 2):\n                B[i] = 1",
    ],
)
def test_control_and_indices_may_not_depend_on_it(use: str) -> None:
    """An undefined value that reaches a branch, an index, a lazy choice or an extent is a fault, through arithmetic
    too.
    """
    func = program(f"""
        def main(B: T.Buffer((2,), "int32")):
            C = T.sblock_alloc_buffer((1,), "int32")
            C[0] = T.undef("int32") + 1
            {use}
    """)
    fault(func, [np.zeros(2, np.int32)], FaultKind.UNDEF)


def test_values_may_depend_on_it() -> None:
    """Arithmetic and select pass an undefined value on; the result is marked."""
    func = program("""
        def main(A: T.Buffer((1,), "float32"), B: T.Buffer((3,), "float32")):
            A[0] = T.undef("float32")
            B[0] = A[0] * T.float32(2)
            B[1] = T.Select(A[0] > T.float32(0), A[0], T.float32(0))
            B[2] = T.max(T.float32(1), T.float32(2))
    """)
    for filling in all_fillings():
        assert result(func, [None, None], filling=filling).states["B"].tolist() == [POISON, POISON, DEFINED]


def test_assumed_undefined_padding_is_filled() -> None:
    """`A[p] == undef` makes a cell of a parameter arbitrary: its readers depend on the filling, the rest does not."""
    func = program("""
        def main(A: T.Buffer((2, 4), "float32"), B: T.Buffer((2, 4), "float32"), C: T.Buffer((1,), "float32")):
            for i, j in T.grid(2, 4):
                T.evaluate(T.assume(not (i == 1 and 2 <= j) or A[i, j] == T.undef("float32")))
            for i, j in T.grid(2, 4):
                B[i, j] = A[i, j] + T.float32(1)
            C[0] = T.float32(0)
            for i, j in T.grid(2, 3):
                C[0] = C[0] + A[i, j]
    """)
    a = np.arange(8, dtype=np.float32).reshape(2, 4)
    runs = run_fillings(func, [a, None, None])
    assert runs.depends["B"].tolist() == [[False] * 4, [False, False, True, True]]
    assert runs.depends["C"].tolist() == [True]
    assert runs.results[0]["B"][0].tolist() == [1, 2, 3, 4]


def test_integer_zero_times_undefined_is_zero() -> None:
    """`0 * undef` is 0 for integers whatever the filling; for floats it is not."""
    text = """
        def main(B: T.Buffer((1,), "{type}")):
            B[0] = T.{type}(0) * T.undef("{type}")
    """
    assert not run_fillings(program(text.replace("{type}", "int32")), [None]).depends["B"].any()
    assert run_fillings(program(text.replace("{type}", "float32")), [None]).depends["B"].all()


def test_lanes_are_marked_one_by_one() -> None:
    """A vector of which one lane is undefined marks one cell."""
    func = program("""
        def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            A[2] = T.undef("float32")
            B[T.Ramp(0, 1, 4)] = A[T.Ramp(0, 1, 4)] * T.Broadcast(T.float32(2), 4)
    """)
    assert result(func, [floats(1, 2, 3, 4), None]).states["B"].tolist() == [DEFINED, DEFINED, POISON, DEFINED]


def test_fillings_repeat() -> None:
    """The same filling gives the same values in every run."""
    first, second = (result(program(COPY), [None], filling=Filling(Fill.RANDOM, 5))["B"].tolist() for _ in range(2))
    assert first == second
