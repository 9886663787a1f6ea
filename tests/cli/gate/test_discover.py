"""What paths name: gates, schedules, rewrites, in files and folders, and nothing that is none of these."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.cli import codes
from layoutproof.cli.gate.check_items import Item, find_items
from layoutproof.cli.gate.outcomes import Kind
from layoutproof.ir.diagnostic import LayoutproofError

PROGRAM = (ROOT / "examples" / "programs" / "row_sum.py").read_text(encoding="utf-8")
REWRITE = (ROOT / "proofs" / "refuted" / "order_interchanged.py").read_text(encoding="utf-8")
GATES = """import layoutproof as lp

@lp.gate(cases=[4, 8])
def second(c):
    return lp.check_map(lambda i: [i // c, i % c], (16,))

@lp.gate
def first():
    return lp.check_map("lambda i: [i]", (16,))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one of each, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "b/gates.py": GATES,
        "a/row_sum.py": PROGRAM,
        "a/row_sum.jsonl": '[]\n\n[["simplify", {}]]\n',
        "a/row_sum.json": "[]",
        "a/other.py": PROGRAM.replace("row_sum", "other"),
        "c/rewrite.py": REWRITE,
        "c/unrelated.py": "print('not run')\nraise SystemExit(1)\n",
        ".hidden/gates.py": GATES,
        "build/gates.py": GATES,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def names(items: Iterator[Item]) -> list[str]:
    """The names of items."""
    return [item.name for item in items]


def test_a_folder(folder: Path) -> None:
    """Gates, schedules beside their program, and rewrites, by name; programs alone, other Python and hidden folders are
    passed over.
    """
    assert names(find_items([Path()])) == [
        "a/row_sum.py:row_sum a/row_sum.jsonl:1",
        "a/row_sum.py:row_sum a/row_sum.jsonl:3",
        "a/row_sum.py:row_sum a/row_sum.json",
        "b/gates.py::second[4]",
        "b/gates.py::second[8]",
        "b/gates.py::first",
        "c/rewrite.py",
    ]


def test_items_say_where_they_stand(folder: Path) -> None:
    """Each has its kind, its file and its line, and what is needed to judge it."""
    items = list(find_items([Path()]))
    assert [item.kind for item in items] == [Kind.TRACE] * 3 + [Kind.GATE] * 3 + [Kind.REWRITE]
    assert [(item.path, item.line) for item in items[:2]] == [("a/row_sum.jsonl", 1), ("a/row_sum.jsonl", 3)]
    assert (items[1].program, items[1].subject, items[1].text) == ("a/row_sum.py", "row_sum", '[["simplify", {}]]')
    assert [(item.subject, item.case, item.line) for item in items[3:6]] == [
        ("second", "4", 4),
        ("second", "8", 4),
        ("first", None, 8),
    ]


def test_files_and_their_order(folder: Path) -> None:
    """Several paths come in the order in which they are given; a file of schedules finds its program beside it."""
    assert names(find_items([Path("c/rewrite.py"), Path("a/row_sum.jsonl")])) == [
        "c/rewrite.py",
        "a/row_sum.py:row_sum a/row_sum.jsonl:1",
        "a/row_sum.py:row_sum a/row_sum.jsonl:3",
    ]
    assert names(find_items([Path("a/other.py")], [Path("a/row_sum.json")])) == ["a/other.py:other a/row_sum.json"]


@one_in(4)
def test_lines_are_read_as_they_are_needed(folder: Path) -> None:
    """The first items of a log that has no end are there at once."""
    path = folder / "a" / "row_sum.jsonl"
    with path.open("a") as file:
        file.writelines(f"{json.dumps([['simplify', {}]])}\n" for _ in range(200_000))
    assert len(list(islice(find_items([path]), 3))) == 3


@pytest.mark.parametrize(
    ("paths", "traces", "function", "code"),
    [
        (["missing.py"], [], None, codes.NOTHING_TO_CHECK),
        (["c/unrelated.py"], [], None, codes.NOTHING_TO_CHECK),
        (["a/other.py"], [], None, codes.NOTHING_TO_CHECK),
        (["."], ["a/row_sum.json", "a/row_sum.json"], None, "LP1"),
        (["a/row_sum.py", "a/other.py"], ["a/row_sum.json"], None, codes.TRACES_OF_SEVERAL),
        (["lone.jsonl"], [], None, codes.NO_PROGRAM),
        (["a/row_sum.py"], ["empty.jsonl"], None, codes.NOTHING_TO_CHECK),
        (["a/row_sum.py"], ["a/row_sum.json"], "nobody", codes.FUNCTION),
        (["b/gates.py"], [], "first", codes.FUNCTION),
        (["c/rewrite.py"], [], "before", codes.FUNCTION),
    ],
)
def test_paths_that_name_nothing(
    folder: Path, paths: list[str], traces: list[str], function: str | None, code: str
) -> None:
    """What names nothing to check is an error that names the path, never a run of no items that passes."""
    (folder / "lone.jsonl").write_text("[]\n")
    (folder / "empty.jsonl").write_text("\n \n")
    with pytest.raises(LayoutproofError) as caught:
        list(find_items([Path(p) for p in paths], [Path(t) for t in traces], function))
    assert caught.value.diagnostics[0].code.startswith(code)


def test_an_empty_folder(tmp_path: Path) -> None:
    """A folder in which there is nothing to check does not pass."""
    with pytest.raises(LayoutproofError, match="nothing to check"):
        list(find_items([tmp_path]))


def test_what_cannot_be_loaded_is_an_item(folder: Path) -> None:
    """A file of gates that fails to load, or is no Python, is one item, whose judging tells what is wrong."""
    (folder / "b" / "gates.py").write_text(f"{GATES}\nraise ValueError('no')\n")
    (folder / "b" / "worse.py").write_text("@lp.gate\ndef broken(:\n")
    (folder / "a" / "row_sum.py").write_text(PROGRAM.replace("def row_sum", "def row sum"))
    (folder / "c" / "rewrite.py").unlink()
    found = [(item.kind, item.name) for item in find_items([Path()])]
    assert found == [(Kind.TRACE, "a/row_sum.py"), (Kind.GATE, "b/gates.py"), (Kind.GATE, "b/worse.py")]
    (folder / "a" / "row_sum.py").write_text(PROGRAM.replace("T.float32(0)", "T.nothing(0)"))
    assert names(find_items([Path("a")])) == ["a/row_sum.py", "a/row_sum.py"]
