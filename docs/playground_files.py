"""The playground as files: the page, the package as an archive, and where Pyodide is loaded from.

`python -m docs.playground_files FOLDER` writes them to a folder that any web server can offer. Pyodide comes from its
own address; with `--pyodide DIR` it is copied from a folder (such as the npm package `pyodide`, unpacked), and the page
needs no other server.
"""

from __future__ import annotations

import argparse
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION = "314.0.7"
ADDRESS = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
_PLACE = "PYODIDE_FOLDER"
_PAGE = ("index.html", "page.mjs", "worker.mjs")
_RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
_OPTIONAL = re.compile(r"numpy-.*\.whl")
_FOLDERS = ("ir", "verify", "cli")
_SKIPPED = {"__pycache__", "programs", "page"}
_TIME = (1980, 1, 1, 0, 0, 0)


def write_playground(folder: Path, pyodide: Path | None = None) -> None:
    """Write the files. Raises FileNotFoundError for a folder that lacks a file of Pyodide."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _PAGE:
        text = (ROOT / "docs" / "playground" / name).read_text(encoding="utf-8")
        place = ADDRESS if pyodide is None else "pyodide/"
        (folder / name).write_text(text.replace(_PLACE, place), encoding="utf-8")
    write_archive(folder / "layoutproof.zip")
    if pyodide is not None:
        inner = folder / "pyodide"
        inner.mkdir(exist_ok=True)
        wheels = [path.name for path in pyodide.iterdir() if _OPTIONAL.fullmatch(path.name)]
        for name in (*_RUNTIME, *wheels):
            shutil.copyfile(pyodide / name, inner / name)


def write_archive(path: Path) -> None:
    """The package's modules that the page may use; the same bytes for the same sources."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source, name in sorted(_files(), key=lambda each: each[1]):
            archive.writestr(zipfile.ZipInfo(name, _TIME), source.read_bytes(), zipfile.ZIP_DEFLATED)


def _files() -> Iterator[tuple[Path, str]]:
    yield ROOT / "src" / "layoutproof" / "__init__.py", "layoutproof/__init__.py"
    for folder in _FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            inner = path.relative_to(ROOT)
            if path.suffix in (".py", ".json") and not _SKIPPED & set(inner.parts):
                yield path, f"layoutproof/{inner.as_posix()}"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Write the playground's files.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pyodide", type=Path, metavar="DIR", help=f"Pyodide {VERSION}, unpacked")
    given = parser.parse_args()
    write_playground(given.folder, given.pyodide)
    print(given.folder / "index.html")


if __name__ == "__main__":
    main()
