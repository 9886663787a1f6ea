"""What a helper function of generated code is: its text and the helpers that it calls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Helper:
    """C text, complete with its comment, and the names of the helpers it needs before it."""

    text: str
    needs: tuple[str, ...] = ()
