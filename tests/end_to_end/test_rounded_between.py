"""Kernels in which a float64 is rounded to a narrower type and used as a float64 again, and shifts of values that fit
fewer bits.
"""

import numpy as np
import pytest
from tests.shares import one_in

from layoutproof.ir.interp.run import run, same_values
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.schedule.schedule import Schedule

HEAD = '@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((16,), "float64"), B: T.Buffer((16,), "float64")):\n'
NARROW = '    T.func_attr({"tirx.noalias": True})\n'

FORMS = {
    "four stores": "".join(f'    B[{k}] = T.Cast("float64", T.Cast("float32", A[{k}]))\n' for k in range(4)),
    "a short loop": '    for i in range(4):\n        B[i] = T.Cast("float64", T.Cast("float32", A[i % 2]))\n',
    "an unrolled loop": '    for i in T.unroll(8):\n        B[i] = T.Cast("float64", T.Cast("float32", A[i])) * '
    "T.float64(3)\n",
    "vectors": '    for i in T.vectorized(4):\n        B[i] = T.Cast("float64", T.Cast("float32", A[i] + A[i + 4]))\n',
    "a choice": '    for i in range(4):\n        B[i] = T.max(T.Cast("float64", T.Cast("float32", A[i % 2 + 8])), A[i] '
    "- T.float64(100))\n",
    "a name": '    for i in range(4):\n        x: T.let[T.float32] = T.Cast("float32", A[i])\n'
    '        B[i] = T.Cast("float64", x) + A[i]\n',
    "half precision": "".join(f'    B[{k}] = T.Cast("float64", T.Cast("float16", A[{k}]))\n' for k in range(4)),
    "functions": "".join(
        f'    B[{k}] = T.Cast("float64", T.exp(T.tanh(T.Cast("float32", A[{k}]))))\n' for k in range(4)
    ),
}


@one_in(4)
@pytest.mark.parametrize("name", FORMS)
def test_a_rounding_between_two_wide_values_is_kept(name: str) -> None:
    """Each conversion to a narrower type rounds, also where the compiler joins several of them to vectors."""
    func = loads(HEAD + NARROW + FORMS[name])
    given = np.arange(1, 17) / 10.0, np.zeros(16)
    expected = run(func, given, limit=10_000).arrays["B"]
    found = np.zeros(16)
    Schedule(func).build()(given[0], found)
    assert same_values(expected, found).all()


@one_in(52)
@pytest.mark.parametrize(
    "value", ["T.int16(A[i])", "T.int8(A[i])", "T.uint8(A[i])", "(A[i] & T.int64(1))", "T.int64(0)"]
)
@pytest.mark.parametrize("operator", [">>", "<<"])
@pytest.mark.parametrize("by", ["T.int64(37)", "(B[i] & T.int64(63))", "T.int64(63)", "T.int64(31)"])
def test_shifts_by_more_than_the_values_need(value: str, operator: str, by: str) -> None:
    """A 64 bit value that fits 32 bits is shifted as one of 64."""
    head = HEAD.replace("float64", "int64")
    line = f'B[i] = T.Cast("int64", {value}) {operator} {by}\n'
    func = loads(f"{head}{NARROW}" + "".join(f"    {line.replace('i]', f'{k}]')}" for k in (0, 1, 15)))
    given = np.arange(-8, 8) * 1001, np.arange(16) * 4
    expected = run(func, given, limit=10_000).arrays["B"]
    found = np.array(given[1])
    Schedule(func).build()(given[0], found)
    assert (expected == found).all()
