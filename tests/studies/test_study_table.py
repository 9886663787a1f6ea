"""`lp.study`: the cells as a table, in Python and for dataframe libraries."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.shares import one_in

import layoutproof as lp
from layoutproof.studies.report.data_files import COLUMNS

GRID = {"operators": ["sum", "self-difference"], "types": ["int32"], "policies": ["undef-once", "zero"]}


@one_in(4)
def test_a_study_is_a_table(tmp_path: Path) -> None:
    """Rows, columns, selections and HTML agree."""
    table = lp.study(GRID, cache=str(tmp_path / "cache.sqlite"))
    assert len(table) == 4
    assert {row["operator"]: row["verdict"] for row in table.where(policy="undef-once")} == {
        "sum": "refuted",
        "self-difference": "proved",
    }
    columns = table.to_dict()
    assert list(columns) == list(COLUMNS) and {len(column) for column in columns.values()} == {4}
    assert [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)] == list(table)
    assert "self-difference" in table._repr_html_()


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    """A grid with a text in place of a list, and a column that is not there, are refused."""
    with pytest.raises(lp.LayoutproofError, match="operators: expected a list of names, not 'sum'"):
        lp.study({"operators": "sum"})
    with pytest.raises(lp.LayoutproofError, match="operatrs: there is no such key"):
        lp.study({"operatrs": ["sum"], "policies": ["zero"]})
    with pytest.raises(lp.LayoutproofError, match="there is no column 'op'"):
        lp.study({**GRID, "operators": ["self-difference"]}, cache=str(tmp_path / "c.sqlite")).where(op="sum")
