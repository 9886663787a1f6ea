"""Proofs in one SQLite file, for one machine: many processes may read and write at once, and each entry is atomic.

A damaged file is moved away and a new one begun, by one process at a time, under a lock on a file beside it; every file
is opened under that lock, so that an old log never meets a new file. SQLite must not be used over a network, nor across
a fork: connections are closed before a fork, and reopened when needed.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from layoutproof.ir.diagnostic import error
from layoutproof.lowering import codes
from layoutproof.lowering.lock import Hold, locked
from layoutproof.lowering.proof_cache.backend import HASH, TABLES, CacheError, Cause, Count

T = TypeVar("T")

APPLICATION = 0x4C505043  # in the file's header: whose it is
VERSION = 1  # of the tables
BUSY_SECONDS = 30.0  # how long another writer is waited for
OPEN_SECONDS = 10.0  # how long another opener is
_LEAST = 512  # bytes of a database with anything in it; SQLite takes a shorter file for an empty one
_BATCH = 200
_BESIDE = ("", "-wal", "-shm")
_COLUMNS = "id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, data BLOB NOT NULL"
_SCHEMA = (
    *(f"CREATE TABLE {table} ({_COLUMNS})" for table in TABLES),
    "CREATE TABLE damaged (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key BLOB NOT NULL, data BLOB NOT NULL)",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
# Errors of the system, a full disk or another process; every other error of these statements is damage.
_OUTSIDE = frozenset(
    getattr(sqlite3, f"SQLITE_{name}")
    for name in "AUTH BUSY CANTOPEN FULL INTERRUPT IOERR LOCKED NOLFS NOMEM PERM PROTOCOL READONLY".split()
)


class SqliteBackend:
    """A file, created by `start`."""

    kind = "SQLite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        _OPEN.add(self)

    def files(self) -> list[Path]:
        """The file with its log."""
        return self._files()

    def start(self) -> None:
        """Open the file."""
        with self.lock:
            self._connected()

    def get(self, table: str, key: str) -> bytes | None:
        """The data under a key."""
        row = self._run(
            Cause.UNREADABLE,
            lambda c: c.execute(f"SELECT data FROM {table} WHERE key = ?", (bytes.fromhex(key),)).fetchone(),
        )
        return None if row is None else _bytes(row[0])

    def put_many(self, table: str, rows: Sequence[tuple[str, bytes]]) -> None:
        """Keep data in one transaction."""
        columns = f"INSERT INTO {table} (key, data) VALUES (?, ?)"
        statement = f"{columns} ON CONFLICT (key) DO UPDATE SET data = excluded.data"

        def write(connection: sqlite3.Connection) -> None:
            with _transaction(connection):
                connection.executemany(statement, [(bytes.fromhex(key), data) for key, data in rows])

        self._run(Cause.UNWRITABLE, write)

    def rows(self, table: str) -> Iterator[tuple[str, bytes]]:
        """All entries of a table in batches, so that a slow reader blocks no other process."""
        statement, last = f"SELECT id, key, data FROM {table} WHERE id > ? ORDER BY id LIMIT {_BATCH}", 0

        def read(connection: sqlite3.Connection) -> list[tuple[int, object, object]]:
            return connection.execute(statement, (last,)).fetchall()

        while batch := self._run(Cause.UNREADABLE, read):
            for number, key, data in batch:
                last = number
                yield _key(key), _bytes(data)

    def set_aside(self, table: str, key: str, data: bytes) -> str:
        """Move an entry to the table `damaged`, unless it has been replaced meanwhile."""

        def move(connection: sqlite3.Connection) -> None:
            with _transaction(connection):
                row = (bytes.fromhex(key), data)
                if connection.execute(f"DELETE FROM {table} WHERE key = ? AND data = ?", row).rowcount > 0:
                    connection.execute("INSERT INTO damaged (kind, key, data) VALUES (?, ?, ?)", (table, *row))
                    return
                left = connection.execute(f"SELECT 1 FROM {table} NOT INDEXED WHERE data = ?", (data,)).fetchone()
                if left is not None:
                    raise CacheError(Cause.DAMAGED, "an index in it does not lead to what is there")

        self._run(Cause.UNWRITABLE, move)
        return "its table `damaged`"

    def count(self, table: str, tool: bytes) -> Count:
        """How many entries there are."""
        statement = f"SELECT count(*), count(CASE WHEN substr(data, {HASH + 1}, {HASH}) = ? THEN 1 END) FROM {table}"
        entries, current = self._run(Cause.UNREADABLE, lambda c: c.execute(statement, (tool,)).fetchone())
        return Count(entries, current)

    def damaged(self) -> int:
        """How many entries were set aside."""
        (found,) = self._run(Cause.UNREADABLE, lambda c: c.execute("SELECT count(*) FROM damaged").fetchone())
        return int(found)

    def size(self) -> int:
        """The file with its log."""
        return sum(map(_size_of, self._files()))

    def clear(self, keep: bytes | None, tables: Sequence[str] = TABLES) -> int:
        """Remove entries; the file shrinks if no other process uses it."""

        which = "" if keep is None else f" WHERE substr(data, {HASH + 1}, {HASH}) IS NOT ?"
        values = () if keep is None else (keep,)

        def remove(connection: sqlite3.Connection) -> int:
            gone = 0
            with _transaction(connection):
                for table in tables:
                    gone += connection.execute(f"DELETE FROM {table}{which}", values).rowcount
                connection.execute("DELETE FROM damaged")
            return gone

        removed: int = self._run(Cause.UNWRITABLE, remove)
        # Without a VACUUM the room is used again later.
        with self.lock, contextlib.suppress(sqlite3.Error):
            connection = self._connected()
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return removed

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with contextlib.suppress(sqlite3.Error):  # what is committed stays committed
                    connection.close()

    def renew(self) -> Path | None:
        """Move the file away with its log, and begin a new one."""
        with self.lock:
            before = self._identity
            self.close()
            with self._held():
                aside = None
                if before is not None and _identity_of(self.path) == before:
                    aside = self._moved()
                self._connect()
            return aside

    # The connection

    def _run(self, failing: Cause, work: Callable[[sqlite3.Connection], T]) -> T:
        """`work` on the connection. Raises CacheError: `failing` for external causes, else damage."""
        with self.lock:
            try:
                return work(self._connected())
            except sqlite3.Error as problem:
                raise _failure(problem, failing) from problem

    def _connected(self) -> sqlite3.Connection:
        """The connection to the current file: others may have set it aside or removed it."""
        if self._connection is not None and self._identity == _identity_of(self.path):
            return self._connection
        self.close()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise CacheError(Cause.UNREADABLE, f"{self.path.parent} cannot be made: {problem.strerror}") from problem
        if not _may_write(self.path):
            return self._connect_read_only()
        with self._held():
            return self._connect()

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the lock for opening the file or moving it away."""
        with locked(self.path.with_name(f"{self.path.name}.lock"), OPEN_SECONDS) as hold:
            if hold is Hold.GIVEN_UP:
                raise CacheError(Cause.UNREADABLE, "another process is opening it, and does not go on")
            if hold is Hold.NOT_OFFERED:
                raise CacheError(
                    Cause.UNREADABLE,
                    "no file can be made beside it, or its file system has no locks; a folder needs none",
                )
            yield

    def _connect(self) -> sqlite3.Connection:
        self._identity = _identity_of(self.path)
        try:
            connection = _opened(str(self.path), self._prepare)
        except sqlite3.Error as problem:
            raise _failure(problem, Cause.UNREADABLE) from problem
        self._identity = _identity_of(self.path)
        self._connection = connection
        return connection

    def _connect_read_only(self) -> sqlite3.Connection:
        """Open a file that cannot be written, if its last user closed it."""
        self._identity = _identity_of(self.path)
        if self._identity is None:
            raise CacheError(Cause.UNREADABLE, f"{self.path.parent} cannot be written")
        if _size_of(self._files()[1]) > 0:
            raise CacheError(
                Cause.UNREADABLE,
                "it cannot be written, and its last changes are in a log that only who can write may read",
            )
        uri = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1"
        try:
            connection = _opened(uri, lambda c: _check_form(c, self.path), uri=True)
        except sqlite3.Error as problem:
            raise CacheError(Cause.UNREADABLE, str(problem)) from problem
        self._connection = connection
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the tables in a new file, or check them."""
        if 0 < _size_of(self.path) < _LEAST:
            raise CacheError(Cause.DAMAGED, "it is cut off")
        # The process that began it may have died, or had no room, before the tables were there.
        if _numbers(connection) == (0, 0) and not _tables(connection):
            connection.execute("PRAGMA journal_mode = WAL")
            with _transaction(connection):
                for statement in _SCHEMA:
                    connection.execute(statement)
        # Killed processes cost nothing in this mode; a machine that loses power may lose the last entries.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        _check_form(connection, self.path)

    def _files(self) -> list[Path]:
        return [self.path.with_name(self.path.name + ending) for ending in _BESIDE]

    def _moved(self) -> Path:
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
            number += 1
        try:
            for path, ending in zip(self._files(), _BESIDE, strict=True):
                if os.path.exists(path):
                    os.rename(path, aside.with_name(aside.name + ending))
        except OSError as problem:
            raise CacheError(
                Cause.UNREADABLE, f"it is damaged, and cannot be moved away: {problem.strerror}"
            ) from problem
        return aside


def _opened(name: str, check: Callable[[sqlite3.Connection], None], *, uri: bool = False) -> sqlite3.Connection:
    """A connection that passed a check; closed if it did not."""
    connection = sqlite3.connect(name, uri=uri, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        check(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_form(connection: sqlite3.Connection, path: Path) -> None:
    """Raise LayoutproofError for a database of another program, CacheError for another version or other tables."""
    application, version = _numbers(connection)
    # Where all tables are ours and only the number is another one, the header was damaged.
    ours = {name.encode() for name in (*TABLES, "damaged")}
    if application != APPLICATION and not ours <= _tables(connection):
        raise error(
            codes.CACHE_FOREIGN,
            f"{path} is a database of something else, not a proof cache",
            help="name a file that is not there yet",
        )
    if application == APPLICATION and version != VERSION:
        raise CacheError(Cause.OTHER_VERSION, f"it is of version {version} of its form; this program reads {VERSION}")
    for table in TABLES:
        connection.execute(f"SELECT id, key, data FROM {table} LIMIT 1").fetchall()
    connection.execute("SELECT id, kind, key, data FROM damaged LIMIT 1").fetchall()
    if application != APPLICATION:
        raise CacheError(Cause.DAMAGED, "its header was changed")


def _numbers(connection: sqlite3.Connection) -> tuple[int, int]:
    """The application's identifier and version in the file; zeros in a new one."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


def _tables(connection: sqlite3.Connection) -> set[bytes]:
    """The names of its tables, as bytes: those of a damaged file may be no text."""
    return {name for (name,) in connection.execute("SELECT CAST(name AS BLOB) FROM sqlite_master WHERE type = 'table'")}


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that commits or rolls back."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _failure(problem: sqlite3.Error, failing: Cause) -> CacheError:
    code = getattr(problem, "sqlite_errorcode", None)
    return CacheError(failing if code is not None and code & 0xFF in _OUTSIDE else Cause.DAMAGED, str(problem))


def _key(value: object) -> str:
    if isinstance(value, bytes) and len(value) == HASH:
        return value.hex()
    raise CacheError(Cause.DAMAGED, "a key in it is none")


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    raise CacheError(Cause.DAMAGED, "an entry in it is no data")


def _identity_of(path: Path) -> tuple[int, int] | None:
    """The identity of the file at a path now."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _size_of(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _may_write(path: Path) -> bool:
    return os.access(path.parent, os.W_OK) and (not os.path.exists(path) or os.access(path, os.W_OK))


# Connections must not be open while a process forks: its child would take the parent's locks for its own.
_OPEN: weakref.WeakSet[SqliteBackend] = weakref.WeakSet()
_forking: list[SqliteBackend] = []


def _before_fork() -> None:
    for backend in list(_OPEN):
        backend.lock.acquire()
        _forking.append(backend)
        backend.close()


def _after_fork() -> None:
    while _forking:
        _forking.pop().lock.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
