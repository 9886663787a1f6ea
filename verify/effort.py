"""How much work is put into questions, as a factor on every budget.

Budgets are counted in units of the engines, so that answers do not depend on the machine; they fit questions of usual size. Who has larger
ones, or less patience, sets the factor once for the process: what is remembered of answers then belongs to one factor.
"""

from __future__ import annotations

import math

_factor = 1.0


def set_effort(factor: float) -> None:
    """Multiply every budget by `factor` from now on. Raises ValueError where that is no finite number above 0."""
    global _factor
    if not (math.isfinite(factor) and factor > 0):
        raise ValueError(f"a factor is a finite number above 0, not {factor}")
    _factor = factor


def effort() -> float:
    """The factor in force; 1 unless somebody set it."""
    return _factor


def scaled(units: int) -> int:
    """A budget in some engine's units, as large as it is to be: at least 1, and at most what an engine's counter holds."""
    return units if _factor == 1.0 else max(1, min(round(units * _factor), (1 << 31) - 1))
