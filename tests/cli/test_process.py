"""The command as a process: streams that close, signals, `python -m`, and no colour without a terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from tests.cli.calling import OPERATORS, files_below
from tests.shares import one_in

COMMAND = [sys.executable, "-m", "layoutproof"]
MAP = ["map", "lambda i: [i//4, i%4]", "--shape", "14"]


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False, env=env)


@one_in(4)
def test_python_m() -> None:
    """`python -m layoutproof` is the command, with its exit codes."""
    for arguments, code in ((MAP, 0), (["map", "lambda i: [i//4]", "--shape", "14"], 1), (["map"], 2)):
        assert run(*arguments).returncode == code


@one_in(4)
@pytest.mark.parametrize(
    "command",
    [[], ["map"], ["draw"], ["run"], ["compare"], ["demo"]],
    ids=lambda command: command[0] if command else "all",
)
def test_help(command: list[str]) -> None:
    """-h and --help are the same, exit with 0, and every line fits eighty columns on a narrow terminal."""
    short, long = (run(*command, option, env={**os.environ, "COLUMNS": "80"}) for option in ("-h", "--help"))
    assert short.returncode == long.returncode == 0
    assert short.stdout == long.stdout
    assert "Usage: layoutproof" in short.stdout and max(len(line) for line in short.stdout.splitlines()) <= 80


def test_version() -> None:
    """--version names the version."""
    assert run("--version").stdout.startswith("layoutproof, version ")


def test_no_command_is_wrong_usage() -> None:
    """Without a command the help is shown and the exit code is 2; a misspelt one is named."""
    assert run().returncode == 2
    misspelt = run("mpa")
    assert misspelt.returncode == 2 and "mpa" in misspelt.stderr


@one_in(4)
def test_closed_pipe() -> None:
    """A reader that goes away ends the command quietly, as it ends other commands."""
    for form in ("text", "json"):
        with subprocess.Popen(
            [*COMMAND, *MAP, "--format", form], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None and process.stderr is not None
            process.stdout.close()
            assert process.wait(60) == 141
            assert process.stderr.read() == b""


def test_full_device() -> None:
    """Output that cannot be written is an error, not a success."""
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [*COMMAND, *MAP], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert process.returncode == 2
    assert process.stderr.startswith("error[LP501]: standard output cannot be written")


@one_in(9)
def test_closed_streams() -> None:
    """With standard output or standard error closed the exit code is what it would be."""
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        script = f'"$0" -m layoutproof map "lambda i: [i//4]" --shape 14 {closed}'
        done = subprocess.run(
            ["sh", "-c", script, sys.executable], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 1
        assert "Traceback" not in done.stderr


@one_in(4)
def test_ascii_streams(tmp_path: Path) -> None:
    """A stream that knows only ASCII gets escapes, not a failure; so does a file name that is no text."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = run("run", str(tmp_path / "größe\udcff.py"), env=environment)
    assert done.returncode == 2 and "there is no such file" in done.stderr


def terminal_output(arguments: list[str], columns: int, redirected: Path | None = None) -> str:
    """What the command prints to a terminal of some width; standard output may go to a file instead."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "40"}
    environment.pop("NO_COLOR", None)
    with nullcontext(slave) if redirected is None else redirected.open("wb") as out:
        process = subprocess.Popen([*COMMAND, *arguments], stdin=slave, stdout=out, stderr=slave, env=environment)
    os.close(slave)
    chunks = []
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(master)
    assert process.wait(60) == 0
    return b"".join(chunks).decode()


@one_in(10)
@pytest.mark.parametrize("columns", [20, 80, 300])
def test_colour_on_a_terminal(columns: int) -> None:
    """On a terminal of any width the verdict on injectivity is coloured, surjectivity is not, and no line is
    broken.
    """
    lines = terminal_output(MAP, columns).splitlines()
    (injective,) = [line for line in lines if line.startswith("injective")]
    (onto,) = [line for line in lines if line.startswith("surjective")]
    assert "\x1b[1;32mproved" in injective
    assert "no (2 padding cells)" in onto and "\x1b" not in onto
    assert any(line.rstrip() == "inverse         lambda p0, p1: [4*p0 + p1]" for line in lines)


@one_in(9)
def test_progress_is_gone_afterwards() -> None:
    """A run shows its stages on a terminal and leaves the report behind."""
    shown = terminal_output(["run", str(OPERATORS / "row_sum.py")], 100)
    assert "bit for bit" in shown


def test_progress_beside_a_redirected_report(tmp_path: Path) -> None:
    """Where standard output goes to a file, the terminal shows which step is being proved, and the file has no trace of
    it.
    """
    (tmp_path / "trace.json").write_text('[["split", {"block": "A_red", "loop": "ax0", "factors": [null, 4]}]]')
    arguments = ["run", str(OPERATORS / "row_sum.py"), "--trace", str(tmp_path / "trace.json")]
    shown = terminal_output(arguments, 100, tmp_path / "out.txt")
    assert "step 1 of 1: split" in shown and "lowering" in shown and "bit for bit" not in shown
    report = (tmp_path / "out.txt").read_text()
    assert "bit for bit" in report and "step 1" not in report and "\x1b" not in report


# The guard gives a warning as soon as the program is read: from then on the command is at work.
SLOW = """
@T.prim_func
def f(A: T.Buffer((4096, 400), "float32"), B: T.Buffer((4096,), "float32")):
    for i, k in T.grid(4096, 400):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(k >= 1)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
"""


@one_in(10)
def test_interrupt_leaves_no_half_written_file(tmp_path: Path) -> None:
    """Ctrl-C at any time of a run: one word on standard error, exit code 130, and each file is there whole or not at
    all.
    """
    program = tmp_path / "slow.py"
    program.write_text(SLOW)
    arguments = ["run", str(program), "-o", str(tmp_path / "out.txt"), "--emit", str(tmp_path / "out.c")]
    assert run(*arguments).returncode == 0
    source = (tmp_path / "out.c").read_bytes()
    interrupted = 0
    for delay in (0.0, 0.3):
        for name in ("out.txt", "out.c"):
            (tmp_path / name).unlink(missing_ok=True)
        with subprocess.Popen(
            [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            assert "warning[LP129]" in process.stderr.readline()
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            said = process.stderr.read()
        assert "Traceback" not in said
        # Where the signal comes in code that was compiled from a string, Python ends by the signal even though it was
        # caught.
        told = said.endswith("\ninterrupted\n")
        assert (process.returncode, told) in (
            (0, False),
            (130, True),
            (-signal.SIGINT, False),
            (-signal.SIGINT, True),
        ), said
        interrupted += process.returncode != 0
        files = files_below(tmp_path)
        assert set(files) <= {"slow.py", "out.txt", "out.c"}
        assert files.get("out.c", source) == source and files.get("out.txt", b"bit for bit\n").endswith(
            b"bit for bit\n"
        )
    assert interrupted >= 1
