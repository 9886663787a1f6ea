"""`layoutproof recheck`: certificates, lemmas and expected verdicts again, from their files alone, with other solvers."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import click

from layoutproof.cli import codes
from layoutproof.cli.options import file_path, format_option, output_option
from layoutproof.cli.output import check_writable, emit, exit_code, show
from layoutproof.cli.progress import stages
from layoutproof.cli.render.recheck_report import recheck_to_dict, render_recheck
from layoutproof.ir.diagnostic import error
from layoutproof.verify.certificate.reading import find_files
from layoutproof.verify.certificate.recheck import SECONDS, Report, recheck
from layoutproof.verify.smt.engines import ENGINES, installed
from layoutproof.verify.verdict import Status

EXIT_BROKEN = 2
jobs_option = click.option(
    "--jobs", type=click.IntRange(1, 256), metavar="N", help="Processes to use; as many as there are cores unless said."
)


@click.command("recheck")
@click.argument("paths", type=file_path, nargs=-1, required=True, metavar="PATH...")
@click.option("--engine", "engines", multiple=True, type=click.Choice(ENGINES), help="Which solvers; all that are installed unless said.")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=SECONDS, show_default=True, help="For each question, of each solver.")
@jobs_option
@format_option("text", "json")
@output_option
def recheck_command(
    paths: Sequence[Path], engines: Sequence[str], seconds: float, jobs: int | None, output_format: str, output: Path | None
) -> int:
    """Check certificates, lemmas and expected verdicts again, in files and in folders.

    Every obligation is derived anew from the programs in the file, every question is put to z3 and cvc5 (and bitwuzla, which knows
    no integers), and small inputs are run. A file that was changed or cut off is refused. What rests on one engine is named.
    """
    if output is not None:
        check_writable(output)
    files = find_files(paths)
    if not files:
        raise error(codes.NOTHING_TO_CHECK, f"nothing to check in {', '.join(map(str, paths))}")
    chosen = choose_engines(engines)
    report = recheck(files, chosen, jobs=number_of_jobs(jobs), seconds=seconds, watched=stages)
    if output_format == "json":
        emit(json.dumps(recheck_to_dict(report), indent=2) + "\n", output)
    elif output is not None:
        emit(render_recheck(report), output)
    else:
        show(render_recheck(report, markup=True))
    return code_of(report)


def number_of_jobs(jobs: int | None) -> int:
    """What was asked for, or one for each core that this process may use."""
    return len(os.sched_getaffinity(0)) if jobs is None else jobs


def choose_engines(wanted: Sequence[str]) -> dict[str, str]:
    """The solvers to ask, with their versions. Raises LayoutproofError where there are fewer than two, or one is not installed."""
    there = installed()
    missing = [engine for engine in wanted if engine not in there]
    chosen = {name: version for name, version in there.items() if not wanted or name in wanted}
    if missing or len(chosen) < 2:
        what = f"{', '.join(missing)} is not installed" if missing else f"two solvers are needed, there is {', '.join(chosen) or 'none'}"
        raise error(codes.SOLVERS, what, help="the others come with `pip install 'layoutproof[recheck]'`")
    return chosen


def code_of(report: Report) -> int:
    """Refuted before broken before unknown: the process's exit code."""
    if report.status is not Status.REFUTED and report.broken:
        return EXIT_BROKEN
    return exit_code(report.status)
