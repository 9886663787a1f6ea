"""The hooks for pre-commit: their form, which files they take, and their entries, called as pre-commit calls them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from layoutproof.cli.pytest_plugin import FILES
from tests.shares import one_in
from tests.tree import PROJECT, ROOT

HOOKS: Mapping[str, Mapping[str, Any]] = {
    hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
}
GATE = (
    "import layoutproof as lp\n\n\n@lp.gate\ndef rows():\n"
    "    return lp.check_map(lambda i: [i // 4, i % {}], shape=(14,))\n"
)


def call(hook: Mapping[str, Any], folder: Path, *files: str) -> subprocess.CompletedProcess[str]:
    """Call a hook's entry with its arguments and, where it takes them, names of files."""
    program, *arguments = shlex.split(hook["entry"])
    assert PROJECT["project"]["scripts"][program] == "layoutproof.cli.main:main"
    names = files if hook.get("pass_filenames", True) else ()
    command = [sys.executable, "-m", "layoutproof", *arguments, *hook.get("args", []), *names]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_hooks_have_the_form_that_is_wanted() -> None:
    """Each hook is of Python, says what it does, and is called once for all files, since layoutproof has workers of its
    own.
    """
    assert set(HOOKS) == {"layoutproof-check", "layoutproof-check-all"}
    known = {
        "id",
        "name",
        "description",
        "entry",
        "args",
        "language",
        "types",
        "files",
        "pass_filenames",
        "require_serial",
    }
    for hook in HOOKS.values():
        assert {"id", "name", "description", "entry", "language", "files"} <= set(hook) <= known
        assert (hook["language"], hook["require_serial"]) == ("python", True)


@pytest.mark.parametrize(
    ("path", "taken"),
    [
        ("gates.py", True),
        ("a/b/gates.py", True),
        ("gate_conv.py", True),
        ("x/conv_gates.py", True),
        ("gates.pyi", False),
        ("gateau.py", False),
    ],
)
def test_files_of_gates_are_taken(path: str, taken: bool) -> None:
    """The hook takes the files that the plugin for pytest searches, and no others."""
    name = path.rpartition("/")[2]
    assert (re.search(HOOKS["layoutproof-check"]["files"], path) is not None) is taken
    assert any(re.fullmatch(pattern.replace(".", r"\.").replace("*", ".*"), name) for pattern in FILES) is taken


@one_in(10)
def test_named_files_are_checked(tmp_path: Path) -> None:
    """The hook checks what is to be committed, and nothing else."""
    (tmp_path / "gates.py").write_text(GATE.format(4), encoding="utf-8")
    (tmp_path / "bad_gates.py").write_text(GATE.format(3), encoding="utf-8")
    assert call(HOOKS["layoutproof-check"], tmp_path, "gates.py").returncode == 0
    refused = call(HOOKS["layoutproof-check"], tmp_path, "gates.py", "bad_gates.py")
    assert refused.returncode == 1 and "bad_gates.py:5:1: error[LP210]" in refused.stdout


@one_in(4)
def test_everything_is_checked(tmp_path: Path) -> None:
    """The other hook checks the whole repository, whatever is to be committed."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "layouts.py").write_text(GATE.format(3), encoding="utf-8")
    assert call(HOOKS["layoutproof-check-all"], tmp_path, "readme.md").returncode == 1
