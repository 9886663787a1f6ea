"""What is nearly the same is not taken for the same: schedules by the cache, findings by a baseline, items by a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.calling import Caller
from tests.cli.render.gate.made import summary_of
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.cli.gate.outcomes import Fate, Finding, Kind, Outcome

PROGRAM = (ROOT / "examples" / "programs" / "row_sum.py").read_text(encoding="utf-8")
BLOCKED: dict[str, Any] = {"block": "sum", "buffer": "A", "index_map": "lambda i, j: [i, j//4, j%4]", "pad_value": 0.0}
LAYOUT = json.dumps([["transform_layout", BLOCKED]])
REWRITE = """# theta: 0 -> 0

@T.prim_func
def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i]

@T.prim_func
def after(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i] + T.float32(1)
"""
BARE = """import layoutproof as lp

@lp.gate
def folded():
    return lp.check_map("lambda i: [i//2]", (8,)).injective
"""
STEPLESS = """import layoutproof as lp

@lp.gate
def untouched():
    return lp.Schedule(lp.load("row_sum.py"))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program, which is the working directory; and a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYOUTPROOF_PROOF_CACHE", str(tmp_path / "cache" / "proofs.sqlite"))
    Path("row_sum.py").write_text(PROGRAM)
    return tmp_path


@one_in(4)
@pytest.mark.parametrize("blank", ["\u00a0", "\u2028", "\u3000", "\x0c", "\x1f", "\x85"])
@pytest.mark.parametrize("form", ["before", "behind"])
def test_blanks_that_json_does_not_know(call: Caller, blank: str, form: str) -> None:
    """A schedule with such a blank around it is not JSON, also where the one without it is known to the cache."""
    Path("right.json").write_text(f" \t{LAYOUT}\r\n", encoding="utf-8")
    Path("wrong.json").write_text(blank + LAYOUT if form == "before" else LAYOUT + blank, encoding="utf-8")
    assert call("check", "row_sum.py", "--trace", "right.json").code == 0
    assert call("check", "row_sum.py", "--trace", "wrong.json").code == 2


def baselined(call: Caller, *paths: str) -> None:
    """Write down what these have now as known."""
    assert call("check", *paths, "--write-baseline", "known.json").code in (1, 3)
    assert call("check", *paths, "--baseline", "known.json").code == 0


def test_another_program_after_is_another_rewrite(call: Caller) -> None:
    """A rewrite that is known to be wrong says nothing of what else could be written in its place."""
    Path("r.py").write_text(REWRITE)
    baselined(call, "r.py")
    Path("r.py").write_text(f"{REWRITE}\n# moved by a comment\n")
    assert call("check", "r.py", "--baseline", "known.json").code == 0
    Path("r.py").write_text(REWRITE.replace("T.float32(1)", "T.float32(2)"))
    assert call("check", "r.py", "--baseline", "known.json").code == 1


def test_bare_verdicts_of_two_files(call: Caller) -> None:
    """A bare verdict does not say of what it is, so one in another file, or with another counterexample, is another
    one.
    """
    Path("one.py").write_text(BARE)
    Path("two.py").write_text(BARE)
    baselined(call, "one.py")
    assert call("check", str(Path("one.py").absolute()), "--baseline", "known.json").code == 0
    assert call("check", "two.py", "--baseline", "known.json").code == 1
    Path("one.py").write_text(BARE.replace("i//2", "i%3"))
    assert call("check", "one.py", "--baseline", "known.json").code == 1


def test_programs_without_a_step(call: Caller) -> None:
    """A schedule that is known to have no step says nothing of another program whose function is called the same."""
    Path("row_sum.json").write_text("[]")
    baselined(call, "row_sum.py")
    Path("other.py").write_text(PROGRAM.replace("B[vi] + A[vi, vj]", "B[vi] * A[vi, vj]"))
    Path("other.json").write_text("[]")
    assert call("check", "other.py", "--baseline", "known.json").code == 3


def test_gates_without_a_step(call: Caller) -> None:
    """The same of gates of one name."""
    Path("gates.py").write_text(STEPLESS)
    baselined(call, "gates.py")
    Path("row_sum.py").write_text(PROGRAM.replace("B[vi] + A[vi, vj]", "B[vi] * A[vi, vj]"))
    assert call("check", "gates.py", "--baseline", "known.json").code == 3


@one_in(9)
def test_the_same_fault_in_two_files(call: Caller) -> None:
    """A message that names a file and a column names those of the program that was checked, not of one like it that was
    before.
    """
    symbolic = (ROOT / "tests" / "data" / "operators" / "sym_row_sum.py").read_text(encoding="utf-8")
    Path("race.json").write_text('[["parallel", {"block": "A_red", "loop": "k1"}]]')
    wide = symbolic.replace("A_red[v_ax0] = A_red[v_ax0] + A", "A_red[v_ax0]  =  A_red[v_ax0] + A")
    for name, text in (("one.py", symbolic), ("two.py", symbolic), ("wide.py", wide)):
        Path(name).write_text(text)
        # With so little work it is the run of the program that finds it.
        asked = ["check", name, "--trace", "race.json", "--budget", "0.001", "--format", "json", "--stable"]
        anew = call(*asked, "--no-cache")
        assert f"{name}:16:{28 + 2 * (name == 'wide.py')}" in anew.out and anew.code == 1
        assert call(*asked).out == anew.out


VERDICTS = ("proved", "refuted", "unknown", "vacuous", None)


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("status", VERDICTS[1:])
def test_a_verdict_is_spared_by_findings_of_its_own_kind(verdict: str | None, status: str | None) -> None:
    """That something else is allowed, ignored or known does not make an item pass; one that was not checked never
    does.
    """
    severity = "warning" if status is None else "error"
    spared = Finding("LP221", "spared", status, severity, fate=Fate.IGNORED)
    outcome = Outcome(Kind.TRACE, "t", "p", None, verdict, findings=(spared,))
    passes = verdict == "proved" or (verdict is not None and verdict == status)
    assert outcome.passes is passes
    code = {"refuted": 1, None: 2, "unknown": 3, "vacuous": 3}[verdict] if not passes and verdict != "proved" else 0
    assert summary_of([outcome]).exit_code == code
