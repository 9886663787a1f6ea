"""Floats that become integers: clipped ones fit, stored in between or not; runs of the interpreter agree."""

from __future__ import annotations

import math

import numpy as np
import pytest

from layoutproof.ir.expr import Cast
from layoutproof.ir.interp.memory import Fault
from layoutproof.ir.interp.run import run
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import BufferStore
from layoutproof.ir.visit import walk
from layoutproof.verify.faults.arithmetic import prove_no_trap
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.float_ranges import FloatRanges
from layoutproof.verify.verdict.verdict import Status

PROGRAM = """
@T.prim_func
def f(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int8")):
    T.func_attr({{"tirx.noalias": True}})
    D = T.alloc_buffer((8,), "float32")
    E = T.alloc_buffer((8,), "float32")
    for i in range(8):
        D[i] = {first}
    for i in range(8):
        E[i] = {second}
    for i in range(8):
        B[i] = T.Cast("int8", {third})
"""
LOW, HIGH = "T.float32(-128)", "T.float32(127)"
CLIP = f"T.max(T.min({{}}, {HIGH}), {LOW})"
SPECIAL = np.array([np.nan, np.inf, -np.inf, 200.0, -200.0, 127.6, -128.9, 0.0], np.float32)


def proved(first: str, second: str, third: str) -> bool:
    """Whether the cast is proved to have a result for every input."""
    verdicts = prove_no_trap(Facts.of(loads(PROGRAM.format(first=first, second=second, third=third))))
    return bool(verdicts) and all(verdict.status is Status.PROVED for verdict in verdicts)


SAFE = [
    ("A[i]", CLIP.format("D[i]"), "E[i]"),
    (CLIP.format("A[i]"), "D[i]", "E[i]"),
    (CLIP.format("A[i] / C[i]"), "T.nearbyint(D[i])", "E[i] + T.float32(0)"),
    ("A[i]", "D[i]", CLIP.format("E[i] * C[i]")),
    ("A[i]", "C[i]", "T.floor(T.Cast('float32', i) * T.float32(18.0) + T.float32(1.5))"),
    (CLIP.format("A[i]"), CLIP.format("C[i]"), "T.Select(D[i] < E[i], D[i], E[i])"),
    (CLIP.format("A[i]"), CLIP.format("C[i]"), "(D[i] - E[i]) * T.float32(0.4)"),
    (CLIP.format("A[i]"), CLIP.format("D[i]"), "T.Cast('float32', T.Cast('float16', E[i]))"),
]
UNSAFE = [
    ("A[i]", "C[i]", "D[i]"),
    # a comparison with NaN is false: the operand behind it is the result
    ("A[i]", f"T.max({LOW}, T.min({HIGH}, D[i]))", "E[i]"),
    ("A[i]", "T.min(D[i], T.float32(129))", f"T.max(E[i], {LOW})"),
    (CLIP.format("A[i]"), "D[i] + T.float32(1)", "E[i]"),
    (CLIP.format("A[i]"), "D[i] / C[i]", "E[i]"),
    (CLIP.format("A[i]"), CLIP.format("C[i]"), "D[i] * E[i]"),
    (CLIP.format("A[i]"), CLIP.format("C[i]"), "D[i] - E[i]"),
    ("A[i]", "T.Select(A[i] < T.float32(0), T.float32(0), D[i])", "E[i]"),
    ("A[i]", CLIP.format("D[i]"), "T.sqrt(E[i])"),
]


@pytest.mark.parametrize(("first", "second", "third"), SAFE)
def test_what_is_clipped_fits(first: str, second: str, third: str) -> None:
    """It is proved, and a run on NaN, infinities and large numbers has a result."""
    assert proved(first, second, third)
    func = loads(PROGRAM.format(first=first, second=second, third=third))
    run(func, {"A": SPECIAL, "C": SPECIAL[::-1].copy(), "B": np.zeros(8, np.int8)})


@pytest.mark.parametrize(("first", "second", "third"), UNSAFE)
def test_what_may_not_fit_is_open(first: str, second: str, third: str) -> None:
    """It is not proved, and some run faults."""
    assert not proved(first, second, third)
    func = loads(PROGRAM.format(first=first, second=second, third=third))
    orders = [(SPECIAL, np.roll(SPECIAL, k)) for k in range(8)]
    with pytest.raises(Fault):
        for a, c in orders:
            run(func, {"A": a, "C": c, "B": np.zeros(8, np.int8)})


@pytest.mark.parametrize(
    "more",
    [
        "    for i in range(8):\n        D[i] = A[i]\n",
        "    D_1 = T.decl_buffer((8,), 'int32', data=D.data)\n    for i in range(8):\n        D_1[i] = i\n",
        "    T.evaluate(T.call_extern('int32', 'fill', D.data))\n",
        "    for i in range(8):\n        D[i] = D[i] + D[i]\n",
        "    for i in range(8):\n        D[i] = T.undef(dtype='float32')\n",
    ],
)
def test_every_store_counts(more: str) -> None:
    """Another store, another type of elements in the same memory, or a call that may write it leaves it open."""
    text = PROGRAM.format(first=CLIP.format("A[i]"), second="D[i]", third="D[i]")
    assert all(v.status is Status.PROVED for v in prove_no_trap(Facts.of(loads(text))))
    at = text.index("    for i in range(8):\n        E[i]")
    verdicts = prove_no_trap(Facts.of(loads(text[:at] + more + text[at:])))
    assert any(v.status is not Status.PROVED for v in verdicts)


def test_a_parameter_holds_anything() -> None:
    """Its caller has put something there, whatever the program stores elsewhere in it."""
    text = PROGRAM.format(first="A[i]", second="A[i]", third="A[i]").replace("D[i] = A[i]", "A[0] = T.float32(1)")
    assert any(v.status is not Status.PROVED for v in prove_no_trap(Facts.of(loads(text))))


_ENDS = (-2.5, -1.0, -0.0, 0.5, 3.0)


@pytest.mark.parametrize("operation", ["T.max({}, {})", "T.min({}, {})", "({} + {})", "({} - {})", "({} * {})"])
def test_ranges_hold_every_result(operation: str) -> None:
    """Of ranges whose ends are picked from a few, every result by the interpreter lies inside."""
    a, b = (f"T.max(T.min({name}[i], T.float32(3)), T.float32(-2.5))" for name in "AC")
    func = loads(PROGRAM.format(first="A[i]", second="A[i]", third=operation.format(a, b)).replace('"int8"', '"int32"'))
    store = [node for node in walk(func.body) if isinstance(node, BufferStore)][-1]
    assert isinstance(store.value, Cast)
    found = FloatRanges(Facts.of(func).program, lambda _: None).of(store.value.value)
    assert found.is_finite
    for x in (*_ENDS, math.nan):
        for y in (*_ENDS, math.nan):
            inputs = {"A": np.full(8, x, np.float32), "C": np.full(8, y, np.float32), "B": np.zeros(8, np.int32)}
            assert math.trunc(found.low) <= run(func, inputs).arrays["B"][0] <= math.trunc(found.high)
