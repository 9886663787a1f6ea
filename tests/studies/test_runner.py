"""Runs of studies: resumed after any kill, in shards, with any number of workers, the results are the same bytes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.shares import one_in, some

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.studies.journal import Journal, kept_in, line_of, read_journal
from layoutproof.studies.report.data_files import csv_text, json_lines
from layoutproof.studies.runner import Progress, RunOptions, Shard, run_study
from layoutproof.studies.study_file import Study, load_study, parse_study
from layoutproof.verify.workers.endings import Limits

STUDY = """schema = 1
name = "small"

[[grid]]
operators = ["sum", "any", "relu"]
types = ["float32", "int32"]
policies = ["producer-writes", "undef-once"]
values = ["0", "1"]
"""
SCRIPT = """
import sys
from pathlib import Path
from layoutproof.studies.runner import RunOptions, run_study
from layoutproof.studies.study_file import load_study
run_study(load_study(sys.argv[1]), Path(sys.argv[2]), RunOptions(cache=sys.argv[3]))
"""


def small() -> Study:
    """A study of some cells, each decided in tenths of a second."""
    return parse_study(STUDY, "small.toml", Path())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The data of an uninterrupted run, and the proof cache that it filled."""
    folder = tmp_path_factory.mktemp("whole")
    cache = folder / "cache.sqlite"
    records = run_study(small(), folder / "results", RunOptions(cache=str(cache)))
    assert records is not None
    return json_lines(small(), records), cache


@one_in(10)
@pytest.mark.parametrize("kills", some((2, 10), 1))
def test_a_run_that_is_killed_goes_on(whole: tuple[str, Path], tmp_path: Path, kills: int) -> None:
    """Killed at random times, then run to the end, it has the same bytes as without."""
    expected, cache = whole
    path, folder = tmp_path / "small.toml", tmp_path / "results"
    path.write_text(STUDY)
    chance, journal = random.Random(kills), folder / "journal.jsonl"
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(path), str(folder), str(cache)], stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        wanted = (journal.stat().st_size if journal.exists() else 0) + chance.randint(0, 900)
        while process.poll() is None and time.monotonic() < deadline:
            if journal.exists() and journal.stat().st_size > wanted:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if journal.exists():
            with journal.open("ab") as file:
                file.write(b'{"number":3,"record":{"opera')
    records = run_study(load_study(str(path)), folder, RunOptions(cache=str(cache)))
    assert records is not None
    assert json_lines(small(), records) == expected
    assert not any(each.startswith(b"{}") for each in csv_text(records).encode().splitlines())


@one_in(7)
def test_shards_and_workers_make_the_same(whole: tuple[str, Path], tmp_path: Path) -> None:
    """Of three parts the last one that runs has all records, in the order of the study."""
    expected, cache = whole
    found = None
    for number in (2, 3, 1):
        options = RunOptions(Limits(workers=2 if number == 1 else 1), Shard(number, 3), str(cache))
        found = run_study(small(), tmp_path, options)
        assert (found is None) == (number != 1)
    assert found is not None
    assert json_lines(small(), found) == expected


def test_progress_tells_what_is_left(whole: tuple[str, Path], tmp_path: Path) -> None:
    """Each finished cell is told with how many there are and the seconds that are left."""
    told: list[Progress] = []
    run_study(small(), tmp_path, RunOptions(cache=str(whole[1])), told.append)
    assert [each.done for each in told] == list(range(1, len(small().cells()) + 1))
    assert told[-1].left == 0
    assert {each.total for each in told} == {len(small().cells())}


def test_a_journal_of_another_study_is_refused(tmp_path: Path) -> None:
    """A folder with results of another study is left as it is, and named."""
    Journal.open(tmp_path / "journal.jsonl", "one").close()
    before = (tmp_path / "journal.jsonl").read_bytes()
    with pytest.raises(LayoutproofError, match="another study"):
        Journal.open(tmp_path / "journal.jsonl", "two")
    assert (tmp_path / "journal.jsonl").read_bytes() == before


def test_a_line_counts_if_it_is_whole(tmp_path: Path) -> None:
    """Whatever is cut off or changed at the end of a journal is not read, and is gone once a line is added."""
    path = tmp_path / "journal.jsonl"
    journal = Journal.open(path, "one")
    journal.add({"number": 0, "record": {}})
    journal.close()
    good = path.read_bytes()
    more = line_of({"number": 1, "record": {"operator": "sum"}})
    for cut in range(len(more)):
        path.write_bytes(good + more[:cut])
        assert [line["number"] for line in read_journal(path, "one")] == [0]
    path.write_bytes(good + more.replace(b"sum", b"max"))
    assert len(list(read_journal(path, "one"))) == 1
    again = Journal.open(path, "one")
    again.add({"number": 2, "record": {}})
    again.close()
    assert [line["number"] for line in read_journal(path, "one")] == [0, 2]


@one_in(4)
def test_a_cell_that_takes_too_long_is_unknown(tmp_path: Path) -> None:
    """A limit of time ends the cell alone, and its record says so."""
    text = STUDY.replace('["sum", "any", "relu"]', '["sum"]').replace('["float32", "int32"]', '["int32"]')
    study = parse_study(text, "small.toml", Path())
    records = run_study(study, tmp_path, RunOptions(Limits(workers=1, seconds=0.001), cache=None))
    assert records is not None
    assert {(r["verdict"], r["reason"]) for r in records} == {("unknown", "it took longer than its limit")}
    assert os.listdir(tmp_path)


def test_what_is_kept_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is made once is there whole or not at all, and one that is damaged is an error that names it."""
    path = tmp_path / "kept.json"

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            kept_in(path, lambda: {"a": 1})
    assert list(tmp_path.iterdir()) == []
    assert kept_in(path, lambda: {"a": 1}) == kept_in(path, stop) == {"a": 1}
    path.write_text(path.read_text(encoding="utf-8")[:5], encoding="utf-8")
    with pytest.raises(LayoutproofError, match=r"kept\.json is damaged"):
        kept_in(path, stop)
