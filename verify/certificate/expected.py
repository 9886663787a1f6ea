"""Rewrites with the verdict that they expect: the checker is run on them again, and what it refutes it has run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutproof.ir.rewrite_text import parse_litmus
from layoutproof.verify.identity import prove_identity
from layoutproof.verify.replay.checked import check_rewrite
from layoutproof.verify.values.licences import ALL, Licence, Licences
from layoutproof.verify.verdict import Status, Verdict, worst


def check_expectation(text: str, name: str) -> Iterator[tuple[Status, str]]:
    """What is not as the text says, with how bad that is; nothing where all is. Raises LayoutproofError for a text that is no rewrite.

    A wrong program that is proved is as bad as a right one that is refuted.
    """
    litmus = parse_litmus(text, name)
    header = litmus.header
    verdicts = check_rewrite(litmus.rewrite, header.where, allowed=allowed_by(header.strictness))
    found = worst(verdict.status for verdict in verdicts)
    if found is not Status.PROVED and prove_identity(litmus.rewrite) is not None:
        found = Status.PROVED
    if header.expect is None:
        if found is not Status.PROVED:
            yield found, f"{name} is {found.value}: {_why(verdicts, found)}"
        return
    if found.value != header.expect:
        decided = {Status.PROVED, Status.REFUTED}
        bad = Status.REFUTED if found in decided and header.expect in {s.value for s in decided} else Status.UNKNOWN
        yield bad, f"{header.expect} is expected, the checker says {found.value}: {_why(verdicts, found)}"
        return
    needed = sorted({licence for verdict in verdicts for licence in verdict.strictness})
    if found is Status.PROVED and header.strictness is not None and needed != sorted(header.strictness):
        yield Status.UNKNOWN, f"a proof under {_words(header.strictness)} is expected, the one found needs {_words(needed)}"


def allowed_by(strictness: Sequence[str] | None) -> Licences:
    """The licences that a header allows: all where it says nothing."""
    return ALL if strictness is None else frozenset(Licence(word) for word in strictness)


def _words(licences: Sequence[str]) -> str:
    return " ".join(licences) if licences else "no licences"


def _why(verdicts: Sequence[Verdict], status: Status) -> str:
    first = next((verdict for verdict in verdicts if verdict.status is status), None)
    if first is None or status is Status.PROVED:
        return f"all {len(verdicts)} obligations hold"
    return first.claim.text if first.reason is None else f"{first.claim}: {first.reason.splitlines()[0]}"
