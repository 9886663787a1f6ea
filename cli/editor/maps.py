"""Index maps in Python text: calls that name a map as a lambda or a text, with the shape if it is written there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.cli.editor.notes import Document, Note, Range, note_of
from layoutproof.cli.gate.judging.findings import of_verdict
from layoutproof.cli.gate.outcomes import Finding
from layoutproof.cli.gate.policy import Policy
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, split_lines
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.verdict.verdict import Status

_QUESTIONS = {"check_map", "prove_injective", "prove_bijective", "draw"}
_STEPS = {"transform_layout": 2}
"""Methods with a map as an argument, and its position."""


@dataclass(frozen=True, slots=True)
class WrittenMap:
    """A map in a document: its text and its place there. `inside`: its columns are those of the text, which is so for
    one in plain quotes. `code`: it is a lambda of the code, and not a text. `shape` and `where` as `check_map` takes
    them; None where they are not written.
    """

    text: str
    range: Range
    inside: bool
    code: bool = False
    shape: Any = None
    where: str | None = None

    def report(self) -> MapReport:
        """What is decided about it. Raises LayoutproofError for a text that cannot be read."""
        return check_map(self.text, self.shape, self.where)


def maps_in(document: Document, tree: ast.Module) -> Iterator[WrittenMap]:
    """The maps of a Python text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _QUESTIONS or name in _STEPS:
                found = _map_of(document, node, name)
                if found is not None:
                    yield found


def _map_of(document: Document, call: ast.Call, name: str) -> WrittenMap | None:
    place = _STEPS.get(name, 0)
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    node = call.args[place] if len(call.args) > place else named.get("index_map")
    written = None if node is None else _written(document, node)
    if written is None or name in _STEPS:
        return written
    shape = call.args[1] if len(call.args) > 1 else named.get("shape", named.get("of"))
    where = call.args[2] if len(call.args) > 2 else named.get("where")
    return replace(written, shape=_value(shape), where=_value(where))


def _value(node: ast.expr | None) -> Any:
    try:
        return None if node is None else ast.literal_eval(node)
    except (ValueError, TypeError):
        return None  # it is computed


def _written(document: Document, node: ast.expr) -> WrittenMap | None:
    segment = ast.get_source_segment(document.text, node)
    if segment is None or not isinstance(node, ast.Lambda | ast.Constant):
        return None
    line = split_lines(document.text)[node.lineno - 1]
    at = document.offset(node.lineno - 1, len(line.encode()[: node.col_offset].decode()))
    whole = document.range(at, at + len(segment))
    if isinstance(node, ast.Lambda):
        # Broken over lines it is one text all the same; columns are then not those of the document.
        return WrittenMap(" ".join(segment.split()) if "\n" in segment else segment, whole, "\n" not in segment, True)
    if not isinstance(node.value, str):
        return None
    plain = segment[1:-1] == node.value and segment[:1] in "\"'"
    inner = document.range(at + 1, at + len(segment) - 1) if plain else whole
    return WrittenMap(node.value, inner, plain)


def notes_on_maps(document: Document, tree: ast.Module, policy: Policy) -> Iterator[Note]:
    """What is wrong with the maps whose shapes are written beside them."""
    for written in maps_in(document, tree):
        if written.shape is None:
            continue
        try:
            verdict = written.report().injective
        except LayoutproofError as problem:
            if not _uses_more(written):
                yield from (_placed(document, written, diagnostic) for diagnostic in problem.diagnostics)
            continue
        if verdict.status is not Status.PROVED:
            finding = of_verdict(verdict, "the map", None, None)
            yield note_of(document, replace(finding, fate=policy.fate_of(finding)), written.range)


def _placed(document: Document, written: WrittenMap, diagnostic: Diagnostic) -> Note:
    """A diagnostic about a map's text, at its characters in the document."""
    note = note_of(document, Finding.of(replace(diagnostic, span=None)), written.range)
    span = diagnostic.span
    if span is None or not written.inside or span.source.text != written.text:
        return note
    line, column = written.range.line, written.range.column
    return replace(note, range=Range(line, column + span.column, line, column + max(span.end_column, span.column + 1)))


def _uses_more(written: WrittenMap) -> bool:
    """Whether it is a lambda with names of the code around it, which nothing is known of here."""
    if not written.code:
        return False
    tree = ast.parse(written.text, mode="eval").body
    assert isinstance(tree, ast.Lambda)
    inputs = {each.arg for each in tree.args.args}
    names = {node.id for node in ast.walk(tree.body) if isinstance(node, ast.Name)}
    return bool(names - inputs - {"AXIS_SEPARATOR", "min", "max", "abs"})
