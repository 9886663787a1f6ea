"""Where the sources are, for the tests that look at the repository itself."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGE_DIR: dict[str, str] = PROJECT["tool"]["setuptools"]["package-dir"]
ROOMS: tuple[str, ...] = tuple(folder for name, folder in PACKAGE_DIR.items() if name != "layoutproof")
FACE = ROOT / PACKAGE_DIR["layoutproof"]


MATERIAL = frozenset({"data", "golden", "programs"})
"""Folders of files that are read as text; a Python file in them is not code of ours."""

SHIPPED = frozenset({".json", ".html", ".css", ".js", ".md"})
"""Files beside the code that it reads."""


def code_files() -> list[Path]:
    """Every Python file that is shipped, each once: the rooms in their top-level folders, and the face's own files."""
    return sorted([*FACE.glob("*.py"), *(path for room in ROOMS for path in _python_below(ROOT / room))])


def files_of_tests() -> list[Path]:
    """Every Python file below tests/."""
    return sorted(_python_below(ROOT / "tests"))


def all_files() -> list[Path]:
    """Shipped code, tests, benchmarks, examples and what makes the documentation."""
    beside = [path for folder in ("benchmarks", "examples", "docs") for path in _python_below(ROOT / folder)]
    return sorted([*code_files(), *files_of_tests(), *beside])


def material_files() -> list[Path]:
    """Every file that is shipped without being code."""
    return sorted(
        path for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file() and (_is_material(path) or path.suffix in SHIPPED)
    )


def name_of(path: Path) -> str:
    """The path below the repository's root, as a test id."""
    return path.relative_to(ROOT).as_posix()


def _python_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.py") if not _is_material(path)]


def _is_material(path: Path) -> bool:
    return not MATERIAL.isdisjoint(path.relative_to(ROOT).parts[:-1])
