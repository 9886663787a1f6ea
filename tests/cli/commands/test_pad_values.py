"""`layoutproof pad-values`: the report as text and JSON, its exit codes, and what becomes of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.calling import OPERATORS, Caller, steady
from tests.conftest import Golden
from tests.shares import one_in

ROW_SUM = str(OPERATORS / "row_sum.py")
ROWS = "lambda i, j: [i, j//4, j%4]"
LAYOUT = {"block": "A_red", "buffer": "A", "index_map": ROWS, "pad_value": None}
RELAID = [
    ["transform_layout", LAYOUT],
    ["sequential_buffer_access", {"block": "A_red", "buffer": "A"}],
]
SHIFTED = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        with T.sblock("A_red"):
            vi = T.axis.reduce(14, i)
            with T.init():
                B[0] = 0
            B[0] = B[0] + (A[vi] * A[vi] % 2 + 1)
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A schedule that stores the rows in fours and follows them."""
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(RELAID))
    return path


@one_in(9)
def test_text(call: Caller, trace: Path, golden: Golden) -> None:
    """A table: each candidate with each guard, and the best."""
    outcome = call("pad-values", ROW_SUM, "--trace", str(trace), "--block", "A_red", "--buffer", "A")
    assert (outcome.code, outcome.err) == (0, "")
    golden("padding/cli_row_sum.txt", steady(outcome.out))


@one_in(10)
def test_json(call: Caller, trace: Path, tmp_path: Path) -> None:
    """The same as data, to a file where one is named."""
    arguments = ["pad-values", ROW_SUM, "--trace", str(trace), "--block", "A_red", "--buffer", "A", "--format", "json"]
    outcome = call(*arguments)
    found = outcome.json()
    assert outcome.code == 0 and found["block"] == "A_red" and found["buffer"] == "A"
    assert [row["pad_value"] for row in found["candidates"]][:2] == [None, "T.undef()"]
    path = tmp_path / "report.json"
    assert call(*arguments, "-o", str(path)).code == 0
    assert json.loads(path.read_text()) == found


@one_in(9)
def test_no_value_helps(call: Caller, tmp_path: Path) -> None:
    """Where every element adds at least one, no candidate removes the guard, and the exit code says so."""
    program, trace = tmp_path / "shifted.py", tmp_path / "trace.json"
    program.write_text(SHIFTED)
    trace.write_text(json.dumps([["transform_layout", {**LAYOUT, "index_map": "lambda i: [i//4, i%4]"}], RELAID[1]]))
    outcome = call("pad-values", str(program), "--trace", str(trace), "--block", "A_red", "--buffer", "A")
    assert outcome.code in (1, 3)
    assert outcome.out.endswith("no candidate removes a guard\n")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--block", "A_red", "--buffer", "C"], "no step of the schedule changes the layout of C"),
        (["--block", "red", "--buffer", "A"], "has no block called 'red'"),
        (["--block", "A_red"], "Missing option '--buffer'"),
        (["--block", "A_red", "--buffer", "A", "--function", "other"], "has no function other"),
    ],
)
def test_bad_input(call: Caller, trace: Path, arguments: list[str], words: str) -> None:
    """Whatever does not exist is named, with exit code 2."""
    outcome = call("pad-values", ROW_SUM, "--trace", str(trace), *arguments)
    assert outcome.code == 2 and words in outcome.err and outcome.out == ""
