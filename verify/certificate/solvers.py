"""Solvers in worker processes: one that hangs or crashes only leaves its own question unanswered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from layoutproof.verify.program.questions import SmtQuery
from layoutproof.verify.smt.engines import Reply, ask
from layoutproof.verify.smt.solver import Answer
from layoutproof.verify.workers.endings import Ending, Limits
from layoutproof.verify.workers.pool import all_in_workers

# A solver has its own time limit; its process is killed this much later.
_GRACE = 2.0


@dataclass(frozen=True, slots=True)
class Task:
    """A query for one engine."""

    query: SmtQuery
    engine: str


def ask_engine(seconds: float, task: Task) -> Reply:
    """An engine's answer; unknown with the exception that it raised."""
    try:
        return ask(task.engine, task.query.text, seconds)
    except Exception as problem:  # noqa: BLE001  # solvers raise what they like; the reason is told
        return Reply(Answer.UNKNOWN, f"{type(problem).__name__}: {problem}")


def ask_engines(
    tasks: Sequence[Task], jobs: int, seconds: float, told: Callable[[], None] = lambda: None
) -> list[Reply]:
    """The answers in the order of the tasks; `seconds` bounds each, `told` is called after each."""
    limit = Limits(jobs, seconds + _GRACE)
    return all_in_workers(
        tasks, partial(ask_engine, seconds), partial(_no_answer, seconds), limit, lambda _: told(), quiet=True
    )


def _no_answer(seconds: float, task: Task, ending: Ending) -> Reply:
    slow = ending.why == "time"
    return Reply(
        Answer.UNKNOWN, f"wall: no answer in {seconds + _GRACE:g} s" if slow else f"the solver's process {ending}"
    )
