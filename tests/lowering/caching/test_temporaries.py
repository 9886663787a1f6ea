"""Temporaries with another shape: as small as what is touched of them, or two of them in turns."""

from __future__ import annotations

from random import Random

import pytest
from tests.lowering.caching.cases import is_proved, tampered
from tests.lowering.programs import program
from tests.lowering.small_operators import assert_same_results, small

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.caching.temporaries import CompactBuffer, InjectDoubleBuffer
from layoutproof.lowering.passes.find import find_buffer
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.verdict.verdict import Status


def rows() -> PrimFunc:
    """A temporary of 16 by 16, allocated for each row, of which a part of one row is used."""
    return program("""def main(A: T.Buffer((16, 16), "int32"), C: T.Buffer((16, 16), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        with T.sblock("row"):
            vi = T.axis.spatial(16, i)
            B = T.sblock_alloc_buffer((16, 16), "int32")
            for j in range(12):
                with T.sblock("first"):
                    vj = T.axis.spatial(12, j)
                    T.reads(A[vi, vj + 2])
                    T.writes(B[vi, vj + 2])
                    B[vi, vj + 2] = A[vi, vj + 2] + 1
            for j in range(12):
                with T.sblock("second"):
                    vj = T.axis.spatial(12, j)
                    C[vi, vj] = B[vi, vj + 2] * 2
""")


ROWS_COMPACT = """def main(A: T.Buffer((16, 16), "int32"), C: T.Buffer((16, 16), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        with T.sblock("row"):
            vi = T.axis.spatial(16, i)
            B = T.sblock_alloc_buffer((1, 12), "int32")
            for j in range(12):
                with T.sblock("first"):
                    vj = T.axis.spatial(12, j)
                    T.reads(A[vi, vj + 2])
                    T.writes(B[0, vj])
                    B[0, vj] = A[vi, vj + 2] + 1
            for j in range(12):
                with T.sblock("second"):
                    vj = T.axis.spatial(12, j)
                    C[vi, vj] = B[0, vj] * 2
"""


def test_memory_for_a_tile_is_as_large_as_the_tile() -> None:
    """Of a buffer that is allocated in each iteration one row is left, and of that the columns in use."""
    schedule = Schedule(rows())
    schedule.compact_buffer("B")
    assert schedule.script() == print_func(program(ROWS_COMPACT))
    assert_same_results(rows(), schedule.func)
    schedule.lower()


def shape_of(func: PrimFunc, buffer: str) -> str:
    """The shape of a buffer as text."""
    return ", ".join(str(getattr(e, "value", e)) for e in find_buffer(func, buffer).shape)


def temporary(shape: str, writes: str, body: str, loops: str = "12") -> PrimFunc:
    """`B` in the given shape, written at one index and read in `body`."""
    return program(f"""def main(A: T.Buffer((12,), "int32"), C: T.Buffer((12,), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    B = T.sblock_alloc_buffer(({shape}), "int32")
    for i in range(12):
        with T.sblock("first"):
            v = T.axis.spatial(12, i)
            B[{writes}] = A[v] + 1
    for i in range({loops}):
        with T.sblock("second"):
            v = T.axis.spatial({loops}, i)
            {body}
""")


@pytest.mark.parametrize(("func", "shape"), [
    (temporary("40,", "v", "C[v] = B[v]"), "12"),
    (temporary("40,", "2 * v + 3", "C[v] = B[2 * v + 3]"), "23"),
    (temporary("40,", "30 - v", "C[v] = B[30 - v]"), "12"),
    (temporary("5, 12", "3, v", "C[v] = B[3, v]"), "1, 12"),
    (temporary("20,", "v", "if v < 5:\n                C[v] = B[v + 7]"), "12"),
    (temporary("20,", "(v + 4) // 4 * 4 + v % 4", "C[v] = B[(v + 4) // 4 * 4 + v % 4]"), "12"),
    (temporary("12,", "v", "C[v] = B[v]"), "12"),
    (temporary("12,", "v", "C[v] = B[A[v] % 12]"), "12"),
])  # fmt: skip
def test_the_box_is_the_hull_of_what_is_touched(func: PrimFunc, shape: str) -> None:
    """Offsets, strides, directions and constants are taken off; where nothing is known, or nothing is left over, all
    stays.
    """
    schedule = Schedule(func)
    schedule.compact_buffer("B")
    assert shape_of(schedule.func, "B") == shape
    assert_same_results(func, schedule.func)


@pytest.mark.parametrize("size", [0, 1, 6])
def test_a_symbolic_part_is_kept(size: int) -> None:
    """What is touched of a symbolic buffer may be said by its symbols."""
    func = program("""def main(A: T.Buffer(("n",), "int32"), C: T.Buffer(("n",), "int32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    B = T.sblock_alloc_buffer((2 * n + 7,), "int32")
    for i in range(n):
        with T.sblock("first"):
            v = T.axis.spatial(n, i)
            B[v + 5] = A[v] + 1
    for i in range(n):
        with T.sblock("second"):
            v = T.axis.spatial(n, i)
            C[v] = B[v + 5]
""")
    schedule = Schedule(func)
    schedule.compact_buffer("B")
    assert "sblock_alloc_buffer((n,)" in schedule.script()
    assert_same_results(func, schedule.func, symbols={"n": size})


def test_padding_that_nobody_touches_goes() -> None:
    """A tile of padding without a contract is not in the touched region; its layout record goes with it."""
    schedule = Schedule(small("row_sum"))
    schedule.cache_read("A_red", "A", "local")
    schedule.transform_layout("A_red", "A_local", "lambda i, j: [i, (j + 4)//4, (j + 4)%4]")
    assert shape_of(schedule.func, "A_local") == "16, 5, 4"
    schedule.compact_buffer("A_local")
    assert shape_of(schedule.func, "A_local") == "16, 4, 4"
    assert "layoutproof.layout" not in schedule.func.attrs
    assert_same_results(small("row_sum"), schedule.func)
    assert loads(schedule.script(), "again.py") == schedule.func


def test_axis_separators_go_with_a_buffer() -> None:
    """The axis groups of a temporary stay, and a doubled one has its new axis in the first of them."""
    func = Schedule(turns())
    func.transform_layout("first", "B", "lambda j: [j//4, AXIS_SEPARATOR, j%4]")
    func.inject_double_buffer("first", "B", "i")
    assert find_buffer(func.func, "B").axis_separators == (1,)
    func.lower()
    assert "(8, 4)" in print_func(func.lowered)
    assert_same_results(turns(), func.func)


@pytest.mark.parametrize("seed", range(10))
def test_random_temporaries_compute_the_same(seed: int) -> None:
    """A stage with random offsets and strides, and a reader of some of it."""
    rng = Random(f"compact {seed}")
    scale, shift, first = rng.choice([1, 2, 3]), rng.randint(0, 5), rng.randint(0, 4)
    last = rng.randint(first + 1, 12)
    body = f"C[v + {first}] = B[{scale} * (v + {first}) + {shift}]"
    func = temporary(f"{scale * 12 + shift + rng.randint(0, 6)},", f"{scale} * v + {shift}", body, str(last - first))
    schedule = Schedule(func)
    schedule.compact_buffer("B")
    assert shape_of(schedule.func, "B") == str(scale * 11 + 1)
    assert_same_results(func, schedule.func)


@pytest.mark.parametrize("changes", [
    (("B[0, vj] * 2", "B[0, 11 - vj] * 2"),),
    (("T.sblock_alloc_buffer((1, 12)", "T.sblock_alloc_buffer((1, 11)"),),
    (("B[0, vj] = A", "B[0, vj // 2] = A"),),
])  # fmt: skip
def test_wrong_boxes_are_not_proved(changes: tuple[tuple[str, str], ...]) -> None:
    """A box that is too small, and cells that are taken for one another, are seen."""
    assert not is_proved(tampered(CompactBuffer("B").propose(rows()), *changes))


def turns() -> PrimFunc:
    """A row of a matrix at a time, through one buffer."""
    return program("""def main(A: T.Buffer((6, 16), "int32"), C: T.Buffer((6, 16), "int32")):
    T.func_attr({"tirx.noalias": True})
    B = T.sblock_alloc_buffer((16,), "int32")
    for i in range(6):
        for j in range(16):
            with T.sblock("first"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vj])
                B[vj] = A[vi, vj] + 1
        for j in range(16):
            with T.sblock("second"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(B[vj])
                T.writes(C[vi, vj])
                C[vi, vj] = B[15 - vj] * 2
""")


TURNS_DOUBLED = """def main(A: T.Buffer((6, 16), "int32"), C: T.Buffer((6, 16), "int32")):
    T.func_attr({"tirx.noalias": True})
    B = T.sblock_alloc_buffer((2, 16), "int32")
    for i in range(6):
        for j in range(16):
            with T.sblock("first"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vi % 2, vj])
                B[vi % 2, vj] = A[vi, vj] + 1
        for j in range(16):
            with T.sblock("second"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(B[vi % 2, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = B[vi % 2, 15 - vj] * 2
"""


def test_iterations_take_copies_in_turns() -> None:
    """Each iteration works on the copy of its parity."""
    schedule = Schedule(turns())
    schedule.inject_double_buffer("first", "B", "i")
    assert schedule.script() == print_func(program(TURNS_DOUBLED))
    assert_same_results(turns(), schedule.func)
    schedule.lower()


def test_blocks_get_an_iterator_and_loops_need_none() -> None:
    """A block without an iterator for the loop gets one; among plain loops the loop itself says whose turn it is."""
    func = program("""def main(A: T.Buffer((6, 16), "int32"), C: T.Buffer((16,), "int32")):
    T.func_attr({"tirx.noalias": True})
    B = T.sblock_alloc_buffer((16,), "int32")
    for i in range(2, 5):
        for j in range(16):
            with T.sblock("first"):
                vj = T.axis.spatial(16, j)
                B[vj] = A[0, vj] + 1
        for j in range(16):
            C[j] = B[15 - j] * 2
""")
    schedule = Schedule(func)
    schedule.inject_double_buffer("first", "B", "i")
    assert 'vj, v_i = T.axis.remap("SS", [j, i])' in schedule.script()
    assert "C[j] = B[i % 2, 15 - j] * 2" in schedule.script()
    assert_same_results(func, schedule.func)


def test_what_is_carried_from_one_iteration_to_the_next_is_refused() -> None:
    """An iteration that reads what the one before it wrote would find the other copy."""
    func = program("""def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    T.func_attr({"tirx.noalias": True})
    B = T.sblock_alloc_buffer((1,), "int32")
    for i in range(6):
        with T.sblock("sum"):
            vi = T.axis.spatial(6, i)
            if vi == 0:
                B[0] = 0
            B[0] = B[0] + A[vi]
            C[vi] = B[0]
""")
    with pytest.raises(IllegalTransform) as refused:
        Schedule(func).inject_double_buffer("sum", "B", "i")
    assert refused.value.status is Status.REFUTED


@pytest.mark.parametrize("changes", [
    (("C[vi, vj] = B[vi % 2, 15 - vj] * 2", "C[vi, vj] = B[(vi + 1) % 2, 15 - vj] * 2"),),
    (("B[vi % 2, vj] = A[vi, vj] + 1", "B[0, vj] = A[vi, vj] + 1"),),
])  # fmt: skip
def test_wrong_turns_are_not_proved(changes: tuple[tuple[str, str], ...]) -> None:
    """Reading the copy of another iteration is seen."""
    assert not is_proved(tampered(InjectDoubleBuffer("first", "B", "i").propose(turns()), *changes))
