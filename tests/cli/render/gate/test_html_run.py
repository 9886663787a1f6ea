"""`layoutproof check --format html`: what kind of item it may be, the page has its programs and layouts, and equal runs
equal bytes.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.cli.calling import Caller
from tests.cli.gate.scheduled import changed, trace
from tests.cli.render.gate.test_html_page import entries, read
from tests.shares import one_in
from tests.tree import ROOT

GATES = '''
import layoutproof as lp

@lp.gate(cases={"small": (14,), "large": (64,)})
def tiles(n):
    """A map and a schedule."""
    schedule = lp.Schedule(lp.load("row_sum.py"))
    schedule.transform_layout("sum", "A", lambda i, j: [i, j // 4, j % 4], pad_value=0.0)
    return [lp.check_map("lambda i: [i//4, i%4]", (n,)), schedule]

@lp.gate
def clashing():
    """A map that is not injective."""
    lp.Schedule(lp.load("row_sum.py")).transform_layout("sum", "A", lambda i, j: [i // 2, j])
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gates, schedules and rewrites, of which some are refused, in the current folder."""
    items = tmp_path / "items"
    items.mkdir()
    (items / "gates.py").write_text(GATES, encoding="utf-8")
    shutil.copy(ROOT / "examples" / "programs" / "row_sum.py", items)
    shutil.copy(ROOT / "proofs" / "refuted" / "cells_injective_diagonals.py", items)
    lines = (trace("row_sum"), changed("row_sum", 0, index_map="lambda i, j: [i//2, j]"))
    (items / "row_sum.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    monkeypatch.chdir(items)
    return items


def bodies(path: Path) -> dict[str, Any]:
    """The items of a report by name, with their parts put together."""
    data = read(path.read_text(encoding="utf-8")).data
    shared = list(entries(data, "shared"))
    found = {}
    for body in entries(data, "body"):
        for part in body["parts"]:
            part["layouts"] = [shared[number] for number in part["layouts"]]
        found[body["name"]] = body
    return found


@one_in(4)
def test_every_kind_of_item_has_its_parts(folder: Path, call: Caller, tmp_path: Path) -> None:
    """Gates, schedules and rewrites, kept and refused, show programs and pictures; a gate of several results has a part
    for each.
    """
    target = tmp_path / "report.html"
    assert call("check", ".", "--workers", "1", "--no-cache", "--format", "html", "-o", str(target)).code == 1
    found = bodies(target)
    pictures = {name: [len(part["layouts"]) for part in body["parts"]] for name, body in found.items()}
    assert pictures["gates.py::tiles[small]"] == [1, 1]
    clashes = [body for name, body in found.items() if name.endswith(("clashing", "jsonl:2", "diagonals.py"))]
    assert len(clashes) == 3
    for body in clashes:
        cells = body["parts"][0]["layouts"][0]["picture"]["cells"]
        assert body["findings"] and any(isinstance(holds, list) for holds in cells)


@one_in(9)
def test_equal_runs_give_equal_files(folder: Path, call: Caller, tmp_path: Path) -> None:
    """With --stable, a first run, one that finds everything in the cache, and one of two workers write the same
    bytes.
    """
    cache = str(tmp_path / "cache.sqlite")
    written: list[bytes] = []
    for workers in ("1", "1", "2"):
        target = tmp_path / f"report{len(written)}.html"
        call("check", ".", "--stable", "--workers", workers, "--cache", cache, "--report", f"html={target}")
        written.append(target.read_bytes())
    assert written[0] == written[1] == written[2]
