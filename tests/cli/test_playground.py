"""The playground's module as a browser runs it: without solvers, processes and the packages of the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from docs.playground_files import ADDRESS, write_playground
from tests.shares import one_in

PURE = ("bitwuzla", "click", "cvc5", "islpy", "jinja2", "matplotlib", "ml_dtypes", "platformdirs", "rich", "z3")
SCRIPT = """
import json, subprocess, sys

ABSENT = set(sys.argv[2].split(","))

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def no_process(*arguments, **named):
    raise OSError("no processes here")

sys.meta_path.insert(0, Absent())
subprocess.Popen = no_process
sys.path.insert(0, sys.argv[1])
import layoutproof
assert layoutproof.__file__.startswith(sys.argv[1])
from layoutproof.cli.playground import answer
for line in sys.stdin:
    print(answer(line))
"""
QUESTIONS: list[tuple[dict[str, str], str, str, str]] = [
    ({"map": "NHWC->NCHW4c", "shape": "1, 2, 3, 6"}, "proved", "proved", "p1 == 1 and p4 >= 2"),
    ({"map": "lambda i, j: [i, j ^ (i % 8)]", "shape": "8, 8"}, "proved", "proved", "lambda p0, p1: [p0, p0 ^ p1]"),
    ({"map": "lambda i: [i//4, i%4]", "shape": "n", "where": "n >= 1"}, "proved", "proved", "4*p0 + p1 >= n"),
    ({"map": "lambda i, j: [i, j//2]", "shape": "4, 6"}, "refuted", "refuted", "[0, 0] and [0, 1] both go to [0, 0]"),
    ({"map": "lambda i, j: [i*3 + j*5]", "shape": "3, 5"}, "proved", "proved", "proved"),
    ({"map": "lambda i, j: [i*3 + j*5]", "shape": "6, 5"}, "refuted", "refuted", "both go to"),
    ({"map": "lambda i, j: [i*i + j]", "shape": "n, m"}, "needs", "needs", "this question needs"),
    ({"map": "lambda i: [i, k]", "shape": "4"}, "error", "error", "is not defined here"),
    ({"map": "lambda i: [i]"}, "error", "error", "shape"),
    ({"map": "lambda i: [8 // i]", "shape": "4"}, "error", "error", ""),
    (
        {"map": "NHWC->NCHW4c", "shape": "2, 8, 8, 16", "other": "lambda n, h, w, c: [n, c//4, h, w, c%4]"},
        "proved",
        "proved",
        "proved",
    ),
    ({"map": "lambda i, j: [i, j]", "shape": "4, 4", "other": "lambda i, j: [j, i]"}, "refuted", "refuted", "index"),
    ({"map": "lambda i: [i*3 % 7]", "shape": "7", "other": "lambda i: [i]"}, "refuted", "refuted", "3"),
    ({"map": "lambda i: [i]", "other": "lambda i: [i]"}, "error", "error", "shape"),
]
"""Each with its status without numpy and with it, and a text of the answer."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The playground's files, the archive unpacked."""
    made = tmp_path_factory.mktemp("playground")
    write_playground(made)
    with zipfile.ZipFile(made / "layoutproof.zip") as archive:
        archive.extractall(made / "unpacked")
    return made


@one_in(4)
@pytest.mark.parametrize("numpy", [False, True], ids=["without numpy", "with numpy"])
def test_answers(folder: Path, numpy: bool) -> None:
    """Maps are decided, drawn and compared from the archive alone; what needs more says so; no question ends it."""
    absent = ",".join(PURE if numpy else (*PURE, "numpy"))
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, str(folder / "unpacked"), absent],
        input="".join(json.dumps(question) + "\n" for question, *_ in QUESTIONS),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    for answer, (question, without, along, text) in zip(answers, QUESTIONS, strict=True):
        assert answer["status"] == (along if numpy else without), (question, answer)
        assert any(text in told for _, told in answer["rows"]), (question, answer)
        drawn = answer["picture"] or ""
        if answer["status"] == "proved" and question.get("shape", "n").replace(", ", "").isdecimal() and numpy:
            assert drawn.startswith("<svg") or "other" in question or "j*5" in question["map"], question
        assert answer["command"].startswith("layoutproof ")


def test_what_needs_isl_is_named(folder: Path) -> None:
    """With numpy there, what is left names the solver that it needs."""
    question = {"map": "lambda i, j: [i*8 + j]", "shape": "n, m", "where": "m <= 8"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, str(folder / "unpacked"), ",".join(PURE)],
        input=json.dumps(question) + "\n",
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    answer = json.loads(done.stdout)
    assert answer["status"] == "needs" and "needs isl" in answer["rows"][0][1], answer
    assert answer["command"] == "layoutproof map 'lambda i, j: [i*8 + j]' --shape 'n, m' --where 'm <= 8'"


def test_pyodide_is_loaded_from_its_address(folder: Path) -> None:
    """By default Pyodide comes from its own address, of the version that the tests use; the archive is reproducible."""
    assert ADDRESS in (folder / "worker.mjs").read_text(encoding="utf-8")
    first = (folder / "layoutproof.zip").read_bytes()
    write_playground(folder)
    assert (folder / "layoutproof.zip").read_bytes() == first
