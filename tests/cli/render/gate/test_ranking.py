"""The order of findings in reports that may not hold all of them, and paths as reports write them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.gate.strategies import RUNS
from tests.cli.render.gate.made import finding, outcome
from tests.shares import one_in

from layoutproof.cli.gate.outcomes import Fate, Outcome, is_below, steady_path
from layoutproof.cli.render.gate.finding_texts import RANKS, count_ranks, findings_of, rank, worst_first


@one_in(4)
@given(RUNS)
def test_worst_first_is_a_stable_sort(run: list[Outcome]) -> None:
    """All findings come, each with its outcome, by rank, and as they were within one rank."""
    pairs = [(outcome, finding) for outcome in run for finding in findings_of(outcome)]
    assert list(worst_first(run)) == sorted(pairs, key=lambda pair: rank(pair[1]))
    assert count_ranks(run) == Counter(rank(finding) for _, finding in pairs)


@one_in(4)
@given(RUNS, st.dictionaries(st.sampled_from(tuple(RANKS)), st.integers(0, 3)))
def test_so_many_of_each_rank(run: list[Outcome], wanted: dict[int, int]) -> None:
    """Asked for some of each rank, it gives the first so many of it, and of others none."""
    pairs = [(outcome, finding) for outcome in run for finding in findings_of(outcome)]
    expected = [
        pair
        for number in RANKS
        for pair in [pair for pair in pairs if rank(pair[1]) == number][: wanted.get(number, 0)]
    ]
    assert list(worst_first(run, Counter(wanted))) == expected


@pytest.mark.parametrize("verdict", ["refuted", "unknown", "vacuous", None])
def test_no_outcome_fails_without_a_word(verdict: str | None) -> None:
    """An outcome that is not proved and has no finding gets one, so that no report looks clean where the run fails."""
    [found] = findings_of(outcome(verdict=verdict))
    assert (found.code, found.status, found.fate) == (
        "LP528",
        verdict,
        Fate.FAILS,
    ) and "no finding says why" in found.message
    assert findings_of(outcome(verdict="proved")) == ()
    assert findings_of(one := outcome(finding(fate=Fate.KNOWN))) == one.findings


@pytest.mark.parametrize(
    ("path", "steady"),
    [
        ("a.py", "a.py"),
        ("./a.py", "a.py"),
        ("b/../a.py", "a.py"),
        ("b//c/./a.py", "b/c/a.py"),
        ("HERE/a.py", "a.py"),
        ("../HERE_NAME/a.py", "a.py"),
        ("../a.py", "ABOVE/a.py"),
        ("/elsewhere/../x/a.py", "/x/a.py"),
        (".", "."),
        ("..a/b.py", "..a/b.py"),
    ],
)
def test_a_path_is_one_text(path: str, steady: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However a file is named, its path is relative where it lies below the working directory, and absolute
    elsewhere.
    """
    monkeypatch.chdir(tmp_path)
    path = path.replace("HERE_NAME", tmp_path.name).replace("HERE", str(tmp_path))
    steady = steady.replace("ABOVE", str(tmp_path.parent))
    assert steady_path(path) == steady
    assert is_below(steady) is not steady.startswith("/")
