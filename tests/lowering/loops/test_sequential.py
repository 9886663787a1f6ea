"""Following a buffer: the order of visits, the guards, and the init that is split off where it cannot follow."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from tests.lowering.loops.instances import check_theta, instances_of
from tests.lowering.loops.test_split import loops_of
from tests.lowering.programs import program, running_sum
from tests.lowering.small_operators import assert_same_results, small
from tests.random.nests import assert_same_sums, lowered, random_nest
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.interp import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.visit import loops_of_stores, stores_in
from layoutproof.lowering.layout.transform_layout import TransformLayout
from layoutproof.lowering.loops.access import find_touch
from layoutproof.lowering.loops.sequential_access import SequentialBufferAccess
from layoutproof.lowering.loops.tiling import Split
from layoutproof.lowering.passes.find import find_buffer

CONVOLUTION = """def main(A: T.Buffer((16,), "int32"), F: T.Buffer((3,), "int32"), B: T.Buffer((14,), "int32")):
    for i, f in T.grid(14, 3):
        with T.sblock("conv"):
            vi, vf = T.axis.remap("SR", [i, f])
            T.reads(A[vi + vf], F[vf])
            T.writes(B[vi])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi + vf] * F[vf]
"""
PLAIN_CONVOLUTION = """def main(A: T.Buffer((16,), "int32"), F: T.Buffer((3,), "int32"), B: T.Buffer((14,), "int32")):
    for i in range(14):
        B[i] = 0
        for f in range(3):
            B[i] = B[i] + A[i + f] * F[f]
        B[i] = B[i] + 1
"""


def follow(func: PrimFunc, block: str, buffer: str) -> PrimFunc:
    """The function with a block's loops in a buffer's order; the witness is checked by running both."""
    rewrite = SequentialBufferAccess(block, buffer).propose(func)
    check_theta(rewrite)
    return rewrite.new


def relaid(func: PrimFunc, block: str, buffer: str, index_map: str) -> PrimFunc:
    """The function with a buffer stored by an index map, without a contract."""
    return TransformLayout(block, buffer, index_map).propose(func).new


def visits(func: PrimFunc, block: str, buffer: str) -> list[int]:
    """The row-major positions in a buffer that a block's accesses have, in the order in which they happen."""
    touch = find_touch(func, block, find_buffer(func, buffer))
    shape = [int(evaluate(extent, {})) for extent in touch.node.buffer.shape]
    stores = list(stores_in(func.body))
    number = next(n for n, s in enumerate(stores) if any(s is part for part in (touch.node, touch.path[-1])))
    names = [loop.var.name for loop in loops_of_stores(func.body)[number]]
    result = []
    for instance in instances_of(func)[number]:
        env = dict(zip(names, instance, strict=True))
        position = 0
        for extent, coordinate in zip(shape, touch.index, strict=True):
            position = position * extent + int(evaluate(coordinate, env))
        result.append(position)
    return result


def in_order(positions: list[int]) -> bool:
    """Whether positions never go back."""
    return all(a <= b for a, b in pairwise(positions))


@pytest.mark.parametrize(
    "index_map, loops, guard",
    [
        ("lambda i, k: [i, k]", "for i, k in T.grid(14, 5):", None),
        ("lambda i, k: [k, i]", "for k, i in T.grid(5, 14):", None),
        ("lambda i, k: [i//7, k, i%7]", "for i_0, k, i_1 in T.grid(2, 5, 7):", None),
        ("lambda i, k: [i//4, k, i%4]", "for i_0, k, i_1 in T.grid(4, 5, 4):", "i_0 * 4 + i_1 < 14"),
        ("lambda i, k: [i, k//2, k%2]", "for i, k_0, k_1 in T.grid(14, 3, 2):", "k_0 * 2 + k_1 < 5"),
        ("lambda i, k: [(i + 2)//8, (i + 2)%8, k]", "for i_0, i_1, k in T.grid(2, 8, 5):", "i_0 * 8 + i_1 - 2 >= 0"),
    ],
)
def test_a_sum_follows_its_input(index_map: str, loops: str, guard: str | None) -> None:
    """The loops are those of the physical axes, and only axes that are not filled have a guard."""
    func = relaid(running_sum(), "sum", "A", index_map)
    new = follow(func, "sum", "A")
    text = print_func(new)
    assert loops_of(new) == [loops]
    assert ("T.where" in text) == (guard is not None) and (guard is None or guard in text)
    assert "sum_init" not in text
    assert in_order(visits(new, "sum", "A"))
    assert_same_results(running_sum(), new)


@pytest.mark.parametrize("index_map", ["lambda i, k: [i*5 + k]", "lambda i, k: [k*14 + i]"])
def test_a_flat_input_makes_one_loop(index_map: str) -> None:
    """Results and the reduction share a loop then, so the init is split off."""
    new = follow(relaid(running_sum(), "sum", "A", index_map), "sum", "A")
    assert loops_of(new) == ["for i_init in range(14):", "for i_k_fused in range(70):"]
    assert visits(new, "sum", "A") == list(range(70))
    assert_same_results(running_sum(), new)


def test_what_is_in_order_stays_as_it_is() -> None:
    """A nest that follows its buffer already is the same program."""
    assert follow(running_sum(), "sum", "A") == running_sum()


@pytest.mark.parametrize(
    "buffer, order", [("A", "for ax0, k, ax1 in"), ("B", "for k, ax1, ax0 in"), ("T_matmul", "for ax0, ax1, k in")]
)
def test_a_product_follows_each_of_its_buffers(buffer: str, order: str) -> None:
    """Loops that do not move along the buffer go inside, in their order; with a reduction outside, init stays in the
    block.
    """
    new = follow(small("matmul"), "T_matmul", buffer)
    assert loops_of(new)[0].startswith(order)
    assert "T.init()" in print_func(new)


def test_a_convolution_follows_its_input() -> None:
    """`i` follows from the place and the tap; results are begun anew with each place, so the init is split off."""
    new = follow(program(CONVOLUTION), "conv", "A")
    text = print_func(new)
    assert loops_of(new) == ["for i_init in range(14):", "for i_0, f in T.grid(16, 3):"]
    assert "T.where(i_0 - f >= 0 and i_0 - f < 14)" in text and "T.init" not in text
    assert in_order(visits(new, "conv", "A"))
    assert_same_results(program(CONVOLUTION), new)
    assert_same_results(program(CONVOLUTION), lowered(new))


@pytest.mark.parametrize(
    "index_map", ["lambda i: [i//4, i%4]", "lambda i: [(i + 3)//5, (i + 3)%5]", "lambda i: [i%4, i//4]"]
)
def test_a_convolution_follows_its_input_as_it_is_stored(index_map: str) -> None:
    """The order is that of the physical layout, whatever the map."""
    new = follow(relaid(program(CONVOLUTION), "conv", "A", index_map), "conv", "A")
    assert in_order(visits(new, "conv", "A"))
    assert_same_results(program(CONVOLUTION), new)


def test_an_init_among_plain_loops_is_split_off() -> None:
    """What stands before and after the reduction gets loops of its own."""
    func = program(PLAIN_CONVOLUTION)
    new = follow(func, "root", "A")
    assert loops_of(new) == ["for i in range(14):", "for i_0, f in T.grid(16, 3):", "for i in range(14):"]
    assert_same_results(func, new)


def test_plain_loops_are_left_together_where_they_are_in_order() -> None:
    """Rows that come one after the other need no splitting."""
    func = program("""def main(A: T.Buffer((6, 5), "int32"), B: T.Buffer((6,), "int32")):
    for i in range(6):
        B[i] = 0
        for j in range(5):
            B[i] = B[i] + A[i, j]
""")
    assert follow(func, "root", "A") == func
    new = follow(relaid(func, "root", "A", "lambda i, j: [i, j//2, j%2]"), "root", "A")
    assert loops_of(new) == ["for i in range(6):", "for j_0, j_1 in T.grid(3, 2):"]
    assert_same_results(func, new)


@pytest.mark.parametrize("stride, dilation", [(1, 1), (2, 1), (1, 2), (2, 3), (3, 2)])
def test_strides_and_dilations_are_turned_around(stride: int, dilation: int) -> None:
    """Places between two steps are guarded off."""
    func = program(f"""def main(A: T.Buffer((30,), "int32"), F: T.Buffer((3,), "int32"), B: T.Buffer((7,), "int32")):
    for i, f in T.grid(7, 3):
        with T.sblock("conv"):
            vi, vf = T.axis.remap("SR", [i, f])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi * {stride} + vf * {dilation} + 1] * F[vf]
""")
    new = follow(func, "conv", "A")
    assert in_order(visits(new, "conv", "A"))
    assert_same_results(func, new)


@pytest.mark.parametrize(
    "index_map",
    [
        "lambda i: [i//8, (i//8 % 8) ^ (i%8)]",
        "lambda i: [(5*i) % 64]",
        "lambda i: [63 - i]",
        "lambda i: [i//8, (i + i//8) % 8]",
    ],
)
def test_permutations_need_no_guard(index_map: str) -> None:
    """Swizzles, multipliers, reversals and rotations fill their box; every cell has its iteration."""
    func = program("""def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    for i in range(64):
        with T.sblock("copy"):
            v = T.axis.spatial(64, i)
            B[v] = A[v] * 2
""")
    new = follow(relaid(func, "copy", "B", index_map), "copy", "B")
    assert "T.where" not in print_func(new) and "if " not in print_func(new)
    positions = visits(new, "copy", "B")
    assert in_order(positions) and len(set(positions)) == 64
    assert_same_results(func, new)


def test_guards_on_the_way_are_kept() -> None:
    """The guard of a split loop goes on guarding: its iterations past the end have no place in the buffer."""
    new = follow(Split("sum", "i", (None, 4)).propose(running_sum()).new, "sum", "A")
    assert in_order(visits(new, "sum", "A"))
    assert_same_results(running_sum(), new)


@pytest.mark.parametrize("index", ["i, i", "i, j, i", "i, i, i"])
def test_a_diagonal_is_followed(index: str) -> None:
    """If several axes are one loop, one of them keeps it, and a guard restricts the others to it."""
    func = program(f"""def main(A: T.Buffer(({"4, " * (index.count(",") + 1)}), "int32"), B: T.Buffer((4,), "int32")):
    for i, j in T.grid(4, 4):
        with T.sblock("b"):
            A[{index}] = B[i] + j
""")
    new = follow(func, "b", "A")
    assert in_order(visits(new, "b", "A"))
    assert_same_results(func, new)


def test_short_loops_are_taken_as_long_ones() -> None:
    """One channel in a block of four is channel `k_1`, not channel 0 whatever `k_1` is: without its guard it is
    computed once.
    """
    func = program("""def main(A: T.Buffer((5, 1), "int32"), B: T.Buffer((5, 1), "int32")):
    for i, k in T.grid(5, 1):
        with T.sblock("copy"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = A[vi, vk]
""")
    text = print_func(follow(relaid(func, "copy", "B", "lambda i, k: [k//4, i, k%4]"), "copy", "B"))
    assert "T.axis.spatial(1, k_1)" in text and "T.where(k_1 < 1)" in text


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 14])
def test_symbolic_convolutions_follow_their_input(size: int) -> None:
    """For every length, the empty one included."""
    func = program(
        CONVOLUTION.replace("16", "n + 2").replace("14", "n").replace("    for i, f", "    n = T.int32()\n    for i, f")
    )
    rewrite = SequentialBufferAccess("conv", "A").propose(func)
    check_theta(rewrite, {"n": size})
    given = {
        "A": np.arange(size + 2, dtype=np.int32),
        "F": np.array([3, -1, 2], np.int32),
        "B": np.zeros(size, np.int32),
    }
    np.testing.assert_array_equal(run(func, given)["B"], run(rewrite.new, given)["B"])


REFUSED = [
    ("copy", "C", "main has no buffer called 'C'"),
    ("copy", "D", "block copy neither reads nor writes D"),
    ("nothing", "B", "main has no block called 'nothing'"),
    ("twice", "A", "block twice touches A at [i] and [i + 1]: it has no one order to follow"),
    ("gather", "A", "the index of A in block gather depends on data or has lanes"),
    ("inner", "A", "A is accessed along j, which stands inside block inner"),
    ("still", "A", "no loop of block still moves along A"),
    ("conditional", "A", "axis 0"),
    ("triangle", "A", "the range of loop j depends on another loop"),
]


@pytest.mark.parametrize("block, buffer, words", REFUSED)
def test_what_has_no_order_is_refused(block: str, buffer: str, words: str) -> None:
    """Each reason is said, with the place."""
    func = program("""def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.sblock("copy"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]
    for i in range(7):
        with T.sblock("twice"):
            v = T.axis.spatial(7, i)
            B[v] = A[v] + A[v + 1]
    for i in range(8):
        with T.sblock("gather"):
            v = T.axis.spatial(8, i)
            B[v] = A[D[v]]
    for i in range(2):
        with T.sblock("inner"):
            v = T.axis.spatial(2, i)
            for j in range(4):
                B[v * 4 + j] = A[v * 4 + j]
    for i in range(8):
        with T.sblock("still"):
            v = T.axis.spatial(8, i)
            B[v] = A[0]
    for i in range(8):
        with T.sblock("conditional"):
            v = T.axis.spatial(8, i)
            B[v] = T.if_then_else(v > 0, A[v - 1], 0)
    for i in range(4):
        for j in range(i):
            with T.sblock("triangle"):
                v = T.axis.spatial(4, i)
                w = T.axis.spatial(4, j)
                B[v] = A[v + w]
""")
    with pytest.raises(LayoutproofError) as caught:
        SequentialBufferAccess(block, buffer).propose(func)
    assert words in caught.value.diagnostics[0].message


@one_in(7)
@pytest.mark.parametrize("seed", range(16))
def test_random_nests_compute_the_same(seed: int) -> None:
    """Following any buffer of a random nest, transformed or not, preserves integer sums, lowered or not."""
    rng = Random(f"follow {seed}")
    func = random_nest(rng)
    buffer = rng.choice("AB")
    tile = rng.choice([2, 3])
    text = "lambda i, j: [j//{0}, i, j%{0}]" if buffer == "B" else "lambda i, j, k, l: [k//{0}, j, l, k%{0}, i]"
    stored = relaid(func, "sum", buffer, text.format(tile)) if rng.random() < 0.7 else func
    new = follow(stored, "sum", buffer)
    assert in_order(visits(new, "sum", buffer))
    assert_same_results(func, new)
    assert_same_results(func, lowered(new))


def test_sums_of_lowered_nests_follow_their_input() -> None:
    """Plain loops of lowered blocks follow the input, too."""
    for seed in range(6):
        func = lowered(random_nest(Random(f"plain {seed}")))
        new = follow(func, "root", "A")
        assert in_order(visits(new, "root", "A"))
        assert_same_sums(func, new)
