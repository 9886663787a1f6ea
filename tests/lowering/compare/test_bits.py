"""Floats that are packed into integers (`T.reinterpret`): the same bits are the same number, and the other way is not
taken for a function of the number.
"""

from __future__ import annotations

import pytest
from tests.shares import one_in

import layoutproof as lp
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.verify.verdict.verdict import Status

HEAD = "from tvm.script import tirx as T\n@T.prim_func\n"
PACKED = HEAD + (
    'def f(W: T.Buffer((64, 32), "uint32"), S: T.Buffer((16, 32), "uint32"), B: T.Buffer((128, 32), "float32")):\n'
    "    for i, j in T.grid(128, 32):\n"
    '        B[i, j] = T.Cast("float32", W[i // 2, j] >> T.Cast("uint32", i % 2 * 4) & T.uint32(15)) '
    '* T.reinterpret("float32", (S[i // 8, j] & T.uint32(65535)) << T.uint32(16)) '
    '+ T.reinterpret("float32", S[i // 8, j] & T.uint32(4294901760))\n'
)
# By rows of eight, with the scales in shared memory.
TILED = HEAD + (
    'def f(W: T.Buffer((64, 32), "uint32"), S: T.Buffer((16, 32), "uint32"), B: T.Buffer((128, 32), "float32")):\n'
    '    X = T.alloc_buffer((2, 32), "float32", scope="shared")\n'
    '    for bx in T.thread_binding(16, thread="blockIdx.x"):\n'
    '        for tx in T.thread_binding(32, thread="threadIdx.x"):\n'
    '            X[0, tx] = T.reinterpret("float32", (S[bx, tx] & T.uint32(65535)) << T.uint32(16))\n'
    '            X[1, tx] = T.reinterpret("float32", S[bx, tx] & T.uint32(4294901760))\n'
    '            T.evaluate(T.tvm_storage_sync("shared"))\n'
    "            for k in range(8):\n"
    '                B[bx * 8 + k, tx] = T.Cast("float32", W[bx * 4 + k // 2, tx] >> T.Cast("uint32", k % 2 * 4) '
    "& T.uint32(15)) * X[0, tx] + X[1, tx]\n"
)
CHANGES = (
    ("65535)) << T.uint32(16)", "65535)) << T.uint32(15)"),
    ("65535", "65534"),
    ("4294901760", "4294836224"),
    ("S[bx, tx] & T.uint32(4294901760)", "S[bx, tx]"),
    ("X[0, tx] + X[1, tx]", "X[1, tx] + X[0, tx]"),
)


def test_packed_floats_through_shared_memory() -> None:
    """Both halves of a word as floats, taken in two ways, are the same bit for bit."""
    assert lp.compare(lp.loads(PACKED), lp.loads(TILED)).status is Status.PROVED


@one_in(4)
@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_other_bits_are_not_proved(old: str, new: str) -> None:
    """A shift or a mask that is off, and halves that are exchanged."""
    assert old in TILED
    assert lp.compare(lp.loads(PACKED), lp.loads(TILED.replace(old, new))).status is not Status.PROVED


MASKED = "A[i] & T.uint32(4294901760)"


def one(value: str, source: str = "uint32", target: str = "float32") -> lp.PrimFunc:
    """A function that stores one value for each element."""
    return lp.loads(
        HEAD + f'def f(A: T.Buffer((8,), "{source}"), B: T.Buffer((8,), "{target}")):\n'
        f"    for i in range(8):\n        B[i] = {value}\n"
    )


def test_bits_that_are_taken_in_two_ways() -> None:
    """A solver decides whether two integers have the same bits as floats."""
    there, back = (one(f'T.reinterpret("float32", {e})') for e in ("A[i] >> T.uint32(16) << T.uint32(16)", MASKED))
    assert lp.compare(there, back).strictness == ()
    other = one(f'T.reinterpret("float32", {MASKED.replace("4294901760", "4294836224")})')
    assert lp.compare(there, other).status is Status.REFUTED


def test_the_zero_of_bits_has_a_sign() -> None:
    """The bits of a negative zero are zero up to the sign only."""
    zeros = 'T.reinterpret("float32", A[i] & T.uint32(2147483648))'
    assert lp.compare(one("T.float32(0.0)"), one(zeros)).strictness == ("nsz",)
    chosen = f"T.Select({zeros} == T.float32(0.0), T.float32(0.0), T.float32(1.0))"
    assert lp.compare(one("T.float32(0.0)"), one(chosen)).strictness == ()


def test_all_nans_are_one() -> None:
    """Bits that are NaNs, whatever they are, are one number."""
    nans = 'T.reinterpret("float32", A[i] | T.uint32(2143289344))'
    assert lp.compare(one('T.float32("nan")'), one(nans)).status is Status.PROVED
    assert lp.compare(one('T.float32("nan")'), one(nans.replace("2143289344", "2139095040"))).status is Status.REFUTED


def test_bits_of_a_float_are_no_function_of_it() -> None:
    """Two programs whose NaNs may have other bits are not taken for the same, nor for different."""
    bits = 'T.reinterpret("uint32", {})'
    plain = one(bits.format("A[i]"), "float32", "uint32")
    product = one(bits.format("A[i] * T.float32(1.0)"), "float32", "uint32")
    assert lp.compare(plain, product).status is Status.UNKNOWN


def test_bits_of_integers_wrap() -> None:
    """Between integers of one width it is the conversion that wraps."""
    there = one('T.reinterpret("int32", A[i])', "uint32", "int32")
    assert lp.compare(there, one('T.Cast("int32", A[i])', "uint32", "int32")).status is Status.PROVED


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8"])
def test_another_width_is_refused(dtype: str) -> None:
    """Bits are seen as a type of the same width only."""
    with pytest.raises(LayoutproofError, match="another width") as found:
        one(f'T.reinterpret("{dtype}", A[i])', "uint32", dtype)
    assert found.value.diagnostics[0].span is not None


NAMED = """\
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    for i in range(8):
        x = T.bind({value})
        A[i] = T.float32(0)
        B[i] = T.reinterpret("int32", x)
"""


def test_a_name_carries_bits() -> None:
    """What a name stands for has the same bits, where they are taken from it: a product with 1 is no copy of a NaN."""
    copied = lp.loads(NAMED.format(value="A[i]"))
    assert lp.compare(copied, lp.loads(NAMED.format(value="A[0 + i]"))).status is Status.PROVED
    for value in ("A[i] * T.float32(1)", "A[i] + T.float32(-0.0)", "T.max(A[i], A[i])"):
        assert lp.compare(lp.loads(NAMED.format(value=value)), copied).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("signature", "together"),
    [
        ('A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int32")', False),
        ('A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float16")', False),
        ('A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")', True),
    ],
)
def test_parameters_that_overlap_show_bits(signature: str, together: bool) -> None:
    """A parameter of another type in the same memory shows which NaN a float is."""
    text = HEAD + f"def f({signature}):\n    for i in range(4):\n        A[i] = {{value}}\n        B[i] = B[i + 4]\n"
    before, after = (lp.loads(text.format(value=value)) for value in ("A[i] + A[i + 4]", "A[i + 4] + A[i]"))
    found = lp.compare(before, after)
    assert found.status is Status.PROVED
    assert ("do not overlap" in str(found.verdicts[0].reason)) is not together
