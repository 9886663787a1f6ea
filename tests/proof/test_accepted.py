"""The right rewrites under proofs/accepted: each was once out of reach, and is proved; the interpreter agrees."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from layoutproof.ir.notations.rewrite_text import parse_litmus, rewrite_text
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.verdict.verdict import ClaimKind, Status
from tests.attack.judge import judge
from tests.proof.litmus import PROVED, allowed, litmus, name_of
from tests.shares import one_in


@one_in(14)
@pytest.mark.parametrize("path", PROVED, ids=name_of)
def test_a_right_rewrite_is_proved(path: Path) -> None:
    """Proved under the fast-math assumptions that its header allows, told apart by no run, and the same after it was
    printed; each claim has a kind of its own.
    """
    case = litmus(path)
    assert case.header.expect == "proved" and case.header.about is not None
    assert parse_litmus(rewrite_text(case.rewrite, case.header)) == case
    verdicts = prove_rewrite(case.rewrite, allowed=allowed(case)).verdicts
    assert [(v.claim.text, v.reason) for v in verdicts if v.status is not Status.PROVED] == []
    assert all(verdict.claim.kind is not ClaimKind.OTHER for verdict in verdicts)
    fast_math = frozenset(word for v in verdicts for word in v.strictness)
    assert (
        judge(case.rewrite, Random(path.stem), trials=24, where=case.header.where, fast_math=fast_math).difference
        is None
    )
