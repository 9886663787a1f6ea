"""Where a run writes: no report takes the place of what is read, of another report, of a device or of a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from tests.cli.calling import Caller, files_below
from tests.tree import ROOT

from layoutproof.cli.output import write_file, writing

PROGRAM = (ROOT / "examples" / "programs" / "row_sum.py").read_text(encoding="utf-8")
TRACE = (ROOT / "examples" / "row_sum.json").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program, its schedule beside it and a baseline, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "row_sum.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "row_sum.json").write_text(TRACE, encoding="utf-8")
    (tmp_path / "known.json").write_text('{"layoutproof_baseline": 2, "entries": []}', encoding="utf-8")
    os.link(tmp_path / "row_sum.py", tmp_path / "same.txt")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "row_sum.py --trace row_sum.json -o row_sum.py",
        "row_sum.py --trace row_sum.json -o same.txt",
        "row_sum.py --trace row_sum.json --report html=./row_sum.json",
        "row_sum.py -o row_sum.json",
        "row_sum.json -o row_sum.py",
        ". --report sarif=row_sum.py",
        ". --certificate row_sum.json",
        ". --write-baseline row_sum.py",
        ". --baseline known.json -o known.json",
        ". --report sarif=a --report junit=./a",
        ". --write-baseline a -o a",
    ],
)
def test_nothing_is_overwritten(words: str, folder: Path, call: Caller) -> None:
    """An output that is an input, or that is written twice, is refused before anything is done; every file stays as it
    was.
    """
    before = files_below(folder)
    done = call("check", *words.split(), "--no-cache")
    assert (done.code, done.out) == (2, "") and done.err.startswith("error[LP502]: --"), done.err
    assert files_below(folder) == before


def test_a_baseline_may_be_written_anew(folder: Path, call: Caller) -> None:
    """The baseline that is read may be the one that is written; an older report is replaced."""
    (folder / "report.json").write_text("old")
    words = ["--baseline", "known.json", "--write-baseline", "known.json", "--format", "json", "-o", "report.json"]
    assert call("check", ".", "--no-cache", *words).code == 0
    assert (folder / "report.json").read_text().startswith("{") and '"entries": []' in (
        folder / "known.json"
    ).read_text()


def test_a_pipe_is_written_into(folder: Path, call: Caller) -> None:
    """What is no ordinary file is written into and stays what it is, whether all is there at once or not."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert call("check", "row_sum.py", "--no-cache", "--format", "junit", "-o", "pipe").code == 0
        assert os.read(reader, 1 << 16).endswith(b"</testsuites>\n")
        write_file(pipe, b"whole")
        assert os.read(reader, 1 << 16) == b"whole"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """A link leads to the file that is written, one that is there and one that is not."""
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to("file")
    write_file(link, b"first")
    assert link.is_symlink() and file.read_bytes() == b"first"
    with writing(link) as out:
        out.write("second")
    assert link.is_symlink() and file.read_bytes() == b"second"
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


def test_a_name_may_be_long(tmp_path: Path) -> None:
    """A name that is as long as the system allows is one that can be written."""
    path = tmp_path / ("a" * 255)
    write_file(path, b"content")
    with writing(path) as out:
        out.write("other")
    assert path.read_bytes() == b"other"
