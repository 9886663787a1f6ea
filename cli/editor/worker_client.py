"""The server's side of its worker process: one task at a time, which a change of the text ends."""

from __future__ import annotations

import selectors
import socket
from dataclasses import dataclass, field

from layoutproof.cli import codes
from layoutproof.cli.editor.notes import Note, Range
from layoutproof.cli.editor.work import Done, Task, do
from layoutproof.verify.workers.endings import Ending, Limits, NoWorker
from layoutproof.verify.workers.worker import Worker


class Cancelled(Exception):
    """The task was ended before it was done."""


@dataclass
class WorkerClient:
    """A worker process that is started when it is needed, and again after it was ended. `run` may be called by one
    thread at a time, `cancel` by any.
    """

    limits: Limits
    _worker: Worker[Task, Done] | None = field(default=None, init=False)
    _unwanted: Task | None = field(default=None, init=False)
    _bell: tuple[socket.socket, socket.socket] = field(default_factory=socket.socketpair, init=False)

    def run(self, task: Task) -> Done:
        """What came of a task; past its limit of time a note that says so. Raises Cancelled, and NoWorker where no
        process can be started.
        """
        worker = self._worker = Worker(do, self.limits, quiet=True) if self._worker is None else self._worker
        worker.give(0, task)
        with selectors.DefaultSelector() as selector:
            selector.register(self._bell[0], selectors.EVENT_READ)
            selector.register(worker, selectors.EVENT_READ)
            while True:
                waiting = selectors.EVENT_READ | (selectors.EVENT_WRITE if worker.wants_to_write else 0)
                selector.modify(worker, waiting)
                ready = {key.fileobj: events for key, events in selector.select()}
                if self._bell[0] in ready:
                    self._bell[0].recv(4096)
                    if self._unwanted is task:
                        self.close()
                        raise Cancelled
                if ready.get(worker, 0) & selectors.EVENT_WRITE:
                    worker.flush()
                if ready.get(worker, 0) & selectors.EVENT_READ:
                    replies, alive = worker.replies()
                    if replies:
                        return replies[0].result
                    if not alive:
                        return self._ended(worker, task)

    def _ended(self, worker: Worker[Task, Done], task: Task) -> Done:
        ending, began = worker.wait_for_end(), worker.began
        self.close()
        if not began:
            raise NoWorker.at_start(ending)
        line = task.document.whole_line(task.item.line - 1 if task.item is not None else 0)
        return Done((self._said(ending, line),))

    def _said(self, ending: Ending, line: Range) -> Note:
        if ending.why == "time" and self.limits.seconds is not None:
            return Note(codes.TIMEOUT, f"ended after {self.limits.seconds:g} s: it is not known", line, "warning")
        return Note(codes.WORKER_DIED, f"the process that checked this {ending}", line, "warning")

    def cancel(self, task: Task) -> None:
        """End a task, if it is still running."""
        self._unwanted = task
        self._bell[1].send(b"!")

    def close(self) -> None:
        """End the process; the next task starts another one."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None
