"""Ctrl-C and SIGTERM during a run: the first ends it in good order, and no second one gets in the way of that.

Python's own KeyboardInterrupt is not enough: a second one, in the middle of the clean-up that the first began, would end the clean-up; and
SIGTERM would end the process with no clean-up at all.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from layoutproof.verify.smt.solver import outside_finalisers

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# By then a clean-up is over, or stuck, or the exception was lost (one that is raised while an object is finalized is).
PATIENCE_SECONDS = 3.0


class Stopped(BaseException):
    """The process was told to end; no `except Exception` keeps it from that."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """What a shell reports for a process that the signal ended: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + self.number

    def __str__(self) -> str:
        return "interrupted" if self.number == signal.SIGINT else f"ended by {signal.Signals(self.number).name}"


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Within it SIGINT, SIGTERM and SIGHUP raise Stopped, once in a few seconds; a signal that is ignored stays so (`nohup`).

    Whoever catches Stopped ends the process with its exit code: after one, signals are ignored.

    Outside a process's main thread, where Python has no signals, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    last: float | None = None

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.monotonic()
        if last is not None and now - last < PATIENCE_SECONDS:
            return
        last = now
        raise Stopped(number)

    before = {number: signal.getsignal(number) for number in _NUMBERS}
    changed = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    try:
        for number in changed:
            signal.signal(number, outside_finalisers(stop))
        yield
    finally:
        for number, handler in changed.items():
            # After a stop the process ends with the signal's exit code; while Python shuts down, a further signal would end it otherwise.
            signal.signal(number, handler if last is None else signal.SIG_IGN)
