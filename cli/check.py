"""`layoutproof check`: prove every step of a schedule, or of many schedules, one a line; or a rewrite that somebody wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from layoutproof.cli import codes
from layoutproof.cli.checking import BadLine, CheckReport, RewriteReport, check_given_rewrite, check_trace, is_rewrite, read_lines
from layoutproof.cli.options import file_path, format_option, output_option
from layoutproof.cli.output import check_writable, emit, exit_code, show
from layoutproof.cli.progress import stages
from layoutproof.cli.recheck import jobs_option, number_of_jobs
from layoutproof.cli.render.check_report import check_to_dict, render_check
from layoutproof.cli.run import choose_function
from layoutproof.ir.diagnostic import error
from layoutproof.lowering.trace import load_trace
from layoutproof.verify.certificate.processes import in_processes
from layoutproof.verify.values.licences import ALL, IEEE, Licence, Licences
from layoutproof.verify.verdict import Status, worst

PRESETS: dict[str, Licences] = {"ieee": IEEE, "finite": frozenset({Licence.NNAN, Licence.NINF, Licence.NSZ}), "reals": ALL}
EXIT_BAD_LINE = 2


def read_strictness(context: click.Context, parameter: click.Parameter, text: str) -> Licences:
    """A preset, or licences by name. Raises click.BadParameter for other words."""
    if text in PRESETS:
        return PRESETS[text]
    words = text.replace(",", " ").split()
    unknown = next((word for word in words if word not in {licence.value for licence in Licence}), None)
    if not words or unknown is not None:
        wrong = "it is empty" if unknown is None else f"{unknown!r} is none"
        raise click.BadParameter(f"{wrong} of {', '.join(PRESETS)}, or licences ({', '.join(Licence)})")
    return frozenset(Licence(word) for word in words)


@click.command("check")
@click.argument("program", type=file_path)
@click.option("--trace", "trace_path", type=file_path, metavar="TRACE.json|.jsonl", help="A schedule; or one a line.")
@click.option("--certificate", type=file_path, metavar="FILE", help="Write what was proved there, for `layoutproof recheck`.")
@click.option("--function", metavar="NAME", help="Which function, where the program has several.")
@click.option(
    "--strictness",
    "allowed",
    callback=read_strictness,
    default="reals",
    show_default=True,
    metavar="LICENCES",
    help="The float licences that proofs may use, the fewest that suffice: ieee (none), finite, reals (all), or words such as 'nnan ninf'.",
)
@jobs_option
@format_option("text", "json")
@output_option
def check_command(
    program: Path,
    trace_path: Path | None,
    certificate: Path | None,
    function: str | None,
    allowed: Licences,
    jobs: int | None,
    output_format: str,
    output: Path | None,
) -> int:
    """Prove every step of a schedule of PROGRAM (text in TVM's script syntax).

    TRACE.json holds one schedule; each line of TRACE.jsonl holds one, and gets one line of output, in the same order. The exit code is
    that of the worst: something refuted, a line that is no schedule, something unknown or vacuous.

    Without a trace, PROGRAM is a rewrite: the functions `before` and `after`, and comment lines that say which store computes which.
    """
    for path in (output, certificate):
        if path is not None:
            check_writable(path)
    if trace_path is None:
        if function is not None or not is_rewrite(program):
            raise click.UsageError("Missing option '--trace'; only a rewrite, with the functions `before` and `after`, takes none.")
        found = check_given_rewrite(program, allowed, certificate)
        _tell([Told.of(found)], output_format, output, lines=False)
        return exit_code(found.status)
    func = choose_function(program, function)
    name = f"{program}:{func.name}"
    if trace_path.suffix != ".jsonl":
        trace = load_trace(trace_path)
        with stages(len(trace) + 1) as advance:
            report = check_trace(func, name, trace, allowed, certificate, advance)
        for diagnostic in report.diagnostics:
            click.echo(diagnostic.render(), err=True)
        _tell([Told.of(report)], output_format, output, lines=False)
        return exit_code(report.status)
    if certificate is not None:
        raise error(codes.CERTIFICATE_OF_MANY, "a certificate is of one schedule; a file of many has none")
    lines = read_lines(trace_path)
    work = partial(_check_line, program=str(program), function=func.name, name=name, allowed=allowed)
    with stages(len(lines) + 1) as advance:
        reports = in_processes(work, lines, number_of_jobs(jobs), partial(_died, name=name), lambda report: advance("checking"))
    _tell(reports, output_format, output, lines=True)
    return _code(reports)


_Line = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Told:
    """What is to be said of one schedule, as plain data, which travels between processes; `status` is None for a line that is none."""

    status: Status | None
    data: dict[str, Any]
    text: str
    marked: str

    @staticmethod
    def of(report: CheckReport | RewriteReport | BadLine) -> Told:
        """A report as it will be shown."""
        status = report.status if not isinstance(report, BadLine) else None
        return Told(status, check_to_dict(report), render_check(report), render_check(report, markup=True))


def _check_line(line: _Line, *, program: str, function: str, name: str, allowed: Licences) -> Told:
    return Told.of(BadLine.or_report(choose_function(Path(program), function), name, line, allowed))


def _died(line: _Line, *, name: str) -> Told:
    return Told.of(BadLine(name, line[0], "the process that checked it ended by itself"))


def _tell(reports: Sequence[Told], output_format: str, output: Path | None, *, lines: bool) -> None:
    if output_format == "json":
        emit("".join(json.dumps(one.data, indent=None if lines else 2) + "\n" for one in reports), output)
    elif output is not None:
        emit("".join(one.text for one in reports), output)
    else:
        show("".join(one.marked for one in reports))


def _code(reports: Sequence[Told]) -> int:
    status = worst(report.status for report in reports if report.status is not None)
    if status is not Status.REFUTED and any(report.status is None for report in reports):
        return EXIT_BAD_LINE
    return exit_code(status)
