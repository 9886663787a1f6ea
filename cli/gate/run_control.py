"""A long run's progress bar, on standard error if that is a terminal; and SIGINT and SIGTERM: the first ends the run
cleanly, further ones do not disturb that.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from layoutproof.cli.gate.outcomes import Outcome
from layoutproof.verify.smt.solver import outside_finalisers

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


_QUIET_SECONDS = 1.0
_WORDS = ("refuted", "error", "unknown", "vacuous", "proved")
_STYLES = {"refuted": "bold red", "error": "bold red", "unknown": "yellow", "vacuous": "yellow", "proved": "green"}
# The rate is that of the last stretch: a warm cache at the beginning says nothing of what comes after.
_STRETCH_SECONDS, _SAMPLES = 20.0, 64


class StepFile:
    """A file in which the process that judges one schedule writes the step that it is at."""

    def __init__(self) -> None:
        number, self.path = tempfile.mkstemp(prefix="layoutproof-step-")
        os.close(number)

    def read(self) -> str:
        """The step, empty before the first."""
        with suppress(FileNotFoundError):
            return Path(self.path).read_text()
        return ""

    def remove(self) -> None:
        """Remove the file."""
        Path(self.path).unlink(missing_ok=True)


def watched(
    outcomes: Generator[Outcome, None, None], total: int | None = None, doing: StepFile | None = None
) -> Generator[Outcome, None, None]:
    """The same outcomes, with a progress bar. `total`: their number, None if unknown; `doing` has the step of a
    schedule, and is removed at the end.

    Closing it closes `outcomes`.
    """
    if not sys.stderr.isatty():
        return outcomes
    return _with_bar(outcomes, total, doing)


def _with_bar(
    outcomes: Generator[Outcome, None, None], total: int | None, doing: StepFile | None
) -> Generator[Outcome, None, None]:
    tally = Tally(total)
    display = Display(tally, (lambda: "") if doing is None else doing.read)
    try:
        for outcome in outcomes:
            tally.add(outcome, time.monotonic())
            display.show()
            yield outcome
    finally:
        display.close()
        outcomes.close()
        if doing is not None:
            doing.remove()


@dataclass(slots=True)
class Tally:
    """The counts of a run so far. `total`: the number of outcomes, None if unknown."""

    total: int | None
    begun: float = field(default_factory=time.monotonic)
    done: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    _last: float = 0.0
    _samples: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, outcome: Outcome, now: float) -> None:
        """Count an outcome that came at `now`, in seconds of the monotonic clock."""
        self.done += 1
        self.verdicts[outcome.word] += 1
        self._last = now
        if not self._samples or now - self._samples[-1][0] >= _STRETCH_SECONDS / _SAMPLES:
            self._samples.append((now, self.done))
        while self._samples[0][0] < now - _STRETCH_SECONDS:
            self._samples.popleft()

    @property
    def rate(self) -> float | None:
        """Recent items per second; None at the beginning."""
        if self.done == 0:
            return None
        first, before = self._samples[0] if self._samples[0][0] < self._last else (self.begun, 0)
        return (self.done - before) / (self._last - first) if self._last > first else None

    @property
    def remaining(self) -> float | None:
        """Seconds left at the present rate; None if unknown."""
        rate = self.rate
        if self.total is None or rate is None or rate <= 0:
            return None
        return max(self.total - self.done, 0) / rate

    def __str__(self) -> str:
        """The line beside the bar, with rich's markup."""
        parts = [f"{self.done}/{self.total}" if self.total is not None else f"{self.done}"]
        rate, remaining = self.rate, self.remaining
        if rate is not None:
            parts.append(f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
        if remaining is not None:
            parts.append(f"{duration(remaining)} left")
        numbers = ((word, self.verdicts[word]) for word in _WORDS if self.verdicts[word])
        counts = [f"[{_STYLES[word]}]{n} {'errors' if word == 'error' and n > 1 else word}[/]" for word, n in numbers]
        return "  ".join([*parts, *counts])


def duration(seconds: float) -> str:
    """Seconds for people: `8 s`, `3:05`, `2:00:41`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


class Display:
    """Rich's bar with a tally beside it, shown after a second."""

    def __init__(self, tally: Tally, doing: Callable[[], str] = str) -> None:
        self._tally = tally
        self._doing = doing
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        # By a clock of its own: the first outcome may take long.
        self._timer = threading.Timer(_QUIET_SECONDS, self._begin)
        self._timer.daemon = True
        self._timer.start()

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
        from rich.text import Text

        doing = self._doing

        class Step(ProgressColumn):
            """The step, read anew each time that the bar is drawn."""

            def render(self, task: object) -> Text:
                return Text(doing(), style="dim")

        with self._lock:
            if self._timer.finished.is_set():
                return  # closed meanwhile
            columns = (BarColumn(bar_width=24), TextColumn("{task.description}"), Step())
            console = Console(stderr=True)
            progress = Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty())
            self._task = progress.add_task(str(self._tally), total=self._tally.total)
            progress.start()
            self._progress = progress
        self.show()

    def show(self) -> None:
        """Show the progress."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=self._tally.done, description=str(self._tally))

    def close(self) -> None:
        """Remove the bar."""
        self._timer.cancel()
        with self._lock:
            if self._progress is not None:
                self._progress.stop()


_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# By then a clean-up is over, or stuck, or the exception was lost (one that is raised while an object is finalized is).
PATIENCE_SECONDS = 3.0


class Stopped(BaseException):
    """The process was told to end; `except Exception` does not catch it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """The exit code of a process ended by the signal: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + self.number

    def __str__(self) -> str:
        return "interrupted" if self.number == signal.SIGINT else f"ended by {signal.Signals(self.number).name}"


class TimeIsUp(BaseException):
    """An item in this process has had its time; `except Exception` does not catch it."""


@contextmanager
def within_seconds(seconds: float) -> Iterator[None]:
    """Within it, TimeIsUp is raised after so many seconds, and again should it be lost; the process should end soon
    then, since what was interrupted may be in any state.

    Code that never comes back to Python is not interrupted. Does nothing outside a process's main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGALRM, outside_finalisers(stop))
    signal.setitimer(signal.ITIMER_REAL, seconds, PATIENCE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Within it, SIGINT, SIGTERM and SIGHUP raise Stopped, at most once in a few seconds; ignored signals stay ignored
    (`nohup`).

    After Stopped, signals are ignored: the catcher ends the process with its exit code. Does nothing outside a
    process's main thread, where Python has no signals.
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

    # Python tries its temporary folder with a file when it is first asked for one; an exception would leave that there.
    with suppress(FileNotFoundError):
        tempfile.gettempdir()
    before = {number: signal.getsignal(number) for number in _NUMBERS}
    changed = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    try:
        for number in changed:
            signal.signal(number, outside_finalisers(stop))
        yield
    finally:
        for number, handler in changed.items():
            # After a stop the process ends with the signal's exit code; while Python shuts down, a further signal would
            # end it otherwise.
            signal.signal(number, handler if last is None else signal.SIG_IGN)
