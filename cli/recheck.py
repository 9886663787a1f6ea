"""`layoutproof recheck`: certificates, lemmas and expected verdicts again, from their files alone, with other solvers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from layoutproof.cli.options import file_path, format_option, output_option

# As `verify/smt/engines.py` and `verify/certificate/recheck.py` have them, which take long to load.
ENGINES = ("z3", "cvc5", "bitwuzla")
SECONDS = 20.0
jobs_option = click.option(
    "--jobs", type=click.IntRange(1, 256), metavar="N", help="Processes to use; as many as there are cores unless said."
)


@click.command("recheck")
@click.argument("paths", type=file_path, nargs=-1, required=True, metavar="PATH...")
@click.option("--engine", "engines", multiple=True, type=click.Choice(ENGINES), help="Which solvers; all that are installed unless said.")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=SECONDS, show_default=True, help="For each question, of each solver.")
@click.option("--arrays", type=file_path, multiple=True, metavar="FILE", help="An .npz file with constants of graphs; may be repeated.")
@jobs_option
@format_option("text", "json")
@output_option
def recheck_command(
    paths: Sequence[Path],
    engines: Sequence[str],
    seconds: float,
    arrays: Sequence[Path],
    jobs: int | None,
    output_format: str,
    output: Path | None,
) -> int:
    """Check certificates, lemmas and expected verdicts again, in files and in folders.

    Every obligation is derived anew from the programs in the file, every question is put to z3 and cvc5 (and bitwuzla, which knows
    no integers), and small inputs are run. A file that was changed or cut off is refused. What rests on one engine is named.

    Large constants of a graph stand in a file beside its certificate, or in one given with --arrays; what is not found is not looked
    at, and said to be so.
    """
    from layoutproof.cli.rechecking import recheck_files

    return recheck_files(paths, engines, seconds, number_of_jobs(jobs), output_format, output, arrays)


def number_of_jobs(jobs: int | None) -> int:
    """What was asked for, or one for each core that this process may use."""
    return len(os.sched_getaffinity(0)) if jobs is None else jobs
