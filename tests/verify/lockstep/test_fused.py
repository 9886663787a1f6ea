"""Loops over products of symbols: they go with loops over the factors, in the same order, and with no others."""

from __future__ import annotations

import pytest
from tests.shares import one_in

from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.script.reader import loads
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status


def program(loops: str, indices: str) -> str:
    """`B[...] = A[...] + 1` in loops, over rows and columns of any size."""
    return f"""@T.prim_func(s_tir=True)
def main(A: T.Buffer(("n", "m"), "int32"), B: T.Buffer((n, m), "int32")):
    n, m = T.int32(), T.int32()
    T.func_attr({{"tirx.noalias": True}})
    for {loops}:
        B[{indices}] = A[{indices}] + 1
"""


def in_block(loops: str, *indices: str) -> str:
    """The same with a block, whose variables are bound to the indices."""
    first, second = indices
    return f"""@T.prim_func(s_tir=True)
def main(A: T.Buffer(("n", "m"), "int32"), B: T.Buffer((n, m), "int32")):
    n, m = T.int32(), T.int32()
    T.func_attr({{"tirx.noalias": True}})
    for {loops}:
        with T.sblock("b"):
            vi = T.axis.spatial(n, {first})
            vj = T.axis.spatial(m, {second})
            B[vi, vj] = A[vi, vj] + 1
"""


NEST = program("i, j in T.grid(n, m)", "i, j")
FUSED = program("f in range(n * m)", "f // m, f % m")


@one_in(7)
@pytest.mark.parametrize(
    "old, new, instances, status",
    [
        (NEST, FUSED, "lambda f: [f // m, f % m]", Status.PROVED),
        (FUSED, NEST, "lambda i, j: [i*m + j]", Status.PROVED),
        (
            in_block("i, j in T.grid(n, m)", "i", "j"),
            in_block("f in range(n * m)", "f // m", "f % m"),
            "lambda f: [f // m, f % m]",
            Status.PROVED,
        ),
        (FUSED, program("f in range(m * n)", "f // m, f % m"), "lambda f: [f]", Status.PROVED),
        (
            NEST,
            program("f in range(n * m)", "f // m, m - 1 - f % m"),
            "lambda f: [f // m, m - 1 - f % m]",
            Status.UNKNOWN,
        ),
        (NEST, program("f in range(n * m - 1)", "f // m, f % m"), "lambda f: [f // m, f % m]", Status.REFUTED),
    ],
)
def test_a_product_of_symbols_is_two_loops(old: str, new: str, instances: str, status: Status) -> None:
    """Fused and taken apart, in the same order; one iteration less is found out."""
    index_map = parse_index_map(instances, symbols=("n", "m"))
    rewrite = Rewrite(loads(old, "old.py"), loads(new, "new.py"), Witness((InstanceMap(0, 0, index_map),)))
    assert worst(v.status for v in check_rewrite(rewrite)) is status


SCALARS = """@T.prim_func(s_tir=True)
def main(n: T.int32, m: T.int32, B: T.Buffer((1,), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    B[0] = 0
    for {loops}:
        B[0] = B[0] + 1
"""


def test_extents_below_zero_are_thought_of() -> None:
    """Two negative extents make no iterations one by one, and some together."""
    old, new = (loads(SCALARS.format(loops=loops), "p.py") for loops in ("i, j in T.grid(n, m)", "f in range(n * m)"))
    maps = (
        InstanceMap(0, 0, parse_index_map("lambda: []")),
        InstanceMap(1, 1, parse_index_map("lambda f: [f // m, f % m]", symbols=("n", "m"))),
    )
    assert worst(v.status for v in prove_rewrite(Rewrite(old, new, Witness(maps))).verdicts) is not Status.PROVED
