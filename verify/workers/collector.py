"""How often a process of the tool's own searches for cycles of objects: the command line, and its workers."""

from __future__ import annotations

import gc

_YOUNG, _OLDER = 50_000, 20


def collect_seldom() -> None:
    """Have Python search for cycles of objects less often than by default."""
    # Programs and proofs are trees of small objects, which go with their last reference, and hardly anything is a
    # cycle. By default Python searches after every 700 new objects, and that takes a tenth of a run. Cycles still go,
    # some megabytes later.
    gc.set_threshold(_YOUNG, _OLDER, _OLDER)
