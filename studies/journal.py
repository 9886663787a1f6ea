"""The journal of a run: one line for each finished cell, appended, so that a run that was killed goes on where it was.

A line counts if it is whole: its text, a tab, and the beginning of the text's SHA-256. What a kill left of a line is
cut off before the next one is written. The results are written in the order of the study when every cell is there,
so they are the same bytes however often the run was interrupted, and with however many workers and shards.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from layoutproof.ir.diagnostic import error
from layoutproof.studies import codes
from layoutproof.verify.certificate.sealed_files import write_whole_files

_MARK = 16


@dataclass(slots=True)
class Journal:
    """An open journal, whose first line names the study and the version of the tool by their `digest`."""

    path: Path
    digest: str
    file: BinaryIO

    @staticmethod
    def open(path: Path, digest: str) -> Journal:
        """The journal at a path, begun if there is none. Raises LayoutproofError for one of another study."""
        lines, length = _whole_lines(path)
        head = next(iter(lines), None)
        if head is not None and head.get("study") != digest:
            message = f"{path} has results of another study, or of another version of the tool"
            raise error(codes.STUDY_FOLDER, message, help="name another folder, or remove this one")
        file = path.open("r+b" if path.exists() else "w+b")
        file.truncate(length)
        file.seek(length)
        journal = Journal(path, digest, file)
        if head is None:
            journal.add({"study": digest})
        return journal

    def add(self, record: Mapping[str, Any]) -> None:
        """Append a line, and hand it to the system."""
        self.file.write(line_of(record))
        self.file.flush()

    def close(self) -> None:
        """Close the file, once its lines are on the disk."""
        os.fsync(self.file.fileno())
        self.file.close()


def kept_in(path: Path, make: Callable[[], Any]) -> Any:
    """What a file of JSON has; where there is none, what is made now, which is written there, whole.

    Raises LayoutproofError for a file that has no JSON, or that cannot be written.
    """
    if path.exists():
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as problem:
            message = f"{path} is damaged: {problem}"
            raise error(codes.STUDY_FOLDER, message, help="remove it, and it is made again") from problem
    found = make()
    write_whole_files({path: f"{json.dumps(found, indent=1)}\n".encode()}, codes.STUDY_FOLDER)
    return found


def line_of(record: Mapping[str, Any]) -> bytes:
    """A record as a line that can be seen to be whole."""
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return f"{text}\t{_mark(text)}\n".encode()


def read_journal(path: Path, digest: str) -> Iterator[dict[str, Any]]:
    """The records of a journal of this study, without the head; none if there is no such journal."""
    lines, _ = _whole_lines(path)
    if lines and lines[0].get("study") == digest:
        yield from lines[1:]


def _whole_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The records of the whole lines at the beginning of a file, and their length in bytes."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    except OSError as problem:
        raise error(codes.STUDY_FOLDER, f"{path} cannot be read: {problem.strerror}") from problem
    found: list[dict[str, Any]] = []
    length = 0
    for line in data.splitlines(keepends=True):
        record = _record(line)
        if record is None:
            break
        found.append(record)
        length += len(line)
    return found, length


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        text, _, mark = line.decode("utf-8").rstrip("\n").rpartition("\t")
    except UnicodeDecodeError:
        return None
    if not line.endswith(b"\n") or mark != _mark(text):
        return None
    record = json.loads(text)
    return record if isinstance(record, dict) else None


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_MARK]
