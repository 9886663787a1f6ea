"""Outcomes kept in a temporary file, so that a run of any length takes the same memory and its reports can read them again and again."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import IO

from layoutproof.cli import codes
from layoutproof.cli.gate.outcome import Outcome
from layoutproof.ir.diagnostic import LayoutproofError, error

_CHUNK = 1 << 16


class Spool:
    """Outcomes in the order in which they were added, a line of JSON each.

    The file has no name in any folder, so nothing of it stays behind, however the process ends. An iteration sees what was added before
    it began; several may go on at one time.
    """

    def __init__(self) -> None:
        """Open the file. Raises LayoutproofError where there is no folder for temporary files, or none may be written to."""
        try:
            self._file: IO[bytes] = tempfile.TemporaryFile(prefix="layoutproof-")
        except OSError as problem:
            raise _cannot_keep(problem) from problem
        self._count = 0

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back; to do so twice is no mistake."""
        try:
            self._file.close()
        except OSError as problem:
            # Closing writes what is buffered, which nobody will read any more: a disk that is full now was told of by `add` or by reading.
            if not self._file.closed:
                raise _cannot_keep(problem) from problem

    def __len__(self) -> int:
        """How many outcomes there are."""
        return self._count

    def add(self, outcome: Outcome) -> None:
        """Keep one more. Raises LayoutproofError where the disk has no place for it."""
        line = json.dumps(outcome.to_dict(), separators=(",", ":")).encode("ascii") + b"\n"
        try:
            self._file.write(line)
        except OSError as problem:
            raise _cannot_keep(problem) from problem
        self._count += 1

    def __iter__(self) -> Iterator[Outcome]:
        """The outcomes from the first on. Raises LayoutproofError where the disk had no place for the last of them."""
        try:
            self._file.flush()
        except OSError as problem:
            raise _cannot_keep(problem) from problem
        return self._from(self._file.tell())

    def _from(self, end: int) -> Iterator[Outcome]:
        # Read by position: the file's own position belongs to `add`, and another iteration may be half way.
        position, rest = 0, b""
        while position < end:
            data = os.pread(self._file.fileno(), min(_CHUNK, end - position), position)
            position += len(data)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield Outcome.from_dict(json.loads(line))


def _cannot_keep(problem: OSError) -> LayoutproofError:
    message = f"outcomes cannot be kept in a temporary file: {problem.strerror or problem}"
    return error(codes.SPOOL, message, help="the folder is the one that the variable TMPDIR names, or the system's")
