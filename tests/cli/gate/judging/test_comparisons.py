"""Comparisons in gates: what `check` and pytest make of a gate that returns one, and how reports show it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.calling import Caller
from tests.cli.compared_programs import AFTER, BEFORE, WRONG, write_programs
from tests.cli.render.gate.test_html_page import entries, read
from tests.shares import one_in

from layoutproof.cli.gate.judging.by_kernel import comparison_by_kernel
from layoutproof.cli.gate.judging.compared import findings_of, layouts_of
from layoutproof.cli.gate.judging.comparisons import Asked
from layoutproof.cli.gate.outcomes import Fate, Kind, Outcome
from layoutproof.cli.render.gate.text_json import finding_lines
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.lowering.compare.comparison import BufferLayout, Comparison, Furthest
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

CACHE = "cache.sqlite"
GATES = """\
import layoutproof as lp

BEFORE = lp.load("before.py")
PACKED = {"B": lambda i: [i // 4, i % 4]}


@lp.gate
def right():
    return lp.compare(BEFORE, lp.load("after.py"), layouts=PACKED, pads={"B": 0.0})


@lp.gate
def found():
    return [lp.compare(BEFORE, lp.load("after.py")), lp.check_map(lambda i: [i], shape=(4,))]


@lp.gate
def wrong():
    return lp.compare(BEFORE, lp.load("wrong.py"), layouts=PACKED)


@lp.gate(allow_unknown=True)
def strange():
    return lp.compare(BEFORE, lp.load("strange.py"))


@lp.gate(strictness="ieee")
def strict():
    return lp.compare(lp.load("sum.py"), lp.load("regrouped.py"))


@lp.gate
def no_such_buffer():
    return lp.compare(BEFORE, lp.load("after.py"), layouts={"Q": "lambda i: [i]"})
"""


def parts_of(path: Path) -> dict[str, list[dict[str, Any]]]:
    """By item, what the page shows of it: programs and layouts."""
    data = read(path.read_text(encoding="utf-8")).data
    shared = list(entries(data, "shared"))
    found = {body["name"]: body["parts"] or [] for body in entries(data, "body")}
    return {
        name: [{**part, "layouts": [shared[number] for number in part["layouts"]]} for part in parts]
        for name, parts in found.items()
    }


@dataclass(frozen=True)
class Team:
    """A folder with the gates and the programs, and what `check` says of each gate, by name."""

    folder: Path
    outcomes: dict[str, Any]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """The gates, checked once in a process of their own."""
    folder = tmp_path_factory.mktemp("team")
    write_programs(folder)
    (folder / "gates.py").write_text(GATES, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "layoutproof",
        "check",
        "gates.py",
        "--workers",
        "1",
        "--format",
        "json",
        "--cache",
        CACHE,
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 1 and done.stderr == ""
    return Team(
        folder, {outcome["name"].partition("::")[2]: outcome for outcome in map(json.loads, done.stdout.splitlines())}
    )


@pytest.fixture
def gates(team: Team) -> dict[str, Any]:
    """What `check` says of each gate, by name."""
    return team.outcomes


@pytest.fixture
def folder(team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder, which is the current one, and in which everything is known already."""
    copy = shutil.copytree(team.folder, tmp_path / "team")
    monkeypatch.chdir(copy)
    monkeypatch.setenv("LAYOUTPROOF_PROOF_CACHE", str(copy / CACHE))
    return copy


@one_in(9)
def test_verdicts(gates: dict[str, Any]) -> None:
    """A comparison counts as all else that a gate returns, alone or in a list, under what the gate allows."""
    verdicts = {name: outcome["verdict"] for name, outcome in gates.items()}
    assert verdicts.pop("strict") in ("refuted", "unknown")
    assert verdicts == {
        "right": "proved",
        "found": "proved",
        "wrong": "refuted",
        "strange": "unknown",
        "no_such_buffer": None,
    }
    assert [finding["fate"] for finding in gates["strange"]["findings"]] == ["allowed"]
    assert "Q" in gates["no_such_buffer"]["findings"][0]["message"]


@one_in(4)
def test_a_comparison_is_a_step(gates: dict[str, Any]) -> None:
    """It stands among the steps, with its layouts and every obligation; what was found is said in the notes."""
    (step,) = gates["right"]["steps"]
    assert step["primitive"] == "compare" and len(step["obligations"]) > 5
    assert [layout["index_map"] for layout in step["arguments"]["layouts"]] == ["lambda i: [i//4, i%4]"]
    assert [step["primitive"] for step in gates["found"]["steps"]] == ["compare", "check_map"]
    assert any("B is stored by `lambda i: [i//4, i%4]` (found)" in note for note in gates["found"]["notes"])
    assert "layouts" not in gates["right"]


@one_in(4)
def test_the_gate_and_both_programs_are_named(gates: dict[str, Any]) -> None:
    """What is refuted stands at the gate, and has the lines of both programs as related places."""
    (finding,) = gates["wrong"]["findings"]
    assert finding["place"]["text"] == "def wrong():" and finding["code"] == "LP222"
    assert [Path(place["path"]).name for place in finding["related"]] == ["wrong.py", "before.py"]
    assert all(place["text"].strip().startswith("B[") for place in finding["related"])
    assert finding["counterexample"] is not None and finding["drawing"]


@one_in(14)
@pytest.mark.parametrize("form", ["junit", "sarif", "github", "text"])
def test_reports(call: Caller, folder: Path, form: str) -> None:
    """Every form names the gate, the code and both programs' files."""
    printed = call("check", "gates.py", "--workers", "1", "--format", form)
    assert printed.code == 1
    for part in ("wrong", "LP222", "before.py", "does not do what"):
        assert part in printed.out
    if form == "text":
        assert "  refuted  compare(B='lambda i: [i//4, i%4]'): " in printed.out and "not applied" not in printed.out


def test_html(call: Caller, folder: Path) -> None:
    """The page has both programs and a picture of each layout, of a comparison that is proved and of one of which
    nothing was found.
    """
    assert call("check", "gates.py", "--workers", "1", "--format", "html", "-o", "report.html").code == 1
    found = parts_of(folder / "report.html")
    (part,) = found["gates.py::right"]
    assert len(part["layouts"]) == 1 and len(part["stages"]) == 2
    (nothing,) = found["gates.py::strange"]
    assert len(nothing["stages"]) == 2
    assert call("compare", "before.py", "after.py", "--format", "html", "-o", "one.html").code == 0
    (part,) = parts_of(folder / "one.html")["before.py -> after.py"]
    assert part["layouts"][0]["picture"] is not None


@one_in(4)
def test_a_baseline_knows_it(call: Caller, folder: Path) -> None:
    """A finding is known by what was asked: lines may move, and a gate and the command ask the same; a change of a
    program is new.
    """
    call("check", "gates.py", "--workers", "1", "--write-baseline", "base.json", "--ignore", "LP3")
    layout = ("--layout", "B=lambda i: [i//4, i%4]")
    assert call("compare", "before.py", "wrong.py", *layout, "--baseline", "base.json").code == 0
    (folder / "wrong.py").write_text(f"\n\n# moved\n{WRONG}", encoding="utf-8")
    assert call("compare", "before.py", "wrong.py", *layout, "--baseline", "base.json").code == 0
    (folder / "wrong.py").write_text(WRONG.replace("< 13", "< 11"), encoding="utf-8")
    assert call("compare", "before.py", "wrong.py", *layout, "--baseline", "base.json").code == 1


@one_in(9)
def test_pytest(folder: Path) -> None:
    """pytest's plugin passes, fails and skips comparisons as `check` does."""
    command = [sys.executable, "-m", "pytest", "--layoutproof", "gates.py", "-q", "-p", "no:cacheprovider", "-rA"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    for line in ("PASSED gates.py::right", "PASSED gates.py::found", "FAILED gates.py::wrong", "SKIPPED"):
        assert line in done.stdout
    assert "wrong.py:8:13: note: in the program after" in done.stdout and "before.py:7:9: note: before" in done.stdout


def made(furthest: Furthest | None, verdict: Verdict, *layouts: BufferLayout) -> Comparison:
    """A comparison of the two programs, written by hand."""
    text = AFTER.replace("B[", "packed[").replace("B:", "packed:")
    before, after = loads(BEFORE, "before.py"), loads(text, "after.py")
    return Comparison(before, after, (verdict,), layouts, None, furthest)


def test_how_far_a_search_came_is_shown() -> None:
    """What has no counterpart stands under the mark, in the file after; the line before is a related place, in its own
    file.
    """
    furthest = Furthest("nothing loads it", 0, 0, 8, 7, "A[io * 4 + ii]", "[io, ii] -> [4*io + ii]", 0)
    compared = made(
        furthest,
        Verdict(Status.UNKNOWN, Claim(ClaimKind.SAME_END, "main does what main does"), "compare", (), furthest.text()),
    )
    (finding,) = findings_of(compared)
    lines = list(finding_lines(finding))
    assert (
        lines[0]
        == "after.py:8:83: error[LP230]: whether main after does what main before does is not decided: nothing loads it"
    )
    marked = lines[1].index("A[io * 4 + ii]"), len("A[io * 4 + ii]")
    assert lines[2] == f"{'':{lines[1].index('|')}}|{'':{marked[0] - lines[1].index('|') - 1}}{'^' * marked[1]}"
    assert (
        "  relation: [io, ii] -> [4*io + ii]" in lines
        and "before.py:7:9: note: before, this is what it came to" in lines
    )
    assert "the layout of B was searched" in lines[-1]


@pytest.mark.parametrize(
    ("pad", "given", "said"),
    [
        (None, False, "B is stored as packed by `lambda i: [i//4, i%4]` (tried); its padding is not touched (tried)"),
        (
            "undef",
            True,
            "B is stored as packed by `lambda i: [i//4, i%4]` (tried); its padding may hold anything (given)",
        ),
        ("0.0", False, "B is stored as packed by `lambda i: [i//4, i%4]` (tried); its padding holds 0.0 (tried)"),
    ],
)
def test_contracts_in_words(pad: str | None, given: bool, said: str) -> None:
    """A layout is a line: the map, where it is from, and what its padding holds."""
    layout = BufferLayout("B", "packed", "lambda i: [i//4, i%4]", pad, False, given)
    compared = made(
        None,
        Verdict(Status.UNKNOWN, Claim(ClaimKind.SAME_END, "main does what main does"), "compare", (), "why"),
        layout,
    )
    assert layouts_of(compared) == [said, "A keeps its layout"]
    filled = replace(layout, buffer="A", stored_as="packed", pad_value="0.0")
    assert layouts_of(replace(compared, layouts=(filled,)))[0].endswith(": callers fill it")


@pytest.mark.parametrize("status", [Status.VACUOUS, Status.UNKNOWN])
def test_a_finding_has_the_status_of_the_whole(status: Status) -> None:
    """Whatever the worst verdict is, the finding has its status and a code for it, and the hash does not know which."""
    compared = made(None, Verdict(status, Claim(ClaimKind.SAME_END, "main does what main does"), "compare", (), "why"))
    (finding,) = findings_of(compared, allow_unknown=True)
    assert (finding.status, finding.code) == (status.value, {"vacuous": "LP231", "unknown": "LP230"}[status.value])
    assert finding.fate is (Fate.ALLOWED if status is Status.UNKNOWN else Fate.FAILS)
    (other,) = findings_of(
        made(None, Verdict(Status.UNKNOWN, Claim(ClaimKind.OTHER, "another claim"), "isl", (), "another reason"))
    )
    assert other.obligation == finding.obligation


def test_a_baseline_knows_how_parameters_were_paired() -> None:
    """Two pairings of the parameters are two questions, and no pairing is the one that it was before."""
    verdict = Verdict(Status.UNKNOWN, Claim(ClaimKind.SAME_END, "main does what main does"), "compare", (), "why")
    compared = made(None, verdict)
    others = [replace(compared, match=match) for match in ({}, {"X": "A", "Y": "B"}, {"X": "B", "Y": "A"})]
    hashes = [findings_of(each)[0].obligation for each in (compared, *others)]
    assert hashes[0] == hashes[1] and len(set(hashes)) == 3
    program = '@T.prim_func\ndef main({0}: T.Buffer((2,), "int32"), B: T.Buffer((2,), "int32")):\n    B[0] = {0}[1]\n'
    asked = compare(loads(program.format("A")), loads(program.format("X")), match={"X": "A"})
    assert asked.match == {"X": "A"} and asked.status is Status.PROVED


def test_what_the_kernel_cannot_judge_is_known_by_both_programs() -> None:
    """A baseline that has such a comparison knows no other one, though programs have one name."""
    verdict = Verdict(Status.PROVED, Claim(ClaimKind.SAME_END, "main does what main does"), "compare", (), None)
    blank = Outcome(Kind.COMPARISON, "x", "main", None, "proved")
    first, other = made(None, verdict), replace(made(None, verdict), before=loads(WRONG), after=loads(WRONG))
    assert first.before.name == other.before.name
    hashes = {comparison_by_kernel(blank, each).findings[0].obligation for each in (first, other)}
    assert len(hashes) == 2


def test_what_is_asked_reads_back() -> None:
    """What an item holds as text is what it was made of."""
    asked = Asked(("a", "b"), (("A", "lambda i: [i]"),), (("A", "T.float32(0)"),), (("x", "A"),), "n >= 1")
    assert Asked.read(asked.text) == asked
    assert Asked.read(Asked(("a", "b")).text) == Asked(("a", "b"))
