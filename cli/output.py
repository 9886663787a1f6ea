"""Where results go: whole files or none, terminals with colour and everything else without."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from layoutproof.cli import codes
from layoutproof.ir.diagnostic import LayoutproofError, error

if TYPE_CHECKING:
    from rich.console import Console

    from layoutproof.verify.verdict import Status

# By a verdict's word, which a status is: so this file needs neither the verdicts nor rich before there is something to show.
_EXIT_CODES = {"proved": 0, "refuted": 1, "unknown": 3, "vacuous": 3}
STYLES = {"proved": "bold green", "refuted": "bold red", "unknown": "bold yellow", "vacuous": "bold yellow"}
_PLAIN_WIDTH = 100
_STREAMS = {Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd")}


def exit_code(status: Status) -> int:
    """The process's exit code for the worst verdict of a run."""
    return _EXIT_CODES[status]


def console() -> Console:
    """Standard output: coloured and as wide as the terminal, or plain and of one width when it is not a terminal."""
    from layoutproof.cli.console import PipeConsole

    if sys.stdout.isatty():
        return PipeConsole(highlight=False, emoji=False)
    return PipeConsole(highlight=False, emoji=False, no_color=True, width=_PLAIN_WIDTH)


def show(text: str) -> None:
    """Text with rich's markup on standard output. Lines are not broken: a lambda or a condition can be copied whole."""
    console().print(text, end="", soft_wrap=True)


def write_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: into a temporary one beside it, then renamed over it.

    Raises LayoutproofError where that cannot be done; an existing file is then as it was.
    """
    write_files({path: data})


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write files that belong together: all of them are there beside their places before the first takes its own.

    Raises LayoutproofError where one cannot be written; existing files are then as they were.
    """
    for path in contents:
        check_writable(path)
    parts: list[tuple[Path, Path]] = []
    try:
        for path, data in contents.items():
            if _is_stream(path):
                with open(_into(path), "wb") as stream:
                    stream.write(data)
                continue
            path = _behind_links(path)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".part")
            parts.append((Path(temporary), path))
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            # mkstemp makes files for their owner only; a result has the permissions that any new file has.
            os.chmod(temporary, 0o666 & ~_umask())
        for part, path in parts:
            os.replace(part, path)
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise _cannot_write(path, problem) from problem
    finally:
        # After a failure, or Ctrl-C, nothing half-written stays behind; after success the names are gone already.
        for part, _ in parts:
            part.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """A text file that takes its place, whole, when the block ends; after an exception nothing is there but what was.

    For what is too long to be made in memory. Raises LayoutproofError where it cannot be written.
    """
    check_writable(path)
    part: Path | None = None
    try:
        if _is_stream(path):
            with open(_into(path), "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                yield file
            return
        path = _behind_links(path)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".part")
        part = Path(temporary)
        with open(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(part, 0o666 & ~_umask())
        os.replace(part, path)
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise _cannot_write(path, problem) from problem
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raise LayoutproofError now where `write_file` would later, so that no work is done for nothing."""
    if path.is_dir():
        raise error(codes.OUTPUT, f"cannot write {path}: it is a directory")
    if not path.parent.is_dir():
        what = "is no directory" if path.parent.exists() else "does not exist"
        raise error(codes.OUTPUT, f"cannot write {path}: {path.parent} {what}")
    if path.exists() and _is_protected(path):
        raise error(codes.OUTPUT, f"cannot write {path}: the file is write-protected")
    if _is_stream(path):
        return
    if _is_protected(path.parent):
        raise error(codes.OUTPUT, f"cannot write {path}: the directory {path.parent} is write-protected")


def make_folder(path: Path) -> None:
    """Make a folder where there is none. Raises LayoutproofError where that cannot be done."""
    if not path.is_dir():
        check_writable(path)
    try:
        path.mkdir(exist_ok=True)
    except FileExistsError as problem:
        raise error(codes.OUTPUT, f"cannot write into {path}: it is a file, not a folder") from problem
    except OSError as problem:
        raise _cannot_write(path, problem) from problem


def _is_protected(path: Path) -> bool:
    """No permission, or no write bit for anybody: a superuser could write there, but was told not to."""
    return not os.access(path, os.W_OK) or path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) == 0


def _is_stream(path: Path) -> bool:
    """Whether a path is written into and never replaced: a device, a pipe, or whatever `/dev/stdout` stands for.

    A superuser could rename a file over `/dev/null`, and would have none from then on.
    """
    return path.exists() and (not path.is_file() or path.parent in _STREAMS)


def _into(path: Path) -> int:
    """A stream opened to write behind what is there. Raises OSError."""
    sys.stdout.flush()
    return os.open(path, os.O_WRONLY | os.O_APPEND)


def _behind_links(path: Path) -> Path:
    """The file that a link leads to: that one is replaced, and the link stays."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _cannot_write(path: Path, problem: OSError) -> LayoutproofError:
    return error(codes.OUTPUT, f"cannot write {path}: {problem.strerror or problem}")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def emit(text: str, path: Path | None) -> None:
    """`text` to a file, or to standard output when there is none."""
    if path is not None:
        write_file(path, text.encode(errors="backslashreplace"))
    else:
        sys.stdout.write(text)
