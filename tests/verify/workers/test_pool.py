"""One pool of worker processes: results in order, what a process does costs its own item, and what work raises is
raised.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.shares import one_in

from layoutproof.verify.workers.endings import Ending, Limits
from layoutproof.verify.workers.pool import all_in_workers, run_in_workers


def work(item: int) -> int:
    """Ten times a number; 2 ends its process, 4 takes long, 5 raises."""
    match item:
        case 2:
            os._exit(9)
        case 4:
            time.sleep(600)
        case 5:
            raise ValueError("five")
        case _:
            pass
    return item * 10


def process_of(item: int) -> int:
    """The process that works on an item."""
    return os.getpid()


class _Cycle:
    """Something that refers to itself, with weight."""

    def __init__(self) -> None:
        self.itself, self.weight = self, bytes(1000)


def cycles_left(item: int) -> int:
    """How many of so many cycles are still there once they were all let go."""
    for _ in range(item):
        _Cycle()
    return sum(isinstance(each, _Cycle) for each in gc.get_objects())


def threshold(item: int) -> int:
    """After how many new objects the process looks for cycles."""
    return gc.get_threshold()[0]


def died(item: int, ending: Ending) -> int:
    """Of an item whose process ended: its negation, times ten where that took too long."""
    return -item * (10 if ending.why == "time" else 1)


def test_workers_look_for_cycles_seldom_and_find_them() -> None:
    """A worker's process searches less often than this one, which is left as it is, and cycles do not add up."""
    own = gc.get_threshold()
    (seldom,) = all_in_workers([1], threshold, died, Limits(1, seconds=60))
    assert seldom >= 10_000
    assert gc.get_threshold() == own
    assert all_in_workers([5 * seldom], cycles_left, died, Limits(1, seconds=60))[0] <= 2 * seldom


@one_in(10)
@pytest.mark.parametrize("jobs", [2, 3])
def test_a_process_that_dies_costs_its_own_item(jobs: int) -> None:
    """Work in processes keeps its order; an item whose process ends by itself gets its own result, and the others
    theirs.
    """
    heard: list[int] = []
    assert all_in_workers([1, 2, 3], work, died, Limits(jobs), heard.append) == [10, -2, 30]
    assert heard == [10, -2, 30]


@pytest.mark.parametrize("killed", [1, 2])
def test_a_worker_that_is_killed_while_it_starts(killed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It costs its item another trial, or the item, and not the run."""
    python = tmp_path / "python"
    count = f"n=$(ls {tmp_path}/start* 2>/dev/null | wc -l); mktemp {tmp_path}/startXXXX >/dev/null\n"
    python.write_text(f'#!/bin/sh\n{count}[ "$n" -lt {killed} ] && kill -9 $$\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))
    found = all_in_workers([1, 3, 6], work, died, Limits(1, seconds=500))
    assert found == ([10, 30, 60] if killed == 1 else [-1, 30, 60])


@one_in(4)
def test_an_item_that_takes_long() -> None:
    """An item that takes more than its time is ended, and the next one is worked on."""
    assert all_in_workers([1, 4, 3], work, died, Limits(1, seconds=0.5)) == [10, -40, 30]


@one_in(4)
@pytest.mark.parametrize("limits", [Limits(), Limits(2)], ids=["here", "two"])
def test_what_work_raises(limits: Limits) -> None:
    """What is raised in a process is raised where the results are waited for, and the results before it are there."""
    heard: list[int] = []
    with pytest.raises(ValueError, match="five"):
        all_in_workers([1, 3, 5], work, died, limits, heard.append)
    assert set(heard) <= {10, 30}


def test_one_item_needs_no_process() -> None:
    """One worker without limits is this process, and one item takes one worker."""
    assert all_in_workers([1, 2], process_of, died, Limits()) == [os.getpid()] * 2
    assert all_in_workers([1], process_of, died, Limits(4)) == [os.getpid()]
    for limits in (Limits(4), Limits(4, seconds=1.0)):
        assert all_in_workers([], process_of, died, limits) == []


@one_in(4)
def test_nothing_is_left_of_a_run_that_is_given_up() -> None:
    """When the results are waited for no more, the processes are gone."""
    with closing(run_in_workers(iter(range(100)), process_of, died, Limits(2))) as results:
        number = next(results)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
