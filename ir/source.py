"""Source text and the places in it, so that every message can point at what it speaks of."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NEWLINE = re.compile(r"\r\n|\r|\n")


def split_lines(text: str) -> list[str]:
    """The lines as Python counts them: a form feed or a Unicode separator does not end one, as `str.splitlines` would have it."""
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
    """A stretch of a source: lines count from 1, columns from 0, the end is exclusive (as Python's `ast` has it, in characters)."""

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
