"""Each clause of the checker closes a hole: with it a litmus file is refused, without it the file is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.verdict import ClaimKind, Status
from tests.clauses import Clause, without
from tests.proof.litmus import REFUTED, allowed, litmus, name_of
from tests.shares import one_in


@one_in(4)
@pytest.mark.parametrize("path", REFUTED, ids=name_of)
def test_a_wrong_rewrite_is_refused(path: Path) -> None:
    """Not every verdict is a proof; what a run shows to be wrong is refuted; each claim has a kind of its own."""
    case = litmus(path)
    verdicts = check_rewrite(case.rewrite, case.header.where, allowed=allowed(case))
    found = [verdict.status for verdict in verdicts]
    assert any(status is not Status.PROVED for status in found)
    assert all(verdict.claim.kind is not ClaimKind.OTHER for verdict in verdicts)
    if case.header.expect == "refuted":
        assert Status.REFUTED in found


@one_in(4)
@pytest.mark.parametrize("path", REFUTED, ids=name_of)
def test_its_clause_alone_refuses_it(path: Path) -> None:
    """Without the clause that the file names, everything is proved: nothing else is wrong with the rewrite."""
    case = litmus(path)
    with without(Clause(str(case.header.clause))):
        verdicts = prove_rewrite(case.rewrite, case.header.where, allowed=allowed(case)).verdicts
    assert [(v.claim, v.reason) for v in verdicts if v.status is not Status.PROVED] == []
