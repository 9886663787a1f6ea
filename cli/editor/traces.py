"""Schedules in an editor: what is wrong with the text of a trace, and which step is refused, at its own place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutproof.cli import codes
from layoutproof.cli.editor.json_places import Part, elements, inner_offset, members
from layoutproof.cli.editor.notes import Document, Fix, Note, note_of, notes_of
from layoutproof.cli.gate.check_items import Item, Options
from layoutproof.cli.gate.judging.by_kernel import by_kernel
from layoutproof.cli.gate.judging.cached_proofs import remembered
from layoutproof.cli.gate.judging.findings import nothing_proved, of_refusal, of_verdict
from layoutproof.cli.gate.judging.schedules import read_trace
from layoutproof.cli.gate.loading import read_program
from layoutproof.cli.gate.outcomes import Finding, Kind, Outcome
from layoutproof.cli.gate.policy import Policy
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError
from layoutproof.lowering import codes as lowering_codes
from layoutproof.lowering.gates import KERNEL
from layoutproof.verify.values.fast_math import FastMath
from layoutproof.verify.verdict.verdict import Status

if TYPE_CHECKING:
    from layoutproof.lowering.passes.base import Pass
    from layoutproof.lowering.passes.illegal import IllegalTransform
    from layoutproof.lowering.schedule.schedule import Schedule

MOST = 20
"""Schedules of a file that are checked while it is edited."""

_BEGINS = re.compile(r'\s*\[\s*(\[\s*("[a-z_]+"\s*(,|$)|$)|\]?\s*$)')
_NAMED: Mapping[str, str] = {
    lowering_codes.NO_BLOCK: "block",
    lowering_codes.NO_BUFFER: "buffer",
    lowering_codes.NO_LOOP: "loop",
}


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a trace in a document, with its pass."""

    part: Part
    transform: Pass


def is_trace(path: str, text: str) -> bool:
    """Whether a JSON document is a schedule: its program stands beside it, or it begins as one."""
    return Path(path).with_suffix(".py").is_file() or _BEGINS.match(text) is not None


def survey_traces(document: Document) -> tuple[list[Note], list[Item]]:
    """The notes on the form of the schedules in a document, and the schedules to prove."""
    program = Path(document.path).with_suffix(".py")
    found: list[Note] = []
    subject = ""
    if not program.is_file():
        message = f"there is no program {program.name} beside it, so nothing is proved"
        found.append(Note(codes.NO_PROGRAM, message, document.whole_line(0), "information"))
    else:
        try:
            subject = read_program(str(program), None).name
        except LayoutproofError as problem:
            found += notes_of(document, problem, document.whole_line(0))
    items: list[Item] = []
    for number, text in _schedules(document):
        name = f"{program}:{number}"
        item = Item(Kind.TRACE, name, document.path, number, subject, None, str(program), text)
        wrong = list(_form(document, item))
        found += wrong
        if not wrong and subject:
            items.append(item)
    return found, items[:MOST]


def _schedules(document: Document) -> Iterator[tuple[int, str]]:
    if not document.path.endswith(".jsonl"):
        yield 1, document.text
        return
    for number, line in enumerate(document.text.split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")


def _form(document: Document, item: Item) -> Iterator[Note]:
    """What is wrong with a schedule's text: all its steps, each at its place."""
    whole = document.whole_line(item.line - 1)
    try:
        read_trace(item)
        return
    except LayoutproofError as problem:
        first = problem
    base = document.offset(item.line - 1, 0)
    if first.diagnostics[0].code == lowering_codes.TRACE_JSON:
        yield from notes_of(document, first, whole)
        return
    seen = False
    for part in elements(document.text, base):
        try:
            _pass_of(part)
        except LayoutproofError as problem:
            seen = True
            yield _at(document, part, problem.diagnostics[0])
    if not seen:
        yield from notes_of(document, first, whole)


def _pass_of(part: Part) -> Pass:
    from layoutproof.lowering.schedule.trace import passes_of

    try:
        (found,) = passes_of([part.value])
    except LayoutproofError as problem:
        first, *rest = problem.diagnostics
        # The step is where the note stands; the number is of a trace of this step alone.
        raise LayoutproofError([replace(first, message=first.message.removeprefix("step 1: ")), *rest]) from problem
    return found


def _at(document: Document, part: Part, diagnostic: Diagnostic, schedule: Schedule | None = None) -> Note:
    """A diagnostic of a step: at the argument or the character that it is about, with a name that may be meant."""
    text = document.text
    inner = list(elements(text, part.start))
    arguments = {each.name: each for each in members(text, inner[1].start)} if len(inner) > 1 else {}
    start, end, names = part.start, part.end, list[str]()
    wrong = _wrong_argument(part, arguments, diagnostic)
    if diagnostic.code == lowering_codes.UNKNOWN_PRIMITIVE and inner:
        start, end, names = inner[0].start, inner[0].end, _primitives()
    elif diagnostic.code == lowering_codes.UNKNOWN_ARGUMENT and wrong is not None:
        start, end = wrong.key
        names = [name for name in _options(part) if name not in arguments]
    elif wrong is not None:
        start, end = _inside(text, wrong, diagnostic)
        names = _names(schedule, diagnostic.code)
    bare = replace(diagnostic, span=None) if wrong is not None else diagnostic
    note = note_of(document, Finding.of(bare), document.range(part.start, part.end))
    return replace(note, range=document.range(start, end), fixes=_renamed(document, start, end, names))


def _inside(text: str, wrong: Part, diagnostic: Diagnostic) -> tuple[int, int]:
    """The part of an argument's text that a diagnostic is about; the argument if there is none."""
    span = diagnostic.span
    if span is None or span.source.text != wrong.value:
        return wrong.start, wrong.end
    before = sum(len(line) + 1 for line in span.source.text.split("\n")[: span.line - 1])
    start, end = (inner_offset(text, wrong, before + column) for column in (span.column, span.end_column))
    return start, max(end, start + 1)


def _wrong_argument(part: Part, arguments: Mapping[str, Part], diagnostic: Diagnostic) -> Part | None:
    """The argument of a step that a diagnostic is about."""
    from layoutproof.lowering.passes.base import from_json, kind_of
    from layoutproof.lowering.schedule.primitives import PASSES

    if diagnostic.span is not None:
        return next((each for each in arguments.values() if each.value == diagnostic.span.source.text), None)
    if diagnostic.code in _NAMED:
        return arguments.get(_NAMED[diagnostic.code])
    if not isinstance(part.value, list) or not part.value or part.value[0] not in PASSES:
        return None
    known = {option.name: option for option in PASSES[part.value[0]].options()}
    if diagnostic.code == lowering_codes.UNKNOWN_ARGUMENT:
        return next((arguments[name] for name in sorted(arguments) if name not in known), None)
    if diagnostic.code == lowering_codes.ARGUMENT_TYPE:
        for name, each in arguments.items():
            try:
                from_json(kind_of(known[name]), each.value, "")
            except LayoutproofError:
                return each
    return None


def _primitives() -> list[str]:
    from layoutproof.lowering.schedule.primitives import PASSES

    return list(PASSES)


def _options(part: Part) -> list[str]:
    from layoutproof.lowering.schedule.primitives import PASSES

    return [option.name for option in PASSES[part.value[0]].options()]


def _names(schedule: Schedule | None, code: str) -> list[str]:
    from layoutproof.ir.stmt import Block
    from layoutproof.ir.visit import walk
    from layoutproof.lowering.passes.find import all_buffers

    if schedule is None:
        return []
    if code == lowering_codes.NO_BLOCK:
        return [node.name for node in walk(schedule.func.body) if isinstance(node, Block)]
    return [buffer.name for buffer in all_buffers(schedule.func)] if code == lowering_codes.NO_BUFFER else []


def _renamed(document: Document, start: int, end: int, names: list[str]) -> tuple[Fix, ...]:
    written = document.text[start:end].strip('"')
    close = get_close_matches(written, names, n=3)
    return tuple(Fix(f"Replace {written} by {name}", ((document.range(start, end), f'"{name}"'),)) for name in close)


def judged_trace(document: Document, item: Item, options: Options, policy: Policy) -> list[Note]:
    """The notes on one schedule of a document, proved step by step; the first refused step is the last."""
    from layoutproof.lowering.passes.illegal import IllegalTransform
    from layoutproof.lowering.schedule.schedule import Schedule

    parts = list(elements(document.text, document.offset(item.line - 1, 0)))
    steps = [Step(part, _pass_of(part)) for part in parts]
    allowed = frozenset(FastMath(word) for word in options.fast_math)
    with remembered(options):
        schedule = Schedule(read_program(item.program, item.subject), allowed=allowed)
        if not steps:
            return [_stated(document, nothing_proved(schedule.func), policy, document.whole_line(item.line - 1))]
        found: list[Note] = []
        for step in steps:
            try:
                proved = schedule.apply(step.transform)
            except IllegalTransform as problem:
                return [*found, *_refused(document, steps, step, problem, (schedule, policy))]
            for verdict in proved.verdicts:
                if verdict.status is not Status.PROVED:
                    finding = of_verdict(verdict, str(step.transform), None, None)
                    found.append(_stated(document, finding, policy, document.range(step.part.start, step.part.end)))
        if options.trust == KERNEL:
            outcome = by_kernel(Outcome(Kind.TRACE, item.name, item.program, None, "proved"), schedule.records)
            whole = document.range(parts[0].start, parts[-1].end)
            found += [_stated(document, finding, policy, whole) for finding in outcome.findings]
        return found


def _stated(document: Document, finding: Finding, policy: Policy, at: Any) -> Note:
    return note_of(document, replace(finding, fate=policy.fate_of(finding)), at)


def _refused(
    document: Document, steps: list[Step], step: Step, problem: IllegalTransform, run: tuple[Schedule, Policy]
) -> Iterator[Note]:
    schedule, policy = run
    if not problem.verdicts:
        yield _at(document, step.part, problem.diagnostics[0], schedule)
        return
    at = document.range(step.part.start, step.part.end)
    mended = tuple(_other_padding(document, steps, step, schedule)) if _is_about_padding(problem) else ()
    for finding in of_refusal(problem):
        note = _stated(document, finding, policy, at)
        yield replace(note, fixes=mended) if finding.code in _PADDING else note


_PADDING = (lowering_codes.BRANCH_NEEDED, lowering_codes.PAD_VALUE)


def _is_about_padding(problem: IllegalTransform) -> bool:
    return any(diagnostic.code in _PADDING for diagnostic in problem.diagnostics)


def _other_padding(document: Document, steps: list[Step], step: Step, schedule: Schedule) -> Iterator[Fix]:
    """Pad values with which guards of the block may go, each proved, in place of those in the trace."""
    import json

    from layoutproof.lowering.layout.transform_layout import TransformLayout

    block = step.transform.arguments()["block"]
    before = steps[: steps.index(step)]
    relaid = {s.transform.buffer: s.part for s in before if isinstance(s.transform, TransformLayout)}
    for buffer, part in relaid.items():
        best = schedule.pad_value_search(block, buffer).best
        if best is None:
            continue
        stated = json.dumps(best.candidate.pad)
        arguments = list(members(document.text, list(elements(document.text, part.start))[1].start))
        pad = next((each for each in arguments if each.name == "pad_value"), None)
        if pad is not None:
            edit = (document.range(pad.start, pad.end), stated)
        else:
            edit = (document.range(arguments[-1].end, arguments[-1].end), f', "pad_value": {stated}')
        yield Fix(f"Let the padding of {buffer} hold {best.candidate}: {best.candidate.why}", (edit,))
