"""The outcome of one item of a run, as plain data; the temporary file of a run's outcomes, their count with the exit
code, and paths as reports write them.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Any

from layoutproof.cli import codes
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, Span, error
from layoutproof.verify.verdict.report import to_entry
from layoutproof.verify.verdict.verdict import Verdict


class Kind(StrEnum):
    """What an item is."""

    GATE = "gate"  # a function decorated with `@layoutproof.gate`, or one case of it
    TRACE = "trace"  # a schedule of a program
    REWRITE = "rewrite"  # two programs with a witness
    COMPARISON = "comparison"  # two programs, whose witness is looked for


VERSION = 1
"""Of an outcome's form in JSON: a program that reads it need not look at more. New keys do not change it."""

COMPARED = ("after", "layouts", "kept", "strictness", "furthest", "witness")
"""The keys that an outcome of a comparison has besides those of all: see `gate.comparisons`."""


REPORTED = ("status", "claim", "engine", "strictness", "reason", "counterexample", "seconds")
"""The keys of an obligation that reports have; the others are for code."""


def step_of(primitive: str, arguments: Mapping[str, Any], verdicts: Iterable[Verdict]) -> Mapping[str, Any]:
    """A step as outcomes have it, its obligations with everything that code uses."""
    return {
        "primitive": primitive,
        "arguments": dict(arguments),
        "obligations": [to_entry(verdict) for verdict in verdicts],
    }


class Fate(StrEnum):
    """What a finding means for the run under the run's options."""

    FAILS = "fails"
    ALLOWED = "allowed"  # an unknown, where those are allowed
    IGNORED = "ignored"  # its code is not selected
    KNOWN = "known"  # it stands in the baseline


@dataclass(frozen=True, slots=True)
class Place:
    """A range of a file: lines and columns from 1, the end column exclusive. `text` is its first line, whole."""

    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    text: str = ""

    @staticmethod
    def of(span: Span) -> Place:
        """The place of a source span."""
        text = span.source.line(span.line)
        return Place(span.source.name, span.line, span.column + 1, span.end_line, span.end_column + 1, text)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        ends = {"end_line": self.end_line, "end_column": self.end_column}
        return {"path": self.path, "line": self.line, "column": self.column, **ends, "text": self.text}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Place:
        """The place that `to_dict` wrote."""
        return Place(data["path"], data["line"], data["column"], data["end_line"], data["end_column"], data["text"])


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or not known: a diagnostic with its code, and what it means for the run.

    `status`: a verdict's word (refuted, unknown, vacuous), None for wrong input. `obligation`: the hash under which a
    baseline knows it: of the program before the step, the step and the claim, free of lines. `counterexample`: a
    verdict's, as JSON; `drawing`: lines that show it.
    """

    code: str
    message: str
    status: str | None = None
    severity: str = "error"
    place: Place | None = None
    related: tuple[tuple[Place, str], ...] = ()
    help: str | None = None
    obligation: str | None = None
    counterexample: Mapping[str, Any] | None = None
    drawing: tuple[str, ...] = ()
    fate: Fate = Fate.FAILS

    @staticmethod
    def of(diagnostic: Diagnostic) -> Finding:
        """A diagnostic that is the input's."""
        place = Place.of(diagnostic.span) if diagnostic.span is not None else None
        related = tuple((Place.of(span), word) for span, word in diagnostic.related)
        return Finding(
            diagnostic.code,
            diagnostic.message,
            None,
            diagnostic.severity.value,
            place=place,
            related=related,
            help=diagnostic.help,
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "code": self.code,
            "message": self.message,
            "status": self.status,
            "severity": self.severity,
            "place": self.place.to_dict() if self.place is not None else None,
            "related": [{**place.to_dict(), "message": word} for place, word in self.related],
            "help": self.help,
            "obligation": self.obligation,
            "counterexample": dict(self.counterexample) if self.counterexample is not None else None,
            "drawing": list(self.drawing),
            "fate": self.fate.value,
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Finding:
        """The finding that `to_dict` wrote."""
        return Finding(
            data["code"],
            data["message"],
            data["status"],
            data["severity"],
            Place.from_dict(data["place"]) if data["place"] is not None else None,
            tuple((Place.from_dict(place), place["message"]) for place in data["related"]),
            data["help"],
            data["obligation"],
            data["counterexample"],
            tuple(data["drawing"]),
            Fate(data["fate"]),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one item.

    `name` is unique in a run: `gates.py::blocked_input[8]`, `conv2d.py:conv2d`, followed by `tuned.jsonl:17` for a line
    of a trace file. `place`: the item's. `verdict`: the worst verdict's word; None for wrong input. `steps`: as
    `step_of` makes them, a refused one last. `notes`: lines on fast-math assumptions, sizes and the like;
    `preconditions`: what callers have to see to, since no call checks it, such as the padding of inputs.
    `seconds`: how long proving took, in an earlier run if `cached`. `certificate`: the written file. `detail`: for the
    HTML report only, see `gate.judging.detail`. `compared`: of comparisons only, by the keys of COMPARED.
    """

    kind: Kind
    name: str
    program: str
    place: Place | None
    verdict: str | None
    steps: tuple[Mapping[str, Any], ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    cached: bool = False
    certificate: str | None = None
    detail: Mapping[str, Any] | None = field(default=None, repr=False)
    compared: Mapping[str, Any] | None = None
    preconditions: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """The verdict's word; `error` for wrong input."""
        return "error" if self.verdict is None else self.verdict

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes and the preconditions, a line each."""
        first, rest = self.notes[:1], self.notes[1:]
        return (*first, *(f"precondition: {text}" for text in self.preconditions), *rest)

    @property
    def passes(self) -> bool:
        """Whether it does not fail the run: all is proved, or all its findings are allowed, ignored or in the baseline.
        Wrong input never passes.
        """
        if self.verdict is None or any(finding.fate is Fate.FAILS for finding in self.findings):
            return False
        return self.verdict == "proved" or any(finding.status == self.verdict for finding in self.findings)

    def with_findings(self, findings: tuple[Finding, ...]) -> Outcome:
        """The same outcome with other findings."""
        return replace(self, findings=findings)

    def to_report(self) -> dict[str, Any]:
        """As reports have it: `to_dict` without what only code uses of obligations, and the version of this form."""
        shorter = [
            {**step, "obligations": [{key: one[key] for key in REPORTED} for one in step["obligations"]]}
            for step in self.steps
        ]
        return {**self.to_dict(), "steps": shorter, "version": VERSION}

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data: the keys of a schedule's report first."""
        return {
            "program": self.program,
            "verdict": self.verdict,
            "steps": [dict(step) for step in self.steps],
            "certificate": self.certificate,
            "kind": self.kind.value,
            "name": self.name,
            "place": self.place.to_dict() if self.place is not None else None,
            "findings": [finding.to_dict() for finding in self.findings],
            "notes": list(self.notes),
            "preconditions": list(self.preconditions),
            "seconds": self.seconds,
            "cached": self.cached,
            **(self.compared if self.compared is not None else {}),
            **({"detail": dict(self.detail)} if self.detail is not None else {}),
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Outcome:
        """The outcome that `to_dict` wrote."""
        return Outcome(
            Kind(data["kind"]),
            data["name"],
            data["program"],
            Place.from_dict(data["place"]) if data["place"] is not None else None,
            data["verdict"],
            tuple(data["steps"]),
            tuple(Finding.from_dict(finding) for finding in data["findings"]),
            tuple(data["notes"]),
            data["seconds"],
            data["cached"],
            data["certificate"],
            data.get("detail"),
            {key: data[key] for key in COMPARED} if COMPARED[0] in data else None,
            tuple(data["preconditions"]),
        )


EXIT_PASSED, EXIT_REFUTED, EXIT_INPUT, EXIT_UNKNOWN = 0, 1, 2, 3


@dataclass(slots=True)
class Summary:
    """Counts of a run: outcomes by verdict, findings by fate and code.

    `verdicts` also counts `error`, for wrong input.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    fates: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    items: int = 0
    failing: int = 0
    cached: int = 0

    def add(self, outcome: Outcome) -> None:
        """Count one outcome with the fates of its findings."""
        self.items += 1
        self.cached += outcome.cached
        self.verdicts[outcome.word] += 1
        for finding in outcome.findings:
            self.fates[finding.fate.value] += 1
            self.codes[finding.code] += 1
            if finding.fate is Fate.FAILS:
                self.failed["error" if finding.status is None else finding.status] += 1
        self.failing += not outcome.passes
        if not outcome.passes and all(finding.fate is not Fate.FAILS for finding in outcome.findings):
            # It does not say why it is not proved, which is no reason to let it pass.
            self.failed[outcome.word] += 1

    @property
    def exit_code(self) -> int:
        """0 if nothing fails the run; else by the worst that does: refuted, wrong input, unknown or vacuous."""
        if self.failed["refuted"]:
            return EXIT_REFUTED
        if self.failed["error"]:
            return EXIT_INPUT
        return EXIT_UNKNOWN if self.failed else EXIT_PASSED


_CHUNK = 1 << 16


class Spool:
    """Outcomes in the order of their addition, a line of JSON each, in a temporary file that the first one opens.

    It has no name, so it never stays behind. An iteration sees what was added before it began; several may run at
    the same time.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._count = 0

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; twice is fine."""
        if self._file is None:
            return
        try:
            self._file.close()
        except OSError as problem:
            # Closing writes the buffer, which is not read any more: `add` or reading reported a full disk.
            if not self._file.closed:
                raise _cannot_keep(problem) from problem

    def __len__(self) -> int:
        """The number of outcomes."""
        return self._count

    def add(self, outcome: Outcome) -> None:
        """Keep one more. Raises LayoutproofError if no temporary file can be written, or the disk has no place."""
        line = json.dumps(outcome.to_dict(), separators=(",", ":")).encode("ascii") + b"\n"
        try:
            if self._file is None:
                import tempfile  # one item is printed, and needs no file

                self._file = tempfile.TemporaryFile(prefix="layoutproof-")
            self._file.write(line)
        except OSError as problem:
            raise _cannot_keep(problem) from problem
        self._count += 1

    def __iter__(self) -> Iterator[Outcome]:
        """The outcomes from the first on. Raises LayoutproofError if the last ones could not be written."""
        if self._file is None:
            return iter(())
        try:
            self._file.flush()
        except OSError as problem:
            raise _cannot_keep(problem) from problem
        return self._from(self._file, self._file.tell())

    def _from(self, file: IO[bytes], end: int) -> Iterator[Outcome]:
        # Read by position: the file's own position belongs to `add`, and another iteration may be half way.
        position, rest = 0, b""
        while position < end:
            data = os.pread(file.fileno(), min(_CHUNK, end - position), position)
            position += len(data)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield Outcome.from_dict(json.loads(line))


def _cannot_keep(problem: OSError) -> LayoutproofError:
    message = f"outcomes cannot be kept in a temporary file: {problem.strerror or problem}"
    return error(codes.SPOOL, message, help="the folder is the one that the variable TMPDIR names, or the system's")


def steady_path(path: str) -> str:
    """A path as text with forward slashes: relative if it is below the working directory, else absolute.

    `./a.py`, `b/../a.py` and the absolute path of `a.py` become the same text. Links are not followed.
    """
    here = os.getcwd()
    whole = os.path.normpath(os.path.join(here, path))
    below = Path(whole).is_relative_to(here)
    return Path(os.path.relpath(whole, here) if below else whole).as_posix()


def is_below(path: str) -> bool:
    """Whether a path of `steady_path` is relative to the working directory."""
    return not PurePosixPath(path).is_absolute()
