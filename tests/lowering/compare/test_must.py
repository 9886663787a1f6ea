"""Whole operators in hand-written schedules: tiled, packed, padded, fused, double-buffered."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lowering.compare.pairs import Pair, case_name, cases, check, named, pairs
from tests.shares import one_in

from layoutproof.verify.certificate.recheck import recheck
from layoutproof.verify.verdict.verdict import Status


@one_in(44)
@pytest.mark.parametrize(("pair", "given"), cases("must"), ids=case_name)
def test_operators(pair: Pair, given: bool) -> None:
    """Matmul, convolution, softmax, layer norm and pooling, each against a program that no schedule of ours made."""
    check(pair, given)


@one_in(14)
@pytest.mark.parametrize("name", ["matmul_packed", "layer_norm_by_rows"])
def test_certificates_are_confirmed(name: str, tmp_path: Path) -> None:
    """What was proved of an operator is confirmed by other solvers."""
    path = tmp_path / "operator.lpcert.json"
    named(pairs("must"), name).compared().certificate.save(path)
    report = recheck([path], {"z3": "1", "cvc5": "2"}, seconds=20)
    assert report.status is Status.PROVED, report.files[0].problems
