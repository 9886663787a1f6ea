"""What a run's options make of each finding: whether it fails the run, is allowed, is ignored by its code, or stands in the baseline.

Wrong input is none of these: a program that cannot be read was not checked at all, so nothing but mending it makes a run pass. Nor is an
item whose worker died, or whose judge failed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from layoutproof.cli import codes
from layoutproof.cli.catalogue import LAYERS, all_codes, sentences
from layoutproof.cli.gate.baseline import Baseline
from layoutproof.cli.gate.outcome import Fate, Finding, Outcome
from layoutproof.ir.diagnostic import error

_UNKNOWN = "unknown"
_ERROR = "error"
# Nothing was asked where a worker died or judging failed: that is no question that proved too hard.
_FAULTS = frozenset({codes.WORKER_DIED, codes.JUDGE_FAILED})


@dataclass(frozen=True, slots=True)
class Policy:
    """Which findings fail a run.

    `select` and `ignore` are codes or beginnings of codes (`LP216`, `LP21`, `LP2`); nothing selected means everything. Of those that a code
    begins with, the longest decides, and of two equal ones `ignore`. `allow_unknown` lets pass what is neither proved nor refuted, and
    nothing else: not an item whose worker died. `baseline` has the findings that are known.

    Raises LayoutproofError where a text of `select` or `ignore` begins no code.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    allow_unknown: bool = False
    baseline: Baseline | None = None

    def __post_init__(self) -> None:
        for option, beginnings in (("--select", self.select), ("--ignore", self.ignore)):
            for beginning in beginnings:
                _check_begins_codes(option, beginning)

    def apply(self, outcome: Outcome) -> Outcome:
        """The outcome with the fate of each of its findings."""
        if not outcome.findings:
            return outcome
        return outcome.with_findings(tuple(replace(finding, fate=self.fate_of(finding)) for finding in outcome.findings))

    def fate_of(self, finding: Finding) -> Fate:
        """What a finding means for the run. An unknown that its gate allows is allowed already, and stays so."""
        if (finding.status is None and finding.severity == _ERROR) or finding.code in _FAULTS:
            return Fate.FAILS
        if not self.selects(finding.code):
            return Fate.IGNORED
        if self.baseline is not None and self.baseline.knows(finding):
            return Fate.KNOWN
        if finding.status == _UNKNOWN and (self.allow_unknown or finding.fate is Fate.ALLOWED):
            return Fate.ALLOWED
        return Fate.FAILS

    def selects(self, code: str) -> bool:
        """Whether findings of a code count."""
        selected = _longest(code, self.select) if self.select else 0
        return selected > _longest(code, self.ignore)


def read_codes(texts: Iterable[str]) -> tuple[str, ...]:
    """The codes in the texts of a repeatable option, in each of which they stand apart by commas or blanks: `LP221,LP31`."""
    return tuple(dict.fromkeys(code for text in texts for code in text.replace(",", " ").split()))


def _longest(code: str, beginnings: Iterable[str]) -> int:
    """The length of the longest that the code begins with; -1 where there is none."""
    return max((len(beginning) for beginning in beginnings if code.startswith(beginning)), default=-1)


def _check_begins_codes(option: str, beginning: str) -> None:
    known = _codes_like(beginning)
    if beginning == "" or not any(code.startswith(beginning) for code in known):
        raise error(codes.SELECTION, f"{option} {beginning!r}: no code begins so", help=_suggestion(beginning))


def _codes_like(text: str) -> tuple[str, ...]:
    """The codes of the layer that a text names; all codes where it names none. Tables of other layers are not loaded for nothing."""
    layer = text.removeprefix("LP")[:1]
    return tuple(sentences(layer)) if layer in LAYERS else all_codes()


def _suggestion(text: str) -> str:
    guess = f"LP{''.join(c for c in text if c.isdecimal())}"
    # Of the same layer, if there is such a one: the first digit is rarely the wrong one.
    known = _codes_like(guess)
    if guess != "LP" and any(code.startswith(guess) for code in known):
        return f"did you mean {guess}?"
    close = difflib.get_close_matches(guess, known, n=3) if len(guess) >= 5 else []
    return f"did you mean {' or '.join(close)}?" if close else "codes are written LP216; LP21 and LP2 mean all that begin so"
