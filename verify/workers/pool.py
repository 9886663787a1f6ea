"""Work on many items in worker processes: results in order, a bounded number of items in progress.

Neighbouring items go to the same worker, a few at a time: similar items are next to each other, and a worker's caches
help. An idle worker takes from the others, so that a slow item delays nothing else.
"""

from __future__ import annotations

import selectors
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from layoutproof.verify.workers.endings import Ending, Limits, NoWorker
from layoutproof.verify.workers.worker import Worker

T = TypeVar("T")
R = TypeVar("R")

CHUNK = 8
WINDOW_PER_WORKER = 128
# One in progress, one waiting in the pipe.
_IN_FLIGHT = 2
_MOST_STILLBORN = 4


def run_in_workers(
    items: Iterable[T], work: Callable[[T], R], died: Callable[[T, Ending], R], limits: Limits, *, quiet: bool = False
) -> Generator[R, None, None]:
    """`work` on each item, in the order of the items, which are taken as needed. `died` gives the result of an item
    that exceeded a limit, or whose worker ended twice. Without limits, one worker needs no process.

    `work`, items and results are pickled; `quiet`: workers print nothing on standard error. When the iterator is
    closed, or an exception ends it, all its processes are gone. Raises NoWorker where no worker can be started, and
    what `work` and `items` raise.
    """
    if not limits.need_a_process:
        return (work(item) for item in items)
    return _Pool(items, work, died, limits, quiet).run()


def all_in_workers(
    items: Sequence[T],
    work: Callable[[T], R],
    died: Callable[[T, Ending], R],
    limits: Limits,
    told: Callable[[R], None] = lambda result: None,
    *,
    quiet: bool = False,
) -> list[R]:
    """As `run_in_workers`, all results at once; `told` is called with each."""
    found: list[R] = []
    fitting = replace(limits, workers=max(1, min(limits.workers, len(items))))
    with closing(run_in_workers(items, work, died, fitting, quiet=quiet)) as results:
        for result in results:
            found.append(result)
            told(result)
    return found


@dataclass(slots=True)
class _Job(Generic[T]):
    """An item by its number. `alone`: it is tried for the second time, by a worker of its own."""

    number: int
    item: T
    alone: bool = False


@dataclass(slots=True)
class _Seat(Generic[T, R]):
    """A place for one worker after the other: what waits for it, and what it was given, oldest first."""

    worker: Worker[T, R] | None = None
    waiting: deque[_Job[T]] = field(default_factory=deque)
    given: deque[_Job[T]] = field(default_factory=deque)
    retiring: bool = False


class _Pool(Generic[T, R]):
    def __init__(
        self, items: Iterable[T], work: Callable[[T], R], died: Callable[[T, Ending], R], limits: Limits, quiet: bool
    ) -> None:
        self._source: Iterator[T] | None = iter(items)
        self._work, self._died, self._limits, self._quiet = work, died, limits, quiet
        self._seats = [_Seat[T, R]() for _ in range(limits.workers)]
        self._window = WINDOW_PER_WORKER * limits.workers
        self._selector = selectors.DefaultSelector()
        self._leaving: list[Worker[T, R]] = []
        self._again: deque[_Job[T]] = deque()
        self._done: dict[int, R] = {}
        self._taken = self._next = 0
        self._stillborn = 0  # processes that ended while they started, since one was ready

    def run(self) -> Generator[R, None, None]:
        """See `run_in_workers`."""
        try:
            while True:
                self._hand_out()
                while self._next in self._done:
                    self._next += 1
                    yield self._done.pop(self._next - 1)
                    self._hand_out()
                if self._next == self._taken and self._source is None:
                    break
                self._listen()
            self._part()
        finally:
            self._close()

    def _hand_out(self) -> None:
        """Give each worker what it can take, one thing each before a second; start one if there is work for it."""
        for depth in range(_IN_FLIGHT):
            for seat in self._seats:
                if len(seat.given) == depth and not seat.retiring and not (seat.given and seat.given[0].alone):
                    job = self._next_for(seat)
                    if job is not None:
                        self._give(seat, job)

    def _give(self, seat: _Seat[T, R], job: _Job[T]) -> None:
        if seat.worker is None:
            seat.worker = Worker(self._work, self._limits, quiet=self._quiet)
            self._selector.register(seat.worker, selectors.EVENT_READ, seat)
        seat.given.append(job)
        seat.worker.give(job.number, job.item)
        self._watch(seat.worker)

    def _next_for(self, seat: _Seat[T, R]) -> _Job[T] | None:
        """A worker's next item: one that ended another worker, if this one is new; its own; a new one; another's."""
        if self._again and seat.worker is None:
            return self._again.popleft()
        if not seat.waiting:
            self._take(seat)
        if seat.waiting:
            return seat.waiting.popleft()
        if seat.given:
            return None  # it is busy: what it took from another would only wait elsewhere
        fullest = max(self._seats, key=lambda other: len(other.waiting))
        return fullest.waiting.pop() if fullest.waiting else None

    def _take(self, seat: _Seat[T, R]) -> None:
        while self._source is not None and len(seat.waiting) < CHUNK and self._taken - self._next < self._window:
            try:
                item = next(self._source)
            except StopIteration:
                self._source = None
                return
            seat.waiting.append(_Job(self._taken, item))
            self._taken += 1

    def _watch(self, worker: Worker[T, R]) -> None:
        """Wait for room in a worker's pipe only where there is something for it."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if worker.wants_to_write else 0)
        key = self._selector.get_key(worker)
        if key.events != events:
            self._selector.modify(worker, events, key.data)

    def _listen(self) -> None:
        """Wait until a worker has sent something or can take more."""
        for key, events in self._selector.select():
            seat: _Seat[T, R] = key.data
            assert seat.worker is not None
            if events & selectors.EVENT_WRITE:
                seat.worker.flush()
                self._watch(seat.worker)
            if events & selectors.EVENT_READ:
                self._hear(seat, seat.worker)

    def _hear(self, seat: _Seat[T, R], worker: Worker[T, R]) -> None:
        replies, alive = worker.replies()
        if worker.began:
            self._stillborn = 0
        for reply in replies:
            job = seat.given.popleft()
            assert job.number == reply.number
            self._done[job.number] = reply.result
        if not alive:
            self._bury(seat, worker)
        elif replies and worker.is_spent:
            seat.retiring = True
        if seat.retiring and not seat.given and seat.worker is not None:
            self._dismiss(seat, worker)

    def _bury(self, seat: _Seat[T, R], worker: Worker[T, R]) -> None:
        """A worker has ended: its first unanswered item is tried once more or reported; the rest waits."""
        self._leave(seat, worker)
        fresh = worker.served == 0
        ending = worker.wait_for_end()
        if not worker.began:
            # One that is killed costs its item at most; if none comes to work, it is no item's fault.
            self._stillborn += 1
            if self._stillborn > max(_MOST_STILLBORN, 2 * len(self._seats)):
                raise NoWorker.at_start(ending)
        given, seat.given = seat.given, deque()
        if given:
            job = given.popleft()
            # A limit of memory that a worker reached alone is the item's own, and so is one of time.
            if job.alone or ending.why == "time" or (ending.why == "memory" and fresh):
                self._done[job.number] = self._died(job.item, ending)
            else:
                self._again.append(_Job(job.number, job.item, alone=True))
        seat.waiting.extendleft(reversed(given))

    def _dismiss(self, seat: _Seat[T, R], worker: Worker[T, R]) -> None:
        """Let a spent worker end."""
        self._leave(seat, worker)
        worker.no_more_items()
        self._leaving.append(worker)
        if len(self._leaving) > len(self._seats):
            self._leaving.pop(0).wait_for_end()

    def _leave(self, seat: _Seat[T, R], worker: Worker[T, R]) -> None:
        self._selector.unregister(worker)
        seat.worker, seat.retiring = None, False

    def _part(self) -> None:
        """Let every worker end, and wait for them."""
        for seat in self._seats:
            if seat.worker is not None:
                seat.worker.no_more_items()
                self._leaving.append(seat.worker)
                self._leave(seat, seat.worker)
        for worker in self._leaving:
            worker.wait_for_end()

    def _close(self) -> None:
        """End what is left at once."""
        self._selector.close()
        left = [*self._leaving, *(seat.worker for seat in self._seats if seat.worker is not None)]
        for worker in left:
            worker.hang_up()
        for worker in left:
            worker.close()
