"""Outcomes that are known already among those that are not: the order of the items, and no worker where all are
known.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutproof.cli.gate.check_items import Item
from layoutproof.cli.gate.outcomes import Kind, Outcome
from layoutproof.cli.gate.workers.pool import AHEAD, run_recalling

Seen = list[str]


def item(number: int) -> Item:
    """An item with a name of its own."""
    return Item(Kind.TRACE, str(number), "log.jsonl", number + 1)


def outcome(one: Item, cached: bool) -> Outcome:
    """What becomes of it."""
    return Outcome(one.kind, one.name, "p", None, "proved", cached=cached)


def recall(known: Callable[[int], bool]) -> Callable[[Item], Outcome | None]:
    """Knows the items whose number says so."""
    return lambda one: outcome(one, True) if known(int(one.name)) else None


def runner(seen: Seen, window: int) -> Callable[[Iterator[Item]], Generator[Outcome, None, None]]:
    """Judges items, taking up to `window` of them ahead, and remembers which."""

    def run(items: Iterator[Item]) -> Generator[Outcome, None, None]:
        while chunk := list(islice(items, window)):
            seen.extend(one.name for one in chunk)
            yield from (outcome(one, False) for one in chunk)

    return run


@given(st.lists(st.booleans(), max_size=700), st.integers(1, 40))
def test_the_order_of_the_items(known: list[bool], window: int) -> None:
    """Whatever is known, and however far the workers look ahead, outcomes come in order, and only what is unknown is
    judged.
    """
    seen: Seen = []
    found = list(run_recalling(map(item, range(len(known))), recall(lambda k: known[k]), runner(seen, window)))
    assert [one.name for one in found] == [str(k) for k in range(len(known))]
    assert [one.cached for one in found] == known
    assert seen == [str(k) for k, there in enumerate(known) if not there]


def test_nothing_is_started_where_all_is_known() -> None:
    """Workers are not asked for at all."""

    def run(items: Iterator[Item]) -> Generator[Outcome, None, None]:
        pytest.fail("workers were started")
        yield from ()

    assert len(list(run_recalling(map(item, range(5000)), recall(lambda k: True), run))) == 5000


def test_what_waits_is_bounded() -> None:
    """Of a log without end, of which all but the first item is known, only so much is read before the first is
    judged.
    """
    taken = count()

    def endless() -> Iterator[Item]:
        for number in taken:
            yield item(number)

    found = run_recalling(endless(), recall(lambda k: k > 0), runner([], 4))
    assert next(found).name == "0"
    assert next(taken) < 2 * AHEAD
    found.close()


def test_closing_reaches_the_workers() -> None:
    """Who stops half way closes what was begun."""
    closed: list[bool] = []

    def run(items: Iterator[Item]) -> Generator[Outcome, None, None]:
        try:
            for one in items:
                yield outcome(one, False)
        finally:
            closed.append(True)

    found = run_recalling(map(item, range(10)), recall(lambda k: False), run)
    next(found)
    found.close()
    assert closed == [True]


def test_an_item_that_is_lost() -> None:
    """Workers that end without an outcome for each item do not end a run as if there had been no such item."""

    def run(items: Iterator[Item]) -> Generator[Outcome, None, None]:
        taken = list(items)
        yield from (outcome(one, False) for one in taken[:-1])

    with pytest.raises(RuntimeError, match="without an outcome: 1"):
        list(run_recalling(map(item, range(9)), recall(lambda k: k % 2 == 1), run))
