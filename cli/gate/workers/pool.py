"""Items judged by worker processes: outcomes in the order of the items, a bounded number in flight.

Cached outcomes are returned at once and need no worker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import chain, islice

from layoutproof.cli.gate.check_items import Item, Options
from layoutproof.cli.gate.outcomes import Outcome
from layoutproof.cli.gate.workers.item_limits import Judge, Limits, ended, judge_one, no_worker
from layoutproof.verify.workers.endings import NoWorker


def run_items(items: Iterable[Item], judge: Judge, options: Options, limits: Limits) -> Generator[Outcome, None, None]:
    """The outcome of each item, in order; items are taken as needed. `judge` is a module's function.

    All started processes are gone when the iterator is closed or ended by an exception. Raises LayoutproofError if no
    worker can be started, and whatever `items` raises.
    """
    if limits.dask is not None:
        from layoutproof.cli.gate.workers.dask_fleet import run_on_fleet

        return run_on_fleet(items, judge, options, limits)
    return _here(items, judge, options, limits)


def _here(items: Iterable[Item], judge: Judge, options: Options, limits: Limits) -> Generator[Outcome, None, None]:
    # One schedule that is known needs no process, and this file only in order to ask.
    from layoutproof.verify.workers.pool import run_in_workers

    try:
        yield from run_in_workers(items, partial(judge_one, judge, options), partial(ended, limits), limits)
    except NoWorker as problem:
        raise no_worker(problem) from problem


Recall = Callable[[Item], Outcome | None]
Run = Callable[[Iterator[Item]], Generator[Outcome, None, None]]

CHUNK = 256
AHEAD = 2048
"""Outcomes that may wait for an earlier item; past it items go to the workers unasked, who know them as well."""


def run_recalling(items: Iterable[Item], recall: Recall, run: Run) -> Generator[Outcome, None, None]:
    """The outcome of each item, in order: from `recall` if known, else from `run`."""
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
