"""Tables of measured costs as files: they are read as they were written, and errors have a line or entry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.graph.nets import NCHW4C, running_example

from layoutproof.graph.planning.costs import Move, from_table, load_costs, moves_of, save_costs
from layoutproof.graph.planning.planner import plan
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import DType

MOVE = Move((8, 4), DType.parse("float32"), "lambda i0, i1: [i0, i1]", "lambda i0, i1: [i1, i0]")
PADDED = Move((3,), DType.parse("int8"), "lambda i0: [i0//4, i0%4]", "lambda i0: [i0//4, i0%4] holding 0")
ENTRY = {"dtype": "float32", "shape": [8, 4], "from": "lambda i, j: [i, j]", "to": "lambda i, j: [j, i]", "cost": 7}


def table(entry: object, **more: object) -> str:
    """The text of a table with one entry."""
    return json.dumps({"format": "layoutproof-costs", "version": 1, "unit": "ns", "rewrites": [entry], **more})


@pytest.mark.parametrize("name", ["costs.json", "costs.csv", "COSTS.CSV"])
def test_a_table_comes_back(tmp_path: Path, name: str) -> None:
    """Both forms hold the whole table, contracts of padding too; the same table gives the same bytes."""
    costs = {MOVE: 7, PADDED: 0, Move((), DType.parse("bool"), "lambda: []", "lambda: [0]"): 1 << 40}
    save_costs(costs, tmp_path / name)
    assert load_costs(tmp_path / name) == costs
    first = (tmp_path / name).read_bytes()
    save_costs(dict(reversed(costs.items())), tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    save_costs({}, tmp_path / name)
    assert load_costs(tmp_path / name) == {}


def test_a_plan_by_a_table_from_a_file(tmp_path: Path) -> None:
    """A table that somebody wrote, with other names for indices, is what a plan goes by."""
    asked = {"conv2d": {"X": NCHW4C, "Y": NCHW4C}}
    found = plan(running_example(), asked)
    moves = moves_of(found.problem.costs, found.candidates.values)
    rows = [
        (
            str(m.dtype),
            "x".join(map(str, m.shape)),
            *(f'"{text.replace("i0", "n").replace("i1", "c")}"' for text in (m.source, m.target)),
            "5",
        )
        for m in moves
    ]
    (tmp_path / "c.csv").write_text(
        "\n".join(["dtype,shape,from,to,cost", *(",".join(row) for row in rows), "", ""]), encoding="utf-8"
    )
    assert plan(running_example(), asked, cost=from_table(load_costs(tmp_path / "c.csv"))).cost == 10


WRONG = {
    "another ending": ("c.txt", "", "ends in .json or .csv"),
    "no JSON": ("c.json", "{", "c.json, line 1, column 2"),
    "nested": ("c.json", "[" * 100_000, "no table of costs"),
    "a list": ("c.json", "[]", 'expected an object with "format": "layoutproof-costs"'),
    "another format": ("c.json", '{"format": "x"}', 'expected an object with "format"'),
    "another version": ("c.json", table(ENTRY, version=2), 'its "version" is 2, this tool reads 1'),
    "no rewrites": ("c.json", table(ENTRY, rewrites=3), 'expected "rewrites", a list'),
    "no object": ("c.json", table(3), "rewrites[0]: expected an object with dtype, shape, from, to, cost"),
    "a field too few": ("c.json", table({"dtype": "float32"}), "rewrites[0]: no field 'shape'"),
    "a field too many": ("c.json", table({**ENTRY, "note": 3}), "rewrites[0]: an unknown field 'note'"),
    "no type": ("c.json", table({**ENTRY, "dtype": "float33x"}), "rewrites[0]: dtype: expected one such as float32"),
    "a type of another kind": ("c.json", table({**ENTRY, "dtype": 3}), "rewrites[0]: dtype"),
    "no shape": ("c.json", table({**ENTRY, "shape": [8, 0]}), "rewrites[0]: shape: expected extents of at least 1"),
    "a shape of truth values": ("c.json", table({**ENTRY, "shape": [True, 4]}), "rewrites[0]: shape"),
    "no layout": ("c.json", table({**ENTRY, "to": "NCHW4c"}), "rewrites[0]: to: 'NCHW4c' is no layout"),
    "no number in padding": ("c.json", table({**ENTRY, "to": "lambda i, j: [j, i] holding x"}), "rewrites[0]: to"),
    "a layout of another kind": ("c.json", table({**ENTRY, "from": None}), "rewrites[0]: from: expected a lambda"),
    "other axes": ("c.json", table({**ENTRY, "to": "lambda i: [i]"}), "takes 1 indices, the shape has 2 axes"),
    "a cost below zero": ("c.json", table({**ENTRY, "cost": -1}), "rewrites[0]: cost: expected a whole number"),
    "half a cost": ("c.json", table({**ENTRY, "cost": 1.5}), "rewrites[0]: cost: expected a whole number"),
    "two costs": (
        "c.json",
        table(ENTRY, rewrites=[ENTRY, {**ENTRY, "cost": 8}]),
        "rewrites[1]: the rewrite of float32[8, 4]",
    ),
    "another head": ("c.csv", "a,b\n", "c.csv, line 1: expected dtype,shape,from,to,cost"),
    "nothing": ("c.csv", "", "c.csv, line 1: expected dtype,shape,from,to,cost"),
    "fields that are missing": ("c.csv", "dtype,shape,from,to,cost\nfloat32,8x4\n", "c.csv, line 2: expected 5 fields"),
    "a wrong shape": ("c.csv", "dtype,shape,from,to,cost\nfloat32,8x,l,l,3\n", "c.csv, line 2: shape"),
    "a wrong cost": (
        "c.csv",
        "dtype,shape,from,to,cost\nint8,4,lambda i: [i],lambda i: [i],7e3\n",
        "c.csv, line 2: cost",
    ),
    "an open quote": ("c.csv", 'dtype,shape,from,to,cost\nint8,4,"lambda\n', "c.csv, line 2"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_table(tmp_path: Path, name: str) -> None:
    """What is no table is refused with the file, the line or the entry, and what was expected."""
    path, text, told = WRONG[name]
    (tmp_path / path).write_text(text, encoding="utf-8")
    with pytest.raises(LayoutproofError) as caught:
        load_costs(tmp_path / path)
    assert caught.value.diagnostics[0].code == "LP633" and told in str(caught.value), str(caught.value)


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    """A file that cannot be read, or written, is named."""
    with pytest.raises(LayoutproofError, match=r"none\.json cannot be read: No such file"):
        load_costs(tmp_path / "none.json")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(LayoutproofError, match="not text in UTF-8"):
        load_costs(tmp_path / "bytes.csv")
    with pytest.raises(LayoutproofError, match="cannot write"):
        save_costs({MOVE: 1}, tmp_path / "none" / "costs.json")
