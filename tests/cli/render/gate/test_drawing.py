"""Counterexamples drawn small: two that meet, two runs side by side."""

from __future__ import annotations

import pytest
from tests.conftest import Golden
from tests.tree import ROOT

import layoutproof as lp
from layoutproof.cli.gate.judging.findings import drawn, number
from layoutproof.ir.notations.rewrite_text import parse_litmus
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict


def refuted(name: str) -> Verdict:
    """The verdict that refutes a rewrite of the repository."""
    path = ROOT / "proofs" / "refuted" / f"{name}.py"
    verdicts = check_rewrite(parse_litmus(path.read_text(encoding="utf-8"), f"{name}.py").rewrite)
    return next(verdict for verdict in verdicts if verdict.status is Status.REFUTED)


@pytest.mark.parametrize(
    "name", ["order_interchanged", "races_parallel_sum", "no_ops_nan_contract", "races_conditional_store"]
)
def test_rewrites(golden: Golden, name: str) -> None:
    """Two runs side by side with the stores that differ, a race with its two iterations; a fault has its words only."""
    golden(f"gate/drawing_{name}.txt", "".join(f"{line}\n" for line in drawn(refuted(name))))


def test_maps(golden: Golden) -> None:
    """Two elements that meet, for which sizes, and a cell that nothing reaches."""
    lossy = lp.check_map("lambda i, j: [i, j//4]", (16, "m"), "m >= 2")
    padded = lp.check_map("lambda i: [i//4, i%4]", (14,))
    lines = [*drawn(lossy.injective), "", *drawn(padded.bijective), "", *drawn(padded.injective)]
    golden("gate/drawing_maps.txt", "".join(f"{line}\n" for line in lines))


def test_long_texts_are_cut() -> None:
    """A store whose text is a screen long does not make the table unreadable."""
    store = {"line": 3, "text": "A[i] = " + "B[i] + " * 60 + "1", "variables": {"i": 0}, "loads": []}
    example = {
        "inputs": {},
        "element": {"buffer": "A", "logical": [0]},
        "before": "0x1p+0",
        "after": "-0x0p+0",
        "before_store": store,
        "after_store": None,
    }
    lines = drawn(Verdict(Status.REFUTED, Claim(ClaimKind.OTHER, "c"), "counterexample run", counterexample=example))
    assert all(len(line) < 160 for line in lines) and any("..." in line for line in lines)
    assert any("1.0" in line and "-0.0" in line for line in lines)


@pytest.mark.parametrize(
    ("value", "text"),
    [(3, "3"), ("0x1.8p+1", "3.0"), ("nan", "nan"), ("-inf", "-inf"), ("undef", "undef"), (None, "None")],
)
def test_numbers(value: object, text: str) -> None:
    """Floats are read by people in decimal; what is no number stays what it is."""
    assert number(value) == text
