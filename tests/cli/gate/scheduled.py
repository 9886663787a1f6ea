"""Outcomes of real schedules with what the HTML report shows of them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from tests.tree import ROOT

from layoutproof.cli.gate.judging.detail import detail_of
from layoutproof.cli.gate.outcomes import Finding, Kind, Outcome, Place
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import load
from layoutproof.lowering.passes.illegal import IllegalTransform, RefusedStep
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.lowering.schedule.trace import passes_of
from layoutproof.verify.verdict.report import worst

EXAMPLES = ROOT / "examples"
HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> & \"'\u2028\ud800 \x00"


@cache
def program(name: str) -> PrimFunc:
    """A program of the examples."""
    return load(EXAMPLES / "programs" / f"{name}.py")


def trace(name: str) -> list[Any]:
    """Its schedule, to be changed at will."""
    found: list[Any] = json.loads(Path(EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return found


def changed(name: str, step: int, **arguments: Any) -> list[Any]:
    """Its schedule with arguments of one step replaced."""
    found = trace(name)
    found[step][1].update(arguments)
    return found


def applied(func: PrimFunc, steps: list[Any]) -> tuple[Schedule, RefusedStep | None, IllegalTransform | None]:
    """The schedule as far as it goes, the step that was refused, and why."""
    schedule = Schedule(func)
    for transform in passes_of(steps):
        try:
            schedule.apply(transform)
        except IllegalTransform as problem:
            return schedule, problem.step, problem
    return schedule, None, None


def judged(name: str, func: PrimFunc, steps: list[Any]) -> Outcome:
    """The outcome of a schedule."""
    schedule, refused, problem = applied(func, steps)
    told = [step.to_dict() for step in schedule.steps]
    statuses = [verdict.status for step in schedule.steps for verdict in step.verdicts]
    findings: tuple[Finding, ...] = ()
    if problem is not None and refused is not None:
        told.append(
            {
                "primitive": refused.primitive,
                "arguments": dict(refused.arguments),
                "obligations": [verdict.to_dict() for verdict in problem.verdicts],
            }
        )
        statuses += [verdict.status for verdict in problem.verdicts]
        status = problem.status.value if problem.status is not None else None
        example = problem.verdict.counterexample if problem.verdict is not None else None
        findings = tuple(replace(Finding.of(one), status=status, counterexample=example) for one in problem.diagnostics)
    verdict = worst(statuses).value if problem is None or problem.verdicts else None
    detail = {"schedules": [detail_of(schedule, refused)]}
    return Outcome(
        Kind.TRACE, name, f"{func.name}.py", Place(f"{func.name}.py", 3), verdict, tuple(told), findings, detail=detail
    )


@cache
def samples() -> tuple[Outcome, ...]:
    """Schedules that pass and that do not: proved, not injective, a wrong pad value, a texture, no such buffer, and
    hostile texts.
    """
    texture = "lambda n, h, w, c: [n*58 + h, AXIS_SEPARATOR, c//4, w, c%4]"
    row, conv = program("row_sum"), program("conv2d")
    layout = {"block": "conv2d", "buffer": "pad_temp", "index_map": texture, "pad_value": 0.0}
    hostile = Finding(
        "LP314",
        HOSTILE,
        "refuted",
        place=Place(f"{HOSTILE}.py", 2, 3, 2, 9, f"  {HOSTILE}"),
        drawing=(HOSTILE,),
        help=HOSTILE,
    )
    return (
        judged("row_sum.py:row_sum", row, trace("row_sum")),
        judged("tuned.jsonl:1", row, changed("row_sum", 0, index_map="lambda i, j: [i//2, j]")),
        judged("tuned.jsonl:2", row, changed("row_sum", 0, pad_value=1.0)),
        judged("tuned.jsonl:3", conv, [["transform_layout", layout]]),
        judged("tuned.jsonl:4", row, changed("row_sum", 0, buffer="nothing")),
        Outcome(
            Kind.GATE,
            f"gates.py::{HOSTILE}",
            HOSTILE,
            Place(HOSTILE, 1),
            "refuted",
            findings=(hostile,),
            notes=(HOSTILE,),
        ),
    )
