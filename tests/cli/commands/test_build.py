"""`layoutproof build`: C for other programs, written whole or not at all, and only when everything was proved and
compared.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from tests.cli.calling import OPERATORS, Caller, files_below, steady
from tests.cli.commands.test_run import LOSSY, NOTHING, OUT_OF_BOUNDS, PADDED, built_line
from tests.cli.schema import BUILD
from tests.conftest import Golden
from tests.shares import one_in

from layoutproof.cli import codes

ROW_SUM = str(OPERATORS / "row_sum.py")
WARNINGS = (
    "-std=c11",
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wpedantic",
    "-Wconversion",
    "-Wno-sign-conversion",
    "-Wmissing-prototypes",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.fixture
def padded(tmp_path: Path) -> str:
    """A trace that re-lays the rows with padding of 0."""
    (tmp_path / "trace.json").write_text(json.dumps(PADDED))
    return str(tmp_path / "trace.json")


def compile_c(folder: Path, *arguments: str) -> None:
    """Run the C compiler with all warnings as errors; fail with its message."""
    done = subprocess.run(["cc", *WARNINGS, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_text(call: Caller, golden: Golden, folder: Path, padded: str) -> None:
    """What was proved, how the kernel was compared, what was written, how it is called and compiled; and the files,
    word for word.
    """
    outcome = call("build", ROW_SUM, "--trace", padded, "-o", "kernel.c", "kernel.h")
    assert (outcome.code, outcome.err) == (0, "")
    golden("cli_build/padded.txt", built_line(steady(outcome.out, OPERATORS)))
    files = files_below(folder)
    assert set(files) == {"kernel.c", "kernel.h"}
    for name, content in files.items():
        golden(f"cli_build/{name}", content.decode())
    compile_c(folder, "-c", "kernel.c")


def test_json(call: Caller, folder: Path, padded: str) -> None:
    """The JSON follows its schema: every obligation, the files, and what a caller has to know."""
    outcome = call("build", ROW_SUM, "--trace", padded, "-o", "kernel.h", "kernel.c", "--format", "json")
    found = outcome.json()
    jsonschema.validate(found, BUILD)
    assert (outcome.code, found["verdict"], found["files"]) == (0, "proved", ["kernel.c", "kernel.h"])
    assert found["build"]["self_check"] == "equal to the interpreter, bit for bit"
    interface = found["interface"]
    assert interface["entry"] == "main_kernel" and [p["c_type"] for p in interface["parameters"]] == [
        "const float *",
        "float *",
    ]
    (step,) = interface["parameters"][1]["layout"]
    assert step == {"index_map": "lambda i: [i//3, i%3]", "padding": "T.float32(7.0)"}
    assert "-ffp-contract=off" in interface["flags"] and interface["assumptions"]
    assert set(files_below(folder)) == {"kernel.c", "kernel.h"}


def test_a_program_that_has_seen_the_header_alone(call: Caller, folder: Path) -> None:
    """C that calls the kernel by its header links against it and finds sums of its own."""
    assert call("build", ROW_SUM, "-o", "row_sum.c", "row_sum.h").code == 0
    (folder / "main.c").write_text(
        '#include "row_sum.h"\n#include "row_sum.h"\n'
        "int main(void) {\n    float a[16 * 14], b[16];\n    for (int i = 0; i < 16 * 14; ++i) a[i] = (float)(i % 5);\n"
        "    if (main_kernel(a, b) != 0) return 1;\n    float sum = 0;\n"
        "    for (int j = 0; j < 14; ++j) sum += a[3 * 14 + j];\n"
        "    return b[3] == sum ? 0 : 2;\n}\n"
    )
    compile_c(folder, "main.c", "row_sum.c", "-o", "program", "-lm")
    assert subprocess.run([str(folder / "program")], check=False).returncode == 0


def test_files_in_different_folders(call: Caller, folder: Path) -> None:
    """The source finds its header from where it stands."""
    (folder / "src").mkdir()
    (folder / "include").mkdir()
    assert call("build", ROW_SUM, "-o", "src/k.c", "include/k.h").code == 0
    assert (folder / "src/k.c").read_text().startswith('#include "../include/k.h"\n')
    compile_c(folder, "-c", "src/k.c")


@pytest.mark.parametrize(
    "outputs",
    [("a.c", "b.c"), ("a.h", "b.h"), ("a.cl", "b.json"), ("a", "b"), ("a.C", "a.h"), ("a.c", "a.c")],
    ids=" ".join,
)
def test_other_endings(call: Caller, folder: Path, outputs: tuple[str, str]) -> None:
    """Files whose endings do not tell which is which are refused, with an example that works."""
    outcome = call("build", ROW_SUM, "-o", *outputs)
    assert (outcome.code, outcome.out, files_below(folder)) == (2, "", {})
    assert codes.OUTPUT_PAIR in outcome.err and "for instance -o kernel.c kernel.h" in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [(), ("-o", "k.c"), ("-o", "k.c", "k.h", "--target", "wasm"), ("-o", "k.c", "k.h", "--function", "f")],
    ids=" ".join,
)
def test_wrong_usage(call: Caller, folder: Path, arguments: tuple[str, ...]) -> None:
    """One file, none, no such target, no such function: exit code 2, nothing written."""
    outcome = call("build", ROW_SUM, *arguments)
    assert (outcome.code, outcome.out, files_below(folder)) == (2, "", {}) and outcome.err


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_step_that_is_refused(call: Caller, folder: Path, tmp_path: Path, form: str) -> None:
    """A map that is not injective: exit code 1, the counterexample told, older files left as they were."""
    (tmp_path / "lossy.json").write_text(json.dumps(LOSSY))
    (folder / "k.c").write_text("old")
    outcome = call("build", ROW_SUM, "--trace", str(tmp_path / "lossy.json"), "-o", "k.c", "k.h", "--format", form)
    assert outcome.code == 1 and "not injective on A" in outcome.err
    assert files_below(folder) == {"k.c": b"old"}
    if form == "json":
        jsonschema.validate(outcome.json(), BUILD)
        assert (outcome.json()["files"], outcome.json()["interface"], outcome.json()["build"]) == ([], None, None)
    else:
        assert outcome.out.endswith("  nothing was written\n")


def test_programs_at_fault(call: Caller, folder: Path, tmp_path: Path) -> None:
    """A read past the end is refuted; a program that does nothing is written, and is vacuous."""
    for text, code, written in ((OUT_OF_BOUNDS, 1, set()), (NOTHING, 3, {"k.c", "k.h"})):
        (tmp_path / "program.py").write_text(text)
        assert call("build", str(tmp_path / "program.py"), "-o", "k.c", "k.h").code == code
        assert set(files_below(folder)) == written


@pytest.mark.parametrize("place", ["missing/k.h", "locked/k.h", "k.h/k.h"])
def test_places_that_cannot_be_written(call: Caller, folder: Path, place: str) -> None:
    """Where one file cannot be written the other one is not either, and nothing is compiled for it."""
    (folder / "locked").mkdir(mode=0o555)
    (folder / "k.h").write_text("old")
    outcome = call("build", ROW_SUM, "-o", "k.c", place)
    assert (outcome.code, outcome.out) == (2, "") and codes.OUTPUT in outcome.err
    assert files_below(folder) == {"k.h": b"old"}


@pytest.mark.parametrize("fails", [1, 2])
def test_a_disk_that_fills_up(call: Caller, folder: Path, monkeypatch: pytest.MonkeyPatch, fails: int) -> None:
    """When either file no longer fits, both stay as they were."""
    (folder / "k.c").write_text("old c")
    (folder / "k.h").write_text("old h")
    real, count = os.fsync, [0]

    def full(handle: int) -> None:
        count[0] += 1
        if count[0] == fails:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    outcome = call("build", ROW_SUM, "-o", "k.c", "k.h", "--no-check")
    assert (outcome.code, outcome.out) == (2, "") and "No space left" in outcome.err
    assert files_below(folder) == {"k.c": b"old c", "k.h": b"old h"}


def test_without_a_compiler(call: Caller, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--no-check takes no compiler, and says that nothing was compared; by default a missing one is an error and
    nothing is written.
    """
    monkeypatch.setenv("CC", "/nonexistent/cc")
    outcome = call("build", ROW_SUM, "-o", "k.c", "k.h")
    assert outcome.code == 2 and "/nonexistent/cc" in outcome.err and files_below(folder) == {}
    outcome = call("build", ROW_SUM, "-o", "k.c", "k.h", "--no-check")
    assert outcome.code == 0 and "not compared" in outcome.out and set(files_below(folder)) == {"k.c", "k.h"}
    found = call("build", ROW_SUM, "-o", "k.c", "k.h", "--no-check", "--format", "json").json()
    jsonschema.validate(found, BUILD)
    assert found["build"] is None


@one_in(9)
def test_the_files_are_the_same_every_time(call: Caller, folder: Path, padded: str) -> None:
    """With the comparison or without, in this process or another, the text is one."""
    call("build", ROW_SUM, "--trace", padded, "-o", "k.c", "k.h")
    first = files_below(folder)
    call("build", ROW_SUM, "--trace", padded, "-o", "k.c", "k.h", "--no-check")
    assert files_below(folder) == first
    command = [
        sys.executable,
        "-m",
        "layoutproof",
        "build",
        ROW_SUM,
        "--trace",
        padded,
        "-o",
        "k.c",
        "k.h",
        "--no-check",
    ]
    assert (
        subprocess.run(
            command, cwd=folder, check=False, capture_output=True, env={**os.environ, "PYTHONHASHSEED": "7"}
        ).returncode
        == 0
    )
    assert files_below(folder) == first


def test_a_kernel_that_is_wrong_is_not_written(call: Caller, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not agree with the interpreter is an error, and no file."""
    monkeypatch.setattr("layoutproof.lowering.codegen.c_expr.float_literal", lambda value, ctype: "1.0f")
    outcome = call("build", ROW_SUM, "-o", "k.c", "k.h")
    assert outcome.code == 2 and "disagree" in outcome.err and files_below(folder) == {}
