"""Races: two iterations of a concurrent loop on one cell, one of them writing."""

from __future__ import annotations

import numpy as np
import pytest
from tests.running import fault, floats, program, result

from layoutproof.ir.interp import FaultKind

KINDS = ["T.parallel", "T.vectorized"]


@pytest.mark.parametrize("kind", KINDS)
def test_read_of_what_a_neighbour_writes(kind: str) -> None:
    """A shift in place races; out of place it does not, and serially it does not."""
    text = """
        def main(A: T.Buffer((5,), "float32"), B: T.Buffer((5,), "float32")):
            for i in {kind}(4):
                {target}[i] = A[i + 1]
    """
    shift = text.replace("{target}", "A")
    assert fault(program(shift.replace("{kind}", kind)), [floats(1, 2, 3, 4, 5), None], FaultKind.RACE).buffer == "A"
    result(program(shift.replace("{kind}", "range")), [floats(1, 2, 3, 4, 5), None])
    result(program(text.replace("{target}", "B").replace("{kind}", kind)), [floats(1, 2, 3, 4, 5), None])


@pytest.mark.parametrize("kind", KINDS)
def test_two_writers(kind: str) -> None:
    """Two iterations that write one cell race even when they write the same value."""
    func = program(f"""
        def main(A: T.Buffer((4,), "float32")):
            for i in {kind}(8):
                A[i // 2] = T.float32(1)
    """)
    assert fault(func, [floats(0, 0, 0, 0)], FaultKind.RACE).indices == (0,)


def test_a_write_after_others_have_read() -> None:
    """A late write to a cell that several iterations read races."""
    func = program("""
        def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for i in T.parallel(4):
                B[i] = A[0]
                if i == 3:
                    A[0] = T.float32(1)
    """)
    fault(func, [floats(0, 0, 0, 0), None], FaultKind.RACE)


def test_conditional_store_counts_where_it_runs() -> None:
    """A store under a guard races only with data that lets it run."""
    func = program("""
        def main(A: T.Buffer((4,), "int32"), B: T.Buffer((1,), "int32")):
            for i in T.parallel(4):
                if A[i] > 0:
                    B[0] = i
    """)
    fault(func, [np.array([1, 0, 1, 0], np.int32), None], FaultKind.RACE)
    assert result(func, [np.array([0, 0, 1, 0], np.int32), None])["B"].tolist() == [2]


def test_nested_concurrent_loops() -> None:
    """In a nest of concurrent loops any two different pairs of iterations may race, inner ones in different outer ones
    too.
    """
    text = """
        def main(A: T.Buffer((3, 4), "float32"), B: T.Buffer((4,), "float32")):
            for i in T.parallel(3):
                for j in {kind}(4):
                    {store}
    """
    rows = np.ones((3, 4), np.float32)
    for kind in ("T.parallel", "T.vectorized", "range"):
        fault(program(text.replace("{kind}", kind).replace("{store}", "B[j] = A[i, j]")), [rows, None], FaultKind.RACE)
        result(
            program(text.replace("{kind}", kind).replace("{store}", "A[i, j] = A[i, j] + T.float32(1)")), [rows, None]
        )
    fault(
        program(text.replace("{kind}", "T.parallel").replace("{store}", "B[i] = A[i, j]")), [rows, None], FaultKind.RACE
    )
    result(program(text.replace("{kind}", "range").replace("{store}", "B[i] = A[i, j]")), [rows, None])


def test_one_run_of_a_loop_after_another_does_not_race() -> None:
    """Two concurrent loops in sequence, in each step of a serial loop, may use each other's cells."""
    func = program("""
        def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for t in range(3):
                for i in T.parallel(4):
                    B[3 - i] = A[i]
                for i in T.parallel(4):
                    A[i] = B[i]
    """)
    assert result(func, [floats(1, 2, 3, 4), None])["A"].tolist() == [4, 3, 2, 1]


def test_memory_of_an_iteration_is_its_own() -> None:
    """What a concurrent iteration allocates cannot race with another's."""
    func = program("""
        def main(A: T.Buffer((4,), "float32")):
            for i in T.parallel(4):
                with T.sblock("own"):
                    vi = T.axis.spatial(4, i)
                    C = T.sblock_alloc_buffer((1,))
                    C[0] = A[vi]
                    A[vi] = C[0] * T.float32(2)
    """)
    assert result(func, [floats(1, 2, 3, 4)])["A"].tolist() == [2, 4, 6, 8]


def test_parallel_reduction_races() -> None:
    """A reduction over a parallel loop races on its accumulator; over the spatial loop it does not."""
    text = """
        def main(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2,), "float32")):
            for i in {outer}(2):
                for k in {inner}(3):
                    with T.sblock("sum"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        with T.init():
                            B[vi] = T.float32(0)
                        B[vi] = B[vi] + A[vi, vk]
    """
    rows = np.ones((2, 3), np.float32)
    fault(program(text.replace("{outer}", "range").replace("{inner}", "T.parallel")), [rows, None], FaultKind.RACE)
    result(program(text.replace("{outer}", "T.parallel").replace("{inner}", "range")), [rows, None])


def test_lanes_of_one_store() -> None:
    """Two lanes of a vector store in one cell race; lanes that load before any lane stores do not."""
    func = program(
        """
        def main(A: T.Buffer((8,), "float32")):
            A[T.Ramp(0, {stride}, 4)] = A[T.Ramp(1, 1, 4)]
    """.replace("{stride}", "1")
    )
    assert result(func, [np.arange(8, dtype=np.float32)])["A"].tolist() == [1, 2, 3, 4, 4, 5, 6, 7]
    same = program("""
        def main(A: T.Buffer((8,), "float32")):
            A[T.Ramp(0, 0, 4)] = A[T.Ramp(1, 1, 4)]
    """)
    fault(same, [np.arange(8, dtype=np.float32)], FaultKind.RACE)
