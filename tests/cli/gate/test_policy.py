"""Which findings fail a run: by code, by status, by the baseline; and that nothing hides wrong input."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.gate.strategies import outcomes
from tests.cli.render.gate.made import finding, outcome
from tests.shares import one_in

from layoutproof.cli import pytest_plugin
from layoutproof.cli.gate.judging import judge as judging
from layoutproof.cli.gate.outcomes import Fate, Kind, Outcome
from layoutproof.cli.gate.policy import Baseline, Policy, read_codes
from layoutproof.ir.diagnostic import LayoutproofError


def test_everything_fails_by_default() -> None:
    """Without options each finding fails the run, whatever its status, and an outcome without findings stays what it
    is.
    """
    run = outcome(finding(), finding("LP230", "unknown"), finding("LP231", "vacuous"), finding("LP110", None))
    assert {one.fate for one in Policy().apply(run).findings} == {Fate.FAILS}
    clean = outcome()
    assert Policy().apply(clean) is clean


@pytest.mark.parametrize(
    ("select", "ignore", "code", "counts"),
    [
        ((), (), "LP221", True),
        ((), ("LP221",), "LP221", False),
        ((), ("LP22",), "LP221", False),
        ((), ("LP2",), "LP314", True),
        (("LP3",), (), "LP221", False),
        (("LP2",), ("LP221",), "LP221", False),
        (("LP2",), ("LP221",), "LP223", True),
        (("LP221",), ("LP2",), "LP221", True),
        (("LP221",), ("LP2",), "LP223", False),
        (("LP2", "LP221"), ("LP22",), "LP221", True),
        (("LP22",), ("LP22",), "LP221", False),
        (("LP221",), ("LP221",), "LP221", False),
        (("LP2", "LP3"), (), "LP314", True),
        (("LP",), ("LP2",), "LP314", True),
        ((), ("LP",), "LP314", False),
    ],
)
def test_the_longest_beginning_decides(
    select: tuple[str, ...], ignore: tuple[str, ...], code: str, counts: bool
) -> None:
    """Of all that a code begins with, the longest says whether it counts; of two equal ones `--ignore` wins."""
    policy = Policy(select, ignore)
    assert policy.selects(code) is counts
    [found] = policy.apply(outcome(finding(code))).findings
    assert found.fate is (Fate.FAILS if counts else Fate.IGNORED)


def test_only_unknown_is_allowed() -> None:
    """`--allow-unknown` lets pass what is unknown, and nothing that is refuted, vacuous or wrong input."""
    run = outcome(finding("LP230", "unknown"), finding(), finding("LP231", "vacuous"), finding("LP110", None))
    fates = [one.fate for one in Policy(allow_unknown=True).apply(run).findings]
    assert fates == [Fate.ALLOWED, Fate.FAILS, Fate.FAILS, Fate.FAILS]


@pytest.mark.parametrize("code", ["LP527", "LP528"])
def test_a_fault_is_no_unknown(code: str) -> None:
    """Where a worker died, or judging itself failed, nothing was asked: no run passes by allowing unknowns, nor does a
    gate.
    """
    run = outcome(finding(code, "unknown"), finding(code, "unknown", fate=Fate.ALLOWED))
    for options in (
        Policy(allow_unknown=True),
        Policy(select=("LP2",)),
        Policy(ignore=("LP5",), baseline=Baseline.of([run])),
    ):
        assert [one.fate for one in options.apply(run).findings] == [Fate.FAILS, Fate.FAILS]


def test_what_a_gate_allows_stays_allowed() -> None:
    """An unknown that its own gate allows needs no option; the same word on a refutation counts for nothing."""
    run = outcome(finding("LP230", "unknown", fate=Fate.ALLOWED), finding(fate=Fate.ALLOWED))
    assert [one.fate for one in Policy().apply(run).findings] == [Fate.ALLOWED, Fate.FAILS]


def test_an_outcome_is_judged_anew() -> None:
    """A fate from another run's options does not outlive them."""
    run = outcome(finding(fate=Fate.IGNORED), finding("LP231", "vacuous", fate=Fate.KNOWN))
    assert [one.fate for one in Policy().apply(run).findings] == [Fate.FAILS, Fate.FAILS]


@one_in(9)
@given(outcomes(), st.booleans())
def test_nothing_hides_wrong_input(run: Outcome, everything: bool) -> None:
    """With every code ignored, unknowns allowed and a baseline of the run itself, wrong input and faults still fail
    it.
    """
    policy = Policy(ignore=("LP",) if everything else (), allow_unknown=True, baseline=Baseline.of([run]))
    for one in policy.apply(run).findings:
        if (one.status is None and one.severity == "error") or one.code in ("LP527", "LP528"):
            assert one.fate is Fate.FAILS
        elif everything:
            assert one.fate is Fate.IGNORED


@one_in(4)
@given(outcomes())
def test_a_policy_changes_fates_only(run: Outcome) -> None:
    """Everything else of an outcome is as it was, and applying a policy again changes nothing."""
    policy = Policy(ignore=("LP22",), allow_unknown=True)
    after = policy.apply(run)
    assert after.with_findings(()) == run.with_findings(())
    assert [one.message for one in after.findings] == [one.message for one in run.findings]
    assert policy.apply(after) == after


def test_the_baseline_comes_after_the_codes() -> None:
    """A finding that is known and ignored is called ignored; one that is known and could be allowed is called known."""
    ignored, known = finding("LP221"), finding("LP230", "unknown", obligation="1" * 64)
    run = outcome(ignored, known)
    policy = Policy(ignore=("LP221",), allow_unknown=True, baseline=Baseline.of([run]))
    assert [one.fate for one in policy.apply(run).findings] == [Fate.IGNORED, Fate.KNOWN]


@pytest.mark.parametrize(
    ("text", "suggested"),
    [
        ("LP999", "LP99"),
        ("LP8", "codes are written"),
        ("lp221", "did you mean LP221?"),
        ("221", "did you mean LP221?"),
        ("E501", "LP501"),
        ("pad-value", "codes are written LP216"),
        ("LP2211", "LP221"),
        ("", "codes are written"),
    ],
)
def test_codes_that_do_not_exist(text: str, suggested: str) -> None:
    """A text that begins no code is an error that names the option and what is close."""
    for option, given_codes in (("--select", {"select": (text,)}), ("--ignore", {"ignore": ("LP2", text)})):
        with pytest.raises(LayoutproofError) as caught:
            Policy(**given_codes)
        [diagnostic] = caught.value.diagnostics
        assert diagnostic.code == "LP536" and option in diagnostic.message and repr(text) in diagnostic.message
        assert diagnostic.help is not None and (suggested in diagnostic.help or suggested == "LP99")


def test_codes_are_read_from_options() -> None:
    """An option may be repeated and hold several codes, apart by commas or blanks; each counts once."""
    assert read_codes(("LP2,LP3", " LP314 LP2,", "")) == ("LP2", "LP3", "LP314")


def test_the_rule_is_that_of_the_longest_match_written_plainly() -> None:
    """Every pair of selections over a few codes agrees with the rule as one would write it for one code at a time."""
    beginnings = ("LP", "LP2", "LP22", "LP221", "LP3")
    for select, ignore, code in product(beginnings, beginnings, ("LP221", "LP223", "LP314", "LP110")):
        winner = max((b for b in (select, ignore) if code.startswith(b)), key=len, default="")
        expected = winner == select and select != ignore
        assert Policy((select,), (ignore,)).selects(code) is expected


def test_pytest_passes_what_check_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """An outcome that is not proved fails in pytest, too, where no finding says why."""
    config = SimpleNamespace(stash={pytest_plugin._SETTINGS: SimpleNamespace(policy=Policy(), options=None)})
    item: Any = SimpleNamespace(config=config, item=None)
    for verdict in ("unknown", "refuted", "vacuous", None):
        run = Outcome(Kind.GATE, "gates.py::g", "gates.py", None, verdict)
        monkeypatch.setattr(judging, "judge", lambda *_, run=run: run)
        with pytest.raises(pytest.fail.Exception, match=f"the gate is {run.word}"):
            pytest_plugin.GateItem.runtest(item)
    monkeypatch.setattr(judging, "judge", lambda *_: Outcome(Kind.GATE, "gates.py::g", "gates.py", None, "proved"))
    pytest_plugin.GateItem.runtest(item)
