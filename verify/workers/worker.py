"""The run's side of a worker process: starting it, sending items, reading results, and learning how it ended."""

from __future__ import annotations

import json
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from layoutproof.verify.workers.endings import Ending, Limits, NoWorker
from layoutproof.verify.workers.supervisor import LENGTH

T = TypeVar("T")
R = TypeVar("R")

_CHUNK = 1 << 18
# A worker is replaced after so many items, or when it has grown by so many bytes, or by a quarter of its limit.
RENEW_ITEMS = 5_000
RENEW_GROWTH = 160 << 20
# A worker that was asked to end has its exit handlers to run, and its solver to end.
GRACE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Reply(Generic[R]):
    """The result of one item, and the bytes of memory that the process held after it."""

    number: int
    result: R
    resident: int


class Worker(Generic[T, R]):
    """One worker process with its supervisor. Nothing here waits, but `wait_for_end`. `work` is done on each item.

    Raises NoWorker where no process can be started. `quiet`: what it says on standard error goes nowhere.
    """

    def __init__(self, work: Callable[[T], R], limits: Limits, *, quiet: bool = False) -> None:
        self.served = 0
        self._growth = self._first = 0
        self._most = RENEW_GROWTH if limits.memory is None else min(RENEW_GROWTH, limits.memory // 4)
        self._ready = False
        self._received = bytearray()
        self._unsent = bytearray()
        self._channel, channel = socket.socketpair()
        self._control, control = socket.socketpair()
        self._channel.setblocking(False)
        try:
            self._process = subprocess.Popen(
                _command(channel.fileno(), control.fileno(), limits),
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL if quiet else None,
                pass_fds=(channel.fileno(), control.fileno()),
                start_new_session=True,
            )
        except OSError as problem:
            self._channel.close()
            self._control.close()
            raise NoWorker(f"no worker process can be started: {problem.strerror}") from problem
        finally:
            channel.close()
            control.close()
        self._post(work)

    def fileno(self) -> int:
        """The socket of items and outcomes, for a selector."""
        return self._channel.fileno()

    @property
    def wants_to_write(self) -> bool:
        """Whether there is something that could not be sent yet."""
        return bool(self._unsent)

    @property
    def is_spent(self) -> bool:
        """Whether to replace it: it took many items, or holds much more memory than after its first."""
        return self.served >= RENEW_ITEMS or self._growth > self._most

    def give(self, number: int, item: T) -> None:
        """Send an item; its result has the same number."""
        self._post((number, item))

    def flush(self) -> None:
        """Send as much as the socket takes now."""
        try:
            while self._unsent:
                del self._unsent[: self._channel.send(self._unsent)]
        except BlockingIOError:
            return
        except OSError:
            # The process is gone; its last messages and the end of the stream are still to be read.
            self._unsent.clear()

    def replies(self) -> tuple[list[Reply[R]], bool]:
        """What came in since, and whether more can come: not if the process has ended. Raises what the work raised."""
        alive = self._receive()
        found: list[Reply[R]] = []
        while len(self._received) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self._received)[0]
            if len(self._received) < end:
                break
            message = pickle.loads(self._received[LENGTH.size : end])
            del self._received[:end]
            if not self._ready:
                self._ready = True
                continue
            number, result, problem, resident = message
            if problem is not None:
                raise problem
            found.append(Reply(number, result, resident))
            self.served += 1
            self._first = self._first if self.served > 1 else found[-1].resident
            self._growth = found[-1].resident - self._first
        return found, alive

    def no_more_items(self) -> None:
        """Let the process end when it has finished its items."""
        try:
            self._channel.shutdown(socket.SHUT_WR)
        except OSError:
            return  # it has ended already

    @property
    def began(self) -> bool:
        """Whether it was ready for an item."""
        return self._ready

    def wait_for_end(self) -> Ending:
        """How a process ended that has ended or is about to; after some seconds it is killed."""
        self._control.settimeout(GRACE_SECONDS)
        try:
            told = self._control.recv(4096)
        except OSError:  # a timeout is one
            told = b""
        self.close()
        code = self._process.returncode
        if told:
            data = json.loads(told)
            ending = Ending(data["why"], data["status"])
        else:
            # The supervisor itself was killed: only its own status is known.
            ending = Ending("signal", -code) if code < 0 else Ending("exit", code)
        return ending

    def tell_to_end(self) -> None:
        """Have it ended with its process tree; to another thread that waits for it, it looks like a death."""
        try:
            self._control.shutdown(socket.SHUT_WR)
        except OSError:
            return  # it has ended already

    def hang_up(self) -> None:
        """Have it ended with its process tree: the supervisor does that when the socket closes."""
        self._control.close()
        self._channel.close()

    def close(self) -> None:
        """Have it ended, and wait for that."""
        self.hang_up()
        self._process.wait()

    def _post(self, message: object) -> None:
        data = pickle.dumps(message)
        self._unsent += LENGTH.pack(len(data)) + data
        self.flush()

    def _receive(self) -> bool:
        while True:
            try:
                data = self._channel.recv(_CHUNK)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            self._received += data


def _command(channel: int, control: int, limits: Limits) -> list[str]:
    # By text, not by module name: a worker looks for modules exactly where this process does.
    call = f"main({channel}, {control}, {limits.seconds!r}, {limits.memory!r})"
    return [
        sys.executable,
        "-P",
        "-c",
        f"import sys; sys.path[:] = {sys.path!r}; from layoutproof.verify.workers.supervisor import main; {call}",
    ]
