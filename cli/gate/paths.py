"""Paths as reports and baselines write them: the same on every machine that checks out the same files."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath


def steady_path(path: str) -> str:
    """A path as text with forward slashes: relative to the working directory where it lies below, absolute elsewhere.

    `./a.py`, `b/../a.py` and the absolute path of `a.py` become the same text. Nothing is looked up: links are not followed.
    """
    here = os.getcwd()
    whole = os.path.normpath(os.path.join(here, path))
    below = Path(whole).is_relative_to(here)
    return Path(os.path.relpath(whole, here) if below else whole).as_posix()


def is_below(path: str) -> bool:
    """Whether a path of `steady_path` is relative to the working directory."""
    return not PurePosixPath(path).is_absolute()
