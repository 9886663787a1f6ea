"""Certificates on disk: written whole or not at all, read with care."""

from __future__ import annotations

from pathlib import Path

from layoutproof.ir.diagnostic import error
from layoutproof.verify import codes
from layoutproof.verify.whole_files import write_whole_files


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: killed half way, nothing half stays.

    Raises LayoutproofError where that cannot be done; an existing file is then as it was.
    """
    write_whole_files({path: data}, codes.CERTIFICATE_WRITE)


def read_whole(path: Path) -> bytes:
    """The content of a file. Raises LayoutproofError where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as problem:
        raise error(codes.CERTIFICATE_FORM, f"cannot read {path}: {problem.strerror or problem}") from problem
