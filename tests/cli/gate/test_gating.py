"""Whole runs of the gate: the same report whatever the workers, the shards and the cache, and the exit code that CI
goes by.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.cli.calling import Caller
from tests.cli.schema import CHECK
from tests.shares import one_in
from tests.tree import ROOT

PROGRAM = ROOT / "examples" / "programs" / "row_sum.py"
BLOCKED: dict[str, Any] = {"block": "sum", "buffer": "A", "index_map": "lambda i, j: [i, j//4, j%4]", "pad_value": 0.0}
LAYOUT = ["transform_layout", BLOCKED]
WRONG_PAD = ["transform_layout", {**BLOCKED, "pad_value": 1.0}]
FOLLOW = ["sequential_buffer_access", {"block": "sum", "buffer": "A"}]
DROP = ["remove_branching_through_overcompute", {"block": "sum"}]
TRACES: list[Any] = [
    [LAYOUT],
    [LAYOUT, FOLLOW],
    [LAYOUT, FOLLOW, DROP],
    [WRONG_PAD, FOLLOW, DROP],
    "{",
    [["transform_layout", {"block": "nobody", "buffer": "A", "index_map": "lambda i, j: [j, i]", "pad_value": None}]],
    [],
    [LAYOUT, FOLLOW],
]
GATES = """import layoutproof as lp

print("printed by a gate file")

@lp.gate(cases=[4, 8])
def blocked(c):
    print("printed by a gate")
    return lp.check_map(lambda n, h, k: [n, k // c, h, k % c], (2, 14, 64))

@lp.gate
def row_sum():
    sch = lp.Schedule(lp.load("row_sum.py"))
    sch.transform_layout("sum", "A", lambda i, j: [i, j // 4, j % 4], pad_value=0.0)
    return sch
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program, a log of its schedules, and gates, which is the working directory; and a cache of its
    own.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYOUTPROOF_PROOF_CACHE", str(tmp_path / "cache" / "proofs.sqlite"))
    (tmp_path / "row_sum.py").write_text(PROGRAM.read_text(encoding="utf-8"))
    lines = (line if isinstance(line, str) else json.dumps(line) for line in TRACES)
    (tmp_path / "row_sum.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "gates.py").write_text(GATES)
    return tmp_path


@one_in(10)
def test_the_same_report_from_every_run(folder: Path, call: Caller) -> None:
    """One worker or three, a cold cache, a warm one or none, a folder for a cache: the same bytes."""
    known = folder / "known.txt"
    ways = [
        ["--workers", "1"],
        ["--workers", "1"],
        ["--workers", "3", "--no-cache"],
        ["--cache", "shared", "--workers", "1"],
        ["--cache", "shared", "--workers", "2"],
    ]
    made = {
        (call("check", ".", "--stable", "--format", "json", "--report=text=known.txt", *way).out, known.read_text())
        for way in ways
    }
    ((report, _),) = made
    outcomes = [json.loads(line) for line in report.splitlines()]
    for outcome in outcomes:
        jsonschema.validate(outcome, CHECK)
    verdicts = ["proved", "proved", "proved", "proved", "proved", "proved", "refuted", None, None, "vacuous", "proved"]
    assert [outcome["verdict"] for outcome in outcomes] == verdicts


@one_in(4)
def test_shards_together_are_the_whole(folder: Path, call: Caller) -> None:
    """Each item is in exactly one of the shards."""
    options = ("--stable", "--format", "json", "--workers", "1")
    whole = call("check", ".", *options).out.splitlines()
    parts = [call("check", ".", *options, "--shard", f"{k}/3").out.splitlines() for k in (1, 2, 3)]
    assert sorted(line for part in parts for line in part) == sorted(whole)
    assert parts[1] == whole[1::3]


@one_in(9)
def test_what_was_judged_is_said_to_be_known(folder: Path, call: Caller) -> None:
    """The second run says how much it took from the cache, and without one nothing is."""
    # The last schedule stands in the log before: so much is known even the first time.
    assert "; 1 from the cache" in call("check", "row_sum.jsonl", "--workers", "1").out
    assert "; 7 from the cache" in call("check", "row_sum.jsonl", "--workers", "1").out
    assert "from the cache" not in call("check", "row_sum.jsonl", "--workers", "1", "--no-cache").out
    found = [json.loads(line) for line in call("check", ".", "--format", "json", "--workers", "1").out.splitlines()]
    assert [outcome["cached"] for outcome in found].count(False) <= 4


@one_in(9)
def test_a_changed_program_is_judged_anew(folder: Path, call: Caller) -> None:
    """What was proved of a program says nothing of it after it was edited."""
    text = (folder / "row_sum.py").read_text()
    assert call("check", "row_sum.jsonl", "--workers", "1").code == 1
    (folder / "row_sum.py").write_text(text.replace("B[vi] + A[vi, vj]", "B[vi] * A[vi, vj]"))
    outcome = call("check", "row_sum.jsonl", "--workers", "1", "--format", "json")
    verdicts = [json.loads(line)["verdict"] for line in outcome.out.splitlines()]
    assert verdicts[2] != "proved" and verdicts[0] == "proved"


@one_in(10)
@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),
        (["--ignore", "LP373"], 2),
        (["--ignore", "LP373", "--shard", "1/100"], 0),
        (["--select", "LP557"], 2),
    ],
)
def test_exit_codes(folder: Path, call: Caller, options: list[str], code: int) -> None:
    """Refuted before wrong input before unknown and vacuous; what is wrong with the input cannot be ignored."""
    assert call("check", ".", "--workers", "1", *options).code == code


@one_in(4)
def test_reports_of_one_run(folder: Path, call: Caller) -> None:
    """Several reports come from one run; those in files are whole, and standard output has what was asked for."""
    reports = [f"--report={form}=report.{form}" for form in ("json", "junit", "sarif", "html", "text", "github")]
    outcome = call("check", ".", "--workers", "1", "--stable", *reports)
    assert outcome.code == 1 and "11 items: 1 refuted, 2 errors, 1 vacuous, 7 proved" in outcome.out
    assert (folder / "report.text").read_text() == outcome.out
    assert json.loads((folder / "report.json").read_text().splitlines()[0])["name"] == "gates.py::blocked[4]"
    assert json.loads((folder / "report.sarif").read_text())["version"] == "2.1.0"
    assert "<testsuite" in (folder / "report.junit").read_text()
    assert (folder / "report.html").read_text().rstrip().endswith("</html>")
    assert "::error " in (folder / "report.github").read_text()
    assert not list(folder.glob(".*.part"))


def test_what_gates_print_is_no_part_of_the_report(folder: Path, call: Caller) -> None:
    """Standard output is the report's; what code of gates prints goes to standard error."""
    outcome = call("check", "gates.py", "--format", "json", "--workers", "1")
    assert all(json.loads(line) for line in outcome.out.splitlines())
    assert "printed by a gate" in outcome.err and "printed by a gate file" in outcome.err


@one_in(9)
def test_a_baseline(folder: Path, call: Caller) -> None:
    """Findings that are known fail nothing; a new one does; moving the program by a line changes nothing."""
    (folder / "row_sum.jsonl").write_text(
        "".join(f"{json.dumps(trace)}\n" for trace in TRACES if isinstance(trace, list) and len(trace) != 1)
    )
    assert call("check", ".", "--workers", "1", "--write-baseline", "known.json").code == 1
    assert call("check", ".", "--workers", "1", "--baseline", "known.json").code == 0
    (folder / "row_sum.py").write_text("\n# moved\n" + (folder / "row_sum.py").read_text())
    outcome = call("check", ".", "--workers", "1", "--baseline", "known.json")
    assert outcome.code == 0 and "in the baseline" in outcome.out
    worse = [["transform_layout", {**BLOCKED, "index_map": "lambda i, j: [i, j//4]"}]]
    with (folder / "row_sum.jsonl").open("a") as file:
        file.write(json.dumps(worse) + "\n")
    assert call("check", ".", "--workers", "1", "--baseline", "known.json").code == 1


def test_a_gate_that_allows_unknowns(folder: Path, call: Caller) -> None:
    """An unknown fails a run, unless the run or the gate says that it need not."""
    text = (
        "import layoutproof as lp\nfrom layoutproof.verify.verdict.verdict import Claim, ClaimKind\n"
        "from layoutproof.verify.verdict.verdict import Status, Verdict\n"
        "@lp.gate{}\ndef g():\n"
        "    return Verdict(Status.UNKNOWN, Claim(ClaimKind.OTHER, 'a claim'), 'z3', reason='the budget is spent')\n"
    )
    (folder / "gates.py").write_text(text.format(""))
    assert call("check", "gates.py").code == 3
    assert call("check", "gates.py", "--workers", "1", "--allow-unknown").code == 0
    (folder / "gates.py").write_text(text.format("(allow_unknown=True)"))
    outcome = call("check", "gates.py", "--workers", "1")
    assert outcome.code == 0 and "allowed" in outcome.out
    assert call("check", "gates.py", "--workers", "1", "--ignore", "LP230").code == 0


def test_more_budget(folder: Path, call: Caller) -> None:
    """The factor reaches the checker: with next to nothing a step that takes a solver is not decided, and that is kept
    apart.
    """
    (folder / "row_sum.jsonl").write_text(json.dumps(TRACES[2]) + "\n")
    assert call("check", "row_sum.jsonl").code == 0
    assert call("check", "row_sum.jsonl", "--budget", "0.001").code in (0, 3)
    assert call("check", "row_sum.jsonl").code == 0


LOADED = """
import sys
from layoutproof.cli.main import main
code = main(["check", *sys.argv[1:], "--workers", "1", "--timeout", "0"])
print(code, sorted({"islpy", "z3", "bitwuzla", "cvc5"} & set(sys.modules)), file=sys.stderr)
"""


@one_in(7)
@pytest.mark.parametrize("path", ["row_sum.jsonl", "gates.py"])
def test_what_is_known_loads_no_solver(folder: Path, path: str) -> None:
    """A run that finds everything in the cache never loads a solver: neither for schedules nor for gates."""
    (folder / "row_sum.jsonl").write_text("".join(f"{json.dumps(trace)}\n" for trace in TRACES[:3]))
    told = []
    for _ in range(2):
        run = subprocess.run([sys.executable, "-c", LOADED, path], capture_output=True, text=True, check=True)
        told.append(run.stderr.splitlines()[-1])
    assert "islpy" in told[0] and told[1] == "0 []"


SLOW = "import layoutproof as lp, time\n@lp.gate\ndef g():\n    try:\n        {}\n    except Exception:\n        pass\n"
DONE = "    return lp.check_map(lambda i: [i], (14,))\n"


@one_in(9)
@pytest.mark.parametrize("wait", ["time.sleep(600)", "while True: pass"])
@pytest.mark.parametrize("several", [False, True])
def test_an_item_has_a_limit_by_default(
    wait: str, several: bool, folder: Path, call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One item, in the run's own process, and one of several on one processor, are unknown once their time is over; the
    gate cannot keep that for itself, and `--timeout 0` lifts it.
    """
    seconds = 12.0 if several else 1.5  # the others have to come in before theirs
    monkeypatch.setattr("layoutproof.cli.gate_run.SECONDS", seconds)
    (folder / "slow.py").write_text(SLOW.format(wait) + DONE)
    (folder / "quick.py").write_text(SLOW.format("time.sleep(3)") + DONE)
    more = ["gates.py"] if several else []
    outcome = call("check", "slow.py", *more, "--workers", "1", "--no-cache")
    assert outcome.code == 3 and f"error[LP525]: ended after {seconds:g} s (--timeout)" in outcome.out
    assert ("proved   gates.py::" in outcome.out) is several
    if not several and wait != "while True: pass":
        assert call("check", "quick.py", "--timeout", "0", "--no-cache").code == 0
