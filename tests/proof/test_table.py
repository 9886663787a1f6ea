"""Cases with known answers: what must be decided both ways, under which fast-math assumptions, and why.

The programs stand in `programs/`, with the verdict and the least fast-math assumptions in their header.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from layoutproof.ir.notations.rewrite_text import parse_litmus, rewrite_text
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.values.fast_math import ALL, IEEE
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status, Verdict
from tests.attack.judge import judge
from tests.proof.litmus import ROWS, litmus, name_of
from tests.shares import one_in, some

# A part of what the report must say, by case.
REASONS: Mapping[str, str] = {
    "producer_elsewhere": "padding without a contract",
    "sum_pad_none": "padding without a contract",
    "roadmap_convolution": "stays within",
    "implicit_default_unwrapped": "stays within",
    "texture_not_bijective": "share a physical cell",
}
# Refuted by an infinity where only the new program looks: random inputs hold none where fast-math assumptions speak of
# them.
_INFINITE_AT_THE_END = np.array([[1.0] * 4] * 3 + [[1.0, 1.0, 1.0, np.inf]], "float32")
GIVEN: Mapping[str, Mapping[str, NDArray[Any]]] = {"convolution_weight_beyond": {"W": _INFINITE_AT_THE_END}}
# Proved under fast-math assumptions, though no input is known on which it fails without them.
NOT_NEEDED = {"softmax_pad_infinity"}
# Cases that are refused bit for bit and proved under the fast-math assumptions of their header.
NEED_FAST_MATH = [
    path
    for path in ROWS
    if path.stem not in NOT_NEEDED and litmus(path).header.expect == "proved" and litmus(path).header.strictness
]


def strictness(verdicts: tuple[Verdict, ...]) -> set[str]:
    """The fast-math assumptions that verdicts rest on."""
    return {name for verdict in verdicts for name in verdict.strictness}


@one_in(21)
@pytest.mark.parametrize("trials", some((25, 100), 1))
@pytest.mark.parametrize("path", ROWS, ids=name_of)
def test_a_case_is_what_its_header_says(path: Path, trials: int) -> None:
    """The programs are well-formed and read back equal; runs tell them apart where the verdict is to be `refuted`, only
    there.
    """
    case = litmus(path)
    assert [*check_wellformed(case.rewrite.old), *check_wellformed(case.rewrite.new)] == []
    assert parse_litmus(rewrite_text(case.rewrite, case.header)) == case
    fast_math = frozenset(case.header.strictness) if case.header.strictness is not None else frozenset(map(str, ALL))
    found = judge(case.rewrite, Random(path.stem), trials=trials, fast_math=fast_math, given=GIVEN.get(path.stem))
    assert (found.difference is not None) == (case.header.expect == "refuted"), str(found.difference)


@one_in(80)
@pytest.mark.parametrize("path", ROWS, ids=name_of)
def test_the_verdict(path: Path) -> None:
    """Proved under the fast-math assumptions that the header names and no others, or refuted; with the reason where the
    table gives one.
    """
    header = litmus(path).header
    verdicts = check_rewrite(litmus(path).rewrite)
    assert worst(v.status for v in verdicts).value == header.expect, [
        (v.claim.text, v.reason) for v in verdicts if v.status is not Status.PROVED
    ]
    if header.expect == "proved":
        assert header.strictness is not None and strictness(verdicts) == set(header.strictness)
    else:
        told = [f"{v.claim.text}: {v.reason}" for v in verdicts if v.status is not Status.PROVED]
        assert REASONS.get(path.stem, "") in " ".join(told)


@one_in(7)
@pytest.mark.parametrize("path", NEED_FAST_MATH, ids=name_of)
def test_bit_for_bit_it_does_not_hold(path: Path) -> None:
    """Without fast-math assumptions the case is not proved, and a run shows that it does not hold."""
    assert any(v.status is Status.REFUTED for v in check_rewrite(litmus(path).rewrite, allowed=IEEE))
