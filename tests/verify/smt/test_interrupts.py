"""An interrupt reaches the program wherever it comes, also while an object is being freed."""

from __future__ import annotations

import os
import signal
import time

import pytest

from layoutproof.verify.smt.solver import outside_finalisers


class Freed:
    """Something that is interrupted by Ctrl-C while it is freed, as z3's expressions may be."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)  # Python calls the handler here


def wait_for_an_interrupt() -> None:
    """Free something, and go on for a while."""
    thing: Freed | None = Freed()
    del thing
    for _ in range(500):
        time.sleep(0.01)


def test_an_interrupt_while_an_object_is_freed() -> None:
    """It is raised a moment later, and not forgotten."""
    before = signal.signal(signal.SIGINT, outside_finalisers(signal.default_int_handler))
    try:
        with pytest.raises(KeyboardInterrupt):
            wait_for_an_interrupt()
    finally:
        signal.signal(signal.SIGINT, before)


def test_any_other_moment() -> None:
    """Anywhere else it is raised at once, as Python has it."""
    handler = outside_finalisers(signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        handler(signal.SIGINT, None)
