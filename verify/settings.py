"""The settings of a run: the budget scale, the fast-math assumptions that proofs may use, and the proof cache.

A gate is a user's function that makes schedules of its own, so settings cannot be passed to it as an argument: one
frozen value is in force inside a `within` block, and the defaults outside. Budgets are counted in units of the engines,
so that answers do not depend on the machine. A thread that a gate starts itself has the defaults.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

FastMath = TypeVar("FastMath", bound=str)


class Memory(Protocol):
    """Where answers are kept: a proof cache."""

    def get(self, table: str, key: str) -> dict[str, Any] | None:
        """The value under a key, None where there is none."""
        ...

    def put(self, table: str, key: str, value: dict[str, Any]) -> None:
        """Keep a value."""
        ...


@dataclass(frozen=True, slots=True)
class Settings:
    """`budget_scale` is a factor on every budget, `allowed` the fast-math assumptions that proofs may use, None for
    all. What was proved is looked up in `memory`, and kept there; None: everything is proved anew. Raises ValueError
    for a factor that is no finite number above 0.
    """

    budget_scale: float = 1.0
    allowed: frozenset[str] | None = None
    memory: Memory | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.budget_scale) and self.budget_scale > 0):
            raise ValueError(f"a factor is a finite number above 0, not {self.budget_scale}")

    def usable(self, fast_math: frozenset[FastMath]) -> frozenset[FastMath]:
        """Those fast-math assumptions that proofs may use."""
        return fast_math if self.allowed is None else frozenset(each for each in fast_math if each in self.allowed)

    def under(self, fast_math: frozenset[FastMath]) -> Settings:
        """The same with no other fast-math assumptions than these."""
        return replace(self, allowed=self.usable(fast_math))


USUAL = Settings()
_settings: ContextVar[Settings] = ContextVar("settings", default=USUAL)


def settings() -> Settings:
    """The settings in force."""
    return _settings.get()


@contextmanager
def within(held: Settings) -> Iterator[None]:
    """Put `held` in force in this block."""
    token = _settings.set(held)
    try:
        yield
    finally:
        _settings.reset(token)


def scaled(units: int) -> int:
    """A budget in an engine's units, scaled: at least 1, and at most what an engine's counter holds."""
    factor = settings().budget_scale
    return units if factor == 1.0 else max(1, min(round(units * factor), (1 << 31) - 1))
