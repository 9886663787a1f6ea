"""Ctrl-C, SIGTERM and SIGKILL at a run: its exit code, what it says, and that nothing of it stays behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.calling import OPERATORS
from tests.cli.gate.judges import item
from tests.cli.render.gate.marked import MARK, marked, new_mark, wait_until
from tests.shares import chosen, one_in
from tests.tree import ROOT

from layoutproof.cli.gate import run_control as signals
from layoutproof.cli.gate.run_control import Stopped, stop_on_signals

# Two items that are done at once, then hanging ones that started deaf processes.
TEXTS = ["", "", "leave {0}/a", *["leave_and_hang {0}/b"] * 4]
ENDS = [
    (signal.SIGINT, 130, "interrupted"),
    (signal.SIGTERM, 143, "ended by SIGTERM"),
    (signal.SIGHUP, 129, "ended by SIGHUP"),
]


@contextmanager
def running(folder: Path, workers: str = "2") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A run that hangs, and its mark, as soon as its first outcomes are there and its workers have started what they
    leave behind.
    """
    mark = new_mark()
    (folder / "tmp").mkdir()
    environment = {**os.environ, MARK: mark, "TMPDIR": str(folder / "tmp"), "PYTHONPATH": os.pathsep.join(["src", "."])}
    command = [sys.executable, "-m", "tests.cli.gate.driver", workers, "-", *(text.format(folder) for text in TEXTS)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True, process_group=0
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline().strip() for _ in range(2)] == [item(0).name, item(1).name]
        assert wait_until((folder / "b").exists)
        assert len(marked(mark)) >= 4 and len(list((folder / "tmp").iterdir())) == 1
        yield process, mark


@one_in(10)
@pytest.mark.parametrize("number, code, word", ENDS, ids=lambda value: str(value))
def test_a_signal_ends_the_run(tmp_path: Path, number: signal.Signals, code: int, word: str) -> None:
    """The run says one word, exits with the signal's code, removes its temporary files, and no process of it is
    left.
    """
    with running(tmp_path) as (process, mark):
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (code, f"{word}\n")
        assert marked(mark) == set()
        assert list((tmp_path / "tmp").iterdir()) == []


@one_in(4)
def test_a_key_at_the_terminal_reaches_the_run_only(tmp_path: Path) -> None:
    """A signal to the whole process group, as a terminal sends it, is the same as one to the run."""
    with running(tmp_path) as (process, mark):
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (130, "interrupted\n")
        assert marked(mark) == set()


@one_in(4)
def test_an_impatient_user(tmp_path: Path) -> None:
    """Ten signals in a row are as good as one."""
    with running(tmp_path) as (process, mark):
        for number in [signal.SIGINT, signal.SIGINT, signal.SIGTERM] * 3 + [signal.SIGINT]:
            process.send_signal(number)
            time.sleep(0.005)
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (130, "interrupted\n")
        assert marked(mark) == set()
        assert list((tmp_path / "tmp").iterdir()) == []


def test_a_run_that_is_killed(tmp_path: Path) -> None:
    """A run that gets no chance to clean up leaves no process behind all the same."""
    with running(tmp_path) as (process, mark):
        process.kill()
        process.wait()
        assert wait_until(lambda: marked(mark) == set())
        process.communicate()


@one_in(4)
def test_a_run_that_ignores_a_signal(tmp_path: Path) -> None:
    """A signal that was ignored when the run began (`nohup`) stays ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with running(tmp_path) as (process, mark):
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 143
            assert marked(mark) == set()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_signals_are_as_before_afterwards() -> None:
    """Where no signal came, handlers are what they were."""
    before = [signal.getsignal(number) for number, _, _ in ENDS]
    with stop_on_signals():
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert [signal.getsignal(number) for number, _, _ in ENDS] == before


def test_the_temporary_folder_is_known_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python tries it with a file, which an exception out of a signal would leave there: that is done by then."""
    opened: list[object] = []
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with stop_on_signals():
        monkeypatch.setattr(os, "open", lambda *given: opened.append(given))
        assert tempfile.gettempdir() == str(tmp_path) and opened == [] and list(tmp_path.iterdir()) == []
        monkeypatch.undo()


def test_a_late_signal_is_heard_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second signal after some seconds, when the first one got lost, is heard; one before that is not."""
    before = {number: signal.getsignal(number) for number, _, _ in ENDS}
    try:
        with stop_on_signals():
            with pytest.raises(Stopped, match="interrupted"):
                signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            monkeypatch.setattr(signals, "PATIENCE_SECONDS", 0.0)
            with pytest.raises(Stopped) as stop:
                signal.raise_signal(signal.SIGTERM)
            assert stop.value.exit_code == 143
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_other_threads_have_no_signals() -> None:
    """In a thread, where Python handles no signals, nothing is changed and nothing fails."""
    seen = []

    def work() -> None:
        with stop_on_signals():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


GATES = """
import layoutproof as lp

@lp.gate
def endless():
    while True:
        pass
"""


@one_in(7)
@pytest.mark.parametrize("end", chosen(ENDS, lambda number: number < 2, lambda end: str(end[2])))
def test_the_command_is_interrupted(tmp_path: Path, end: tuple[signal.Signals, int, str]) -> None:
    """`layoutproof check` ends in the same way, writes no report, and what it proved is known to the next run."""
    number, code, word = end
    shutil.copy(OPERATORS / "exp1d.py", tmp_path / "exp1d.py")
    (tmp_path / "exp1d.jsonl").write_text('[["split", {"block": "compute", "loop": 0, "factors": [2, 7]}]]')
    (tmp_path / "gates.py").write_text(GATES)
    (tmp_path / "tmp").mkdir()
    mark = new_mark()
    environment = {
        **os.environ,
        MARK: mark,
        "TMPDIR": str(tmp_path / "tmp"),
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONUNBUFFERED": "1",
    }
    command = [
        sys.executable,
        "-m",
        "layoutproof",
        "check",
        "exp1d.py",
        "--workers",
        "2",
        "--cache",
        "proofs.sqlite",
        "--format",
        "json",
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, "gates.py", "--report", "junit=report.xml"],
        cwd=tmp_path,
        env=environment,
        stdout=pipe,
        stderr=pipe,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["verdict"] == "proved"
        for _ in range(3):
            process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (code, f"{word}; what was proved is in the cache\n")
    assert marked(mark) == set() and list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / "report.xml").exists()
    again = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(again.stdout)["cached"]
