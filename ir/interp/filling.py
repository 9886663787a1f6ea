"""What undefined cells hold.

An arbitrary value has to be some value in a run; several runs with different ones tell what depends on it.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from enum import StrEnum

from layoutproof.ir.dtype import DType
from layoutproof.ir.semantics import max_finite, round_float


class Fill(StrEnum):
    """The ways to choose."""

    RANDOM = "random"
    ZERO = "zero"
    NAN = "nan"
    INFINITY = "infinity"
    LOWEST = "lowest"


@dataclass(slots=True)
class Filling:
    """A source of arbitrary values; the same one gives the same values again."""

    fill: Fill = Fill.RANDOM
    seed: int = 0
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """From the first value again."""
        self._random = random.Random(self.seed)

    def value(self, dtype: DType) -> int | float:
        """The next value of a scalar type. Integers have no NaN and no infinity: their largest stands for both."""
        if dtype.is_float:
            return self._float(dtype)
        match self.fill:
            case Fill.RANDOM:
                return self._random.randint(dtype.min_int, dtype.max_int)
            case Fill.ZERO:
                return 0
            case Fill.NAN | Fill.INFINITY:
                return dtype.max_int
            case Fill.LOWEST:
                return dtype.min_int

    def _float(self, dtype: DType) -> float:
        match self.fill:
            case Fill.RANDOM:
                return round_float(self._random.uniform(-8.0, 8.0), dtype)
            case Fill.ZERO:
                return 0.0
            case Fill.NAN:
                return math.nan
            case Fill.INFINITY:
                return math.inf
            case Fill.LOWEST:
                return -max_finite(dtype)


def all_fillings() -> tuple[Filling, ...]:
    """One of each kind, and a second random one."""
    return (*(Filling(fill) for fill in Fill), Filling(Fill.RANDOM, 1))
