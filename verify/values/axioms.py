"""What is known of the math functions that are otherwise uninterpreted: their values at single points, each by name.

Source: ISO C, Annex F (`exp`, `exp2`, `log*`, `sin`, `cos`, `tan`, `sinh`, `cosh`, `tanh`, `atan`, `erf`), and the definitions
`rsqrt(x) = 1 / sqrt(x)`, `sigmoid(x) = 1 / (1 + exp(-x))` computed in IEEE arithmetic at points where every step is exact. No
monotonicity: real libraries break it (float32 `exp` near 0x1.0a2b22p0), and float64 calls are those of one. On the narrower types every
point is true of `ir/functions`, and tested.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.visit import walk
from layoutproof.verify.smt.encode_values import INTERPRETED, ValueEncoder, same
from layoutproof.verify.values.terms import is_identical

_INF = math.inf
# function -> argument, value
POINTS: Mapping[str, tuple[tuple[float, float], ...]] = {
    "exp": ((0.0, 1.0), (-0.0, 1.0), (-_INF, 0.0), (_INF, _INF)),
    "exp2": ((0.0, 1.0), (-0.0, 1.0), (-_INF, 0.0), (_INF, _INF)),
    "log": ((1.0, 0.0), (0.0, -_INF), (-0.0, -_INF), (_INF, _INF)),
    "log2": ((1.0, 0.0), (0.0, -_INF), (-0.0, -_INF), (_INF, _INF)),
    "log10": ((1.0, 0.0), (0.0, -_INF), (-0.0, -_INF), (_INF, _INF)),
    "sin": ((0.0, 0.0), (-0.0, -0.0)),
    "cos": ((0.0, 1.0), (-0.0, 1.0)),
    "tan": ((0.0, 0.0), (-0.0, -0.0)),
    "sinh": ((0.0, 0.0), (-0.0, -0.0), (_INF, _INF), (-_INF, -_INF)),
    "cosh": ((0.0, 1.0), (-0.0, 1.0), (_INF, _INF), (-_INF, _INF)),
    "tanh": ((0.0, 0.0), (-0.0, -0.0), (_INF, 1.0), (-_INF, -1.0)),
    "atan": ((0.0, 0.0), (-0.0, -0.0)),
    "erf": ((0.0, 0.0), (-0.0, -0.0), (_INF, 1.0), (-_INF, -1.0)),
    "rsqrt": ((1.0, 1.0), (4.0, 0.5), (0.0, _INF), (_INF, 0.0)),
    "sigmoid": ((0.0, 0.5), (-0.0, 0.5), (-_INF, 0.0), (_INF, 1.0)),
}


@dataclass(frozen=True, slots=True)
class Axiom:
    """One assumption about a math function of one type: its name in reports, and what is asserted."""

    name: str
    assertion: str


def axiom_name(function: str, argument: float, value: float) -> str:
    """`exp(-inf) = 0.0`."""
    return f"{function}({argument!r}) = {value!r}"


def known_value(function: str, argument: float) -> float | None:
    """The value of a math function at an exact point, or None."""
    if math.isnan(argument) and function in POINTS:
        return math.nan
    return next((value for point, value in POINTS.get(function, ()) if is_identical(point, argument)), None)


def axioms_of(exprs: Iterable[Expr], encoder: ValueEncoder) -> tuple[Axiom, ...]:
    """The axioms of every function that the expressions call, in a fixed order."""
    called = {(n.function, n.dtype): None for expr in exprs for n in walk(expr) if isinstance(n, Call) and n.function not in INTERPRETED}
    return tuple(axiom for function, dtype in called for axiom in _axioms(function, dtype, encoder))


def _axioms(function: str, dtype: DType, encoder: ValueEncoder) -> list[Axiom]:
    found = []
    points = POINTS.get(function, ())
    for argument, value in (*points, *(((math.nan, math.nan),) if points else ())):
        call = f"(m_{function}_{dtype} {encoder.real(argument, dtype)})"
        found.append(Axiom(axiom_name(function, argument, value), same(call, encoder.real(value, dtype))))
    return found
