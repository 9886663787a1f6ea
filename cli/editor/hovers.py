"""What is shown where the pointer rests: a map's verdict, shape, padding and picture; a buffer's layout."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from layoutproof.cli.editor.json_places import Part, elements, members
from layoutproof.cli.editor.maps import maps_in
from layoutproof.cli.editor.notes import Document, Range
from layoutproof.cli.editor.python_files import functions_in
from layoutproof.cli.gate.loading import read_program
from layoutproof.cli.option_values import names_of
from layoutproof.cli.plot.map_picture import concrete, scene_of_map, with_sizes
from layoutproof.cli.render.map_report import render_map
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.text import expr_text
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.verdict.verdict import Status

_SIZE = 6  # of a symbol in a picture: small, and no multiple of a tile
_CELLS = 64
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


@dataclass(frozen=True, slots=True)
class Shown:
    """What an editor shows of a place: lines of text, and a picture as SVG, if there is one to draw."""

    range: Range
    text: str
    picture: str | None = None
    caption: str = ""


def hover(document: Document, line: int, column: int) -> Shown | None:
    """What there is to show at a position. Never raises LayoutproofError: what is wrong is a note's to say."""
    try:
        if document.path.endswith(".py"):
            return _in_python(document, line, column)
        return _in_trace(document, document.offset(line, column))
    except (LayoutproofError, ValueError, RecursionError):
        return None


def _in_python(document: Document, line: int, column: int) -> Shown | None:
    tree = ast.parse(document.text)
    for written in maps_in(document, tree):
        if written.range.holds(line, column):
            shape = written.shape
            if shape is None:
                shape = _symbols(written.text)
            return _of_report(written.range, check_map(written.text, shape, written.where))
    return _buffer(document, line, column) if "prim_func" in document.text else None


def _symbols(text: str) -> Sequence[Expr]:
    """An extent for each index of a map: its name in capital letters."""
    names = [each.name for each in parse_index_map(text).inputs]
    return tuple(Var(f"{name.upper()}_" if name.upper() in names else name.upper()) for name in names)


def _of_report(range: Range, report: MapReport) -> Shown:
    drawn = _picture(report)
    return Shown(range, render_map(report).rstrip("\n"), *(drawn if drawn is not None else ()))


def _picture(report: MapReport) -> tuple[str, str] | None:
    """The picture of a map and for which sizes it is drawn; None if it cannot be drawn."""
    sizes = {name.name: _SIZE for name in names_of(report.shape)}
    try:
        drawn = report
        if sizes:
            drawn = check_map(with_sizes(report.index_map, sizes), concrete(report.shape, sizes))
        from layoutproof.cli.plot.map_picture import PictureOptions

        svg = scene_of_map(drawn, PictureOptions(cells=_CELLS)).svg()
    except LayoutproofError:
        return None
    given = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    return svg, f"drawn for {given}" if given else ""


def _in_trace(document: Document, offset: int) -> Shown | None:
    """The map of a step under the pointer, on the buffer that the steps before it leave."""
    start = 0
    if document.path.endswith(".jsonl"):
        start = document.text.rfind("\n", 0, offset) + 1
    parts = list(elements(document.text, start))
    for number, part in enumerate(parts):
        inner = list(elements(document.text, part.start))
        if part.start <= offset <= part.end and len(inner) == 2:
            arguments = {each.name: each for each in members(document.text, inner[1].start)}
            written = arguments.get("index_map")
            if written is not None and written.start <= offset <= written.end:
                return _of_step(document, parts[:number], arguments)
    return None


def _of_step(document: Document, before: Sequence[Part], arguments: dict[str, Part]) -> Shown | None:
    from layoutproof.lowering.arith.known_facts import assumed_of_constants
    from layoutproof.lowering.passes.find import find_buffer
    from layoutproof.lowering.schedule.trace import passes_of

    written = arguments["index_map"]
    range = document.range(written.start, written.end)
    program = Path(document.path).with_suffix(".py")
    if not program.is_file():
        return _of_report(range, check_map(written.value, _symbols(written.value)))
    func = read_program(str(program), None)
    for transform in passes_of([part.value for part in before]):
        func = transform.propose(func).new  # only shapes are looked at, no claim is made
    buffer = find_buffer(func, arguments["buffer"].value)
    return _of_report(range, check_map(written.value, buffer.shape, assumed_of_constants(func)))


def _buffer(document: Document, line: int, column: int) -> Shown | None:
    """The buffer of a program that is named under the pointer."""
    from layoutproof.lowering.passes.find import all_buffers

    text = document.text[document.offset(line, 0) :].split("\n", 1)[0]
    word = next((found for found in _WORD.finditer(text) if found.start() <= column <= found.end()), None)
    if word is None:
        return None
    for function in functions_in(document):
        start, end = _lines_of(function)
        for buffer in all_buffers(function):
            if buffer.name == word[0] and start <= line + 1 <= end:
                return _of_buffer(Range(line, word.start(), line, word.end()), function, buffer.name)
    return None


def _lines_of(function: PrimFunc) -> tuple[int, int]:
    span = function.span
    return (1, 1 << 30) if span is None else (span.line, max(span.end_line, 1 << 30))


def _of_buffer(range: Range, function: PrimFunc, name: str) -> Shown:
    from layoutproof.lowering.passes.find import find_buffer

    buffer = find_buffer(function, name)
    lines = [f"{name}: {buffer.dtype} [{', '.join(expr_text(extent, 'plain') for extent in buffer.shape)}]"]
    record = layout_records(function).get(buffer.data.name)
    if record is None:
        return Shown(range, "\n".join(lines))
    shape = record.logical_shape
    lines.append(f"logical shape   {', '.join(expr_text(extent, 'plain') for extent in shape)}")
    last: MapReport | None = None
    for step in record.steps:
        last = check_map(step.index_map, shape)
        held = "no contract: must not be touched" if step.contract is None else step.contract.text
        lines.append(f"stored by       {index_map_text(step.index_map)}")
        lines.append(f"padding where   {_padding(last)}")
        lines.append(f"padding holds   {held}")
        shape = step.shape
    drawn = None if last is None or last.injective.status is not Status.PROVED else _picture(last)
    return Shown(range, "\n".join(lines), *(drawn if drawn is not None else ()))


def _padding(report: MapReport) -> str:
    predicate = report.padding.predicate
    return "not known" if predicate is None else expr_text(predicate, "plain")
