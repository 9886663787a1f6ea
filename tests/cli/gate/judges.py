"""Judges that do what no judge should: hang, allocate, crash, leave processes behind. What one does is said by the
item's text.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from layoutproof.cli.gate.check_items import Item, Options
from layoutproof.cli.gate.outcomes import Kind, Outcome

OPTIONS = Options(())
_SEEN: list[str] = []
_HELD: list[bytes] = []


def item(number: int, text: str = "") -> Item:
    """The item of a number; `text` says what is done with it."""
    return Item(Kind.TRACE, f"t.jsonl:{number}", "t.jsonl", number + 1, "f", None, "p.py", text)


def judge(thing: Item, options: Options) -> Outcome:
    """Do what the item's text says; proved, with a note of who judged it after which items."""
    word, _, argument = thing.text.partition(" ")
    if word:
        ACTIONS[word](argument)
    return Outcome(thing.kind, thing.name, thing.program, None, "proved")


def telling(thing: Item, options: Options) -> Outcome:
    """The same, with notes of the judging process's number and what it judged before."""
    _SEEN.append(thing.name)
    done = judge(thing, options)
    return Outcome(done.kind, done.name, done.program, None, "proved", notes=(str(os.getpid()), *_SEEN[-2:]))


def _allocate(argument: str) -> None:
    held = []
    while True:
        held.append(bytearray(os.urandom(1 << 20) * 16))


def _child_allocates(argument: str) -> None:
    code = "held = []\nwhile True: held.append(b'x' * (16 << 20))"
    subprocess.run([sys.executable, "-c", code], start_new_session=True, check=True)


def _hoard(argument: str) -> None:
    _HELD.append(os.urandom(1 << 20) * int(argument))


def _hang(argument: str) -> None:
    while True:
        pass


def _hang_in_c(argument: str) -> None:
    ctypes.CDLL(None).sleep(1000)


def _hang_deaf(argument: str) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _hang_in_c(argument)


def _crash(argument: str) -> None:
    ctypes.string_at(0)


def _crash_once(argument: str) -> None:
    path = Path(argument)
    if not path.exists():
        path.touch()
        _crash(argument)


def _leave(argument: str) -> None:
    """Start a process in a session of its own, as solvers are, and write its number down."""
    deaf = (
        "from signal import *; import time; [signal(number, SIG_IGN) for number in (SIGTERM, SIGHUP, "
        "SIGINT)]; time.sleep(1000)"
    )
    child = subprocess.Popen([sys.executable, "-c", deaf], start_new_session=True)
    with Path(argument).open("a") as file:
        file.write(f"{child.pid} {os.getpid()}\n")


def _leave_and_hang(argument: str) -> None:
    _leave(argument)
    _hang_in_c(argument)


def _leave_and_crash(argument: str) -> None:
    _leave(argument)
    _crash(argument)


def _kill(argument: str) -> None:
    os.kill(os.getpid(), int(argument))


def _kill_supervisor(argument: str) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(1000)


def _kill_fleet(argument: str) -> None:
    """Kill the process that asked for this: of a fleet, the worker of Dask."""
    supervisor = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
    os.kill(int(supervisor[1]), signal.SIGKILL)
    time.sleep(1000)


def _leave_thread(argument: str) -> None:
    """Start a thread that Python waits for when it ends."""
    threading.Thread(target=time.sleep, args=(1000,)).start()


def _raise(argument: str) -> None:
    raise ValueError(argument)


def _recurse(argument: str) -> None:
    _recurse(argument)


ACTIONS: dict[str, Callable[[str], object]] = {
    "allocate": _allocate,
    "child_allocates": _child_allocates,
    "crash": _crash,
    "crash_once": _crash_once,
    "exit": lambda argument: os._exit(int(argument)),
    "hang": _hang,
    "hang_deaf": _hang_deaf,
    "hang_in_c": _hang_in_c,
    "hoard": _hoard,
    "kill": _kill,
    "kill_fleet": _kill_fleet,
    "kill_supervisor": _kill_supervisor,
    "leave": _leave,
    "leave_and_crash": _leave_and_crash,
    "leave_and_hang": _leave_and_hang,
    "print": print,
    "raise": _raise,
    "recurse": _recurse,
    "sleep": lambda argument: time.sleep(float(argument)),
    "thread": _leave_thread,
    "stop": lambda argument: sys.exit(argument),
}
