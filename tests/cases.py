"""Programs with the diagnostics that are expected of them, in files that people read: `tests/programs/**/*.py`.

A file is a list of cases, each behind a line `# ----- name`. A case is a program, and perhaps a step to apply to it (`#
step: fuse(block='root', loops=[0, 1])`) and the interface of its schedule (`# interface: fixed`). A case without a
program is about that of the case before.

A diagnostic stands below its line, with its columns, both included: `# error[LP316] 9-17: text`; one of another place
has the line too (`6:9-17`), one of no place stands at the end. Lines are counted in the program alone, as if none of
these comments were there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from layoutproof.ir.diagnostic import Diagnostic, Source, Span, split_lines
from tests.tree import ROOT

PROGRAMS = ROOT / "tests" / "programs"
_NAME = re.compile(r"# -{5} (\w+)")
_HEADER = re.compile(r"# (step|interface): (.*)")
_EXPECTED = re.compile(r"\s*# (?:(?:error|warning)\[LP|note |help: | {3})")


@dataclass(frozen=True)
class Case:
    """One case: its program's source, the step as text, and the lines in which the file states all of it, diagnostics
    included.
    """

    path: Path
    name: str
    source: Source
    step: str | None
    interface: str
    lines: tuple[str, ...]

    @property
    def id(self) -> str:
        """The file and the name, for reports."""
        return f"{self.path.relative_to(PROGRAMS).with_suffix('').as_posix()}:{self.name}"

    @property
    def options(self) -> tuple[str, dict[str, Any]]:
        """The name of the step and its arguments. Raises ValueError where the case has none that can be read."""
        call = ast.parse(self.step or "", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError(f"{self.id}: a step is name(argument=value, ...), not {self.step}")
        return call.func.id, {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}

    @property
    def bare(self) -> list[str]:
        """The lines without the diagnostics."""
        return [line for line in self.lines if not _EXPECTED.match(line)]

    def stating(self, diagnostics: Sequence[Diagnostic]) -> list[str]:
        """The lines of the case with these diagnostics in their places."""
        headers = sum(bool(_HEADER.fullmatch(line)) for line in self.bare)
        below: dict[int, list[str]] = {}
        for each in diagnostics:
            span = each.span
            number = len(self.bare)
            if span is not None and span.source == self.source and headers + span.line <= number:
                number = headers + span.line
            below.setdefault(number, []).extend(
                stated(each, self.source, beside=span is not None and number == headers + span.line)
            )
        lines = []
        for number, line in enumerate(self.bare, start=1):
            indent = re.match(r"\s*", line)
            assert indent is not None
            lines += [line, *(f"{indent[0]}# {text}" for text in below.get(number, ()))]
        return lines + [f"# {text}" for text in below.get(0, ())]


def stated(diagnostic: Diagnostic, source: Source, *, beside: bool = False) -> list[str]:
    """A diagnostic in lines; `beside` leaves out the line of its place."""
    place = "" if diagnostic.span is None else f" {place_of(diagnostic.span, source, beside)}"
    lines = [f"{diagnostic.severity.value}[{diagnostic.code}]{place}: {diagnostic.message}"]
    lines += [f"note {place_of(span, source)}: {word}" for span, word in diagnostic.related]
    lines += [] if diagnostic.help is None else [f"help: {diagnostic.help}"]
    return [text for line in lines for text in line.replace("\n", "\n   ").split("\n")]


def place_of(span: Span, source: Source, beside: bool = False) -> str:
    """`6:9-17`, both included; with the end's line where it is another, and with the name of a source that is not this
    one.
    """
    first = f"{span.column + 1}" if beside else f"{span.line}:{span.column + 1}"
    last = f"{span.end_column}" if span.end_line == span.line else f"{span.end_line}:{span.end_column}"
    return ("" if span.source == source else f"{span.source.name} ") + f"{first}-{last}"


def cases_of(path: Path) -> Iterator[Case]:
    """The cases of a file."""
    source = Source(path.name, "")
    for name, lines in sections(path)[1]:
        bare = [line for line in lines if not _EXPECTED.match(line)]
        headers = {found[1]: found[2] for line in bare if (found := _HEADER.fullmatch(line))}
        text = "".join(f"{line}\n" for line in bare if not _HEADER.fullmatch(line))
        source = Source(path.name, text) if text else source
        yield Case(path, name, source, headers.get("step"), headers.get("interface", "free"), tuple(lines))


def sections(path: Path) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The lines before the first case, and each case's name and lines, without the empty ones at its end."""
    prelude: list[str] = []
    found: list[tuple[str, list[str]]] = []
    for line in split_lines(path.read_text(encoding="utf-8")):
        if name := _NAME.fullmatch(line):
            found.append((name[1], []))
        else:
            (found[-1][1] if found else prelude).append(line)
    for _, lines in found:
        while lines and not lines[-1]:
            lines.pop()
    return prelude, found


def rewrite(case: Case, lines: Sequence[str]) -> None:
    """Write the case anew into its file."""
    prelude, found = sections(case.path)
    text = "\n".join(prelude).rstrip("\n") + "\n\n"
    for name, old in found:
        text += "".join(f"{line}\n" for line in (f"# ----- {name}", *(lines if name == case.name else old), ""))
    case.path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


ALL: tuple[Case, ...] = tuple(case for path in sorted(PROGRAMS.rglob("*.py")) for case in cases_of(path))
