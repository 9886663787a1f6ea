"""What `recheck` does: certificates, lemmas and expected verdicts again, from their files alone, with other solvers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from layoutproof.cli import codes
from layoutproof.cli.output import check_writable, emit, exit_code, show
from layoutproof.cli.progress import stages
from layoutproof.cli.render.recheck_report import recheck_to_dict, render_recheck
from layoutproof.graph.certificate_reading import read_any
from layoutproof.ir.diagnostic import error
from layoutproof.verify.certificate.reading import find_files
from layoutproof.verify.certificate.recheck import Report, recheck
from layoutproof.verify.smt.engines import installed
from layoutproof.verify.verdict import Status

EXIT_BROKEN = 2


def recheck_files(
    paths: Sequence[Path],
    engines: Sequence[str],
    seconds: float,
    jobs: int,
    output_format: str,
    output: Path | None,
    arrays: Sequence[Path] = (),
) -> int:
    """Check files again as the options of `recheck` say, which these are; return the exit code. Raises LayoutproofError for bad input."""
    if output is not None:
        check_writable(output)
    files = find_files(paths)
    if not files:
        raise error(codes.NOTHING_TO_CHECK, f"nothing to check in {', '.join(map(str, paths))}")
    chosen = choose_engines(engines)
    # One file alone may share its work among processes; of several each has one.
    read = partial(read_any, arrays=tuple(arrays), jobs=jobs if len(files) == 1 else 1)
    report = recheck(files, chosen, jobs=jobs, seconds=seconds, watched=stages, read=read)
    if output_format == "json":
        emit(json.dumps(recheck_to_dict(report), indent=2) + "\n", output)
    elif output is not None:
        emit(render_recheck(report), output)
    else:
        show(render_recheck(report, markup=True))
    return code_of(report)


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
