"""One query to a solver with a deterministic budget: in this process (z3, a fresh context and a fixed seed each time),
or in a worker process that is killed when it hangs and started again when it dies. Part of the trusted computing base.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from threading import Lock
from types import FrameType
from typing import TYPE_CHECKING, Any

from layoutproof.verify.program.questions import Because
from layoutproof.verify.settings import scaled

if TYPE_CHECKING:
    import subprocess

Handler = Callable[[int, FrameType | None], Any]
_LATER_SECONDS = 0.01


def outside_finalisers(handler: Handler) -> Handler:
    """`handler`, delayed if the signal comes in a finaliser."""

    def handle(number: int, frame: FrameType | None) -> None:
        if _is_freeing(frame):
            again = threading.Timer(_LATER_SECONDS, os.kill, (os.getpid(), number))
            again.daemon = True
            again.start()
        else:
            handler(number, frame)

    return handle


def _is_freeing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def keep_interrupts() -> None:
    """Let Ctrl-C raise KeyboardInterrupt, but not in a finaliser, where it would be lost. A custom handler stays."""
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        signal.signal(signal.SIGINT, outside_finalisers(signal.default_int_handler))


DEFAULT_RLIMIT = 5_000_000
SEED = 0


class Answer(StrEnum):
    """A solver's answer."""

    SAT = "sat"
    UNSAT = "unsat"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer; a `sat` one has values for integer, bit-vector (unsigned) and boolean constants in `model`.

    `reason` says why it is `unknown`, `because` the same for code.
    """

    answer: Answer
    model: dict[str, int] = field(default_factory=dict)
    reason: str | None = None
    because: frozenset[Because] = frozenset()


@cache
def z3_module() -> Any:
    """The z3 module, imported at the first call."""
    import z3

    keep_interrupts()
    return z3


class Query:
    """Assertions over one fresh context. `Query().solve(...)` may be called once; terms belong to `query.ctx`."""

    def __init__(self) -> None:
        self.z3 = z3_module()
        self.ctx = self.z3.Context()
        self._assertions: list[Any] = []

    def integer(self, name: str) -> Any:
        """An integer constant of this query's context."""
        return self.z3.Int(name, self.ctx)

    def number(self, value: int) -> Any:
        """An integer literal of this query's context."""
        return self.z3.IntVal(value, self.ctx)

    def add(self, *assertions: Any) -> None:
        """Assert truth values of this query's context."""
        self._assertions.extend(assertions)

    @property
    def assertions(self) -> tuple[Any, ...]:
        """The assertions so far."""
        return tuple(self._assertions)

    def text(self, logic: str) -> str:
        """The query as SMT-LIB 2 in a logic, up to its `(check-sat)`."""
        solver = self.z3.Solver(ctx=self.ctx)
        solver.add(*self._assertions)
        lines = (line for line in solver.to_smt2().splitlines() if not line.startswith((";", "(set-info")))
        return "\n".join((f"(set-logic {logic})", *lines, ""))

    def add_text(self, text: str) -> None:
        """Assert what an SMT-LIB 2 script asserts, its declarations included; other commands of it are ignored."""
        self._assertions.extend(self.z3.parse_smt2_string(text, ctx=self.ctx))

    def solve(self, *, rlimit: int = DEFAULT_RLIMIT, seed: int = SEED) -> Outcome:
        """Ask once, with at most `rlimit` units of work; another seed searches in another order."""
        z3, rlimit = self.z3, scaled(rlimit)
        solver = z3.Solver(ctx=self.ctx)
        solver.set("random_seed", seed)
        solver.set("rlimit", rlimit)
        solver.add(*self._assertions)
        result = solver.check()
        if result == z3.unsat:
            return Outcome(Answer.UNSAT)
        if result == z3.sat:
            return Outcome(Answer.SAT, _values(z3, solver.model()))
        word = solver.reason_unknown()
        stopped = word in ("canceled", "max. resource limit exceeded")
        reason = f"z3 spent its budget of {rlimit} units" if stopped else f"z3: {word}"
        return Outcome(Answer.UNKNOWN, reason=reason, because=frozenset((Because.BUDGET,) if stopped else ()))


def _values(z3: Any, model: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for declaration in model.decls():
        value = model[declaration]
        if declaration.arity() > 0:
            continue
        if z3.is_int_value(value) or z3.is_bv_value(value):
            found[declaration.name()] = value.as_long()
        elif z3.is_true(value) or z3.is_false(value):
            found[declaration.name()] = int(z3.is_true(value))
    return found


_PROGRAM = Path(__file__).with_name("worker_process.py")
COMMAND: tuple[str, ...] = (sys.executable, "-P", str(_PROGRAM))
# Extra time for a worker that has to be started.
START_SECONDS = 20.0
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """The answer of a worker. `model` gives bit-vector and Boolean constants as unsigned integers.

    `wall`: the clock, a crash or a malformed reply ended it, so it is not deterministic; `hung`: it was the clock.
    `missing`: the solver is not installed. `stopped`: its budget was spent. `spent` is the work done, in the engine's
    own units; after a crash the whole budget.
    """

    answer: Answer
    model: dict[str, int] = field(default_factory=dict)
    reason: str | None = None
    wall: bool = False
    missing: bool = False
    hung: bool = False
    stopped: bool = False
    spent: int = 0


class Worker:
    """A client of one worker process, which `command` starts when it is first asked, and again after it died.

    `cut_short` counts the answers with `wall`: what was concluded meanwhile is not deterministic.
    """

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self.command = tuple(command)
        self.cut_short = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._number = 0
        self._lock = Lock()

    def ask(self, engine: str, text: str, logic: str, *, units: int, seconds: float) -> WorkerAnswer:
        """Put a self-contained query to an engine with a budget of its own units; `seconds` are a safety net."""
        with self._lock:
            process, fresh = self._started()
            self._number += 1
            request = {"id": self._number, "engine": engine, "text": text, "logic": logic, "units": units}
            answer: WorkerAnswer | None = None
            try:
                reply = self._exchange(process, request, seconds + (START_SECONDS if fresh else 0.0))
                answer = _read(reply, self._number, units)
            except _Failed as failure:
                self.cut_short += 1
                return WorkerAnswer(
                    Answer.UNKNOWN, reason=f"wall: {engine} {failure}", wall=True, hung=failure.hung, spent=units
                )
            finally:
                # After any exception, interrupts included, the process is out of step.
                if answer is None:
                    self._kill()
            return answer

    def close(self) -> None:
        """End the process, if this one started it."""
        with self._lock:
            self._kill()

    def _started(self) -> tuple[subprocess.Popen[bytes], bool]:
        if self._owner != os.getpid():
            # A fork: the process belongs to the parent, and its pipes are not to be touched.
            self._process = None
        if self._process is not None and self._process.poll() is None:
            return self._process, False
        self._kill()
        # A process is seldom started, and every command loads this file.
        import subprocess

        self._owner = os.getpid()
        self._process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
        return self._process, True

    def _exchange(self, process: subprocess.Popen[bytes], request: dict[str, Any], seconds: float) -> bytes:
        """One line out, one line in, before the time is over. Raises _Failed."""
        import selectors

        assert process.stdin is not None and process.stdout is not None
        deadline = time.monotonic() + seconds
        left = memoryview(json.dumps(request).encode() + b"\n")
        os.set_blocking(process.stdin.fileno(), False)
        received = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdin, selectors.EVENT_WRITE)
            selector.register(process.stdout, selectors.EVENT_READ)
            while not received.endswith(b"\n"):
                ready = selector.select(max(deadline - time.monotonic(), 0.0))
                if not ready:
                    raise _Failed(f"gave no answer in {seconds:g} seconds", hung=True)
                for key, _ in ready:
                    if key.fileobj is process.stdout:
                        received += _receive(process)
                    else:
                        left = left[_send(process, left) :]
                        if not left:
                            selector.unregister(process.stdin)
        return received

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


class _Failed(Exception):
    """Why a worker gave no answer; `hung`: there was none when the time was over."""

    def __init__(self, reason: str, *, hung: bool = False) -> None:
        super().__init__(reason)
        self.hung = hung


def _send(process: subprocess.Popen[bytes], data: memoryview) -> int:
    assert process.stdin is not None
    try:
        return os.write(process.stdin.fileno(), data[:_CHUNK])
    except BrokenPipeError as error:
        raise _Failed("died") from error


def _receive(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    data = os.read(process.stdout.fileno(), _CHUNK)
    if not data:
        raise _Failed("died")
    return data


def _read(reply: bytes, number: int, units: int) -> WorkerAnswer:
    """The answer in a line; without `spent`, the whole budget counts as spent. Raises _Failed for anything else."""
    try:
        found = json.loads(reply)
    except ValueError as error:
        raise _Failed("answered nonsense") from error
    if (
        not isinstance(found, dict)
        or found.get("id") != number
        or found.get("answer") not in ("sat", "unsat", "unknown", "missing")
    ):
        raise _Failed("answered nonsense")
    model = found.get("model")
    if not isinstance(model, dict) or not all(isinstance(v, int) for v in model.values()):
        raise _Failed("answered nonsense")
    reason, spent = found.get("reason"), found.get("spent", units)
    if not isinstance(spent, int):
        raise _Failed("answered nonsense")
    if found["answer"] == "missing":
        return WorkerAnswer(Answer.UNKNOWN, reason=str(reason), missing=True)
    reason = None if reason is None else str(reason)
    return WorkerAnswer(Answer(found["answer"]), model, reason, stopped=found.get("stopped") is True, spent=spent)


_shared = Worker()
atexit.register(_shared.close)


def shared_worker() -> Worker:
    """The worker of this process."""
    return _shared
