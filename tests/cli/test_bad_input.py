"""Bad input: each has a message of its own that says what is wrong and where, exit code 2, and nothing is written."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.calling import OPERATORS, Caller, files_below, steady
from tests.conftest import Golden

SPLIT = "lambda i: [i//4, i%4]"
HEAD = "@T.prim_func\ndef f(A: T.Buffer((4,), 'float32'), B: T.Buffer((4,), 'float32')):\n"


def step(**changes: object) -> str:
    """A trace of one step, with some of its arguments changed."""
    arguments = {"block": "compute", "buffer": "A", "index_map": "lambda n, h, w, c: [n, c//4, h, w, c%4]"}
    return json.dumps([["transform_layout", {**arguments, **changes}]])


# Name: arguments of `map`; IN stands before each.
MAPS: dict[str, tuple[str, ...]] = {
    "unknown_syntax": ("lambda i: [i//4, i%4", "--shape", "14"),
    "no_lambda": ("i//4, i%4", "--shape", "14"),
    "wrong_arity": ("lambda i, j: [i, j]", "--shape", "14"),
    "undefined_name": ("lambda i: [i//k, i%k]", "--shape", "14"),
    "a_float": ("lambda i: [i//4.0, i%4]", "--shape", "14"),
    "deep_nesting": (f"lambda i: [{'(' * 1000}i{')' * 1000}]", "--shape", "14"),
    "deep_minus": (f"lambda i: [{'-' * 1000}i]", "--shape", "14"),
    "binary": ("\x00\x01\udcff", "--shape", "14"),
    "empty": ("", "--shape", "14"),
    "shape_of_zero": (SPLIT, "--shape", "0"),
    "shape_below_zero": (SPLIT, "--shape", "-3"),
    "shape_that_is_no_shape": (SPLIT, "--shape", "fourteen*"),
    "shape_with_a_float": (SPLIT, "--shape", "14.5"),
    "huge_shape": (SPLIT, "--shape", str(1 << 40)),
    "enormous_shape": (SPLIT, "--shape", str(1 << 80)),
    "condition_of_other_names": (SPLIT, "--shape", "n", "--where", "A[0] >= 1"),
    "condition_that_is_none": (SPLIT, "--shape", "n", "--where", "n +"),
    "image_below_zero": ("lambda i: [i - 1]", "--shape", "14"),
    "division_by_zero": ("lambda i: [i // (i - 3)]", "--shape", "14"),
    "physical_shape_too_small": ("lambda i: [i]", "--shape", "5", "--physical-shape", "4"),
    "physical_shape_of_other_rank": ("lambda i: [i]", "--shape", "5", "--physical-shape", "4,4"),
    "unknown_layout": ("NHWC->NCHQ4c", "--shape", "1,2,3,4"),
    "unknown_format": (SPLIT, "--shape", "14", "--format", "yaml"),
    "no_shape": (SPLIT,),
    "unknown_option": (SPLIT, "--shape", "14", "--fast"),
}


def typed(*command: str) -> str:
    """The command as it would be typed."""
    return ascii(shlex.join(command))[1:-1]


@pytest.mark.parametrize("name", MAPS)
def test_bad_map(call: Caller, golden: Golden, tmp_path: Path, name: str) -> None:
    """A map, shape or condition that is wrong: its message, exit code 2, and no output file."""
    outcome = call("map", *MAPS[name], "-o", str(tmp_path / "out.txt"))
    assert (outcome.code, outcome.out) == (2, "")
    assert files_below(tmp_path) == {}
    golden.entry("cli_bad_input.txt", f"map_{name}", steady(outcome.err), typed("map", *MAPS[name]))


# Name: the content of the program.
PROGRAMS: dict[str, bytes] = {
    "unknown_syntax": (HEAD + "    while True:\n        B[0] = A[0]\n").encode(),
    "not_python": b"def f(:\n  what is this\n",
    "prose": b"Dear compiler, please run this.\n",
    "binary": bytes(range(256)),
    "empty": b"",
    "wrong_arity": (HEAD + "    for i in T.serial(4):\n        B[i] = A[i, 0]\n").encode(),
    "undefined_name": (HEAD + "    for i in T.serial(4):\n        B[i] = C[i]\n").encode(),
    "shape_below_zero": HEAD.replace("(4,)", "(-4,)").encode() + b"    B[0] = A[0]\n",
    "huge_extent": HEAD.replace("(4,)", f"({1 << 40},)").encode() + b"    B[0] = A[0]\n",
    "deep_nesting": (HEAD + f"    B[0] = {'(' * 1000}A[0]{')' * 1000}\n").encode(),
    "deep_blocks": (
        HEAD + "".join(f"{' ' * (4 + k)}if True:\n" for k in range(1000)) + " " * 1004 + "B[0] = A[0]\n"
    ).encode(),
    "two_functions": (HEAD + "    B[0] = A[0]\n\n" + HEAD.replace("def f", "def g") + "    B[0] = A[0]\n").encode(),
    "too_much_data": HEAD.replace("(4,)", "(1000000, 1000)").encode() + b"    B[0, 0] = A[0, 0]\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_bad_program(call: Caller, golden: Golden, tmp_path: Path, name: str) -> None:
    """A program that cannot be read, or run: its message, exit code 2, and nothing written."""
    program = tmp_path / "program.py"
    program.write_bytes(PROGRAMS[name])
    outcome = call("run", str(program), "--emit", str(tmp_path / "out.c"), "-o", str(tmp_path / "out.txt"))
    assert (outcome.code, outcome.out) == (2, "")
    assert files_below(tmp_path) == {"program.py": PROGRAMS[name]}
    golden.entry("cli_bad_input.txt", f"program_{name}", steady(outcome.err, tmp_path))


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - {"huge_extent", "too_much_data"}))
@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_bad_program_compared(call: Caller, tmp_path: Path, name: str, first: bool) -> None:
    """A program that cannot be read is told of with its file, whichever of two it is, and nothing is written."""
    program = tmp_path / "program.py"
    program.write_bytes(PROGRAMS[name])
    pair = (str(program), str(OPERATORS / "exp1d.py")) if first else (str(OPERATORS / "exp1d.py"), str(program))
    outcome = call("compare", *pair, "--witness", str(tmp_path / "w.py"), "-o", str(tmp_path / "out.txt"), "--no-cache")
    assert (outcome.code, outcome.out) == (2, "")
    assert set(files_below(tmp_path)) <= {"program.py", "out.txt"} and "program.py" in outcome.err


# Name: the content of the trace, which is applied to relu.
TRACES: dict[str, str] = {
    "not_json": "[['transform_layout', {}]]",
    "not_a_list": '{"steps": []}',
    "step_without_arguments": '[["transform_layout"]]',
    "unknown_primitive": '[["transform_layuot", {}]]',
    "missing_argument": '[["transform_layout", {"block": "compute"}]]',
    "unknown_argument": step(speed=3),
    "wrong_type": step(index_map=4),
    "unknown_block": step(block="nothing"),
    "unknown_buffer": step(buffer="Q"),
    "wrong_arity": step(index_map="lambda i, j: [j, i]"),
    "undefined_name": step(index_map="lambda n, h, w, c: [n, c//k, h, w]"),
    "pad_value_of_no_type": step(pad_value="7 eleven"),
    "pad_value_of_wrong_type": step(pad_value="T.int8(3)"),
    "deep_json": "[" * 100_000,
    "empty": "",
}


@pytest.mark.parametrize("name", TRACES)
def test_bad_trace(call: Caller, golden: Golden, tmp_path: Path, name: str) -> None:
    """A trace that is wrong: its message, which names the step and the argument, exit code 2, and nothing written."""
    trace = tmp_path / "trace.json"
    trace.write_text(TRACES[name])
    program = tmp_path / "relu.py"
    shutil.copy(OPERATORS / "relu_nhwc.py", program)
    outcome = call(
        "run", str(program), "--trace", str(trace), "--emit", str(tmp_path / "out.c"), "-o", str(tmp_path / "out.txt")
    )
    assert (outcome.code, outcome.out) == (2, "")
    assert set(files_below(tmp_path)) == {"relu.py", "trace.json"}
    golden.entry("cli_bad_input.txt", f"trace_{name}", steady(outcome.err, tmp_path))


def missing(folder: Path) -> Path:
    """A path where nothing is."""
    return folder / "missing.py"


def directory(folder: Path) -> Path:
    """A folder."""
    (folder / "folder").mkdir()
    return folder / "folder"


def loop(folder: Path) -> Path:
    """A link to itself: a file that cannot be opened, not even by the superuser."""
    (folder / "loop.py").symlink_to(folder / "loop.py")
    return folder / "loop.py"


def below_a_file(folder: Path) -> Path:
    """A path through something that is no folder."""
    (folder / "file").write_text("")
    return folder / "file" / "program.py"


@pytest.mark.parametrize("make", [missing, directory, loop, below_a_file], ids=lambda make: make.__name__)
@pytest.mark.parametrize("what", ["program", "trace"])
def test_unreadable(call: Caller, golden: Golden, tmp_path: Path, make: Callable[[Path], Path], what: str) -> None:
    """What cannot be opened is named, as a program and as a trace."""
    path = make(tmp_path)
    arguments = (str(path),) if what == "program" else (str(OPERATORS / "row_sum.py"), "--trace", str(path))
    outcome = call("run", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    golden.entry("cli_bad_input.txt", f"unreadable_{make.__name__}_{what}", steady(outcome.err, tmp_path))


def test_permission_denied(call: Caller, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that may not be read is named; tried with the system's refusal, since a superuser may read everything."""

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    outcome = call("run", str(tmp_path / "secret.py"))
    assert (outcome.code, outcome.out) == (2, "")
    golden.entry("cli_bad_input.txt", "permission_denied", steady(outcome.err, tmp_path))


COMMANDS: dict[str, tuple[str, ...]] = {
    "map": ("map", SPLIT, "--shape", "14", "-o"),
    "draw": ("draw", SPLIT, "--shape", "14", "-o"),
    "run": ("run", str(OPERATORS / "row_sum.py"), "-o"),
    "emit": ("run", str(OPERATORS / "row_sum.py"), "--emit"),
    "compare": ("compare", *[str(OPERATORS / "row_sum.py")] * 2, "-o"),
    "witness": ("compare", *[str(OPERATORS / "row_sum.py")] * 2, "--witness"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_write_protected_output(call: Caller, golden: Golden, tmp_path: Path, command: str) -> None:
    """An output that is protected, in a protected folder, in no folder, or a folder itself: refused, and nothing
    changes.
    """
    (tmp_path / "locked").mkdir()
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "protected.svg").write_bytes(b"old")
    (tmp_path / "protected.svg").chmod(0o444)
    (tmp_path / "locked").chmod(0o555)
    said = []
    for name in ("protected.svg", "locked/out.svg", "missing/out.svg", "folder.svg", "protected.svg/out.svg"):
        outcome = call(*COMMANDS[command], str(tmp_path / name))
        assert (outcome.code, outcome.out) == (2, "")
        said.append(outcome.err)
    assert files_below(tmp_path) == {"protected.svg": b"old"}
    (tmp_path / "locked").chmod(0o755)
    golden.entry("cli_bad_input.txt", "write_protected", steady("".join(said), tmp_path))


def test_demo_into_a_file(call: Caller, golden: Golden, tmp_path: Path) -> None:
    """The demo refuses a folder that is a file, is protected, or has no place, before it does anything."""
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "locked").mkdir(mode=0o555)
    said = ""
    for name in ("file", "missing/folder", "locked", "locked/folder"):
        outcome = call("demo", "-o", str(tmp_path / name))
        assert (outcome.code, outcome.out) == (2, "")
        said += outcome.err
    assert files_below(tmp_path) == {"file": b"old"}
    golden.entry("cli_bad_input.txt", "demo_folder", steady(said, tmp_path))


@pytest.mark.parametrize("compiler", ["/nonexistent", "", "false", "'unclosed"])
def test_compiler(call: Caller, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str) -> None:
    """A compiler that is missing (also with an empty path and no other to be found), fails, or is no command: said,
    nothing written.
    """
    name = {"/nonexistent": "missing", "": "none", "false": "fails", "'unclosed": "no_command"}[compiler]
    if name == "none":
        monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    if name != "fails":
        monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("CC", compiler)
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "out"
    out.mkdir()
    outcome = call("run", str(OPERATORS / "row_sum.py"), "--emit", str(out / "out.c"), "-o", str(out / "out.txt"))
    assert (outcome.code, outcome.out) == (2, "")
    assert os.listdir(out) == []
    text = steady(outcome.err, tmp_path)
    golden.entry(
        "cli_bad_input.txt", f"compiler_{name}", "\n".join(_steady_compiler(line) for line in text.splitlines()) + "\n"
    )


def _steady_compiler(line: str) -> str:
    """A line without the flags of this machine and the names of temporary files."""
    if line.startswith("  command: "):
        return f"{line.split(' -', 1)[0]} ..."
    return line.split("FOLDER/cache", 1)[0] + "FOLDER/cache/..." if "FOLDER/cache" in line else line


SIZES: dict[str, tuple[str, ...]] = {
    "none": (),
    "half": ("--size", "n=3"),
    "no_number": ("--size", "n=many"),
    "no_name": ("--size", "=3"),
    "negative": ("--size", "n=-3"),
    "twice": ("--size", "n=3", "--size", "n=4"),
    "too_large": ("--size", f"n={1 << 40}"),
    "unknown": ("--size", "n=3", "--size", "m=3", "--size", "q=3"),
    "too_much": ("--size", f"n={1 << 20}", "--size", f"m={1 << 20}"),
}


@pytest.mark.parametrize("name", SIZES)
def test_bad_size(call: Caller, golden: Golden, name: str) -> None:
    """A size that is missing, malformed, repeated, too large or unknown is named."""
    outcome = call("run", str(OPERATORS / "sym_row_sum.py"), *SIZES[name])
    assert (outcome.code, outcome.out) == (2, "")
    golden.entry(
        "cli_bad_input.txt",
        f"size_{name}",
        steady(outcome.err, OPERATORS),
        typed("run", "sym_row_sum.py", *SIZES[name]),
    )


DRAWINGS: dict[str, tuple[str, ...]] = {
    "ending": (SPLIT, "--shape", "14", "-o", "FOLDER/out.gif"),
    "symbolic": (SPLIT, "--shape", "n", "-o", "FOLDER/out.svg"),
    "unknown_size": (SPLIT, "--shape", "14", "--size", "n=3", "-o", "FOLDER/out.svg"),
    "size_of_zero": (SPLIT, "--shape", "n", "--size", "n=0", "-o", "FOLDER/out.svg"),
    "many_clashes": ("lambda i: [i//4]", "--shape", "1000000", "-o", "FOLDER/out.svg"),
    "too_few_cells": (SPLIT, "--shape", "14", "--cells", "1", "-o", "FOLDER/out.svg"),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_bad_drawing(call: Caller, golden: Golden, tmp_path: Path, name: str) -> None:
    """A picture that cannot be drawn: why, exit code 2, and no file."""
    outcome = call("draw", *(a.replace("FOLDER", str(tmp_path)) for a in DRAWINGS[name]))
    assert (outcome.code, outcome.out) == (2, "")
    assert files_below(tmp_path) == {}
    golden.entry("cli_bad_input.txt", f"draw_{name}", steady(outcome.err, tmp_path), typed("draw", *DRAWINGS[name]))
