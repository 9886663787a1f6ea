"""Finding every process that a test started, however far down, by a mark in its environment."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path

MARK = "LAYOUTPROOF_TEST_MARK"
_SECONDS = 30.0


def new_mark() -> str:
    """A mark that nothing has yet."""
    return uuid.uuid4().hex


def marked(mark: str) -> set[int]:
    """The processes that have the mark, this one and those that only wait to be collected aside."""
    wanted = f"{MARK}={mark}".encode()
    return {int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and _has(path, wanted)} - {
        os.getpid()
    }


def wait_until(holds: Callable[[], bool]) -> bool:
    """Whether something comes to hold in a generous time."""
    end = time.monotonic() + _SECONDS
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _has(process: Path, wanted: bytes) -> bool:
    try:
        return wanted in (process / "environ").read_bytes().split(b"\0")
    except OSError:  # it has ended, or is another user's
        return False
