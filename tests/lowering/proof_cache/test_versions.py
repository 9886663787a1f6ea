"""The digest of the tool: another one for whatever proofs depend on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.lowering.proof_cache import versions
from layoutproof.lowering.proof_cache.backend import is_key
from layoutproof.lowering.proof_cache.versions import ENGINES, digest_of, tool_digest, version_of

TOLD = "from layoutproof.lowering.proof_cache.versions import tool_digest; print(tool_digest())"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package as it would be installed, in a folder of the test."""
    place = tmp_path / "layoutproof"
    skipped = shutil.ignore_patterns(
        "__pycache__", *(path.name for path in (ROOT / "src" / "layoutproof").iterdir() if path.is_symlink())
    )
    shutil.copytree(ROOT / "src" / "layoutproof", place, ignore=skipped)
    for room in ("ir", "verify", "lowering"):
        shutil.copytree(ROOT / room, place / room, ignore=shutil.ignore_patterns("__pycache__"))
    return place


def told(copy: Path) -> str:
    """What a copy says of itself, in a process of its own, from another folder."""
    code = f"import sys; sys.path.insert(0, {str(copy.parent)!r}); {TOLD}"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=copy.parent, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_it_is_one_hash_everywhere(copy: Path, tmp_path: Path) -> None:
    """The same sources and engines have the same digest, wherever they are installed."""
    first = told(copy)
    assert is_key(first) and is_key(tool_digest()) and tool_digest() == tool_digest()
    moved = tmp_path / "elsewhere" / "layoutproof"
    shutil.copytree(copy, moved)
    assert told(moved) == first


@one_in(9)
@pytest.mark.parametrize(
    "name",
    [
        "verify/checker.py",
        "ir/expr.py",
        "lowering/schedule/schedule.py",
        "verify/values/new.json",
        "verify/flow/new.py",
    ],
)
def test_a_changed_source_changes_it(copy: Path, name: str) -> None:
    """A comment more in one file, or one file more, makes another digest; taken back, it is the first one again."""
    before = told(copy)
    path = copy / name
    was = path.read_bytes() if path.exists() else None
    path.write_bytes((was or b"") + b"\n")
    assert told(copy) != before
    if was is None:
        path.unlink()
    else:
        path.write_bytes(was)
    assert told(copy) == before


def test_a_text_that_moves_to_the_next_file_changes_it(copy: Path) -> None:
    """Files are hashed each with its name and its length."""
    before = told(copy)
    first, second = copy / "ir" / "dtype.py", copy / "ir" / "expr.py"
    second.write_bytes(b"\n" + second.read_bytes())
    with_second = told(copy)
    second.write_bytes(second.read_bytes()[1:])
    first.write_bytes(first.read_bytes() + b"\n")
    assert len({before, with_second, told(copy)}) == 3


def test_a_package_in_an_archive(copy: Path) -> None:
    """A package that is imported from an archive has a digest of the archive."""
    archive = shutil.make_archive(str(copy.parent / "packed"), "zip", copy.parent, "layoutproof")
    code = f"import sys; sys.path.insert(0, {archive!r}); {TOLD}"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=copy.parent, capture_output=True, text=True, check=True, timeout=60
    )
    assert is_key(done.stdout.strip())


@pytest.mark.parametrize("name", [*ENGINES, "pytest", "ruff", "typing-extensions"])
def test_versions_are_those_that_are_installed(name: str) -> None:
    """What is read from the names of folders is what the library for it says."""
    assert version_of(name) == metadata.version(name)


def test_an_engine_that_is_not_installed() -> None:
    """An engine that is missing has no version, which is another digest than with it."""
    assert version_of("no-such-engine") == "none"


@pytest.mark.parametrize("name", ENGINES)
def test_another_version_of_an_engine_changes_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proofs of another solver, or of the same one in another version, are not taken for known."""
    before = digest_of.__wrapped__(("ir",))
    real = version_of
    monkeypatch.setattr(versions, "version_of", lambda asked: "none" if asked == name else real(asked))
    assert digest_of.__wrapped__(("ir",)) != before


def test_folders_on_the_path_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands on Python's path and cannot be listed is passed over; of two that are installed the first on the path
    counts.
    """
    (tmp_path / "ml_dtypes-99.0.dist-info").mkdir()
    (tmp_path / "readme-of-99.dist-info.txt").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "missing"), str(tmp_path), *sys.path])
    assert version_of("ml_dtypes") == "99.0" == version_of("ML-dtypes")
