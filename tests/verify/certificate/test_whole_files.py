"""Files that are written whole or not at all, several of them together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

import pytest

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.verify.certificate.sealed_files import write_whole_files, writing_whole

CODE = "LP502"


def test_files_take_their_places_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All contents are on the disk before the first file takes its place, and the last one given takes it last."""
    places: list[str] = []
    replace = os.replace

    def replaced(part: Path, path: Path) -> None:
        assert len(list(tmp_path.glob(".*.part"))) == 2 - len(places)
        places.append(path.name)
        replace(part, path)

    monkeypatch.setattr("os.replace", replaced)
    write_whole_files({tmp_path / "b": b"second", tmp_path / "a": lambda file: file.write(b"first")}, CODE)
    assert places == ["b", "a"] and [path.name for path in sorted(tmp_path.iterdir())] == ["a", "b"]
    assert (tmp_path / "a").read_bytes() == b"first" and (tmp_path / "b").read_bytes() == b"second"


def test_what_fails_half_way_leaves_all_as_it_was(tmp_path: Path) -> None:
    """Where one content cannot be written, files that were there are as they were, and others are not there."""
    (tmp_path / "a").write_bytes(b"old")

    def failing(file: IO[bytes]) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(LayoutproofError, match=r"LP502.*cannot write .*b: No space left"):
        write_whole_files({tmp_path / "a": b"new", tmp_path / "b": failing}, CODE)
    assert [path.name for path in tmp_path.iterdir()] == ["a"] and (tmp_path / "a").read_bytes() == b"old"


def test_another_exception_leaves_nothing_behind(tmp_path: Path) -> None:
    """An interrupt while a file is written goes on as it is, and leaves no part of the file."""

    def interrupted(file: IO[bytes]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole_files({tmp_path / "a": interrupted}, CODE)
    with pytest.raises(KeyboardInterrupt), writing_whole(tmp_path / "a", CODE) as file:
        file.write("half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_streams_are_written_into(tmp_path: Path) -> None:
    """A device is written into and stays what it is."""
    write_whole_files({Path("/dev/null"): b"gone", tmp_path / "a": b"kept"}, CODE)
    assert not Path("/dev/null").is_file() and (tmp_path / "a").read_bytes() == b"kept"


def test_links_stay(tmp_path: Path) -> None:
    """A link is not replaced: what it leads to is."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "real")
    write_whole_files({tmp_path / "link": b"new"}, CODE)
    assert (tmp_path / "link").is_symlink() and (tmp_path / "folder" / "real").read_bytes() == b"new"
