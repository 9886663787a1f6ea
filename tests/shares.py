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


def chosen(values: Iterable[T], is_taken: Callable[[int], bool], name: Callable[[T], str] | None = None) -> list[ParameterSet]:
    """Parameters: for every run those whose number is taken, the others for the campaign; `name` gives them their ids."""
    found = [
        pytest.param(value, id=None if name is None else name(value), marks=() if is_taken(number) else pytest.mark.campaign)
        for number, value in enumerate(values)
    ]
    taken = sum(not each.marks for each in found)
    assert 0 < taken < len(found), f"of {len(found)} cases every run takes {taken}"
    return found
