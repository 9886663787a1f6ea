"""What a worker process does for the language server: surveys of documents, items judged, hovers.

Everything here is sent between processes. Code of gate files runs in the worker only.
"""

from __future__ import annotations

import os
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from layoutproof.cli import codes
from layoutproof.cli.editor.hovers import Shown, hover
from layoutproof.cli.editor.notes import Document, Note
from layoutproof.cli.editor.python_files import judged_item, survey_python
from layoutproof.cli.editor.traces import is_trace, judged_trace, survey_traces
from layoutproof.cli.gate.check_items import Item, Options
from layoutproof.cli.gate.policy import Policy
from layoutproof.ir.diagnostic import LayoutproofError


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
