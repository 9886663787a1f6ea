"""Makes `class_tables.json`: the kinds of every operation's result by the kinds of its operands, from all values of a six-bit float format.

    python -m layoutproof.verify.values.make_tables

The format has two exponent bits more than it needs to show every kind of overflow, underflow and cancellation; that the tables hold for
the types of the IR is proved by solvers (`law_proofs`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path

import numpy as np

from layoutproof.ir.interp.number import EXACT, float_div
from layoutproof.ir.semantics import select_max, select_min
from layoutproof.verify.values.classes import KINDS, kind_of
from layoutproof.verify.values.rounding import round_to_format

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
