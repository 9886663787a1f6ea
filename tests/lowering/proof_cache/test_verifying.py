"""Entries checked again: right ones are confirmed, and whatever is changed in one shows."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.shares import one_in
from tests.verify.certificate.samples import ROW_SUM

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.script.reader import loads
from layoutproof.lowering import codes
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.proof_cache.entries import Clock, ProofEntry, certificate_of, is_storable, proof_key
from layoutproof.lowering.proof_cache.verifying import Checked, Found, verify_entries
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.program.location import Place
from layoutproof.verify.settings import Settings, settings, within
from layoutproof.verify.smt import solver as worker
from layoutproof.verify.smt.engines import installed
from layoutproof.verify.smt.solver import Worker
from layoutproof.verify.verdict.report import of_entry, to_entry
from layoutproof.verify.verdict.verdict import Status, Verdict


class Kept(dict[str, dict[str, Any]]):
    """A cache that is a dictionary."""

    def get(self, table: str, key: str) -> dict[str, Any] | None:  # type: ignore[override]  # a cache's signature, not a dictionary's
        """The value under a key."""
        return super().get(key)

    def put(self, table: str, key: str, value: dict[str, Any]) -> None:
        """Keep a value."""
        self[key] = value


@cache
def entries() -> dict[str, dict[str, Any]]:
    """What a schedule of a row sum leaves in a cache: its steps, the passes that lower it, and a pad value that is
    refuted.
    """
    kept = Kept()
    with within(Settings(memory=kept)):
        schedule = Schedule(loads(ROW_SUM.strip() + "\n"))
        schedule.transform_layout("B", "A", "lambda i, j: [i, j // 4, j % 4]", 0.0)
        schedule.lower()
        other = Schedule(loads(ROW_SUM.strip() + "\n"))
        with pytest.raises(IllegalTransform):
            other.transform_layout("B", "A", "lambda i, j: [i, j // 2]")
    return dict(kept)


def entry(primitive: str = "transform_layout") -> dict[str, Any]:
    """One of them, to be changed."""
    return copy.deepcopy(next(each for each in entries().values() if each["primitive"] == primitive))


def key_of(value: dict[str, Any]) -> str:
    """The key of what an entry says, whatever it is; any key for what is no entry."""
    try:
        found = ProofEntry.of(value).key
    except LayoutproofError:
        return "a" * 64
    assert found is not None
    return found


def checked(value: dict[str, Any], engines: dict[str, str] | None = None, name: str | None = None) -> Checked:
    """One entry, checked again under its own key or another one, without solvers unless some are given."""
    (found,) = verify_entries(
        [(key_of(value) if name is None else name, value)], {} if engines is None else engines
    ).entries
    return found


@one_in(10)
def test_entries_of_a_schedule_are_right() -> None:
    """Everything that a schedule leaves is derived again as it was, run, and confirmed by two solvers."""
    found = verify_entries(entries().items(), installed(), jobs=2)
    assert [each.key for each in found.entries] == list(entries())
    assert {each.found for each in found.entries} == {Found.RIGHT}, [each.problems for each in found.entries]
    assert sum(each.questions for each in found.entries) > 10
    assert all(each.claims == len(entries()[each.key]["obligations"]) for each in found.entries)
    assert {engine.name for engine in found.engines} == {"z3", "cvc5", "bitwuzla"} and settings().budget_scale == 1.0


def test_without_solvers_the_checker_is_asked() -> None:
    """With no engines, entries are derived again and run, and no question is left open."""
    found = checked(entry())
    assert (found.found, found.questions) == (Found.RIGHT, 0)


def test_a_certificate_of_an_entry() -> None:
    """An entry becomes a certificate of one step, with its primitive, its function, and the questions behind its
    claims.
    """
    value = entry()
    certificate = certificate_of(value)
    (step,) = certificate.steps
    assert (step["primitive"], certificate.document["function"]) == ("transform_layout", "main")
    assert [(o["engine"], o["status"]) for o in step["obligations"]] == [
        (o["engine"], o["status"]) for o in value["obligations"]
    ]
    assert certificate.status is Status.PROVED and certificate.queries


def dropped(value: dict[str, Any]) -> None:
    """An obligation is left out."""
    del value["obligations"][2]


def added(value: dict[str, Any]) -> None:
    """An obligation that the checker does not have."""
    words = {"claim": "all is well", "parts": ["all is well", None, ""], "about": ["all is well"]}
    value["obligations"].append({**value["obligations"][0], **words})


def renamed(value: dict[str, Any]) -> None:
    """A claim about something else. Claims are known by what they are about: other words alone change nothing."""
    value["obligations"][0]["about"] = [*value["obligations"][0]["about"], "another"]


def reworded(value: dict[str, Any]) -> None:
    """The words of a claim are not those that its parts make."""
    value["obligations"][0]["claim"] += " and well"


def stricter(value: dict[str, Any]) -> None:
    """A claim that needs fast-math assumptions that it does not need."""
    value["obligations"][-1]["strictness"] = ["nnan"]


def other_program(value: dict[str, Any]) -> None:
    """Another program, under the same verdicts."""
    assert "j // 4" in value["rewrite"] or "14" in value["rewrite"]
    value["rewrite"] = value["rewrite"].replace("14", "15")


def wrong_program(value: dict[str, Any]) -> None:
    """A program that is wrong, said to be proved."""
    head, middle, tail = value["rewrite"].rpartition("vj % 4")
    assert middle
    value["rewrite"] = f"{head}vj % 3{tail}"


def no_program(value: dict[str, Any]) -> None:
    """A text that is none."""
    value["rewrite"] = "nothing"


def no_obligations(value: dict[str, Any]) -> None:
    """Nothing is claimed."""
    value["obligations"] = []


def no_status(value: dict[str, Any]) -> None:
    """A word that is no verdict."""
    value["obligations"][0]["status"] = "true"


def no_fast_math(value: dict[str, Any]) -> None:
    """A fast-math assumption that there is not."""
    value["licences"] = ["all"]


def no_budget(value: dict[str, Any]) -> None:
    """No factor."""
    value["effort"] = -1


def by_the_clock(value: dict[str, Any]) -> None:
    """A verdict that the clock made."""
    value["obligations"][0]["because"] = ["clock"]


CHANGES = [
    dropped, added, renamed, reworded, stricter, other_program, wrong_program, no_program, no_obligations, no_status,
    no_fast_math, no_budget, by_the_clock,
]  # fmt: skip


@one_in(10)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_whatever_is_changed_shows(change: Callable[[dict[str, Any]], None]) -> None:
    """An entry that does not say what the checker says is wrong, with what is wrong in it."""
    value = entry()
    change(value)
    found = checked(value)
    assert found.found is Found.WRONG and found.problems, change.__doc__


def test_a_key_is_that_of_the_question() -> None:
    """An entry under a key that is not its own, which would answer another question, is wrong, however right it is."""
    value = entry()
    name = proof_key(value["tool"], value["effort"], value["licences"], value["rewrite"], value["lines"])
    assert entries()[name] == value
    assert checked(value, name=name).found is Found.RIGHT
    found = checked(value, name="a" * 64)
    assert found.found is Found.WRONG and "another question" in found.problems[0] and name in found.problems[0]
    for part, other in (("lines", [[1], [2]]), ("effort", 2.0), ("licences", []), ("tool", "b" * 64)):
        assert checked(value | {part: other}, name=name).found is Found.WRONG


def test_an_entry_under_a_wrong_key_is_no_hit() -> None:
    """A proof of another text is not taken for one of this, though it stands under this one's key."""
    kept = Kept(copy.deepcopy(entries()))
    forged = next(name for name, value in kept.items() if value["primitive"] == "transform_layout")
    kept[forged] = kept[next(name for name, value in kept.items() if value["primitive"] == "lower_blocks")]
    with within(Settings(memory=kept)):
        schedule = Schedule(loads(ROW_SUM.strip() + "\n"))
        step = schedule.transform_layout("B", "A", "lambda i, j: [i, j // 4, j % 4]", 0.0)
    assert kept[forged]["primitive"] == "transform_layout"
    assert [v.claim.text for v in step.verdicts] == [o["claim"] for o in entries()[forged]["obligations"]]


def test_one_claim_of_two_places_on_one_line() -> None:
    """A claim that stands once, because both of its places are on one line of the user's file, is the same as one that
    stands twice.
    """
    value = entry()
    there = Place("line 7", 7)
    verdicts = [of_entry(o) for o in value["obligations"]]
    moved = [replace(v, claim=replace(v.claim, place=v.claim.place and there)) for v in verdicts]
    value["obligations"] = [to_entry(v) for v in moved]
    value["obligations"] += value["obligations"][-1:]
    assert checked(value).found is Found.RIGHT


def refuted_entry() -> dict[str, Any]:
    """An entry whose last word is a refutation: the new program adds where the old one multiplies."""
    value = entry("lower_blocks")
    text = value["rewrite"]
    head, middle, tail = text.rpartition(" + A[")
    assert middle
    value["rewrite"] = f"{head} - A[{tail}"
    from layoutproof.verify.certificate.certificate import derive

    derived = derive(value["rewrite"], "a test").obligations
    assert Status.REFUTED in {obligation.status for obligation in derived}
    value["obligations"] = [
        to_entry(
            Verdict(
                o.status,
                o.claim,
                o.engine,
                o.strictness,
                o.reason,
                {"run": "again"} if o.status is Status.REFUTED else None,
            )
        )
        for o in derived
    ]
    return value


@one_in(4)
def test_a_refutation_is_derived_again() -> None:
    """An entry that is refuted is right when the checker, which runs the counterexample, refutes it again."""
    value = refuted_entry()
    assert checked(value, installed()).found is Found.RIGHT
    apart = {**value, "obligations": [o for o in value["obligations"] if o["status"] == "proved"]}
    apart["refused"] = [o for o in value["obligations"] if o["status"] != "proved"]
    assert checked(apart).found is Found.RIGHT


@one_in(4)
def test_a_refutation_that_is_none() -> None:
    """A good step that is said to be refuted is as wrong as a bad one that is said to be proved."""
    value = entry()
    value["obligations"][-1] |= {"status": "refuted", "counterexample": {"A": 1}}
    assert checked(value).found is Found.WRONG
    value = refuted_entry()
    for obligation in value["obligations"]:
        obligation |= {"status": "proved", "counterexample": None}
    assert checked(value).found is Found.WRONG


@one_in(4)
def test_what_was_not_searched_for() -> None:
    """Where no counterexample was looked for, the claim was left open; one that is found now does not make the entry
    wrong.
    """
    value = refuted_entry()
    for obligation in value["obligations"]:
        if obligation["status"] == "refuted":
            obligation |= {"status": "unknown", "reason": "not decided", "counterexample": None}
    assert checked(value).found is Found.WRONG
    assert checked(value | {"searched": False}).found is Found.RIGHT


def test_entries_are_checked_with_their_own_budgets() -> None:
    """The factor on budgets is that of the entry while it is checked, and the old one afterwards."""
    value = entry() | {"effort": 2.0}
    assert checked(value).found is Found.RIGHT and settings().budget_scale == 1.0


@one_in(4)
def test_entries_that_no_two_solvers_confirm() -> None:
    """A question that the engines do not decide leaves the entry unconfirmed, which is neither right nor wrong."""
    found = checked(entry(), {"bitwuzla": "1", "z3": "1"})
    assert found.found is Found.UNCONFIRMED and any("one engine only" in problem for problem in found.problems)


@pytest.mark.parametrize(
    ("verdicts", "storable"),
    [
        ([], True),
        ([{"because": []}], True),
        ([{"because": ["budget"]}], True),
        ([{"because": ["clock"]}], False),
        ([{"because": []}, {"because": ["budget", "clock"]}], False),
        ([{"because": [], "reason": "wall: a text that nothing reads"}], True),
    ],
)
def test_what_the_clock_ended_is_not_kept(verdicts: list[dict[str, Any]], storable: bool) -> None:
    """A verdict in which the clock, or a solver's death, had a part is not to be stored."""
    assert is_storable(verdicts) is storable


@pytest.mark.parametrize(
    ("body", "struck"),
    [
        ('print(\'{"id": 1, "answer": "unsat", "model": {}, "reason": null, "spent": 1}\', flush=True)', False),
        ('print(\'{"id": 1, "answer": "unknown", "model": {}, "reason": "budget", "spent": 1}\', flush=True)', False),
        ("raise SystemExit(1)", True),
        ("print('nonsense', flush=True)", True),
        ("import time; time.sleep(60)", True),
    ],
    ids=["answers", "gives up", "dies", "nonsense", "hangs"],
)
def test_the_clock_is_seen_though_no_verdict_names_it(
    body: str, struck: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A solver that was stopped, died or answered nonsense makes what is concluded meanwhile not storable, whatever
    verdicts say.
    """
    script = tmp_path / "solver.py"
    script.write_text(f"import sys\nsys.stdin.readline()\n{body}\n")
    asked = Worker((sys.executable, str(script)))
    monkeypatch.setattr(worker, "_shared", asked)
    monkeypatch.setattr(worker, "START_SECONDS", 0.0)
    before = Clock()
    asked.ask("z3", "(check-sat)", "QF_LIA", units=1, seconds=2.0 if struck else 30.0)
    asked.close()
    assert before.struck is struck and is_storable([{"because": []}], before) is not struck
    assert is_storable([{"because": []}], Clock())


@pytest.mark.parametrize("broken", [{}, {"obligations": [1]}, {"obligations": None}, entries])
def test_an_entry_of_another_form(broken: Any) -> None:
    """What is no entry is an error with a code, not a crash."""
    value = broken if isinstance(broken, dict) else {"obligations": entry()["obligations"]}
    with pytest.raises(LayoutproofError) as caught:
        ProofEntry.of(value)
    assert caught.value.diagnostics[0].code == codes.CACHE_ENTRY
    assert checked(value).found is Found.WRONG
