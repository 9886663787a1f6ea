"""Expressions that are written otherwise and have one value: laws of arithmetic that hold bit for bit in every type.
Either side has a fault only where the other one has it.

A float operation rounds its exact result once (IEEE 754, 4.3), and one NaN is as good as another. So two operations are
equal where their exact results are, and the signs of zeros:

* `a + b` is `b + a`, and `a * b` is `b * a`. Of integers, `min`, `max` and operations on bits, too. Of floats they are
  not: `max(a, b)` is `a > b ? a : b`, whose result for 0 and -0, or for a NaN, is the second operand.
* `a - c` is `a + -c`, which is how a difference is defined (6.3).
* `a * 2` is `a + a`: also their overflows are one, and both have the sign of `a`.
* `a / 2**k` is `a * 2**-k`, where that is a number of the type.
* `a * 1` and `a + -0.0` are `a`, and so is `a + 0` of integers.

Integers wrap, which sums and products of residues do not see. A choice by `not c` is one by `c` with its sides changed,
and a comparison may be read from the other end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from layoutproof.verify.kernel.programs import Expr, fits, is_float
from layoutproof.verify.kernel.rejected import Rejected

_COMMUTATIVE = ("+", "*", "==", "!=", "and", "or")
_OF_INTEGERS = ("min", "max", "&", "|", "^")
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_LARGEST_EXPONENT = {"float16": 14, "bfloat16": 126, "float32": 126, "float64": 1022}
_MINUS_ZERO = (-0.0).hex()


def law(e: Expr) -> Expr:
    """The expression without a difference of a constant, a division by a power of two, and the like at its top."""
    while (other := _applied(e)) is not None:
        e = other
    return e


def _applied(e: Expr) -> Expr | None:
    operator, dtype = e[:2]
    if operator in ("if", "select") and e[2][0] == "not":
        return (operator, dtype, e[2][2], e[4], e[3])
    if operator not in ("+", "-", "*", "/"):
        return None
    a, b = e[2], e[3]
    if operator in ("+", "*") and a[0] == "const" != b[0]:
        a, b = b, a
    if b[0] != "const":
        return None
    return _of_float(operator, dtype, a, b[2]) if is_float(dtype) else _of_integer(operator, dtype, a, b[2])


def _of_float(operator: str, dtype: str, a: Expr, text: str) -> Expr | None:
    number = float.fromhex(text)
    if operator == "-" and number == number:
        return ("+", dtype, a, ("const", dtype, (-number).hex()))
    mantissa, exponent = math.frexp(number)
    if operator == "/" and abs(mantissa) == 0.5 and abs(exponent - 1) <= _LARGEST_EXPONENT.get(dtype, -1):
        return ("*", dtype, a, ("const", dtype, (1 / number).hex()))
    if operator == "*" and number in (1, 2):
        return a if number == 1 else ("+", dtype, a, a)
    return a if (operator, text) == ("+", _MINUS_ZERO) else None


def _of_integer(operator: str, dtype: str, a: Expr, number: int) -> Expr | None:
    if operator == "-" and fits(-number, dtype):
        return ("+", dtype, a, ("const", dtype, -number))
    if operator == "*" and number in (1, 2):
        return a if number == 1 else ("+", dtype, a, a)
    return a if (operator, number) == ("+", 0) else None


def pairings(a: Expr, b: Expr) -> Sequence[Sequence[tuple[Expr, Expr]]]:
    """Ways to pair the operands of two expressions, each of which shows that they have one value if each pair has."""
    if len(a) != len(b) or "load" in (a[0], b[0]):
        raise Rejected(f"{b[0]} stands for {a[0]}")
    if b[0] == _MIRRORED.get(a[0]):
        return [[(a[2], b[3]), (a[3], b[2])]]
    if a[0] != b[0] and {a[0], b[0]} != {"if", "select"}:
        raise Rejected(f"{b[0]} stands for {a[0]}")
    pairs = list(zip(a[2:], b[2:], strict=True))
    for x, y in pairs:
        if not isinstance(x, tuple) and (x != y or type(x) is not type(y)):
            raise Rejected(f"{y} stands for {x}")
    straight = [(x, y) for x, y in pairs if isinstance(x, tuple)]
    if a[0] in _COMMUTATIVE or (a[0] in _OF_INTEGERS and not is_float(a[1])):
        return [straight, [(a[2], b[3]), (a[3], b[2])]]
    return [straight]
