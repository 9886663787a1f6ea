"""Python files in an editor: gates, rewrites, programs in script syntax with their schedules, and index maps."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from layoutproof.cli.editor.maps import notes_on_maps
from layoutproof.cli.editor.notes import Document, Note, Range, note_of, notes_of, range_of, remarks, same_file
from layoutproof.cli.editor.traces import MOST
from layoutproof.cli.gate.check_items import Item, Options, find_items
from layoutproof.cli.gate.gate_sites import has_gates, mentions_layoutproof
from layoutproof.cli.gate.judging.findings import of_verdict
from layoutproof.cli.gate.judging.judge import judge
from layoutproof.cli.gate.loading import remarks_on
from layoutproof.cli.gate.outcomes import Finding, Kind, Outcome, Place
from layoutproof.cli.gate.policy import Policy
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.verify.verdict.verdict import Status

_REWRITE = {"before", "after"}
_SCRIPT = "prim_func"


def survey_python(document: Document, policy: Policy) -> tuple[list[Note], list[Item]]:
    """The notes that need no proof, and the items to judge: gates, a rewrite, or the schedules beside a program."""
    path = Path(document.path)
    try:
        tree = ast.parse(document.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Read as what it is going to be, which tells where it is broken.
        if _SCRIPT in document.text:
            return list(_of_script(document)), []
        return (
            ([], [Item(Kind.GATE, document.path, document.path)]) if mentions_layoutproof(document.text) else ([], [])
        )
    if has_gates(tree, path):
        return list(notes_on_maps(document, tree, policy)), _items(path)
    if _is_rewrite(tree):
        return [], [Item(Kind.REWRITE, document.path, document.path)]
    if _SCRIPT in document.text:
        found = list(_of_script(document))
        return found, [] if any(note.severity == "error" for note in found) else _items(path)
    return (list(notes_on_maps(document, tree, policy)) if mentions_layoutproof(document.text) else []), []


def _is_rewrite(tree: ast.Module) -> bool:
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)} == _REWRITE


def _items(path: Path) -> list[Item]:
    found: list[Item] = []
    try:
        for item in find_items([path]):
            found.append(item)
            if sum(each.kind is Kind.TRACE for each in found) == MOST:
                break
    except LayoutproofError:
        return found  # it has none
    return found


def functions_in(document: Document) -> tuple[PrimFunc, ...]:
    """The functions of a program. Raises LayoutproofError for a text that is none."""
    from layoutproof.ir.script.reader import loads_module

    return tuple(loads_module(document.text, document.path).functions)


def _of_script(document: Document) -> Iterator[Note]:
    """What is wrong with a program by itself: its text, its form, and its faults."""
    from layoutproof.verify.faults.facts import Facts
    from layoutproof.verify.faults.no_faults import check_facts

    try:
        functions = functions_in(document)
    except LayoutproofError as problem:
        yield from notes_of(document, problem, document.whole_line(0))
        return
    for function in functions:
        yield from remarks(document, remarks_on(function), document.whole_line(0))
        for verdict in check_facts(Facts.of(function), calls=False):
            if verdict.status is Status.REFUTED:
                line = verdict.claim.place.line if verdict.claim.place is not None else None
                finding = of_verdict(verdict, function.name, None, None)
                yield note_of(document, finding, document.whole_line(0 if line is None else line - 1))


def judged_item(document: Document, item: Item, options: Options, policy: Policy) -> list[Note]:
    """The notes on one item of a Python file."""
    return of_outcome(document, policy.apply(judge(item, options)))


def of_outcome(document: Document, outcome: Outcome) -> list[Note]:
    """The findings of an outcome as notes; those that stand elsewhere at the item's own line."""
    place = outcome.place
    at = document.whole_line(0)
    if place is not None and same_file(place.path, document.path):
        at = document.whole_line(place.line - 1)
    return [_tight(document, finding, at) for finding in outcome.findings]


def _tight(document: Document, finding: Finding, at: Range) -> Note:
    """A finding as a note; one at a whole line without the blanks around it."""
    place = finding.place
    note = note_of(document, finding, at)
    if place is not None and _is_line(place) and same_file(place.path, document.path):
        return replace(note, range=document.whole_line(place.line - 1))
    return note


def _is_line(place: Place) -> bool:
    return range_of(place) == Range(place.line - 1, 0, place.line - 1, len(place.text))
