"""What is known of a float without solving: which of the seven kinds of value it may be, and bounds on it where it is a number.

The kinds of a result follow from those of the operands by tables (`class_tables.json`) that hold in every binary format under rounding
to nearest even. They were made by running every pair of numbers of a six-bit format, and are proved for float16, bfloat16, float32 and
float64 in `proofs/laws`. Part of the trust base.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from layoutproof.ir.dtype import DType
from layoutproof.ir.semantics import max_finite
from layoutproof.verify.values.terms import Number

NAN, NEG_INF, NEG, NEG_ZERO, POS_ZERO, POS, POS_INF = (1 << k for k in range(7))
KINDS = (NAN, NEG_INF, NEG, NEG_ZERO, POS_ZERO, POS, POS_INF)
KIND_NAMES: Mapping[int, str] = dict(zip(KINDS, ("nan", "-inf", "negative", "-0.0", "+0.0", "positive", "inf"), strict=True))
ANY = sum(KINDS)
ZERO = NEG_ZERO | POS_ZERO
INFINITE = NEG_INF | POS_INF
FINITE = NEG | ZERO | POS

_TABLES = "class_tables.json"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a value: `kinds` for a float (0 for other types), and bounds on it where it is a number."""

    kinds: int
    low: Number
    high: Number

    def restricted(self, kinds: int, low: Number = -math.inf, high: Number = math.inf) -> Known:
        """With more known: the kinds and bounds of both."""
        return settled(self.kinds & kinds, max(self.low, low), min(self.high, high))

    def joined(self, other: Known) -> Known:
        """What is known of a value that is one of two."""
        return Known(self.kinds | other.kinds, min(self.low, other.low), max(self.high, other.high))


def settled(kinds: int, low: Number, high: Number) -> Known:
    """Kinds without those that the bounds exclude. A zero of either sign is neither below nor above the other."""
    if low > -math.inf:
        kinds &= ~NEG_INF
    if high < math.inf:
        kinds &= ~POS_INF
    if low >= 0:
        kinds &= ~(NEG | NEG_INF)
    if high <= 0:
        kinds &= ~(POS | POS_INF)
    if low > 0 or high < 0:
        kinds &= ~ZERO
    return Known(kinds, low, high)


def anything(dtype: DType) -> Known:
    """Nothing is known."""
    if dtype.is_float:
        return Known(ANY, -math.inf, math.inf)
    if dtype.is_integer or dtype.is_bool:
        return Known(0, dtype.min_int, dtype.max_int)
    return Known(0, -math.inf, math.inf)


def known_literal(value: Number, dtype: DType) -> Known:
    """All is known."""
    if not dtype.is_float:
        return Known(0, value, value)
    if value != value:
        return Known(NAN, -math.inf, math.inf)
    return Known(kind_of(float(value)), value, value)


def kind_of(value: float) -> int:
    """The kind of one float."""
    if value != value:
        return NAN
    negative = math.copysign(1.0, value) < 0
    if value == 0.0:
        return NEG_ZERO if negative else POS_ZERO
    if math.isinf(value):
        return NEG_INF if negative else POS_INF
    return NEG if negative else POS


def of_kinds(kinds: int, dtype: DType) -> Known:
    """Kinds, with the bounds that they give."""
    low = -math.inf if kinds & NEG_INF else -max_finite(dtype) if kinds & NEG else 0.0
    high = math.inf if kinds & POS_INF else max_finite(dtype) if kinds & POS else 0.0
    return Known(kinds, low, high)


@cache
def _tables() -> Mapping[str, list[int]]:
    found: Mapping[str, list[int]] = json.loads(resources.files(__package__).joinpath(_TABLES).read_text(encoding="utf-8"))
    return found


@cache
def kinds_after(operation: str, *operands: int) -> int | None:
    """The kinds of a result by the kinds of one or two operands; None for an operation without a table."""
    table = _tables().get(operation)
    if table is None:
        return None
    result = 0
    for row, first in enumerate(KINDS):
        if not operands[0] & first:
            continue
        if len(operands) == 1:
            result |= table[row]
            continue
        for column, second in enumerate(KINDS):
            if operands[1] & second:
                result |= table[row * len(KINDS) + column]
    return result


def tabled_operations() -> Mapping[str, list[int]]:
    """Every table: for one operand 7 sets of kinds, for two 49, the first operand's kind first."""
    return _tables()
