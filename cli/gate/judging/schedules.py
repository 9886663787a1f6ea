"""A schedule judged: its JSON read with the places of its parts, its outcome looked up in the proof cache, else proved
step by step, sharing prefixes with earlier schedules.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutproof.cli.gate.check_items import Item, Options, place_of, program_of
from layoutproof.cli.gate.judging import notes
from layoutproof.cli.gate.judging.by_kernel import by_kernel
from layoutproof.cli.gate.judging.cached_proofs import remembered, store_of
from layoutproof.cli.gate.judging.findings import digest, nothing_proved, of_refusal, of_verdicts
from layoutproof.cli.gate.loading import function_of, text_of
from layoutproof.cli.gate.outcomes import Finding, Kind, Outcome
from layoutproof.ir.diagnostic import LayoutproofError, Source, Span, error
from layoutproof.lowering import codes
from layoutproof.lowering.gates import KERNEL
from layoutproof.lowering.proof_cache.store import ProofStore
from layoutproof.lowering.proof_cache.versions import ROOMS, digest_of, tool_digest
from layoutproof.verify.values.fast_math import FastMath, FastMathSet

if TYPE_CHECKING:
    from layoutproof.ir.primfunc import PrimFunc
    from layoutproof.lowering.passes.base import Pass
    from layoutproof.lowering.proof_cache.entries import Clock
    from layoutproof.lowering.schedule.schedule import Schedule


REPORT = "report"
_PREFIXES = 512  # schedules that a process keeps, so that those that begin alike are not proved again


def recall(item: Item, options: Options) -> Outcome | None:
    """The stored outcome of the schedule with these options and this version of the tool; None if there is none."""
    store = store_of(options)
    if item.kind is not Kind.TRACE or store is None or options.certificate is not None:
        return None
    try:
        known = store.get(REPORT, _report_key(item, options, options.brief, text_of(item.program)))
    except LayoutproofError:
        return None  # an unreadable program is reported by judging
    return None if known is None else _placed(replace(Outcome.from_dict(known["outcome"]), cached=True), item)


def judged_schedule(item: Item, options: Options, allowed: FastMathSet) -> Outcome:
    """The outcome of a schedule; stored if it is reproducible. Raises LayoutproofError for an unreadable program."""
    known = recall(item, options)
    if known is not None:
        return known
    text = text_of(item.program)  # one that cannot be read is no fault of the schedule
    with remembered(options):
        outcome, lasting = _outcome(item, options, allowed, text)
    store = store_of(options)
    if store is not None and options.certificate is None and lasting:
        _keep(store, outcome, item, options, text)
    return _placed(briefly(outcome) if options.brief else outcome, item)


def _outcome(item: Item, options: Options, allowed: FastMathSet, text: str) -> tuple[Outcome, bool]:
    """The outcome, without its place, and whether it is reproducible."""
    from layoutproof.lowering.proof_cache.entries import Clock, is_storable

    clock = Clock()
    try:
        outcome = _scheduled(item, options, text, clock)
    except LayoutproofError as problem:
        found = tuple(Finding.of(diagnostic) for diagnostic in problem.diagnostics)
        outcome = Outcome(Kind.TRACE, item.name, program_of(item), None, None, findings=found)
    # What speaks of the schedule's own file speaks of where this one stands.
    here = any(finding.place is not None and finding.place.path == item.path for finding in outcome.findings)
    return outcome, not here and all(
        is_storable(step["obligations"], clock) for step in outcome.steps or ({"obligations": ()},)
    )


def briefly(outcome: Outcome) -> Outcome:
    """The outcome without its steps, which suffices for most report formats."""
    return replace(outcome, steps=())


def _keep(store: ProofStore, outcome: Outcome, item: Item, options: Options, text: str) -> None:
    """Store an outcome whole, with all that is needed to repeat it, and brief, which is faster to read."""
    given = {
        "path": item.program,
        "program": text,
        "function": item.subject,
        "trace": _stripped(item.text),
        "licences": list(options.fast_math),
        "effort": options.budget_scale,
        "detail": options.detail,
        "trust": options.trust,
    }
    whole = _report_key(item, options, False, text)
    store.put(REPORT, whole, {"tool": tool_digest(), "outcome": outcome.to_dict(), "given": given})
    brief = {"tool": tool_digest(), "outcome": briefly(outcome).to_dict(), "whole": whole}
    store.put(REPORT, _report_key(item, options, True, text), brief)


def judged_again(value: Mapping[str, Any]) -> tuple[str | None, bool]:
    """What is wrong with a report that was stored whole, None if it is right; and whether that is certain, independent
    of the clock.

    The schedule is judged again without the cache.
    """
    try:
        given, kept = value["given"], Outcome.from_dict(value["outcome"])
        item = Item(Kind.TRACE, kept.name, "", 1, given["function"], None, given["path"], given["trace"])
        options = Options(tuple(given["licences"]), given["effort"], given["detail"], cache=None, trust=given["trust"])
        allowed = frozenset(FastMath(word) for word in options.fast_math)
        program = str(given["program"])
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        return f"it is of another form: {problem}", True
    with remembered(options):
        now, lasting = _outcome(item, options, allowed, program)
    return difference(now, kept, "judged"), lasting


def difference(now: Outcome, kept: Outcome, again: str) -> str | None:
    """What a stored outcome says differently from the new one; None if they agree. `again`: "judged" or "compared"."""
    if timeless(now).to_dict() == timeless(kept).to_dict():
        return None
    if now.verdict != kept.verdict:
        return f"it says {kept.verdict}, and {again} again it is {now.verdict}"
    return f"it says other things than it does when it is {again} again"


def timeless(outcome: Outcome) -> Outcome:
    """The outcome without what differs from run to run: times and cache hits."""
    steps = tuple(
        {**step, "obligations": [{**entry, "seconds": 0.0} for entry in step["obligations"]]} for step in outcome.steps
    )
    return replace(outcome, steps=steps, seconds=0.0, cached=False)


def _report_key(item: Item, options: Options, brief: bool, text: str) -> str:
    """The key of a schedule's outcome for the program's text, which was judged: its file may have been written since.
    Of the schedule it has the text, too: one with other spacing is proved step by step.
    """
    found = _hash_of(text, item.program, item.subject, options.fast_math, options.budget_scale, options.detail).copy()
    found.update(f"{brief}\0{options.trust}\0{_stripped(item.text)}".encode(errors="surrogateescape"))
    key: str = found.hexdigest()
    return key


def _stripped(text: str) -> str:
    """A text without JSON's whitespace around it; other whitespace is an error that must stay."""
    return text.strip(" \t\r\n")


@lru_cache(maxsize=64)
def _hash_of(*parts: Any) -> Any:
    # How an outcome is told belongs to it, so the sources of the command line do as well; and a program may be MLIR.
    return hashlib.sha256(json.dumps([digest_of((*ROOMS, "importers", "cli")), *parts]).encode())


def _placed(outcome: Outcome, item: Item) -> Outcome:
    """The outcome for the item of this run: two lines of a file may be one schedule."""
    place = place_of(item)
    findings = tuple(
        replace(finding, place=place) if finding.place is None else finding for finding in outcome.findings
    )
    return replace(outcome, name=item.name, place=place, findings=findings)


def _scheduled(item: Item, options: Options, text: str, clock: Clock) -> Outcome:
    from layoutproof.lowering.passes.illegal import IllegalTransform

    func = function_of(item.program, text, item.subject)
    trace, passes = read_trace(item)
    name = f"{item.program}:{func.name}"
    blank = Outcome(Kind.TRACE, item.name, name, None, None)
    if not passes:
        return replace(blank, verdict="vacuous", findings=(nothing_proved(func),))
    keys = _prefix_keys(func, options, trace)
    schedule, done = _begun(func, options, keys)
    for number, transform in enumerate(passes[done:], start=done + 1):
        if options.doing is not None:
            Path(options.doing).write_text(f"step {number} of {len(passes)}: {transform.primitive}")
        try:
            schedule.apply(transform)
        except IllegalTransform as problem:
            if not problem.verdicts:
                raise _at_step(problem, number) from problem
            findings = of_refusal(problem)
            steps = notes.steps_of(schedule, problem)
            detail = notes.details([schedule], problem) if options.detail else None
            seconds = notes.seconds_of(steps)
            return replace(
                blank, verdict=notes.worst_of(steps), steps=steps, findings=findings, seconds=seconds, detail=detail
            )
        if not clock.struck:
            _keep_prefix(keys[number], schedule)
    if options.certificate is not None:
        schedule.certificate.save(options.certificate)
    steps = notes.steps_of(schedule)
    outcome = replace(
        blank,
        verdict=notes.worst_of(steps),
        steps=steps,
        findings=of_verdicts(schedule),
        notes=(
            *notes.notes_of([verdict for step in schedule.steps for verdict in step.verdicts]),
            *notes.remarks_of(func),
        ),
        preconditions=schedule.preconditions,
        seconds=notes.seconds_of(steps),
        certificate=options.certificate,
        detail=notes.details([schedule]) if options.detail else None,
    )
    return by_kernel(outcome, schedule.records) if options.trust == KERNEL else outcome


_prefixes: OrderedDict[str, Schedule] = OrderedDict()


def _prefix_keys(func: PrimFunc, options: Options, trace: Sequence[Any]) -> list[str]:
    """The keys of a trace's prefixes, the empty one first. Each is a hash of the previous key and a step."""
    # A run with another cache stores its proofs there.
    keys = [digest(json.dumps([id(func), options.fast_math, options.budget_scale, options.cache]))]
    for step in trace:
        keys.append(digest(keys[-1], json.dumps(step, sort_keys=True)))
    return keys


def _begun(func: PrimFunc, options: Options, keys: Sequence[str]) -> tuple[Schedule, int]:
    """A schedule of the longest prefix that this process knows, and its number of steps."""
    from layoutproof.lowering.schedule.schedule import Schedule

    for done in range(len(keys) - 1, 0, -1):
        known = _prefixes.get(keys[done])
        if known is not None and known.original is func:
            _prefixes.move_to_end(keys[done])
            return known.fork(), done
    return Schedule(func, allowed=frozenset(FastMath(word) for word in options.fast_math)), 0


def _keep_prefix(key: str, schedule: Schedule) -> None:
    _prefixes[key] = schedule.fork()
    _prefixes.move_to_end(key)
    while len(_prefixes) > _PREFIXES:
        _prefixes.popitem(last=False)


def _at_step(problem: LayoutproofError, number: int) -> LayoutproofError:
    first, *rest = problem.diagnostics
    return LayoutproofError([replace(first, message=f"step {number}: {first.message}"), *rest])


def read_trace(item: Item) -> tuple[list[Any], Sequence[Pass]]:
    """The steps of an item's schedule as JSON has them, and as passes.

    Raises LayoutproofError, with line and column for text that is not JSON, and naming the step for what is no
    schedule.
    """
    from layoutproof.lowering.schedule.trace import json_of, passes_of

    _check_decoded(item)
    try:
        trace = json_of(item.text)
    except json.JSONDecodeError as problem:
        raise error(
            codes.TRACE_JSON, f"not JSON: {problem.msg}", _span(item, problem.lineno, problem.colno)
        ) from problem
    except RecursionError as problem:
        raise error(codes.TRACE_JSON, "it is nested too deep", _span(item, 1, 1)) from problem
    except ValueError as problem:
        # Python's own words for a number of thousands of digits name a function of Python.
        what = "a number has too many digits" if "set_int_max_str_digits" in str(problem) else str(problem)
        raise error(codes.TRACE_JSON, f"not JSON: {what}", _span(item, 1, 1)) from problem
    passes = passes_of(trace)
    return list(trace), passes


def _check_decoded(item: Item) -> None:
    """Raise LayoutproofError for a byte that is not UTF-8, which was read as a lone surrogate."""
    if item.text.isascii():
        return
    for row, line in enumerate(item.text.split("\n"), start=1):
        wrong = next((column for column, char in enumerate(line, start=1) if "\udc80" <= char <= "\udcff"), None)
        if wrong is not None:
            message = f"not JSON: the byte 0x{ord(line[wrong - 1]) - 0xDC00:02x} is not UTF-8"
            raise error(codes.TRACE_JSON, message, _span(item, row, wrong))


def _span(item: Item, line: int, column: int) -> Span:
    """A place in the item's text, which begins at the item's line of its file."""
    # The file's other lines are not at hand, and not needed: a source of blank lines up to this one counts as the file
    # does.
    source = Source(item.path, "\n" * (item.line - 1) + item.text)
    return Span(source, item.line + line - 1, column - 1, item.line + line - 1, column)
