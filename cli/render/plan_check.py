"""What `plan --planned` found as text for people, and as plain data for JSON."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from layoutproof.cli.output import STYLES
from layoutproof.cli.plan.checking import CheckReport
from layoutproof.cli.render.plan_json import fold_to_dict, hoisted_to_dict, left_to_dict, output_to_dict
from layoutproof.cli.render.plan_report import before_planning, limit_lines, output_lines, proof_lines, time_line
from layoutproof.cli.texts import bytes_text
from layoutproof.graph.model import Call
from layoutproof.ir.diagnostic import counted


def check_to_dict(report: CheckReport) -> dict[str, Any]:
    """The report as JSON has it."""
    return {
        "graph": report.source,
        "planned": report.planned,
        "name": report.graph.name,
        "verdict": report.proof.value,
        "strictness": sorted({word for verdict in report.verdicts for word in verdict.strictness}),
        "hoisted": [hoisted_to_dict(each) for each in report.hoisting.made],
        "folds": [fold_to_dict(fold) for fold in report.folding.made],
        "folds_refused": [fold_to_dict(fold) for fold in report.folding.refused],
        "rewrites": None if report.left is None else left_to_dict(report.left),
        "limits": [{"at_most": limit.text, "kept": all(limit is not each.limit for each in report.broken)} for limit in report.limits],
        "values": [verdict.to_dict() for verdict in report.verdicts],
        "run": None if report.outputs is None else [output_to_dict(each) for each in report.outputs],
        "written": [str(path) for path in report.written],
        "seconds": {name: round(seconds, 4) for name, seconds in report.seconds.items()},
    }


def render_check(report: CheckReport, markup: bool = False, times: bool = False) -> str:
    """The report, one fact a line; `times` adds how long each stage took."""

    def plain(text: str) -> str:
        return escape(text) if markup else text

    word = report.proof.value
    styled = f"[{STYLES[word]}]{word}[/]" if markup else word
    lines = [f"{plain(f'{report.planned} is {report.source}, planned')}: {styled}"]
    calls = sum(isinstance(step, Call) for step in report.new.steps)
    left = (
        ""
        if report.left is None
        else f", {counted(report.left.count, 'layout rewrite', 'layout rewrites')}, {bytes_text(report.left.bytes)} moved"
    )
    lines.append(f"  {counted(calls, 'call', 'calls')}{left}")
    lines += [plain(line) for line in before_planning(report.hoisting, report.folding)]
    lines += proof_lines(report.hoisting, report.folding, report.verdicts, markup)
    if report.outputs is not None:
        lines += output_lines(report.outputs, markup)
    lines += limit_lines(report.broken, markup)
    lines += [plain(f"  written: {path}") for path in report.written]
    if times:
        lines.append(time_line(report.seconds))
    return "\n".join(lines) + "\n"
