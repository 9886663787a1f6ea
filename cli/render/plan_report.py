"""A plan as text; and the result of `plan --planned`, as text and JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from layoutproof.cli.output import bytes_text, escaped, styled
from layoutproof.cli.plan.plan_graph import CheckReport
from layoutproof.cli.plan.plan_options import Broken, Left
from layoutproof.cli.plan.plan_result import TOLERANCE, GraphTrial, OutputComparison, PlanReport, with_operator
from layoutproof.cli.render.map_report import counterexample_text, verdict_text
from layoutproof.cli.render.plan_json import fold_to_dict, hoisted_to_dict, left_to_dict, output_to_dict
from layoutproof.graph.graph_files import step_text
from layoutproof.graph.model.graph import Call
from layoutproof.graph.planning.array_layouts import Layout, is_plain, layout_of
from layoutproof.graph.planning.costs import MeasuredCosts
from layoutproof.graph.planning.explained import Remaining
from layoutproof.graph.planning.planning_problem import cost_of
from layoutproof.graph.rewrite.fold import Folding
from layoutproof.graph.rewrite.hoist_rewrites import Hoisting
from layoutproof.ir.diagnostic import counted
from layoutproof.verify.verdict.verdict import Status, Verdict

_MOST_REMAINING = 20
_MOST_REASONS = 8
_MOST_NAMED = 3
_LONG = 160
"""Reasons that make a line longer than that stand on one of their own."""
_ABSORBED = "with some folded into calls"
_SHOWN = 0.05
"""Stages that took fewer seconds are not told."""
_NAME = re.compile(r"\b[A-Za-z_]\w*")


def render_plan(report: PlanReport, markup: bool = False, times: bool = False) -> str:
    """The plan, one fact a line: counts, remaining rewrites and their reasons, layouts, proofs, the run.

    `times` adds the duration of each stage.
    """
    word = styled(report.proof.value, report.proof, markup)
    lines = [f"{escaped(report.source, markup)}: {word}"]
    lines += [escaped(line, markup) for line in _facts(report)]
    values = report.verdicts if report.refused is None else report.refused.verdicts
    lines += proof_lines(report.hoisting, report.folding, values, markup)
    if report.trial is not None:
        lines += _run(report.trial, markup)
    lines += limit_lines(report.broken, markup)
    lines += [escaped(f"  written: {path}", markup) for path in report.written]
    if times:
        lines.append(time_line(report.seconds))
    return "\n".join(lines) + "\n"


def time_line(seconds: Mapping[str, float]) -> str:
    """The total duration, and the longest stages."""
    each = ", ".join(f"{name} {_seconds(taken)}" for name, taken in seconds.items() if taken >= _SHOWN)
    return f"  {_seconds(sum(seconds.values()))}{': ' if each else ''}{each}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s"


def _facts(report: PlanReport) -> Iterator[str]:
    """Counts and lists, without colours."""
    plan = report.plan
    constants, functions = len(report.graph.constants), len(report.graph.functions())
    yield (
        f"  {counted(report.calls, 'call', 'calls')} of {counted(functions, 'function', 'functions')}, "
        f"{counted(constants, 'constant', 'constants')}"
    )
    given = len(report.asked.calls) - len(plan.refused)
    yield f"  given a layout: {counted(given, 'call', 'calls')}"
    yield from _not_given(report)
    yield from before_planning(report.hoisting, report.folding, report.plan.assumed)
    yield from _counts(report)
    yield from _remaining(report)
    yield from (f"    padding: {text}" for text in plan.contracts)
    yield from _interface(report)
    if plan.cut:
        left = sum(plan.cut.values())
        of = counted(len(plan.cut), "call", "calls")
        yield f"  at least {counted(left, 'variant', 'variants')} of {of} left out: there were too many to choose from"
    rows = Counter[tuple[str, str]]()
    for name, layout, number in report.operators:
        rows[name, report.layout_name(layout)] += number
    if rows:
        by_index = any(layout.startswith("[") for _, layout in rows)
        yield f"  layouts of results{', with i0, i1, ... for the indices of an array' if by_index else ''}"
    wide, wider = (
        max(map(len, texts), default=0) for texts in ([name for name, _ in rows], [layout for _, layout in rows])
    )
    for (name, layout), number in rows.items():
        yield f"    {name:<{wide}}  {layout:<{wider}}  {counted(number, 'call', 'calls')}"


def _not_given(report: PlanReport) -> Iterator[str]:
    """The calls that could not have the requested layout, grouped by reason."""
    reasons: dict[str, list[str]] = {}
    for call, reason in report.plan.refused.items():
        reasons.setdefault(reason, []).append(call)
    for reason, calls in [*reasons.items()][:_MOST_REASONS]:
        more = f" and {len(calls) - 1} more" if len(calls) > 1 else ""
        yield f"    not given: {with_operator(report.plan.graph, calls[0])}{more}: {reason}"
    rest = sum(len(calls) for calls in [*reasons.values()][_MOST_REASONS:])
    if rest:
        yield f"    not given: {counted(rest, 'call', 'calls')} more; --format json has all"


def before_planning(hoisting: Hoisting, folding: Folding, assumed: Sequence[str] = ()) -> Iterator[str]:
    """Hoisting and folding before planning, and preconditions that are not checked."""
    for hoisted in hoisting.made:
        parts = ", ".join(f"{each.outer} {'before' if each.is_before else 'after'}" for each in hoisted.lifted)
        yield f"  layout rewrites taken out of {hoisted.function.name}: {parts}; the rest keeps its layouts"
    if folding.made:
        yield f"  folded: {', '.join(dict.fromkeys(fold.value for fold in folding.made))}"
    for fold in folding.made:
        if fold.assumed is not None:
            yield f"    precondition that is not checked: {fold.assumed}"
    for fold in folding.refused[:_MOST_REASONS]:
        worst = next(verdict for verdict in fold.verdicts if verdict.status is fold.status)
        example = counterexample_text(worst)
        why = worst.reason if worst.reason is not None else example if example is not None else worst.claim.text
        steps = " then ".join(step_text(step) for step in fold.old)
        yield f"    not folded: {fold.value}, {steps}: {fold.status.value}: {why.splitlines()[0]}"
    if len(folding.refused) > _MOST_REASONS:
        yield f"    and {len(folding.refused) - _MOST_REASONS} more that are not folded; --format json has all"
    yield from (f"  precondition that is not checked: {text}" for text in assumed)


def _counts(report: PlanReport) -> Iterator[str]:
    plan = report.plan
    rows = [("naive", plan.unplanned, "")]
    if not report.greedy:
        rows.append(("greedy", plan.greedy, ""))
    among = " among the variants examined" if plan.cut else ""
    if report.greedy:
        rows.append(("greedy", plan.choice, f", optimal{among}" if plan.optimal else ""))
    elif plan.optimal:
        rows.append(("optimal", plan.choice, among))
    else:
        rows.append(("best found", plan.choice, f"; lower bound {_cost(report.costs, plan.least)}"))
    width = max(
        len(name) for name in (*(name for name, _, _ in rows), *([_ABSORBED] if report.absorbed is not None else []))
    )
    yield "  layout rewrites"
    for name, choice, note in rows:
        cost = "" if report.costs is None else f", {_cost(report.costs, cost_of(plan.problem, choice))}"
        yield _count(name, width, report.moved(choice), f"{cost}{note}")
    if report.absorbed is not None:
        yield _count(_ABSORBED, width, report.left, "")
    if report.costs is not None and report.costs.measured:
        yield f"    {counted(report.costs.measured, 'rewrite was', 'rewrites were')} measured"


def _cost(costs: MeasuredCosts | None, cost: int) -> str:
    """A cost in the table's unit, as far as known; without a table, it is in bytes."""
    if costs is None:
        return bytes_text(cost)
    return f"{cost / 1e6:.3f} ms" if costs.measures else f"cost {cost:,}"


def _count(name: str, width: int, left: Left, note: str) -> str:
    return f"    {name:<{width}}  {left.count:>5}  {bytes_text(left.bytes):>9} moved{note}"


def _remaining(report: PlanReport) -> Iterator[str]:
    """The remaining rewrites, largest first; those with similar reasons together, with the reason of the largest."""
    groups: dict[tuple[Layout, Layout, str], list[Remaining]] = {}
    names = {value.name for value in report.plan.graph.values()}
    for each in report.remaining:
        alike = _NAME.sub(lambda word: "_" if word[0] in names else word[0], each.why)
        groups.setdefault((each.source, each.target, alike), []).append(each)
    shown = sorted(groups.values(), key=lambda group: -sum(each.bytes for each in group))
    for group in shown[:_MOST_REMAINING]:
        first, total = group[0], sum(each.bytes for each in group)
        named = ", ".join(dict.fromkeys(with_operator(report.plan.graph, each.value) for each in group[:_MOST_NAMED]))
        more = f" and {len(group) - _MOST_NAMED} like these" if len(group) > _MOST_NAMED else ""
        together = " together; of the first" if len(group) > 1 else ""
        moved = f"{report.layout_name(first.source)} to {report.layout_name(first.target)}, {bytes_text(total)}"
        head, why = f"    stays: {named}{more}, {moved}{together}", f"{first.why}{_otherwise(report, first)}"
        yield from (f"{head}: {why}",) if len(head) + len(why) <= _LONG else (f"{head}:", f"      {why}")
    for kept in report.kept:
        yield f"    stays: {kept.value}, padded or cropped, {bytes_text(kept.bytes)}: no call absorbs that"
    rest = [each for group in shown[_MOST_REMAINING:] for each in group]
    if rest:
        yield (
            f"    and {len(rest)} more, {bytes_text(sum(each.bytes for each in rest))} together; --format json has all"
        )


def _otherwise(report: PlanReport, left: Remaining) -> str:
    """The cost of the cheapest plan without a rewrite."""
    if left.needed:
        return " (no plan avoids it)"
    if left.more is None:
        return ""
    more = _cost(report.costs, abs(left.more))
    return f" (without it {more} more)" if left.more > 0 else f" (without it {more} less)" if left.more < 0 else ""


def limit_lines(broken: Sequence[Broken], markup: bool) -> Iterator[str]:
    """The exceeded limits, with the values."""
    for each in broken:
        found = bytes_text(each.found) if each.limit.of_bytes else f"{each.found:,}"
        word = styled("TOO MANY", Status.REFUTED, markup)
        yield f"  {word}  {escaped(f'at most {each.limit.text} allowed, got {found}', markup)}"


def _interface(report: PlanReport) -> Iterator[str]:
    """Inputs and outputs of the planned graph that have changed."""
    found = report.plan.interface
    outputs = found.outputs if found.outputs is not None else ()
    for what, name, index_map in (
        *(("passed", *item) for item in found.inputs.items()),
        *(("returned", *item) for item in outputs),
    ):
        layout = layout_of(index_map)
        if not is_plain(layout):
            yield f"  {name} is {what} as {report.layout_name(layout)}"
    yield from (f"    {said}" for said in report.padding_of_ends)


def proof_lines(hoisting: Hoisting, folding: Folding, values: Sequence[Verdict], markup: bool) -> Iterator[str]:
    """How many claims of each kind are proved, and each that is not."""
    hoists = [verdict for hoisted in hoisting.made for verdict in hoisted.verdicts]
    folds = [verdict for fold in folding.made for verdict in fold.verdicts]
    for what, verdicts in (
        ("functions taken apart", hoists),
        ("folds", folds),
        ("values of the planned graph", list(values)),
    ):
        if verdicts:
            yield f"  {counted(len(verdicts), 'claim', 'claims')} of {what}: {_statuses(verdicts)}"
    every = (*hoists, *folds, *values)
    if values and all(verdict.status is Status.PROVED for verdict in every):
        yield "  every value is preserved bit for bit"
    for verdict in every:
        if verdict.status is not Status.PROVED:
            yield f"    {escaped(verdict.claim.text, markup)}: {verdict_text(verdict, markup)}"
            example = counterexample_text(verdict)
            if example is not None:
                yield f"      {escaped(example, markup)}"


def _statuses(verdicts: list[Verdict]) -> str:
    found = Counter(verdict.status for verdict in verdicts)
    return (
        "all proved"
        if set(found) == {Status.PROVED}
        else ", ".join(f"{number} {status.value}" for status, number in found.items())
    )


def _run(trial: GraphTrial, markup: bool) -> Iterator[str]:
    """The comparison: whether outputs are equal, and the times."""
    yield from output_lines(trial.outputs, markup)
    times = (
        ("as it was given", trial.given_seconds),
        ("naive", trial.unplanned_seconds),
        ("planned", trial.planned_seconds),
    )
    yield f"  one run: {'; '.join(f'{name} {seconds * 1e3:.1f} ms' for name, seconds in times)}"
    if trial.peer is not None:
        peer = trial.peer
        word, status = ("close", Status.PROVED) if peer.close else ("DIFFERS", Status.REFUTED)
        told = (
            f"onnxruntime {peer.version}: {peer.difference:.1e} of the largest element apart at most, "
            f"{TOLERANCE:g} is allowed"
        )
        yield f"  {styled(word, status, markup)}  {escaped(told, markup)}; one run {peer.seconds * 1e3:.1f} ms"


def output_lines(outputs: Sequence[OutputComparison], markup: bool) -> Iterator[str]:
    """Whether each output is unchanged, bit for bit."""
    for each in outputs:
        word, status, told = ("DIFFERS", Status.REFUTED, f"{each.differing:,} differ")
        if not each.differing:
            word, status, told = ("equal", Status.PROVED, "bit for bit")
        cells = f"{each.cells:,} {'cell' if each.cells == 1 else 'cells'}"
        yield f"  {styled(word, status, markup)}  {escaped(f'{each.name}: {cells}, {told}', markup)}"


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
        "limits": [
            {"at_most": limit.text, "kept": all(limit is not each.limit for each in report.broken)}
            for limit in report.limits
        ],
        "values": [verdict.to_dict() for verdict in report.verdicts],
        "run": None if report.outputs is None else [output_to_dict(each) for each in report.outputs],
        "written": [str(path) for path in report.written],
        "seconds": {name: round(seconds, 4) for name, seconds in report.seconds.items()},
    }


def render_check(report: CheckReport, markup: bool = False, times: bool = False) -> str:
    """The report, one fact a line; `times` adds the duration of each stage."""
    word = report.proof.value
    title = escaped(f"{report.planned} is {report.source}, planned", markup)
    lines = [f"{title}: {styled(word, word, markup)}"]
    calls = sum(isinstance(step, Call) for step in report.new.steps)
    left = (
        ""
        if report.left is None
        else (
            f", {counted(report.left.count, 'layout rewrite', 'layout rewrites')}, "
            f"{bytes_text(report.left.bytes)} moved"
        )
    )
    lines.append(f"  {counted(calls, 'call', 'calls')}{left}")
    lines += [escaped(line, markup) for line in before_planning(report.hoisting, report.folding)]
    lines += proof_lines(report.hoisting, report.folding, report.verdicts, markup)
    if report.outputs is not None:
        lines += output_lines(report.outputs, markup)
    lines += limit_lines(report.broken, markup)
    lines += [escaped(f"  written: {path}", markup) for path in report.written]
    if times:
        lines.append(time_line(report.seconds))
    return "\n".join(lines) + "\n"
