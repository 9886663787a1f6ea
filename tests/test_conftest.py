"""The golden-file comparison itself: a comparison that cannot fail would hide every change of output."""

import contextlib
import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Golden
from tests.shares import share_of_commit
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


@pytest.mark.one_in(5)
@pytest.mark.parametrize("inner", ["a", "b"])
@pytest.mark.parametrize("outer", range(3))
def test_slow(outer, inner):
    pass


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("first", "second"), [(n, 0) for n in range(5)])
def test_table(first, second):
    pass


@pytest.mark.one_in(3)
def test_alone():
    pass


@pytest.mark.one_in(3)
@pytest.mark.parametrize("number", range(2))
def test_few(number):
    pass
"""
CROSSED_IDS = {f"test_crossed[{outer}-{inner}]" for outer in range(3) for inner in "ab"}
SLOW_IDS = {each.replace("crossed", "slow") for each in CROSSED_IDS}
TABLE_IDS = {f"test_table[{number}-0]" for number in range(5)}
EVERY_ID = CROSSED_IDS | SLOW_IDS | TABLE_IDS | {"test_alone", "test_few[0]", "test_few[1]"}


@pytest.fixture
def collected(tmp_path: Path) -> Callable[..., set[str]]:
    """The tests of a file that a run takes."""
    (tmp_path / "test_it.py").write_text(CROSSED)
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers = campaign\n    one_in\npythonpath = {ROOT}\n")

    def collect(share: int, *arguments: str) -> set[str]:
        # In this process: the start of another one takes most of the time, and this is asked many times.
        said = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
            patch.chdir(tmp_path)
            options = ("-c", "pytest.ini", "-p", "no:cacheprovider", "--import-mode=importlib", "--collect-only", "-q")
            code = pytest.main([*options, f"--share={share}", *arguments])
        assert code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), said.getvalue()
        return {line.partition("::")[2] for line in said.getvalue().splitlines() if "::" in line}

    return collect


def test_a_share_of_each_table_is_taken(collected: Callable[..., set[str]]) -> None:
    """Of a table one case in so many, of crossed tables each value of each unless they are of the slowest; the campaign
    has exactly the others.
    """
    for share in (0, 1):
        taken, left = collected(share, "-m", "not campaign"), collected(share, "-m", "campaign")
        assert not taken & left and taken | left == EVERY_ID
        assert len(taken & TABLE_IDS) == len(taken & SLOW_IDS) == 2
        of_crossed = taken & CROSSED_IDS
        assert len(of_crossed) < len(CROSSED_IDS)
        assert all(any(value in case for case in of_crossed) for value in ("[0-", "[1-", "[2-", "-a]", "-b]"))


def test_shares_take_everything_in_turn(collected: Callable[..., set[str]]) -> None:
    """Each case is taken by some share, and each of a test of fewer cases by one in so many, alone."""
    runs = [collected(share, "-m", "not campaign") for share in range(6)]
    assert set().union(*runs) == EVERY_ID
    for name in ("test_alone", "test_few[0]", "test_few[1]"):
        assert sum(name in run for run in runs) == 2
    assert not any({"test_few[0]", "test_few[1]"} <= run for run in runs)


def test_what_is_named_or_renewed_is_taken(collected: Callable[..., set[str]]) -> None:
    """A case that is named on the command line is taken by every share, and golden files are renewed by all cases."""
    named = ("test_it.py::test_alone", "test_it.py::test_table[4-0]")
    assert all(
        collected(share, "-m", "not campaign", *named) == {"test_alone", "test_table[4-0]"} for share in range(3)
    )
    everything = collected(0, "-m", "not campaign", "--update-golden")
    assert everything == EVERY_ID


def test_the_share_follows_from_the_commit(tmp_path: Path) -> None:
    """The share is a number that the commit gives, and 0 where there is none."""
    assert share_of_commit(tmp_path) == 0
    assert 0 <= share_of_commit(ROOT) < 1 << 16


def test_workers_agree_on_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that collects from the end has the tests in the order of the others, and loads the last file first."""
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers = campaign\n    one_in\npythonpath = {ROOT}\n")
    monkeypatch.chdir(tmp_path)
    options = ("-c", "pytest.ini", "-p", "no:cacheprovider", "--import-mode=importlib", "--collect-only", "-qs")
    loaded, collected = [], []
    for worker in ("gw0", "gw1"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        for name in ("a/test_x", "a/test_y", "b/c/test_x", "test_z"):
            file = tmp_path / f"of_{worker}" / f"{name}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(
                f"import pytest\nprint({name!r})\n@pytest.mark.parametrize('n', 'ab')\ndef test_it(n): ...\n"
            )
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            assert pytest.main([*options, f"of_{worker}"]) == pytest.ExitCode.OK
        lines = said.getvalue().splitlines()
        collected.append([line.partition("/")[2] for line in lines if "::" in line])
        loaded.append([line for line in lines if "::" not in line][:4])
    assert len(collected[0]) == 8 and collected[1] == collected[0]
    assert len(set(loaded[0])) == 4 and loaded[1] == loaded[0][::-1]
