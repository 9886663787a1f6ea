"""The bar of a long run: its numbers, where it is shown, and that it goes away."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Generator

import pytest
from tests.cli.render.gate.made import finding, outcome
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.cli.gate.outcomes import Outcome
from layoutproof.cli.gate.run_control import Tally, duration, watched

# Two seconds' work: the bar appears after the first.
PROGRAM = """
import sys, time
from layoutproof.cli.gate.run_control import watched
from layoutproof.cli.gate.outcomes import Kind, Outcome

def work():
    for number in range(20):
        time.sleep(1.5 if number == 0 and "slow" in sys.argv else 0.1)
        if number == 15 and "fail" in sys.argv:
            raise KeyError("nothing")
        yield Outcome(Kind.GATE, str(number), "p", None, "unknown" if number == 3 else "proved")

print(len(list(watched(work(), 20 if "total" in sys.argv else None))))
"""


@pytest.mark.parametrize(
    "seconds, text",
    [(0, "0 s"), (0.4, "0 s"), (59.4, "59 s"), (59.6, "1:00"), (185, "3:05"), (3599.7, "1:00:00"), (7241, "2:00:41")],
)
def test_durations(seconds: float, text: str) -> None:
    """Seconds are told as people tell them."""
    assert duration(seconds) == text


def test_numbers() -> None:
    """The line has how many are done, the rate of late, the time that is left, and the counts, worst first."""
    tally = Tally(100, begun=0.0)
    for second in range(1, 31):
        tally.add(outcome(finding()) if second == 7 else outcome(), float(second))
    assert tally.rate == pytest.approx(1.0)
    assert tally.remaining == pytest.approx(70.0)
    assert str(tally) == "30/100  1.0/s  1:10 left  [bold red]1 refuted[/]  [green]29 proved[/]"


def test_the_rate_is_that_of_late() -> None:
    """What came out of the cache at the beginning is not what the rest will take."""
    tally = Tally(20_000, begun=0.0)
    for number in range(10_000):
        tally.add(outcome(), number / 10_000)
    for second in range(2, 61):
        tally.add(outcome(), float(second))
    assert tally.rate == pytest.approx(1.0)


def test_before_there_is_a_rate() -> None:
    """With nothing done, or all done in no time, no rate is made up; with no total, no time left."""
    tally = Tally(None, begun=5.0)
    assert (tally.rate, tally.remaining, str(tally)) == (None, None, "0")
    tally.add(outcome(), 5.0)
    assert tally.rate is None
    tally.add(outcome(), 5.5)
    assert tally.rate == pytest.approx(2.0) or tally.rate == pytest.approx(4.0)
    assert tally.remaining is None and str(tally).startswith("2  ")


def test_more_than_the_total() -> None:
    """A total that was too low does not make time run backwards."""
    tally = Tally(1, begun=0.0)
    for second in (1.0, 2.0, 3.0):
        tally.add(outcome(), second)
    assert tally.remaining == 0


def outcomes() -> Generator[Outcome, None, None]:
    """Two outcomes."""
    yield from (outcome(), outcome())


def test_without_a_terminal_there_is_no_bar() -> None:
    """Without a terminal the outcomes are unchanged, and rich is not loaded."""
    given = outcomes()
    assert watched(given) is given
    command = [sys.executable, "-c", PROGRAM + "\nprint('rich' in sys.modules)"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("20\nFalse\n", "")


def on_a_terminal(*arguments: str) -> tuple[str, str]:
    """What the program writes to standard error, a terminal, and to standard output, a pipe."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "PYTHONPATH": "src"}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=slave, text=True
    ) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            shown += data
        os.close(master)
        assert process.stdout is not None
        out = process.stdout.read()
    return shown.decode(), out


def test_on_a_terminal() -> None:
    """On a terminal the bar shows done, total, rate, time left and counts, and is wiped out at the end; standard output
    is untouched.
    """
    shown, out = on_a_terminal("total")
    assert "/20" in shown and "/s" in shown and " left" in shown and "1 unknown" in shown and "proved" in shown
    assert out == "20\n"
    # The last line is erased, and the cursor is there again.
    assert shown.rstrip().endswith("\x1b[2K") and shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


@one_in(4)
def test_without_a_total() -> None:
    """With an unknown total, the bar shows no time left."""
    shown, _ = on_a_terminal()
    assert "/s" in shown and " left" not in shown and "/20" not in shown


@one_in(7)
def test_before_the_first_outcome() -> None:
    """The bar is there while the first item takes its time."""
    shown, out = on_a_terminal("total", "slow")
    assert "0/20" in shown and out == "20\n"


def test_the_bar_goes_when_the_run_fails() -> None:
    """An exception takes the bar away before it is told."""
    shown, out = on_a_terminal("total", "fail")
    assert out == "" and shown.rindex("\x1b[?25h") < shown.index("KeyError")
