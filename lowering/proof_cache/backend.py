"""The interface of a place for proofs, and entries as bytes: compressed, with a seal that is checked at every read.

The seal is the SHA-256 over table, key, version and compressed value: an entry that was changed, truncated, or put in
the place of another does not match. It protects against accidents, not against those who can write to the place.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any, Protocol

TABLES: tuple[str, ...] = ("proof", "report")

HASH = 32
HEAD = 2 * HASH
NO_TOOL = bytes(HASH)
# No honest value is nearly as large; a small file that unfolds to more is no entry.
MOST_BYTES = 1 << 28
_KEY = re.compile(r"[0-9a-f]{64}")


class Cause(Enum):
    """What kind of failure it is."""

    DAMAGED = auto()  # what is there is not what was written
    UNREADABLE = auto()  # nothing can be read from it
    UNWRITABLE = auto()  # it can be read, but nothing can be added
    OTHERS = auto()  # others may write to it
    OTHER_VERSION = auto()  # it was written by a version of the tool that keeps proofs in another form


class CacheError(Exception):
    """A place failed; the run goes on without it."""

    def __init__(self, cause: Cause, reason: str) -> None:
        super().__init__(reason)
        self.cause = cause
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Count:
    """How many entries a table has; `current` are those of one version of the tool."""

    entries: int
    current: int


class Backend(Protocol):
    """One place. Every method but `close` may raise CacheError; data are opaque, and sealed by the caller."""

    kind: str
    """A word for people: `SQLite`, `folder`."""

    def files(self) -> Sequence[Path]:
        """The files and folders whose owners decide what the place says."""
        ...

    def start(self) -> None:
        """Create the place if it is not there. Raises LayoutproofError where something else is there, which is left
        alone.
        """
        ...

    def renew(self) -> Path | None:
        """Set aside what is damaged and start anew; the new path of the old one, None if another process did so
        already.
        """
        ...

    def get(self, table: str, key: str) -> bytes | None:
        """The data under a key."""
        ...

    def put_many(self, table: str, rows: Sequence[tuple[str, bytes]]) -> None:
        """Store data under their keys, each atomically."""
        ...

    def rows(self, table: str) -> Iterator[tuple[str, bytes]]:
        """Everything in a table. Other processes may write meanwhile."""
        ...

    def set_aside(self, table: str, key: str, data: bytes) -> str:
        """Move bad data out of a table, and keep them for inspection; the new place."""
        ...

    def count(self, table: str, tool: bytes) -> Count:
        """How many entries there are, and how many of a version of the tool."""
        ...

    def damaged(self) -> int:
        """How many entries were set aside."""
        ...

    def size(self) -> int:
        """Bytes on the disk."""
        ...

    def clear(self, keep: bytes | None, tables: Sequence[str]) -> int:
        """Remove entries of some tables, or all but those of a version of the tool, and what was set aside; their
        number.
        """
        ...

    def close(self) -> None:
        """Close files; they are opened again when needed."""
        ...


class BadEntry(Exception):
    """Bytes that are not a valid entry; the text says why."""


def check_place(table: str, key: str) -> None:
    """Raise ValueError for an unknown table, or a key that is no SHA-256 in hexadecimal."""
    if table not in TABLES:
        raise ValueError(f"there is no table {table!r}; available: {', '.join(TABLES)}")
    if not is_key(key):
        raise ValueError(f"a key is a SHA-256 in 64 hexadecimal digits, not {key!r}")


def is_key(key: str) -> bool:
    """Whether a text is a key."""
    return _KEY.fullmatch(key) is not None


def pack(table: str, key: str, value: dict[str, Any]) -> bytes:
    """An entry. Raises ValueError or TypeError for what is no JSON data: floats are texts, NaN and infinity too."""
    check_place(table, key)
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")
    if len(text) > MOST_BYTES:
        raise ValueError(f"an entry has at most {MOST_BYTES} bytes, not {len(text)}")
    body = tool_bytes(value.get("tool")) + zlib.compress(text, 6)
    return _seal(table, key, body) + body


def unpack(table: str, key: str, data: bytes) -> dict[str, Any]:
    """The value of an entry. Raises BadEntry for bytes that were not written under this key in this table."""
    if len(data) <= HEAD:
        raise BadEntry(f"it is cut off: {len(data)} bytes")
    if _seal(table, key, data[HASH:]) != data[:HASH]:
        raise BadEntry("it was changed: its hash does not match its contents")
    try:
        unfolding = zlib.decompressobj()
        text = unfolding.decompress(data[HEAD:], MOST_BYTES)
        if not unfolding.eof:
            raise BadEntry("it does not end where it should")
        value = json.loads(text)
    except (zlib.error, ValueError, RecursionError) as problem:
        raise BadEntry(f"it holds no JSON: {problem}") from problem
    if not isinstance(value, dict):
        raise BadEntry("it holds no JSON object")
    return value


def tool_bytes(tool: object) -> bytes:
    """A tool's digest in an entry; zeros for none."""
    return bytes.fromhex(tool) if isinstance(tool, str) and is_key(tool) else NO_TOOL


def tool_of(head: bytes) -> bytes:
    """The version in an entry's first `HEAD` bytes."""
    return head[HASH:HEAD]


def _seal(table: str, key: str, body: bytes) -> bytes:
    return hashlib.sha256(b"\0".join((table.encode("ascii"), key.encode("ascii"), body))).digest()
