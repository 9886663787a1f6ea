"""Where files are read from that came with an item to a machine that does not have them: see `parcel`.

A file that is named by its whole path cannot lie there; its text is read from a copy, and it keeps its name in everything that is said.
"""

from __future__ import annotations

from collections.abc import Mapping

_copies: dict[str, str] = {}


def use_copies(copies: Mapping[str, str]) -> None:
    """From now on, in this process, read these paths' files from those paths instead, and no others."""
    _copies.clear()
    _copies.update(copies)


def place_of(path: str) -> str:
    """Where to read the file of a path."""
    return _copies.get(path, path)
