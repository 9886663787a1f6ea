"""What type a number has, and other forms that are read as what they mean."""

import math
from fractions import Fraction

import numpy as np
import pytest

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp.run import run
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads

NARROW = 'D: T.Buffer((4,), "int8"), H: T.Buffer((4,), "float16"), W: T.Buffer((4,), "int32"), n: T.int32'


def shown(*lines: str) -> list[str]:
    """What a program over narrow types is printed as, its statements only."""
    text = "\n".join(["@T.prim_func(s_tir=True)", f"def main({NARROW}):", *(f"    {line}" for line in lines)]) + "\n"
    program = loads(text)
    printed = print_func(program)
    assert loads(printed) == program
    return [line.strip() for line in printed.splitlines()[4:]]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("W[0] = (D[0] + 100) // 2", 'W[0] = (T.Cast("int32", D[0]) + 100) // 2'),
        ("W[0] = D[0] + T.int8(100)", 'W[0] = T.Cast("int32", D[0] + T.int8(100))'),
        ("D[0] = D[1] << 1", "D[0] = D[1] << T.int8(1)"),
        ("H[0] = H[1] * 2.5", 'H[0] = T.Cast("float16", T.Cast("float32", H[1]) * T.float32(2.5))'),
        ("H[0] = H[1] * 2", "H[0] = H[1] * T.float16(2.0)"),
        ("D[0] = 1.5", 'D[0] = T.Cast("int8", T.float32(1.5))'),
        ("H[0] = 1 / 4", "H[0] = T.float16(0.25)"),
        ("H[0] = (65536 * 65536) * D[0]", 'H[0] = T.Cast("float16", T.int64(4294967296) * T.Cast("int64", D[0]))'),
        ("W[0] = T.int32(65536) * 65536", "W[0] = T.int32(65536) * 65536"),
        ("W[0] = T.ceildiv(n, 4)", "W[0] = (n + 4 - 1) // 4"),
        ("W[0] = T.shift_left(n, 3, dtype='int32')", "W[0] = n << 3"),
        ("W[0] = T.cast(T.ceil(H[0], dtype='float16'), dtype='int32')", 'W[0] = T.Cast("int32", T.ceil(H[0]))'),
        ("W[0] = T.nearbyint(n)", "W[0] = n"),
        ("H[0] = T.nearbyint(H[1])", "H[0] = T.round(H[1])"),
        ("W[0] = T.float32(16777217)", 'W[0] = T.Cast("int32", T.float64(16777217.0))'),
        ("H[0] = T.float32(1.0004882813)", "H[0] = T.float16(1.0009765625)"),
        ("H[0] = T.cast(T.float32(1.0004882813), 'float16')", "H[0] = T.float16(1.0009765625)"),
        (
            "H[0:4] = T.Broadcast(T.float32(1.0004882813), 4)",
            "H[T.Ramp(0, 1, 4)] = T.Broadcast(T.float16(1.0009765625), 4)",
        ),
        ("H[0] = T.int64(2049)", "H[0] = T.float16(2048.0)"),
        ("H[0] = T.int64(2048)", 'H[0] = T.Cast("float16", T.int64(2048))'),
        ("W[0] = T.float32(T.int64(16777217))", 'W[0] = T.Cast("int32", T.float64(16777217.0))'),
        ("H[0] = T.float32(65519.9999)", "H[0] = T.float16(65504.0)"),
        ("H[0] = T.float32(0.5)", 'H[0] = T.Cast("float16", T.float32(0.5))'),
    ],
)
def test_types_of_numbers(line: str, expected: str) -> None:
    """Numbers and operands have the types that TVM gives them, and what is printed says so."""
    assert shown(line) == [expected]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("x = T.bind(D[0] + 1)", "W[0] = x"), ['x: T.let[T.int32] = T.Cast("int32", D[0]) + 1', "W[0] = x"]),
        (("x: T.int32 = D[0]", "W[0] = x"), ['x: T.let[T.int32] = T.Cast("int32", D[0])', "W[0] = x"]),
        (("x = T.meta_var(n + 1)", "W[0] = x * x"), ["W[0] = (n + 1) * (n + 1)"]),
        (("v = T.int32()", "W[0] = T.Let(v * v, where={v: n})"), ["W[0] = n * n"]),
        (
            ("for i in range(1, 8, 3):", "    W[i] = 0"),
            ["for i_step in range(3):", "i: T.let[T.int32] = 1 + i_step * 3", "W[i] = 0"],
        ),
        (
            ("for i in T.serial(0, n, step=2):", "    W[i] = 0"),
            ["for i_step in range((n + 1) // 2):", "i: T.let[T.int32] = i_step * 2", "W[i] = 0"],
        ),
        (("if n:", "    W[0] = 1"), ["if n != 0:", "W[0] = 1"]),
        (
            ("T.func_attr({'target': T.target('llvm'), 'host': T.target({'kind': 'c'})})", "W[0] = 1"),
            ['T.func_attr({"target": T.target("llvm"), "host": T.target(\'{"kind": "c"}\')})', "W[0] = 1"],
        ),
    ],
)
def test_bindings_and_steps(lines: tuple[str, ...], expected: list[str]) -> None:
    """Bindings, names for expressions, steps of loops and targets are read as what they mean."""
    assert shown(*lines) == expected


@pytest.mark.parametrize(
    "line",
    [
        "W[0] = T.exp(H[0], dtype='float32')",
        "W[0] = T.Select(n > 0, D[0], 1)",
        "W[0] = n & 2147483648",
        "v = T.int32()\n    W[0] = T.Let(T.if_then_else(n > 0, v, 0), where={v: n // n})",
        "W[0] = (n > 0) // 2",
    ],
)
def test_what_versions_or_rules_leave_open_is_refused(line: str) -> None:
    """What TVM refuses, or means differently from version to version, is an error that says what to write."""
    with pytest.raises(LayoutproofError) as caught:
        shown(line)
    assert "= help: " in str(caught.value)


def test_names_for_expressions_stay_small() -> None:
    """A name that stands for an expression is refused where it would double the program again and again."""
    lines = [f"x{k} = T.meta_var({f'x{k - 1} + x{k - 1}' if k else 'n + n'})" for k in range(12)]
    with pytest.raises(LayoutproofError, match="too large to be written more than once"):
        shown(*lines, "W[0] = x11")


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_leading_zeros(dtype: str) -> None:
    """`T.clz` counts the zeros before the first one: of 0 all, of a negative number none."""
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    values = [0, 1, *(v for k in range(1, bits) for v in ((1 << k) - 1, 1 << k)), (1 << bits) - 1]
    given = np.array(values, np.uint64).astype(f"uint{bits}").view(dtype)
    func = loads(
        f'@T.prim_func\ndef f(A: T.Buffer(({len(values)},), "{dtype}"), B: T.Buffer(({len(values)},), "int32")):\n'
        f"    for i in range({len(values)}):\n        B[i] = T.clz(A[i])\n"
    )
    found = run(func, {"A": given, "B": np.zeros(len(values), np.int32)}).arrays["B"]
    assert found.tolist() == [bits - v.bit_length() for v in values]


@pytest.mark.parametrize("value", ["D[0]", "H[0]", "True"])
def test_leading_zeros_of_32_or_64_bits(value: str) -> None:
    """As in TVM, narrower integers are converted first, by a cast that stands there."""
    with pytest.raises(LayoutproofError, match="an integer of 32 or 64 bits"):
        shown(f"W[0] = T.clz({value})")


def test_is_nan() -> None:
    """`T.isnan` is true of NaN alone; of integers it is refused."""
    values = np.array([np.nan, 0.0, -0.0, np.inf, 1.0], np.float32)
    func = loads(
        '@T.prim_func\ndef f(A: T.Buffer((5,), "float32"), B: T.Buffer((5,), "bool")):\n'
        "    for i in range(5):\n        B[i] = T.isnan(A[i])\n"
    )
    assert run(func, {"A": values, "B": np.zeros(5, np.bool_)}).arrays["B"].tolist() == np.isnan(values).tolist()
    with pytest.raises(LayoutproofError, match="isnan of a int32"):
        shown("W[0] = T.isnan(n)")


@pytest.mark.parametrize("shift", [0, -3, 2])
@pytest.mark.parametrize("factor", [1 << 30, 1073741825, -7])
def test_products_of_fixed_point_numbers(factor: int, shift: int) -> None:
    """`T.q_multiply_shift` is the exact product, rounded to the nearest integer, halves up."""
    values = [0, 1, 2, 3, 4, 5, -1, -2, -3, -4, -5, 12345678, -(1 << 31), (1 << 31) - 1]
    func = loads(
        f'@T.prim_func\ndef f(A: T.Buffer(({len(values)},), "int32"), B: T.Buffer(({len(values)},), "int32")):\n'
        f"    for i in range({len(values)}):\n        B[i] = T.q_multiply_shift(A[i], {factor}, 31, {shift})\n"
    )
    found = run(func, {"A": np.array(values, np.int32), "B": np.zeros(len(values), np.int32)}).arrays["B"]
    wanted = [math.floor(Fraction(v * factor, 1 << (31 - shift)) + Fraction(1, 2)) for v in values]
    assert found.tolist() == [(w + (1 << 31)) % (1 << 32) - (1 << 31) for w in wanted]


@pytest.mark.parametrize("rest", ["31, 31", "0, 0", "31, -32", "n, 0"])
def test_other_fixed_point_numbers(rest: str) -> None:
    """What may exceed 64 bits on the way, or is no number, is refused."""
    with pytest.raises(LayoutproofError):
        shown(f"W[0] = T.q_multiply_shift(n, 5, {rest})")


def test_the_type_of_a_status() -> None:
    """`-> T.int32` is read, whether a status is returned or not."""
    assert loads('@T.prim_func\ndef f(A: T.Buffer((1,), "int32")) -> T.int32:\n    A[0] = 1\n').name == "f"
    assert (
        loads('@T.prim_func\ndef f(A: T.Buffer((1,), "int32")) -> T.int32:\n    A[0] = 1\n    return 0\n').name == "f"
    )
    for text in (
        "-> T.float32:\n    A[0] = 1",
        "-> int:\n    A[0] = 1",
        "-> T.int33:\n    A[0] = 1",
    ):
        with pytest.raises(LayoutproofError):
            loads(f'@T.prim_func\ndef f(A: T.Buffer((1,), "int32")) {text}\n')


@pytest.mark.parametrize("value", ['T.undef(dtype="int32")', 'T.call_extern("int32", "rand") + 1'])
@pytest.mark.parametrize("expression", ["T.Let(v - v, where={{v: {}}})", "T.clz({})"])
def test_what_is_written_more_than_once_is_the_same_each_time(expression: str, value: str) -> None:
    """TVM evaluates it once: `v - v` of an undefined value is 0, and not the difference of two."""
    with pytest.raises(LayoutproofError, match="is evaluated once here, and may differ each time it is written"):
        shown("v = T.int32()", f"W[0] = {expression.format(value)}")


def test_functions_of_functions_stay_small() -> None:
    """An operand that is written 32 times is bounded."""
    with pytest.raises(LayoutproofError, match="too large to be written more than once"):
        shown(f"W[0] = {'T.clz(' * 6}n{')' * 6}")
