"""Input that is no input, and processes whose streams are closed: each fault is told in its place, and all others are
judged.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.calling import Caller
from tests.shares import one_in, some
from tests.tree import ROOT

from layoutproof.cli.gate.policy import Baseline
from layoutproof.cli.output import readable
from layoutproof.ir.diagnostic import LayoutproofError

PROGRAM = (ROOT / "examples" / "programs" / "row_sum.py").read_text(encoding="utf-8")
LINE = json.dumps([["split", {"block": "sum", "loop": "i", "factors": [None, 4]}]])
GATE = "import layoutproof as lp\n\n\n@lp.gate\ndef g():\n    return lp.check_map(lambda i: [i // 4, i % 4], (14,))\n"
BAD = GATE.replace("[i // 4, i % 4]", "[i // 4]")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "row_sum.py").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


@pytest.fixture
def shell(tmp_path: Path) -> Run:
    """A function that runs `check` with words of a shell, in a process of its own."""

    def run(words: str) -> subprocess.CompletedProcess[str]:
        command = ["sh", "-c", f'"$0" -m layoutproof check --no-cache {words}', sys.executable]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    return run


def test_a_byte_order_mark_is_no_part_of_a_schedule(folder: Path, call: Caller) -> None:
    """A log of schedules that begins with a byte-order mark is read like one that does not, and so is a baseline."""
    (folder / "log.jsonl").write_bytes(b"\xef\xbb\xbf" + f"{LINE}\r\n".encode())
    (folder / "known.json").write_bytes(b"\xef\xbb\xbf" + Baseline().text().encode())
    assert call("check", "row_sum.py", "--trace", "log.jsonl", "--no-cache", "--baseline", "known.json").code == 0


@pytest.mark.parametrize(
    ("line", "place", "words"),
    [
        (LINE.replace("sum", "größe").encode("latin-1"), "1:25", "the byte 0xf6 is not UTF-8"),
        (LINE.encode("utf-16-le"), "1:2", "Expecting value"),
        (
            LINE.replace('"loop": "i"', '"loop": "j", "loop": "i"').encode(),
            "1:1",
            "the key 'loop' stands twice in one object",
        ),
        (LINE.replace("4", "9" * 5000).encode(), "1:1", "a number has too many digits"),
        (b"[" * 100_000, "1:1", "it is nested too deep"),
    ],
)
def test_lines_that_are_no_schedule(line: bytes, place: str, words: str, folder: Path, call: Caller) -> None:
    """What a line has that JSON has not is told with its place, and the line after it is judged."""
    (folder / "log.jsonl").write_bytes(line.replace(b"\n", b"") + f"\n{LINE}\n".encode())
    done = call("check", "row_sum.py", "--trace", "log.jsonl", "--no-cache", "--workers", "1")
    assert done.code == 2 and "proved   row_sum.py:row_sum log.jsonl:2\n" in done.out
    assert words in done.out and f"log.jsonl:{place}: error[LP328]" in done.out, done.out


@pytest.mark.parametrize(("name", "data", "code"), [("row_sum.json", b"[\xff]", 2), ("row_sum.jsonl", b"\n\n", 3)])
def test_a_broken_schedule_stops_nothing(name: str, data: bytes, code: int, folder: Path, call: Caller) -> None:
    """In a folder, a schedule that is no text, or a log without a line, is an item like others; named by itself it is
    an error.
    """
    (folder / name).write_bytes(data)
    (folder / "z_gates.py").write_text(GATE)
    (folder / "y.py").write_text(f"x = {'-' * 100_000}1\n")
    done = call("check", ".", "--no-cache", "--workers", "1", "--report", "junit=all.xml")
    assert done.code == code and "proved   z_gates.py::g\n" in done.out and (folder / "all.xml").exists()
    assert call("check", name, "--no-cache").code == 2


def test_a_function_that_is_not_there(folder: Path, call: Caller) -> None:
    """A function that a program does not have is told of, and the functions that there are; its schedules are not
    judged.
    """
    (folder / "row_sum.jsonl").write_text(f"{LINE}\n")
    done = call("check", "row_sum.py", "--function", "other", "--no-cache")
    assert (
        done.code == 2 and "error[LP506]: row_sum.py has no function other" in done.err and "it has row_sum" in done.err
    )


def test_what_is_not_there_is_told_first(folder: Path, call: Caller) -> None:
    """A path that is missing, or a device, is told of before anything is judged."""
    (folder / "gates.py").write_text(GATE)
    for wrong, words in (("missing.py", "there is no file missing.py"), ("/dev/zero", "/dev/zero is a device")):
        done = call("check", "gates.py", "gates.py", wrong, "--no-cache")
        assert (done.code, done.out) == (2, "") and words in done.err
    assert "is a device" in call("check", "row_sum.py", "--trace", "/dev/zero", "--no-cache").err


def test_baselines_that_cannot_be_read() -> None:
    """A device has no end, and is not read."""
    with pytest.raises(LayoutproofError, match="it is a device"):
        Baseline.load(Path("/dev/zero"))


def test_a_number_of_thousands_of_digits_is_no_baseline(folder: Path) -> None:
    """A baseline with a number that Python refuses to read is damaged."""
    (folder / "known.json").write_text(f"[{'9' * 5000}]")
    with pytest.raises(LayoutproofError, match="too many digits"):
        Baseline.load(folder / "known.json")


def test_what_a_baseline_needs_no_more_is_told_in_few_lines(folder: Path, call: Caller) -> None:
    """Twenty entries that are needed no more are told of, the others are counted."""
    entry = {"file": "gates.py", "code": "LP210", "status": "refuted", "claim": "c"}
    entries = [{**entry, "name": f"n{number}", "obligation": f"{number:064x}"} for number in range(1025)]
    (folder / "known.json").write_text(json.dumps({"layoutproof_baseline": 2, "entries": entries}))
    (folder / "gates.py").write_text(GATE)
    done = call("check", "gates.py", "--no-cache", "--baseline", "known.json")
    assert done.code == 0 and done.err.splitlines()[20:] == [
        "note: nor are 1,005 more; --write-baseline leaves them out"
    ]


@one_in(10)
@pytest.mark.parametrize("closed", some(("<&- >&- 2>&-", "2>&-", "<&- >&-"), 1))
def test_workers_with_closed_streams(closed: str, folder: Path, shell: Run) -> None:
    """Whatever streams are closed, workers judge, reports are written, and the exit code is what it would be."""
    (folder / "a_gates.py").write_text(GATE)
    (folder / "b_gates.py").write_text(BAD)
    done = shell(f"a_gates.py b_gates.py --workers 2 --report text=all.txt {closed}")
    assert done.returncode == 1, done
    assert (folder / "all.txt").read_text().splitlines()[-2] == "2 items: 1 refuted, 1 proved"


@one_in(4)
@pytest.mark.parametrize("raised", ["raise SystemExit(0)", "raise ValueError", "return 5"])
def test_exceptions_that_cannot_be_told(raised: str, folder: Path, shell: Run) -> None:
    """An exception whose own text fails, or ends the process, is one that the file raises."""
    (folder / "gates.py").write_text(
        f"{GATE}\n\nclass E(Exception):\n    def __str__(self):\n        {raised}\n\n\nraise E\n"
    )
    done = shell("gates.py")
    assert (
        (done.returncode, done.stdout) == (2, "")
        and "error[LP556]: E" in done.stderr
        and "Traceback" not in done.stderr
    )


def test_objects_that_act_when_they_are_looked_at(folder: Path, shell: Run) -> None:
    """An object of a gate file whose class cannot be asked for is the file's fault, and ends nothing."""
    odd = "class Odd:\n    @property\n    def __class__(self):\n        raise SystemExit(0)\n\n\nodd = Odd()\n"
    (folder / "gates.py").write_text(f"{GATE}\n\n{odd}")
    done = shell("gates.py")
    assert done.returncode == 2 and "error[LP556]: SystemExit: 0" in done.stderr


@one_in(14)
@pytest.mark.parametrize(
    "left",
    [
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n",
        "import atexit, os\natexit.register(lambda: os._exit(0))\n",
        "import sys\nsys.stdout = sys.stderr = None\n",
        "import os\nif os.fork() == 0:\n    pass\n",
    ],
)
def test_what_a_gate_file_leaves_behind(left: str, folder: Path, shell: Run) -> None:
    """Threads, exit handlers, streams and processes of a gate file neither keep the command, nor change its exit code,
    nor repeat it.
    """
    (folder / "gates.py").write_text(left + BAD)
    done = shell("gates.py")
    assert (
        done.returncode == 1 and done.stdout.startswith("gates.py::g: refuted\n") and done.stdout.count("cell [0]") == 1
    )


def test_a_gate_file_that_is_nested_too_deep(folder: Path, call: Caller) -> None:
    """What Python's parser has no memory for is told as a file that cannot be loaded."""
    (folder / "gates.py").write_text(f"{GATE}\nx = {'-' * 100_000}1\n")
    done = call("check", "gates.py", "--no-cache")
    assert done.code == 2 and "error[LP555]: gates.py is nested too deep" in done.err


@one_in(4)
def test_nothing_steers_a_terminal(folder: Path, call: Caller) -> None:
    """Escapes in words of exceptions, in names of files and in messages of errors are not passed on to a terminal."""
    name = "a\x1b[31m\nb.py"
    (folder / name).write_text(
        f"{GATE}\n\n@lp.gate\ndef h():\n    raise ValueError('\\x1b[31mred\\x07\\n\\x1b]0;title\\x07')\n"
    )
    done = call("check", name, "--no-cache")
    told = done.out + done.err + call("check", "\x1b[31mmissing").err
    assert done.code == 2 and "red" in told and "title" in told and "missing" in told
    assert all(character.isprintable() or character == "\n" for character in told)
    assert readable("plain\ttext\n\udcff") == "plain\ttext\n\udcff"


@one_in(9)
def test_a_cache_that_cannot_be_used_is_told_once(folder: Path, shell: Run) -> None:
    """Of a cache that no worker can use the run tells once, whatever the number of workers."""
    for name in ("a_gates.py", "b_gates.py"):
        (folder / name).write_text(GATE)
    command = [
        sys.executable,
        "-m",
        "layoutproof",
        "check",
        ".",
        "--workers",
        "2",
        "--cache",
        "row_sum.py/below/x.sqlite",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stderr.count("LP367") == 1, done.stderr


@pytest.mark.parametrize("option", ["--timeout", "--budget"])
def test_no_number_is_no_limit(option: str, folder: Path, call: Caller) -> None:
    """`nan` is neither a time nor a factor, and a limit that it sets would be none."""
    done = call("check", "row_sum.py", option, "nan")
    assert done.code == 2 and "nan is no number" in done.err


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "127.0.0.1", "tcp://", "file:///tmp:1"])
def test_what_is_no_address_of_a_scheduler(address: str, folder: Path, call: Caller) -> None:
    """An address that no scheduler can have is told at once; nothing is waited for."""
    (folder / "gates.py").write_text(GATE)
    done = call("check", "gates.py", "--no-cache", "--dask", address)
    assert done.code == 2 and f"error[LP531]: --dask {address}: expected an address" in done.err


def test_a_working_directory_that_is_gone(tmp_path: Path, shell: Run) -> None:
    """Where the working directory was removed that is what is told, before anything is judged."""
    (tmp_path / "gone").mkdir()
    (tmp_path / "gates.py").write_text(GATE)
    command = (
        f'cd "{tmp_path}/gone" && rmdir "{tmp_path}/gone" && "$0" -m layoutproof check "{tmp_path}/gates.py" --no-cache'
    )
    done = subprocess.run(
        ["sh", "-c", command, sys.executable], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (
        done.returncode == 2
        and "the working directory is not there any more" in done.stderr
        and "Traceback" not in done.stderr
    )
