"""Padding without a contract, seen through vectors: which cells of a layout's box a vector access touches."""

from __future__ import annotations

import pytest

from layoutproof.ir.script.reader import loads
from layoutproof.verify.faults.vacuity import check_program
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status

STEP = '{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": None}'
RECORD = f'"layoutproof.layout": {{"A_data": {{"logical_shape": [14], "steps": [{STEP}]}}}}'


SCALARS = '(4, 4), "float32"'


@pytest.mark.parametrize(
    "elements, view, loop, store, expected",
    [
        (SCALARS, '(4,), "float32x4"', "range(3)", "V[i]", Status.PROVED),
        (SCALARS, '(4,), "float32x4"', "range(4)", "V[i]", Status.REFUTED),
        (SCALARS, '(4, 2), "float32x2"', "range(7)", "V[i // 2, i % 2]", Status.PROVED),
        (SCALARS, '(8,), "float32x2"', "range(8)", "V[i]", Status.REFUTED),
        ('(4,), "float32x4"', '(16,), "float32"', "range(14)", "V[i]", Status.PROVED),
        ('(4,), "float32x4"', '(16,), "float32"', "range(16)", "V[i]", Status.REFUTED),
        ('(4,), "float32x4"', '(8,), "float32x2"', "range(7)", "V[i]", Status.PROVED),
        ('(4, 4), "float32x4"', '(4, 4), "float32"', "range(3)", "V[i, 0]", Status.UNKNOWN),
        ('(4, 4), "float32"', '(4, 4), "int8"', "range(3)", "V[i, 0]", Status.UNKNOWN),
    ],
)
def test_vectors_touch_all_their_scalars(elements: str, view: str, loop: str, store: str, expected: Status) -> None:
    """Stores through a view stay off the padding, or are refuted; where view and box count different things, nothing is
    claimed.
    """
    dtype = view.split('"')[1]
    value = {"float32": "T.float32(0)", "int8": "T.int8(0)"}.get(dtype, f"T.Broadcast(T.float32(0), {dtype[-1]})")
    text = f"""@T.prim_func(s_tir=True)
def main(A: T.Buffer({elements}), B: T.Buffer((16,), "float32")):
    T.func_attr({{"tirx.noalias": True, {RECORD}}})
    V = T.decl_buffer({view}, data=A.data)
    for i in {loop}:
        {store} = {value}
"""
    assert worst(v.status for v in check_program(loads(text, "p.py"))) is expected


@pytest.mark.parametrize(
    ("more", "expected"), [("", Status.REFUTED), (', B: T.Buffer((n,), "float32")', Status.PROVED)]
)
def test_a_scalar_in_a_record_may_be_negative(more: str, expected: Status) -> None:
    """A scalar that a record's logical shape names is whatever callers pass, unless it is also the extent of what they
    pass.
    """
    step = '{"index_map": "lambda i: [i//4, i%4]", "shape": ["(n + 3) // 4", 4], "contract": None}'
    text = f"""@T.prim_func(s_tir=True)
def main(A: T.Buffer((64, 4), "float32"), n: T.int32{more}):
    T.func_attr({{"layoutproof.layout": {{"A_data": {{"logical_shape": ["n"], "steps": [{step}]}}}}}})
    if n + 5 < 0:
        A[n, 0] = T.float32(0)
"""
    (inside,) = (verdict for verdict in check_program(loads(text, "p.py")) if "stays within" in verdict.claim.text)
    assert inside.status is expected
