"""The command that tells which share of claims the kernel accepts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.kernel_corpora import own_subjects, subjects_at
from benchmarks.kernel_share import GROUPS, main, reason_without_names

from layoutproof.verify.verdict.verdict import ClaimKind

_REWRITE = """
# theta: 0 -> 0: lambda io, ii: [io * 4 + ii]
@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        B[i] = A[i]

@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for io, ii in T.grid(4, 4):
        B[io * 4 + ii] = A[io * 4 + ii]
"""


def test_claims_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A step that is accepted, one with a value that is not, and one that the kernel does not read."""
    (tmp_path / "accepted.py").write_text(_REWRITE)
    (tmp_path / "factor.py").write_text(_REWRITE.replace("= A[io * 4 + ii]", "= T.max(A[io * 4 + ii], A[io * 4 + ii])"))
    let = "x: T.let[T.float32] = A[io * 4 + ii]\n        if ii < 4:\n            B[io * 4 + ii] = x"
    (tmp_path / "let.py").write_text(_REWRITE.replace("B[io * 4 + ii] = A[io * 4 + ii]", let))
    (tmp_path / "open.py").write_text(_REWRITE.replace("= A[io * 4 + ii]", "= A[io * 4]"))
    (tmp_path / "notes.txt").write_text("nothing")
    path = tmp_path / "share.json"
    assert main([str(tmp_path), "--json", str(path)]) == 0
    found = json.loads(path.read_text())
    by_name = {one["name"]: one for one in found["schedules"]}
    assert set(by_name) == {"accepted.py", "factor.py", "let.py", "open.py"}
    rejected = {
        name: [claim["group"] for step in one["steps"] for claim in step["claims"] if claim["reason"] is not None]
        for name, one in by_name.items()
    }
    assert (rejected["accepted.py"], rejected["factor.py"], rejected["open.py"]) == ([], ["value"], [])
    assert [by_name[name]["open"] for name in sorted(by_name)] == [0, 0, 0, 1]
    read = [one["steps"][0]["is_read"] for name, one in sorted(by_name.items()) if name != "open.py"]
    assert read == [True, True, False] and set(rejected["let.py"]) > {"bounds", "value"}
    total = sum(entry["claims"] for entry in found["shares"].values())
    missing = sum(entry["claims"] for entry in found["missing"])
    assert total - missing == sum(entry["accepted"] for entry in found["shares"].values()) > 20
    assert all(one["judging"] > 0 and one["bytes"] > one["kernel_bytes"] > 0 for one in by_name.values())
    text = capsys.readouterr().out
    assert "| whole steps | 1 of 3 |" in text and "| steps that are read | 2 of 3 |" in text
    assert "max stands for load" in text


def test_a_sample_is_gone_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the log has is not measured again, and a sample is the same one each time."""
    folder, log = tmp_path / "in", tmp_path / "log"
    folder.mkdir()
    for number in range(4):
        (folder / f"copy_{number}.py").write_text(_REWRITE)
    command = [str(folder), "--quick", "--sample", "2", "--log", str(log)]
    assert main(command) == 0
    first, lines = capsys.readouterr().out, log.read_text().splitlines()
    assert len(lines) == 2 and "| whole steps | 2 of 2 |" in first
    log.write_text(lines[0].replace('"is_read": true', '"is_read": false') + "\n")
    assert main(command) == 0
    assert "| steps that are read | 1 of 2 |" in capsys.readouterr().out
    again = [json.loads(line) for line in (lines[1], log.read_text().splitlines()[1])]
    assert again[0]["subject"] == again[1]["subject"] and again[0]["steps"] == again[1]["steps"]


def test_steps_are_saved_as_rewrites(tmp_path: Path) -> None:
    """What was saved is read again, and found without the search for a witness."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "accepted.py").write_text(_REWRITE)
    assert main([str(tmp_path / "in"), "--save", str(tmp_path / "out")]) == 0
    (subject,) = subjects_at(tmp_path / "out" / "in")
    assert (subject.kind, len(subject.records())) == ("rewrite", 1)


def test_a_path_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named."""
    with pytest.raises(SystemExit):
        main([str(tmp_path / "nothing")])
    assert "nothing does not exist" in capsys.readouterr().err


def test_corpora_are_found() -> None:
    """All kinds of subjects are there, and every kind of claim of the checker has a place in the table."""
    assert {subject.corpus for subject in own_subjects()} >= {"accepted", "examples", "schedules", "pairs", "compared"}
    assert set(ClaimKind) - set(GROUPS) == {ClaimKind.OTHER}


def test_reasons_of_one_kind_are_one() -> None:
    """Names and numbers of a program do not tell reasons apart."""
    reasons = (
        "no origin of the load of A is given; line 7 is no copy",
        "no origin of the load of B_1 is given; line 12 is no copy",
    )
    assert len(set(map(reason_without_names, reasons))) == 1
