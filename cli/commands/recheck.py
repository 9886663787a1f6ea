"""`layoutproof recheck`: check certificates, lemmas and expected verdicts again with other solvers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli import codes
from layoutproof.cli.options import file_path, jobs_option, number_of_jobs, result_options, takes
from layoutproof.ir.diagnostic import error

if TYPE_CHECKING:
    from layoutproof.verify.certificate.recheck import Report

# As `verify/smt/engines.py` and `verify/certificate/recheck.py` have them, which take long to load.
ENGINES = ("z3", "cvc5", "bitwuzla")
SECONDS = 20.0
EXIT_BROKEN = 2


@dataclass(frozen=True, slots=True)
class RecheckRequest:
    """Files, and the solvers to check them with."""

    paths: tuple[Path, ...]
    engines: tuple[str, ...]
    seconds: float
    arrays: tuple[Path, ...]
    jobs: int | None
    output_format: str
    output: Path | None


@click.command("recheck")
@click.argument("paths", type=file_path, nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--engine",
    "engines",
    multiple=True,
    type=click.Choice(ENGINES),
    help="Which solvers; all that are installed unless said.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 3600),
    default=SECONDS,
    show_default=True,
    help="For each question, of each solver.",
)
@click.option(
    "--arrays",
    type=file_path,
    multiple=True,
    metavar="FILE",
    help="An .npz file with constants of graphs; may be repeated.",
)
@jobs_option
@result_options
@takes(RecheckRequest)
def recheck_command(request: RecheckRequest) -> int:
    """Check certificates, lemmas and expected verdicts again, in files and in folders.

    Every obligation is derived anew from the programs in the file, every question is put to z3 and cvc5 (and bitwuzla,
    which knows no integers), and small inputs are run. A file that was changed or cut off is refused. What rests on one
    engine is named.

    Large constants of a graph stand in a file beside its certificate, or in one given with --arrays; what is not found
    is not looked at, and said to be so.
    """
    from layoutproof.cli.output import check_output, tell
    from layoutproof.cli.progress import stages
    from layoutproof.cli.render.recheck_report import recheck_to_dict, render_recheck
    from layoutproof.graph.prove.certificate_reading import read_any
    from layoutproof.verify.certificate.reading import find_files
    from layoutproof.verify.certificate.recheck import recheck

    check_output(request.output)
    files = find_files(request.paths)
    if not files:
        raise error(codes.NOTHING_TO_CHECK, f"nothing to check in {', '.join(map(str, request.paths))}")
    engines, jobs = choose_engines(request.engines), number_of_jobs(request.jobs)
    # One file alone may share its work among processes; of several each has one.
    read = partial(read_any, arrays=request.arrays, jobs=jobs if len(files) == 1 else 1)
    report = recheck(files, engines, jobs=jobs, seconds=request.seconds, watched=stages, read=read)
    tell(report, request.output_format, request.output, recheck_to_dict, render_recheck)
    return code_of(report)


def choose_engines(wanted: Sequence[str]) -> dict[str, str]:
    """The solvers to ask, with their versions. Raises LayoutproofError for fewer than two, or for one that is not
    installed.
    """
    from layoutproof.verify.smt.engines import installed

    there = installed()
    missing = [engine for engine in wanted if engine not in there]
    chosen = {name: version for name, version in there.items() if not wanted or name in wanted}
    if missing or len(chosen) < 2:
        what = (
            f"{', '.join(missing)} is not installed"
            if missing
            else f"two solvers are needed, there is {', '.join(chosen) or 'none'}"
        )
        raise error(codes.SOLVERS, what, help="the others come with `pip install 'layoutproof[recheck]'`")
    return chosen


def code_of(report: Report) -> int:
    """The exit code: refuted before broken before unknown."""
    from layoutproof.cli.output import exit_code
    from layoutproof.verify.verdict.verdict import Status

    if report.status is not Status.REFUTED and report.broken:
        return EXIT_BROKEN
    return exit_code(report.status)
