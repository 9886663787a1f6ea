"""The examples run as they stand, and say what they are meant to say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

SAID = {
    "conv2d_nchw4c.py": [
        "injective: proved",
        "physical shape: [1, 18, 56, 56, 4]",
        "padding where: p1 == 17 and p4 >= 2",
        "'image': [0, 0, 0, 0]",
        "proved: transform_layout of W",
        "proved: transform_layout of conv2d",
        "refused: `lambda n, h, w, c: [n, h, w, c//4]` is not injective",
        "W: logical (3, 3, 70, 70), physical (18, 18, 3, 3, 4, 4)",
        "output: (1, 56, 56, 70) of float32",
        "raw and logical calls agree; the padding is zero",
    ],
}


def test_every_example_is_run() -> None:
    """No example is left out."""
    assert set(SAID) == {path.name for path in EXAMPLES.glob("*.py")}


@pytest.mark.parametrize("name", SAID)
def test_example(name: str, tmp_path: Path) -> None:
    """An example runs from any folder, ends well, and prints what it promises, in order."""
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    position = 0
    for part in SAID[name]:
        position = done.stdout.index(part, position) + len(part)
    assert list(tmp_path.iterdir()) == []
