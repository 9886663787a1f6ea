"""Makes `class_tables.json`, the kinds of every operation's result by the kinds of its operands, from all values of a
six-bit float format (`python -m layoutproof.verify.values.kind_tables`), and states the tables as claims for solvers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from layoutproof.ir.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from layoutproof.ir.expr import Binary, Cast, Expr, Var
from layoutproof.ir.interp.runtime import EXACT, float_div
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.semantics import select_max, select_min
from layoutproof.verify.smt.encode_values import ValueEncoder, conjunction, disjunction
from layoutproof.verify.values.knowledge import KINDS, NAN, NEG, NEG_INF, NEG_ZERO, POS, POS_INF, POS_ZERO, kind_of
from layoutproof.verify.values.numbers import round_to_format

_TESTS: Mapping[int, str] = {
    NAN: "(fp.isNaN {0})",
    NEG_INF: "(and (fp.isInfinite {0}) (fp.isNegative {0}))",
    NEG: "(and (fp.isNegative {0}) (not (fp.isInfinite {0})) (not (fp.isZero {0})))",
    NEG_ZERO: "(and (fp.isZero {0}) (fp.isNegative {0}))",
    POS_ZERO: "(and (fp.isZero {0}) (fp.isPositive {0}))",
    POS: "(and (fp.isPositive {0}) (not (fp.isInfinite {0})) (not (fp.isZero {0})))",
    POS_INF: "(and (fp.isInfinite {0}) (fp.isPositive {0}))",
}


def _binary(op: BinaryOp) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: Binary(op, a, b)


def _call(function: str) -> Callable[..., Expr]:
    return lambda *arguments: Call(function, arguments)


OPERATIONS: Mapping[str, Callable[..., Expr]] = {
    **{
        op.value: _binary(op)
        for op in (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.DIV, BinaryOp.MIN, BinaryOp.MAX)
    },
    **{
        name: _call(name)
        for name in ("fmin", "fmax", "minimum", "maximum", "abs", "sqrt", "floor", "ceil", "trunc", "round")
    },
}
"""Every operation with a table, conversions apart."""

# The conversions that lose something.
_NARROWER: Mapping[DType, tuple[DType, ...]] = {
    FLOAT64: (FLOAT32, FLOAT16, BFLOAT16),
    FLOAT32: (FLOAT16, BFLOAT16),
    FLOAT16: (BFLOAT16,),
    BFLOAT16: (FLOAT16,),
}


@dataclass(frozen=True, slots=True)
class KindScript:
    """One claim as SMT-LIB; `unsat` is its proof. `words` writes the operation."""

    name: str
    words: str
    text: str
    logic: str


def kinds_script(operation: str, dtype: DType, table: list[int]) -> Iterator[KindScript]:
    """The claims that a table holds in a float type."""
    x, y = Var("x", dtype), Var("y", dtype)
    if operation == "narrow":
        for target in _NARROWER[dtype]:
            yield _script(f"from {dtype} to {target}", Cast(target, x), (x,), table)
        return
    operands = (x, y) if len(table) == len(KINDS) ** 2 else (x,)
    yield _script(f"{operation} in {dtype}", OPERATIONS[operation](*operands), operands, table)


def _script(words: str, expr: Expr, operands: tuple[Var, ...], table: list[int]) -> KindScript:
    encoder = ValueEncoder()
    terms = [encoder.value(v) for v in operands]
    result = encoder.value(expr)

    def is_kind(term: str, kind: int) -> str:
        return encoder.define(_TESTS[kind].format(term), "Bool")

    cases = []
    for row, allowed in enumerate(table):
        kinds = (KINDS[row],) if len(operands) == 1 else (KINDS[row // len(KINDS)], KINDS[row % len(KINDS)])
        others = [is_kind(result, kind) for kind in KINDS if not kind & allowed]
        cases.append(
            conjunction([*(is_kind(term, kind) for kind, term in zip(kinds, terms, strict=True)), disjunction(others)])
        )
    return KindScript(
        f"kinds of {words}", words, encoder.script([disjunction(cases)], f"the kinds of {words}"), encoder.logic
    )


PRECISION, EMIN, EMAX = 3, -3, 3
# A narrower one, for conversions.
NARROW = (2, -1, 1)

BINARY: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": float_div,
    "min": select_min,
    "max": select_max,
    "fmin": EXACT["fmin"],
    "fmax": EXACT["fmax"],
    "minimum": EXACT["minimum"],
    "maximum": EXACT["maximum"],
}
UNARY: Mapping[str, Callable[[float], float]] = {
    "abs": abs,
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "floor": EXACT["floor"],
    "ceil": EXACT["ceil"],
    "trunc": EXACT["trunc"],
    "round": EXACT["round"],
}


def numbers() -> tuple[float, ...]:
    """Every value of the format."""
    found = {0.0}
    for exponent in range(EMIN, EMAX + 1):
        for fraction in range(1 << PRECISION):
            found.add(float(rounded(math.ldexp(fraction, exponent - PRECISION + 1))))
    finite = sorted(x for x in found if math.isfinite(x))
    return (math.nan, math.inf, -math.inf, 0.0, -0.0, *(sign * x for x in finite if x for sign in (1.0, -1.0)))


def rounded(value: float, precision: int = PRECISION, emin: int = EMIN, emax: int = EMAX) -> float:
    """Rounded once to a format."""
    return float(round_to_format(np.array([value]), precision, emin, emax)[0])


def _narrow(value: float) -> float:
    return rounded(value, *NARROW)


def tables() -> dict[str, list[int]]:
    """Every table."""
    values = numbers()
    found: dict[str, list[int]] = {}
    for name, binary in BINARY.items():
        table = dict.fromkeys(product(KINDS, KINDS), 0)
        for a, b in product(values, values):
            table[kind_of(a), kind_of(b)] |= kind_of(rounded(binary(a, b)))
        found[name] = list(table.values())
    for name, unary in (*UNARY.items(), ("narrow", _narrow)):
        row = dict.fromkeys(KINDS, 0)
        for a in values:
            row[kind_of(a)] |= kind_of(rounded(unary(a)))
        found[name] = list(row.values())
    return found


def main() -> None:
    """Write the file beside this module."""
    text = ",\n".join(f"  {json.dumps(name)}: {json.dumps(table)}" for name, table in tables().items())
    Path(__file__).with_name("class_tables.json").write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
