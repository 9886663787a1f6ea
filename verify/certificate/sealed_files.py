"""Files that are written whole or not at all, and documents with hashes: every part has a SHA-256 over itself and the
part before it, the document one over all. A hash shows that a file was not altered, not that it is true.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TextIO

from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.verify.verdict import codes

Content = bytes | Callable[[IO[bytes]], object]
"""What a file is to hold, or what writes it into a file: nothing large needs to be in memory twice."""

_STREAMS = {Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd")}


def write_whole_files(contents: Mapping[Path, Content], code: str) -> None:
    """Write files that belong together: all are written beside their places before the first is renamed, in order.

    Raises LayoutproofError with `code` where one cannot be written; existing files are then as they were.
    """
    for path in contents:
        check_place(path, code)
    parts: list[tuple[Path, Path]] = []
    path = Path()
    try:
        for path, content in contents.items():
            if is_stream(path):
                with open(_into(path), "wb") as stream:
                    _fill(stream, content)
                continue
            path = behind_links(path)
            parts.append((_part_of(path, path.parent), path))
            with open(parts[-1][0], "xb") as file:
                _fill(file, content)
                _settle(file)
        for part, path in parts:
            os.replace(part, path)
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise _cannot_write(path, problem, code) from problem
    finally:
        # After a failure, or Ctrl-C, nothing half-written stays behind; after success the names are gone already.
        for part, _ in parts:
            part.unlink(missing_ok=True)


@contextmanager
def writing_whole(path: Path, code: str) -> Iterator[TextIO]:
    """A text file that takes its place, whole, when the block ends; after an exception the old one stays.

    For what is too long to be made in memory. Raises LayoutproofError with `code` where it cannot be written.
    """
    check_place(path, code)
    try:
        if is_stream(path):
            with open(_into(path), "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                yield file
            return
        path = behind_links(path)
        with (
            replacing(path) as part,
            open(part, "x", encoding="utf-8", errors="backslashreplace", newline="\n") as file,
        ):
            yield file
            _settle(file)
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise _cannot_write(path, problem, code) from problem


@contextmanager
def replacing(path: Path, folder: Path | None = None) -> Iterator[Path]:
    """A name for a new file in a folder (beside `path` by default), which replaces `path` when the block ends; after an
    exception the old file stays. Raises OSError.
    """
    part = _part_of(path, path.parent if folder is None else folder)
    try:
        yield part
        os.replace(part, path)
    finally:
        # After success the name is gone already.
        with suppress(OSError):
            part.unlink()


def _part_of(path: Path, folder: Path) -> Path:
    """A new name. A module for temporary files would make one with the permissions of a secret, not of any new file."""
    return folder / f".{path.name[:40]}.{os.urandom(8).hex()}.part"


def check_place(path: Path, code: str) -> None:
    """Raise LayoutproofError now if a file could not be written later."""
    if path.is_dir():
        raise error(code, f"cannot write {path}: it is a directory")
    if not path.parent.is_dir():
        what = "is no directory" if path.parent.exists() else "does not exist"
        raise error(code, f"cannot write {path}: {path.parent} {what}")
    if path.exists() and _is_protected(path):
        raise error(code, f"cannot write {path}: the file is write-protected")
    if is_stream(path):
        return
    if _is_protected(path.parent):
        raise error(code, f"cannot write {path}: the directory {path.parent} is write-protected")


def is_stream(path: Path) -> bool:
    """Whether a path is written into and never replaced: a device, a pipe, or whatever `/dev/stdout` stands for.

    A superuser could rename a file over `/dev/null`, and would have none from then on.
    """
    return path.exists() and (not path.is_file() or path.parent in _STREAMS)


def behind_links(path: Path) -> Path:
    """The file that a link leads to: that one is replaced, and the link stays."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _fill(file: IO[bytes], content: Content) -> None:
    if isinstance(content, bytes):
        file.write(content)
    else:
        content(file)


def _settle(file: IO[bytes] | TextIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _is_protected(path: Path) -> bool:
    """No permission, or no write bit at all: a superuser could still write, but should not."""
    return not os.access(path, os.W_OK) or path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) == 0


def _into(path: Path) -> int:
    """A stream that appends. Raises OSError."""
    sys.stdout.flush()
    return os.open(path, os.O_WRONLY | os.O_APPEND)


def _cannot_write(path: Path, problem: OSError, code: str) -> LayoutproofError:
    return error(code, f"cannot write {path}: {problem.strerror or problem}")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, also if the process is killed.

    Raises LayoutproofError where that cannot be done; an existing file is then as it was.
    """
    write_whole_files({path: data}, codes.CERTIFICATE_WRITE)


def read_whole(path: Path) -> bytes:
    """The content of a file. Raises LayoutproofError where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as problem:
        raise error(codes.CERTIFICATE_FORM, f"cannot read {path}: {problem.strerror or problem}") from problem


CERTIFICATE_ENDING, LEMMAS_ENDING = ".lpcert.json", ".lplemmas.json"
_EXPECTATION = re.compile(rb"^#\s*expect\s*:", re.MULTILINE)


def find_files(paths: Sequence[Path]) -> list[Path]:
    """The given files, and those in folders whose ending or header marks them for checking; each once."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            inside = sorted(
                p
                for p in path.rglob("*")
                if p.is_file() and p.name.endswith((CERTIFICATE_ENDING, LEMMAS_ENDING, ".py"))
            )
            found.update(
                dict.fromkeys(p for p in inside if p.suffix != ".py" or _EXPECTATION.search(read_whole(p)) is not None)
            )
        else:
            found[path] = None
    return list(found)


HASH, REFUTATIONS = "sha256", "refutations"
_START = "0" * 64

Document = dict[str, Any]


def digest(value: Any) -> str:
    """The SHA-256, in hexadecimal, of plain data in its one text."""
    import hashlib  # takes long to load, and every command that writes a file loads this one

    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def chained(items: Sequence[Document]) -> list[Document]:
    """The items, each with the hash of itself and of the hash before it."""
    found, before = [], _START
    for item in items:
        bare = {key: value for key, value in item.items() if key != HASH}
        before = digest([before, bare])
        found.append({**bare, HASH: before})
    return found


def sealed(document: Document) -> Document:
    """The document with the hash of all of it."""
    bare = {key: value for key, value in document.items() if key != HASH}
    return {**bare, HASH: digest(bare)}


def to_bytes(document: Document) -> bytes:
    """The one text of a document: indented, but each proof for the kernel on one line."""
    return (_text(document, "\n") + "\n").encode("ascii")


def _text(value: Any, end: str) -> str:
    """As `json.dumps(value, indent=1)` has it, whose lines start with `end`, but for what `refutations` hold."""
    inner = end + " "
    if isinstance(value, dict) and value:
        parts = [
            f"{json.dumps(key)}: {_table(part, inner) if key == REFUTATIONS else _text(part, inner)}"
            for key, part in value.items()
        ]
        return f"{{{inner}{f',{inner}'.join(parts)}{end}}}"
    if isinstance(value, list) and value:
        return f"[{inner}{f',{inner}'.join([_text(part, inner) for part in value])}{end}]"
    return json.dumps(value, allow_nan=False)


def _table(value: Any, end: str) -> str:
    if not isinstance(value, dict) or not value:
        return _text(value, end)
    inner = end + " "
    parts = [f"{json.dumps(key)}: {json.dumps(part, separators=(',', ':'))}" for key, part in value.items()]
    return f"{{{inner}{f',{inner}'.join(parts)}{end}}}"


def from_bytes(data: bytes, name: str) -> Document:
    """A sealed document from its text; the root hash and the text itself are checked, chains are the reader's to check.

    Raises LayoutproofError for a file that is cut off, is no such document, or was changed.
    """
    try:
        document = json.loads(data.decode("ascii"), parse_constant=no_constant, parse_float=finite)
    except UnicodeDecodeError as problem:
        raise error(codes.CERTIFICATE_CHANGED, f"{name}: byte {problem.start} is none that was written") from problem
    except (ValueError, RecursionError) as problem:
        raise error(codes.CERTIFICATE_CHANGED, f"{name} is cut off or was changed: {problem}") from problem
    if not isinstance(document, dict) or HASH not in document:
        raise error(codes.CERTIFICATE_FORM, f"{name} is JSON, but nothing that layoutproof sealed")
    try:
        is_sealed, is_as_written = sealed(document) == document, to_bytes(document) == data
    except RecursionError as problem:
        raise error(codes.CERTIFICATE_FORM, f"{name} is nested deeper than anything that was sealed") from problem
    if not is_sealed:
        raise error(codes.CERTIFICATE_CHANGED, f"{name} was changed: its hash does not match its contents")
    if not is_as_written:
        raise error(
            codes.CERTIFICATE_CHANGED, f"{name} was changed: it says what was sealed, but not as it was written"
        )
    return document


def check_chain(items: Any, where: str) -> None:
    """Raise LayoutproofError, naming the place, unless the items' hashes form a chain."""
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise error(codes.CERTIFICATE_FORM, f"{where} is no list of objects")
    for number, (item, fresh) in enumerate(zip(items, chained(items), strict=True), start=1):
        if item.get(HASH) != fresh[HASH]:
            raise error(
                codes.CERTIFICATE_CHANGED,
                f"{where}, number {number}: changed, or one before it was added, taken out or moved",
            )


def no_constant(name: str) -> float:
    """Raise ValueError for NaN and Infinity, which Python's reader takes for JSON."""
    raise ValueError(f"{name} is no JSON number")


def finite(text: str) -> float:
    """A number of JSON with a point or an exponent. Raises ValueError for one like 1e999, which Python's reader takes
    for an infinity.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is past the largest number of 64 bits")
    return number
