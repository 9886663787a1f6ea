"""What a worker process does for the language server (surveys of documents, items judged, hovers), and the server's
side of it: one task at a time, which a change of the text ends.

Everything here is sent between processes. Code of gate files runs in the worker only.
"""

from __future__ import annotations

import os
import selectors
import socket
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from layoutproof.cli import codes
from layoutproof.cli.editor.hovers import Shown, hover
from layoutproof.cli.editor.notes import Document, Note, Range
from layoutproof.cli.editor.python_files import judged_item, survey_python
from layoutproof.cli.editor.traces import is_trace, judged_trace, survey_traces
from layoutproof.cli.gate.check_items import Item, Options
from layoutproof.cli.gate.policy import Policy
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.verify.workers.endings import Ending, Limits, NoWorker
from layoutproof.verify.workers.worker import Worker


@dataclass(frozen=True, slots=True)
class Rules:
    """How documents of a folder are checked: the folder in which relative paths begin, options, and which findings
    count.
    """

    root: str
    options: Options
    policy: Policy


@dataclass(frozen=True, slots=True)
class Task:
    """A survey of a document, one of its items to judge, or a position to hover over."""

    document: Document
    rules: Rules
    item: Item | None = None
    position: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a task: notes and items of a survey, notes on an item, or what is shown at a position."""

    notes: tuple[Note, ...] = ()
    items: tuple[Item, ...] = ()
    shown: Shown | None = field(default=None, repr=False)


def do(task: Task) -> Done:
    """Carry a task out. A fault of the tool, which no text should cause, is a note."""
    try:
        if Path(task.rules.root).is_dir():
            os.chdir(task.rules.root)
        with task.document.in_place():
            return _do(task)
    except (Exception, SystemExit) as problem:  # noqa: BLE001  # the server goes on, and says what happened
        return Done((_failed(task, problem),))


def _do(task: Task) -> Done:
    document, rules = task.document, task.rules
    if task.position is not None:
        return Done(shown=hover(document, *task.position))
    python = document.path.endswith(".py")
    if task.item is not None:
        judged = judged_item if python else judged_trace
        return Done(tuple(judged(document, task.item, rules.options, rules.policy)))
    if not python and not is_trace(document.path, document.text):
        return Done()
    notes, items = survey_python(document, rules.policy) if python else survey_traces(document)
    return Done(tuple(notes), tuple(items))


def _failed(task: Task, problem: BaseException) -> Note:
    frames = traceback.extract_tb(problem.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    what = problem.diagnostics[0].message if isinstance(problem, LayoutproofError) else f"{problem}"
    message = f"checking this failed: {type(problem).__name__}: {what}{where}"
    return Note(codes.JUDGE_FAILED, message, task.document.whole_line(0), "warning")


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
