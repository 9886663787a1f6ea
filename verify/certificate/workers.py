"""Solvers in processes of their own: one that hangs or crashes costs its question an answer, and nobody else anything.

A worker that is over its wall limit, or dies, is replaced by a new one; the question it had is `unknown`, with the reason.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

from layoutproof.verify.smt.engines import Reply
from layoutproof.verify.smt.query import SmtQuery
from layoutproof.verify.smt.session import Answer

COMMAND: Sequence[str] = (sys.executable, "-m", "layoutproof.verify.smt.answering")
# A solver is told to stop by itself; the wall limit is for one that does not.
_GRACE = 2.0
_READ = 1 << 16


@dataclass(frozen=True, slots=True)
class Task:
    """A query for one engine."""

    query: SmtQuery
    engine: str


@dataclass(slots=True, eq=False)
class Worker:
    """One process, started when it is first needed."""

    command: Sequence[str]
    _process: subprocess.Popen[bytes] | None = None
    _asked: int = 0

    def answer(self, task: Task, seconds: float) -> Reply:
        """What the engine says, or why it did not."""
        process = self._started()
        self._asked += 1
        question = {"number": self._asked, "engine": task.engine, "text": task.query.text, "logic": task.query.logic, "seconds": seconds}
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            return self._gone()
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([process.stdout], [], [], seconds + _GRACE)
            if not ready:
                self.stop()
                return Reply(Answer.UNKNOWN, f"wall: no answer in {seconds + _GRACE:g} s")
            part = os.read(process.stdout.fileno(), _READ)
            if not part:
                return self._gone()
            line += part
        reply = _parsed(line, self._asked)
        if reply is None:
            # Whatever comes next from it might be taken for the answer to another question.
            self.stop()
            return Reply(Answer.UNKNOWN, "the solver's process said something that is no answer")
        return reply

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                list(self.command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
            )
        return self._process

    def _gone(self) -> Reply:
        code = self.stop()
        return Reply(Answer.UNKNOWN, f"the solver's process ended by itself (exit code {code})")

    def stop(self) -> int | None:
        """End the process, whatever it is doing; its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    # What was not written yet goes nowhere: nobody is there to read it.
                    continue
        try:
            return process.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def _parsed(line: bytes, number: int) -> Reply | None:
    """The answer to question `number`; None where the line is none."""
    try:
        said = json.loads(line)
        return Reply(Answer(said["answer"]), said["reason"]) if said["number"] == number else None
    except (ValueError, KeyError, TypeError):
        return None


@dataclass(slots=True)
class Pool:
    """Several workers. `seconds` bounds each question."""

    jobs: int
    seconds: float
    command: Sequence[str] = COMMAND
    _workers: list[Worker] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def ask(self, tasks: Sequence[Task], told: Callable[[], None] = lambda: None) -> list[Reply]:
        """The answers, in the order of the tasks, however many workers there are; `told` is called after each."""
        idle: list[Worker] = []

        def one(task: Task) -> Reply:
            with self._lock:
                worker = idle.pop() if idle else Worker(self.command)
                if worker not in self._workers:
                    self._workers.append(worker)
            reply = worker.answer(task, self.seconds)
            with self._lock:
                idle.append(worker)
                told()
            return reply

        executor = ThreadPoolExecutor(self.jobs)
        try:
            return list(executor.map(one, tasks))
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
            self.close()
            executor.shutdown(wait=True)

    def close(self) -> None:
        """End every process."""
        with self._lock:
            for worker in self._workers:
                worker.stop()
            self._workers.clear()
