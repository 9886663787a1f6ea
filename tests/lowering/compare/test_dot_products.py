"""The instruction that multiplies and adds four bytes (`__dp4a`), in kernels."""

from __future__ import annotations

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.ir.interp import Result, run
from layoutproof.verify.verdict.verdict import Status

HEAD = "from tvm.script import tirx as T\n@T.prim_func\n"


def program(body: str, *, signed: bool = True) -> lp.PrimFunc:
    """A matrix of bytes times a vector of bytes, rows by threads, whose sum is made by `body`."""
    sign = "" if signed else "u"
    return lp.loads(
        HEAD + f'def f(A: T.Buffer((8, 16), "{sign}int8"), B: T.Buffer((16,), "{sign}int8"), '
        f'C: T.Buffer((8,), "{sign}int32")):\n'
        '    T.func_attr({"tirx.noalias": True})\n'
        '    for tx in T.thread_binding(8, thread="threadIdx.x"):\n'
        f'        L = T.decl_buffer((1,), "{sign}int32", scope="local")\n'
        f"        L[0] = T.{sign}int32(0)\n" + body.replace("@", sign) + "        C[tx] = L[0]\n"
    )


PLAIN = (
    "        for ko, ki in T.grid(4, 4):\n"
    '            L[0] = L[0] + T.Cast("@int32", A[tx, ko * 4 + ki]) * T.Cast("@int32", B[ko * 4 + ki])\n'
)
FOURS = (
    "        for ko in range(4):\n"
    '            L[0] = L[0] + T.call_pure_extern("@int32", "__dp4a", A[tx, T.ramp(ko * 4, 1, 4)], '
    "B[T.ramp(ko * 4, 1, 4)], T.@int32(0))\n"
)
WRONG = (
    ("B[T.ramp(ko * 4, 1, 4)]", "B[T.ramp(12 - ko * 4, 1, 4)]"),
    ("A[tx, T.ramp(ko * 4, 1, 4)]", "A[tx, T.ramp(ko * 4 + 3, -1, 4)]"),
    ("A[tx, T.ramp(ko * 4, 1, 4)]", "A[7 - tx, T.ramp(ko * 4, 1, 4)]"),
    ("T.@int32(0))", "T.@int32(1))"),
    ("T.@int32(0))", "L[0])"),
    ("range(4)", "range(3)"),
)


@pytest.mark.parametrize("signed", [True, False])
def test_four_bytes_at_once(signed: bool) -> None:
    """It is the loop over the bytes, of signed and of unsigned ones, also where the sum comes as an operand."""
    plain, fours = program(PLAIN, signed=signed), program(FOURS, signed=signed)
    assert lp.compare(plain, fours).status is Status.PROVED
    joined = FOURS.replace("L[0] + T.call", "T.call").replace("T.@int32(0))", "L[0])")
    assert lp.compare(plain, program(joined, signed=signed)).status is Status.PROVED


def test_the_cell_is_chosen_once() -> None:
    """One instruction stores to one cell; a loop whose sums say where the next one goes is another program."""
    head = (
        HEAD + 'def f(A: T.Buffer((4,), "int8"), B: T.Buffer((4,), "int8"), C: T.Buffer((2,), "int32")):\n'
        '    T.func_attr({"tirx.noalias": True})\n'
        '    for tx in T.thread_binding(1, thread="threadIdx.x"):\n'
        '        L = T.decl_buffer((2,), "int32", scope="local")\n'
        "        L[0] = 0\n        L[1] = 0\n"
    )
    tail = "        C[0] = L[0]\n        C[1] = L[1]\n"
    place = "L[L[0] % 2]"
    product = 'T.Cast("int32", A[k]) * T.Cast("int32", B[k])'
    plain = f"        for k in range(4):\n            {place} = {place} + {product}\n"
    four = f'        {place} = T.call_pure_extern("int32", "__dp4a", A[0:4], B[0:4], {place})\n'
    loop, once = (lp.loads(head + body + tail) for body in (plain, four))
    assert lp.compare(loop, once).status is not Status.PROVED


def test_a_loop_may_have_any_name() -> None:
    """The loop over bytes that is written out does not take the name of one that is there."""
    plain, fours = (program(text.replace("ko", "lane")) for text in (PLAIN, FOURS))
    assert lp.compare(plain, fours).status is Status.PROVED
    assert lp.compare(program(PLAIN), fours).status is Status.PROVED


@pytest.mark.parametrize(("old", "new"), WRONG)
def test_other_bytes_are_another_sum(old: str, new: str) -> None:
    """Bytes of another place or order, a start that counts, sums added twice, and bytes left out."""
    assert old in FOURS
    assert lp.compare(program(PLAIN), program(FOURS.replace(old, new))).status is Status.REFUTED


def test_bytes_of_two_signs_are_not_known() -> None:
    """CUDA has the function for two signed or two unsigned operands."""
    mixed = FOURS.replace("B[T.ramp(ko * 4, 1, 4)]", "T.broadcast(T.uint8(1), 4)")
    ones = PLAIN.replace('T.Cast("@int32", B[ko * 4 + ki])', "T.@int32(1)")
    assert lp.compare(program(ones), program(mixed)).status is Status.UNKNOWN
    assert lp.compare(program(ones), program(mixed.replace("uint8", "int8"))).status is Status.PROVED


@pytest.mark.parametrize("signed", [True, False])
def test_it_runs_as_numpy_multiplies(signed: bool) -> None:
    """The interpreter gives numpy's product."""
    kind, low, high = (np.int8, -128, 128) if signed else (np.uint8, 0, 256)
    rng = np.random.default_rng(3)
    a, b = rng.integers(low, high, (8, 16)).astype(kind), rng.integers(low, high, 16).astype(kind)
    wide = np.int32 if signed else np.uint32
    found = run(program(FOURS, signed=signed), [a, b, np.zeros(8, wide)])
    assert isinstance(found, Result)
    assert (found["C"] == a.astype(wide) @ b.astype(wide)).all()
