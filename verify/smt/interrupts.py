"""Interrupts that are not lost: what a signal raises inside a `__del__` Python prints and forgets, and z3's objects have one each."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]
_LATER_SECONDS = 0.01


def outside_finalisers(handler: Handler) -> Handler:
    """`handler`, which is called a moment later where the signal comes while an object is being freed."""

    def handle(number: int, frame: FrameType | None) -> None:
        if _is_freeing(frame):
            again = threading.Timer(_LATER_SECONDS, os.kill, (os.getpid(), number))
            again.daemon = True
            again.start()
        else:
            handler(number, frame)

    return handle


def _is_freeing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def keep_interrupts() -> None:
    """Let Ctrl-C raise KeyboardInterrupt as Python has it, but never where it would be forgotten. A handler of someone else's stays."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, outside_finalisers(signal.default_int_handler))
