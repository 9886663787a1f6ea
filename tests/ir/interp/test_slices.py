"""Backward slices: what they run, what they leave out, and where they say that they cannot."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from tests.running import program
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import Fault, count_instances, run, run_slice
from layoutproof.ir.interp.run import prepare
from layoutproof.ir.primfunc import PrimFunc


def agree(func: PrimFunc, arguments: Any, name: str, cells: list[tuple[int, ...]], most: int | None = None) -> None:
    """The slice gives the bits of a full run, in at most `most` iterations."""
    full = run(func, arguments)
    part = run_slice(func, arguments, {name: cells})
    assert [v.tobytes() for v in part[name]] == [full[name][c].tobytes() for c in cells]
    if most is not None:
        assert part.iterations <= most


def test_only_the_needed_part_of_a_chain_runs() -> None:
    """A cell of a smoothing chain costs its own neighbourhood, not the whole arrays."""
    func = program("""
        def main(A: T.Buffer((1002,), "float32"), C: T.Buffer((998,), "float32")):
            B = T.sblock_alloc_buffer((1000,))
            for i in range(1000):
                B[i] = A[i] + A[i + 2]
            for i in range(998):
                C[i] = B[i] * B[i + 2]
    """)
    agree(func, [np.arange(1002, dtype=np.float32), None], "C", [(500,), (0,), (997,)], most=12)


def test_faults_outside_the_slice_are_not_seen() -> None:
    """What the slice leaves out is not run, so a fault there goes unseen; one inside is raised."""
    func = program("""
        def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
            for i in range(4):
                B[i] = 12 // A[i]
    """)
    arguments = [np.array([1, 2, 0, 4], np.int32), None]
    assert run_slice(func, arguments, {"B": [(3,)]})["B"].tolist() == [3]
    with pytest.raises(Fault):
        run_slice(func, arguments, {"B": [(2,)]})


def test_statements_that_share_loops_keep_their_order() -> None:
    """Two statements in one loop, needed at different iterations, run interleaved as in the full program."""
    func = program("""
        def main(A: T.Buffer((9,), "float32"), B: T.Buffer((8,), "float32")):
            for i in range(8):
                A[i + 1] = A[i] + T.float32(1)
                B[i] = A[i] * T.float32(2)
    """)
    agree(func, [np.zeros(9, np.float32), None], "B", [(3,)])
    agree(func, [np.zeros(9, np.float32), None], "A", [(8,)])


def test_a_long_recurrence_ends() -> None:
    """A recurrence of a thousand steps is followed to its beginning in a bounded number of rounds."""
    func = program("""
        def main(A: T.Buffer((1001,), "float32")):
            for i in range(1000):
                A[i + 1] = A[i] + A[i + 1]
    """)
    agree(func, [np.ones(1001, np.float32)], "A", [(1000,), (7,)])


def test_gathers_and_scatters_are_kept_whole() -> None:
    """Where an index is data, every instance that may write is run, and everything that may be read is kept."""
    func = program("""
        def main(
            idx: T.Buffer((6,), "int32"),
            A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32"), C: T.Buffer((6,), "float32"),
        ):
            D = T.sblock_alloc_buffer((6,))
            for i in range(6):
                D[i] = A[i] * T.float32(3)
            for i in range(6):
                B[idx[i]] = D[i]
            for i in range(6):
                C[i] = B[idx[i]] + D[idx[i]]
    """)
    arguments = [np.array([3, 1, 4, 1, 5, 0], np.int32), np.arange(6, dtype=np.float32), np.ones(6, np.float32), None]
    for cell in range(6):
        agree(func, arguments, "C", [(cell,)])
        agree(func, arguments, "B", [(cell,)])


def test_conditions_on_data() -> None:
    """A branch on data keeps both sides' needs; where nothing below it is needed it is not even evaluated."""
    func = program("""
        def main(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32"), C: T.Buffer((6,), "float32")):
            D = T.sblock_alloc_buffer((6,))
            for i in range(6):
                D[i] = A[5 - i]
            for i in range(6):
                if D[i] > T.float32(2):
                    B[i] = D[5 - i]
                else:
                    B[i] = T.float32(-1)
                C[i] = A[i]
    """)
    arguments = [np.arange(6, dtype=np.float32), None, None]
    for cell in range(6):
        agree(func, arguments, "B", [(cell,)], most=10)
    agree(func, arguments, "C", [(2,)], most=1)


def test_reductions_with_empty_and_guarded_parts() -> None:
    """A slice finds the results that are initialised, and those that an empty or guarded-off reduction leaves alone."""
    func = program("""
        def main(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer((n,), "float32")):
            n, m = T.int32(), T.int32()
            for k, i in T.grid(m, n):
                with T.sblock("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.where(vk < vi - 2)
                    with T.init():
                        B[vi] = T.float32(2)
                    B[vi] = B[vi] + A[vi, vk]
    """)
    for m in (0, 3):
        agree(func, [np.ones((6, m), np.float32), None], "B", [(0,), (3,), (5,)])


def test_init_where_a_branch_stops_some_results() -> None:
    """A branch around a block keeps its init back too, in a slice as in a full run."""
    func = program("""
        def main(A: T.Buffer((4, 3), "float32"), B: T.Buffer((4,), "float32")):
            for i, k in T.grid(4, 3):
                if k < i - 1:
                    with T.sblock("sum"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        with T.init():
                            B[vi] = T.float32(5)
                        B[vi] = B[vi] + A[vi, vk]
    """)
    for cell in range(4):
        agree(func, [np.ones((4, 3), np.float32), None], "B", [(cell,)])


def test_vectors_and_views() -> None:
    """Vector accesses, flat views and vector elements are followed lane by lane."""
    func = program("""
        def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
            A_flat = T.decl_buffer((32,), "float32", data=A.data)
            B_quads = T.decl_buffer((8,), "float32x4", data=B.data)
            for i in range(8):
                B_quads[i] = A_flat[T.Ramp(28 - i * 4, 1, 4)]
    """)
    agree(func, [np.arange(32, dtype=np.float32).reshape(4, 8), None], "B", [(0, 0), (2, 5)], most=2)


def test_a_constant_beyond_int64_leaves_every_iteration_in_the_slice() -> None:
    """Bounds of an index are int64: what a larger constant makes of them is unknown."""
    func = program("""
        def main(A: T.Buffer((260,), "float32"), B: T.Buffer((300,), "float32")):
            for i in range(260):
                B[T.Cast("int32", T.Cast("uint64", i) % T.uint64(18446744073709551615))] = A[i]
    """)
    arguments = [np.arange(1, 261, dtype=np.float32), np.zeros(300, np.float32)]
    agree(func, arguments, "B", [(k,) for k in range(0, 260, 7)])


def test_large_loops_are_not_spread_out() -> None:
    """One cell of a loop of a thousand million iterations is found by halving, not by listing them."""
    func = program("""
        def main(B: T.Buffer((1000,), "int32")):
            for i in range(1000000000):
                if i < 1000:
                    B[i] = i * 3
    """)
    assert run_slice(func, [None], {"B": [(7,), (999,)]})["B"].tolist() == [21, 2997]


def test_shapes_that_depend_on_loops_are_refused() -> None:
    """A temporary whose shape depends on a loop is named."""
    func = program("""
        def main(B: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.alloc_buffer((i + 1,), "float32") as C:
                    C[i] = T.float32(1)
                    B[i] = C[i]
    """)
    assert run(func, [None])["B"].tolist() == [1, 1, 1, 1]
    with pytest.raises(LayoutproofError, match="depends on i"):
        run_slice(func, [None], {"B": [(0,)]})


def test_instances_are_counted() -> None:
    """Stores times extents, every branch taken; an init at the start of its reduction only; symbols by name or by
    array.
    """
    func = program("""
        def main(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer((n,), "float32")):
            n, m = T.int32(), T.int32()
            for i, k in T.grid(n, m):
                with T.sblock("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
    """)
    assert count_instances(func, {"n": 5, "m": 7}) == 5 * 7 + 5
    assert count_instances(func, {"A": np.zeros((5, 7), np.float32)}) == 40
    with pytest.raises(LayoutproofError, match="extent of loop"):
        count_instances(func, {"n": 5})


@pytest.mark.parametrize(
    ("binding", "inits"),
    [
        ("ko * 4 + ki", 3),
        ("(2 - ko) * 4 + ki", 3),
        ("ki * 3 + ko", 3),
        ("4 * ko + (3 - ki)", 3),
        ("(ko * 4 + ki + 4) % 12", 36),
    ],
)
def test_inits_of_split_reductions_are_counted(binding: str, inits: int) -> None:
    """Loops that the init's guard pins count once, those of a split together; what is not told counts in full, and no
    run has more.
    """
    func = program(f"""
        def main(A: T.Buffer((3, 12), "int32"), B: T.Buffer((3,), "int32"), C: T.Buffer((1,), "int32")):
            for i, ko, ki in T.grid(3, 3, 4):
                with T.sblock("sum"):
                    vi = T.axis.spatial(3, i)
                    vk = T.axis.reduce(12, {binding})
                    with T.init():
                        B[vi] = 0
                    B[vi] = B[vi] + A[vi, vk]
            for i in range(5):
                if i == 3:
                    C[0] = i
    """)
    assert count_instances(func) == 36 + inits + 1


def test_large_inputs_are_neither_copied_nor_changed() -> None:
    """An input that nothing writes is read where it lies, in slices and in full runs; one that is written is the run's
    own.
    """
    func = program("""
        def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((8,), "float32")):
            for i in range(8):
                C[i] = C[i] + A[i // 2, i]
    """)
    a, c = np.arange(32, dtype=np.float32).reshape(4, 8), np.ones(8, dtype=np.float32)
    prepared = prepare(func, [a, c])
    of_a, of_c = (prepared.storages[b.data.name].data for b in func.buffers)
    assert np.shares_memory(of_a, a) and not np.shares_memory(of_c, c)
    assert not of_a.flags.writeable and a.flags.writeable
    for given in (a, np.asfortranarray(a), np.repeat(a, 2, axis=1)[:, ::2]):
        agree(func, [given, c], "C", [(0,), (5,), (7,)])
    assert c.tolist() == [1.0] * 8 and a[3, 7] == 31


@one_in(4)
def test_a_slice_of_a_large_program_needs_little_memory() -> None:
    """32 million elements in, as many out: what a slice allocates is the output and one state each, no index of every
    element.
    """
    size = 32 << 20
    func = program(f"""
        def main(A: T.Buffer(({size},), "int8"), B: T.Buffer(({size},), "int8")):
            for i in range({size}):
                B[i] = A[{size - 1} - i]
    """)
    a = np.arange(size, dtype=np.uint32).astype(np.int8)
    tracemalloc.start()
    found = run_slice(func, {"A": a, "B": None}, {"B": [(0,), (5,), (size - 1,)]})
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found["B"].tolist() == [int(a[-1]), int(a[-6]), int(a[0])]
    assert most < 8 * size


def test_the_only_cell_of_a_scalar_buffer() -> None:
    """A buffer of no axes has one cell, which has no coordinates."""
    func = program("""
        def main(A: T.Buffer((4,), "float32"), B: T.Buffer((), "float32")):
            for i in range(4):
                B[()] = A[i]
    """)
    agree(func, [np.arange(4, dtype=np.float32), None], "B", [()])


def test_an_opaque_call_is_not_left_out() -> None:
    """It may write any cell: there is no slice without it, and none with it."""
    func = program("""
        def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            B[0] = A[0]
            T.evaluate(T.call_extern("int32", "f", B.data))
    """)
    with pytest.raises(LayoutproofError, match="the call of call_extern may touch anything"):
        run_slice(func, [np.ones(4, np.float32), None], {"B": [(0,)]})
