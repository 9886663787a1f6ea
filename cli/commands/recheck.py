"""`layoutproof recheck`: check certificates, lemmas and expected verdicts again with other solvers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli import codes
from layoutproof.cli.options import file_path, jobs_option, number_of_jobs, result_options, takes, verbose_for
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
    kernel_only: bool
    output_format: str
    output: Path | None


@click.command("recheck")
@click.argument("paths", type=file_path, nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--engine",
    "engines",
    multiple=True,
    type=click.Choice(ENGINES),
    help="The solvers to ask, may be repeated; by default all that are installed.",
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
@click.option("--kernel-only", is_flag=True, help="Judge certificates by the kernel alone: no checker, no solvers.")
@result_options
@verbose_for("Name each claim that the kernel rejects; with --kernel-only, print the programs too.")
@takes(RecheckRequest)
def recheck_command(request: RecheckRequest) -> int:
    """Check certificates, lemmas and expected verdicts again, in files and in folders.

    Every obligation is derived again from the programs in the file, every question is put to z3 and cvc5 (and bitwuzla,
    which does not support integers), and small inputs are run. A file that was changed or cut off is refused.

    The report says for each step what its proof rests on: the kernel (a small program that shares no code with the
    checker, and accepts each claim by the evidence in the certificate), two solvers, or one engine. Claims that rest on
    one engine are named; --verbose also names those that the kernel rejects.

    Large constants of a graph are in a file beside its certificate, or in one given with --arrays. Those that are not
    found are not checked, and are listed.

    Exit codes: 0 all confirmed; 1 something refuted, or with --kernel-only a step that is not accepted; 2 a file is
    damaged or cannot be read; 3 something is not confirmed.
    """
    from layoutproof.cli.output import check_output
    from layoutproof.verify.certificate.sealed_files import find_files

    if request.kernel_only and (request.engines or request.arrays):
        raise click.UsageError("--kernel-only asks no solver and reads no constants: leave out --engine and --arrays")
    check_output(request.output)
    files = find_files(request.paths)
    if not files:
        raise error(codes.NOTHING_TO_CHECK, f"nothing to check in {', '.join(map(str, request.paths))}")
    return _by_kernel(files, request) if request.kernel_only else _by_solvers(files, request)


def _by_kernel(files: Sequence[Path], request: RecheckRequest) -> int:
    # Nothing here loads a solver, or the checker.
    from layoutproof.cli.output import tell
    from layoutproof.cli.render.kernel_report import is_accepted, kernel_to_dict, render_kernel
    from layoutproof.verify.certificate.kernel_reading import judge_file

    reports = [judge_file(path) for path in files]
    tell(reports, request.output_format, request.output, kernel_to_dict, render_kernel)
    if any(report.problem is not None for report in reports):
        return EXIT_BROKEN
    return 0 if is_accepted(reports) else 1


def _by_solvers(files: Sequence[Path], request: RecheckRequest) -> int:
    from layoutproof.cli.output import stages, tell
    from layoutproof.cli.render.recheck_report import recheck_to_dict, render_recheck
    from layoutproof.graph.prove.certificate_reading import read_any
    from layoutproof.verify.certificate.recheck import recheck

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
