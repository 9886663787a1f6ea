"""What a check tells an editor: notes with exact ranges and what would mend them, as plain data between processes.

Lines and columns count from 0, columns in characters. The server translates them into the client's units.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from layoutproof.cli.gate.loading import use_copies
from layoutproof.cli.gate.outcomes import Fate, Finding, Place
from layoutproof.cli.render.gate.finding_texts import finding_lines
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, split_lines

_NEWLINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """A part of a text; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    def holds(self, line: int, column: int) -> bool:
        """Whether a position lies in it, its end included."""
        return (self.line, self.column) <= (line, column) <= (self.end_line, self.end_column)


@dataclass(frozen=True, slots=True)
class Fix:
    """A remedy: its title, and texts to put in place of ranges of the document."""

    title: str
    edits: tuple[tuple[Range, str], ...]


@dataclass(frozen=True, slots=True)
class Note:
    """One message about a document. `severity` is error, warning, information or hint; `related` are places in this or
    other files.
    """

    code: str
    message: str
    range: Range
    severity: str = "error"
    related: tuple[tuple[str, Range, str], ...] = ()
    fixes: tuple[Fix, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A text in an editor, which may differ from its file. `others`: the paths and texts of all open ones."""

    path: str
    text: str
    others: tuple[tuple[str, str], ...] = ()

    def whole_line(self, line: int) -> Range:
        """A line without the blanks around it; of one past the end, the last."""
        lines = split_lines(self.text)
        number = max(0, min(line, len(lines) - 1))
        text = lines[number]
        start = len(text) - len(text.lstrip())
        return Range(number, start, number, max(len(text.rstrip()), start))

    def range(self, start: int, end: int) -> Range:
        """The range between two offsets."""
        return Range(*self._position(start), *self._position(end))

    def _position(self, offset: int) -> tuple[int, int]:
        before = split_lines(self.text[:offset])
        return len(before) - 1, len(before[-1])

    def offset(self, line: int, column: int) -> int:
        """The offset of a position."""
        starts = [0, *(newline.end() for newline in _NEWLINE.finditer(self.text))]
        return starts[min(line, len(starts) - 1)] + column

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within it, this process reads the open texts in place of their files."""
        with TemporaryDirectory(prefix="layoutproof-editor-") as folder:
            copies: dict[str, str] = {}
            for number, (path, text) in enumerate((*self.others, (self.path, self.text))):
                copy = Path(folder, f"{number}{Path(path).suffix}")
                copy.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
                copies[path] = str(copy)
            use_copies(copies)
            try:
                yield
            finally:
                use_copies({})


def range_of(place: Place) -> Range:
    """The range of a place of a report, whose lines and columns count from 1."""
    end = (max(place.end_line, place.line), place.end_column)
    if place.end_line < place.line or end[1] < 1:
        end = (place.line, len(place.text) + 1)
    return Range(max(place.line - 1, 0), max(place.column - 1, 0), max(end[0] - 1, 0), max(end[1] - 1, 0))


_SEVERITIES = {Fate.FAILS: "error", Fate.ALLOWED: "warning", Fate.KNOWN: "information", Fate.IGNORED: "hint"}


def note_of(document: Document, finding: Finding, at: Range) -> Note:
    """A finding as a note; `at` is its place if the finding's own is in another file."""
    place, related = finding.place, list(finding.related)
    if place is not None and not same_file(place.path, document.path):
        related.insert(0, (place, "there"))
    range = range_of(place) if place is not None and same_file(place.path, document.path) else at
    severity = _SEVERITIES[finding.fate]
    if severity == "error" and (finding.status in ("unknown", "vacuous") or finding.severity == "warning"):
        severity = "warning"
    if finding.severity == "note":
        severity = "information"
    files = tuple((each.path, range_of(each), word) for each, word in related if Path(each.path).is_file())
    texts = [f"{each}: {each.text.strip()}" for each, _ in related if not Path(each.path).is_file()]
    bare = Finding(finding.code, finding.message, help=finding.help, drawing=finding.drawing)
    return Note(finding.code, "\n".join([*finding_lines(bare), *texts]), range, severity, files)


def notes_of(document: Document, problem: LayoutproofError, at: Range) -> Iterator[Note]:
    """The diagnostics of an error as notes."""
    yield from remarks(document, problem.diagnostics, at)


def remarks(document: Document, diagnostics: Iterable[Diagnostic], at: Range) -> Iterator[Note]:
    """Diagnostics as notes; `at` is the place of those that have none in the document."""
    for diagnostic in diagnostics:
        yield note_of(document, Finding.of(diagnostic), at)


def same_file(one: str, other: str) -> bool:
    """Whether two paths name one file."""
    return Path(one).resolve() == Path(other).resolve()
