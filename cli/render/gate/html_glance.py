"""The figures at the top of the HTML report: shares of verdicts, files, the slowest items, and preconditions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any

from layoutproof.cli.gate.outcomes import Outcome, Summary

WORDS = ("refuted", "error", "unknown", "vacuous", "proved")
_SLOWEST, _FILES, _NOTES = 5, 8, 6
_WIDTH = 1000  # of the bar, in its own units


@dataclass(slots=True)
class Glance:
    """What is counted while outcomes go by."""

    files: dict[str, Counter[str]] = field(default_factory=dict)
    slowest: list[tuple[float, str, bool]] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        file = outcome.program.partition("::")[0] if outcome.place is None else outcome.place.path
        self.files.setdefault(file, Counter())[outcome.word] += 1
        self.slowest = nlargest(_SLOWEST, [*self.slowest, (outcome.seconds, outcome.name, outcome.cached)])
        self.notes.update(set(outcome.notes))

    def values(self, summary: Summary) -> dict[str, Any]:
        """What the template shows; nothing of a run of one item, whose own page has it all."""
        if summary.items < 2:
            return {"bar": [], "files": [], "slowest": [], "notes": [], "files_left": 0, "notes_left": 0}
        ranked = sorted(self.files.items(), key=lambda each: (-_not_proved(each[1]), -each[1].total(), each[0]))
        notes = sorted(self.notes.items(), key=lambda each: (-each[1], each[0]))
        return {
            "bar": list(_bar(summary.verdicts)),
            "files": [
                (name, [(word, counts[word]) for word in WORDS if counts[word]]) for name, counts in ranked[:_FILES]
            ],
            "files_left": max(0, len(ranked) - _FILES),
            "slowest": [(_duration(seconds), name, cached) for seconds, name, cached in self.slowest if seconds > 0],
            "notes": [(count, text) for text, count in notes[:_NOTES]],
            "notes_left": max(0, len(notes) - _NOTES),
        }


def _not_proved(counts: Counter[str]) -> int:
    return counts.total() - counts["proved"]


def _bar(verdicts: Counter[str]) -> list[tuple[str, int, int, int]]:
    """Each verdict's part of the bar: word, count, start and width; at least a sliver."""
    found, start, total = [], 0, sum(verdicts[word] for word in WORDS)
    for word in WORDS:
        if verdicts[word]:
            width = max(4, round(_WIDTH * verdicts[word] / total))
            found.append((word, verdicts[word], start, width))
            start += width
    return found


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1e3:.0f} ms"
