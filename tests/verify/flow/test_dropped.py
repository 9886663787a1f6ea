"""Instances of the old program that the new one drops: they go where they changed nothing, and stay where they did
something.
"""

from __future__ import annotations

import pytest
from tests.shares import one_in

from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.script.reader import loads
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.values.fast_math import ALL, FastMath, FastMathSet
from layoutproof.verify.verdict.verdict import Status

IEEE: FastMathSet = frozenset()
FINITE: FastMathSet = frozenset({FastMath.NNAN, FastMath.NINF})


def program(columns: int, pad: str, init: str | None, value: str, unmatched: str = "") -> str:
    """Updates of `B[i]` over some columns of `A`, whose last one is padding."""
    first = f"    for i in range(4):\n        B[i] = {init}\n" if init is not None else ""
    return f"""@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 4), "float32"), W: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for p, q in T.grid(4, 4):
        T.evaluate(T.assume(q < 3 or A[p, q] == {pad}))
{unmatched}{first}    for i, j in T.grid(4, {columns}):
        B[i] = {value}
"""


SUM, PRODUCT, LARGEST, DOT = "B[i] + A[i, j]", "B[i] * A[i, j]", "T.max(B[i], A[i, j])", "B[i] + A[i, j] * W[i, j]"
ZERO, ONE = "T.float32(0)", "T.float32(1)"
MINUS_ZERO, LEAST = "T.float32(-0.0)", 'T.min_value("float32")'
BOUNDED = """    for p, q in T.grid(4, 4):
        T.evaluate(T.assume(T.abs(W[p, q]) < T.infinity("float32")))
"""


@one_in(4)
@pytest.mark.parametrize(
    "pad, init, value, unmatched, allowed, needs",
    [
        (ZERO, ZERO, SUM, "", ALL, set()),
        (MINUS_ZERO, None, SUM, "", ALL, set()),
        (ONE, ONE, PRODUCT, "", ALL, set()),
        (LEAST, LEAST, LARGEST, "", ALL, {"nnan"}),
        (ZERO, ZERO, DOT, BOUNDED, ALL, set()),
        (ZERO, ZERO, DOT, "", ALL, {"ninf", "nnan"}),
        (ZERO, ZERO, DOT, "", IEEE, None),
        (ZERO, None, SUM, "", IEEE, None),
        (ONE, ZERO, SUM, "", ALL, None),
        (ZERO, ONE, PRODUCT, "", FINITE, None),
    ],
)
def test_updates_by_padding_are_dropped(
    pad: str, init: str | None, value: str, unmatched: str, allowed: FastMathSet, needs: set[str] | None
) -> None:
    """The reverse of overcompute, with the fewest fast-math assumptions that suffice; `needs` is None where it is
    wrong.
    """
    old, new = (loads(program(columns, pad, init, value, unmatched), "p.py") for columns in (4, 3))
    maps = [InstanceMap(0, 0, parse_index_map("lambda i: [i]"))] if init is not None else []
    update = InstanceMap(len(maps), len(maps), parse_index_map("lambda i, j: [i, j]"))
    verdicts = check_rewrite(Rewrite(old, new, Witness((*maps, update))), allowed=allowed)
    proved = all(v.status is Status.PROVED for v in verdicts)
    assert proved is (needs is not None)
    if needs is not None:
        assert {word for v in verdicts for word in v.strictness} == needs
        assert any("dropped iterations leave" in v.claim.text for v in verdicts)
    else:
        assert any(v.status is Status.REFUTED for v in verdicts)
