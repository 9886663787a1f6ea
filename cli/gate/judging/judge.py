"""One item judged, in any process, and judged again when the proof cache is verified.

Errors of an item are not raised: they become its outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from layoutproof.cli import codes
from layoutproof.cli.gate.check_items import Item, Options, place_of, program_of
from layoutproof.cli.gate.judging import notes
from layoutproof.cli.gate.judging.by_kernel import by_kernel, results_by_kernel
from layoutproof.cli.gate.judging.cached_proofs import remembered
from layoutproof.cli.gate.judging.comparisons import compared_again, judged_comparison
from layoutproof.cli.gate.judging.findings import obligation_of, of_refusal, of_verdict
from layoutproof.cli.gate.judging.schedules import REPORT, briefly, judged_again, judged_schedule
from layoutproof.cli.gate.loading import gates_in, importable, place_in, running, text_of
from layoutproof.cli.gate.outcomes import Finding, Kind, Outcome, Place, step_of
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.lowering.gates import KERNEL
from layoutproof.lowering.proof_cache.store import ProofStore
from layoutproof.verify.values.fast_math import FastMath, FastMathSet
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status
from layoutproof.verify.workers.endings import Ending, Limits


def judge(item: Item, options: Options) -> Outcome:
    """The outcome of an item. Raises nothing but KeyboardInterrupt and MemoryError."""
    allowed = frozenset(FastMath(word) for word in options.fast_math)
    try:
        if item.kind is Kind.TRACE:
            return judged_schedule(item, options, allowed)
        if item.kind is Kind.COMPARISON:
            return judged_comparison(item, options, allowed)
        if item.kind is Kind.GATE:
            # Outside of the bound, as where gates were found: what a file does when it is loaded is the same
            # everywhere.
            gates_in(item.path)
        with remembered(options, allowed) as count:
            if item.kind is Kind.GATE:
                outcome = _judge_gate(item, options)
            else:
                outcome = judged_rewrite(item, allowed, options)
        return replace(outcome, cached=count.known_all)
    except LayoutproofError as problem:
        return wrong_input(item, problem)


def wrong_input(item: Item, problem: LayoutproofError) -> Outcome:
    """The outcome of an item that is wrong input."""
    place = place_of(item)
    span = place_in(item.path, problem.__traceback__) if item.kind is Kind.GATE else None
    call = Place.of(span) if span is not None else None
    findings = tuple(_in_gate(Finding.of(diagnostic), place, call) for diagnostic in problem.diagnostics)
    return Outcome(item.kind, item.name, program_of(item), place, None, findings=findings)


def _in_gate(finding: Finding, place: Place, call: Place | None) -> Finding:
    """A finding with its place: its own, if that is a file, with the gate's line (`call`) as related; else the line."""
    if finding.place is None:
        return replace(finding, place=call if call is not None else place)
    if call is None or finding.place.path == call.path:
        return finding
    if not Path(finding.place.path).exists():
        # The text of a map, say, which stands in no file.
        return replace(finding, place=call, related=((finding.place, "there"), *finding.related))
    return replace(finding, related=((call, "asked for here"), *finding.related))


def _judge_gate(item: Item, options: Options) -> Outcome:
    from layoutproof.lowering.passes.illegal import IllegalTransform

    gates = gates_in(item.path)
    if item.subject not in gates:
        raise error(codes.GATE_FILE, f"{item.path} has no gate {item.subject} any more: the file was changed meanwhile")
    gate = gates[item.subject]
    place = place_of(item)
    blank = Outcome(Kind.GATE, item.name, item.name, place, None)
    try:
        with running(item.path), importable(Path(item.path).resolve().parent):
            results = gate.results(gate.case(item.case))
    except IllegalTransform as problem:
        if not problem.verdicts:
            raise
        call = place_in(item.path, problem.__traceback__)
        findings = of_refusal(problem, Place.of(call) if call is not None else place, gate.allow_unknown)
        steps = notes.steps_of(None, problem)
        detail = notes.details([], problem) if options.detail else None
        seconds = notes.seconds_of(steps)
        return replace(
            blank, verdict=notes.worst_of(steps), steps=steps, findings=findings, seconds=seconds, detail=detail
        )
    outcome = notes.of_results(blank, results, gate.allow_unknown, options)
    return results_by_kernel(outcome, results, gate.allow_unknown) if KERNEL in (gate.trust, options.trust) else outcome


def judged_rewrite(item: Item, allowed: FastMathSet, options: Options) -> Outcome:
    """The checker's verdicts on a rewrite file (see `ir/notations/rewrite_text.py`), under fast-math assumptions that
    the run and its header allow.

    Writes the certificate of a proved one, where requested. The header's expectation is for `recheck`. Raises
    LayoutproofError for other texts.
    """
    from layoutproof.cli.gate.judging.detail import detail_of_rewrite
    from layoutproof.ir.notations.rewrite_text import parse_litmus
    from layoutproof.lowering.passes.steps import place_of_claim
    from layoutproof.lowering.proof_cache.remembered import verdicts_of
    from layoutproof.verify.certificate.certificate import certify
    from layoutproof.verify.certificate.certificate import text_of as text_of_rewrite
    from layoutproof.verify.certificate.finder.kernel_evidence import find_evidence
    from layoutproof.verify.certificate.reading import allowed_by
    from layoutproof.verify.lockstep.identity import prove_identity
    from layoutproof.verify.step_record import StepRecord

    litmus = parse_litmus(text_of(item.path), item.path)
    rewrite, where, fast_math = litmus.rewrite, litmus.header.where, allowed & allowed_by(litmus.header.strictness)
    verdicts = verdicts_of(rewrite, where, fast_math, True, "rewrite", {})
    if any(verdict.status is not Status.PROVED for verdict in verdicts):
        same = prove_identity(rewrite)
        verdicts = verdicts if same is None else (same,)
    status = worst(verdict.status for verdict in verdicts)
    findings = []
    for verdict in verdicts:
        if verdict.status is not Status.PROVED:
            span = place_of_claim(verdict.claim, rewrite.new)
            place = Place.of(span) if span is not None else Place(item.path, 1)
            # Neither the program after nor the witness follows from the program before.
            known_by = obligation_of(verdict.claim, "rewrite", {"text": text_of_rewrite(rewrite, where)}, rewrite.old)
            findings.append(of_verdict(verdict, "the rewrite", place, known_by))
    records = (StepRecord("rewrite", {}, rewrite, where, fast_math),) if status is Status.PROVED else ()
    if options.certificate is not None and records:
        certify(records, rewrite.old.name, find_evidence).save(options.certificate)
    steps = (step_of("rewrite", {}, verdicts),)
    outcome = Outcome(
        Kind.REWRITE,
        item.name,
        item.path,
        Place(item.path, 1),
        status.value,
        steps,
        tuple(findings),
        notes.notes_of(verdicts, "the two programs do the same") if status is Status.PROVED else (),
        notes.seconds_of(steps),
        certificate=options.certificate if records else None,
        detail={"schedules": [detail_of_rewrite(rewrite, where)]} if options.detail else None,
    )
    return by_kernel(outcome, records) if options.trust == KERNEL else outcome


Entry = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class WrongReport:
    """A report that is not confirmed: its key and what is wrong. `certain` is false if only the clock prevented
    confirmation.
    """

    key: str
    problem: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class ReportsChecked:
    """The number of reports, the number checked, and those not confirmed."""

    entries: int = 0
    checked: int = 0
    wrong: tuple[WrongReport, ...] = ()


def check_reports(
    cache: ProofStore, tool: str, choose: Callable[[Sequence[str]], Sequence[str]], jobs: int, told: Callable[[], None]
) -> ReportsChecked:
    """Check the whole reports of a version of the tool that `choose` takes, and all brief ones against these."""
    from layoutproof.verify.workers.pool import all_in_workers

    current = [(key, value) for key, value in cache.entries(REPORT) if value.get("tool") == tool]
    brief = {key: value["whole"] for key, value in current if "whole" in value}
    chosen = set(choose(sorted(key for key, _ in current if key not in brief)))
    whole = [(key, value) for key, value in current if key in chosen]
    answers = all_in_workers(whole, _problem, _died, Limits(jobs), lambda _: told())
    wrong = [
        WrongReport(key, answer[0], answer[1])
        for (key, _), answer in zip(whole, answers, strict=True)
        if answer is not None
    ]
    bad = {each.key for each in wrong if each.certain}
    for key, name in sorted(brief.items()):
        problem = "the report that it shortens is wrong" if name in bad else _difference(cache, key, name)
        if problem is not None:
            wrong.append(WrongReport(key, problem))
    return ReportsChecked(len(current), len(whole) + len(brief), tuple(wrong))


def set_aside(cache: ProofStore, wrong: Iterable[WrongReport]) -> int:
    """Remove wrong reports; returns their number."""
    gone = 0
    for each in wrong:
        value = cache.get(REPORT, each.key) if each.certain else None
        gone += value is not None and cache.set_aside(REPORT, each.key, value) is not None
    return gone


def _problem(entry: Entry) -> tuple[str, bool] | None:
    """What is wrong with a report, and whether that is certain."""
    given = entry[1].get("given")
    again = compared_again if isinstance(given, Mapping) and given.get("kind") == Kind.COMPARISON else judged_again
    problem, certain = again(entry[1])
    return None if problem is None else (problem, certain)


def _died(entry: Entry, ending: Ending) -> tuple[str, bool] | None:
    return ("the process that judged it again ended by itself", False)


def _difference(cache: ProofStore, key: str, whole: object) -> str | None:
    value = cache.get(REPORT, key)
    other = cache.get(REPORT, whole) if isinstance(whole, str) and len(whole) == len(key) else None
    if value is None or other is None:
        return "the report that it shortens is not there"
    try:
        same = value["outcome"] == briefly(Outcome.from_dict(other["outcome"])).to_dict()
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        return f"it is of another form: {problem}"
    return None if same else "it says something else than the report that it shortens"
