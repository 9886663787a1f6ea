"""Every claim that the checker makes is of a kind, and what is refuted has the code that people can look it up by."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.ir.rewrite_text import parse_litmus
from layoutproof.verify import codes
from layoutproof.verify.certificate.expected import allowed_by
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.claim_kinds import code_of, code_of_claim
from layoutproof.verify.verdict import Status

REWRITES = sorted((ROOT / "proofs" / "refuted").glob("*.py")) + sorted((ROOT / "proofs" / "accepted").glob("*.py"))


@one_in(4)
@pytest.mark.parametrize("part", range(8))
def test_each_claim_has_a_kind(part: int) -> None:
    """No claim about the rewrites of the repository is without a kind of its own."""
    for path in REWRITES[part::8]:
        litmus = parse_litmus(path.read_text(encoding="utf-8"), path.name)
        allowed = allowed_by(litmus.header.strictness)
        for verdict in prove_rewrite(litmus.rewrite, litmus.header.where, allowed=allowed).verdicts:
            assert code_of_claim(verdict.claim) != codes.UNPROVED, f"{path.name}: {verdict.claim}"


CLAIMS = {
    "no two logical indices of [16] share a physical cell": codes.CELLS,
    "A_data is only read": codes.INTERFACE,
    "the assumption n%4 == 0 was made before": codes.ASSUMED,
    "read A[i + 1] stays within [14] (line 6)": codes.OUTSIDE,
    "the view A_flat stays inside the memory of A": codes.OUTSIDE,
    "read B[0] finds a value (line 3)": codes.UNDEFINED_READ,
    "write B[i] stays off padding that has no contract (line 3)": codes.PADDING_TOUCHED,
    "i*70000 fits int32 (line 8)": codes.OVERFLOW,
    "A_value//D_value has a result (line 8)": codes.NO_RESULT,
    "no two iterations of the parallel loop i touch one cell, one writing (line 17)": codes.RACE,
    "A[i] (line 7) computes what it computed before, from the same values": codes.OTHER_VALUE,
    "B_data: every observable cell ends with the value that it had": codes.OTHER_END,
    "B_data: padding ends with its pad value T.float32(0.0)": codes.PADDING_OWED,
    "every extra instance of B[vi] (line 12) stores the value that is there": codes.OTHER_END,
    "the updates of C_data by `+` may be done in another order": codes.OTHER_VALUE,
    "something that no claim says": codes.UNPROVED,
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_kind_of_a_claim(claim: str) -> None:
    """What is refuted is told by its kind; what is unknown or vacuous by that."""
    assert code_of(Status.REFUTED, claim) == CLAIMS[claim]
    assert code_of(Status.UNKNOWN, claim) == codes.UNDECIDED
    assert code_of(Status.VACUOUS, claim) == codes.VACUOUS


def test_each_kind_is_tested() -> None:
    """Every code that a claim can have has an example here."""
    kinds = {value for name, value in vars(codes).items() if name.isupper() and isinstance(value, str) and "LP210" <= value <= "LP226"}
    assert kinds - set(CLAIMS.values()) <= {codes.RECORDS, codes.WITNESS}


def test_there_are_rewrites() -> None:
    """The folders that the first test reads are there."""
    assert len(REWRITES) > 80 and all(isinstance(path, Path) for path in REWRITES)
