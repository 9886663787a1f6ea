"""Where proofs are kept: a place's text as the store for it."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from layoutproof.ir.diagnostic import error
from layoutproof.lowering import codes
from layoutproof.lowering.proof_cache.backend import Backend
from layoutproof.lowering.proof_cache.folder_backend import FolderBackend
from layoutproof.lowering.proof_cache.sqlite_backend import SqliteBackend

VARIABLE = "LAYOUTPROOF_PROOF_CACHE"
ENDING = ".sqlite"


def place_of(place: str | None) -> Path:
    """The path that a place's text names; None or nothing: `$LAYOUTPROOF_PROOF_CACHE`, else a file in the user's cache."""
    named = place if place else os.environ.get(VARIABLE, "").strip()
    return Path(named).expanduser() if named else Path(platformdirs.user_cache_dir("layoutproof")) / "proofs" / f"proofs{ENDING}"


def backend_of(path: Path) -> Backend:
    """The store at a path, not opened yet: SQLite where it ends in .sqlite, else a folder.

    Raises LayoutproofError for a folder that is called like a file, and for a file that is not.
    """
    if path.suffix == ENDING:
        if os.path.isdir(path):
            raise error(codes.CACHE_FOREIGN, f"{path} is a folder; what ends in {ENDING} is one file", help="name it without that ending")
        return SqliteBackend(path)
    return FolderBackend(path)


def is_there(path: Path) -> bool:
    """Whether something is at a place already: anything but an empty file or folder."""
    try:
        if path.is_dir():
            return next(path.iterdir(), None) is not None
        return path.stat().st_size > 0
    except OSError:
        return False
