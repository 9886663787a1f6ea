"""`layoutproof pad-values`: pad values of a buffer that make guards of a block unnecessary."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli.options import file_path, function_option, result_options, takes

if TYPE_CHECKING:
    from layoutproof.lowering.padding.value_search import PadValueReport
    from layoutproof.verify.verdict.verdict import Status


@dataclass(frozen=True, slots=True)
class PadValuesRequest:
    """A program with its schedule, the block, the buffer, and the output."""

    program: Path
    trace_path: Path
    block: str
    buffer: str
    function: str | None
    output_format: str
    output: Path | None


@click.command("pad-values")
@click.argument("program", type=file_path)
@click.option(
    "--trace",
    "trace_path",
    type=file_path,
    metavar="TRACE.json",
    required=True,
    help="A schedule that changes the buffer's layout.",
)
@click.option("--block", required=True, metavar="NAME", help="The block whose guards are to be removed.")
@click.option("--buffer", required=True, metavar="NAME", help="The buffer whose pad value is to be chosen.")
@function_option
@result_options
@takes(PadValuesRequest)
def pad_values_command(request: PadValuesRequest) -> int:
    """Try pad values for a buffer of PROGRAM whose layout the schedule changes, and say which guards of a block each
    would remove.

    The candidates are no contract, undef, the identities of the block's reductions, zero, one and the extreme values of
    the type. Each answer is proved, with the fast-math assumptions that it needs.

    Exit codes: 0 some candidate removes a guard; 1 each is refuted; 2 the input is wrong; 3 some are not decided.
    """
    from layoutproof.cli.gate.loading import read_program
    from layoutproof.cli.output import answer_text, check_output, emit, exit_code, stages
    from layoutproof.lowering.schedule.schedule import Schedule
    from layoutproof.lowering.schedule.trace import load_trace

    check_output(request.output)
    func, trace = read_program(str(request.program), request.function), load_trace(request.trace_path)
    with stages(2) as advance:
        advance("proving the schedule")
        schedule = Schedule.replay(func, trace)
        advance("trying pad values")
        report = schedule.pad_value_search(request.block, request.buffer)
    emit(answer_text(report.to_dict()) if request.output_format == "json" else f"{report}\n", request.output)
    return exit_code(_status(report))


def _status(report: PadValueReport) -> Status:
    """Proved if there is a value; else refuted, or unknown where some candidate was not decided."""
    from layoutproof.verify.verdict.verdict import Status

    if report.best is not None:
        return Status.PROVED
    outcomes = [outcome.status for row in report.rows for outcome in row.outcomes.values()]
    return Status.REFUTED if outcomes and set(outcomes) == {Status.REFUTED} else Status.UNKNOWN
