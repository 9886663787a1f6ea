"""Iterators padded to multiples: copies are filled with what is neutral, and results outside are thrown away."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from tests.lowering.caching.cases import is_proved, tampered
from tests.lowering.programs import program
from tests.lowering.small_operators import assert_same_results, small
from tests.shares import one_in

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.lowering.caching.pad_einsum import PadEinsum
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.verdict.verdict import Status


def product(rows: str, columns: str, depth: str, declared: str = "") -> PrimFunc:
    """A matrix product of these sizes."""
    head = f'A: T.Buffer(({rows}, {depth}), "float32"), B: T.Buffer(({depth}, {columns}), "float32")'
    sizes = [size.strip('"') for size in (rows, columns, depth)]
    return program(f"""def main({head}, C: T.Buffer(({rows}, {columns}), "float32")):
    {declared}
    T.func_attr({{"tirx.noalias": True}})
    for i, j, k in T.grid({", ".join(sizes)}):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")


PADDED = """def main(A: T.Buffer((6, 7), "float32"), B: T.Buffer((7, 5), "float32"), C: T.Buffer((6, 5), "float32")):
    T.func_attr({"tirx.noalias": True})
    B_pad = T.sblock_alloc_buffer((7, 8))
    C_pad = T.sblock_alloc_buffer((6, 8))
    for ax0, ax1 in T.grid(7, 8):
        with T.sblock("B_pad"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            T.reads(B[v0, v1])
            T.writes(B_pad[v0, v1])
            if v1 < 5:
                B_pad[v0, v1] = B[v0, v1]
            else:
                B_pad[v0, v1] = T.float32(0)
    for i, j, k in T.grid(6, 8, 7):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B_pad[vk, vj])
            T.writes(C_pad[vi, vj])
            with T.init():
                C_pad[vi, vj] = T.float32(0)
            C_pad[vi, vj] = C_pad[vi, vj] + A[vi, vk] * B_pad[vk, vj]
    for ax0_1, ax1_1 in T.grid(6, 5):
        with T.sblock("C_pad"):
            v0_1, v1_1 = T.axis.remap("SS", [ax0_1, ax1_1])
            T.reads(C_pad[v0_1, v1_1])
            T.writes(C[v0_1, v1_1])
            C[v0_1, v1_1] = C_pad[v0_1, v1_1]
"""


def test_the_text_of_a_padded_product() -> None:
    """What a padded iterator indexes is copied to something larger; what it does not is left alone."""
    assert print_func(PadEinsum("C", (2, 4, 1)).propose(product("6", "5", "7")).new) == print_func(program(PADDED))


@one_in(12)
@pytest.mark.parametrize(("name", "block", "padding"), [
    ("matmul", "T_matmul", (4, 4, 1)),
    ("matmul", "T_matmul", (4, 4, 4)),
    ("matmul", "T_matmul", (1, 1, 4)),
    ("dense", "T_matmul_NT", (4, 1, 1)),
    ("row_sum", "A_red", (3, 1)),
    ("row_sum", "A_red", (8, 8)),
    ("max_axis1", "A_red", (32, 15)),
    ("max_axis1", "A_red", (1, 16)),
    ("min_axis1", "A_red", (5, 16)),
    ("relu_nhwc", "compute", (4, 2, 1, 4)),
    ("bias_add", "T_add", (1, 4, 4, 4)),
    ("conv2d_nhwc", "conv2d_nhwc", (1, 1, 1, 4, 1, 1, 4)),
    ("softmax", "T_softmax_exp", (2, 4)),
    ("softmax", "T_softmax_norm", (2, 4)),
    ("transpose", "T_transpose", (4, 4, 4)),
])  # fmt: skip
def test_operators_compute_the_same(name: str, block: str, padding: tuple[int, ...]) -> None:
    """Sums, products, extremes and plain stages, padded in space and in what is reduced."""
    func = small(name)
    schedule = Schedule(func)
    schedule.pad_einsum(block, padding)
    assert_same_results(func, schedule.func)
    schedule.lower()


@one_in(4)
@pytest.mark.parametrize("size", [0, 1, 31, 32, 33])
def test_symbolic_rows_are_padded_to_a_multiple(size: int) -> None:
    """A symbol is rounded up."""
    func = product('"n"', "4", "3", "n = T.int32()")
    schedule = Schedule(func)
    schedule.pad_einsum("C", [32, 32, 1])
    assert "for i, j, k in T.grid((n + 31) // 32 * 32, 32, 3):" in schedule.script()
    assert_same_results(func, schedule.func, symbols={"n": size})


def test_a_product_of_full_size() -> None:
    """127 columns and 127 terms become 128; all rows, columns and terms then come in tiles of 32."""
    schedule = Schedule(product("128", "127", "127"))
    schedule.pad_einsum("C", [32, 32, 32])
    assert "for i, j, k in T.grid(128, 128, 128):" in schedule.script()
    schedule.split("C", "k", [None, 32])
    schedule.lower()


@pytest.mark.parametrize("size", [0, 1, 5])
def test_rows_of_a_symbolic_norm(size: int) -> None:
    """A sum of squares reads its input twice at one place; its rows are padded for every size."""
    func = program("""def main(A: T.Buffer((1, "n", 6), "float32"), S: T.Buffer((1, "n"), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for b, i, k in T.grid(1, n, 6):
        with T.sblock("squares"):
            vb, vi, vk = T.axis.remap("SSR", [b, i, k])
            with T.init():
                S[vb, vi] = T.float32(0)
            S[vb, vi] = S[vb, vi] + A[vb, vi, vk] * A[vb, vi, vk]
""")
    schedule = Schedule(func)
    schedule.pad_einsum("squares", [1, 32, 1])
    assert_same_results(func, schedule.func, symbols={"n": size})


def test_factors_that_divide_change_nothing() -> None:
    """Where every factor divides, the program stays what it is."""
    schedule = Schedule(product("128", "64", "32"))
    schedule.pad_einsum("C", [32, 32, 32])
    assert schedule.func == product("128", "64", "32")


def test_a_result_that_is_added_to_is_brought_in() -> None:
    """Without an init the block goes on from what is there, and so does its copy."""
    func = program("""def main(A: T.Buffer((6, 7), "int32"), C: T.Buffer((6,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(6, 7):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi] = C[vi] + A[vi, vk]
""")
    schedule = Schedule(func)
    schedule.pad_einsum("sum", [4, 1])
    assert_same_results(func, schedule.func)


def is_refused(func: PrimFunc, block: str, padding: Sequence[int]) -> Status | None:
    """The status with which a padding is refused."""
    with pytest.raises(IllegalTransform) as refused:
        Schedule(func).pad_einsum(block, padding)
    return refused.value.status


def test_a_sum_of_what_is_not_zero_for_zero_is_refused() -> None:
    """The exponential of a padding of zeros is 1, and would be added."""
    func = program("""def main(A: T.Buffer((6, 7), "float32"), C: T.Buffer((6,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(6, 7):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + T.exp(A[vi, vk])
""")
    assert is_refused(func, "sum", [1, 8]) is Status.REFUTED


@one_in(4)
@pytest.mark.parametrize("seed", range(10))
def test_random_paddings_compute_the_same(seed: int) -> None:
    """Matrix products of random sizes, some iterators padded; what is kept computes the same."""
    rng = Random(f"einsum {seed}")
    func = product(*(str(rng.randint(1, 6)) for _ in range(3)))
    schedule = Schedule(func)
    schedule.pad_einsum("C", [rng.choice([1, 2, 4]) for _ in range(3)])
    assert_same_results(func, schedule.func)


@pytest.mark.parametrize("changes", [
    (("B_pad[v0, v1] = T.float32(0.0)", "B_pad[v0, v1] = T.float32(1.0)"), ("if v1 < 5:", "if v1 < 4:")),
    (("C[v0_1, v1_1] = C_pad[v0_1, v1_1]", "C[v0_1, v1_1] = C_pad[v0_1, v1_1 + 1]"),),
    (("B_pad[v0, v1] = B[v0, v1]", "B_pad[v0, v1] = B[v0, 4 - v1]"),),
    (("for i, j, k in T.grid(6, 8, 7)", "for i, j, k in T.grid(6, 4, 7)"),),
])  # fmt: skip
def test_wrong_paddings_are_not_proved(changes: tuple[tuple[str, str], ...]) -> None:
    """Elements that are filled over, results from the padding, other elements, and a domain cut short are seen."""
    assert not is_proved(tampered(PadEinsum("C", (2, 4, 1)).propose(product("6", "5", "7")), *changes))


def test_a_wrong_neutral_value_is_not_proved() -> None:
    """A reduction that runs over ones instead of zeros adds them."""
    rewrite = PadEinsum("C", (1, 1, 4)).propose(product("6", "5", "7"))
    assert is_proved(rewrite)
    ones = tampered(rewrite, ("= T.float32(0.0)\n    for", "= T.float32(1.0)\n    for"))
    assert not is_proved(ones)


@one_in(9)
def test_a_convolution_by_channels_in_fours_behind_its_signature() -> None:
    """Padded channels divide by 4: all copies are stored by fours, loops are split, no guard is left, and callers see
    nothing of it.
    """
    schedule = Schedule(small("conv2d_nhwc"), interface="fixed")
    schedule.pad_einsum("conv2d_nhwc", [1, 1, 1, 4, 1, 1, 4])
    fours = "lambda n, h, w, c: [n, c//4, h, w, c%4]"
    schedule.transform_layout("conv2d_nhwc", "pad_temp_pad", fours)
    schedule.transform_layout("conv2d_nhwc", "conv2d_nhwc_pad", fours)
    schedule.transform_layout("conv2d_nhwc", "W_pad", "lambda r, s, i, o: [o//4, i//4, r, s, i%4, o%4]")
    schedule.split("conv2d_nhwc", "ff", [None, 4])
    schedule.split("conv2d_nhwc", "rc", [None, 4])
    schedule.reorder("conv2d_nhwc", ["ff_0", "yy", "xx", "ry", "rx", "rc_0", "rc_1", "ff_1"])
    block = schedule.script().split('with T.sblock("conv2d_nhwc"):')[1].split("with T.sblock")[0]
    assert "T.where" not in block and "if " not in block
    assert_same_results(small("conv2d_nhwc"), schedule.func)
    schedule.lower()
