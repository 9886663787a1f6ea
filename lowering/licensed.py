"""Which float licences proofs may use, where a gate or a run bounds them for all schedules that are made meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from layoutproof.verify.values.licences import ALL, Licences

_allowed: ContextVar[Licences] = ContextVar("allowed", default=ALL)


def licences_here() -> Licences:
    """The licences that proofs may use where a gate or a run bounds them; else all."""
    return _allowed.get()


@contextmanager
def allowing(licences: Licences) -> Iterator[None]:
    """Bound the licences that proofs may use meanwhile; a bound inside another one is the stricter of both."""
    token = _allowed.set(_allowed.get() & licences)
    try:
        yield
    finally:
        _allowed.reset(token)
