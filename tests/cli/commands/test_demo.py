"""`layoutproof demo`: the whole story, with its files."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cli.calling import Caller, files_below
from tests.shares import one_in

from layoutproof.ir.script.reader import load


@one_in(6)
def test_demo(call: Caller, tmp_path: Path) -> None:
    """The demo proves, refutes the map that must not pass, compares bit for bit, and saves programs that read back and
    pictures.
    """
    outcome = call("demo", "-o", str(tmp_path / "demo"))
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
