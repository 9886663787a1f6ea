"""The caller in plain C: generated, compiled with all warnings as errors, run, also under the sanitizers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.shares import one_in
from tests.tree import ROOT

FOLDER = ROOT / "examples" / "c_caller"
SANITIZED = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"


def make(build: Path, *settings: str) -> "subprocess.CompletedProcess[str]":
    """`make run` with what it makes in a folder of its own."""
    command = [
        "make",
        "-C",
        str(FOLDER),
        f"BUILD={build}",
        f"LAYOUTPROOF={sys.executable} -m layoutproof",
        *settings,
        "run",
    ]
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "CFLAGS", "CC")}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200, env=environment)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the example was made in."""
    folder = tmp_path_factory.mktemp("caller")
    done = make(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\nrow ") == 16
    return folder


@one_in(9)
def test_it_leaves_its_folder_alone(built: Path) -> None:
    """What is made stands in the folder that was named for it."""
    assert sorted(path.name for path in FOLDER.iterdir()) == ["Makefile", "main.c"]
    assert {"row_sum.c", "row_sum.h", "caller"} <= {path.name for path in built.iterdir()}


def test_a_second_make_has_nothing_to_do(built: Path) -> None:
    """The kernel is generated once: nothing is older than what it is made of."""
    done = make(built)
    assert done.returncode == 0 and "layoutproof build" not in done.stdout and "-c -o" not in done.stdout


@pytest.mark.parametrize("m", [0, 1, 3, 4, 14, 1001])
def test_sums_are_right(m: int, built: Path) -> None:
    """For whole tiles, part of one, and none, the program finds its own sums again, and what must be refused is."""
    done = subprocess.run([str(built / "caller"), str(m)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 18 - (m == 0) and lines[-1] == "an extent below zero: 3"
    assert m == 0 or lines[-2] == "an output inside the input: 2"


@one_in(9)
def test_it_is_clean(tmp_path: Path) -> None:
    """Under the address and undefined-behaviour sanitizers, memory released at the end included."""
    done = make(tmp_path, f"CFLAGS={SANITIZED}", "M=7")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr


def test_a_wrong_sum_is_noticed(built: Path, tmp_path: Path) -> None:
    """The program compares: with a kernel that leaves out the last row it ends with 1."""
    text = (built / "row_sum.c").read_text(encoding="utf-8").replace("i_0 < 4", "i_0 < 3")
    (tmp_path / "row_sum.c").write_text(text, encoding="utf-8")
    command = [
        "cc",
        "-std=c11",
        f"-I{built}",
        "-o",
        str(tmp_path / "caller"),
        str(FOLDER / "main.c"),
        str(tmp_path / "row_sum.c"),
        "-lm",
    ]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    done = subprocess.run(
        [str(tmp_path / "caller")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MALLOC_PERTURB_": "9"},
    )
    assert done.returncode == 1 and "row 12 should be" in done.stderr
