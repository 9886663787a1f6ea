"""`layoutproof pad-values`: which pad values of a buffer would make guards of a block unnecessary."""

from __future__ import annotations

import json
from pathlib import Path

import click

from layoutproof.cli.options import file_path, format_option, output_option
from layoutproof.cli.output import check_writable, emit, exit_code
from layoutproof.cli.run import choose_function
from layoutproof.lowering.padding.report import PadValueReport
from layoutproof.lowering.schedule import Schedule
from layoutproof.lowering.trace import load_trace
from layoutproof.verify.verdict import Status


@click.command("pad-values")
@click.argument("program", type=file_path)
@click.option("--trace", "trace_path", type=file_path, metavar="TRACE.json", required=True, help="A schedule that re-lays the buffer.")
@click.option("--block", required=True, metavar="NAME", help="The block whose guards are to go.")
@click.option("--buffer", required=True, metavar="NAME", help="The buffer whose pad value is to be chosen.")
@click.option("--function", metavar="NAME", help="Which function, where the program has several.")
@format_option("text", "json")
@output_option
def pad_values(
    program: Path, trace_path: Path, block: str, buffer: str, function: str | None, output_format: str, output: Path | None
) -> int:
    """Try pad values for a buffer of PROGRAM that the schedule re-lays, and say which guards of a block each would remove.

    Tried are no contract, undef, the identities of the reductions seen, zero, one and the ends of the type; each answer is proved, with
    the licences that it needs. The exit code is 0 where some candidate removes a guard.
    """
    if output is not None:
        check_writable(output)
    schedule = Schedule.replay(choose_function(program, function), load_trace(trace_path))
    report = schedule.pad_value_search(block, buffer)
    emit(json.dumps(report.to_dict(), indent=2) + "\n" if output_format == "json" else f"{report}\n", output)
    return exit_code(_status(report))


def _status(report: PadValueReport) -> Status:
    """Whether there is a value; where there is none, whether that is known."""
    if report.best is not None:
        return Status.PROVED
    outcomes = [outcome.status for row in report.rows for outcome in row.outcomes.values()]
    return Status.REFUTED if outcomes and set(outcomes) == {Status.REFUTED} else Status.UNKNOWN
