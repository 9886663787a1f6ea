"""`layoutproof study`: grids of operators, layouts and padding policies, each cell proved or refuted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from layoutproof.cli.options import Number, cache_options, file_path, jobs_option, takes
from layoutproof.cli.study.study_request import StudyRequest

if TYPE_CHECKING:
    from layoutproof.studies.runner import Shard


@click.command("study")
@click.argument("study", metavar="STUDY")
@click.argument("results", type=file_path, metavar="[FOLDER]", required=False)
@click.option("-o", "--output", type=file_path, metavar="FOLDER", help="Where results go and are taken up again.")
@jobs_option
@click.option("--shard", metavar="I/N", help="Only part I of N equal parts; the part that comes last makes the tables.")
@click.option("--dask", metavar="ADDRESS", help="Run on the Dask cluster whose scheduler is at this address.")
@click.option("--timeout", type=Number(0, 1_000_000), metavar="SECONDS", help="Give up a cell after this time.")
@cache_options
@takes(StudyRequest)
def study_command(request: StudyRequest) -> int:
    """Run a study: a file in TOML, or rfc77, semantics, operators or network, which come with the tool.

    Every cell of its grids is an operator under a layout and a padding policy, and is proved or refuted. FOLDER gets
    cells.jsonl and cells.csv, tables, figures, and index.html, where each cell links to its proof or counterexample. An
    interrupted run is resumed. `layoutproof study show FOLDER` makes the tables and the page again.

    Exit codes: 0 every cell was decided; 2 the input is wrong; 3 some cells are unknown.
    """
    from layoutproof.cli.study.study_run import run_and_report, show_again

    if request.study == "show":
        if request.results is None:
            raise click.UsageError("`study show` takes the folder of a study's results")
        return show_again(request.results)
    if request.results is not None:
        raise click.UsageError(f"`study {request.study}` takes no second argument; -o FOLDER says where results go")
    return run_and_report(request, _shard_of(request.shard))


def _shard_of(text: str | None) -> Shard:
    from layoutproof.studies.runner import Shard

    if text is None:
        return Shard()
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count) <= 10_000):
        raise click.BadParameter(
            f"expected a part and the number of parts, such as 1/4, not {text!r}", param_hint="--shard"
        )
    return Shard(int(number), int(count))
