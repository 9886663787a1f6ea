"""Items whose outcome is known already, told at once: they need no worker, and a run that knows all of them starts none."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice

from layoutproof.cli.gate.items import Item
from layoutproof.cli.gate.outcome import Outcome

Recall = Callable[[Item], Outcome | None]
Run = Callable[[Iterator[Item]], Generator[Outcome, None, None]]

CHUNK = 256
AHEAD = 2048
"""Outcomes that may wait for an earlier item; past it items go to the workers unasked, who know them as well."""


def run_recalling(items: Iterable[Item], recall: Recall, run: Run) -> Generator[Outcome, None, None]:
    """The outcome of each item in the order of the items: what `recall` knows, and of the others what `run` makes of them, in order."""
    source = iter(items)
    while chunk := list(islice(source, CHUNK)):
        known = [recall(item) for item in chunk]
        if any(outcome is None for outcome in known):
            yield from _mixed(chain(chunk, source), recall, run)
            return
        yield from (outcome for outcome in known if outcome is not None)


def _mixed(items: Iterator[Item], recall: Recall, run: Run) -> Generator[Outcome, None, None]:
    # In the order of the items: an outcome that is known, or None for one that the next result of `run` is.
    order: deque[Outcome | None] = deque()

    def unknown() -> Iterator[Item]:
        for item in items:
            outcome = recall(item) if len(order) < AHEAD else None
            order.append(outcome)
            if outcome is None:
                yield item

    with closing(run(unknown())) as outcomes:
        for outcome in outcomes:
            # Asking for this one has taken items that stand before it.
            yield from _known(order)
            order.popleft()
            yield outcome
    yield from _known(order)
    if order:
        # A run that ends early must not look like one that is complete.
        raise RuntimeError(f"items without an outcome: {len(order)}")


def _known(order: deque[Outcome | None]) -> Iterator[Outcome]:
    while order and (outcome := order[0]) is not None:
        order.popleft()
        yield outcome
