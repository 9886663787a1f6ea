"""The memory of a running command and of its workers over time, as Linux tells it."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds since the start; bytes in memory of the main process, of the largest process below it, and of all of
    those together.
    """

    at: float
    main: int
    largest: int
    below: int
    processes: int


@dataclass(frozen=True, slots=True)
class Run:
    """What became of a command: its exit code, its seconds, and samples, the last shortly before its end."""

    code: int
    seconds: float
    samples: tuple[Sample, ...]

    def main_at(self, share: float) -> int:
        """The main process's bytes when that share of the time had passed: so growth shows."""
        return min(self.samples, key=lambda sample: abs(sample.at - share * self.seconds)).main

    def largest_at(self, share: float) -> int:
        """The largest worker's bytes then."""
        return min(self.samples, key=lambda sample: abs(sample.at - share * self.seconds)).largest


def watched(command: Sequence[str], environment: Mapping[str, str], log: Path, every: float = 0.25) -> Run:
    """Run a command to its end, standard error into `log`, and look at its memory now and then."""
    samples: list[Sample] = []
    start = time.perf_counter()
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=dict(environment))
        over = threading.Event()

        def look() -> None:
            while not over.wait(every):
                found = _sample(process.pid, time.perf_counter() - start)
                if found is not None:
                    samples.append(found)

        watcher = threading.Thread(target=look)
        watcher.start()
        code = process.wait()
        seconds = time.perf_counter() - start
        over.set()
        watcher.join()
    return Run(code, seconds, tuple(samples) if samples else (Sample(0.0, 0, 0, 0, 0),))


def _sample(pid: int, at: float) -> Sample | None:
    """The processes now; None where the main one has just ended."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            text = _read(folder / "stat")
            if text:
                # The name stands in brackets and may hold anything; the parent is the second word behind it.
                parents[int(folder.name)] = int(text.rpartition(")")[2].split()[1])
    below, todo = list[int](), [pid]
    while todo:
        parent = todo.pop()
        children = [child for child, its in parents.items() if its == parent]
        below += children
        todo += children
    main, sizes = _resident(pid), [_resident(each) for each in below]
    return Sample(at, main, max(sizes, default=0), sum(sizes), len(below)) if main > 0 else None


def _resident(pid: int) -> int:
    words = _read(Path(f"/proc/{pid}/statm")).split()
    return int(words[1]) * _PAGE if len(words) > 1 else 0


def _read(path: Path) -> str:
    """The text of a file of /proc; nothing where its process has ended meanwhile."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
