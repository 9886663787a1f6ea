"""A plan as text for people, and as plain data for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rich.markup import escape

from layoutproof.cli.output import STYLES
from layoutproof.cli.plan_report import PlanReport
from layoutproof.cli.plan_trial import GraphTrial
from layoutproof.cli.render.text import counterexample_text, verdict_text
from layoutproof.graph.fold import Fold
from layoutproof.graph.planning.layouts import is_plain, layout_of
from layoutproof.graph.planning.problem import Choice, cost_of
from layoutproof.ir.diagnostic import counted
from layoutproof.ir.map_text import index_map_text
from layoutproof.verify.verdict import Status, Verdict

_MOST_REMAINING = 20
_MOST_REASONS = 8


def plan_to_dict(report: PlanReport) -> dict[str, Any]:
    """A plan as JSON has it: what was asked, counted, left over, and every verdict."""
    plan = report.plan
    return {
        "graph": report.source,
        "name": report.graph.name,
        "verdict": report.status.value,
        "strictness": sorted({word for verdict in report.claims for word in verdict.strictness}),
        "calls": report.calls,
        "functions": len(report.graph.functions()),
        "constants": len(report.graph.constants),
        "asked": {call: {array: index_map_text(m) for array, m in maps.items()} for call, maps in report.asked.calls.items()},
        "not_given": dict(plan.refused),
        "folds": [_fold_to_dict(fold) for fold in report.folding.made],
        "rewrites": {
            "before": _count_to_dict(report, plan.unplanned),
            "greedy": _count_to_dict(report, plan.greedy),
            "planned": _count_to_dict(report, plan.choice),
            "by": "greedy" if report.greedy else "exact",
            "optimal": plan.optimal,
        },
        "remaining": [each.to_dict() for each in plan.remaining],
        "padding": list(plan.contracts),
        "left_out": dict(plan.cut),
        "interface": _interface_to_dict(report),
        "operators": [{"operator": name, "layout": layout, "calls": number} for name, layout, number in report.operators],
        "values": [verdict.to_dict() for verdict in report.verdicts],
        "refused": None if report.refused is None else [verdict.to_dict() for verdict in report.refused.verdicts],
        "run": None if report.trial is None else _trial_to_dict(report.trial),
        "written": [str(path) for path in report.written],
    }


def _count_to_dict(report: PlanReport, choice: Choice) -> dict[str, int]:
    return {"count": report.plan.count(choice), "bytes": cost_of(report.plan.problem, choice)}


def _interface_to_dict(report: PlanReport) -> dict[str, Any]:
    """By inputs and outputs that are not as they were, their layouts."""
    found = report.plan.interface
    outputs = found.outputs if found.outputs is not None else ()
    return {
        "inputs": {name: index_map_text(index_map) for name, index_map in found.inputs.items()},
        "outputs": [{"value": name, "layout": index_map_text(index_map)} for name, index_map in outputs],
    }


def _fold_to_dict(fold: Fold) -> dict[str, Any]:
    return {"value": fold.value, "assumed": fold.assumed, "obligations": [verdict.to_dict() for verdict in fold.verdicts]}


def _trial_to_dict(trial: GraphTrial) -> dict[str, Any]:
    return {
        "equal": trial.equal,
        "outputs": [{"value": each.name, "cells": each.cells, "differing": each.differing} for each in trial.outputs],
        "given_seconds": trial.given_seconds,
        "unplanned_seconds": trial.unplanned_seconds,
        "planned_seconds": trial.planned_seconds,
    }


def render_plan(report: PlanReport, markup: bool = False) -> str:
    """The plan, one fact a line: what is counted, what is left and why, who has which layout, what is proved, what was run."""
    word = _styled(report.status.value, report.status, markup)
    lines = [f"{_plain(report.source, markup)}: {word}"]
    lines += [_plain(line, markup) for line in _facts(report)]
    lines += _proved(report, markup)
    if report.trial is not None:
        lines += _run(report.trial, markup)
    lines += [_plain(f"  written: {path}", markup) for path in report.written]
    return "\n".join(lines) + "\n"


def _plain(text: str, markup: bool) -> str:
    return escape(text) if markup else text


def _styled(text: str, status: Status, markup: bool) -> str:
    return f"[{STYLES[status]}]{text}[/]" if markup else text


def _facts(report: PlanReport) -> Iterator[str]:
    """What is counted and listed, without colours."""
    plan = report.plan
    constants, functions = len(report.graph.constants), len(report.graph.functions())
    yield (
        f"  {counted(report.calls, 'call', 'calls')} of {counted(functions, 'function', 'functions')}, "
        f"{counted(constants, 'constant', 'constants')}"
    )
    given = len(report.asked.calls) - len(plan.refused)
    yield f"  given a layout: {counted(given, 'call', 'calls')}"
    yield from _not_given(plan.refused)
    if report.folding.made:
        yield f"  folded: {', '.join(dict.fromkeys(fold.value for fold in report.folding.made))}"
    for fold in report.folding.made:
        if fold.assumed is not None:
            yield f"    on its author's word: {fold.assumed}"
    yield from _counts(report)
    yield from _remaining(report)
    yield from (f"    padding: {text}" for text in plan.contracts)
    yield from _interface(report)
    if plan.cut:
        left = sum(plan.cut.values())
        of = counted(len(plan.cut), "call", "calls")
        yield f"  {counted(left, 'variant', 'variants')} of {of} left out: there were too many to choose from"
    if report.calls:
        yield "  layouts of results"
    rows = Counter[tuple[str, str]]()
    for name, layout, number in report.operators:
        rows[name, report.layout_name(layout)] += number
    wide, wider = (max(map(len, texts), default=0) for texts in ([name for name, _ in rows], [layout for _, layout in rows]))
    for (name, layout), number in rows.items():
        yield f"    {name:<{wide}}  {layout:<{wider}}  {counted(number, 'call', 'calls')}"


def _not_given(refused: Mapping[str, str]) -> Iterator[str]:
    """The calls that could not have what was asked for, those with one reason together."""
    reasons: dict[str, list[str]] = {}
    for call, reason in refused.items():
        reasons.setdefault(reason, []).append(call)
    for reason, calls in [*reasons.items()][:_MOST_REASONS]:
        more = f" and {len(calls) - 1} more" if len(calls) > 1 else ""
        yield f"    not given: {calls[0]}{more}: {reason}"
    rest = sum(len(calls) for calls in [*reasons.values()][_MOST_REASONS:])
    if rest:
        yield f"    not given: {counted(rest, 'call', 'calls')} more; --format json has all"


def _counts(report: PlanReport) -> Iterator[str]:
    plan = report.plan
    rows = [("as asked, nothing planned", plan.unplanned, "")]
    if not report.greedy:
        rows.append(("by a greedy walk", plan.greedy, ""))
    how = ", by a greedy walk" if report.greedy else ", and nothing cheaper is possible" if plan.optimal else ", the best that was found"
    rows.append(("planned", plan.choice, how))
    width = max(len(name) for name, _, _ in rows)
    yield "  layout rewrites"
    for name, choice, note in rows:
        number = plan.count(choice)
        yield f"    {name:<{width}}  {number:>5}  {_bytes(cost_of(plan.problem, choice)):>9} moved{note}"


def _remaining(report: PlanReport) -> Iterator[str]:
    left = report.plan.remaining
    for each in left[:_MOST_REMAINING]:
        source, target = report.layout_name(each.source), report.layout_name(each.target)
        yield f"    stays: {each.value}, {source} to {target}, {_bytes(each.bytes)}: {each.why}"
    if len(left) > _MOST_REMAINING:
        rest = sum(each.bytes for each in left[_MOST_REMAINING:])
        yield f"    and {len(left) - _MOST_REMAINING} more, {_bytes(rest)} together; --format json has all"


def _interface(report: PlanReport) -> Iterator[str]:
    """Inputs and outputs that the planned graph has otherwise."""
    found = report.plan.interface
    outputs = found.outputs if found.outputs is not None else ()
    for what, name, index_map in (*(("comes", *item) for item in found.inputs.items()), *(("goes out", *item) for item in outputs)):
        layout = layout_of(index_map)
        if not is_plain(layout):
            yield f"  {name} {what} as {report.layout_name(layout)}"


def _bytes(number: int) -> str:
    return f"{number:,} B" if number < 10_000 else f"{number / 1e3:,.1f} kB" if number < 1e6 else f"{number / 1e6:,.1f} MB"


def _proved(report: PlanReport, markup: bool) -> Iterator[str]:
    """How many values are proved, and each claim that is not."""
    folds = [verdict for fold in report.folding.made for verdict in fold.verdicts]
    for what, verdicts in (("folds", folds), ("values of the planned graph", list(report.verdicts))):
        if verdicts:
            yield f"  {counted(len(verdicts), 'claim', 'claims')} of {what}: {_statuses(verdicts)}"
    if report.verdicts and report.status is Status.PROVED:
        yield "  every value holds bit for bit what it held"
    for verdict in report.claims:
        if verdict.status is not Status.PROVED:
            yield f"    {_plain(verdict.claim, markup)}: {verdict_text(verdict, markup)}"
            example = counterexample_text(verdict)
            if example is not None:
                yield f"      {_plain(example, markup)}"


def _statuses(verdicts: list[Verdict]) -> str:
    found = Counter(verdict.status for verdict in verdicts)
    return "all proved" if set(found) == {Status.PROVED} else ", ".join(f"{number} {status.value}" for status, number in found.items())


def _run(trial: GraphTrial, markup: bool) -> Iterator[str]:
    """What was run: whether outputs are equal, and the times."""
    for each in trial.outputs:
        word, status, told = ("DIFFERS", Status.REFUTED, f"{each.differing:,} differ")
        if not each.differing:
            word, status, told = ("equal", Status.PROVED, "bit for bit")
        cells = f"{each.cells:,} {'cell' if each.cells == 1 else 'cells'}"
        yield f"  {_styled(word, status, markup)}  {_plain(f'{each.name}: {cells}, {told}', markup)}"
    times = (
        ("as it was given", trial.given_seconds),
        ("as asked, nothing planned", trial.unplanned_seconds),
        ("planned", trial.planned_seconds),
    )
    yield f"  one run: {'; '.join(f'{name} {seconds * 1e3:.1f} ms' for name, seconds in times)}"
