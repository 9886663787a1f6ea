"""The process of a worker: a supervisor, and below it the process that works.

The supervisor only waits. It ends the working process with its process tree when an item exceeds its time or memory,
when the run tells it to, or when the run is gone, however it ended: a closed pipe is enough. So limits hold
while the run itself is busy, and nothing stays behind when a worker crashes or the run is killed. A solver may be in a
session of its own, where a signal to a process group misses it: on Linux a supervisor becomes the parent of every
orphan below it, and ends them one by one.

Memory is the resident memory of the tree, looked at every few hundredths of a second. A limit of address space would be
wrong: numerical libraries and allocators reserve far more than they touch, and a solver is a process of its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from io import BufferedRWPair
from pathlib import Path
from typing import Any, NoReturn

from layoutproof.verify.workers.collector import collect_seldom

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
_PROC = Path("/proc")
_PAUSE = 0.002


def adopt_orphans() -> None:
    """Make this process the parent of every orphan below it, where the system can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """Have this process killed when its parent, whose number is given, ends (or has ended), if the system can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def descendants(root: int) -> dict[int, int]:
    """Every process below `root`, and the bytes of memory that each holds."""
    if (_PROC / "self" / "task" / str(os.getpid()) / "children").is_file():
        return _from_proc(root)
    return _from_ps(root)


def end_all_below() -> None:
    """Kill every process below this one, and those that they start meanwhile, and wait until there are none."""
    while True:
        for process in descendants(os.getpid()):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            return
        time.sleep(_PAUSE)


def resident_bytes(process: int | str = "self") -> int:
    """The memory that a process holds; 0 for one that is gone, or on a system that does not report it."""
    try:
        return int((_PROC / str(process) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _from_proc(root: int) -> dict[int, int]:
    found: dict[int, int] = {}
    waiting = [root]
    while waiting:
        for child in _children(waiting.pop()):
            if child not in found:
                found[child] = resident_bytes(child)
                waiting.append(child)
    return found


def _children(process: int) -> list[int]:
    # A process's children are listed by the thread that started each.
    found: list[int] = []
    try:
        for thread in (_PROC / str(process) / "task").iterdir():
            found += (int(word) for word in (thread / "children").read_text().split())
    except OSError:
        return found
    return found


def _from_ps(root: int) -> dict[int, int]:
    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,rss="], capture_output=True, text=True, check=False)
    rows = [[int(word) for word in line.split()] for line in listing.stdout.splitlines()]
    found: dict[int, int] = {}
    below = {root}
    while below:
        level = {
            pid: kilobytes << 10
            for pid, parent, kilobytes in rows
            if parent in below and pid not in found and pid != root
        }
        found |= level
        below = set(level)
    return found


LENGTH = struct.Struct(">I")
_BEGIN, _END = b"b", b"e"
_LOOK_SECONDS = 0.03


def main(channel: int, control: int, seconds: float | None, memory: int | None) -> NoReturn:
    """Keep a worker. `channel` and `control` are this process's ends of sockets: items and outcomes; the ending."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    adopt_orphans()
    seen, notes = os.pipe()
    parent = os.getpid()
    worker = os.fork()
    if worker == 0:
        os.close(seen)
        os.close(control)
        die_with_parent(parent)
        _serve(channel, notes)
        sys.exit(0)
    os.close(notes)
    os.close(channel)
    ending = _keep(worker, control, seen, seconds, memory)
    try:
        os.write(control, json.dumps(ending).encode())
    except OSError:
        sys.exit(0)  # the run is gone
    sys.exit(0)


def _keep(worker: int, control: int, seen: int, seconds: float | None, memory: int | None) -> dict[str, Any]:
    """Wait for the worker's end, or cause it, and end its process tree; the result is how it ended."""
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    why = _wait(worker, (control, seen, woken), seconds, memory)
    if isinstance(why, int):
        status = os.waitstatus_to_exitcode(why)
        ending = {"why": "exit", "status": status} if status >= 0 else {"why": "signal", "status": -status}
    else:
        ending = {"why": why, "status": 0}
    end_all_below()
    return ending


def _wait(worker: int, ends: tuple[int, int, int], seconds: float | None, memory: int | None) -> int | str:
    """The worker's status when it ended by itself; else why it is to be ended."""
    control, seen, woken = ends
    watched = [control, seen, woken]
    deadline: float | None = None
    while True:
        ready, _, _ = select.select(watched, [], [], _patience(deadline, memory))
        if woken in ready and signal.SIGTERM in os.read(woken, 4096):
            return "told"
        process, status = os.waitpid(worker, os.WNOHANG)
        if process == worker:
            return status
        if seen in ready:
            marks = os.read(seen, 4096)
            if not marks:
                watched.remove(seen)
            elif seconds is not None:
                deadline = time.monotonic() + seconds if marks.endswith(_BEGIN) else None
        if control in ready:
            return "told"
        if deadline is not None and time.monotonic() >= deadline:
            return "time"
        if memory is not None and sum(descendants(os.getpid()).values()) > memory:
            return "memory"


def _patience(deadline: float | None, memory: int | None) -> float | None:
    left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
    if memory is None:
        return left
    return _LOOK_SECONDS if left is None else min(left, _LOOK_SECONDS)


def _serve(channel: int, notes: int) -> None:
    """Work on items one after the other until there are no more.

    The first message is the work, a function; then each is a number and an item. The answer is the number, the result
    or the exception, and the bytes of memory that this process holds.
    """
    collect_seldom()
    # The work's output must not get into the report on standard output.
    os.dup2(2, 1)
    with socket.socket(fileno=channel) as stream, stream.makefile("rwb") as pipe:
        work = _read(pipe)
        if work is None:
            return  # the run hung up
        _write(pipe, "ready")
        while (request := _read(pipe)) is not None:
            number, item = request
            result: Any = None
            problem: Exception | None = None
            os.write(notes, _BEGIN)
            try:
                result = work(item)
            except Exception as raised:  # noqa: BLE001  # it is raised again where the result is waited for
                problem = raised
            os.write(notes, _END)
            _write(pipe, (number, result, problem, resident_bytes()))


def _read(pipe: BufferedRWPair) -> Any:
    """The next message; None at the end."""
    try:
        head = pipe.read(LENGTH.size)
        if len(head) < LENGTH.size:
            return None
        length = LENGTH.unpack(head)[0]
        data = pipe.read(length)
    except ConnectionError:
        _leave()
    return pickle.loads(data) if len(data) == length else None


def _write(pipe: BufferedRWPair, message: object) -> None:
    data = pickle.dumps(message)
    try:
        pipe.write(LENGTH.pack(len(data)) + data)
        pipe.flush()
    except ConnectionError:
        _leave()


def _leave() -> NoReturn:
    """End silently: the run hung up, and the supervisor is about to end this process."""
    os._exit(0)
