"""One holder at a time, over threads and processes: of a kernel that is being built, or of a file that is being
repaired.

The lock is one of the system's on an open file (flock): it ends with its holder's process, so there is nothing to clean
up. It only saves work: results are right without it, because files appear whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path

PATIENCE_SECONDS = 900.0
"""How long a holder is waited for: longer than a compiler may take, so that only a process that was stopped is given
up.
"""

_SHORTEST, _LONGEST = 0.002, 0.05  # seconds between two attempts


class Hold(Enum):
    """What came of asking for a lock."""

    HELD = auto()
    NOT_OFFERED = auto()  # the folder cannot be written, or its file system has no locks
    GIVEN_UP = auto()  # somebody else has held it for too long


@contextlib.contextmanager
def locked(path: Path, patience: float | None = None) -> Iterator[Hold]:
    """Hold the lock on the file `path` meanwhile, creating it and its folder; yields whether it was acquired.

    `patience` is in seconds, PATIENCE_SECONDS if None. The file stays: removing it would give two holders one name.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        # Storing the kernel there will meet and report the same error.
        yield Hold.NOT_OFFERED
        return
    try:
        hold = _wait(handle, PATIENCE_SECONDS if patience is None else patience)
        try:
            yield hold
        finally:
            if hold is Hold.HELD:
                # Closing is not enough: a process forked meanwhile has the open file too.
                fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def _wait(handle: int, patience: float) -> Hold:
    limit = time.monotonic() + patience
    pause = _SHORTEST
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return Hold.HELD
        except BlockingIOError:
            if time.monotonic() >= limit:
                return Hold.GIVEN_UP
        except OSError:
            return Hold.NOT_OFFERED
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST)
