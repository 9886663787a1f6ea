"""How a walk in lockstep ends early: with words for a user about what did not match, and where."""

from __future__ import annotations


class Mismatch(Exception):
    """The two programs are not known to do the same here; `reason` is a sentence that names the place."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
