"""What a run is to check, item by item: small, and plain enough to travel to another process or machine."""

from __future__ import annotations

from dataclasses import dataclass

from layoutproof.cli.gate.outcome import Kind


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to check.

    `path` is the file that it stands in, as the user named it; `line` its line there, from 1. Of a gate, `subject` is its function's name
    and `case` the name of its case, if it has cases. Of a trace, `subject` is the program's function, `program` the program's file, `text`
    the schedule as JSON; of a rewrite there is only the file. Of a comparison, `path` and `subject` are the file and the function after,
    `program` is the file before, and `text` is what is asked, as JSON: see `gate.comparisons.Asked`.
    """

    kind: Kind
    name: str
    path: str
    line: int = 1
    subject: str = ""
    case: str | None = None
    program: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Options:
    """How items are judged, the same for all items of a run; everything that an outcome depends on besides its item and the files.

    `brief` leaves steps out of outcomes of schedules, which is enough for all forms but JSON and HTML, and much less to move and to read.

    `licences` are those that proofs may use, by name, sorted; `effort` multiplies all budgets; `detail` asks for what the HTML report
    shows; `cache` is the place of the proof cache (None: no cache is used, "": the default place); `certificate` is the file to write what
    was proved to, where the run has one item only, and `witness` the one to write the rewrite to that a comparison found.
    """

    licences: tuple[str, ...]
    effort: float = 1.0
    detail: bool = False
    brief: bool = False
    cache: str | None = ""
    certificate: str | None = None
    witness: str | None = None
