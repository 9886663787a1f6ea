"""The version of the tool and its engines as one hash: proofs of another version are not reused.

The hash covers the text of everything that proofs depend on, so any change of the checker invalidates the cache.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

ROOMS = ("ir", "verify", "lowering")
ENGINES = ("islpy", "z3-solver", "bitwuzla", "numpy", "ml_dtypes")
_ENDINGS = (".py", ".json")
_INSTALLED = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)\.dist-info")


def tool_digest() -> str:
    """The SHA-256, in hexadecimal, of layoutproof's version and sources, its engines' versions and Python's; no engine
    is imported.
    """
    return digest_of(ROOMS)


@cache
def digest_of(rooms: tuple[str, ...]) -> str:
    """As `tool_digest`, over the sources of some packages below `layoutproof`."""
    import layoutproof

    parts = [f"layoutproof {layoutproof.__version__}", f"python {sys.version_info[0]}.{sys.version_info[1]}"]
    found = hashlib.sha256()
    for part in (*parts, *(f"{name} {version_of(name)}" for name in ENGINES)):
        _add(found.update, part.encode())
    for room in rooms:
        for name, content in sorted(_sources(room)):
            _add(found.update, f"{room}/{name}".encode())
            _add(found.update, content)
    return found.hexdigest()


def version_of(name: str) -> str:
    """The version of an installed distribution, `none` if it is missing."""
    wanted = _normal(name)
    # Reading the names of folders takes a tenth of the time that the library for it takes to be loaded.
    for place in sys.path:
        if wanted in (installed := _installed(place)):
            return installed[wanted]
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()


@cache
def _installed(place: str) -> Mapping[str, str]:
    """The versions of what is installed in a folder, by name."""
    try:
        names = os.listdir(place if place else ".")
    except OSError:
        return {}
    found = (_INSTALLED.fullmatch(name) for name in sorted(names, reverse=True) if name.endswith(".dist-info"))
    return {_normal(match["name"]): match["version"] for match in found if match is not None}


def _sources(room: str) -> Iterator[tuple[str, bytes]]:
    """The relative name and the content of each file; for a package in an archive, the archive."""
    (place,) = import_module(f"layoutproof.{room}").__path__
    if not os.path.isdir(place):
        archive = next(folder for folder in Path(place).parents if folder.is_file())
        yield archive.name, archive.read_bytes()
        return
    for folder, _, names in os.walk(place):
        for name in names:
            if name.endswith(_ENDINGS):
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    yield os.path.relpath(path, place).replace(os.sep, "/"), file.read()


def _add(update: Callable[[bytes], None], content: bytes) -> None:
    """Add a part with its length, so that different lists of parts have different texts."""
    update(len(content).to_bytes(8, "big"))
    update(content)
