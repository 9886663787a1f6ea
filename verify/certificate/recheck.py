"""Claims of files, checked again: derived by the checker, run by the interpreter, and asked of two solvers. A file's
own statements are not trusted; a process that hangs or dies costs its own file or question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path

from layoutproof.verify.certificate.kernel_reading import StepReport, Trust, trust_of
from layoutproof.verify.certificate.reading import Kind, Reading, StepReading, broken, read_file
from layoutproof.verify.program.questions import SmtQuery
from layoutproof.verify.smt.engines import Reply, ask, formats_of, takes
from layoutproof.verify.smt.solver import Answer
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status
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


_NONLINEAR = ("NIA", "NRA", "NIRA")


class Agreement(StrEnum):
    """How engines stand to what a query expects, best first."""

    CONFIRMED = "confirmed"  # two engines or more say so, none says otherwise
    SINGLE = "single"  # one does, the others do not know
    OPEN = "open"  # none knows
    WRONG = "wrong"  # those that know say otherwise
    DISAGREEMENT = "disagreement"  # engines contradict each other


@dataclass(frozen=True, slots=True)
class Asked:
    """A query with the answer of each engine."""

    query: SmtQuery
    replies: Mapping[str, Reply]

    @property
    def agreement(self) -> Agreement:
        """How the replies agree with each other and with what is expected."""
        known = [reply.answer for reply in self.replies.values() if reply.answer is not Answer.UNKNOWN]
        right = sum(answer.value == self.query.expected for answer in known)
        if right < len(known):
            return Agreement.DISAGREEMENT if right else Agreement.WRONG
        return Agreement.OPEN if right == 0 else Agreement.SINGLE if right == 1 else Agreement.CONFIRMED

    @property
    def excuse(self) -> str | None:
        """Why one engine is enough for this query, where it is: other solvers are not made for what it asks."""
        if self.query.logic.endswith(_NONLINEAR):
            return "products or quotients of variables, which solvers decide only sometimes"
        formats = formats_of(self.query.text)
        return f"{' and '.join(sorted(formats))}, which not every solver has" if formats else None

    def text(self) -> str:
        """`z3 unsat, cvc5 unknown (timeout)`."""
        return ", ".join(
            f"{engine} {reply.answer.value}{f' ({reply.reason})' if reply.reason is not None else ''}"
            for engine, reply in self.replies.items()
        )


SECONDS = 20.0
# The first try, in which nearly everything is decided that can be.
_QUICK = 3.0
Told = Callable[[str], None]


@contextmanager
def unwatched(count: int) -> Iterator[Told]:
    """No progress report."""
    yield lambda stage: None


@dataclass(frozen=True, slots=True)
class FileReport:
    """The result for one file: how many queries, and how many that two engines or more confirm."""

    path: str
    kind: Kind
    status: Status
    claims: int
    questions: int
    confirmed: int
    problems: tuple[str, ...]
    exceptions: tuple[str, ...]
    steps: tuple[StepReport, ...] = ()

    @property
    def is_broken(self) -> bool:
        """Whether the file was refused."""
        return self.kind is Kind.BROKEN


@dataclass(frozen=True, slots=True)
class EngineReport:
    """One engine's answers to the queries that it was asked."""

    name: str
    version: str
    asked: int
    confirmed: int
    unknown: int
    contradicted: int


@dataclass(frozen=True, slots=True)
class Report:
    """All files, all engines, and the queries on which engines contradict each other, as sentences."""

    files: tuple[FileReport, ...]
    engines: tuple[EngineReport, ...]
    disagreements: tuple[str, ...] = field(default=())

    @property
    def status(self) -> Status:
        """The worst of the files that could be read."""
        return worst(file.status for file in self.files if not file.is_broken)

    @property
    def broken(self) -> tuple[FileReport, ...]:
        """The files that were refused."""
        return tuple(file for file in self.files if file.is_broken)


def recheck(
    paths: Sequence[Path],
    engines: dict[str, str],
    *,
    jobs: int = 1,
    seconds: float = SECONDS,
    watched: Callable[[int], AbstractContextManager[Told]] = unwatched,
    read: Callable[[Path], Reading] = read_file,
) -> Report:
    """Check files again with some engines (names and versions). `watched` makes a progress callback for a number of
    stages: of the files, then of the answers. `read` reads and derives one file again in a process of its own.
    """
    with watched(len(paths)) as told:
        readings = all_in_workers(paths, read, _died, Limits(jobs), lambda reading: told(reading.path))
    asked = _ask_all(readings, engines, jobs, seconds, watched)
    disagreements = tuple(
        f"{claim}: {asked[query.text].text()}, expected {query.expected}"
        for claim, query in dict.fromkeys(
            (f"{r.path}: {claim}", query) for r in readings for claim, query in r.questions
        )
        if asked[query.text].agreement is Agreement.DISAGREEMENT
    )
    names = [_engine(name, version, asked.values()) for name, version in engines.items()]
    return Report(tuple(_report(reading, asked) for reading in readings), tuple(names), disagreements)


def _died(path: Path, ending: Ending) -> Reading:
    return broken(str(path), ["the process that read it ended by itself"])


def _ask_all(
    readings: Sequence[Reading],
    engines: dict[str, str],
    jobs: int,
    seconds: float,
    watched: Callable[[int], AbstractContextManager[Told]],
) -> dict[str, Asked]:
    """Every question by its text, with the engines' answers; wanted ones are asked again with more time."""
    tasks = _tasks(readings, engines)
    with watched(len(tasks)) as told:
        replies = ask_engines(tasks, jobs, min(_QUICK, seconds), lambda: told("asking solvers"))
    asked = _asked(tasks, replies)
    again = [
        k for k, task in enumerate(tasks) if replies[k].answer is Answer.UNKNOWN and _is_wanted(asked[task.query.text])
    ]
    if not again or seconds <= _QUICK:
        return asked
    with watched(len(again)) as told:
        slow = ask_engines([tasks[k] for k in again], jobs, seconds, lambda: told("asking again, with more time"))
    later = dict(zip(again, slow, strict=True))
    return _asked(tasks, [later.get(k, reply) for k, reply in enumerate(replies)])


def _tasks(readings: Sequence[Reading], engines: dict[str, str]) -> list[Task]:
    """Each question once for each engine that takes it."""
    queries = {query.text: query for reading in readings for _, query in reading.questions}
    return [
        Task(query, engine)
        for query in queries.values()
        for engine in engines
        if takes(engine, query.logic, query.text)
    ]


def _is_wanted(asked: Asked) -> bool:
    """Whether more time could make a difference."""
    return asked.agreement is Agreement.OPEN or (asked.agreement is Agreement.SINGLE and asked.excuse is None)


def _asked(tasks: Sequence[Task], replies: Sequence[Reply]) -> dict[str, Asked]:
    grouped: dict[str, dict[str, Reply]] = {}
    queries: dict[str, SmtQuery] = {}
    for task, reply in zip(tasks, replies, strict=True):
        queries[task.query.text] = task.query
        grouped.setdefault(task.query.text, {})[task.engine] = reply
    return {text: Asked(queries[text], found) for text, found in grouped.items()}


def _engine(name: str, version: str, asked: Iterable[Asked]) -> EngineReport:
    confirmed = unknown = contradicted = 0
    for one in asked:
        reply = one.replies.get(name)
        if reply is None:
            continue
        unknown += reply.answer is Answer.UNKNOWN
        confirmed += reply.answer.value == one.query.expected
        contradicted += reply.answer is not Answer.UNKNOWN and reply.answer.value != one.query.expected
    return EngineReport(name, version, confirmed + unknown + contradicted, confirmed, unknown, contradicted)


_BAD = {Agreement.WRONG: Status.REFUTED, Agreement.DISAGREEMENT: Status.REFUTED, Agreement.OPEN: Status.UNKNOWN}


def _report(reading: Reading, asked: dict[str, Asked]) -> FileReport:
    status, problems, exceptions = reading.status, list(reading.problems), list(reading.exceptions)
    confirmed = 0
    for claim, query in reading.questions:
        one = asked[query.text]
        agreement = one.agreement
        confirmed += agreement is Agreement.CONFIRMED
        if agreement in _BAD:
            status = worst((status, _BAD[agreement]))
            problems.append(f"{agreement.value.upper()}: {claim}: {one.text()}, expected {query.expected}")
        elif agreement is Agreement.SINGLE and one.excuse is not None:
            exceptions.append(f"{claim}: {one.text()}: {one.excuse}")
        elif agreement is Agreement.SINGLE:
            status = worst((status, Status.UNKNOWN))
            problems.append(f"one engine only: {claim}: {one.text()}")
    kind = reading.kind
    return FileReport(
        reading.path,
        kind,
        status,
        reading.claims,
        len(reading.questions),
        confirmed,
        tuple(problems),
        tuple(exceptions),
        tuple(_step(step, asked) for step in reading.steps),
    )


def _step(step: StepReading, asked: dict[str, Asked]) -> StepReport:
    """What a step rests on."""
    trust = trust_of(step.judged)
    if trust is Trust.NONE and step.status is Status.PROVED:
        # A question that was not asked (by a reader that derives a step only) is not confirmed.
        given = [asked[query.text].agreement for query in step.queries if query.text in asked]
        is_whole = len(given) == len(step.queries) and not step.has_exceptions
        trust = Trust.SOLVERS if is_whole and set(given) == {Agreement.CONFIRMED} else Trust.ENGINE
        if _BAD.keys() & set(given):
            trust = Trust.NONE
    return StepReport.of(step.name, trust, step.judged)
