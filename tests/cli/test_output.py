"""Results are written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from layoutproof.cli.output import check_writable, write_file
from layoutproof.ir.diagnostic import LayoutproofError


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    """The content arrives, nothing else is left in the folder, and the permissions are those of any new file."""
    path = tmp_path / "out.txt"
    plain = tmp_path / "plain.txt"
    plain.write_bytes(b"")
    write_file(path, b"content")
    assert path.read_bytes() == b"content"
    assert sorted(os.listdir(tmp_path)) == ["out.txt", "plain.txt"]
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.parametrize("name", ["missing/out.txt", "folder", "folder/missing/out.txt"])
def test_what_cannot_be_written_is_refused_by_name(tmp_path: Path, name: str) -> None:
    """A directory, or a file in a folder that does not exist, is named in the message and nothing appears."""
    (tmp_path / "folder").mkdir()
    for write in (check_writable, lambda path: write_file(path, b"x")):
        with pytest.raises(LayoutproofError) as caught:
            write(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)
    assert os.listdir(tmp_path) == ["folder"]
    assert os.listdir(tmp_path / "folder") == []


def test_what_is_write_protected_stays_as_it_is(tmp_path: Path) -> None:
    """A file or folder without write permission is refused, to the superuser too, who could write there."""
    path = tmp_path / "folder" / "out.txt"
    path.parent.mkdir()
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(LayoutproofError, match="the file is write-protected"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    path.parent.chmod(0o555)
    try:
        with pytest.raises(LayoutproofError, match="is write-protected"):
            check_writable(path.parent / "other.txt")
    finally:
        path.parent.chmod(0o755)


def test_a_failure_half_way_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the last step fails the old content stands and no temporary file stays."""
    path = tmp_path / "out.txt"
    path.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(LayoutproofError, match="No space left on device"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out.txt"]
