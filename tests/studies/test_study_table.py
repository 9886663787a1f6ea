"""`lp.study`: the cells as a table, in Python and for dataframe libraries."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from tests.shares import one_in

import layoutproof as lp
from layoutproof.studies.report.data_files import COLUMNS
from layoutproof.studies.report.interchange import Buffer, Column

GRID = {"operators": ["sum", "self-difference"], "types": ["int32"], "policies": ["undef-once", "zero"]}


def text_of(column: Column) -> list[str]:
    """The texts of a column, read from its memory as another library would."""
    buffers = column.get_buffers()
    data, offsets = buffers["data"][0], buffers["offsets"][0]
    assert isinstance(data, Buffer)
    raw = ctypes.string_at(data.ptr, data.bufsize)
    ends = (ctypes.c_int64 * (column.size() + 1)).from_address(offsets.ptr)
    return [raw[ends[n] : ends[n + 1]].decode() for n in range(column.size())]


@one_in(2)
def test_a_study_is_a_table(tmp_path: Path) -> None:
    """Rows, columns, selections and HTML agree, and the interchange protocol has the same values in memory."""
    table = lp.study(GRID, cache=str(tmp_path / "cache.sqlite"))
    assert len(table) == 4
    assert {row["operator"]: row["verdict"] for row in table.where(policy="undef-once")} == {
        "sum": "refuted",
        "self-difference": "proved",
    }
    frame = table.__dataframe__()
    assert (frame.column_names(), frame.num_rows()) == (list(COLUMNS), 4)
    assert text_of(frame.get_column_by_name("verdict")) == table.to_dict()["verdict"]
    guards = frame.get_column_by_name("guards")
    numbers = guards.get_buffers()["data"][0]
    assert list((ctypes.c_int64 * guards.size()).from_address(numbers.ptr)) == table.to_dict()["guards"]
    assert [part.num_rows() for part in frame.get_chunks(2)] == [2, 2]
    assert "self-difference" in table._repr_html_()


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    """A grid with a text in place of a list, and a column that is not there, are refused."""
    with pytest.raises(lp.LayoutproofError, match="operators: expected a list of names, not 'sum'"):
        lp.study({"operators": "sum"})
    with pytest.raises(lp.LayoutproofError, match="operatrs: there is no such key"):
        lp.study({"operatrs": ["sum"], "policies": ["zero"]})
    with pytest.raises(lp.LayoutproofError, match="there is no column 'op'"):
        lp.study({**GRID, "operators": ["self-difference"]}, cache=str(tmp_path / "c.sqlite")).where(op="sum")
