"""Limits of workers, and how they end: plain data, apart from the processes, which load sockets and more."""

from __future__ import annotations

import signal
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """How many workers, and what an item may take: `seconds`, and bytes of `memory` of its worker's process tree. Both
    end the worker at once. None: no limit.
    """

    workers: int = 1
    seconds: float | None = None
    memory: int | None = None

    @property
    def need_a_process(self) -> bool:
        """Whether items need processes of their own: only those can be ended."""
        return self.workers > 1 or self.seconds is not None or self.memory is not None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a worker process ended. `why`: `time` or `memory` for a limit, `exit` or `signal` with its number in
    `status`, `told` if it was asked to, `fleet` if the machines of a fleet died with it.
    """

    why: str
    status: int = 0

    def __str__(self) -> str:
        if self.why == "signal":
            return f"was ended by {_signal_name(self.status)}"
        return f"ended with exit status {self.status}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class NoWorker(Exception):
    """No worker process can be started."""

    @staticmethod
    def at_start(ending: Ending) -> NoWorker:
        """For processes that end as soon as they are started."""
        return NoWorker(f"a worker process {ending} before it could take an item")
