"""The processes below one process: their numbers, their memory, and how all of them are ended.

A solver may be in a session of its own, where a signal to a process group misses it. So a keeper becomes, on Linux, the
parent of every orphan below it, and ends them one by one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
_PROC = Path("/proc")
_PAUSE = 0.002


def adopt_orphans() -> None:
    """Make this process the parent of every orphan below it, where the system can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """Have this process killed when its parent, whose number is given, ends (or has ended), if the system can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def descendants(root: int) -> dict[int, int]:
    """Every process below `root`, and the bytes of memory that each holds."""
    if (_PROC / "self" / "task" / str(os.getpid()) / "children").is_file():
        return _from_proc(root)
    return _from_ps(root)


def end_all_below() -> None:
    """Kill every process below this one, and those that they start meanwhile, and wait until there are none."""
    while True:
        for process in descendants(os.getpid()):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            return
        time.sleep(_PAUSE)


def resident_bytes(process: int | str = "self") -> int:
    """The memory that a process holds; 0 for one that is gone, or on a system that does not report it."""
    try:
        return int((_PROC / str(process) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _from_proc(root: int) -> dict[int, int]:
    found: dict[int, int] = {}
    waiting = [root]
    while waiting:
        for child in _children(waiting.pop()):
            if child not in found:
                found[child] = resident_bytes(child)
                waiting.append(child)
    return found


def _children(process: int) -> list[int]:
    # A process's children are listed by the thread that started each.
    found: list[int] = []
    try:
        for thread in (_PROC / str(process) / "task").iterdir():
            found += (int(word) for word in (thread / "children").read_text().split())
    except OSError:
        return found
    return found


def _from_ps(root: int) -> dict[int, int]:
    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,rss="], capture_output=True, text=True, check=False)
    rows = [[int(word) for word in line.split()] for line in listing.stdout.splitlines()]
    found: dict[int, int] = {}
    below = {root}
    while below:
        level = {
            pid: kilobytes << 10
            for pid, parent, kilobytes in rows
            if parent in below and pid not in found and pid != root
        }
        found |= level
        below = set(level)
    return found
