"""The limits of an item in a gate's run, and the outcome of an item that exceeds them or whose worker dies.

Such an outcome is `unknown`, with a finding of its own code. It depends on the machine and the moment, so it is never
cached.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass

from layoutproof.cli import codes
from layoutproof.cli.gate.check_items import Item, Options
from layoutproof.cli.gate.outcomes import Finding, Outcome, Place
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.verify.workers.endings import Ending, NoWorker
from layoutproof.verify.workers.endings import Limits as WorkerLimits

Judge = Callable[[Item, Options], Outcome]

_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits(WorkerLimits):
    """Where items are judged, and with which limits: on this machine, or on the fleet of the scheduler at `dask`."""

    dask: str | None = None


def judge_one(judge: Judge, options: Options, item: Item) -> Outcome:
    """The judge's outcome; if it raises, which no input should cause, an unknown with the exception and its place.

    This isolates items: whatever one of them does, the next is judged.
    """
    try:
        return judge(item, options)
    except (Exception, SystemExit) as problem:  # noqa: BLE001  # see above: the exception is reported
        return failed(item, problem)


def failed(item: Item, problem: BaseException) -> Outcome:
    """The outcome of an item whose judge raised."""
    frames = traceback.extract_tb(problem.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    text = f"{type(problem).__name__}: {problem}".rstrip(": ")
    help_ = "this is a fault of layoutproof, or of code that the file runs; please report it if it is ours"
    return _unknown(item, codes.JUDGE_FAILED, f"judging it failed: {text}{where}", help_)


def ended(limits: Limits, item: Item, ending: Ending) -> Outcome:
    """The outcome of an item whose worker ended."""
    if ending.why == "time" and limits.seconds is not None:
        help_ = "allow more time, or make what it checks smaller"
        return _unknown(item, codes.TIMEOUT, f"ended after {limits.seconds:g} s (--timeout)", help_, limits.seconds)
    if ending.why == "memory" and limits.memory is not None:
        size = f"{limits.memory / _MEGABYTE:g} MB"
        return _unknown(
            item, codes.WORKER_MEMORY, f"ended because its worker took more than {size} (--memory)", "allow more memory"
        )
    if ending.why == "fleet":
        help_ = (
            "the item, or what runs on those machines besides, takes more than they have; --memory ends the item alone"
        )
        return _unknown(item, codes.WORKER_DIED, "the fleet's workers died with it, one after the other", help_)
    message = f"its worker process {ending}, twice; the second time with nothing but this item"
    help_ = (
        "a crash of a solver or of code that the file runs, or the system was out of memory (try fewer "
        "workers, or --memory)"
    )
    return _unknown(item, codes.WORKER_DIED, message, help_)


def no_worker(problem: NoWorker) -> LayoutproofError:
    """The error if no worker process can be started."""
    return error(codes.WORKER_DIED, str(problem), help="use fewer workers")


def _unknown(item: Item, code: str, message: str, help_: str, seconds: float = 0.0) -> Outcome:
    place = Place(item.path, item.line, end_line=item.line, end_column=1)
    finding = Finding(code, message, "unknown", place=place, help=help_)
    return Outcome(
        item.kind, item.name, item.program or item.path, place, "unknown", findings=(finding,), seconds=seconds
    )
