"""Baselines: what they know, what they refuse to know, how they shrink, and that a damaged one is never an empty
one.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.cli.gate.strategies import RUNS
from tests.cli.render.gate.made import HASH, finding, many, outcome
from tests.shares import one_in

from layoutproof.cli import codes
from layoutproof.cli.gate.outcomes import Fate, Outcome
from layoutproof.cli.gate.policy import Baseline, Policy
from layoutproof.ir.diagnostic import LayoutproofError

ENTRY = {
    "file": "gates.py",
    "name": "gates.py::x",
    "code": "LP221",
    "status": "refuted",
    "obligation": HASH,
    "claim": "c",
}


def written(tmp_path: Path, text: str) -> Path:
    """A file with this text."""
    path = tmp_path / "baseline.json"
    path.write_text(text, encoding="utf-8")
    return path


@one_in(9)
@given(RUNS)
@example([outcome(finding(code=codes.WORKER_DIED, obligation=HASH))])
def test_a_run_passes_its_own_baseline(run: list[Outcome]) -> None:
    """Under the baseline of a run, what fails it is what no baseline may know: wrong input, faults of a worker,
    findings without a hash.
    """
    policy = Policy(baseline=Baseline.of([Policy().apply(one) for one in run]))
    for one in run:
        for found in policy.apply(one).findings:
            if found.fate is Fate.FAILS:
                assert (
                    found.status is None
                    or found.obligation is None
                    or found.code in (codes.WORKER_DIED, codes.JUDGE_FAILED)
                )


def test_a_baseline_survives_its_file(tmp_path: Path) -> None:
    """What was saved is what is loaded, whatever the claims hold, and its text is plain ASCII with an entry a line."""
    run = [
        outcome(finding(message='"quotes"\r\n\x00 \ud800 ünï', obligation=f"{n:064x}"), name=f"gates.py::ü{n}")
        for n in range(20)
    ]
    baseline = Baseline.of(run)
    path = tmp_path / "baseline.json"
    baseline.save(path)
    assert Baseline.load(path) == baseline and Baseline.load(path).path == str(path)
    lines = path.read_bytes().decode("ascii").split("\n")
    assert sum('"obligation"' in line for line in lines) == len(baseline.entries) == 20


def test_an_empty_baseline_is_a_file_too(tmp_path: Path) -> None:
    """A run without findings writes a baseline that knows nothing, and can be read."""
    path = tmp_path / "baseline.json"
    Baseline.of([]).save(path)
    assert Baseline.load(path) == Baseline(())


@one_in(4)
@given(RUNS, st.randoms(use_true_random=False))
def test_the_order_of_a_run_does_not_matter(run: list[Outcome], random: object) -> None:
    """The same findings make the same file, in whatever order they were found, and however often."""
    text = Baseline.of(run).text()
    assert Baseline.of(run[::-1]).text() == text
    assert Baseline.of(run + run).text() == text


def test_lines_and_names_do_not_count(tmp_path: Path) -> None:
    """A finding that moved to another line, item and file is known still."""
    baseline = Baseline.of([outcome(finding())])
    assert finding().place is not None
    moved = finding(place=None, message="other words", code="LP226")
    assert baseline.knows(moved)
    assert not baseline.knows(finding(obligation="0" * 64))


@pytest.mark.parametrize(
    ("before", "now", "known"),
    [
        ("refuted", "refuted", True),
        ("refuted", "unknown", True),
        ("refuted", "vacuous", False),
        ("unknown", "refuted", False),
        ("unknown", "unknown", True),
        ("unknown", "vacuous", False),
        ("vacuous", "refuted", False),
        ("vacuous", "unknown", False),
        ("vacuous", "vacuous", True),
    ],
)
def test_a_finding_that_got_worse_is_not_known(before: str, now: str, known: bool) -> None:
    """What was unknown and is refuted now fails; what was refuted and is unknown now does not; a vacuous gate is known
    as that only.
    """
    baseline = Baseline.of([outcome(finding(status=before))])
    assert baseline.knows(finding(status=now)) is known
    [found] = Policy(baseline=baseline).apply(outcome(finding(status=now))).findings
    assert found.fate is (Fate.KNOWN if known else Fate.FAILS)


def test_what_is_not_in_a_baseline() -> None:
    """Wrong input, findings without a hash, and what is ignored or allowed already are not written; what is known
    already is.
    """
    run = outcome(
        finding("LP110", None, obligation="1" * 64),
        finding(obligation=None),
        finding(obligation="2" * 64, fate=Fate.IGNORED),
        finding("LP230", "unknown", obligation="3" * 64, fate=Fate.ALLOWED),
        finding(obligation="4" * 64, fate=Fate.KNOWN),
        finding(obligation="5" * 64),
    )
    assert [entry.obligation[0] for entry in Baseline.of([run]).entries] == ["4", "5"]


def test_entries_that_nothing_needs_are_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry whose finding is gone is told, also when its file is gone; one of a file that was not looked at is
    not.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.py").touch()
    kept, mended = finding(obligation="1" * 64), finding(obligation="2" * 64)
    elsewhere, gone = finding(obligation="3" * 64), finding(obligation="4" * 64)
    before = [
        outcome(kept, mended, path="a.py", name="a.py::x"),
        outcome(elsewhere, path="./b.py", name="b.py::y"),
        outcome(gone, path=str(tmp_path / "c.py"), name="c.py::z"),
    ]
    baseline = Baseline.of(before)
    assert {entry.file for entry in baseline.entries} == {"a.py", "b.py", "c.py"}
    stale = baseline.stale([outcome(kept, path="a.py", name="a.py::x")])
    assert [entry.obligation[0] for entry in stale] == ["2", "4"]
    assert baseline.stale(before) == ()


def test_an_entry_of_a_finding_that_is_mended_in_part_is_needed() -> None:
    """A refuted entry that covers an unknown finding is not stale; a second, exact entry makes it so."""
    refuted, unknown = outcome(finding()), outcome(finding("LP230", "unknown"))
    assert Baseline.of([refuted]).stale([unknown]) == ()
    [stale] = Baseline.of([refuted, unknown]).stale([unknown])
    assert stale.status == "refuted"


def test_one_obligation_in_many_items_is_one_entry() -> None:
    """The same finding in two schedules makes one line, that of the first by name."""
    run = [outcome(finding(), name=f"gates.py::x[{n}]") for n in (2, 1, 3)]
    [entry] = Baseline.of(run).entries
    assert entry.name == "gates.py::x[1]"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1, column 1: not JSON"),
        ("[]", "an object with the keys"),
        ("{}", "an object with the keys"),
        ("null", "an object with the keys"),
        ('{"layoutproof_baseline": 3, "entries": []}', "its form is 3"),
        ('{"layoutproof_baseline": 1, "entries": []}', "is of form 1"),
        ('{"layoutproof_baseline": true, "entries": []}', "its form is true"),
        ('{"layoutproof_baseline": 1.0, "entries": []}', "its form is 1.0"),
        ('{"layoutproof_baseline": 2}', "entries is a list"),
        ('{"layoutproof_baseline": 2, "entries": {}}', "entries is a list"),
        ('{"layoutproof_baseline": 2, "entries": [], "more": 1}', "no key besides"),
        ('{"layoutproof_baseline": 2, "entries": [], "entries": []}', 'the key "entries" stands twice'),
        ('{"layoutproof_baseline": 2, "entries": [1]}', "entry 1 of entries"),
        ('{\n"layoutproof_baseline": 2,\n<<<<<<< HEAD\n"entries": []}', "line 3, column 1: not JSON"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_a_damaged_file_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    """Whatever is wrong with the file is told with its place; no damaged baseline is read as an empty one."""
    path = written(tmp_path, text)
    with pytest.raises(LayoutproofError) as caught:
        Baseline.load(path)
    [diagnostic] = caught.value.diagnostics
    assert diagnostic.code == "LP537" and str(path) in diagnostic.message and said in diagnostic.message
    assert "--write-baseline" in (diagnostic.help or "")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"claim": None}, "no object with the texts claim, code, file, name, obligation, status"),
        ({"line": "12"}, "no object with the texts"),
        ({"status": "proved"}, 'has the status "proved"; expected one of refuted, unknown, vacuous'),
        ({"obligation": ""}, "has no obligation"),
    ],
)
def test_a_damaged_entry_is_an_error(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    """An entry with a key too few or too many, of the wrong kind, or of no such status is told with its number."""
    text = json.dumps({"layoutproof_baseline": 2, "entries": [ENTRY, {**ENTRY, **changes}]})
    with pytest.raises(LayoutproofError, match="entry 2 of entries") as caught:
        Baseline.load(written(tmp_path, text))
    assert said in caught.value.diagnostics[0].message


@given(st.data())
def test_every_cut_of_a_file_is_an_error(data: st.DataObject) -> None:
    """A file that lost its end, as by a full disk, is damaged, wherever it was cut."""
    import tempfile

    text = Baseline.of(many(12)).text().rstrip("\n")
    cut = data.draw(st.integers(0, len(text) - 1))
    with tempfile.TemporaryDirectory() as folder, pytest.raises(LayoutproofError):
        Baseline.load(written(Path(folder), text[:cut]))


@pytest.mark.parametrize("kind", ["missing", "folder", "binary"])
def test_a_file_that_cannot_be_read(tmp_path: Path, kind: str) -> None:
    """A baseline that is not there, is a folder or is no text is an error that says so."""
    path = tmp_path / "b"
    if kind == "folder":
        path.mkdir()
    elif kind == "binary":
        path.write_bytes(b"\x00\xff\xfe")
    with pytest.raises(LayoutproofError) as caught:
        Baseline.load(path)
    assert caught.value.diagnostics[0].code == "LP537" and str(path) in caught.value.diagnostics[0].message


def test_entries_may_be_removed_by_hand(tmp_path: Path) -> None:
    """A file with fewer entries, in another order or with one twice, is read; only what it lists is known."""
    one, two = (finding(obligation=f"{n:064x}") for n in (1, 2))
    entries = json.loads(Baseline.of([outcome(one, two)]).text())["entries"]
    text = json.dumps({"layoutproof_baseline": 2, "entries": [entries[1], entries[1]]})
    baseline = Baseline.load(written(tmp_path, text))
    assert len(baseline.entries) == 1
    assert [baseline.knows(one), baseline.knows(two)] == [False, True]
    assert baseline == replace(baseline, path="")
