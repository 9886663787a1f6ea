"""What a place for proofs has to do, whatever it is made of, and what can go wrong there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Protocol

TABLES: tuple[str, ...] = ("proof", "report")


class What(Enum):
    """What is wrong with a place."""

    DAMAGED = auto()  # what is there is not what was written
    UNREADABLE = auto()  # nothing can be read from it
    UNWRITABLE = auto()  # it can be read, but nothing can be added
    OTHER_VERSION = auto()  # it was written by a version of the tool that keeps proofs in another form


class Trouble(Exception):
    """Something is wrong with a place; the run goes on without it."""

    def __init__(self, what: What, why: str) -> None:
        super().__init__(why)
        self.what = what
        self.why = why


@dataclass(frozen=True, slots=True)
class Count:
    """How many entries a table has; `current` are those of one version of the tool."""

    entries: int
    current: int


class Backend(Protocol):
    """One place. Every method but `close` may raise Trouble; data are opaque, and sealed by who gives them."""

    kind: str
    """A word for people: `SQLite`, `folder`."""

    def start(self) -> None:
        """Begin: make the place where it is not there. Raises LayoutproofError where something else is there, which is left alone."""
        ...

    def renew(self) -> Path | None:
        """Set what is damaged aside and begin anew; where it went, None where another process had done so already."""
        ...

    def get(self, table: str, key: str) -> bytes | None:
        """The data under a key."""
        ...

    def put_many(self, table: str, rows: Sequence[tuple[str, bytes]]) -> None:
        """Keep data under their keys, whole or not at all each."""
        ...

    def rows(self, table: str) -> Iterator[tuple[str, bytes]]:
        """Everything in a table. Other processes may write meanwhile."""
        ...

    def set_aside(self, table: str, key: str, data: bytes) -> str:
        """Take data that are not what they should be out of a table, and keep them for people to see; where."""
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
        """Remove all entries of some tables, or all but those of a version of the tool, and what was set aside; how many entries went."""
        ...

    def close(self) -> None:
        """Let go of files. Whoever asks again gets them opened again."""
        ...
