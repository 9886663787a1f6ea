"""When a block's init runs: once per spatial instance, before its first executed update, and also when there is none."""

from __future__ import annotations

import numpy as np
import pytest
from tests.running import fault, program, result

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import FaultKind, run


def ones(*shape: int) -> np.ndarray:
    """An array of ones."""
    return np.ones(shape, np.float32)


def test_empty_reduction_still_initialises() -> None:
    """A reduction of extent 0 leaves the initial value, for fixed and symbolic extents."""
    func = program("""
        def main(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer((n,), "float32")):
            n, m = T.int32(), T.int32()
            for i, k in T.grid(n, m):
                with T.sblock("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(3)
                    B[vi] = B[vi] + A[vi, vk]
    """)
    assert result(func, [ones(4, 0), None])["B"].tolist() == [3, 3, 3, 3]
    assert result(func, [ones(2, 5), None])["B"].tolist() == [8, 8]
    assert result(func, [ones(0, 5), None])["B"].tolist() == []


def test_all_updates_guarded_off() -> None:
    """Where the guard lets no update through, init runs; where it lets some through, it runs once before the first."""
    func = program("""
        def main(A: T.Buffer((4, 5), "float32"), B: T.Buffer((4,), "float32")):
            for i, k in T.grid(4, 5):
                with T.sblock("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.where(3 <= k and k < i + 2)
                    with T.init():
                        B[vi] = T.float32(10)
                    B[vi] = B[vi] + A[vi, vk]
    """)
    assert result(func, [ones(4, 5), None])["B"].tolist() == [10, 10, 11, 12]


def test_reduction_outside_the_spatial_loop() -> None:
    """With the reduction loop outermost each spatial instance is still initialised exactly once."""
    func = program("""
        def main(A: T.Buffer((4, 5), "float32"), B: T.Buffer((4,), "float32")):
            for k, i in T.grid(5, 4):
                with T.sblock("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.where(k < i)
                    with T.init():
                        B[vi] = T.float32(10)
                    B[vi] = B[vi] + A[vi, vk]
    """)
    assert result(func, [ones(4, 5), None])["B"].tolist() == [10, 11, 12, 13]


def test_instances_outside_the_domain_are_none() -> None:
    """A spatial loop that was split unevenly does not initialise the cells past its domain."""
    func = program("""
        def main(A: T.Buffer((14, 3), "float32"), B: T.Buffer((14,), "float32")):
            for io, ii, k in T.grid(4, 4, 3):
                with T.sblock("sum"):
                    vi = T.axis.spatial(14, io * 4 + ii)
                    vk = T.axis.reduce(3, k)
                    T.where(io * 4 + ii < 14)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
    """)
    assert result(func, [ones(14, 3), None])["B"].tolist() == [3.0] * 14


def test_uneven_reduction_split() -> None:
    """A reduction that was split unevenly is initialised once, its guarded steps left out."""
    func = program("""
        def main(A: T.Buffer((2, 14), "float32"), B: T.Buffer((2,), "float32")):
            for ko, i, ki in T.grid(4, 2, 4):
                with T.sblock("sum"):
                    vi = T.axis.spatial(2, i)
                    vk = T.axis.reduce(14, ko * 4 + ki)
                    T.where(ko * 4 + ki < 14)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
    """)
    assert result(func, [ones(2, 14), None])["B"].tolist() == [14, 14]


def test_init_comes_before_a_reader_in_the_same_loop() -> None:
    """In a nest where a consumer follows the reduction, an empty reduction has been initialised when the consumer reads."""
    func = program("""
        def main(A: T.Buffer(("n", "m"), "float32"), C: T.Buffer((n,), "float32")):
            n, m = T.int32(), T.int32()
            B = T.sblock_alloc_buffer((n,))
            for i in range(n):
                for k in range(m):
                    with T.sblock("sum"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        with T.init():
                            B[vi] = T.float32(1)
                        B[vi] = B[vi] + A[vi, vk]
                with T.sblock("use"):
                    vi = T.axis.spatial(n, i)
                    C[vi] = B[vi] * T.float32(2)
    """)
    assert result(func, [ones(3, 0), None])["C"].tolist() == [2, 2, 2]
    assert result(func, [ones(3, 2), None])["C"].tolist() == [6, 6, 6]


def test_recomputed_producer_starts_anew() -> None:
    """A reduction recomputed for overlapping consumers is initialised every time, not once for all."""
    func = program("""
        def main(A: T.Buffer((5, 3), "float32"), C: T.Buffer((3,), "float32")):
            B = T.sblock_alloc_buffer((5,))
            for i in range(3):
                for j, k in T.grid(3, 3):
                    with T.sblock("sum"):
                        vj = T.axis.spatial(5, i + j)
                        vk = T.axis.reduce(3, k)
                        with T.init():
                            B[vj] = T.float32(0)
                        B[vj] = B[vj] + A[vj, vk]
                for j in range(3):
                    with T.sblock("use"):
                        vi, vr = T.axis.remap("SR", [i, j])
                        with T.init():
                            C[vi] = T.float32(0)
                        C[vi] = C[vi] + B[vi + vr]
    """)
    assert result(func, [ones(5, 3), None])["C"].tolist() == [9, 9, 9]


def test_nested_blocks_share_the_outer_reduction() -> None:
    """An init in an inner block belongs to the whole reduction, the outer block's part of it included."""
    func = program("""
        def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
            for io, ko in T.grid(2, 4):
                with T.sblock("outer"):
                    vio, vko = T.axis.remap("SR", [io, ko])
                    for ii, ki in T.grid(2, 2):
                        with T.sblock("inner"):
                            vi = T.axis.spatial(4, vio * 2 + ii)
                            vk = T.axis.reduce(8, vko * 2 + ki)
                            with T.init():
                                B[vi] = T.float32(0)
                            B[vi] = B[vi] + A[vi, vk]
    """)
    assert result(func, [ones(4, 8), None])["B"].tolist() == [8, 8, 8, 8]


def test_loop_in_both_kinds_of_binding() -> None:
    """One loop that makes both the spatial and the reduction variable initialises each spatial instance once."""
    func = program("""
        def main(A: T.Buffer((12,), "float32"), B: T.Buffer((4,), "float32")):
            for i in range(12):
                with T.sblock("sum"):
                    vi = T.axis.spatial(4, i // 3)
                    vk = T.axis.reduce(3, i % 3)
                    T.where(i // 3 != 2 and i % 3 != 0)
                    with T.init():
                        B[vi] = T.float32(5)
                    B[vi] = B[vi] + A[i]
    """)
    assert result(func, [ones(12), None])["B"].tolist() == [7, 7, 5, 7]


def test_init_without_reduction() -> None:
    """A block without reduction variables runs its init before each instance, guarded off or not."""
    func = program("""
        def main(B: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.sblock("b"):
                    vi = T.axis.spatial(4, i)
                    T.where(i < 2)
                    with T.init():
                        B[vi] = T.float32(1)
                    B[vi] = B[vi] + T.float32(1)
    """)
    assert result(func, [None])["B"].tolist() == [2, 2, 1, 1]


def test_branches_around_the_block() -> None:
    """A branch that depends on spatial loops decides whether an instance exists; one on the reduction guards updates only."""
    func = program("""
        def main(A: T.Buffer((4, 3), "float32"), B: T.Buffer((4,), "float32")):
            for i, k in T.grid(4, 3):
                if i != 1:
                    if k < i - 1:
                        with T.sblock("sum"):
                            vi, vk = T.axis.remap("SR", [i, k])
                            with T.init():
                                B[vi] = T.float32(5)
                            B[vi] = B[vi] + A[vi, vk]
    """)
    found = result(func, [ones(4, 3), None])
    assert found["B"].tolist() == [5, 0, 6, 7]
    assert found.states["B"].tolist() == [1, 0, 1, 1]


def test_without_init_the_first_read_faults() -> None:
    """The same sum without init reads what nobody wrote."""
    func = program("""
        def main(A: T.Buffer((4, 3), "float32"), B: T.Buffer((4,), "float32")):
            for i, k in T.grid(4, 3):
                with T.sblock("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    B[vi] = B[vi] + A[vi, vk]
    """)
    fault(func, [ones(4, 3), None], FaultKind.UNINITIALISED)


def test_spatial_extent_that_depends_on_the_reduction_is_refused() -> None:
    """Where the instances without update cannot be told, the program is refused by name."""
    func = program("""
        def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32")):
            for k in range(4):
                for i in range(k):
                    with T.sblock("sum"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        T.where(i != 1)
                        with T.init():
                            B[vi] = T.float32(0)
                        B[vi] = B[vi] + A[vi, vk]
    """)
    for plain in (False, True):
        with pytest.raises(LayoutproofError, match="spatial loop i"):
            run(func, [ones(4, 4), None], plain=plain)
