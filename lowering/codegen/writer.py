"""Lines of source text with indentation, so that what is generated reads as if somebody had written it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WIDTH = 120
# Where a line may be broken, from the loosest operator to the tightest; then behind commas and behind the assignment.
_LOOSEST_FIRST = (r"[?:]", r"\|\|", r"&&", r"(?:==|!=|<=|>=|<|>)", r"(?:[-+&|^]|<<|>>)", r"[*/%]")
_BREAKS = (*(re.compile(f" (?={operator} )") for operator in _LOOSEST_FIRST), re.compile(r"(?<=,) "), re.compile(r"(?<== )"))


def wrapped(text: str, width: int) -> list[str]:
    """A statement in pieces of at most `width` where it can be: broken where fewest brackets are open, then at the loosest operator."""
    pieces: list[str] = []
    while len(text) > width and not text.startswith(("/*", "LP_")):
        places = [(_depth(text, m.start()), rank, -m.start()) for rank, pattern in enumerate(_BREAKS) for m in pattern.finditer(text)]
        fitting = [place for place in places if width // 4 <= -place[2] <= width]
        if not fitting:
            break
        place = -min(fitting)[2]
        pieces.append(text[:place].rstrip())
        text = text[place:].lstrip()
    return [*pieces, text]


def _depth(text: str, place: int) -> int:
    """How many brackets are open at `place`."""
    before = text[:place]
    return sum(before.count(c) for c in "([") - sum(before.count(c) for c in ")]")


def inside_comment(text: str) -> str:
    """`text` on one line and without what begins or ends a comment."""
    return " ".join(text.replace("*/", "* /").replace("/*", "/ *").split())


def comment(text: str) -> str:
    """`/* text */`."""
    return f"/* {inside_comment(text)} */"


class Writer:
    """Collects lines at a current depth of nesting. `spell` writes each in the words of the language, where it is not C."""

    def __init__(self, indent: str = "    ", depth: int = 0, spell: Callable[[str], str] = str) -> None:
        self._lines: list[str] = []
        self._spell = spell
        self._indent = indent
        self._depth = depth

    def line(self, text: str = "") -> None:
        """Add one line at the current depth, over several where it is long; a preprocessor line stands at the margin."""
        if not text or text.startswith("#"):
            self._lines.append(text)
            return
        first, *rest = wrapped(self._spell(text), max(WIDTH - len(self._indent) * self._depth, WIDTH // 2))
        self._lines.append(self._indent * self._depth + first)
        self._lines += [self._indent * (self._depth + 2) + part for part in rest]

    @contextmanager
    def nested(self, head: str, tail: str = "}") -> Iterator[None]:
        """`head {`, what is written meanwhile one step deeper, `tail`."""
        self.line(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        if tail:
            self.line(tail)

    def text(self) -> str:
        """All lines, each ended by a newline."""
        return "".join(f"{line}\n" for line in self._lines)
