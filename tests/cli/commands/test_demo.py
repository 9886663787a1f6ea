"""`layoutproof demo`: thirty lines that convince, and the whole story, each with its files."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from tests.cli.calling import Caller, files_below
from tests.shares import one_in

from layoutproof.ir.script.reader import load


@one_in(4)
def test_short_demo(call: Caller, tmp_path: Path) -> None:
    """The demo fits a terminal, proves every step, refutes a wrong pad value with the padding that was read, times two
    kernels, and saves files that the commands it names take.
    """
    outcome = call("demo", "-o", str(tmp_path / "demo"))
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert len(lines) <= 30
    assert max(len(line) for line in outcome.out.partition("Saved")[0].splitlines()) <= 100
    assert [line.split()[0] for line in lines if line.startswith(("proved", "refuted"))] == [*["proved"] * 4, "refuted"]
    assert "         - T.where(j_0 * 4 + j_1 < m)" in lines
    refuted = outcome.out.partition("refuted")[2]
    rows, columns = (int(re.search(rf"{name} = (\d+)", refuted)[1]) for name in "nm")  # type: ignore[index]  # it is there
    padding = re.findall(r"A\[0, (\d+), (\d+)\] = 1\b", refuted)
    assert rows == 1 and {4 * int(block) + int(lane) for block, lane in padding} == set(range(columns, 4))
    expected, got = (int(number) for number in re.search(r"expected (\d+), got (\d+)", refuted).groups())  # type: ignore[union-attr]  # it is there
    assert got - expected == len(padding)
    assert len(re.findall(r" ms  #+", outcome.out)) == 2 and "differs" not in outcome.out
    assert set(files_below(tmp_path / "demo")) == {"row_sum.py", "row_sum.json", "row_sum.c", "layout.svg"}
    named = [shlex.split(line) for line in lines if " check " in line]
    assert [call(*words[1:]).code for words in named] == [0]


@one_in(14)
def test_long_demo(call: Caller, tmp_path: Path) -> None:
    """The demo proves, refutes the map that must not pass, compares bit for bit, and saves programs that read back and
    pictures.
    """
    outcome = call("demo", "--long", "-o", str(tmp_path / "demo"))
    assert (outcome.code, outcome.err) == (0, "")
    assert "\x1b" not in outcome.out
    files = files_below(tmp_path / "demo")
    assert set(files) == {"before.py", "trace.json", "after.py", "lowered.py", "conv2d.c", "nchw4c.svg", "nchw4c.png"}
    for name in files:
        assert re.search(rf"^  {re.escape(name)} +\w", outcome.out, re.MULTILINE), f"{name} is not listed"
    for part in (
        "1. A program",
        "2. What is true",
        "3. Apply them",
        "4. The program after",
        "5. Lowered",
        "6. Compile",
        "7. Saved",
    ):
        assert part in outcome.out
    assert len(re.findall("^injective +proved", outcome.out, re.MULTILINE)) == 2
    assert len(re.findall("^injective +refuted", outcome.out, re.MULTILINE)) == 1
    assert len(re.findall(r"^  proved +transform_layout\(", outcome.out, re.MULTILINE)) == 4
    assert "equal    conv2d_nhwc: " in outcome.out and "6,272 padding cells satisfy their contract" in outcome.out
    assert max(len(line) for line in outcome.out.splitlines()) < 300
    assert '"layoutproof.layout": ...' in outcome.out
    after = load(tmp_path / "demo" / "after.py")
    assert [e.value for e in after.buffers[0].shape if hasattr(e, "value")] == [1, 18, 56, 56, 4]
    replayed = call(
        "run",
        str(tmp_path / "demo" / "before.py"),
        "--trace",
        str(tmp_path / "demo" / "trace.json"),
        "--format",
        "json",
    )
    assert replayed.code == 0
    assert [[s["primitive"], s["arguments"]] for s in replayed.json()["steps"]] == json.loads(files["trace.json"])
