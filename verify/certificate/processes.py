"""Work on many items in processes of their own, in the order of the items; a process that dies costs its own item only."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_processes(work: Callable[[T], R], items: Sequence[T], jobs: int, died: Callable[[T], R], told: Callable[[R], None]) -> list[R]:
    """`work` on each item; `died` gives the result of one whose process ended by itself, twice. `told` hears of each result.

    One job, or one item, needs no process. `work`, items and results are pickled.
    """
    found: list[R] = []

    def keep(result: R) -> None:
        found.append(result)
        told(result)

    if jobs == 1 or len(items) < 2:
        for item in items:
            keep(work(item))
        return found
    with _executor(min(jobs, len(items))) as executor:
        futures = [executor.submit(work, item) for item in items]
        try:
            for future in futures:
                keep(future.result())
        except BrokenProcessPool:
            # One item's process took the others' with it; those that are left have one each.
            executor.shutdown(wait=True, cancel_futures=True)
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise
    for item in items[len(found) :]:
        keep(_alone(work, item, died))
    return found


def _executor(jobs: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))


def _alone(work: Callable[[T], R], item: T, died: Callable[[T], R]) -> R:
    with _executor(1) as executor:
        try:
            return executor.submit(work, item).result()
        except BrokenProcessPool:
            return died(item)
