"""Blocks over another iteration space: the cases of upstream's own tests, guards for maps that are not onto, and what
is refused.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.lowering.loops.instances import check_theta
from tests.lowering.programs import copy, program, running_sum
from tests.lowering.small_operators import assert_same_results, inputs_of
from tests.random.nests import apart, assert_same_sums
from tests.shares import one_in

from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.interp import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.loops.block_layout import TransformBlockLayout
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.verdict import Status

HEAD = "# from tvm.script import tirx as T\n\n@T.prim_func(s_tir=True)\n"
NOALIAS = '    T.func_attr({"tirx.noalias": True})\n'


def grid(rows: str, columns: str, dtype: str = "int32") -> PrimFunc:
    """`B = A + 1` over rows and columns."""
    symbols = "".join(f"    {n} = T.int32()\n" for n in ("n", "m") if n in f"{rows},{columns}")
    shape = ", ".join(f'"{e}"' if e.isidentifier() else e for e in (rows, columns))
    return program(f"""def main(A: T.Buffer(({shape}), "{dtype}"), B: T.Buffer(({shape}), "{dtype}")):
{symbols}{NOALIAS}    for i, j in T.grid({rows}, {columns}):
        with T.sblock("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1
""")


def test_a_block_is_flattened() -> None:
    """Fact 73, the whole program: two iteration variables become one, and the indices its digits."""
    schedule = Schedule(grid("128", "128"))
    assert schedule.transform_block_layout("add", lambda i, j: [i * 128 + j]).status is Status.PROVED
    assert (
        schedule.script()
        == f"""{HEAD}def main(A: T.Buffer((128, 128), "int32"), B: T.Buffer((128, 128), "int32")):
{NOALIAS}    for ax0 in range(16384):
        with T.sblock("add"):
            v0 = T.axis.spatial(16384, ax0)
            B[v0 // 128, v0 % 128] = A[v0 // 128, v0 % 128] + 1
"""
    )
    assert loads(schedule.script(), "again.py") == schedule.func


CONV2D = f"""def main(
    A: T.Buffer((1, 10, 10, 3), "float32"), W: T.Buffer((7, 7, 3, 4), "float32"), B: T.Buffer((1, 4, 4, 4), "float32")
):
{NOALIAS}    for n, h, w, co, rh, rw, rc in T.grid(1, 4, 4, 4, 7, 7, 3):
        with T.sblock("conv"):
            vn, vh, vw, vco, vrh, vrw, vrc = T.axis.remap("SSSSRRR", [n, h, w, co, rh, rw, rc])
            with T.init():
                B[vn, vh, vw, vco] = T.float32(0)
            B[vn, vh, vw, vco] = B[vn, vh, vw, vco] + A[vn, vh + vrh, vw + vrw, vrc] * W[vrh, vrw, vrc, vco]
"""
GEMM = "lambda n, h, w, co, rh, rw, rc: [n*16 + h*4 + w, co, rh*21 + rw*3 + rc]"


def test_a_convolution_becomes_a_matrix_product() -> None:
    """Fact 73 with a smaller image: seven iteration variables become three, each sum in its old order, bit for bit."""
    func = program(CONV2D)
    schedule = Schedule(func)
    step = schedule.transform_block_layout("conv", GEMM)
    assert step.status is Status.PROVED and not {word for v in step.verdicts for word in v.strictness}
    assert "for ax0, ax1, ax2 in T.grid(16, 4, 147):" in schedule.script()
    assert 'v0, v1, v2 = T.axis.remap("SSR", [ax0, ax1, ax2])' in schedule.script()
    assert_same_results(func, schedule.func, {})


def test_unit_dimensions_change_places() -> None:
    """Fact 73: a variable of one value is no reason to refuse, and no part of an index."""
    schedule = Schedule(grid("128", "1"))
    assert schedule.transform_block_layout("add", "lambda i, j: [j, i]").status is Status.PROVED
    assert "for ax0, ax1 in T.grid(1, 128):" in schedule.script()


@pytest.mark.parametrize(
    "rows, columns, index_map, loops, guard",
    [
        ("14", "3", "lambda i, j: [i//4, j, i%4]", "for ax0, ax1, ax2 in T.grid(4, 3, 4):", "ax0 * 4 + ax2 < 14"),
        ("16", "3", "lambda i, j: [i//4, j, i%4]", "for ax0, ax1, ax2 in T.grid(4, 3, 4):", None),
        ("4", "4", "lambda i, j: [i, (i + j) % 4]", "for ax0, ax1 in T.grid(4, 4):", None),
        ("4", "4", "lambda i, j: [i + j, j]", "for ax0, ax1 in T.grid(7, 4):", "ax0 - ax1 >= 0 and ax0 - ax1 < 4"),
        ("4", "3", "lambda i, j: [2*i, j]", "for ax0, ax1 in T.grid(7, 3):", "ax0 // 2 * 2 == ax0"),
        ("4", "3", "lambda i, j: [i, 0, j]", "for ax0, ax1, ax2 in T.grid(4, 1, 3):", None),
        (
            "n",
            "3",
            "lambda i, j: [i//4, j, i%4]",
            "for ax0, ax1, ax2 in T.grid((n + 3) // 4, 3, 4):",
            "ax0 * 4 + ax2 < n",
        ),
        ("n", "3", "lambda i, j: [i*3 + j]", "for ax0 in range(3 * n):", None),
        ("n", "m", "lambda i, j: [j, i]", "for ax0, ax1 in T.grid(m, n):", None),
    ],
)
def test_maps_that_are_not_onto_are_guarded(
    rows: str, columns: str, index_map: str, loops: str, guard: str | None
) -> None:
    """Every place of the new space that no iteration has is kept from doing anything; for symbolic sizes, at every
    size.
    """
    func = grid(rows, columns)
    schedule = Schedule(func)
    assert schedule.transform_block_layout("add", index_map).status is Status.PROVED
    text = schedule.script()
    assert loops in text
    assert (f"T.where({guard})" in text) if guard is not None else "T.where" not in text
    for n in (0, 1, 5, 8):
        check_theta(schedule.steps[0].rewrite, {"n": n, "m": 3})


def test_a_guard_keeps_the_init_off_too() -> None:
    """What guards results and what guards updates stand in the block's own guard, under which its init is as well."""
    func = apart(running_sum())
    schedule = Schedule(func)
    assert schedule.transform_block_layout("sum", "lambda i, k: [i//4, k//2, i%4, k%2]").status is Status.PROVED
    text = schedule.script()
    assert "T.where(ax0 * 4 + ax2 < 14 and ax1 * 2 + ax3 < 5)" in text
    assert_same_sums(func, schedule.func)


def test_own_guards_go_along() -> None:
    """A block's guard and a branch between its loops are over the new loops."""
    func = program(f"""def main(A: T.Buffer((16, 6), "int32"), B: T.Buffer((16, 6), "int32")):
{NOALIAS}    for i in range(16):
        if i < 15:
            for j in range(6):
                with T.sblock("add"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.where(i + vj < 17)
                    B[vi, vj] = A[vi, vj] + 1
""")
    schedule = Schedule(func)
    assert schedule.transform_block_layout("add", "lambda i, j: [j, i//4, i%4]").status is Status.PROVED
    given = inputs_of(func)
    np.testing.assert_array_equal(run(schedule.func, given)["B"], run(func, given)["B"])


def test_parallel_loops_stay_parallel() -> None:
    """Only where all of them were."""
    func = grid("16", "4")
    for words, expected in (
        (("T.parallel(16)", "T.parallel(4)"), "T.parallel(64)"),
        (("T.parallel(16)", "range(4)"), "range(64)"),
    ):
        nest = f"for i in {words[0]}:\n        for j in {words[1]}:\n            "
        body = print_func(func).split("T.grid(16, 4):\n")[1].replace("\n    ", "\n        ").rstrip() + "\n"
        text = print_func(func).split("for i, j")[0] + nest + body.lstrip()
        schedule = Schedule(loads(text, "parallel.py"))
        assert schedule.transform_block_layout("add", "lambda i, j: [i*4 + j]").status is Status.PROVED
        assert f"for ax0 in {expected}" in schedule.script()


def test_wide_indices_stay_wide() -> None:
    """A block over 64-bit loops has 64-bit loops after."""
    func = program(f"""def main(A: T.Buffer((T.int64(16),), "int32")):
{NOALIAS}    for i in range(T.int64(16)):
        with T.sblock("one"):
            v = T.axis.spatial(T.int64(16), i)
            A[v] = 1
""")
    schedule = Schedule(func)
    assert schedule.transform_block_layout("one", "lambda i: [i//4, i%4]").status is Status.PROVED
    assert "T.int64(4)" in schedule.script()


@one_in(4)
def test_a_symbol_may_be_the_radix() -> None:
    """Fact 72: flattened by a symbol, for every size; upstream does this only where it is told to take the map for
    injective.
    """
    func = program(f"""def main(A: T.Buffer((32, "n", 128), "int32"), B: T.Buffer((32, "n", 128), "int32")):
    n = T.int32()
{NOALIAS}    for y, w, c in T.grid(32, n, 128):
        with T.sblock("add"):
            vy, vw, vc = T.axis.remap("SSS", [y, w, c])
            B[vy, vw, vc] = A[vy, vw, vc] + 1
""")
    schedule = Schedule(func)
    assert schedule.transform_block_layout("add", "lambda y, w, c: [y*n + w, c]").status is Status.PROVED
    assert "for ax0, ax1 in T.grid(32 * n, 128):" in schedule.script()
    assert "B[v0 // n, v0 % n, v1] = A[v0 // n, v0 % n, v1] + 1" in schedule.script()
    check_theta(schedule.steps[0].rewrite, {"n": 3})


BOUND = """def main(A: T.Buffer((16,), "int32")):
    for i, j in T.grid({0}, {1}):
        with T.sblock("one"):
            v = T.axis.spatial({2}, {3})
            A[v] = 1
"""
REFUSED = [
    (apart(running_sum()), "sum", "lambda i, k: [i*5 + k]", "mixes i (spatial) and k (reduction)"),
    (grid("128", "128"), "add", "lambda i, j: [i + j]", "is not injective on the iterations of block add"),
    (grid("14", "2"), "add", "lambda i, j: [i//4, j]", "is not injective on the iterations of block add"),
    (grid("14", "2"), "add", "lambda i: [i]", "takes 1 index, block add has 2 iteration variables"),
    (grid("14", "2"), "dad", "lambda i, j: [i, j]", "no block called 'dad'"),
    (program(BOUND.format(4, 4, 16, "i * 4 + j")), "one", "lambda i: [i]", "v of block one is not bound to a loop"),
    (program(BOUND.format(4, 4, 16, "j")), "one", "lambda i: [i]", "loop j does not run over the whole domain of v"),
    (program(BOUND.format(2, 4, 4, "j")), "one", "lambda i: [-i]", "a physical index is at least 0"),
    (
        program(BOUND.format(4, 4, 4, "i")),
        "one",
        "lambda i: [i]",
        "loop j stands among the loops of block one, which has no variable bound to it",
    ),
    (
        program(
            BOUND.format(4, 4, 4, "i").replace(
                "            A[v]", "            w = T.axis.spatial(4, i)\n            A[v]"
            )
        ),
        "one",
        "lambda i, j: [i, j]",
        "two variables of block one are bound to loop i",
    ),
]


@pytest.mark.parametrize("func, block, index_map, words", REFUSED)
def test_what_cannot_run_over_another_space_is_refused(func: PrimFunc, block: str, index_map: str, words: str) -> None:
    """Maps that mix kinds or lose iterations, and blocks whose variables are not their loops; the schedule is as it
    was.
    """
    schedule = Schedule(func)
    with pytest.raises(IllegalTransform) as caught:
        schedule.transform_block_layout(block, index_map)
    assert words in str(caught.value)
    assert schedule.func == func and not schedule.steps


def test_a_map_that_loses_iterations_has_its_counterexample() -> None:
    """Two iterations that would be one are named, as the verdict has them."""
    with pytest.raises(IllegalTransform, match=r"\[0, 1\] and \[1, 0\] both go to \[1\]") as caught:
        Schedule(grid("128", "128")).transform_block_layout("add", "lambda i, j: [i + j]")
    assert caught.value.status is Status.REFUTED and caught.value.verdicts[0].counterexample is not None


def test_a_missing_guard_is_found() -> None:
    """The same proposal without its guard leaves the buffers, and is refuted."""
    rewrite = TransformBlockLayout("copy", "lambda i: [i//4, i%4]").propose(apart(copy()))
    wrong = loads(
        "".join(line for line in print_func(rewrite.new).splitlines(keepends=True) if "T.where" not in line), "wrong.py"
    )
    assert Status.REFUTED in {v.status for v in check_rewrite(Rewrite(rewrite.old, wrong, rewrite.witness))}


def test_maps_are_given_as_text_functions_and_maps() -> None:
    """All three are the same step, which reads back from its options."""
    given = "lambda i, j: [j, i]"
    steps = []
    for index_map in (given, lambda i, j: [j, i], IndexMap.from_func(lambda i, j: [j, i], 2)):
        schedule = Schedule(grid("6", "4"))
        steps.append(schedule.transform_block_layout("add", index_map).transform)
        assert Schedule.replay(schedule.original, schedule.trace).func == schedule.func
    assert steps[0] == TransformBlockLayout("add", given)
    assert TransformBlockLayout.from_arguments(steps[1].arguments()) == steps[1] == steps[2]


MAPS = [
    "[i//{a}, k, i%{a}, l]",
    "[k//{a}, i, k%{a}, l]",
    "[i*{l} + l, k]",
    "[l, i//{a}, k//{a}, i%{a}, k%{a}]",
    "[(i + 1)//{a}, (i + 1)%{a}, k, l]",
    "[i, (i + l)%{l}, k]",
    "[k, l, i]",
    "[i + 2*l, l, k]",
    "[3*i + 1, {l} - 1 - l, k]",
]


@one_in(4)
@pytest.mark.parametrize("seed", range(18))
def test_random_maps_compute_the_same(seed: int) -> None:
    """A sum of whole numbers over random extents under a random map: proved, and the same sums."""
    rng = Random(f"block layout {seed}")
    rows, terms, columns = rng.randint(1, 7), rng.randint(1, 5), rng.randint(1, 4)
    func = program(f"""def main(
    A: T.Buffer(({rows}, {terms}, {columns}), "int32"), B: T.Buffer(({rows}, {columns}), "int32")
):
{NOALIAS}    for i, k, l in T.grid({rows}, {terms}, {columns}):
        with T.sblock("sum"):
            vi, vk, vl = T.axis.remap("SRS", [i, k, l])
            with T.init():
                B[vi, vl] = 0
            B[vi, vl] = B[vi, vl] + A[vi, vk, vl] * (vi + 2 * vk)
""")
    text = MAPS[seed % len(MAPS)].format(a=rng.randint(2, 4), l=columns)
    rewrite = TransformBlockLayout("sum", f"lambda i, k, l: {text}").propose(func)
    check_theta(rewrite)
    assert_same_sums(func, rewrite.new)
    assert {v.status for v in check_rewrite(rewrite)} == {Status.PROVED}
