"""The process of a worker: a keeper, and below it the process that works.

The keeper is small and only waits. It ends the working process with its process tree when an item exceeds its time or
memory, when the run tells it to, or when the run is gone, however it ended: a closed pipe is enough. So limits hold
while the run itself is busy, and nothing stays behind when a worker crashes or the run is killed.

Memory is the resident memory of the tree, looked at every few hundredths of a second. A limit of address space would be
wrong: numerical libraries and allocators reserve far more than they touch, and a solver is a process of its own.
"""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import socket
import struct
import sys
import time
from io import BufferedRWPair
from typing import Any, NoReturn

from layoutproof.verify.workers.process_tree import (
    adopt_orphans,
    descendants,
    die_with_parent,
    end_all_below,
    resident_bytes,
)

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
    """End silently: the run hung up, and the keeper is about to end this process."""
    os._exit(0)
