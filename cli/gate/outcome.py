"""What became of one item of a gate's run, as plain data: it travels between processes, is kept in a cache, and is what renderers read.

An outcome holds texts and numbers only, so that one read back from JSON is equal to the one that was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from layoutproof.ir.diagnostic import Diagnostic, Span
from layoutproof.verify.verdict.verdict import Verdict


class Kind(StrEnum):
    """What an item is."""

    GATE = "gate"  # a function decorated with `@layoutproof.gate`, or one case of it
    TRACE = "trace"  # a schedule of a program
    REWRITE = "rewrite"  # two programs with a witness
    COMPARISON = "comparison"  # two programs, whose witness is looked for


COMPARED = ("after", "layouts", "kept", "strictness", "furthest", "witness")
"""The keys that an outcome of a comparison has besides those of all: see `gate.comparisons`."""


REPORTED = ("status", "claim", "engine", "strictness", "reason", "counterexample", "seconds")
"""The keys of an obligation that reports have; the others are for code."""


def step_of(primitive: str, arguments: Mapping[str, Any], verdicts: Iterable[Verdict]) -> Mapping[str, Any]:
    """A step as outcomes have it: its obligations with all that code asks of them."""
    return {"primitive": primitive, "arguments": dict(arguments), "obligations": [verdict.to_entry() for verdict in verdicts]}


class Fate(StrEnum):
    """What a finding means for the run, once the run's options were applied to it."""

    FAILS = "fails"
    ALLOWED = "allowed"  # an unknown, where those are allowed
    IGNORED = "ignored"  # its code is not selected
    KNOWN = "known"  # it stands in the baseline


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of a file: lines and columns count from 1, the end column is exclusive. `text` is the first line of it, whole."""

    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    text: str = ""

    @staticmethod
    def of(span: Span) -> Place:
        """The place of a span of a source."""
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

    `status` is a verdict's word (refuted, unknown, vacuous), None where the input itself is wrong. `obligation` is the hash under which a
    baseline knows it: of the program before the step, the step and the claim, free of lines. `counterexample` is a verdict's, as JSON has
    it; `drawing` are lines that show it small.
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
            diagnostic.code, diagnostic.message, None, diagnostic.severity.value, place=place, related=related, help=diagnostic.help
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
    """What became of one item.

    `name` is unique in a run: `gates.py::blocked_input[8]`, `conv2d.py:conv2d`, with `tuned.jsonl:17` behind it for a line of a file of
    traces. `place` is where the item stands. `verdict` is a verdict's word, the worst of all; None where the input is wrong. `steps` are
    as `step_of` makes them, a refused one last; `notes` is what else a reader should know, a line each (licences, assumptions of
    callers). `seconds` is how long it took to prove, `cached` whether that was in an earlier run; `certificate` is the file that was made.
    `detail` is there only for who asked for it (the HTML report): see `gate.detail`. `compared` is what only comparisons have, by the keys
    of COMPARED.
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

    @property
    def word(self) -> str:
        """The verdict's word; `error` where the input is wrong."""
        return "error" if self.verdict is None else self.verdict

    @property
    def passes(self) -> bool:
        """Whether it does not fail the run: all is proved, or the findings that say why not are there, and are spared. What is no right
        input was not checked, and never passes.
        """
        if self.verdict is None or any(finding.fate is Fate.FAILS for finding in self.findings):
            return False
        return self.verdict == "proved" or any(finding.status == self.verdict for finding in self.findings)

    def with_findings(self, findings: tuple[Finding, ...]) -> Outcome:
        """The same outcome with other findings: those whose fate was decided."""
        return replace(self, findings=findings)

    def to_report(self) -> dict[str, Any]:
        """As reports have it: `to_dict` without what only code asks of obligations."""
        shorter = [{**step, "obligations": [{key: one[key] for key in REPORTED} for one in step["obligations"]]} for step in self.steps]
        return {**self.to_dict(), "steps": shorter}

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
        )
