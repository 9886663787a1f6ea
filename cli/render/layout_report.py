"""Layouts compared and described, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layoutproof.cli.output import escaped
from layoutproof.cli.render.map_report import extents_text, inverse_text, surjective_text, verdict_text
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.notations.notation import WrittenLayout
from layoutproof.ir.text import expr_text
from layoutproof.verify.layouts.comparison import LayoutComparison
from layoutproof.verify.layouts.cute_algebra import AlgebraResult
from layoutproof.verify.layouts.described import LayoutDescription
from layoutproof.verify.layouts.linear_algebra import Moves
from layoutproof.verify.layouts.properties import LayoutProperties

_WIDTH = 16
_MOVES = {
    Moves.NONE: "nowhere",
    Moves.REGISTERS: "between registers of one thread",
    Moves.LANES: "between lanes of one warp",
    Moves.WARPS: "between warps, through shared memory",
    Moves.BLOCKS: "between blocks",
}
Row = tuple[str, str]


def _rows(rows: Sequence[Row]) -> str:
    return "".join(f"{label:<{_WIDTH}}{text}\n" for label, text in rows if text)


def render_comparison(found: LayoutComparison, markup: bool = False) -> str:
    """Whether two layouts are the same, where they differ, and what each is."""
    rows: list[Row] = [
        ("same", verdict_text(found.same, markup)),
        ("", escaped(_difference(found), markup)),
        ("compared", escaped(_compared(found), markup)),
        ("axes", escaped(_axes(found), markup)),
        ("A to B", escaped(_conversion(found), markup)),
        ("data moves", _MOVES[found.moves] if found.moves is not None else ""),
    ]
    text = _rows(rows)
    for name, layout, properties in zip("AB", (found.first, found.second), found.properties, strict=True):
        title = escaped(f"{layout.text}   ({layout.notation})", markup)
        text += "\n" + _rows([(name, title), *_map_rows(layout, markup)])
        text += _rows(_property_rows(properties, markup)) if properties is not None else ""
    return text


def _map_rows(layout: WrittenLayout, markup: bool) -> list[Row]:
    where = "" if layout.where is None else f"   where {expr_text(layout.where, 'plain')}"
    shape = layout.shape if layout.shape is not None else ()
    return [
        ("index map", escaped(index_map_text(layout.index_map) + where, markup)),
        ("logical shape", escaped(extents_text(shape), markup)),
    ]


def _difference(found: LayoutComparison) -> str:
    example = found.same.counterexample
    if example is None:
        return ""
    index = _index(example["index"])
    if "first_shape" in example:
        shapes = f"{example['first_shape']}, {example['second_shape']}"
        return f"{index} is an index of one layout only: the shapes are {shapes}"
    symbols = example.get("symbols")
    given = f" (for {', '.join(f'{k} = {v}' for k, v in symbols.items())})" if symbols else ""
    first, second = (_image(example[key]) for key in ("first", "second"))
    return f"{index} {first} in A, and {second} in B{given}"


def _image(image: Any) -> str:
    return "has no image" if image is None else f"goes to {_index(image)}"


def _index(values: Sequence[int]) -> str:
    return f"({', '.join(map(str, values))})" if len(values) != 1 else str(values[0])


def _compared(found: LayoutComparison) -> str:
    return {
        "cells": "the cells of every logical index",
        "offsets": "the offsets of every logical index, cells in row-major order of the physical box",
        "shapes": "the shapes",
    }[found.compared]


def _axes(found: LayoutComparison) -> str:
    own = tuple(range(len(found.shape)))
    if found.axes is None or found.axes == own:
        return ""
    return f"the same with the axes of B in the order {', '.join(map(str, found.axes))}"


def _conversion(found: LayoutComparison) -> str:
    conversion = found.conversion
    if conversion.index_map is None:
        return f"none: {conversion.reason}"
    return index_map_text(conversion.index_map)


def _property_rows(properties: LayoutProperties, markup: bool) -> list[Row]:
    report, known = properties.report, properties.contiguity
    rows: list[Row] = [
        ("injective", verdict_text(report.injective, markup)),
        ("surjective", escaped(surjective_text(report), markup)),
        ("physical shape", escaped(extents_text(report.physical_shape), markup)),
        ("inverse", escaped(inverse_text(report), markup)),
        ("broadcast", f"axes {', '.join(map(str, properties.broadcast))}" if properties.broadcast else ""),
    ]
    if known is None:
        return [*rows, ("contiguous", escaped(f"not known: {properties.reason}", markup))]
    axis, width = known.vector
    runs = ", ".join(map(str, known.runs))
    vector = f"{width} elements along axis {axis}" if width > 1 else "1 element"
    return [*rows, ("contiguous", f"runs of {runs} along the axes"), ("widest vector", vector)]


def render_layout(found: LayoutDescription, markup: bool = False) -> str:
    """One layout: its properties, then its text in every notation, or why there is none."""
    layout = found.layout
    text = _rows([("layout", escaped(f"{layout.text}   ({layout.notation})", markup)), *_map_rows(layout, markup)])
    text += _rows(_property_rows(found.properties, markup)) + "\n"
    return text + _rows(
        [
            (each.notation.value, escaped(each.text if each.text is not None else f"none: {each.reason}", markup))
            for each in found.written
        ]
    )


def render_algebra(found: AlgebraResult, markup: bool = False) -> str:
    """The layout of an operation, then each of its conditions."""
    layout = str(found.layout) if found.layout is not None else "none: a condition does not hold"
    rows: list[Row] = [(found.operation, escaped(layout, markup))]
    for condition in found.conditions:
        why = "" if condition.why is None else f": {condition.why}"
        text = f"{condition.text}{why}"
        rows.append(("holds" if condition.holds else "does not hold", escaped(text, markup)))
    return _rows(rows)
