"""What the writers of random texts share: lines at a depth, fresh names, index arithmetic and comparisons over what is
in scope.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random


@dataclass
class Draft:
    """A text that grows line by line, with the loops around the present line: each a variable and the extent that it
    stays below.
    """

    rng: Random
    lines: list[str] = field(default_factory=list)
    loops: list[tuple[str, str]] = field(default_factory=list)
    count: int = 0

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines) + "\n"

    def emit(self, depth: int, line: str) -> None:
        """Write a line."""
        self.lines.append("    " * depth + line)

    def name(self, prefix: str) -> str:
        """A fresh name."""
        self.count += 1
        return f"{prefix}{self.count}"

    def arithmetic(
        self,
        names: Sequence[str],
        alone: str,
        lengths: Sequence[int],
        forms: Callable[[str, str], Sequence[str]],
        share: float,
    ) -> str:
        """A name, or `alone`, in some of the forms: each a text of the term so far and another one, a name in `share`
        of the cases.
        """
        term = self.rng.choice(names) if names else alone
        for _ in range(self.rng.choice(lengths)):
            other = self.rng.choice(names) if names and self.rng.random() < share else str(self.rng.randint(0, 4))
            term = self.rng.choice(forms(term, other))
        return term

    def comparison(self, index: Callable[[], str], operators: Sequence[str]) -> str:
        """One or two comparisons of indices, joined."""
        parts = [f"({index()} {self.rng.choice(operators)} {index()})" for _ in range(self.rng.choice((1, 1, 2)))]
        return self.rng.choice((" and ", " or ")).join(parts)
