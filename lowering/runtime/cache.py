"""Built libraries kept between runs, found again by what they were built from.

A library's place is a hash of its source, the compiler, the flags and the machine; its file name is the hash of its content,
checked before each load. Files appear by atomic renaming, so a process that is killed, a full disk or two builders at once
leave at worst a file that nobody takes for finished. Where the folder cannot be written, kernels are built for one process.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from layoutproof.ir.diagnostic import error
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.runtime.native import Compiler, compile_library, machine

_VERSION = "1"  # of this folder's layout
_STALE_SECONDS = 3600.0  # an unfinished file older than this is of a process that died


@dataclass(frozen=True, slots=True)
class Build:
    """A loaded library and how it came to be. `source_path` is None where the folder could not be written."""

    library: ctypes.CDLL
    key: str
    command: str
    source_path: Path | None
    library_path: Path | None
    reused: bool
    note: str | None


def cache_folder() -> Path:
    """`$LAYOUTPROOF_CACHE`, else a folder of the user's cache."""
    named = os.environ.get("LAYOUTPROOF_CACHE", "").strip()
    return Path(named).expanduser() if named else Path(platformdirs.user_cache_dir("layoutproof")) / "kernels"


def build(text: str, name: str, compiler: Compiler, flags: tuple[str, ...]) -> Build:
    """The library built from the C in `text`, from the cache where it is there. `name` names the source file.

    Raises LayoutproofError: LP411 where the compiler fails, LP412 where the library cannot be loaded, LP413 where there is
    nowhere to build.
    """
    parts = (_VERSION, text, " ".join(compiler.command), compiler.identity, " ".join(flags), machine() if compiler.native else "")
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    folder = cache_folder() / key[:2] / key
    source = folder / f"{name}.c"
    found = _find(folder)
    if found is not None:
        return Build(_load(found), key, _command(folder), source, found, True, None)
    return _make(text, name, compiler, flags, key, folder)


def _make(text: str, name: str, compiler: Compiler, flags: tuple[str, ...], key: str, folder: Path) -> Build:
    note: str | None = None
    with _workplace() as work:
        kept = folder / f"{name}.c"
        try:
            _publish(text.encode(), folder, f"{name}.c")
        except OSError as problem:
            note = f"the cache folder {cache_folder()} cannot be written ({problem.strerror}); this build is not kept"
            kept = _keep_source(text, name)
        library = work / "kernel.so"
        command = compile_library(compiler, kept, library, flags)
        if note is None:
            try:
                content = library.read_bytes()
                _publish(command.encode(), folder, "command.txt")
                path = _publish(content, folder, f"{hashlib.sha256(content).hexdigest()}.so")
                return Build(_load(path), key, command, kept, path, False, None)
            except OSError as problem:
                note = f"the cache folder {cache_folder()} cannot be written ({problem.strerror}); this build is not kept"
        # A loaded library outlives its file.
        return Build(_load(library), key, command, kept, None, False, note)


@contextlib.contextmanager
def _workplace() -> Iterator[Path]:
    """A folder of this build's own, gone afterwards."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="layoutproof-"))
    except OSError as problem:
        raise error(
            codes.NOWHERE_TO_BUILD, f"there is no folder to build in: {problem}", help="set TMPDIR to a folder that can be written"
        ) from problem
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep_source(text: str, name: str) -> Path:
    """The source where a person can find it, since the cache cannot hold it."""
    path = Path(tempfile.gettempdir()) / f"layoutproof-{os.getpid()}-{name}.c"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise error(
            codes.NOWHERE_TO_BUILD, f"the generated source cannot be written: {problem}", help="set TMPDIR to a folder that can be written"
        ) from problem
    return path


def _publish(content: bytes, folder: Path, name: str) -> Path:
    """Write a file so that it is there whole or not at all. Raises OSError where that cannot be done."""
    folder.mkdir(parents=True, exist_ok=True)
    _sweep(folder)
    handle, part = tempfile.mkstemp(prefix=".", suffix=".part", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
        os.chmod(part, 0o644)
        os.replace(part, folder / name)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    return folder / name


def _sweep(folder: Path) -> None:
    """Remove what processes that died have left unfinished."""
    limit = time.time() - _STALE_SECONDS
    for part in folder.glob(".*.part"):
        with contextlib.suppress(OSError):
            if part.stat().st_mtime < limit:
                part.unlink()


def _find(folder: Path) -> Path | None:
    """A whole library in `folder`; a damaged one is removed."""
    for path in sorted(folder.glob("*.so")):
        try:
            whole = hashlib.sha256(path.read_bytes()).hexdigest() == path.stem
        except OSError:
            continue
        if whole:
            return path
        with contextlib.suppress(OSError):
            path.unlink()
    return None


def _command(folder: Path) -> str:
    try:
        return (folder / "command.txt").read_text(encoding="utf-8")
    except OSError:
        return "(built earlier)"


def _load(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as problem:
        raise error(
            codes.NOT_LOADED,
            f"the built library cannot be loaded: {problem}",
            help="a folder mounted noexec cannot hold kernels: set LAYOUTPROOF_CACHE and TMPDIR to others",
        ) from problem
