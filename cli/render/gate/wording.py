"""The words that machine-readable reports share: a finding as lines of text, texts of bounded length, and the count of a run."""

from __future__ import annotations

from layoutproof.cli.gate.outcome import Fate, Finding
from layoutproof.cli.gate.summary import Summary
from layoutproof.ir.diagnostic import counted

_FATES = {Fate.ALLOWED: "allowed", Fate.KNOWN: "known: it stands in the baseline", Fate.IGNORED: "ignored: its code is not selected"}
_COUNTED = ("proved", "refuted", "unknown", "vacuous", "error")


def status_word(finding: Finding) -> str:
    """The word of a finding's status: a verdict's, or `error`, `warning` or `note` for the input itself."""
    return finding.status if finding.status is not None else finding.severity


def fate_words(finding: Finding) -> str:
    """Why a finding does not fail the run; empty where it does."""
    return _FATES.get(finding.fate, "")


def finding_lines(finding: Finding) -> list[str]:
    """A finding as lines without line ends: its message, whose first line is followed by the drawn counterexample; other places; help."""
    first, *rest = plain_lines(finding.message)
    lines = [first, *(line for drawn in finding.drawing for line in plain_lines(drawn)), *rest]
    for place, word in finding.related:
        lines += plain_lines(f"{place}: {word}")
    if finding.help is not None:
        lines += plain_lines(f"help: {finding.help}")
    return lines


def headline(finding: Finding) -> str:
    """The first line of a finding's message, with single blanks: what was claimed and what came of it."""
    return one_line(plain_lines(finding.message.strip())[0])


def plain_lines(text: str) -> list[str]:
    """The lines of a text, whichever system's line ends it has."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def one_line(text: str) -> str:
    """A text with single blanks for whatever blanks and line ends it has."""
    return " ".join(text.split())


def printable(text: str) -> str:
    """A text without what a terminal, a log or an encoder would stumble over; line ends and tabs stay."""
    return "".join(c if c.isprintable() or c in "\r\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def shortened(text: str, limit: int) -> str:
    """A text of at most `limit` characters, which ends by saying how much was left out, if something was."""
    if len(text) <= limit:
        return text
    ending = f" ... ({len(text)} characters in all)"
    return text[: max(0, limit - len(ending))] + ending


def summary_line(summary: Summary) -> str:
    """`412 checked: 400 proved, 3 refuted, 9 unknown; 12 fail`."""
    verdicts = ", ".join(f"{n} {plural(word, n)}" for word in _COUNTED if (n := summary.verdicts[word]))
    fails = f"{summary.failing} fail{'s' if summary.failing == 1 else ''}" if summary.failing else "all pass"
    others = "".join(
        f", {counted(n, 'finding', 'findings')} {fate}" for fate in ("allowed", "known", "ignored") if (n := summary.fates[fate])
    )
    return f"{summary.items} checked{': ' if verdicts else ''}{verdicts}; {fails}{others}"


def plural(word: str, number: int) -> str:
    """A verdict's word, or `error`, after a number."""
    return "errors" if word == "error" and number != 1 else word
