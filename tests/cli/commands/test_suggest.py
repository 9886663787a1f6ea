"""`layoutproof suggest`: the report as text and JSON, the trace that it writes, its exit codes, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.calling import Caller, steady
from tests.conftest import Golden
from tests.shares import one_in
from tests.tree import ROOT

ROW_SUM = str(ROOT / "examples" / "programs" / "row_sum.py")
ROWS = "lambda i, j: [i, j//4, j%4]"
PLUS_ONE = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((2, 6), "int32"), B: T.Buffer((2,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(2, 6):
        with T.sblock("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + (A[vi, vj] * A[vi, vj] % 2 + 1)
"""


def test_a_schedule_is_suggested_and_checked(call: Caller, tmp_path: Path, golden: Golden) -> None:
    """The text names layouts, steps, and what callers see to; `check` accepts the trace that was written."""
    trace = tmp_path / "trace.json"
    outcome = call("suggest", ROW_SUM, "--block", "sum", "--layout", ROWS, "--save", str(trace))
    assert (outcome.code, outcome.err) == (0, "")
    golden("suggest/row_sum.txt", steady(outcome.out.replace(f"{ROOT}/", ""), tmp_path))
    checked = call("check", ROW_SUM, "--trace", str(trace), "--no-cache")
    assert checked.code == 0 and checked.out.splitlines()[0].endswith("row_sum: proved")
    more = call("suggest", ROW_SUM, "--trace", str(trace), "--block", "sum", "--layout", "B=lambda i: [i//8, i%8]")
    assert more.code == 2 and "a layout for the block is missing" in more.err


def test_json(call: Caller, tmp_path: Path) -> None:
    """The same as data, to a file where one is named."""
    arguments = ["suggest", ROW_SUM, "--block", "sum", "--layout", ROWS, "--format", "json"]
    path = tmp_path / "suggestion.json"
    assert call(*arguments, "-o", str(path)).code == 0
    found = json.loads(path.read_text())
    assert found["verdict"] == "proved" and found["left_out"] == []
    assert found["layouts"] == {"A": {"index_map": ROWS, "pad_value": 0.0}}
    assert [step["primitive"] for step in found["steps"]] == [name for name, _ in found["trace"]]
    assert all(each["status"] == "proved" for step in found["steps"] for each in step["obligations"])
    assert found["preconditions"] == ["padding of A holds T.float32(0.0)"]


@one_in(4)
def test_what_stops_it(call: Caller, tmp_path: Path, golden: Golden) -> None:
    """A branch that has to stay: exit code 1, the obligation with its counterexample, and what would lift it."""
    program = tmp_path / "program.py"
    program.write_text(PLUS_ONE)
    outcome = call("suggest", str(program), "--block", "sum", "--layout", "lambda i, j: [i, j//4, j%4]")
    assert (outcome.code, outcome.err) == (1, "")
    golden("suggest/plus_one.txt", steady(outcome.out, tmp_path))
    data = call(
        *("suggest", str(program), "--block", "sum", "--layout", "lambda i, j: [i, j//4, j%4]", "--format", "json")
    )
    (left,) = data.json()["left_out"]
    assert data.code == 1 and left["status"] == "refuted" and left["code"] == "LP373" and left["help"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--block", "sums", "--layout", ROWS), 2, "did you mean 'sum'?"),
        (("--block", "sum", "--layout", "NHWC8c"), 2, "fits no buffer of block sum"),
        (("--block", "sum", "--layout", "lambda i, j: [i, j//4]"), 1, "is not injective"),
        (("--block", "sum", "--layout", ROWS, "--layout", ROWS), 2, "one layout is for the block"),
        (("--block", "sum", "--layout", ROWS, "--layout", "C=NC4c"), 2, "has no buffer called 'C'"),
        (("--block", "sum", "--layout", ROWS, "--layout", "B=NC4c"), 2, "takes 2 indices, B has 1 axis"),
        (("--block", "sum", "--layout", ROWS, "--layout", "A=NC", "--layout", "A=NC"), 2, "A is given two layouts"),
        (("--block", "sum", "--layout", ROWS, "--save", "/nowhere/t.json"), 2, "LP502"),
    ],
)
def test_bad_requests(call: Caller, arguments: tuple[str, ...], code: int, said: str) -> None:
    """What is wrong is said; a layout that is refuted is no wrong input."""
    outcome = call("suggest", ROW_SUM, *arguments)
    assert (outcome.code, outcome.out) == (code, "") and said in outcome.err
