"""Outcomes in a temporary file: all of them, in order, again and again, and nothing left behind."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from tests.cli.gate.strategies import RUNS, outcomes
from tests.cli.render.gate.made import finding, many, outcome
from tests.shares import one_in

from layoutproof.cli.gate.outcomes import Outcome, Spool
from layoutproof.ir.diagnostic import LayoutproofError

MEBIBYTE = 1 << 20


@given(outcomes())
def test_an_outcome_survives_being_written(one: Outcome) -> None:
    """An outcome that went through JSON is equal to the one that was written."""
    assert Outcome.from_dict(one.to_dict()) == one


@one_in(4)
@given(RUNS)
def test_outcomes_come_back_in_order_and_again(run: list[Outcome]) -> None:
    """Whatever the texts, two readings give what was added, and the length counts it."""
    with Spool() as spool:
        for one in run:
            spool.add(one)
        assert list(spool) == run and list(spool) == run
        assert len(spool) == len(run)


def test_lines_longer_than_a_reading() -> None:
    """An outcome of several megabytes between small ones comes back whole."""
    run = [
        outcome(name="first"),
        outcome(finding(message="x" * (3 * MEBIBYTE + 17)), name="long"),
        outcome(name="last"),
    ]
    with Spool() as spool:
        for one in run:
            spool.add(one)
        assert list(spool) == run


def test_reading_while_reading_and_adding() -> None:
    """Two readings at one time do not disturb each other, nor what is added meanwhile, which the next reading sees."""
    run = list(many(3000))
    with Spool() as spool:
        for one in run[:2000]:
            spool.add(one)
        first = iter(spool)
        taken = [next(first) for _ in range(500)]
        assert list(spool) == run[:2000]
        for one in run[2000:]:
            spool.add(one)
        assert taken + list(first) == run[:2000]
        assert list(spool) == run


@one_in(9)
def test_memory_stays_flat() -> None:
    """Six thousand outcomes, some three megabytes of JSON, are added and read in less than one."""
    with Spool() as spool:
        for one in many(100):
            spool.add(one)
        tracemalloc.start()
        try:
            for one in many(6_000):
                spool.add(one)
            assert sum(1 for _ in spool) == 6_100
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < MEBIBYTE


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No name stands in the temporary folder, neither during the run nor after one that failed; closing twice does no
    harm.
    """
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spool = Spool()
    with pytest.raises(KeyError), spool:
        for one in many(5000):
            spool.add(one)
        assert list(tmp_path.iterdir()) == []
        raise KeyError
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_no_folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is not there is an error for the user, which names the variable to set."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    spool = Spool()
    with pytest.raises(LayoutproofError) as caught:
        spool.add(next(iter(many(1))))
    [diagnostic] = caught.value.diagnostics
    assert diagnostic.code == "LP535" and "No such file" in diagnostic.message and "TMPDIR" in (diagnostic.help or "")


@pytest.mark.parametrize("number", [1, 5000])
def test_a_full_disk_is_told_of(number: int) -> None:
    """A disk without place raises the user's error, when adding or when reading, and the file is given back all the
    same.
    """
    spool = Spool()
    spool.add(next(iter(many(1))))
    assert spool._file is not None
    with open("/dev/full", "wb") as full:
        os.dup2(full.fileno(), spool._file.fileno())
    with pytest.raises(LayoutproofError, match="No space left"), spool:
        for one in many(number):
            spool.add(one)
        list(spool)
    assert spool._file.closed
