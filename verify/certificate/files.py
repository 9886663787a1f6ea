"""Certificates on disk: written whole or not at all, read with care."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from layoutproof.ir.diagnostic import error
from layoutproof.verify import codes


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: into a temporary one beside it, then renamed over it; killed half way, nothing half stays.

    Raises LayoutproofError where that cannot be done; an existing file is then as it was.
    """
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except OSError as problem:
        raise error(codes.CERTIFICATE_WRITE, f"cannot write {path}: {problem.strerror or problem}") from problem
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def read_whole(path: Path) -> bytes:
    """The content of a file. Raises LayoutproofError where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as problem:
        raise error(codes.CERTIFICATE_FORM, f"cannot read {path}: {problem.strerror or problem}") from problem
