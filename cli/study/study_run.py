"""Runs a study for the command line: progress on terminals, then data, tables, figures and the page as files."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from layoutproof.cli import codes
from layoutproof.cli.study.page import study_page
from layoutproof.ir.diagnostic import counted
from layoutproof.studies.report.data_files import csv_text, json_lines, machine, read_records
from layoutproof.studies.report.facts import text_of
from layoutproof.studies.report.results import Results, results_of
from layoutproof.studies.runner import Progress, RunOptions, run_study
from layoutproof.studies.study_file import Study, load_study
from layoutproof.verify.certificate.sealed_files import write_whole_files

EXIT_DECIDED, EXIT_UNKNOWN = 0, 3


def run_and_report(name: str, output: Path | None, options: RunOptions) -> int:
    """Run a study or a part of it; once all parts are there, write the results."""
    study, shard = load_study(name), options.shard
    folder = output if output is not None else Path(f"study-{study.name}")
    with _telling(len(shard.of(study.cells()))) as told:
        records = run_study(study, folder, options, told)
    if records is None:
        click.echo(f"part {shard.number} of {shard.count} is done; the part that comes last makes the tables")
        return EXIT_DECIDED
    return _write(study, records, folder)


def show_again(folder: Path) -> int:
    """Make tables, figures and the page of a folder's results again."""
    study = load_study(str(folder / "study.toml"))
    return _write(study, read_records(folder), folder)


def _write(study: Study, records: Sequence[Mapping[str, Any]], folder: Path) -> int:
    results = results_of(study, records, folder)
    files: dict[Path, str] = {
        folder / "cells.jsonl": json_lines(study, records),
        folder / "cells.csv": csv_text(records),
        folder / "study.toml": study.text,
        folder / "machine.json": f"{json.dumps(machine(), indent=2)}\n",
        folder / "text.md": text_of(results),
        folder / "index.html": study_page(results),
    }
    files |= {folder / f"{name}.svg": figure for name, figure in results.figures.items()}
    write_whole_files({path: text.encode() for path, text in files.items()}, codes.FILE_ACCESS)
    click.echo(_summary(results))
    click.echo(f"{folder / 'index.html'} has the tables, and behind each cell its proof or counterexample")
    return EXIT_UNKNOWN if any(record["verdict"] in ("unknown", "vacuous") for record in records) else EXIT_DECIDED


def _summary(results: Results) -> str:
    found = Counter(record["verdict"] for record in results.records)
    tables = "\n".join(table.text() for table in results.tables)
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(found.items()))
    return f"{tables}\n{results.study.title}: {counted(len(results.records), 'cell', 'cells')}: {told}"


@contextmanager
def _telling(total: int) -> Iterator[Callable[[Progress], None]]:
    """What is called with each finished cell: a bar with the time left on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda progress: bar.update(task, completed=progress.done, description=progress.cell.key)
