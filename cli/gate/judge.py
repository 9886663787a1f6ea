"""One item, judged: what `check` does with a gate, a schedule or a rewrite, and `compare` with two programs, in whatever process.

Nothing that is wrong with an item is raised: it becomes the outcome's. What was judged before, by this version of the tool with these
options, is taken from the proof cache: of a schedule and of a comparison the whole outcome, of a gate what was proved of each step.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from layoutproof.cli import codes
from layoutproof.cli.gate import notes
from layoutproof.cli.gate.comparisons import judged_comparison
from layoutproof.cli.gate.findings import of_refusal
from layoutproof.cli.gate.items import Item, Options
from layoutproof.cli.gate.known import remembered
from layoutproof.cli.gate.loading import gates_in, place_in, running
from layoutproof.cli.gate.outcome import Finding, Kind, Outcome, Place
from layoutproof.cli.gate.own_modules import importable
from layoutproof.cli.gate.schedules import judged_schedule
from layoutproof.cli.gate.where import place_of, program_of
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.verify.values.fast_math import Licence, Licences


def judge(item: Item, options: Options) -> Outcome:
    """What becomes of an item. Raises nothing but KeyboardInterrupt and MemoryError."""
    allowed = frozenset(Licence(word) for word in options.licences)
    try:
        if item.kind is Kind.TRACE:
            return judged_schedule(item, options, allowed)
        if item.kind is Kind.COMPARISON:
            return judged_comparison(item, options, allowed)
        if item.kind is Kind.GATE:
            # Outside of the bound, as where gates were found: what a file does when it is loaded is the same everywhere.
            gates_in(item.path)
        with remembered(options, allowed) as count:
            outcome = _judge_gate(item, options) if item.kind is Kind.GATE else _judge_rewrite(item, options, allowed)
        return replace(outcome, cached=count.known_all)
    except LayoutproofError as problem:
        return wrong_input(item, problem)


def wrong_input(item: Item, problem: LayoutproofError) -> Outcome:
    """The outcome of an item that is no right input."""
    place = place_of(item)
    span = place_in(item.path, problem.__traceback__) if item.kind is Kind.GATE else None
    call = Place.of(span) if span is not None else None
    findings = tuple(_in_gate(Finding.of(diagnostic), place, call) for diagnostic in problem.diagnostics)
    return Outcome(item.kind, item.name, program_of(item), place, None, findings=findings)


def _in_gate(finding: Finding, place: Place, call: Place | None) -> Finding:
    """A finding with its place: its own, where that is a file, with the line of the gate that led there (`call`); else that line."""
    if finding.place is None:
        return replace(finding, place=call if call is not None else place)
    if call is None or finding.place.path == call.path:
        return finding
    if not Path(finding.place.path).exists():
        # The text of a map, say, which stands in no file.
        return replace(finding, place=call, related=((finding.place, "there"), *finding.related))
    return replace(finding, related=((call, "asked for here"), *finding.related))


def _judge_rewrite(item: Item, options: Options, allowed: Licences) -> Outcome:
    from layoutproof.cli.gate.rewrites import judged_rewrite

    return judged_rewrite(item, allowed, options.certificate, options.detail)


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
        return replace(blank, verdict=notes.worst_of(steps), steps=steps, findings=findings, seconds=seconds, detail=detail)
    return notes.of_results(blank, results, gate.allow_unknown, options)
