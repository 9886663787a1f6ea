"""Shared by machine-readable reports: findings ranked, worst first, and texts of bounded length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from layoutproof.cli import codes
from layoutproof.cli.gate.outcomes import Fate, Finding, Outcome, Summary
from layoutproof.ir.diagnostic import counted

_FATES = {
    Fate.ALLOWED: "allowed",
    Fate.KNOWN: "known: it stands in the baseline",
    Fate.IGNORED: "ignored: its code is not selected",
}
_COUNTED = ("proved", "refuted", "unknown", "vacuous", "error")


def status_word(finding: Finding) -> str:
    """The word of a finding's status: a verdict's, or `error`, `warning` or `note` for wrong input."""
    return finding.status if finding.status is not None else finding.severity


def fate_words(finding: Finding) -> str:
    """Why a finding does not fail the run; empty if it does."""
    return _FATES.get(finding.fate, "")


def finding_lines(finding: Finding) -> list[str]:
    """A finding as lines: the message's first line, the drawn counterexample, the rest; related places; help."""
    first, *rest = plain_lines(finding.message)
    lines = [first, *(line for drawn in finding.drawing for line in plain_lines(drawn)), *rest]
    for place, word in finding.related:
        lines += plain_lines(f"{place}: {word}")
    if finding.help is not None:
        lines += plain_lines(f"help: {finding.help}")
    return lines


def headline(finding: Finding) -> str:
    """The first line of a finding's message, with single blanks."""
    return one_line(plain_lines(finding.message.strip())[0])


def plain_lines(text: str) -> list[str]:
    """The lines of a text, with any line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def one_line(text: str) -> str:
    """A text with single blanks for all blanks and line ends."""
    return " ".join(text.split())


def printable(text: str) -> str:
    """A text without control characters and unencodable ones; line ends and tabs stay."""
    return "".join(c if c.isprintable() or c in "\r\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def shortened(text: str, limit: int) -> str:
    """A text of at most `limit` characters, which ends with the number of characters left out, if any."""
    if len(text) <= limit:
        return text
    ending = f" ... ({len(text)} characters in all)"
    return text[: max(0, limit - len(ending))] + ending


def summary_line(summary: Summary) -> str:
    """`412 checked: 400 proved, 3 refuted, 9 unknown; 12 fail`."""
    verdicts = ", ".join(f"{n} {plural(word, n)}" for word in _COUNTED if (n := summary.verdicts[word]))
    fails = f"{summary.failing} fail{'s' if summary.failing == 1 else ''}" if summary.failing else "all pass"
    others = "".join(
        f", {counted(n, 'finding', 'findings')} {fate}"
        for fate in ("allowed", "known", "ignored")
        if (n := summary.fates[fate])
    )
    return f"{summary.items} checked{': ' if verdicts else ''}{verdicts}; {fails}{others}"


def plural(word: str, number: int) -> str:
    """A verdict's word, or `error`, after a number."""
    return "errors" if word == "error" and number != 1 else word


_OF_FAILURES: dict[str | None, int] = {"refuted": 0, None: 1, "unknown": 2, "vacuous": 3}
_OF_FATES: dict[Fate, int] = {Fate.ALLOWED: 4, Fate.KNOWN: 5, Fate.IGNORED: 6}
RANKS = range(7)
_HELP = "this is a fault of layoutproof; please report it"


def findings_of(outcome: Outcome) -> tuple[Finding, ...]:
    """The findings of an outcome. A failing outcome without a failing finding gets one."""
    if outcome.passes or any(finding.fate is Fate.FAILS for finding in outcome.findings):
        return outcome.findings
    word = outcome.verdict if outcome.verdict is not None else "wrong input"
    lack = Finding(
        codes.JUDGE_FAILED,
        f"the item is {word}, and no finding says why",
        outcome.verdict,
        place=outcome.place,
        help=_HELP,
    )
    return (lack, *outcome.findings)


def rank(finding: Finding) -> int:
    """0 for the worst: failing findings in the order of exit codes (refuted, wrong input, unknown, vacuous), then the
    others.
    """
    return _OF_FAILURES[finding.status] if finding.fate is Fate.FAILS else rank_of(finding.fate)


def rank_of(fate: Fate) -> int:
    """The rank of findings of a fate other than failing the run. Raises KeyError for that."""
    return _OF_FATES[fate]


def count_ranks(outcomes: Iterable[Outcome]) -> Counter[int]:
    """The number of findings of each rank."""
    return Counter(rank(finding) for outcome in again(outcomes) for finding in findings_of(outcome))


def worst_first(outcomes: Iterable[Outcome], ranks: Counter[int] | None = None) -> Iterator[tuple[Outcome, Finding]]:
    """Every finding with its outcome: by rank, and in the run's order within one, in constant memory.

    The outcomes are read once for each rank that occurs, as far as needed. `ranks` limits the findings of each rank;
    without it, all are given.
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
    return (
        (outcome, finding) for outcome in again(outcomes) for finding in findings_of(outcome) if rank(finding) == wanted
    )


def again(outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """A new iteration. Raises TypeError for an iterator, which would cut the report short."""
    iterator = iter(outcomes)
    if iterator is outcomes:
        raise TypeError("a report goes through its outcomes more than once; give it a list or a Spool")
    return iterator
