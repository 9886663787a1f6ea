"""An item with the files that it names, so that a machine can judge it that does not have them.

Where a machine sees the same file under the same path, in a folder that all share, it uses that, with everything that lies beside it.
Elsewhere it gets a copy of the one file: a program and a rewrite stand alone. A file of gates is Python and may load others; those are not
looked for, and a fleet that has no shared folder cannot judge such a file.

A copy lies below a folder of its own under the whole path that it has at home. It is judged from there under the name that it has at
home, a whole path too: see `copies`. What an outcome says of that folder is taken out of it: outcomes are the same everywhere.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from layoutproof.cli.gate.items import Item
from layoutproof.cli.gate.outcome import Kind, Outcome
from layoutproof.verify.certificate.sealed_files import replacing

_KEPT = 64


@dataclass(frozen=True, slots=True)
class Parcel:
    """An item, the folder that its relative paths start from at home, and the content of its file; None of one that cannot be read there,
    which its judge will say.
    """

    item: Item
    home: str
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The folder to judge an item in, copies of files by their paths, and the folder that stands for the root of the file system at home;
    empty where nothing stands for it.
    """

    folder: str
    root: str = ""
    copies: Mapping[str, str] = field(default_factory=dict)


def pack(item: Item, home: str) -> Parcel:
    """The parcel of an item whose relative paths start from `home`."""
    path = os.path.join(home, _file_of(item))
    try:
        status = os.stat(path)
        return Parcel(item, home, _content(path, status.st_mtime_ns, status.st_size))
    except OSError:
        return Parcel(item, home, None)


def unpack(parcel: Parcel, folder: Path) -> Unpacked:
    """How a parcel's item can be judged on this machine; copies are made below `folder`. Raises OSError where they cannot be."""
    path = os.path.normpath(os.path.join(parcel.home, _file_of(parcel.item)))
    if parcel.content is not None and _content_here(path) == parcel.content and os.path.isdir(parcel.home):
        return Unpacked(parcel.home)
    name = hashlib.sha256(b"\0".join((parcel.home.encode(), path.encode(), parcel.content or b""))).hexdigest()[:16]
    root = str(folder.resolve() / name)
    home, copy = Path(root + parcel.home), Path(root + path)
    # As it is written, too: in `a/../b.py` the folder `a` must be there.
    for inside in (home, copy.parent, Path(root + os.path.join(parcel.home, _file_of(parcel.item))).parent):
        inside.mkdir(parents=True, exist_ok=True)
    if parcel.content is not None and not copy.exists():
        with replacing(copy) as part:  # whole or not at all: another thread may be about to read it
            part.write_bytes(parcel.content)
    named = _file_of(parcel.item)
    return Unpacked(str(home), root, {named: str(copy)} if os.path.isabs(named) else {})


def as_at_home(outcome: Outcome, unpacked: Unpacked) -> Outcome:
    """An outcome as it would be at home."""
    if not unpacked.root:
        return outcome
    return Outcome.from_dict(_without(outcome.to_dict(), unpacked.root))


def _file_of(item: Item) -> str:
    return item.program if item.kind is Kind.TRACE else item.path


@lru_cache(maxsize=_KEPT)
def _content(path: str, changed: int, size: int) -> bytes:
    return Path(path).read_bytes()


def _content_here(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except OSError:
        return None


def _without(value: Any, root: str) -> Any:
    """A value of JSON without a text in any of its texts."""
    if isinstance(value, str):
        return value.replace(root, "")
    if isinstance(value, Mapping):
        return {key: _without(inner, root) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without(inner, root) for inner in value]
    return value
