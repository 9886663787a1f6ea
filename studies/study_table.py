"""`lp.study`: a study in Python and in notebooks, as a table that dataframe libraries take."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from layoutproof.ir import codes as ir_codes
from layoutproof.ir.diagnostic import error, wrong_type
from layoutproof.studies import codes
from layoutproof.studies.report.data_files import COLUMNS, row_of
from layoutproof.studies.report.facts import Fact, facts_of
from layoutproof.studies.report.tables import Table, tables_of
from layoutproof.studies.runner import RunOptions, run_study
from layoutproof.studies.study_file import Study, load_study, parse_study
from layoutproof.verify.workers.endings import Limits

_COLOURS = {"proved": "#d9ecf7", "refuted": "#fbe3c8"}
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class StudyTable:
    """The cells of a study, one row each. `records` have all that is known of each cell.

    `pandas.DataFrame(table.to_dict())` and `polars.DataFrame(table.to_dict())` make data frames of its columns.
    """

    study: Study
    records: Sequence[Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (row_of(record) for record in self.records)

    def __repr__(self) -> str:
        return f"<study {self.study.name}: {len(self.records)} cells>"

    @property
    def tables(self) -> list[Table]:
        """The tables that the study asks for."""
        return tables_of(self.study.tables, self.records)

    @property
    def facts(self) -> list[Fact]:
        """What the cells say, each sentence with the cells that it stands on."""
        return facts_of(self.records)

    def where(self, **coordinates: str) -> StudyTable:
        """The cells with these coordinates, such as `operator="sum"`. Raises LayoutproofError for another column."""
        for name in coordinates:
            if name not in COLUMNS:
                raise error(codes.STUDY_FILE, f"there is no column {name!r}", help=f"columns are {', '.join(COLUMNS)}")
        rows = ((record, row_of(record)) for record in self.records)
        chosen = [record for record, row in rows if all(str(row[n]) == value for n, value in coordinates.items())]
        return StudyTable(self.study, chosen)

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns by name."""
        rows = list(self)
        return {name: [row[name] for row in rows] for name in COLUMNS}

    def _repr_html_(self) -> str:
        parts = [_html(table) for table in self.tables]
        return "".join(parts) if parts else f"<p>{escape(repr(self))}</p>"


def _html(table: Table) -> str:
    heads = "".join(f"<th>{escape(name)}</th>" for name in (*table.corner, *table.columns))
    rows = "".join(
        "<tr>"
        + "".join(f"<th>{escape(word)}</th>" for word in names)
        + "".join(
            f'<td style="background:{_COLOURS.get(e.verdict, "none")}" title="{escape(e.tip)}">{escape(e.text)}</td>'
            for e in entries
        )
        + "</tr>"
        for names, entries in table.rows[:_SHOWN]
    )
    more = len(table.rows) - _SHOWN
    left = f"<p>and {more} more rows</p>" if more > 0 else ""
    return f"<h4>{escape(table.title)}</h4><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{left}"


def study(
    what: str | Mapping[str, Any], *, jobs: int = 1, output: str | Path | None = None, cache: str | None = ""
) -> StudyTable:
    """Run a study and give its cells as a table.

    `what` is the name of a study that comes with the tool, the path of a study file, or one grid as a mapping:
    `{"operators": ["sum"], "policies": ["undef-once"], "types": ["float32"]}`. Results are kept in the folder `output`
    and taken up again there. `cache` is the place of the proof cache, None for none. Raises LayoutproofError for a
    study that is not well-formed and a folder that cannot be used.
    """
    if not isinstance(what, str | Mapping):
        raise wrong_type(ir_codes.ARGUMENT, "study, argument 'what'", what, "a name, a path or a grid")
    chosen = load_study(what) if isinstance(what, str) else parse_study(_grid_text(what), "study", Path())
    options = RunOptions(Limits(workers=jobs), cache=cache)
    if output is not None:
        records = run_study(chosen, Path(output), options)
    else:
        with tempfile.TemporaryDirectory(prefix="layoutproof-study-") as folder:
            records = run_study(chosen, Path(folder), options)
    assert records is not None, "a run that is one shard has all cells"
    return StudyTable(chosen, records)


def _grid_text(grid: Mapping[str, Any]) -> str:
    """A grid as a study file. Raises LayoutproofError for a value that is no list of names."""
    lines = ["schema = 1", 'name = "study"', 'tables = ["values", "semantics"]', "[[grid]]"]
    for key, names in grid.items():
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise error(codes.STUDY_FILE, f"study: {key}: expected a list of names, not {names!r}")
        listed = ", ".join(f'"{name}"' for name in names)
        lines.append(f"{key} = [{listed}]")
    return "\n".join(lines) + "\n"
