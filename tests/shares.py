"""Cases of which a test run takes some and the campaign the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")


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
    """A mark on a test of many cases: every run takes one in `part`, and each value of each of crossed tables; the
    campaign the rest.
    """
    return pytest.mark.one_in(part)


def share_out(items: Iterable[pytest.Item]) -> None:
    """Leave to the campaign what the marks `one_in` of these cases leave to it."""
    tests: dict[str, list[pytest.Function]] = {}
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and item.get_closest_marker("one_in")
            and not item.get_closest_marker("campaign")
        ):
            tests.setdefault(item.nodeid.split("[", 1)[0], []).append(item)
    for cases in tests.values():
        seen: set[tuple[int, str]] = set()
        for number, case in enumerate(cases):
            # One id for each table that is crossed.
            ids = set(enumerate(case.callspec._idlist))
            if number % _part(case) == 0 or (len(ids) > 1 and not ids <= seen):
                seen |= ids
            else:
                case.add_marker(pytest.mark.campaign)


def _part(case: pytest.Function) -> int:
    mark = case.get_closest_marker("one_in")
    assert mark is not None
    return int(mark.args[0])
