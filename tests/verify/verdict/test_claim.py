"""Every claim that the checker makes is of a kind, and what is refuted has the code that people can look it up by."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.shares import one_in, some
from tests.tree import ROOT

from layoutproof.ir.notations.rewrite_text import parse_litmus
from layoutproof.verify.certificate.reading import allowed_by
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.program.location import Place
from layoutproof.verify.program.questions import Because
from layoutproof.verify.verdict import codes
from layoutproof.verify.verdict.report import of_entry, to_entry
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

REWRITES = sorted((ROOT / "proofs" / "refuted").glob("*.py")) + sorted((ROOT / "proofs" / "accepted").glob("*.py"))


@one_in(7)
@pytest.mark.parametrize("part", some(range(8), 1))
def test_each_claim_has_a_kind(part: int) -> None:
    """No claim about the rewrites of the repository is without a kind of its own, and code tells apart what the words
    do (reads of one buffer on one line are alike).
    """
    for path in REWRITES[part::8]:
        litmus = parse_litmus(path.read_text(encoding="utf-8"), path.name)
        allowed, known = allowed_by(litmus.header.strictness), dict[tuple[str, ...], str]()
        for verdict in prove_rewrite(litmus.rewrite, litmus.header.where, allowed=allowed).verdicts:
            claim = verdict.claim
            assert claim.kind is not ClaimKind.OTHER, f"{path.name}: {claim}"
            if claim.kind not in (ClaimKind.DEFINED_READ, ClaimKind.OFF_PADDING):
                assert known.setdefault(claim.identity, claim.text) == claim.text, f"{path.name}: {claim}"


@pytest.mark.parametrize("kind", ClaimKind)
def test_the_code_of_a_verdict(kind: ClaimKind) -> None:
    """What is refuted is told by its kind; what is unknown or vacuous by that."""
    claim = Claim(kind, "words")
    assert Verdict(Status.REFUTED, claim, "test", counterexample={}).code == kind.code
    assert Verdict(Status.UNKNOWN, claim, "test", reason="why").code == codes.UNDECIDED
    assert Verdict(Status.VACUOUS, claim, "test", reason="why").code == codes.VACUOUS


def test_each_code_has_a_kind() -> None:
    """Every code that a claim can have is that of a kind."""
    kinds = {
        value
        for name, value in vars(codes).items()
        if name.isupper() and isinstance(value, str) and "LP210" <= value <= "LP226"
    }
    assert {kind.code for kind in ClaimKind} == {*kinds, codes.VACUOUS}


def test_a_claim_at_a_place() -> None:
    """The text names the place; code knows a claim by its kind, what it is about and its place, in no words, and a line
    is left out where edits elsewhere are to change nothing.
    """
    head, tail, about = "overcomputed iterations leave `B[vi]`", " unchanged", ("overcomputed", "B[vi]")
    lined = Claim(ClaimKind.SAME_END, head, Place("line 7", 7), tail, about=about)
    worded = Claim(ClaimKind.SAME_END, "other words", Place("in block b", at="b"), about=about)
    assert str(lined) == "overcomputed iterations leave `B[vi]` (line 7) unchanged"
    assert lined.key == worded.key == lined.steady == ("same-end", *about)
    assert lined.identity == (*lined.key, "7") and worded.identity == worded.steady == (*worded.key, "b")


def test_a_verdict_that_is_kept() -> None:
    """A verdict read back from what was kept of it has all that code asks."""
    names = ("A", "A_data")
    claim = Claim(ClaimKind.NO_RACE, "no two iterations meet", Place("line 7", 7), "", names, ("parallel", "i"))
    verdict = Verdict(
        Status.REFUTED, claim, "isl", reason="they do", counterexample={"i": 1}, seconds=0.5, rests_on=("a law",),
        because=frozenset((Because.CLOCK, Because.BUDGET)), related=((3, "write A[0]"),),
    )  # fmt: skip
    assert of_entry(to_entry(verdict)) == verdict


def test_there_are_rewrites() -> None:
    """The folders that the first test reads are there."""
    assert len(REWRITES) > 80 and all(isinstance(path, Path) for path in REWRITES)
