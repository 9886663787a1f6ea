"""Assumptions of the new program: those that follow from the old one's are accepted, all others are not."""

from __future__ import annotations

import pytest
from tests.verify.flow.test_simulation import holds, simulated
from tests.verify.programs import statuses

from layoutproof.ir.notations.rewrite_text import parse_rewrite
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.verdict.verdict import ClaimKind, Status

COPY = """
for i in range(8):
    {old}
for i in range(8):
    B[i] = A[i]
"""
# The other order keeps the walk in lockstep from deciding this.
REVERSED = """
for i in range(8):
    {new}
for i in range(8):
    B[7 - i] = A[7 - i]
"""
PARAMS = "A: 8 float32; B: 8 float32; n: 1 int32"
THETA = "# theta: 0 -> 0: lambda i: [7 - i]"


@pytest.mark.parametrize(
    ("old", "new", "legal"),
    [
        ("T.evaluate(0)", "T.evaluate(T.assume(i < 8))", True),
        ("T.evaluate(0)", "T.evaluate(T.assume(i < 7))", False),
        ("T.evaluate(T.assume(i < 7))", "T.evaluate(T.assume(i < 7))", True),
        ("T.evaluate(T.assume(A[i] == T.float32(0)))", "T.evaluate(T.assume(A[7 - i] == T.float32(0)))", True),
        ("T.evaluate(T.assume(A[i] == T.float32(0)))", "T.evaluate(T.assume(A[i] == T.float32(0) and i < 7))", False),
        (
            "T.evaluate(T.assume(i < 4 or A[i] == T.float32(0)))",
            "T.evaluate(T.assume(i < 5 or A[i] == T.float32(0)))",
            True,
        ),
        (
            "T.evaluate(T.assume(i < 5 or A[i] == T.float32(0)))",
            "T.evaluate(T.assume(i < 4 or A[i] == T.float32(0)))",
            False,
        ),
        ("T.evaluate(T.assume(A[i] == T.float32(0)))", 'T.evaluate(T.assume(A[i] == T.undef(dtype="float32")))', False),
        (
            'T.evaluate(T.assume(i < 4 or A[i] == T.undef(dtype="float32")))',
            'T.evaluate(T.assume(i < 5 or A[i] == T.undef(dtype="float32")))',
            True,
        ),
        ('T.evaluate(T.assume(A[i] == T.undef(dtype="float32")))', "T.evaluate(T.assume(A[i] == T.float32(0)))", False),
    ],
)
def test_assumptions_follow_from_old_ones(old: str, new: str, legal: bool) -> None:
    """What is assumed of loops, of elements and of undefined cells is no more than it was."""
    assert holds(simulated(THETA, COPY.format(old=old), REVERSED.format(new=new), PARAMS)) == legal


NAMED = "x: T.let[T.float32] = A[{}]\n    T.evaluate(T.assume(x == T.float32(0)))"
SAID = "T.evaluate(T.assume(A[{}] == T.float32(0)))"
TWICE = "T.evaluate(T.assume(not (not (A[{}] == T.float32(0)))))"
TRUTH = "x: T.let[T.bool] = A[{}] == T.float32(0)\n    T.evaluate(T.assume(x))"


@pytest.mark.parametrize("ieee", [NAMED, TWICE, TRUTH])
def test_only_a_load_that_stands_in_an_assumption_is_one_value(ieee: str) -> None:
    """`A[i] == 0.0` says that A[i] is not -0.0, either; a comparison of a name for it, or under `not`, does not."""
    reverse = REVERSED.replace("B[7 - i] = A[7 - i]", "B[7 - i] = {value}")
    same = reverse.replace("{value}", "A[7 - i]")
    assert holds(simulated(THETA, COPY.format(old=SAID.format("i")), same.format(new=SAID.format("7 - i")), PARAMS))
    assert holds(simulated(THETA, COPY.format(old=ieee.format("i")), same.format(new=ieee.format("7 - i")), PARAMS))
    assert not holds(simulated(THETA, COPY.format(old=ieee.format("i")), same.format(new=SAID.format("7 - i")), PARAMS))
    inverse = COPY.replace("B[i] = A[i]", "B[i] = T.float32(1) / A[i]")
    zero = reverse.replace("{value}", "T.float32(1) / T.float32(0)")
    assert holds(simulated(THETA, inverse.format(old=SAID.format("i")), zero.format(new=SAID.format("7 - i")), PARAMS))
    assert not holds(
        simulated(THETA, inverse.format(old=ieee.format("i")), zero.format(new=ieee.format("7 - i")), PARAMS)
    )


@pytest.mark.parametrize(
    ("index_map", "shape", "index", "said"),
    [
        ("2*i", "2*n - 1", "2*i", "precondition: 2*n - 1 >= 0"),
        ("2*i", "2*n", "2*i", None),
        ("i//4, i%4", "(n + 3)//4, 4", "i // 4, i % 4", None),
    ],
)
def test_an_extent_below_zero_is_told(index_map: str, shape: str, index: str, said: str | None) -> None:
    """A layout in which an empty parameter would have a negative extent is for calls with others."""
    head = """# cells: A_data -> A_data: lambda i: [MAP]
# interface: A
@T.prim_func
def before(a: T.handle, B: T.Buffer(("n",), "int32")):
    T.func_attr({"tirx.noalias": True})
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    for i in range(n):
        B[i] = A[i]

@T.prim_func
def after(a: T.handle, B: T.Buffer(("n",), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (SHAPE,), "int32")
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": ["n"], "steps": [
        {"index_map": "lambda i: [MAP]", "shape": BOX, "contract": None}]}}})
    for i in range(n):
        B[i] = A[INDEX]
"""
    box = str([int(e) if e.isdecimal() else e for e in shape.split(", ")])
    text = head.replace("MAP", index_map).replace("SHAPE", shape).replace("BOX", box).replace("INDEX", index)
    verdicts = prove_rewrite(parse_rewrite(text)).verdicts
    assert statuses(verdicts) == {Status.PROVED}
    (kept,) = [v for v in verdicts if v.claim.kind is ClaimKind.INTERFACE and v.claim.about == ("parameters",)]
    assert kept.reason == said
