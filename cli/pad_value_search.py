"""What `pad-values` does: which pad values of a buffer would make guards of a block unnecessary."""

from __future__ import annotations

import json
from pathlib import Path

from layoutproof.cli.output import check_writable, emit, exit_code
from layoutproof.cli.values import choose_function
from layoutproof.lowering.padding.report import PadValueReport
from layoutproof.lowering.schedule import Schedule
from layoutproof.lowering.trace import load_trace
from layoutproof.verify.verdict import Status


def search_pad_values(
    program: Path, trace_path: Path, block: str, buffer: str, function: str | None, output_format: str, output: Path | None
) -> int:
    """Try pad values as the options of `pad-values` say, which these are; return the exit code. Raises LayoutproofError for bad input."""
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
