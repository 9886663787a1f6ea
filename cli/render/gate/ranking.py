"""Findings, the worst first: reports that may hold only so many leave out the least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from layoutproof.cli import codes
from layoutproof.cli.gate.outcome import Fate, Finding, Outcome

_OF_FAILURES: dict[str | None, int] = {"refuted": 0, None: 1, "unknown": 2, "vacuous": 3}
_OF_FATES: dict[Fate, int] = {Fate.ALLOWED: 4, Fate.KNOWN: 5, Fate.IGNORED: 6}
RANKS = range(7)
_HELP = "this is a fault of layoutproof; please report it"


def findings_of(outcome: Outcome) -> tuple[Finding, ...]:
    """The findings of an outcome. One that does not pass and has none that fails it does so all the same, so that gets one here."""
    if outcome.passes or any(finding.fate is Fate.FAILS for finding in outcome.findings):
        return outcome.findings
    word = outcome.verdict if outcome.verdict is not None else "wrong input"
    lack = Finding(codes.JUDGE_FAILED, f"the item is {word}, and no finding says why", outcome.verdict, place=outcome.place, help=_HELP)
    return (lack, *outcome.findings)


def rank(finding: Finding) -> int:
    """0 for the worst: what fails the run, as its exit code has it (refuted, wrong input, unknown, vacuous), then what does not."""
    return _OF_FAILURES[finding.status] if finding.fate is Fate.FAILS else rank_of(finding.fate)


def rank_of(fate: Fate) -> int:
    """The rank of all findings that share a fate other than to fail the run. Raises KeyError for those that do."""
    return _OF_FATES[fate]


def count_ranks(outcomes: Iterable[Outcome]) -> Counter[int]:
    """How many findings there are of each rank."""
    return Counter(rank(finding) for outcome in again(outcomes) for finding in findings_of(outcome))


def worst_first(outcomes: Iterable[Outcome], ranks: Counter[int] | None = None) -> Iterator[tuple[Outcome, Finding]]:
    """Every finding with its outcome: by rank, and in the run's order within one. Memory does not grow with their number.

    The outcomes are gone through once for each rank that occurs, as far as needed. `ranks` says how many of each rank are wanted; without
    it all are.
    """
    counts = ranks if ranks is not None else count_ranks(outcomes)
    for wanted in RANKS:
        left = counts[wanted]
        if left:
            for outcome, finding in _of_rank(outcomes, wanted):
                yield outcome, finding
                left -= 1
                if not left:
                    break


def _of_rank(outcomes: Iterable[Outcome], wanted: int) -> Iterator[tuple[Outcome, Finding]]:
    return ((outcome, finding) for outcome in again(outcomes) for finding in findings_of(outcome) if rank(finding) == wanted)


def again(outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """An iteration from the first outcome on. Raises TypeError for what can be gone through only once: the report would be cut short."""
    iterator = iter(outcomes)
    if iterator is outcomes:
        raise TypeError("a report goes through its outcomes more than once; give it a list or a Spool")
    return iterator
