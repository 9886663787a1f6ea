"""Proofs as files of a folder that machines may share over a network: no locks, no file with two writers.

An entry is one file, named by its key, that appears atomically by renaming. A folder is a cache if it has a marker
file; any other non-empty folder is left alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.lowering import codes
from layoutproof.lowering.owners import written_by_others
from layoutproof.lowering.proof_cache.backend import HEAD, TABLES, CacheError, Cause, Count, is_key, tool_of
from layoutproof.verify.certificate.sealed_files import replacing

MARKER = "layoutproof-proofs.json"
VERSION = 1  # of this layout
_FORMAT = "layoutproof-proofs"
_DAMAGED, _UNFINISHED = "damaged", "unfinished"
_PREFIXES = tuple(f"{table}-" for table in TABLES)
_STALE_SECONDS = 3600.0  # an unfinished file older than this is of a process that died
_TRIES = 5
_SYSTEM = frozenset({"lost+found"})  # in the root folder of a file system


class FolderBackend:
    """A folder, created by `start`."""

    kind = "folder"

    def __init__(self, root: Path) -> None:
        self.root = root
        self._swept = False

    def files(self) -> list[Path]:
        """The folder; each entry's own file is looked at when it is read."""
        return [self.root]

    def start(self) -> None:
        """Check that the folder is a cache, or make it one."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            names = set(os.listdir(self.root))
            marker = self.root / MARKER
            if MARKER not in names and names - _SYSTEM and not marker.exists() and not _is_begun(names):
                raise _foreign(self.root)
            if not marker.exists():
                self._mark()
            version = _version_in(marker.read_bytes())
        except FileExistsError as problem:
            raise _foreign(self.root) from problem
        except OSError as problem:
            raise CacheError(Cause.UNREADABLE, _reason(problem)) from problem
        if version is None:
            raise CacheError(Cause.DAMAGED, f"its file {MARKER} is not as it was written")
        if version != VERSION:
            raise CacheError(
                Cause.OTHER_VERSION, f"it is of version {version} of its form; this program reads {VERSION}"
            )

    def renew(self) -> Path | None:
        """Set the marker aside and write it anew; each entry has its own seal."""
        marker, number = self.root / MARKER, 1
        while (aside := marker.with_name(f"{MARKER}.damaged-{number}")).exists():
            number += 1
        with _failing(Cause.UNREADABLE):
            content = marker.read_bytes()
            if _version_in(content) is not None:
                return None
            # The marker is never missing: a folder without one would count as another program's.
            self._write(aside, content)
            self._mark()
        return aside

    def get(self, table: str, key: str) -> bytes | None:
        """The content of the entry's file."""
        try:
            # Not through pathlib: this is asked for every step of every schedule.
            with open(f"{self.root}/{table}/{key[:2]}/{key}", "rb") as file:
                reason = written_by_others(os.fstat(file.fileno()))
                if reason is not None:
                    raise CacheError(Cause.OTHERS, f"{file.name} {reason}")
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as problem:
            raise CacheError(Cause.UNREADABLE, _reason(problem)) from problem

    def put_many(self, table: str, rows: Sequence[tuple[str, bytes]]) -> None:
        """Write each file atomically."""
        with _failing(Cause.UNWRITABLE):
            self._sweep()
            for key, data in rows:
                self._put(self._path(table, key), data)

    def rows(self, table: str) -> Iterator[tuple[str, bytes]]:
        """Every file, in the order of the keys."""
        for path in self._entries(table):
            data = self.get(table, path.name)
            if data is not None:
                yield path.name, data

    def set_aside(self, table: str, key: str, data: bytes) -> str:
        """Move a file into the folder `damaged`, unless it has been replaced meanwhile."""
        aside = self.root / _DAMAGED / f"{table}-{key}"
        # The file is not found where another process has moved it.
        with _failing(Cause.UNWRITABLE), contextlib.suppress(FileNotFoundError):
            if self.get(table, key) == data:
                aside.parent.mkdir(exist_ok=True)
                os.replace(self._path(table, key), aside)
        return str(aside)

    def count(self, table: str, tool: bytes) -> Count:
        """How many files there are; only their heads are read."""
        entries = current = 0
        for path in self._entries(table):
            with _failing(Cause.UNREADABLE), contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
                current += tool_of(file.read(HEAD)) == tool
                entries += 1
        return Count(entries, current)

    def damaged(self) -> int:
        """How many files were set aside."""
        return len(self._set_aside())

    def size(self) -> int:
        """All files of the cache."""
        entries = [path for table in TABLES for path in self._entries(table)]
        found = 0
        for path in (*entries, *self._set_aside(), *self._unfinished(0.0), self.root / MARKER):
            with contextlib.suppress(FileNotFoundError):
                found += path.stat().st_size
        return found

    def clear(self, keep: bytes | None, tables: Sequence[str] = TABLES) -> int:
        """Remove entries, and nothing that is not named as one."""
        gone = 0
        with _failing(Cause.UNWRITABLE):
            for table in tables:
                for path in self._entries(table):
                    if keep is None or tool_of(self._head(path)) != keep:
                        path.unlink(missing_ok=True)
                        gone += 1
            for path in (*self._set_aside(), *self._unfinished(0.0 if keep is None else _STALE_SECONDS)):
                path.unlink(missing_ok=True)
        folders = [f for table in TABLES for f in (*_folders(self.root / table), self.root / table)]
        for folder in (*folders, self.root / _DAMAGED):
            with contextlib.suppress(OSError):  # it is not empty, or not there
                folder.rmdir()
        return gone

    def close(self) -> None:
        """There is nothing to close."""

    def _path(self, table: str, key: str) -> Path:
        return self.root / table / key[:2] / key

    def _head(self, path: Path) -> bytes:
        try:
            with open(path, "rb") as file:
                return file.read(HEAD)
        except FileNotFoundError:
            return b""

    def _entries(self, table: str) -> Iterator[Path]:
        """The files that are named as entries; links are not followed."""
        for folder in _folders(self.root / table):
            yield from (path for path in _files(folder) if is_key(path.name) and path.name[:2] == folder.name)

    def _set_aside(self) -> list[Path]:
        return [
            path
            for path in _files(self.root / _DAMAGED)
            if path.name.startswith(_PREFIXES) and is_key(path.name.partition("-")[2])
        ]

    def _mark(self) -> None:
        self._write(self.root / MARKER, json.dumps({"format": _FORMAT, "version": VERSION}).encode())

    def _put(self, path: Path, data: bytes) -> None:
        """Write a file, even if folders are removed meanwhile by `cache clear` or by hand. Raises OSError."""
        for tries_left in reversed(range(_TRIES)):
            try:
                return self._write(path, data)
            except (FileNotFoundError, FileExistsError):
                # `mkdir` raises the second for a folder that is removed meanwhile.
                if tries_left == 0:
                    raise
                if not self.root.exists():
                    self.start()

    def _write(self, path: Path, data: bytes) -> None:
        """Write a file atomically. Raises OSError."""
        unfinished = self.root / _UNFINISHED
        unfinished.mkdir(exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, unfinished) as part:
            part.write_bytes(data)

    def _sweep(self) -> None:
        """Remove, once, unfinished files of processes that died."""
        if not self._swept:
            self._swept = True
            for path in self._unfinished(_STALE_SECONDS):
                path.unlink(missing_ok=True)

    def _unfinished(self, seconds: float) -> Iterator[Path]:
        limit = time.time() - seconds
        for path in _files(self.root / _UNFINISHED):
            with contextlib.suppress(FileNotFoundError):
                if path.suffix == ".part" and path.stat().st_mtime <= limit:
                    yield path


def _is_begun(names: set[str]) -> bool:
    """Whether another process may be creating a cache in the folder now."""
    return names - _SYSTEM == {_UNFINISHED}


def _version_in(marker: bytes) -> int | None:
    """The version in a marker; None if it is no marker."""
    try:
        found = json.loads(marker)
    except (ValueError, RecursionError):
        return None
    version = found.get("version") if isinstance(found, dict) and found.get("format") == _FORMAT else None
    return version if isinstance(version, int) else None


def _foreign(root: Path) -> LayoutproofError:
    what = "is a folder with other things in it" if root.is_dir() else "is a file"
    return error(
        codes.CACHE_FOREIGN,
        f"{root} {what}, not a proof cache",
        help="name an empty folder, one that is not there yet, or a file that ends in .sqlite",
    )


@contextlib.contextmanager
def _failing(cause: Cause) -> Iterator[None]:
    """Inside, an OSError is a CacheError."""
    try:
        yield
    except OSError as problem:
        raise CacheError(cause, _reason(problem)) from problem


def _reason(problem: OSError) -> str:
    what = f"{problem.filename}: " if problem.filename is not None else ""
    return f"{what}{problem.strerror or problem}"


def _folders(folder: Path) -> list[Path]:
    return [
        Path(entry.path) for entry in _scanned(folder) if len(entry.name) == 2 and entry.is_dir(follow_symlinks=False)
    ]


def _files(folder: Path) -> list[Path]:
    return [Path(entry.path) for entry in _scanned(folder) if entry.is_file(follow_symlinks=False)]


def _scanned(folder: Path) -> list[os.DirEntry[str]]:
    """The content of a folder by name; nothing if it is none, or a link."""
    if folder.is_symlink():
        return []
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as problem:
        raise CacheError(Cause.UNREADABLE, _reason(problem)) from problem
