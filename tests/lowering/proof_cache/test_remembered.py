"""Answers kept from run to run: the same answer from the cache as from the checker, and never another program's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.shares import one_in, some
from tests.tree import ROOT

import layoutproof as lp
from layoutproof.ir.notations.rewrite_text import parse_litmus
from layoutproof.lowering.proof_cache.remembered import verdicts_of
from layoutproof.lowering.proof_cache.store import ProofStore
from layoutproof.verify.certificate.reading import allowed_by
from layoutproof.verify.program.questions import Because
from layoutproof.verify.replay import refute as checked
from layoutproof.verify.settings import Settings, within
from layoutproof.verify.values.fast_math import ALL, IEEE
from layoutproof.verify.verdict.report import of_entry, to_entry
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

TEXT = (ROOT / "examples" / "programs" / "row_sum.py").read_text(encoding="utf-8")
REFUTED = sorted((ROOT / "proofs" / "refuted").glob("*.py"))


class Kept:
    """A memory in a dictionary that counts what it was asked."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.found = self.missed = 0

    def get(self, table: str, key: str) -> dict[str, Any] | None:
        text = self.values.get(key)
        self.found, self.missed = self.found + (text is not None), self.missed + (text is None)
        return json.loads(text) if text is not None else None

    def put(self, table: str, key: str, value: dict[str, Any]) -> None:
        assert table == "proof"
        self.values[key] = json.dumps(value)


def scheduled(text: str = TEXT, pad: float = 0.0, allowed: Any = None) -> lp.Schedule:
    """A schedule of three steps."""
    schedule = lp.Schedule(lp.loads(text, "row_sum.py"), allowed=allowed)
    schedule.transform_layout("sum", "A", "lambda i, j: [i, j//4, j%4]", pad_value=pad)
    schedule.sequential_buffer_access("sum", "A")
    schedule.remove_branching_through_overcompute("sum")
    return schedule


def told(verdicts: tuple[Verdict, ...]) -> list[dict[str, Any]]:
    """Verdicts as plain data, without times."""
    return [
        {**json.loads(json.dumps(verdict.to_dict())), "seconds": 0, "rests_on": verdict.rests_on}
        for verdict in verdicts
    ]


@one_in(4)
def test_what_is_known_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second schedule finds every step known, with the verdicts of the first and of one without a memory."""
    memory = Kept()
    with within(Settings(memory=memory)):
        first = scheduled()
        assert (memory.found, memory.missed) == (0, 3)
        monkeypatch.setattr(checked, "check_rewrite", lambda *a, **k: pytest.fail("the checker was asked"))
        second = scheduled()
        assert (memory.found, memory.missed) == (3, 3)
    monkeypatch.undo()
    plain = scheduled()
    for step, again, bare in zip(first.steps, second.steps, plain.steps, strict=True):
        assert told(step.verdicts) == told(again.verdicts) == told(bare.verdicts)
        assert step.rewrite == again.rewrite == bare.rewrite


@one_in(10)
@pytest.mark.parametrize(
    "change",
    [
        lambda: scheduled(TEXT.replace("(16,", "(17,")),
        lambda: scheduled(TEXT.replace("B[vi] + A[vi, vj]", "A[vi, vj] + B[vi]")),
        lambda: scheduled("\n" + TEXT),
        lambda: scheduled(allowed=IEEE),
        lambda: scheduled(pad=-0.0),
    ],
    ids=["shape", "operands", "line", "licences", "pad value"],
)
def test_what_differs_is_not_known(change: Any) -> None:
    """Another program, another line, other fast-math assumptions or another step: the first step's answer is not taken
    for it.
    """
    memory = Kept()
    with within(Settings(memory=memory)):
        scheduled()
        known = memory.found
        change()
    assert memory.missed > 3 and memory.found == known


def test_the_factor_on_budgets_belongs_to_the_key() -> None:
    """What was answered with less effort is asked again with more."""
    memory = Kept()
    for factor in (1.0, 2.0):
        with within(Settings(factor, memory=memory)):
            scheduled()
    assert (memory.found, memory.missed) == (0, 6)


@one_in(4)
def test_a_refusal_is_the_same_from_the_cache() -> None:
    """A refused step has the same verdicts, diagnostics and help when its answer was known."""
    memory = Kept()
    problems = []
    with within(Settings(memory=memory)):
        for _ in range(2):
            with pytest.raises(lp.IllegalTransform) as caught:
                scheduled(pad=1.0)
            problems.append(caught.value)
    assert memory.found > 0
    assert [d.render() for d in problems[0].diagnostics] == [d.render() for d in problems[1].diagnostics]
    assert told(problems[0].verdicts) == told(problems[1].verdicts)


@one_in(10)
@pytest.mark.parametrize("part", some(range(8), 2))
def test_every_refuted_rewrite_stays_so(part: int, tmp_path: Path) -> None:
    """Through a real store, each wrong rewrite of the repository is refused with the same words the second time."""
    store = ProofStore.open(str(tmp_path / "proofs.sqlite"))
    for path in REFUTED[part::8]:
        litmus = parse_litmus(path.read_text(encoding="utf-8"), path.name)
        with within(Settings(memory=store)):
            both = [
                verdicts_of(
                    litmus.rewrite, litmus.header.where, allowed_by(litmus.header.strictness), True, "rewrite", {}
                )
                for _ in range(2)
            ]
        assert told(both[0]) == told(both[1])
        assert any(verdict.status is not Status.PROVED for verdict in both[1])


def test_what_was_not_searched_is_searched_when_that_is_asked() -> None:
    """An unknown that was left unsearched does not stand for a refutation, nor a refutation for it; a proof needs no
    search.
    """
    path = next(path for path in REFUTED if path.name == "order_interchanged.py")
    rewrite = parse_litmus(path.read_text(encoding="utf-8"), path.name).rewrite
    memory = Kept()
    with within(Settings(memory=memory)):
        quick = verdicts_of(rewrite, None, ALL, False, "rewrite", {})
        thorough = verdicts_of(rewrite, None, ALL, True, "rewrite", {})
        again = verdicts_of(rewrite, None, ALL, False, "rewrite", {})
        still = verdicts_of(rewrite, None, ALL, True, "rewrite", {})
    assert Status.REFUTED not in {verdict.status for verdict in quick}
    assert Status.REFUTED in {verdict.status for verdict in thorough}
    assert told(again) == told(quick) and told(still) == told(thorough)


def test_what_a_clock_decided_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict whose reason is the wall clock is given, and asked for again."""
    memory = Kept()
    rewrite = scheduled().steps[0].rewrite
    late = Verdict(
        Status.UNKNOWN, Claim(ClaimKind.OTHER, "a claim"), "z3", reason="killed", because=frozenset((Because.CLOCK,))
    )
    monkeypatch.setattr(checked, "check_rewrite", lambda *a, **k: (late,))
    with within(Settings(memory=memory)):
        assert verdicts_of(rewrite, None, ALL, True, "rewrite", {}) == (late,)
    assert memory.values == {}


def test_a_verdict_and_back() -> None:
    """A verdict read back is the one that was written, questions aside."""
    (verdict, *_) = scheduled().steps[0].verdicts
    assert of_entry(to_entry(verdict)) == replace(verdict, queries=())
