"""`layoutproof check`: verdicts on schedules, one or many, and what becomes of those that are wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.cli.calling import OPERATORS, Caller, files_below, steady
from tests.cli.commands.test_run import LOSSY, PADDED, UNPADDED
from tests.cli.schema import CHECK
from tests.conftest import Golden
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.verify.certificate.certificate import Certificate
from layoutproof.verify.verdict.verdict import Status

ROW_SUM = str(OPERATORS / "row_sum.py")
WRONG_NAME = [["transform_layout", {"block": "A_red", "buffer": "Q", "index_map": "lambda i: [i]", "pad_value": None}]]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The file that a trace is written to."""
    return tmp_path / "trace.json"


@pytest.mark.parametrize(("name", "steps", "code"), [("padded", PADDED, 0), ("refused", LOSSY, 1), ("nothing", [], 3)])
def test_text(call: Caller, golden: Golden, trace: Path, name: str, steps: list[object], code: int) -> None:
    """Each step with its verdict; a refused one with the claim, the reason and the counterexample; no step proves
    nothing.
    """
    trace.write_text(json.dumps(steps))
    outcome = call("check", ROW_SUM, "--trace", str(trace))
    assert outcome.code == code
    assert outcome.err == ""
    text = steady(outcome.out, OPERATORS)
    golden(f"cli_check/{name}.txt", text.replace(str(trace), "trace.json").replace(ROW_SUM, "row_sum.py"))


@pytest.mark.parametrize(
    ("steps", "verdict"), [(PADDED, "proved"), (UNPADDED, "proved"), (LOSSY, "refuted"), ([], "vacuous")]
)
def test_json(call: Caller, trace: Path, steps: list[list[object]], verdict: str) -> None:
    """JSON has exactly the keys that are promised, and every obligation."""
    trace.write_text(json.dumps(steps))
    outcome = call("check", ROW_SUM, "--trace", str(trace), "--format", "json")
    found = outcome.json()
    jsonschema.validate(found, CHECK)
    assert (found["verdict"], found["certificate"]) == (verdict, None)
    assert outcome.code == {"proved": 0, "refuted": 1, "vacuous": 3}[verdict]
    assert [[step["primitive"], step["arguments"]] for step in found["steps"]] == steps
    if verdict == "refuted":
        assert any(v["counterexample"] is not None for v in found["steps"][-1]["obligations"])


def test_certificate(call: Caller, trace: Path) -> None:
    """A proved schedule leaves a certificate that loads, and that its report names; a refused one leaves none."""
    path = trace.parent / "row_sum.lpcert.json"
    trace.write_text(json.dumps(PADDED))
    outcome = call("check", ROW_SUM, "--trace", str(trace), "--certificate", str(path), "--format", "json")
    assert outcome.code == 0 and outcome.json()["certificate"] == str(path)
    certificate = Certificate.load(path)
    assert certificate.status is Status.PROVED
    assert [step["primitive"] for step in certificate.steps] == ["transform_layout"]
    claims = [v["claim"] for v in outcome.json()["steps"][0]["obligations"]]
    assert len(certificate.steps[0]["obligations"]) == len(claims)
    path.unlink()
    trace.write_text(json.dumps(LOSSY))
    outcome = call("check", ROW_SUM, "--trace", str(trace), "--certificate", str(path), "--format", "json")
    assert outcome.code == 1 and outcome.json()["certificate"] is None and not path.exists()


LINES: tuple[Any, ...] = (PADDED, LOSSY, "not json", WRONG_NAME, [], UNPADDED)


@one_in(14)
@pytest.mark.parametrize("jobs", ["1", "3"])
def test_many_schedules(call: Caller, trace: Path, jobs: str) -> None:
    """One object a line, in the order of the lines, whatever the number of workers; what is no schedule says so, with
    its line.
    """
    path = trace.with_suffix(".jsonl")
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in LINES) + "\n\n")
    outcome = call("check", ROW_SUM, "--trace", str(path), "--jobs", jobs, "--format", "json")
    found = [json.loads(line) for line in outcome.out.splitlines()]
    assert [one["verdict"] for one in found] == ["proved", "refuted", None, None, "vacuous", "proved"]
    for one in found:
        jsonschema.validate(one, CHECK)
    assert [one["place"]["line"] for one in found] == [1, 2, 3, 4, 5, 6]
    assert [one["findings"][0]["code"] for one in found[1:5]] == ["LP314", "LP328", "LP301", "LP557"]
    assert found[2]["findings"][0]["place"]["line"] == 3 and "Q" in found[3]["findings"][0]["message"]
    assert outcome.code == 1
    text = call("check", ROW_SUM, "--trace", str(path), "--jobs", jobs)
    assert [f"{path}:{k}" in text.out for k in range(1, 8)] == [True] * 6 + [False]
    assert "6 items: 1 refuted, 2 errors, 1 vacuous, 2 proved" in text.out


@pytest.mark.parametrize(
    ("lines", "code"), [([PADDED], 0), ([PADDED, "{"], 2), ([[]], 3), ([[], "{"], 2), ([LOSSY, "{"], 1)]
)
def test_exit_codes_of_many(call: Caller, trace: Path, lines: list[object], code: int) -> None:
    """Refuted before a bad line before unknown."""
    path = trace.with_suffix(".jsonl")
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    assert call("check", ROW_SUM, "--trace", str(path), "--jobs", "1").code == code


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '[["nonsense", {}]]', "[[[[[", "\x00", "NaN", '[["transform_layout", {}]]']
)
def test_a_trace_that_is_none(call: Caller, trace: Path, text: str) -> None:
    """What is no trace is an error of the input, in one file and in one line of many."""
    trace.write_text(text)
    outcome = call("check", ROW_SUM, "--trace", str(trace))
    assert outcome.code == 2 and "error[LP" in outcome.err and outcome.out == ""
    lines = trace.with_suffix(".jsonl")
    lines.write_text(f"{json.dumps(PADDED)}\n{text}")
    outcome = call("check", ROW_SUM, "--trace", str(lines), "--jobs", "1")
    assert outcome.code == (2 if text.strip() else 0)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--trace", "missing.json"), "missing.json"),
        ((), "--trace"),
        (("--trace", "t.json", "--strictness", "exact"), "exact"),
        (("--trace", "t.json", "--strictness", ""), "empty"),
        (("--trace", "t.json", "--certificate", "nowhere/c.json"), "nowhere"),
        (("--trace", "t.jsonl", "--certificate", "c.json"), "LP513"),
        (("--trace", "t.json", "--report", "pdf=a.pdf"), "pdf"),
        (("--trace", "t.json", "--shard", "3/2"), "LP529"),
        (("--trace", "t.json", "--ignore", "LP9"), "LP536"),
        (("--trace", "t.json", "--baseline", "missing.json"), "LP537"),
        (("--trace", "t.json", "--cache", "c.sqlite", "--no-cache"), "--no-cache"),
        (("--trace", "t.json", "--report", "json=nowhere/r.json"), "nowhere"),
        (("--trace", "t.json", "--budget", "0"), "--budget"),
        (("--trace", "t.json", "--function", "other"), "other"),
    ],
)
def test_wrong_calls(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], part: str
) -> None:
    """A wrong option is told before anything is done, and leaves nothing behind."""
    monkeypatch.chdir(tmp_path)
    Path("t.json").write_text(json.dumps(PADDED))
    Path("t.jsonl").write_text(f"{json.dumps(PADDED)}\n" * 2)
    before = files_below(tmp_path)
    outcome = call("check", ROW_SUM, *options)
    assert outcome.code == 2 and part in outcome.err and outcome.out == ""
    assert files_below(tmp_path) == before


REFUTED = ROOT / "proofs" / "refuted" / "order_interchanged.py"
EXCUSED = ROOT / "tests" / "proof" / "programs" / "convolution_weight_free.py"


def test_a_rewrite_is_refuted(call: Caller, golden: Golden, tmp_path: Path) -> None:
    """A rewrite needs no trace: each obligation is told, the failed one with both stores and the input; no certificate
    is left.
    """
    path = tmp_path / "rewrite.lpcert.json"
    outcome = call("check", str(REFUTED), "--certificate", str(path))
    assert (outcome.code, outcome.err) == (1, "") and not path.exists()
    golden("cli_check/rewrite_refuted.txt", steady(outcome.out, REFUTED.parent))


@one_in(4)
def test_a_rewrite_is_proved(call: Caller, tmp_path: Path) -> None:
    """A proved rewrite names the fast-math assumptions that it needs, and its certificate loads."""
    path = tmp_path / "rewrite.lpcert.json"
    outcome = call("check", str(EXCUSED), "--certificate", str(path))
    assert (outcome.code, outcome.err) == (0, "")
    told = outcome.out.splitlines()
    assert told[0].endswith(f"{EXCUSED.name}: proved")
    assert any("overcomputed iterations leave" in line and "nnan ninf" in line for line in told)
    assert told[-2:] == ["  the two programs do the same with nnan ninf", f"  certificate: {path}"]
    assert Certificate.load(path).status is Status.PROVED
    assert call("check", str(EXCUSED), "--strictness", "ieee").code == 1


def test_a_rewrite_in_json(call: Caller) -> None:
    """A rewrite is one step without arguments, with every obligation."""
    outcome = call("check", str(REFUTED), "--format", "json")
    found = outcome.json()
    jsonschema.validate(found, CHECK)
    assert (found["verdict"], [step["primitive"] for step in found["steps"]]) == ("refuted", ["rewrite"])
    assert [v["status"] for v in found["steps"][0]["obligations"]].count("refuted") == 1


@pytest.mark.parametrize(
    "change", [("def after", "def later"), ("# theta: 0 -> 0", "# theta: 0 -> zero"), ("# clause", "# claws")]
)
def test_a_rewrite_that_is_none(call: Caller, tmp_path: Path, change: tuple[str, str]) -> None:
    """Without a trace, a file that holds no rewrite is an error of the input."""
    path = tmp_path / "rewrite.py"
    path.write_text(REFUTED.read_text().replace(*change))
    outcome = call("check", str(path))
    assert outcome.code == 2 and outcome.out == "" and outcome.err
    assert call("check", str(REFUTED), "--function", "before").code == 2


def test_a_failing_input_is_told_once(call: Caller, trace: Path) -> None:
    """A step that a run refutes is told with the input in words, under its claim, and not as data."""
    steps = [
        ["split", {"block": "A_red", "loop": 1, "factors": [None, 2]}],
        ["reorder", {"block": "A_red", "loops": [2, 1]}],
    ]
    trace.write_text(json.dumps(steps))
    outcome = call("check", ROW_SUM, "--trace", str(trace), "--strictness", "ieee")
    assert outcome.code == 1 and "'fill'" not in outcome.out
    told = outcome.out.splitlines()
    start = next(number for number, line in enumerate(told) if "expected" in line and "error[LP" in line)
    assert told[start].startswith(f"  {os.path.relpath(ROW_SUM)}:")
    assert all(line.startswith("    ") for line in told[start + 1 : start + 7])
    assert sum("A, float32 [16, 14]: " in line for line in told) == 1


def test_a_race_is_told(call: Caller, trace: Path) -> None:
    """A loop that must not be parallel is refuted with the cell, and both accesses with their iterations, in every
    form.
    """
    trace.write_text(json.dumps([["parallel", {"block": "A_red", "loop": 1}]]))
    outcome = call("check", ROW_SUM, "--trace", str(trace))
    assert outcome.code == 1 and "touch one cell" in outcome.out
    assert any("├──> A_red[15], in no order" in line for line in outcome.out.splitlines())
    (found,) = json.loads(call("check", ROW_SUM, "--trace", str(trace), "--format", "json").out)["steps"]
    (race,) = [v for v in found["obligations"] if v["status"] == "refuted"]
    assert race["counterexample"]["cell"] == [15]


def test_paths_are_shown_as_seen_from_here(call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path below the working directory is shown as relative to it, however it was written; others stay."""
    inner = tmp_path / "inner"
    inner.mkdir()
    gates = inner / "gates.py"
    gates.write_text(
        "import layoutproof as lp\n\n\n@lp.gate\ndef f():\n    return lp.check_map('lambda i: [i]', (4,))\n"
    )
    monkeypatch.chdir(tmp_path)
    for path in (str(gates), "./inner/gates.py", "inner/gates.py"):
        assert call("check", path).out.startswith("inner/gates.py::f"), path
    monkeypatch.chdir(inner)
    assert call("check", str(tmp_path)).out.startswith(f"{gates}::f")
