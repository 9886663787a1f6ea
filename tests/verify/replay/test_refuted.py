"""Wrong rewrites for which an input is found on which they are seen to be wrong, and right ones for which none is."""

from __future__ import annotations

import json

import pytest
from tests.shares import one_in
from tests.verify.replay.rewrites import func, pair, relaid

from layoutproof.ir.rewrite import Rewrite
from layoutproof.verify.replay.counterexample import Counterexample
from layoutproof.verify.replay.refute import Budget, find_counterexample, replays
from layoutproof.verify.values.fast_math import ALL, FastMath, FastMathSet

SPLIT = "lambda i, j: [i, j//4, j%4]"
GUARDED = """
for i in range(3):
    B[i] = {start}
    for jo in range(4):
        for ji in range(4):
            if jo * 4 + ji < 14:
                {update}
"""
NNAN, NNAN_NINF = frozenset({FastMath.NNAN}), frozenset({FastMath.NNAN, FastMath.NINF})


def reduction(
    start: str, update: str, pad: float | str | None, *, parameters: str = "A: f32[3, 14]; B: f32[3]"
) -> Rewrite:
    """A reduction over rows of 14, stored as four fours, its guard dropped."""
    body = GUARDED.format(start=start, update=update)
    old = func(parameters, body if start else "\n".join(line for line in body.split("\n") if line != "    B[i] = "))
    return relaid(old, "A", SPLIT, pad, change=("if jo * 4 + ji < 14:", "if 0 <= jo:"))


def refuted(rewrite: Rewrite, fast_math: FastMathSet = frozenset()) -> Counterexample:
    """The counterexample, which must be there, replay from its JSON form, and be found again."""
    found = find_counterexample(rewrite, fast_math=fast_math)
    assert found is not None
    data = json.loads(json.dumps(found.to_dict()))
    assert replays(rewrite, data, fast_math=fast_math)
    again = find_counterexample(rewrite, fast_math=fast_math)
    assert again is not None and again.to_dict() == found.to_dict()
    assert found.text().startswith("main")
    return found


SUM = "B[i] = B[i] + A[i, jo * 4 + ji]"
PRODUCT = "B[i] = B[i] * A[i, jo * 4 + ji]"
MAX = "B[i] = T.max(B[i], A[i, jo * 4 + ji])"
MAX_LAST = "B[i] = T.max(A[i, jo * 4 + ji], B[i])"


@one_in(21)
@pytest.mark.parametrize(
    ("start", "update", "pad", "fast_math"),
    [
        ("T.float32(0)", SUM, 1.0, frozenset()),
        ("T.float32(0)", SUM, None, frozenset()),
        ("T.float32(0)", SUM, "T.undef()", frozenset()),
        ("", SUM, 0.0, frozenset()),
        ("T.float32(1)", PRODUCT, 0.0, frozenset()),
        ("T.float32(1)", PRODUCT, 0.0, ALL),
        ('T.float32("-inf")', MAX, 0.0, frozenset()),
        ('T.float32("-inf")', MAX, 0.0, NNAN),
        ('T.float32("-inf")', MAX, 'T.float32("-inf")', frozenset()),
        ('T.min_value("float32")', MAX_LAST, -1.0, frozenset()),
    ],
    ids=[
        "sum 1",
        "sum no contract",
        "sum undef",
        "caller's -0.0",
        "product 0",
        "product 0 reals",
        "max 0",
        "max 0 nnan",
        "max nan",
        "max -1",
    ],
)
def test_wrong_padding_of_a_reduction_is_refuted(
    start: str, update: str, pad: float | str | None, fast_math: FastMathSet
) -> None:
    """Padding that is not neutral shows in a result."""
    refuted(reduction(start, update, pad), fast_math)


@one_in(7)
@pytest.mark.parametrize(
    ("start", "update", "pad", "fast_math"),
    [
        ("T.float32(0)", SUM, 0.0, frozenset()),
        ("", SUM, -0.0, frozenset()),
        ("", SUM, 0.0, frozenset({FastMath.NSZ})),
        ("T.float32(1)", PRODUCT, 1.0, frozenset()),
        ('T.float32("-inf")', MAX, 'T.float32("-inf")', NNAN),
        ('T.float32("-inf")', MAX_LAST, 'T.float32("-inf")', frozenset()),
    ],
)
def test_neutral_padding_is_not_refuted(
    start: str, update: str, pad: float | str | None, fast_math: FastMathSet
) -> None:
    """Padding that is neutral, bit for bit or under the fast-math assumptions, gives no counterexample."""
    assert find_counterexample(reduction(start, update, pad), fast_math=fast_math, budget=Budget(runs=120)) is None


def test_the_counterexample_of_a_maximum_is_small() -> None:
    """A row of negatives: one element that is not plain is enough, and the report names the store and its loads."""
    found = refuted(reduction('T.float32("-inf")', MAX, 0.0))
    assert found.difference is not None and found.after is not None
    assert found.difference.buffer == "B" and found.difference.new == 0.0
    assert any(access.startswith("A[") and value == 0.0 for access, value in found.after.loads)
    assert "0x0p+0" in found.text()


@one_in(4)
def test_a_convolution_padded_with_zero_meets_an_infinite_weight() -> None:
    """`acc + a * w` with a = 0 in the padding is no no-op when w is infinite; with `nnan ninf` it is, if the old
    program reads w.
    """
    body = """
for i in range(2):
    B[i] = T.float32(0)
    for jo in range(2):
        for ji in range(4):
            if jo * 4 + ji < 6:
                B[i] = B[i] + A[i, jo * 4 + ji] * W[{}]
"""
    for weights, place, excused in ((6, "(jo * 4 + ji) % 6", True), (8, "jo * 4 + ji", False)):
        old = func(f"A: f32[2, 6]; W: f32[{weights}]; B: f32[2]", body.format(place))
        rewrite = relaid(old, "A", SPLIT, 0.0, change=("if jo * 4 + ji < 6:", "if 0 <= jo:"))
        found = refuted(rewrite)
        assert any(not abs(float(v)) < float("inf") for v in found.inputs["W"].reshape(-1))
        assert (find_counterexample(rewrite, fast_math=NNAN_NINF, budget=Budget(runs=120)) is None) is excused


def test_exp_of_padding_is_not_the_pad_value() -> None:
    """`exp(0)` is 1: the result's padding owes 0."""
    body = """
for io in range(4):
    for ii in range(4):
        if io * 4 + ii < 14:
            B[io * 4 + ii] = T.exp(A[io * 4 + ii])
"""
    old = func("A: f32[14]; B: f32[14]", body)
    first = relaid(old, "A", "lambda i: [i//4, i%4]", 0.0).new
    stage = "B[v_p0_1, v_p1_1] = T.float32(0.0)"
    kept = "B[v_p0_1, v_p1_1] = T.exp(A[v_p0_1, v_p1_1])"
    found = refuted(relaid(first, "B", "lambda i: [i//4, i%4]", 0.0, change=(stage, kept)))
    assert found.difference is not None and found.difference.required is not None
    assert (found.difference.old, found.difference.new) == (0.0, 1.0)


LOOPS = """
for i in range(8):
    B[i] = A[i] + T.float32(1)
for i in range(7):
    C[i] = B[i + 1]
"""
MERGED = """
for i in range(8):
    B[i] = A[i] + T.float32(1)
    if i < 7:
        C[i] = B[i + 1]
"""


def test_merged_loops_read_too_early() -> None:
    """The second loop reads what the first has not written yet."""
    parameters = "A: f32[8]; B: f32[8]; C: f32[7]"
    found = refuted(pair(func(parameters, LOOPS), func(parameters, MERGED)))
    assert found.difference is not None and found.difference.buffer == "C"


def test_a_lost_store_is_seen() -> None:
    """A join that drops a store leaves what was there."""
    parameters = "A: f32[8]; B: f32[8]; C: f32[7]"
    found = refuted(pair(func(parameters, LOOPS), func(parameters, "\n".join(LOOPS.split("\n")[:3]))))
    assert found.difference is not None and found.before is not None and found.after is None


def test_overcompute_out_of_bounds_is_a_fault() -> None:
    """The document's own 1-d convolution without its branch reads A[4, 0] of a [4, 4] buffer."""
    body = """
for io in range(4):
    for ii in range(4):
        if io * 4 + ii < 12:
            B[io * 4 + ii] = T.float32(0)
            for f in range(3):
                B[io * 4 + ii] = B[io * 4 + ii] + A[io * 4 + ii + f] * F[f]
"""
    first = relaid(func("A: f32[14]; F: f32[3]; B: f32[16]", body), "A", "lambda i: [i//4, i%4]", 0.0).new
    rewrite = relaid(first, "F", "lambda i: [i]", None, change=("if io * 4 + ii < 12:", "if 0 <= io:"))
    found = refuted(rewrite)
    assert found.fault is not None and "A[4, 0]" in found.fault


def test_a_mean_divides_by_the_logical_count() -> None:
    """Dividing by the padded count gives another mean."""
    body = "B[0] = T.float32(0)\nfor i in range(6):\n    B[0] = B[0] + A[i]\nB[0] = B[0] / T.float32(6)"
    old = func("A: f32[6]; B: f32[1]", body)
    refuted(relaid(old, "A", "lambda i: [i//4, i%4]", 0.0, change=("T.float32(6.0)", "T.float32(8.0)")))


def test_an_all_masked_softmax_row_is_nan() -> None:
    """With -inf padding a maximum that starts at the least finite value differs from one that starts at -inf on a
    masked row.
    """
    body = """
for i in range(2):
    M[i] = {start}
    for j in range(3):
        M[i] = T.max(A[i, j], M[i])
    for j in range(3):
        B[i, j] = T.exp(A[i, j] - M[i])
"""
    parameters = "A: f32[2, 3]; M: f32[2]; B: f32[2, 3]"
    infinite, least = (func(parameters, body.format(start=s)) for s in ('T.float32("-inf")', 'T.min_value("float32")'))
    found = refuted(pair(infinite, least))
    assert found.difference is not None
