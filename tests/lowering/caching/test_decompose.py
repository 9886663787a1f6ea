"""Padding stages as two: a fill and a copy without a choice."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from tests.lowering.caching.cases import is_proved, tampered
from tests.lowering.programs import program
from tests.lowering.small_operators import assert_same_results, small
from tests.shares import one_in

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.lowering.caching.decompose_padding import DecomposePadding
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule


def padded_vector() -> PrimFunc:
    """128 elements among 140."""
    return program("""def main(x: T.Buffer((128,), "int32"), y: T.Buffer((140,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(140):
        with T.sblock("block"):
            vi = T.axis.spatial(140, i)
            T.reads(x[vi - 6])
            T.writes(y[vi])
            y[vi] = T.if_then_else(vi >= 6 and vi < 134, x[vi - 6], 0)
""")


DECOMPOSED = """def main(x: T.Buffer((128,), "int32"), y: T.Buffer((140,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(140):
        with T.sblock("block_pad_const"):
            vi = T.axis.spatial(140, i)
            T.reads()
            T.writes(y[vi])
            y[vi] = 0
    for i in range(128):
        with T.sblock("block"):
            vi = T.axis.spatial(128, i)
            T.reads(x[vi])
            T.writes(y[vi + 6])
            y[vi + 6] = x[vi]
"""


def test_a_vector_is_filled_and_copied() -> None:
    """The copy runs over what is inside, and counts from 0."""
    schedule = Schedule(padded_vector())
    schedule.decompose_padding("block", "i")
    assert schedule.script() == print_func(program(DECOMPOSED))
    assert_same_results(padded_vector(), schedule.func)


PADDING = [("pad", "PadInput"), ("conv2d_nhwc", "pad_temp"), ("conv2d_nchw", "pad_temp"), ("max_pool2d", "pad_temp")]


@one_in(21)
@pytest.mark.parametrize(("name", "block"), PADDING)
@pytest.mark.parametrize("loop", range(4))
def test_operators_that_pad(name: str, block: str, loop: int) -> None:
    """At each loop around it a padding stage comes apart, and what reads it reads the same."""
    schedule = Schedule(small(name))
    schedule.decompose_padding(block, loop)
    assert_same_results(small(name), schedule.func)
    schedule.lower()


def image(loops: str, extents: str, rows: str, columns: str, where: str) -> PrimFunc:
    """225 by 225 in three channels, padded to 231 by 231, its loops tiled."""
    return program(f"""def main(x: T.Buffer((1, 3, 225, 225), "int8"), y: T.Buffer((1, 3, 231, 231), "int8")):
    T.func_attr({{"tirx.noalias": True}})
    for {loops} in T.grid({extents}):
        with T.sblock("pad"):
            {where}
            v0, v1 = T.axis.remap("SS", [i0, i1])
            v2 = T.axis.spatial(231, {rows})
            v3 = T.axis.spatial(231, {columns})
            y[v0, v1, v2, v3] = T.if_then_else(
                3 <= v2 and v2 < 228 and 3 <= v3 and v3 < 228, x[v0, v1, v2 - 3, v3 - 3], T.int8(0)
            )
""")


DIRECT = image("i0, i1, i2, i3", "1, 3, 231, 231", "i2", "i3", "T.where(True)")
TILED = image(
    "i0, i1, i2_0, i3_0, i2_1, i3_1", "1, 3, 3, 3, 77, 77", "i2_0 * 77 + i2_1", "i3_0 * 77 + i3_1", "T.where(True)"
)
UNEVEN = image(
    "i0, i1, i2_0, i3_0, i2_1, i3_1",
    "1, 3, 3, 3, 80, 80",
    "i2_0 * 80 + i2_1",
    "i3_0 * 80 + i3_1",
    "T.where(i2_0 * 80 + i2_1 < 231 and i3_0 * 80 + i3_1 < 231)",
)


@one_in(4)
@pytest.mark.parametrize(("func", "loop", "text"), [
    (DIRECT, "i0", "for i0, i1, i2, i3 in T.grid(1, 3, 225, 225):"),
    (DIRECT, "i2", "for i2, i3 in T.grid(225, 225):"),
    (DIRECT, "i3", "for i3 in range(225):"),
    (TILED, "i0", "T.where(3 <= i2_0 * 77 + i2_1 and i2_0 * 77 + i2_1 < 228 and"),
    (TILED, "i2_1", "for i2_1, i3_1 in T.grid(77, 77):"),
    (UNEVEN, "i0", "T.where(i2_0 * 80 + i2_1 < 231 and i3_0 * 80 + i3_1 < 231 and 3 <= i2_0 * 80 + i2_1 and"),
    (UNEVEN, "i2_0", "for i2_0, i3_0, i2_1, i3_1 in T.grid(3, 3, 80, 80):"),
    (UNEVEN, "i2_1", "for i2_1, i3_1 in T.grid(80, 80):"),
])  # fmt: skip
def test_an_image_is_filled_and_copied(func: PrimFunc, loop: str, text: str) -> None:
    """Direct loops become shorter; tiles, which divide the image or do not, keep theirs under a guard."""
    schedule = Schedule(func)
    schedule.decompose_padding("pad", loop)
    assert text in schedule.script()


@pytest.mark.parametrize("size", [1, 2, 6])
def test_symbolic_padding(size: int) -> None:
    """The part inside may be said by symbols, and the choice may stand the other way around."""
    func = program("""def main(x: T.Buffer(("n",), "int32"), y: T.Buffer((n + 6,), "int32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(n + 6):
        with T.sblock("pad"):
            v = T.axis.spatial(n + 6, i)
            y[v] = T.if_then_else(v < 4 or v > n + 3, 7, x[v - 4] + v)
""")
    schedule = Schedule(func)
    schedule.decompose_padding("pad", "i")
    assert "for i in range(n):" in schedule.script() and "y[v + 4] = x[v] + (v + 4)" in schedule.script()
    assert_same_results(func, schedule.func, symbols={"n": size})


@pytest.mark.parametrize(
    "condition", ["v % 2 == 0", "v % 2 == 0 and v >= 3", "2 * v >= 5 and v < 9", "v != 4", "not (v < 2 and v < 1)"]
)
def test_other_conditions_become_guards(condition: str) -> None:
    """A condition that is no interval of one iterator guards the copy."""
    func = program(f"""def main(x: T.Buffer((12,), "int32"), y: T.Buffer((12,), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    for i in range(12):
        with T.sblock("pad"):
            v = T.axis.spatial(12, i)
            y[v] = T.if_then_else({condition}, x[v], 5)
""")
    schedule = Schedule(func)
    schedule.decompose_padding("pad", "i")
    assert "T.if_then_else" not in schedule.script()
    assert_same_results(func, schedule.func)


@one_in(4)
@pytest.mark.parametrize("seed", range(10))
def test_random_padding_computes_the_same(seed: int) -> None:
    """Two axes with random halos, one of them perhaps split."""
    rng = Random(f"padding {seed}")
    low, high = [rng.randint(0, 3) for _ in range(2)], [rng.randint(1, 3) for _ in range(2)]
    sizes = [rng.randint(1, 5) for _ in range(2)]
    shape = [a + b + c for a, b, c in zip(low, sizes, high, strict=True)]
    inside = " and ".join(f"{low[k]} <= v{k} and v{k} < {low[k] + sizes[k]}" for k in range(2))
    func = program(f"""def main(
    x: T.Buffer(({sizes[0]}, {sizes[1]}), "float32"), y: T.Buffer(({shape[0]}, {shape[1]}), "float32")
):
    T.func_attr({{"tirx.noalias": True}})
    for i, j in T.grid({shape[0]}, {shape[1]}):
        with T.sblock("pad"):
            v0, v1 = T.axis.remap("SS", [i, j])
            y[v0, v1] = T.if_then_else({inside}, x[v0 - {low[0]}, v1 - {low[1]}], T.float32(1))
""")
    schedule = Schedule(func)
    if rng.random() < 0.5:
        schedule.split("pad", rng.choice(["i", "j"]), [None, rng.choice([2, 3])])
    schedule.decompose_padding("pad", rng.randrange(2))
    assert_same_results(func, schedule.func)


@pytest.mark.parametrize("changes", [
    (("y[vi + 6] = x[vi]", "y[vi + 5] = x[vi]"),),
    (("for i in range(128)", "for i in range(127)"),),
    (("for i in range(140)", "for i in range(139)"),),
    (("y[vi] = 0", "y[vi] = 1"),),
    (("y[vi + 6] = x[vi]", "y[vi + 6] = x[127 - vi]"),),
])  # fmt: skip
def test_wrong_parts_are_not_proved(changes: tuple[tuple[str, str], ...]) -> None:
    """A copy that is shifted or short, a fill that is short or of another constant, are seen."""
    assert not is_proved(tampered(DecomposePadding("block", "i").propose(padded_vector()), *changes))


def test_the_copy_comes_last() -> None:
    """A fill after the copy would wipe it out."""
    rewrite = DecomposePadding("block", "i").propose(padded_vector())
    text = print_func(rewrite.new)
    start, middle = text.index("    for i in range(140)"), text.index("    for i in range(128)")
    fill, copy = text[start:middle], text[middle:]
    swapped = tampered(rewrite, (fill + copy, copy.rstrip("\n") + "\n" + fill))
    filled, copied = rewrite.witness.instances
    instances = (replace(copied, new_store=0), replace(filled, new_store=1))
    assert not is_proved(replace(swapped, witness=replace(swapped.witness, instances=instances)))


def test_nothing_to_pad_is_refused() -> None:
    """A condition that always holds leaves nothing to fill."""
    func = program("""def main(x: T.Buffer((12,), "int32"), y: T.Buffer((12,), "int32")):
    for i in range(12):
        with T.sblock("pad"):
            v = T.axis.spatial(12, i)
            y[v] = T.if_then_else(v >= 0 and v < 12, x[v], 0)
""")
    with pytest.raises(IllegalTransform, match="always holds"):
        Schedule(func).decompose_padding("pad", "i")
