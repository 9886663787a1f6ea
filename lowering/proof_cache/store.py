"""The proof cache: values under keys, in tables, kept between runs and shared between processes.

A problem with the cache never makes a run wrong or stops it: entries carry a seal that is checked at every read, bad
entries are set aside, and an unusable place is not used. Nothing here loads a solver.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import platformdirs

from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, Severity, error
from layoutproof.lowering import codes
from layoutproof.lowering.owners import REMEDY, others_may_write
from layoutproof.lowering.proof_cache.backend import (
    TABLES,
    Backend,
    BadEntry,
    CacheError,
    Cause,
    Count,
    check_place,
    pack,
    tool_bytes,
    unpack,
)
from layoutproof.lowering.proof_cache.folder_backend import FolderBackend
from layoutproof.lowering.proof_cache.sqlite_backend import SqliteBackend

VARIABLE = "LAYOUTPROOF_PROOF_CACHE"
ENDING = ".sqlite"

_HINTS = {Cause.OTHER_VERSION: "name another place, or remove it yourself", Cause.OTHERS: REMEDY}

T = TypeVar("T")
Warn = Callable[[Diagnostic], None]


def place_of(place: str | None) -> Path:
    """The path that a place's text names; by default `$LAYOUTPROOF_PROOF_CACHE`, else a file in the user's cache."""
    named = place if place else os.environ.get(VARIABLE, "").strip()
    return (
        Path(named).expanduser()
        if named
        else Path(platformdirs.user_cache_dir("layoutproof")) / "proofs" / f"proofs{ENDING}"
    )


def backend_of(path: Path) -> Backend:
    """The store at a path, not opened yet: SQLite where it ends in .sqlite, else a folder. Raises LayoutproofError for
    a folder with a file's name, and for a file without.
    """
    if path.suffix == ENDING:
        if os.path.isdir(path):
            raise error(
                codes.CACHE_FOREIGN,
                f"{path} is a folder; what ends in {ENDING} is one file",
                help="name it without that ending",
            )
        return SqliteBackend(path)
    return FolderBackend(path)


def is_there(path: Path) -> bool:
    """Whether a place exists: anything but an empty file or folder."""
    try:
        if path.is_dir():
            return next(path.iterdir(), None) is not None
        return path.stat().st_size > 0
    except OSError:
        return False


def _begin(backend: Backend) -> None:
    """Start a place that only its owner may write to: a writer can make it say `proved`."""
    for path in backend.files():
        try:
            reason = others_may_write(path)
        except OSError as problem:
            raise CacheError(Cause.UNREADABLE, f"{path}: {problem.strerror or problem}") from problem
        if reason is not None:
            raise CacheError(Cause.OTHERS, reason)
    backend.start()


def warn_python(diagnostic: Diagnostic) -> None:
    """Issue a Python warning."""
    warnings.warn(diagnostic.render(), RuntimeWarning, stacklevel=2)


@dataclass(frozen=True, slots=True)
class Info:
    """What a place holds: its bytes, and for each table the entries, and those of this version."""

    place: str
    kind: str
    size: int
    tables: Mapping[str, Count]
    damaged: int

    @property
    def entries(self) -> int:
        """All entries."""
        return sum(count.entries for count in self.tables.values())


class ProofStore:
    """An open proof cache. May be used by several threads, and after a fork."""

    def __init__(self, place: str, backend: Backend, warn: Warn = warn_python, mend: bool = True) -> None:
        self.place = place
        self.kind = backend.kind
        self.damaged = 0  # entries that were not whole when they were read
        self._backend: Backend | None = backend
        self._warn = warn
        self._mending = mend
        self._storing = True
        self._warned: set[str] = set()
        self._lock = threading.Lock()

    @staticmethod
    def open(place: str | None = None, warn: Warn = warn_python, *, mend: bool = True) -> ProofStore:
        """The cache at a place: a path that ends in `.sqlite`, or a folder; by default `$LAYOUTPROOF_PROOF_CACHE`, else
        the user's own.

        Raises LayoutproofError where something else is there. If the place cannot be used, the store keeps nothing, and
        warns. A damaged place is moved away, and a new one begun; without `mend` it is left unused.
        """
        path = place_of(place)
        store = ProofStore(str(path), backend_of(path), warn, mend)
        store._ask(_begin, None, opening=True)
        return store

    @property
    def usable(self) -> bool:
        """Whether anything can be read from the place."""
        return self._backend is not None

    @property
    def storing(self) -> bool:
        """Whether anything can be added to it."""
        return self._backend is not None and self._storing

    def get(self, table: str, key: str) -> dict[str, Any] | None:
        """The value under a key; None if there is no valid one.

        `key` is a SHA-256 in hexadecimal; ValueError for anything else.
        """
        check_place(table, key)
        data = self._ask(lambda backend: backend.get(table, key), None)
        return None if data is None else self._value(table, key, data)

    def put(self, table: str, key: str, value: dict[str, Any]) -> None:
        """Store a value: JSON data, `tool` being the digest of the tool that made it. ValueError or TypeError for other
        data.
        """
        self.put_many(table, [(key, value)])

    def put_many(self, table: str, items: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Keep several values."""
        rows = [(key, pack(table, key, value)) for key, value in items]
        if self._storing and rows:
            self._ask(lambda backend: backend.put_many(table, rows), None, writes=True)

    def entries(self, table: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every key with its value; invalid entries are set aside."""
        for key, data in self._rows(table):
            value = self._value(table, key, data)
            if value is not None:
                yield key, value

    def set_aside(self, table: str, key: str, value: Mapping[str, Any]) -> str | None:
        """Move out a wrong entry, and keep it for inspection; the new place, None if that failed.

        An entry that was replaced by another value meanwhile is left.
        """
        check_place(table, key)
        data = self._ask(lambda backend: backend.get(table, key), None)
        if data is None or self._value(table, key, data) != value:
            return None
        return self._ask(lambda backend: backend.set_aside(table, key, data), None, writes=True)

    def info(self, tool: str) -> Info | None:
        """What is there; `tool` is the digest of this version of the tool. None where nothing can be read."""

        def look(backend: Backend) -> Info:
            tables = {table: backend.count(table, tool_bytes(tool)) for table in TABLES}
            return Info(self.place, backend.kind, backend.size(), tables, backend.damaged())

        return self._ask(look, None)

    def clear(self, keep: str | None = None, tables: Sequence[str] = TABLES) -> int | None:
        """Remove all entries of some tables, or all that are not of the tool whose digest is `keep`, and what was set
        aside; their number, None if that failed.
        """
        return self._ask(
            lambda backend: backend.clear(None if keep is None else tool_bytes(keep), tables), None, writes=True
        )

    def close(self) -> None:
        """Close files."""
        if self._backend is not None:
            self._backend.close()

    def _rows(self, table: str) -> Iterator[tuple[str, bytes]]:
        if table not in TABLES:
            raise ValueError(f"there is no table {table!r}")
        if self._backend is None:
            return
        rows = self._backend.rows(table)
        while True:
            try:
                row = next(rows, None)
            except CacheError as failure:
                self._mend(failure, writes=False)
                return
            except LayoutproofError as problem:
                self._mend(CacheError(Cause.UNREADABLE, problem.diagnostics[0].message), writes=False)
                return
            if row is None:
                return
            yield row

    def _value(self, table: str, key: str, data: bytes) -> dict[str, Any] | None:
        try:
            return unpack(table, key, data)
        except BadEntry as problem:
            self.damaged += 1
            where = self._ask(lambda backend: backend.set_aside(table, key, data), None, writes=True)
            kept = f"; it was moved to {where}" if where is not None else ""
            self._warn_once(
                codes.CACHE_ENTRY,
                f"an entry of the proof cache {self.place} is not used ({table} {key[:12]}): {problem}{kept}",
            )
            return None

    # failures

    def _ask(self, work: Callable[[Backend], T], otherwise: T, *, writes: bool = False, opening: bool = False) -> T:
        """The place's answer, or the new place's after damage; `otherwise` if there is none.

        `opening`: raises LayoutproofError where something else is there.
        """
        for _ in range(2):
            if self._backend is None:
                break
            try:
                return work(self._backend)
            except CacheError as problem:
                failure = problem
            except LayoutproofError as problem:
                if opening:
                    raise
                failure = CacheError(Cause.UNREADABLE, problem.diagnostics[0].message)
            if not self._mend(failure, writes):
                break
        return otherwise

    def _mend(self, failure: CacheError, writes: bool) -> bool:
        """React to a failure; whether to ask again."""
        with self._lock:
            backend = self._backend
            if backend is None:
                return False
            if failure.cause is Cause.DAMAGED and self._mending:
                try:
                    self._renew(backend, failure)
                    return True
                except (CacheError, LayoutproofError) as again:
                    failure = CacheError(Cause.UNREADABLE, f"{failure.reason}, and no new one can be begun: {again}")
                    writes = False
            if failure.cause is Cause.UNWRITABLE or (writes and failure.cause is Cause.UNREADABLE):
                self._storing = False
                self._warn_once(
                    codes.CACHE_UNUSABLE, f"nothing more is kept in the proof cache {self.place}: {failure.reason}"
                )
                return False
            self._backend = None
            backend.close()
            hint = _HINTS.get(failure.cause)
            self._warn_once(codes.CACHE_UNUSABLE, f"the proof cache {self.place} is not used: {failure.reason}", hint)
            return False

    def _renew(self, backend: Backend, failure: CacheError) -> None:
        aside = backend.renew()
        if aside is not None:
            done = f"it was moved to {aside}, and a new one was begun"
            self._warn_once(codes.CACHE_DAMAGED, f"the proof cache {self.place} was damaged ({failure.reason}); {done}")

    def _warn_once(self, code: str, message: str, hint: str | None = None) -> None:
        """Warn of each kind of failure once."""
        if code not in self._warned:
            self._warned.add(code)
            self._warn(Diagnostic(code, message, severity=Severity.WARNING, help=hint))
