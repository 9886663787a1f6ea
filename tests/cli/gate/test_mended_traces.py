"""`check --fix`: schedules are mended where all of their steps are proved then, and other files stay as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.calling import Caller
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.cli.gate.check_items import Options, find_items
from layoutproof.cli.gate.mended_traces import mend_files

ROW_SUM = str(ROOT / "examples" / "programs" / "row_sum.py")
LAYOUT = {"block": "sum", "buffer": "A", "index_map": "lambda i, j: [i, j//4, j%4]"}
OVER = ["remove_branching_through_overcompute", {"block": "sum"}]
SPLIT = ["split", {"block": "sum", "loop": "j", "factors": [None, 4]}]


def line(*steps: object) -> str:
    """A schedule on one line."""
    return json.dumps(steps)


@one_in(7)
def test_a_schedule_is_mended(call: Caller, tmp_path: Path) -> None:
    """The file has the mended schedule, the diff and each hint are shown, and it is proved; a second run changes
    nothing.
    """
    trace = tmp_path / "trace.json"
    trace.write_text(line(["transform_layout", LAYOUT], ["splt", SPLIT[1]], OVER))
    outcome = call("check", ROW_SUM, "--trace", str(trace), "--fix")
    assert (outcome.code, outcome.err) == (0, "")
    mended = [["transform_layout", {**LAYOUT, "pad_value": 0.0}], SPLIT, OVER]
    assert json.loads(trace.read_text()) == mended
    assert "splt is called split" in outcome.out and "the padding of A holds 0.0" in outcome.out
    assert f"+++ {trace} (mended)" in outcome.out
    assert outcome.out.index("+++") < outcome.out.index("row_sum: proved")
    before = trace.read_bytes()
    again = call("check", ROW_SUM, "--trace", str(trace), "--fix")
    assert again.code == 0 and "mended" not in again.out and trace.read_bytes() == before


@one_in(7)
def test_one_line_of_a_file_is_mended(call: Caller, tmp_path: Path) -> None:
    """In a file of schedules only those lines change of which every step is proved then."""
    good = '[["split",  {"block": "sum", "loop": "i", "factors": [4, 4]}]]'
    lost = line(["split", {"block": "sum", "loop": "nothing", "factors": [4, 4]}])
    trace = tmp_path / "traces.jsonl"
    trace.write_text("\n".join([good, line(["splt", SPLIT[1]]), lost, "", "no json"]))
    outcome = call("check", ROW_SUM, "--trace", str(trace), "--fix")
    assert outcome.code == 2 and "traces.jsonl:3: not mended: no hint leads to a proof of step 1" in outcome.out
    assert trace.read_text() == "\n".join([good, line(SPLIT), lost, "", "no json"])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (line(["split", {"block": "sum", "loop": "nothing", "factors": [4, 4]}]), 2),
        # The first step can be mended, the second cannot.
        (line(["splt", SPLIT[1]], ["transform_layout", {**LAYOUT, "index_map": "lambda i, j: [i, j//4]"}]), 2),
        (line(["parallel", {"block": "sum", "loop": "j"}]), 1),
        ("{", 2),
        ("{}", 2),
        ("[]", 3),
    ],
)
def test_what_is_not_proved_is_not_written(call: Caller, tmp_path: Path, text: str, code: int) -> None:
    """A schedule in which something is left stays byte for byte, and ends as it does without the option."""
    trace = tmp_path / "trace.json"
    trace.write_text(text)
    assert call("check", ROW_SUM, "--trace", str(trace), "--fix").code == code
    assert trace.read_text() == text
    assert call("check", ROW_SUM, "--trace", str(trace)).code == code


def test_data_on_standard_output_stays_data(call: Caller, tmp_path: Path) -> None:
    """With JSON the difference is on standard error."""
    trace = tmp_path / "trace.json"
    trace.write_text(line(["splt", SPLIT[1]]))
    outcome = call("check", ROW_SUM, "--trace", str(trace), "--fix", "--format", "json")
    assert outcome.code == 0 and outcome.json()["verdict"] == "proved" and "(mended)" in outcome.err


def test_preconditions_are_listed(call: Caller, tmp_path: Path) -> None:
    """What callers fill into the padding of inputs is said in text and as data; undef asks nothing of them."""
    trace = tmp_path / "trace.json"
    trace.write_text(line(["transform_layout", {**LAYOUT, "pad_value": 0.0}], SPLIT, OVER))
    said = "padding of A holds T.float32(0.0)"
    assert f"  precondition: {said}\n" in call("check", ROW_SUM, "--trace", str(trace)).out
    assert call("check", ROW_SUM, "--trace", str(trace), "--format", "json").json()["preconditions"] == [said]
    trace.write_text(line(["transform_layout", {**LAYOUT, "pad_value": "T.undef()"}]))
    assert call("check", ROW_SUM, "--trace", str(trace), "--format", "json").json()["preconditions"] == []


def test_what_the_function_pads_itself_is_no_duty(call: Caller, tmp_path: Path) -> None:
    """The padding of a result is written by the function, also where it reads the result to update it."""
    trace = tmp_path / "trace.json"
    result = {"block": "sum", "buffer": "B", "index_map": "lambda i: [i//3, i%3]", "pad_value": 7.0}
    trace.write_text(line(["transform_layout", result]))
    outcome = call("check", ROW_SUM, "--trace", str(trace), "--format", "json")
    assert outcome.code == 0 and outcome.json()["preconditions"] == []


@pytest.mark.parametrize("name", ["trace.json", "trace.jsonl"])
def test_a_file_that_is_changed_meanwhile_stays(tmp_path: Path, name: str) -> None:
    """What somebody wrote while schedules were mended is not written over; ends of lines stay those of the file."""
    trace = tmp_path / name
    trace.write_bytes(line(["splt", SPLIT[1]]).encode() + b"\r\n\r\n" * name.endswith("l"))
    (item,) = find_items([Path(ROW_SUM)], [trace])
    options = Options((), cache=None)
    trace.write_text("[]")
    assert "the file was changed meanwhile" in list(mend_files([item], options))[-1]
    assert trace.read_text() == "[]"
    trace.write_bytes(item.text.encode() + b"\r\n\r\n" * name.endswith("l"))
    assert "+++" in "".join(mend_files([item], options))
    assert trace.read_bytes().endswith(b"}]]\r\n\r\n" if name.endswith("l") else b"]\n")
