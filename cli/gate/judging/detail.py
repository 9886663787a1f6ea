"""The details of an item for the HTML report, as plain data: programs step by step with differences, layouts as
pictures, padding contracts, preconditions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import Any

from layoutproof.cli.gate.judging.stored_cells import Stored, picture_data
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Expr
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.layout_record import Cell, LayoutRecord, LayoutStep, layout_records, plain_shape
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables, walk
from layoutproof.lowering.arith.known_facts import assumed_of_constants, constants_of
from layoutproof.lowering.compare.comparison import PRIMITIVE, Comparison
from layoutproof.lowering.layout.transform_layout import TransformLayout
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.find import all_buffers, find_buffer
from layoutproof.lowering.passes.illegal import RefusedStep
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.lowering.schedule.trace import passes_of, program_text
from layoutproof.verify.certificate.certificate import Whose
from layoutproof.verify.faults.arithmetic import call_assumptions
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.program.instances import conjuncts

Marks = list[list[int]]
"""Stretches of a line that are not in its counterpart: `[start, end]`, columns from 0, the end exclusive."""
Row = list[Any]
"""`["=", n]`: n lines are the same; `["-", n]`: n are gone; `["+", n]`: n are new; `["~", marks, marks]`: one line
became another.
"""

_WORD = re.compile(r"\w+|\s+|.")
_LARGEST_BLOCK = 2_500
_LARGEST_TEXT = 1 << 20
_ALIKE = 0.4


def diff_of(old: Sequence[str], new: Sequence[str]) -> list[Row]:
    """The rows that lead from `old` to `new`, in order."""
    return _diff(tuple(old), tuple(new))


@lru_cache(maxsize=512)
def _diff(old: tuple[str, ...], new: tuple[str, ...]) -> list[Row]:
    rows: list[Row] = []
    # Of very long programs, lines that are everywhere are no landmarks: that is slightly worse and much faster.
    large = len(old) * len(new) > _LARGEST_TEXT
    for tag, i, i_end, j, j_end in SequenceMatcher(None, old, new, autojunk=large).get_opcodes():
        if tag == "equal":
            rows.append(["=", i_end - i])
        elif tag == "delete":
            rows.append(["-", i_end - i])
        elif tag == "insert":
            rows.append(["+", j_end - j])
        else:
            rows += _replaced(old[i:i_end], new[j:j_end])
    return rows


def _replaced(old: Sequence[str], new: Sequence[str]) -> Iterator[Row]:
    """A replaced block: similar lines are paired, the others are removed or new."""
    i = j = 0
    for left, right in (*_pairs(old, new), (len(old), len(new))):
        if left > i:
            yield ["-", left - i]
        if right > j:
            yield ["+", right - j]
        if left < len(old):
            yield ["~", *_marks(old[left], new[right])]
        i, j = left + 1, right + 1


def _pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Which lines correspond, in order, with the greatest total similarity. None for very large blocks."""
    if len(old) * len(new) > _LARGEST_BLOCK:
        return []
    words = [set(_WORD.findall(line.strip())) for line in (*old, *new)]
    alike = [[_likeness(words[i], words[len(old) + j]) for j in range(len(new))] for i in range(len(old))]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            together = best[i + 1][j + 1] + alike[i][j] if alike[i][j] >= _ALIKE else 0.0
            best[i][j] = max(together, best[i + 1][j], best[i][j + 1])
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(old) and j < len(new):
        if alike[i][j] >= _ALIKE and best[i][j] == best[i + 1][j + 1] + alike[i][j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def _likeness(one: set[str], other: set[str]) -> float:
    """The share of words that two lines have in common, 0 to 1."""
    every = one | other
    return len(one & other) / len(every) if every else 1.0


def _marks(old: str, new: str) -> tuple[Marks, Marks]:
    """Which words of a line and of its counterpart are not in the other one."""
    left, right = _WORD.findall(old), _WORD.findall(new)
    gone: Marks = []
    fresh: Marks = []
    for tag, i, i_end, j, j_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag != "equal":
            _mark(gone, left, i, i_end)
            _mark(fresh, right, j, j_end)
    return gone, fresh


def _mark(marks: Marks, words: Sequence[str], start: int, end: int) -> None:
    if start == end:
        return
    column = sum(len(word) for word in words[:start])
    length = sum(len(word) for word in words[start:end])
    marks.append([column, column + length])


Part = dict[str, Any]

_PADDING = {Cell.PAD_VALUE: "value", Cell.PAD_UNDEF: "undef", Cell.PAD_FORBIDDEN: "forbidden"}
_KEPT = 512  # schedules that are judged one after another often share programs
_NO_OVERLAP = "parameters do not overlap where one of them is written"


def detail_of(schedule: Schedule, refused: RefusedStep | None = None) -> Part:
    """A schedule; with the program and layout of the `refused` step."""
    programs = [schedule.original, *(step.rewrite.new for step in schedule.steps)]
    primitives = [step.transform.primitive for step in schedule.steps]
    wheres = dict.fromkeys(step.where for step in schedule.steps if step.where is not None)
    return _of_programs(programs, primitives, list(wheres), refused)


def detail_of_refusal(refused: RefusedStep) -> Part:
    """A refused step whose schedule is not at hand."""
    return _of_programs([refused.func], [], [], refused)


def _of_programs(
    programs: Sequence[PrimFunc], primitives: Sequence[str], wheres: Sequence[Expr], refused: RefusedStep | None
) -> Part:
    kept = programs[-1]
    layouts = list(_layouts(kept))
    proposed: PrimFunc | None = None
    if refused is not None:
        (transform,) = passes_of([[refused.primitive, dict(refused.arguments)]])
        proposed = _proposed(transform, kept)
        if isinstance(transform, TransformLayout):
            layouts = [*_refused_layout(transform, kept), *layouts]
    part = _programs([*programs, *([proposed] if proposed is not None else [])])
    part["whole"] = diff_of(_lines(part, 0), _lines(part, len(programs) - 1))
    return _part(
        programs[0].name,
        part,
        primitives=[*primitives, *([refused.primitive] if refused is not None else [])],
        refused=proposed is not None,
        layouts=layouts,
        contracts=_contracts(layouts),
        assumptions=assumptions(programs, wheres),
    )


def detail_of_rewrite(rewrite: Rewrite, where: Expr | None = None, primitive: str = "rewrite") -> Part:
    """Two programs of a rewrite file, under an unchecked condition on symbols."""
    part = _programs([rewrite.old, rewrite.new])
    part["whole"] = diff_of(_lines(part, 0), _lines(part, 1))
    layouts = [*_layouts(rewrite.new), *_moved(rewrite, where)]
    return _part(
        rewrite.old.name,
        part,
        primitives=[primitive],
        layouts=layouts,
        contracts=_contracts(layouts),
        assumptions=assumptions([rewrite.old, rewrite.new], [where] if where is not None else []),
    )


def detail_of_comparison(compared: Comparison) -> Part:
    """Two compared programs: as a rewrite if one was found, else as they are."""
    if compared.rewrite is not None:
        return detail_of_rewrite(compared.rewrite, compared.where, PRIMITIVE)
    part = _programs([compared.before, compared.after])
    part["whole"] = diff_of(_lines(part, 0), _lines(part, 1))
    return _part(compared.before.name, part, primitives=[PRIMITIVE])


def detail_of_map(report: MapReport) -> Part:
    """A map on its own."""
    text = index_map_text(report.index_map)
    layouts = []
    if all(extent is not None for extent in report.physical_shape):
        box = tuple(extent for extent in report.physical_shape if extent is not None)
        symbols = tuple(dict.fromkeys(v for extent in report.shape for v in free_variables(extent)))
        stored = Stored(report.shape, (LayoutStep(report.index_map, box),), report.axis_separators, symbols)
        layouts = [_layout(None, stored, report)]
    return _part(text, _programs([]), layouts=layouts)


def _part(title: str, programs: Mapping[str, Any], **rest: Any) -> Part:
    blank: dict[str, Any] = {
        "primitives": [],
        "whole": [],
        "refused": False,
        "layouts": [],
        "contracts": [],
        "assumptions": [],
    }
    return {"title": title, **blank, **programs, **rest}


# -- programs
# ----------------------------------------------------------------------------------------------------------------------


def _programs(functions: Sequence[PrimFunc]) -> dict[str, Any]:
    texts = [_text_of(function) for function in functions]
    numbers: dict[str, int] = {}
    stages = [[numbers.setdefault(line, len(numbers)) for line in text] for text in texts]
    changes = [diff_of(old, new) for old, new in pairwise(texts)]
    return {"lines": list(numbers), "stages": stages, "changes": changes}


@lru_cache(maxsize=_KEPT)
def _text_of(function: PrimFunc) -> tuple[str, ...]:
    return tuple(program_text(function).rstrip("\n").split("\n"))


def _lines(part: Mapping[str, Any], stage: int) -> list[str]:
    return [part["lines"][number] for number in part["stages"][stage]]


def _proposed(transform: Pass, func: PrimFunc) -> PrimFunc | None:
    """The program that a refused transform would have made; None if it makes none."""
    try:
        return transform.propose(func).new
    except LayoutproofError:
        return None


# -- layouts
# ----------------------------------------------------------------------------------------------------------------------


def _layouts(func: PrimFunc) -> Iterator[dict[str, Any]]:
    buffers: dict[str, Buffer] = {}
    for buffer in all_buffers(func):
        buffers.setdefault(buffer.data.name, buffer)
    for data, record in layout_records(func).items():
        yield _layout(buffers.get(data), _stored(func, buffers.get(data), record), name=data)


def _stored(func: PrimFunc, buffer: Buffer | None, record: LayoutRecord, where: Expr | None = None) -> Stored:
    symbols = constants_of(func)
    separators: tuple[int, ...] = ()
    if buffer is not None and buffer.rank == len(record.shape):
        separators = buffer.axis_separators
    elif record.steps:
        # Flattened: the groups are those of the map.
        separators = record.steps[-1].index_map.separators
    used = tuple(v for v in symbols if _is_named(v.name, record))
    return Stored(
        record.logical_shape, record.steps, separators, used, where if where is not None else assumed_of_constants(func)
    )


def _is_named(name: str, record: LayoutRecord) -> bool:
    texts = [
        e
        for shape in (record.logical_shape, *(s.shape for s in record.steps))
        for e in plain_shape(shape)
        if isinstance(e, str)
    ]
    return any(name in text for text in (*texts, *(step.map_text for step in record.steps)))


def _layout(
    buffer: Buffer | None, stored: Stored, report: MapReport | None = None, *, name: str = "", refused: bool = False
) -> dict[str, Any]:
    steps = [
        {
            "index_map": step.map_text,
            "shape": plain_shape(step.shape),
            "holds": None if step.contract is None else step.contract.text,
            "padding": _PADDING[step.padding],
        }
        for step in stored.steps
    ]
    predicate = report.padding.predicate if report is not None else None
    return {
        "buffer": buffer.name if buffer is not None else name,
        "dtype": str(buffer.dtype) if buffer is not None else None,
        "scope": buffer.scope if buffer is not None else None,
        "refused": refused,
        "logical_shape": plain_shape(stored.logical_shape),
        "physical_shape": plain_shape(stored.shape),
        "axis_separators": list(stored.separators),
        "steps": steps,
        "predicate": expr_text(predicate, Style.PLAIN) if predicate is not None else None,
        "picture": picture_data(stored),
    }


def _refused_layout(transform: TransformLayout, func: PrimFunc) -> Iterator[dict[str, Any]]:
    """The layout that a buffer would have had; none if the buffer is missing or the map does not apply."""
    try:
        buffer = find_buffer(func, transform.buffer)
        index_map = parse_index_map(transform.index_map, symbols=constants_of(func))
        report = check_map(index_map, buffer.shape, assumed_of_constants(func))
    except LayoutproofError:
        return
    if any(extent is None for extent in report.physical_shape):
        return
    box = tuple(extent for extent in report.physical_shape if extent is not None)
    before = layout_records(func).get(buffer.data.name, LayoutRecord(buffer.shape))
    stored = _stored(func, None, before.with_step(LayoutStep(index_map, box)))
    layout = _layout(buffer, stored, report, refused=True)
    pad = transform.pad_value
    if pad is not None:
        # As it was asked for: what was refused may be the pad value.
        undef = pad == "T.undef()"
        layout["steps"][-1] |= {
            "holds": "undef" if undef else str(pad),
            "padding": _PADDING[Cell.PAD_UNDEF if undef else Cell.PAD_VALUE],
        }
    yield layout


def _moved(rewrite: Rewrite, where: Expr | None) -> Iterator[dict[str, Any]]:
    """Buffers whose cells move, of which the new program has no record."""
    known = layout_records(rewrite.new)
    old = {buffer.data.name: buffer for buffer in reversed(all_buffers(rewrite.old))}
    new = {buffer.data.name: buffer for buffer in reversed(all_buffers(rewrite.new))}
    for cells in rewrite.witness.cells:
        before, after = old.get(cells.old_data), new.get(cells.new_data)
        if before is None or after is None or cells.new_data in known or len(cells.cells.outputs) != after.rank:
            continue
        record = LayoutRecord(before.shape, (LayoutStep(cells.cells, after.shape),))
        yield _layout(after, _stored(rewrite.new, after, record, where))


def _contracts(layouts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Padding contracts, by buffer and map; for a layout without padding, a note of that."""
    found = []
    for layout in layouts:
        picture = layout["picture"]
        for number, step in enumerate(layout["steps"]):
            one = {
                "buffer": layout["buffer"],
                "index_map": step["index_map"],
                "padding": step["padding"],
                "holds": step["holds"],
            }
            alone = len(layout["steps"]) == 1 and picture is not None and not picture["sizes"]
            found.append(
                {**one, "refused": layout["refused"], "step": number, "cells": picture["padding"] if alone else None}
            )
    return found


# -- assumptions
# --------------------------------------------------------------------------------------------------------------------


def assumptions(functions: Sequence[PrimFunc], wheres: Sequence[Expr]) -> list[dict[str, Any]]:
    """Every precondition that is not checked, once each, as certificates name them."""
    found: dict[tuple[str, Whose], int] = {(text, Whose.CALLER): 0 for where in wheres for text in _parts(where)}
    for stage, function in enumerate(functions):
        for text in _stated(function):
            found.setdefault((text, Whose.PROGRAM), stage)
    conditions = wheres if wheres else (None,)
    for function in dict.fromkeys(functions):
        for text in (text for where in conditions for text in _fitting(function, where)):
            found.setdefault((text, Whose.CALL), 0)
    if any(function.noalias for function in functions):
        found.setdefault((_NO_OVERLAP, Whose.CALL), 0)
    return [{"text": text, "whose": whose.value, "since": stage} for (text, whose), stage in found.items()]


@lru_cache(maxsize=_KEPT)
def _stated(function: PrimFunc) -> tuple[str, ...]:
    return tuple(expr_text(node.condition, Style.PLAIN) for node in walk(function.body) if isinstance(node, Assume))


@lru_cache(maxsize=_KEPT)
def _fitting(function: PrimFunc, where: Expr | None) -> tuple[str, ...]:
    if not constants_of(function):
        return ()
    return tuple(f"{expr_text(expr, Style.PLAIN)} fits {expr.dtype}" for expr in call_assumptions(function, where))


def _parts(where: Expr) -> list[str]:
    return [expr_text(guard.as_expr, Style.PLAIN) for guard in conjuncts(where)]
