"""An outcome's contents besides findings (steps as plain data, notes, times), and the outcomes of gates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutproof.cli.gate.check_items import Options
from layoutproof.cli.gate.judging import compared
from layoutproof.cli.gate.judging.findings import digest, nothing_proved, of_verdict, of_verdicts
from layoutproof.cli.gate.loading import remarks_on
from layoutproof.cli.gate.outcomes import Finding, Outcome, Place, steady_path, step_of
from layoutproof.ir.text import Style, expr_text
from layoutproof.verify.values.fast_math import FastMath, names_of
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import ClaimKind, Status, Verdict

if TYPE_CHECKING:
    from layoutproof.ir.primfunc import PrimFunc
    from layoutproof.lowering.compare.comparison import Comparison
    from layoutproof.lowering.passes.illegal import IllegalTransform
    from layoutproof.lowering.schedule.schedule import Schedule
    from layoutproof.verify.maps.map_report import MapReport

    Result = Schedule | MapReport | Verdict | Comparison

Step = Mapping[str, Any]


def steps_of(schedule: Schedule | None, problem: IllegalTransform | None = None) -> tuple[Step, ...]:
    """The steps of a schedule, the refused one last, with the obligations that were not proved."""
    applied = schedule.steps if schedule is not None else ()
    steps = [step_of(step.transform.primitive, step.transform.arguments(), step.verdicts) for step in applied]
    if problem is not None:
        primitive, arguments = (
            (problem.step.primitive, problem.step.arguments) if problem.step is not None else ("step", {})
        )
        steps.append(step_of(primitive, arguments, problem.verdicts))
    return tuple(steps)


def worst_of(steps: Iterable[Step]) -> str:
    """The worst verdict among the obligations of steps."""
    return worst(Status(obligation["status"]) for step in steps for obligation in step["obligations"]).value


def seconds_of(steps: Iterable[Step]) -> float:
    """How long the obligations of steps took to prove, in seconds, including earlier runs."""
    return float(sum(obligation["seconds"] for step in steps for obligation in step["obligations"]))


def notes_of(verdicts: Sequence[Verdict], what: str = "all steps hold") -> tuple[str, ...]:
    """The assumptions of proved claims, and what kernels check at every call."""
    found = frozenset(FastMath(word) for verdict in verdicts for word in verdict.strictness)
    needed = f"with {' '.join(names_of(found))}" if found else "bit for bit"
    fits = (v for v in verdicts if v.claim.kind is ClaimKind.SIZES_FIT and v.status is Status.PROVED)
    return (f"{what} {needed}", *dict.fromkeys(v.reason for v in fits if v.reason is not None))


def remarks_of(*functions: PrimFunc) -> tuple[str, ...]:
    """Remarks on the meaning of programs, a line each with its place, without repetition."""
    said = (remark for func in functions for remark in remarks_on(func))
    places = ((remark, f"{Place.of(remark.span)}: " if remark.span is not None else "") for remark in said)
    return tuple(
        dict.fromkeys(f"{remark.severity.value}[{remark.code}] {place}{remark.message}" for remark, place in places)
    )


def of_results(blank: Outcome, results: Sequence[Result], allow_unknown: bool, options: Options) -> Outcome:
    """The outcome of a gate that returned what it proved."""
    from layoutproof.verify.maps.map_report import MapReport

    steps: list[Step] = []
    findings: list[Finding] = []
    verdicts: list[Verdict] = []
    said: list[str] = []
    duties: list[str] = []
    # What is kept of a schedule holds; two programs that differ hold with nothing.
    all_compared = True
    for result in results:
        if isinstance(result, MapReport | Verdict):
            steps.append(_answered(result))
            findings.extend(_of_answer(result, blank, allow_unknown))
            continue
        # Schedules take half of the start of a gate that only asks about maps.
        from layoutproof.lowering.schedule.schedule import Schedule

        if isinstance(result, Schedule):
            said.extend(remarks_of(result.original))
            steps.extend(steps_of(result))
            verdicts.extend(verdict for step in result.steps for verdict in step.verdicts)
            duties.extend(result.preconditions)
            if not result.steps:
                # A map, and a program, say by themselves what was asked.
                findings.append(nothing_proved(result.func, blank.place, blank.name.rpartition("::")[2]))
            findings.extend(of_verdicts(result, blank.place, allow_unknown))
        else:
            steps.append(compared.as_step(result))
            verdicts.extend(result.verdicts)
            findings.extend(compared.findings_of(result, blank.place, allow_unknown))
            said.extend(remarks_of(result.before, result.after))
            said.extend(f"{result.before.name}: {note}" for note in compared.layouts_of(result))
            all_compared &= result.status is Status.PROVED
    vacuous = any(finding.status == Status.VACUOUS for finding in findings)
    status = worst([Status(worst_of(steps)), *([Status.VACUOUS] if vacuous else [])])
    return replace(
        blank,
        verdict=status.value,
        steps=tuple(steps),
        findings=tuple(findings),
        notes=(*dict.fromkeys(said), *(notes_of(verdicts) if verdicts and all_compared else ())),
        preconditions=tuple(dict.fromkeys(duties)),
        seconds=seconds_of(steps),
        detail=details(results) if options.detail else None,
    )


def _answered(result: MapReport | Verdict) -> Step:
    if isinstance(result, Verdict):
        return step_of("verdict", {}, [result])
    return step_of(*_asked(result), [result.injective])


def _of_answer(result: MapReport | Verdict, blank: Outcome, allow_unknown: bool) -> Iterable[Finding]:
    """The finding of an answer about a map, or of a bare verdict, where it is not proved."""
    bare = isinstance(result, Verdict)
    verdict = result if isinstance(result, Verdict) else result.injective
    if verdict.status is Status.PROVED:
        return ()
    subject, arguments = ("verdict", {}) if isinstance(result, Verdict) else _asked(result)
    text = f"{subject}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})"
    known_by = _obligation_of_bare(verdict, blank) if bare else digest(text, *verdict.claim.identity)
    return (of_verdict(verdict, text, blank.place, known_by, allow_unknown),)


def _obligation_of_bare(verdict: Verdict, blank: Outcome) -> str:
    """The hash of a verdict without a subject: of the gate's file and name, and of the counterexample."""
    file = steady_path(blank.place.path) if blank.place is not None else ""
    against = json.dumps([verdict.counterexample, sorted(verdict.because)], sort_keys=True)
    return digest(file, blank.name.rpartition("::")[2], *verdict.claim.identity, against)


def _asked(report: MapReport) -> tuple[str, dict[str, Any]]:
    from layoutproof.ir.index_map import index_map_text

    shape = [expr_text(extent, Style.PLAIN) for extent in report.shape]
    return "check_map", {"index_map": index_map_text(report.index_map), "shape": f"[{', '.join(shape)}]"}


def details(results: Sequence[Result], problem: IllegalTransform | None = None) -> dict[str, Any]:
    """The HTML report's details of results and of a refused step: of the last schedule, or of the step alone."""
    from layoutproof.cli.gate.judging.detail import detail_of, detail_of_comparison, detail_of_map, detail_of_refusal
    from layoutproof.lowering.compare.comparison import Comparison
    from layoutproof.lowering.schedule.schedule import Schedule
    from layoutproof.verify.maps.map_report import MapReport

    refused = problem.step if problem is not None else None
    found = [result for result in results if isinstance(result, Schedule)]
    schedules = [detail_of(result, refused if result is found[-1] else None) for result in found]
    if refused is not None and not found:
        schedules = [detail_of_refusal(refused)]
    schedules += [detail_of_comparison(result) for result in results if isinstance(result, Comparison)]
    return {
        "schedules": schedules,
        "maps": [detail_of_map(result) for result in results if isinstance(result, MapReport)],
    }
