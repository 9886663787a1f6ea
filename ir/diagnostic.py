"""Messages to users: a code, a severity, a text, the place in a source text, and what would help.

The codes are `LPnnn`; the hundreds digit is the number of the layer: 1 reading programs and maps, 2 what is proved of
them, 3 transforms and schedules, 4 code generation and running, 5 the command line, 6 graphs and plans,
7 studies.

Tracebacks of such errors end in a script at the line that called the package, from when the first one is made;
`LAYOUTPROOF_TRACEBACK=full` shows everything.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType

from layoutproof.ir.shown import Shown

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_REAL = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_ROOMS = ("cli", "graph", "importers", "ir", "lowering", "verify")
_HIDDEN = tuple(os.path.join(root, room) + os.sep for root in (_PACKAGE, _REAL) for room in _ROOMS)
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_installed = False


def lines_for_users(problem: BaseException) -> list[str] | None:
    """The traceback of an error of ours without frames of the package; None where all of it is to be shown."""
    import traceback  # which takes a while to load, and most runs have no error

    frames, inside = [], False
    for frame in traceback.extract_tb(problem.__traceback__):
        name = frame.filename
        # What the package calls of Python's own library is hidden with it, and a user's function that it calls is not.
        inside = name.startswith(_HIDDEN) or (inside and name.startswith(_LIBRARY) and "site-packages" not in name)
        if not inside:
            frames.append(frame)
    if os.environ.get("LAYOUTPROOF_TRACEBACK") == "full" or not frames:
        return None
    shown = traceback.StackSummary.from_list(frames).format()
    return ["Traceback (most recent call last):\n", *shown, f"{type(problem).__name__}: {problem}\n"]


def all_lines(problem: BaseException) -> list[str]:
    """The traceback as Python prints it."""
    import traceback

    return "".join(traceback.format_exception(problem)).splitlines()


def install(kind: type[BaseException]) -> None:
    """Print uncaught errors of this kind so, and leave all others to who printed them before."""
    global _installed
    if _installed:
        return
    _installed = True
    earlier = sys.excepthook

    def hook(found: type[BaseException], problem: BaseException, place: TracebackType | None) -> None:
        lines = lines_for_users(problem) if isinstance(problem, kind) else None
        if lines is None:
            earlier(found, problem, place)
        else:
            sys.stderr.write("".join(lines))

    sys.excepthook = hook


_NEWLINE = re.compile(r"\r\n|\r|\n")


def split_lines(text: str) -> list[str]:
    """The lines as Python counts them: unlike `str.splitlines`, not at form feeds and Unicode separators."""
    return _NEWLINE.split(text)


@dataclass(frozen=True, slots=True)
class Source:
    """A named text: a file's content, or a command-line argument."""

    name: str
    text: str = field(repr=False)

    def line(self, number: int) -> str:
        """Line `number`, counted from 1, without its newline; empty past the end."""
        lines = split_lines(self.text)
        return lines[number - 1] if 1 <= number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a source: lines count from 1, columns from 0 in characters, the end is exclusive, as in `ast`."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column + 1}"

    @property
    def text(self) -> str:
        """The text itself; of a span over several lines, the first line's part."""
        line = self.source.line(self.line)
        return line[self.column : self.end_column] if self.line == self.end_line else line[self.column :]


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message. `related` are further places with a word each; `help` says what to do about it."""

    code: str
    message: str
    span: Span | None = None
    severity: Severity = Severity.ERROR
    related: tuple[tuple[Span, str], ...] = ()
    help: str | None = None

    def render(self) -> str:
        """The message as people read it: place, text, source line with carets, related places, help."""
        place = f"{self.span}: " if self.span is not None else ""
        lines = [f"{place}{self.severity.value}[{self.code}]: {self.message}"]
        if self.span is not None:
            lines += _excerpt(self.span)
        for span, word in self.related:
            lines += [f"{span}: note: {word}", *_excerpt(span)]
        if self.help is not None:
            lines.append(f"  = help: {self.help}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()


_WIDTH = 160


def _excerpt(span: Span) -> list[str]:
    # Control characters and stray surrogates would move the carets, or fail to print at all.
    text = "".join(
        c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in span.source.line(span.line)
    )
    if not text.strip():
        return []
    end = span.end_column if span.end_line == span.line else len(text)
    # A long line is shown around the place, so that one unbroken megabyte does not reach the terminal.
    start = max(0, span.column - _WIDTH // 2) if len(text) > _WIDTH else 0
    shown = text[start : start + _WIDTH]
    carets = "^" * max(1, min(end, start + _WIDTH) - span.column)
    gutter = str(span.line)
    blank = " " * (span.column - start)
    # Tabs keep their width, so that the carets stand under what they mean.
    blank = "".join("\t" if c == "\t" else " " for c in shown[: span.column - start]) if "\t" in shown else blank
    return [f"  {gutter} | {shown}", f"  {' ' * len(gutter)} | {blank}{carets}"]


class LayoutproofError(Exception, Shown):
    """An error that is the input's, with its diagnostics; the command line prints them and exits with 2."""

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = (
            (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        )
        super().__init__("\n".join(d.render() for d in self.diagnostics))
        install(LayoutproofError)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows of the error: the lines of the notebook that led to it."""
        lines = lines_for_users(self)
        return all_lines(self) if lines is None else "".join(lines).splitlines()


def error(code: str, message: str, span: Span | None = None, *, help: str | None = None) -> LayoutproofError:
    """An exception with one diagnostic, ready to raise."""
    return LayoutproofError(Diagnostic(code, message, span, help=help))


def wrong_type(code: str, place: str, value: object, expected: str, *, help: str | None = None) -> LayoutproofError:
    """The error for an argument of another type: `loads, argument 'text' is 3, the text of a program is expected`."""
    text = repr(value)
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return error(code, f"{place} is {shown}, {expected} is expected", help=help)


def counted(number: int, one: str, many: str) -> str:
    """`1 axis`, `2 axes`: a number with its word."""
    return f"{number} {one if number == 1 else many}"


def meant(name: str, known: Iterable[str], otherwise: str | None = None) -> str | None:
    """`did you mean 'x'?` for the closest of the known names; `otherwise` where none is close."""
    from difflib import get_close_matches  # for a message only

    close = get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else otherwise
