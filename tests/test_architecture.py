"""ARCHITECTURE.md is true where that can be compared: the trust base, the clauses, and the files that it names."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from layoutproof.verify.clauses import Clause
from tests.tree import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
TRUSTED = PAGE.partition("## What has to be right")[2].partition("Passes, printers")[0]
# Whole folders, each named in the section as one.
GRAPHS = PAGE.partition("### Claims about graphs")[2].partition("### What rechecking")[0]
FOLDERS = {"ir/interp": "`ir/interp`", "lockstep": "`lockstep/`", "flow": "`flow/`", "replay": "`verify/replay/`"}


def source_of(module: str) -> Path | None:
    """The file of a module of ours; None for a name that is none."""
    path = ROOT.joinpath(*module.split(".")[1:])
    return next((each for each in (path.with_suffix(".py"), path / "__init__.py") if each.is_file()), None)


@cache
def imported_by(module: str) -> frozenset[str]:
    """The modules of ours that a module's text imports, wherever it does."""
    path = source_of(module)
    assert path is not None
    named = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("layoutproof."):
            named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(name for name in named if source_of(name))


def reached(start: str) -> set[str]:
    """Everything that a module imports, and what that imports."""
    found, todo = {start}, [start]
    while todo:
        new = imported_by(todo.pop()) - found
        found |= new
        todo += new
    return found


def folder_of(module: str) -> str:
    """The folder of a module, as the page calls it."""
    parts = module.split(".")[1:-1]
    return "/".join(parts) if parts[:1] == ["ir"] else "/".join(parts[1:])


def test_the_trust_base_is_listed() -> None:
    """Every module that the checker reaches is named, as trusted or as not, by itself or by its folder."""
    missing = []
    for module in sorted(reached("layoutproof.verify.checker")):
        path = source_of(module)
        if path is not None and path.name != "__init__.py" and FOLDERS.get(folder_of(module), f"`{path.stem}`") not in TRUSTED:
            missing.append(module)
    assert missing == []


def test_nothing_is_listed_that_is_not_reached() -> None:
    """The names in the list are those of modules that the checker reaches, or of data that they read."""
    stems = {module.split(".")[-1] for module in reached("layoutproof.verify.checker")}
    named = {name for line in TRUSTED.split("* ")[1:] for name in re.findall(r"`([a-z_0-9]+)`", line)}
    assert named <= stems


def decided_in_graphs() -> set[str]:
    """The modules of graphs that the proof of a planned graph reaches; not by way of the room's face, whose names load when asked for."""
    found, todo = set[str](), ["layoutproof.graph.proving"]
    while todo:
        module = todo.pop()
        found.add(module)
        todo += {name for name in imported_by(module) if name.startswith("layoutproof.graph.")} - found
    return found


def test_the_trust_base_of_graphs_is_listed() -> None:
    """Every module of graphs that the proof of a planned graph reaches is named, and no other one is."""
    stems = {module.split(".")[-1] for module in decided_in_graphs()}
    assert [stem for stem in sorted(stems) if f"`{stem}`" not in GRAPHS] == []
    named = {name for line in GRAPHS.split("* ")[1:3] for name in re.findall(r"`([a-z_]+)`", line)}
    assert named <= stems
    lowered = {module.split(".")[-1] for module in reached("layoutproof.graph.proving") if module.startswith("layoutproof.lowering.")}
    assert set(re.findall(r"`([a-z_]+)`", GRAPHS.split("* ")[3].partition("`codes`")[0])) <= lowered


def test_the_proof_of_a_graph_knows_no_plan() -> None:
    """What decides of a graph shares no code with what proposes layouts for it."""
    proposing = ("planning", "flow", "fold", "hoist", "relaid", "following", "tuned", "kernels")
    assert not any(module.startswith(f"layoutproof.graph.{name}") for module in decided_in_graphs() for name in proposing)


def test_the_checker_reaches_no_pass_and_no_certificate() -> None:
    """What decides shares no code with what proposes, and does not ask what was written down."""
    assert not any(".lowering." in module or ".certificate." in module for module in reached("layoutproof.verify.checker"))


@pytest.mark.parametrize("clause", Clause)
def test_clauses(clause: Clause) -> None:
    """Each clause is in the table, with files that are there and, but for what the model itself does, speak of it."""
    row = next(line for line in PAGE.splitlines() if line.startswith("|") and f"`{clause.value}`" in line)
    files = [ROOT / "verify" / name for name in re.findall(r"`([\w/]+\.py)`", row.split("|")[2])]
    assert files and all(path.is_file() for path in files)
    assert any(f"Clause.{clause.name}" in path.read_text(encoding="utf-8") for path in (*files, ROOT / "verify" / "program.py"))


def test_named_files_are_there() -> None:
    """Every path in the page leads to a file or a folder."""
    for name in re.findall(r"`((?:ir|verify|lowering|graph|importers|cli|proofs|tests|src)/[\w/.]*)`", PAGE):
        assert (ROOT / name).exists(), name
