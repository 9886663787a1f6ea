"""The golden-file comparison itself: a comparison that cannot fail would hide every change of output."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Golden
from tests.tree import ROOT


def test_equal_text_passes(tmp_path: Path) -> None:
    """Text equal to its golden file passes."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    Golden(tmp_path, update=False)("a.txt", "one\ntwo\n")


@pytest.mark.parametrize("text", ["one\n2\n", "one\ntwo", "one\r\ntwo\r\n", "", "one\ntwo\n\n"])
def test_any_difference_fails_and_is_shown(tmp_path: Path, text: str) -> None:
    """Text that differs in a letter, a line ending or the last newline fails, and the failure shows a diff."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    with pytest.raises(pytest.fail.Exception, match=r"(?s)--update-golden.*[-+]"):
        Golden(tmp_path, update=False)("a.txt", text)
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"


def test_missing_file_fails(tmp_path: Path) -> None:
    """A golden file that does not exist fails the test and is not made on the side."""
    with pytest.raises(pytest.fail.Exception, match="no golden file"):
        Golden(tmp_path, update=False)("a.txt", "one\n")
    assert not list(tmp_path.iterdir())


def test_update_writes_the_text(tmp_path: Path) -> None:
    """Updating writes exactly the text, folders included, and the comparison then passes."""
    Golden(tmp_path, update=True)("deep/a.txt", "one\r\ntwo")
    assert (tmp_path / "deep" / "a.txt").read_bytes() == b"one\r\ntwo"
    Golden(tmp_path, update=False)("deep/a.txt", "one\r\ntwo")


def test_entries_of_a_table(tmp_path: Path) -> None:
    """An entry is written, found again beside others, and compared with what was given and the text."""
    for name in ("one", "two", "one"):
        Golden(tmp_path, update=True).entry("a.txt", name, f"text of {name}\n\nits end\n", "x" * 200)
    golden = Golden(tmp_path, update=False)
    golden.entry("a.txt", "one", "text of one\n\nits end\n", "x" * 200)
    for name, text, given in (
        ("one", "another\n", "x" * 200),
        ("two", "text of two\n\nits end\n", ""),
        ("three", "new\n", ""),
    ):
        with pytest.raises(pytest.fail.Exception, match="--update-golden"):
            golden.entry("a.txt", name, text, given)


def test_names_outside_the_folder_are_refused(tmp_path: Path) -> None:
    """A golden file cannot be written outside its folder."""
    with pytest.raises(ValueError, match="lies below"):
        Golden(tmp_path / "golden", update=True)("../a.txt", "one\n")
    assert not (tmp_path / "a.txt").exists()


CROSSED = """
import pytest


@pytest.mark.one_in(4)
@pytest.mark.parametrize("inner", ["a", "b"])
@pytest.mark.parametrize("outer", range(3))
def test_crossed(outer, inner):
    pass


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("first", "second"), [(n, 0) for n in range(5)])
def test_table(first, second):
    pass
"""


def test_a_share_of_each_table_is_taken(tmp_path: Path) -> None:
    """Of a table one case in so many, of crossed tables each value of each; the campaign has exactly the others."""
    (tmp_path / "test_it.py").write_text(CROSSED)
    hook = "from tests.shares import share_out\n\n\ndef pytest_collection_modifyitems(items):\n    share_out(items)\n"
    (tmp_path / "conftest.py").write_text(
        hook.replace("def", "import pytest\n\n\n@pytest.hookimpl(tryfirst=True)\ndef", 1)
    )
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers = campaign\n    one_in\npythonpath = {ROOT}\n")
    listed = {}
    for chosen in ("campaign", "not campaign"):
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-c",
            "pytest.ini",
            "-p",
            "no:hypothesispytest",
            "--collect-only",
            "-q",
            "-m",
            chosen,
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
        listed[chosen] = [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]
    assert listed["not campaign"] == [
        "test_crossed[0-a]", "test_crossed[0-b]", "test_crossed[1-a]", "test_crossed[2-a]",
        "test_table[0-0]", "test_table[3-0]",
    ]  # fmt: skip
    assert listed["campaign"] == [
        "test_crossed[1-b]",
        "test_crossed[2-b]",
        "test_table[1-0]",
        "test_table[2-0]",
        "test_table[4-0]",
    ]
