"""`layoutproof tv`: verdicts on files of MLIR, pipelines pass by pass, and the errors of wrong calls."""

from __future__ import annotations

import os
from pathlib import Path

import jsonschema
import pytest
from tests.cli.calling import Caller
from tests.cli.schema import COMPARISON
from tests.shares import one_in

SCALE = """func.func @scale(%a: memref<8xf32>, %b: memref<8xf32>) {{
  %c = arith.constant 2.0 : f32
  affine.for %i = 0 to {bound} {{
    %x = affine.load %a[%i] : memref<8xf32>
    %y = {value} : f32
    affine.store %y, %b[%i] : memref<8xf32>
  }}
  return
}}
"""
PRODUCT, SUM = "arith.mulf %x, %c", "arith.addf %x, %x"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a function, the same otherwise, and a wrong one."""
    monkeypatch.chdir(tmp_path)
    for name, bound, value in (("a", 8, PRODUCT), ("same", 8, SUM), ("wrong", 7, SUM)):
        Path(f"{name}.mlir").write_text(SCALE.format(bound=bound, value=value), encoding="utf-8")
    return tmp_path


@one_in(4)
def test_verdicts(call: Caller, files: Path) -> None:
    """Two files are proved or refuted, with the line of the difference, and the exit code says which."""
    proved = call("tv", "a.mlir", "same.mlir")
    assert (proved.code, proved.err) == (0, "") and "a.mlir -> same.mlir: proved" in proved.out
    assert "bit for bit" in proved.out and "parameters do not overlap" in proved.out
    refuted = call("tv", "a.mlir", "wrong.mlir")
    assert refuted.code == 1 and "`b[7]`: expected" in refuted.out and "a.mlir:6:5: note" in refuted.out


def test_other_commands(call: Caller, files: Path) -> None:
    """`compare` and `run` take a file of MLIR where a program is."""
    assert call("compare", "a.mlir", "same.mlir").code == 0
    ran = call("run", "same.mlir")
    assert ran.code == 0 and "same.mlir:scale" in ran.out


def test_json(call: Caller, files: Path) -> None:
    """The report is that of a comparison."""
    found = call("tv", "a.mlir", "wrong.mlir", "--format", "json").json()
    jsonschema.validate(found, COMPARISON)
    assert found["verdict"] == "refuted"


# Stands for mlir-opt: without passes it prints the file; else a module after each of three passes, one of them wrong.
TOOL = """#!/usr/bin/env python3
import pathlib, sys
text = {name: pathlib.Path(name + ".mlir").read_text() for name in ("a", "same", "wrong")}
if "--fail" in sys.argv:
    sys.exit("a.mlir:1:1: error: no such pass")
if "--mistyped" in sys.argv:
    sys.exit("tool: Unknown command line argument '--mistyped'.")
if "--quiet" in sys.argv:
    steps = [("idle", "a")]
else:
    steps = [("first-pass", "same"), ("idle", "same"), ("second-pass", "wrong")]
if len(sys.argv) == 2:
    print(text["a"])
for name, after in steps[: len(steps) if len(sys.argv) > 2 else 0]:
    print(f"// -----// IR Dump After Some ({name}) //----- //\\n{text[after]}", file=sys.stderr)
"""


@pytest.fixture
def tool(files: Path) -> str:
    """A program in place of mlir-opt."""
    path = files / "tool"
    path.write_text(TOOL, encoding="utf-8")
    os.chmod(path, 0o755)
    return str(path)


def test_a_pipeline(call: Caller, files: Path, tool: str) -> None:
    """Each pass that changed something is judged, the wrong one is named, and the modules are kept on request."""
    found = call("tv", "a.mlir", "--mlir-opt", "--passes", "--mlir-opt-path", tool, "--save-steps", "steps")
    assert found.code == 1
    assert "proved   pass 1, first-pass\n" in found.out and "pass 3, second-pass: refuted" in found.out
    assert "idle" not in found.out
    assert sorted(os.listdir("steps")) == ["01-first-pass.mlir", "03-second-pass.mlir"]


def test_a_pipeline_that_does_nothing(call: Caller, files: Path, tool: str) -> None:
    """Nothing changed is nothing wrong, and is said."""
    found = call("tv", "a.mlir", "--mlir-opt=--quiet", "--mlir-opt-path", tool)
    assert (found.code, found.out, found.err) == (0, "", "a.mlir: no pass changed anything\n")


def test_errors(call: Caller, files: Path, tool: str) -> None:
    """Wrong calls and wrong files have exit code 2 and a message."""
    assert "give AFTER.mlir, or --mlir-opt" in call("tv", "a.mlir").err
    assert "has no function @scale" in _error(call, "other.mlir", SCALE.replace("@scale", "@other"))
    assert "has no function missing" in call("tv", "a.mlir", "same.mlir", "--function", "missing").err
    failed = call("tv", "a.mlir", "--mlir-opt=--fail", "--mlir-opt-path", tool)
    assert failed.code == 2 and "error[LP653]" in failed.err and "no such pass" in failed.err
    mistyped = call("tv", "a.mlir", "--mlir-opt=--mistyped", "--mlir-opt-path", tool)
    assert mistyped.code == 2 and "Unknown command line argument" in mistyped.err
    assert "the operation arith.nothing is not known" in _error(
        call, "unknown.mlir", SCALE.replace("{value}", "arith.nothing %x")
    )


def test_a_module_that_is_removed(call: Caller, files: Path, tool: str) -> None:
    """An error in a module between two passes says how to keep that module."""
    Path("wrong.mlir").write_text("func.func @scale(", encoding="utf-8")
    found = call("tv", "a.mlir", "--mlir-opt=--passes", "--mlir-opt-path", tool)
    assert found.code == 2 and "--save-steps FOLDER keeps the module" in found.err
    kept = call("tv", "a.mlir", "--mlir-opt=--passes", "--mlir-opt-path", tool, "--save-steps", "steps")
    assert kept.code == 2 and "--save-steps" not in kept.err


def _error(call: Caller, name: str, text: str) -> str:
    Path(name).write_text(text.format(bound=8, value=SUM), encoding="utf-8")
    found = call("tv", "a.mlir", name)
    assert found.code == 2
    return found.err + found.out
