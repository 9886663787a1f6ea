"""The results of a study: its records, the tables made of them, and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from layoutproof.studies import networks
from layoutproof.studies.kernel_times import FILE, Timing, timings_of
from layoutproof.studies.report.figures import (
    fronts_figure,
    fronts_table,
    ladder_figure,
    shares_figure,
    shares_table,
    speed_figure,
    speed_table,
)
from layoutproof.studies.report.tables import Table, kinds_table, tables_of
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
    if "network" in study.tables:
        more, drawn = _of_networks(study, records, folder)
        tables, figures = [*tables, *more], {**figures, **drawn}
    if "kernels" in study.tables:
        timings: list[Timing] = timings_of(study.extra["kernels"], folder / FILE)
        tables = [*tables, speed_table(timings)]
        figures["F1"] = speed_figure(timings)
    return Results(study, records, tables, figures)


def _of_networks(
    study: Study, records: Sequence[Mapping[str, Any]], folder: Path
) -> tuple[list[Table], dict[str, str]]:
    """The tables and figures of the network study."""
    allowed = networks.allowed_by(records)
    edges = networks.edges_of_networks(folder / networks.FILE)
    blocks = [int(block) for block in study.extra["network"]["blocks"]]
    shares = [networks.shares_of(name, found, allowed) for name, found in edges.items()]
    fronts = {b: {name: networks.front_of(found, allowed, b) for name, found in edges.items()} for b in blocks}
    figures = {"F2": fronts_figure(fronts[blocks[-1]], blocks[-1]), "F3": shares_figure(shares)}
    return [shares_table(shares), fronts_table(fronts), kinds_table(records)], figures
