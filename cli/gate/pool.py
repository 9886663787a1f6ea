"""Where the items of a run are judged: here, in worker processes, or by a fleet; outcomes come in the order of the items."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from functools import partial

from layoutproof.cli.gate.items import Item, Options
from layoutproof.cli.gate.limits import Judge, Limits, ended, judge_one, no_worker
from layoutproof.cli.gate.outcome import Outcome
from layoutproof.verify.workers.pool import run_in_workers
from layoutproof.verify.workers.worker import NoWorker


def run_items(items: Iterable[Item], judge: Judge, options: Options, limits: Limits) -> Generator[Outcome, None, None]:
    """The outcome of each item, in the order of the items, which are taken as they are needed. `judge` is a function of a module.

    When the iterator is closed, or ended by an exception, all processes that it started are gone. Raises LayoutproofError where no worker
    can be started, and whatever `items` raises.
    """
    if limits.dask is not None:
        from layoutproof.cli.gate.dask_fleet import run_on_fleet

        return run_on_fleet(items, judge, options, limits)
    return _here(items, judge, options, limits)


def _here(items: Iterable[Item], judge: Judge, options: Options, limits: Limits) -> Generator[Outcome, None, None]:
    try:
        yield from run_in_workers(items, partial(judge_one, judge, options), partial(ended, limits), limits)
    except NoWorker as problem:
        raise no_worker(problem) from problem
