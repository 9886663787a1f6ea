"""The results of a study: its records, the tables made of them, and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from layoutproof.studies.kernel_times import FILE, Timing, timings_of
from layoutproof.studies.report.figures import ladder_figure
from layoutproof.studies.report.speed_figure import speed_figure, speed_table
from layoutproof.studies.report.tables import Table, tables_of
from layoutproof.studies.study_file import Study


@dataclass(frozen=True, slots=True)
class Results:
    """A finished study. `figures` are SVG by name."""

    study: Study
    records: Sequence[Mapping[str, Any]]
    tables: Sequence[Table]
    figures: Mapping[str, str] = field(default_factory=dict)


def results_of(study: Study, records: Sequence[Mapping[str, Any]], folder: Path) -> Results:
    """The results of a finished run; what was measured beside the cells is read from the folder."""
    tables = tables_of(study.tables, records)
    figures = {table.name: ladder_figure(table) for table in tables if table.name == "F4"}
    if "kernels" in study.tables:
        timings: list[Timing] = timings_of(study.extra["kernels"], folder / FILE)
        tables = [*tables, speed_table(timings)]
        figures["F1"] = speed_figure(timings)
    return Results(study, records, tables, figures)
