"""Running batches of functions in a child process: what each returned, that it was refused, or how the process ended in
it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import IO, Self

from tests.oracle.messages import Arguments, Job, Reply, Request

SECONDS = 300.0
"""A child that says nothing for so long is taken to hang."""


@dataclass(frozen=True)
class Outcome:
    """What became of a job: its `outputs`, one list of arrays a run, or None with the reason; `died`: the process ended
    in it.
    """

    outputs: Sequence[Arguments] | None
    reason: str = ""
    died: bool = False


class Runner:
    """A child process, started when it is needed and again after it died."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.pipes: tuple[Connection, Connection] | None = None
        self.errors: IO[bytes] = tempfile.TemporaryFile()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self.errors.close()

    def close(self) -> None:
        """End the child."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        for pipe in self.pipes if self.pipes is not None else ():
            pipe.close()
        self.process = self.pipes = None

    def run(self, jobs: Sequence[Job], library: str | None = None, *, plain: bool = False) -> dict[str, Outcome]:
        """The outcome of each job, by its key. Where the child dies in one it goes on with the others.
        `plain` has TVM compile without its simplifier.

        Where it dies before it runs any, the batch is halved until the job that kills it stands alone: that one is
        refused.
        """
        found: dict[str, Outcome] = {}
        batches = [list(jobs)] if jobs else []
        while batches:
            batch = batches.pop()
            ended, running = self._attempt(Request(batch, library, plain), found)
            if not ended:
                how = self._death()
                if running is not None:
                    found[running.key] = Outcome(None, how, died=True)
                elif len(batch) == 1:
                    found[batch[0].key] = Outcome(None, f"compiling: {how}")
                else:
                    batches.append(batch[len(batch) // 2 :])
                    batch = batch[: len(batch) // 2]
            left = [job for job in batch if job.key not in found]
            if left and ended:
                raise RuntimeError(f"no outcome of {left[0].key}: {self.said()}")
            batches += [left] if left else []
        return found

    def _attempt(self, request: Request, found: dict[str, Outcome]) -> tuple[bool, Reply | None]:
        """Send a request and note the outcomes; whether the child came to the end, and what it ran last."""
        requests, replies = self._started()
        running: Reply | None = None
        try:
            requests.send(request)
            while replies.poll(SECONDS):
                reply: Reply = replies.recv()
                match reply.state:
                    case "end":
                        return True, running
                    case "running":
                        running = reply
                    case "refused":
                        found[reply.key] = Outcome(None, reply.message)
                    case _:
                        found[reply.key] = Outcome(reply.outputs)
            assert self.process is not None
            self.process.kill()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            pass  # the child is dead: what it was at is the outcome
        return False, running

    def _started(self) -> tuple[Connection, Connection]:
        if self.pipes is None:
            # One thread: what is compared are results, and the machine has other work.
            environment = {**os.environ, "TVM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
            (requests_out, requests_in), (replies_out, replies_in) = os.pipe(), os.pipe()
            command = [sys.executable, "-m", "tests.oracle.child", str(requests_out), str(replies_in)]
            nothing, theirs = subprocess.DEVNULL, (requests_out, replies_in)
            self.process = subprocess.Popen(
                command, stdin=nothing, stdout=self.errors, stderr=self.errors, env=environment, pass_fds=theirs
            )
            for pipe in theirs:
                os.close(pipe)
            self.pipes = Connection(requests_in, readable=False), Connection(replies_out, writable=False)
        return self.pipes

    def _death(self) -> str:
        """How the child ended."""
        if self.process is None:
            return "did not start"
        code = self.process.wait()
        self.close()
        return f"the process ended with {code}"

    def said(self) -> str:
        """The end of what the child wrote to standard error."""
        self.errors.seek(0)
        return self.errors.read()[-2000:].decode(errors="replace")
