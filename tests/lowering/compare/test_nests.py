"""Nests of other loops in the same order, and layouts, over products of symbols, which integer sets cannot say."""

from __future__ import annotations

import pytest
from tests.shares import one_in

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.lowering.compare.witness_search import in_order
from layoutproof.verify.verdict.verdict import Status


def doubled(loops: str, *index: str, after: str = "") -> PrimFunc:
    """`B[...] = A[...] * 2` in loops, over any number of columns."""
    said = ", ".join(index)
    return loads(
        f"""@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 8, "n"), "float32"), B: T.Buffer((4, 8, "n"), "float32")):
    n = T.int32()
    T.func_attr({{"tirx.noalias": True}})
    for {loops}:
        B[{said}] = A[{said}] * T.float32(2)
{after}""",
        "doubled.py",
    )


NEST = doubled("i, j, k in T.grid(4, 8, n)", "i", "j", "k")
FUSED = doubled("f in range(n * 32)", "f // (n * 8)", "f % (n * 8) // n", "f % n")


@one_in(9)
@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (NEST, FUSED, Status.PROVED),
        (FUSED, NEST, Status.PROVED),
        (NEST, doubled("f in range(n * 32)", "f // (n * 8)", "f % (n * 8) // n", "n - 1 - f % n"), Status.UNKNOWN),
        (NEST, doubled("f in range(n * 32 - 1)", "f // (n * 8)", "f % (n * 8) // n", "f % n"), Status.REFUTED),
        (NEST, doubled("f in range(n * 16)", "f // (n * 8)", "f % (n * 8) // n", "f % n"), Status.REFUTED),
    ],
)
def test_a_nest_is_fused(old: PrimFunc, new: PrimFunc, status: Status) -> None:
    """Without a witness given; what visits other cells is refuted, what visits them in another order is left open."""
    assert compare(old, new).status is status


def test_the_witness_is_that_of_the_order() -> None:
    """The n-th iteration of one nest is the n-th of the other, in both directions."""
    (there,), (back,) = in_order(NEST, FUSED) or (), in_order(FUSED, NEST) or ()
    assert there.instances is not None and back.instances is not None
    for number in range(4 * 8 * 5):
        index = there.instances.evaluate((number,), {"n": 5})
        assert index == (number // 40, number % 40 // 5, number % 5)
        assert back.instances.evaluate(index, {"n": 5}) == (number,)


def test_stores_are_paired_by_how_they_look() -> None:
    """One store of a stage that was cut, two of two stages; nothing where that is not clear."""
    twice = doubled("i, j, k in T.grid(2, 8, n)", "i", "j", "k", after="    B[0, 0, 0] = T.float32(1)\n")
    pairs = in_order(NEST, twice)
    assert pairs is not None and [m.old_store for m in pairs] == [0, None]
    assert in_order(NEST, NEST) is not None
    text = """@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
"""
    stores = ["    for i in range(8):\n        A[i] = i\n"] * 3
    two, three = (loads(text + "".join(stores[:count]), "stores.py") for count in (2, 3))
    assert in_order(two, three) is None


SCORES = """@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, "n", 16), "float32"), C: T.Buffer({shape}, "float32")):
    n = T.int32()
    T.func_attr({{"tirx.noalias": True}})
    for i, j in T.grid(8, n):
        C[{index}] = T.float32(0)
        for k in range(16):
            C[{index}] = C[{index}] + A[i, j, k]
"""


@one_in(4)
@pytest.mark.parametrize(
    ("shape", "index", "layout", "status"),
    [
        ("(n * 8,)", "i * n + j", None, Status.PROVED),
        ("(n * 8,)", "i * n + j", "lambda i, j: [i*n + j]", Status.PROVED),
        ("(n * 8,)", "i * n + j", "lambda i, j: [j*8 + i]", Status.REFUTED),
    ],
)
def test_a_layout_over_a_product_of_symbols(shape: str, index: str, layout: str | None, status: Status) -> None:
    """It reaches every cell, so that nothing that is touched is padding."""
    before = loads(SCORES.format(shape="(8, n)", index="i, j"), "before.py")
    after = loads(SCORES.format(shape=shape, index=index), "after.py")
    found = compare(before, after, layouts={} if layout is None else {"C": layout})
    assert found.status is status
