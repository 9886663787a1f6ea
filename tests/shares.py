"""Cases of which a test run takes some and the campaign the rest."""

from __future__ import annotations

import subprocess
import zlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")
_SLOWEST = 4
"""Tests of which a run takes a smaller part than one in so many are too slow for each value of crossed tables."""


def some(values: Iterable[T], count: int) -> list[ParameterSet]:
    """Parameters: the first `count` values for every run, the others for the campaign."""
    return chosen(values, lambda number: number < count)


def chosen(
    values: Iterable[T], is_taken: Callable[[int], bool], name: Callable[[T], str] | None = None
) -> list[ParameterSet]:
    """Parameters: for every run those whose number is taken, the others for the campaign; `name` gives them their
    ids.
    """
    found = [
        pytest.param(
            value, id=None if name is None else name(value), marks=() if is_taken(number) else pytest.mark.campaign
        )
        for number, value in enumerate(values)
    ]
    taken = sum(not each.marks for each in found)
    assert 0 < taken < len(found), f"of {len(found)} cases every run takes {taken}"
    return found


def one_in(part: int) -> pytest.MarkDecorator:
    """A mark on a slow test: every run takes one in `part` of its cases, and each value of each of crossed tables if
    `part` is 4 at most; the campaign the rest. Of a test of fewer cases some runs take one, the others none. Which ones
    they are changes with the share.
    """
    return pytest.mark.one_in(part)


def share_of_commit(folder: Path) -> int:
    """A number that follows from the commit, so that all cases are taken in time, and a run can be repeated; 0 without
    a repository.
    """
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False)
    return int(done.stdout[:4], 16) if done.returncode == 0 else 0


def share_out(items: Iterable[pytest.Item], share: int, named: Container[str] = ()) -> None:
    """Leave to the campaign what the marks `one_in` of these cases leave to it in this share, but for what was named
    alone.
    """
    tests: dict[str, list[pytest.Function]] = {}
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and item.get_closest_marker("one_in")
            and not item.get_closest_marker("campaign")
        ):
            tests.setdefault(item.nodeid.split("[", 1)[0], []).append(item)
    places: Counter[str] = Counter()
    for test, cases in tests.items():
        # The tests of a file take turns.
        file = test.partition("::")[0]
        taken = _taken(cases, share + zlib.crc32(file.encode()) + places[file])
        places[file] += 1
        for case in cases:
            if case.nodeid not in taken and case.nodeid not in named:
                case.add_marker(pytest.mark.campaign)


def _taken(cases: Sequence[pytest.Function], number: int) -> set[str]:
    """The cases of one test that a run takes: every so many, from a first one on that changes with the number."""
    if len(cases) < _part(cases[0]):
        return {case.nodeid for case in cases[number % _part(cases[0]) :][:1]}
    first = number % len(cases)
    taken: set[str] = set()
    seen: set[tuple[int, str]] = set()
    for count, case in enumerate([*cases[first:], *cases[:first]]):
        # One id for each table that is crossed.
        ids = set(enumerate(case.callspec._idlist))
        if count % _part(case) == 0 or (_part(case) <= _SLOWEST and len(ids) > 1 and not ids <= seen):
            seen |= ids
            taken.add(case.nodeid)
    return taken


def _part(case: pytest.Function) -> int:
    mark = case.get_closest_marker("one_in")
    assert mark is not None
    return int(mark.args[0])
