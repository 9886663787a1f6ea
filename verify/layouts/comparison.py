"""Whether two layouts are the same function, up to the form of their cells and the order of their axes; where they
differ; and the map from the cells of one to those of the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import Source, counted, error
from layoutproof.ir.expr import Expr, IntImm, Select, const
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.cute import grouped, parse_cute
from layoutproof.ir.notations.notation import Notation, WrittenLayout, whole
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import substitute
from layoutproof.verify.layouts.conversions import simplified_map, to_linear
from layoutproof.verify.layouts.linear_algebra import Moves, moves_between
from layoutproof.verify.layouts.offsets import offset_map
from layoutproof.verify.layouts.properties import LayoutProperties, properties_of
from layoutproof.verify.maps.equal_maps import prove_equal_maps
from layoutproof.verify.maps.layout_text import read_layout
from layoutproof.verify.maps.map_facts import report_on
from layoutproof.verify.maps.map_report import json_size
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

MAX_PERMUTED = 5


@dataclass(frozen=True, slots=True)
class Conversion:
    """The map from the first layout's cells to the second's; None, with the reason, where there is none."""

    index_map: IndexMap | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LayoutComparison:
    """Two layouts on one shape. `compared` says what: their `cells`, or `offsets`, where they have other axes.

    `moves` says how far data goes from the first to the second, of two Triton layouts of one tensor and hardware.
    `axes` is the order of the second layout's axes in which the two are the same; the own order where they are the same
    as they stand, None where no order is known.
    """

    first: WrittenLayout
    second: WrittenLayout
    shape: tuple[Expr, ...]
    same: Verdict
    compared: str
    axes: tuple[int, ...] | None
    conversion: Conversion
    moves: Moves | None
    properties: tuple[LayoutProperties | None, LayoutProperties | None]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        sides = zip((self.first, self.second), self.properties, strict=True)
        conversion = self.conversion
        return {
            "shape": [json_size(extent) for extent in self.shape],
            "same": self.same.to_dict(),
            "compared": self.compared,
            "axes": None if self.axes is None else list(self.axes),
            "conversion": None if conversion.index_map is None else index_map_text(conversion.index_map),
            "conversion_reason": conversion.reason,
            "moves": self.moves,
            "layouts": [_side(layout, found) for layout, found in sides],
        }


def _side(layout: WrittenLayout, properties: LayoutProperties | None) -> dict[str, Any]:
    plain = {"text": layout.text, "notation": layout.notation.value, "index_map": index_map_text(layout.index_map)}
    where = None if layout.where is None else expr_text(layout.where, "plain")
    return {**plain, "where": where, "properties": None if properties is None else properties.to_dict()}


def compare_layouts(first: WrittenLayout, second: WrittenLayout) -> LayoutComparison:
    """Compare two layouts. One without a shape takes the other's; a CuTe layout is asked on the other's shape where
    that groups its modes.

    Raises LayoutproofError where the shapes do not fit each other, and for maps without value.
    """
    first, second = _on_one_shape(first, second)
    assert first.shape is not None and second.shape is not None
    shape = first.shape
    same, compared = prove_same(first, second)
    axes: tuple[int, ...] | None = tuple(range(len(shape))) if same.status is Status.PROVED else None
    if same.status is Status.REFUTED:
        axes = _other_order(first, second)
    conversion = _conversion(first, second)
    properties = (_properties(first), _properties(second))
    return LayoutComparison(first, second, shape, same, compared, axes, conversion, _moves(first, second), properties)


def _moves(first: WrittenLayout, second: WrittenLayout) -> Moves | None:
    """How far data goes between two layouts of registers, lanes, warps and blocks; None for others."""
    if first.notation is not Notation.TRITON or second.notation is not Notation.TRITON:
        return None
    try:
        return moves_between(*(to_linear(each.index_map, each.extents()) for each in (first, second)))
    except ValueError:
        return None


def _properties(layout: WrittenLayout) -> LayoutProperties | None:
    assert layout.shape is not None
    return None if layout.where is not None else properties_of(layout.index_map, layout.shape)


def _on_one_shape(first: WrittenLayout, second: WrittenLayout) -> tuple[WrittenLayout, WrittenLayout]:
    if first.shape is None and second.shape is None:
        message = "neither layout says its shape: give the logical shape"
        raise error(codes.NOTATION_INCOMPLETE, message, whole(Source("<layout>", first.text)))
    if first.shape is None:
        return _read_on(first, second.shape), second
    if second.shape is None:
        return first, _read_on(second, first.shape)
    if _numbers(first.shape) == _numbers(second.shape):
        return first, second
    for one, other in ((first, second), (second, first)):
        changed = _regrouped(one, other.shape)
        if changed is not None:
            return (changed, other) if one is first else (other, changed)
    if len(first.shape) != len(second.shape):
        shapes = " and ".join(f"({', '.join(map(str, _numbers(x.shape)))})" for x in (first, second))
        message = f"the layouts are on the shapes {shapes}: they take indices of another number of axes"
        raise error(codes.NOTATION_INCOMPLETE, message, whole(Source("<layout>", second.text)))
    return first, second


def _read_on(layout: WrittenLayout, shape: tuple[Expr, ...] | None) -> WrittenLayout:
    if shape is not None and len(layout.index_map.inputs) != len(shape):
        takes = counted(len(layout.index_map.inputs), "index", "indices")
        message = f"the layout takes {takes}, the other one has {counted(len(shape), 'axis', 'axes')}"
        raise error(codes.NOTATION_INCOMPLETE, message, whole(Source("<layout>", layout.text)))
    return replace(layout, shape=shape)


def _numbers(shape: Sequence[Expr] | None) -> list[int | str]:
    extents = shape if shape is not None else ()
    return [e.value if isinstance(e, IntImm) else expr_text(e, "plain") for e in extents]


def _regrouped(layout: WrittenLayout, shape: tuple[Expr, ...] | None) -> WrittenLayout | None:
    """A CuTe layout on another shape that groups its modes; None for other layouts and shapes."""
    if layout.notation is not Notation.CUTE or shape is None:
        return None
    extents = [extent.value for extent in shape if isinstance(extent, IntImm)]
    try:
        grouped([extent for extent, _ in parse_cute(layout.text).flat], extents)
    except ValueError:
        return None
    return read_layout(layout.text, shape, notation=Notation.CUTE) if len(extents) == len(shape) else None


def prove_same(first: WrittenLayout, second: WrittenLayout) -> tuple[Verdict, str]:
    """Whether two layouts on shapes of one rank are the same function, and what of it was compared."""
    assert first.shape is not None and second.shape is not None
    outside = _outside(first.shape, second.shape)
    if outside is not None:
        claim = Claim(ClaimKind.OTHER, "both layouts have one shape", about=("equal-shapes",))
        return Verdict(Status.REFUTED, claim, "symbolic", counterexample=outside), "shapes"
    a, b = first.index_map, second.index_map
    compared = "cells"
    if a.rank != b.rank:
        a, b, compared = offset_map(a, first.shape), offset_map(b, second.shape), "offsets"
    a, b = _masked(a, first), _masked(b.rename([v.name for v in a.inputs]), second)
    if first.where is not None or second.where is not None:
        claimed = _told_domains(prove_equal_maps(*_with_domains(a, b, first, second), first.shape))
    else:
        claimed = prove_equal_maps(a, b, first.shape)
    return claimed, compared


def _outside(first: Sequence[Expr], second: Sequence[Expr]) -> dict[str, Any] | None:
    """An index that is in one shape only."""
    a, b = _numbers(first), _numbers(second)
    for axis, (x, y) in enumerate(zip(a, b, strict=True)):
        if isinstance(x, int) and isinstance(y, int) and x != y:
            return {
                "index": [min(x, y) if k == axis else 0 for k in range(len(a))],
                "first_shape": a,
                "second_shape": b,
            }
        if x != y:
            message = f"extent {axis} is {x} in the first layout and {y} in the second"
            raise error(codes.NOTATION_INCOMPLETE, f"shapes with symbols are compared as written: {message}")
    return None


def _masked(index_map: IndexMap, layout: WrittenLayout) -> IndexMap:
    """The map with 0 wherever its layout is not defined."""
    if layout.where is None:
        return index_map
    names = dict(zip(layout.index_map.inputs, index_map.inputs, strict=True))
    where = substitute(layout.where, dict(names))
    return replace(index_map, outputs=tuple(Select(where, o, const(0, o.dtype)) for o in index_map.outputs))


def _with_domains(a: IndexMap, b: IndexMap, first: WrittenLayout, second: WrittenLayout) -> tuple[IndexMap, IndexMap]:
    """The maps with one more output each: 1 wherever the layout is defined."""
    found: list[IndexMap] = []
    for index_map, layout in ((a, first), (b, second)):
        defined: Expr = const(1)
        if layout.where is not None:
            names = dict(zip(layout.index_map.inputs, index_map.inputs, strict=True))
            defined = Select(substitute(layout.where, dict(names)), const(1), const(0))
        found.append(IndexMap(index_map.inputs, (*index_map.outputs, defined)))
    return found[0], found[1]


def _told_domains(verdict: Verdict) -> Verdict:
    """The counterexample without the outputs for domains: no image where a layout is not defined."""
    example = verdict.counterexample
    if example is None:
        return verdict
    images = {key: list(example[key][:-1]) if example[key][-1] else None for key in ("first", "second")}
    return replace(verdict, counterexample={**example, **images})


# Another order of axes


def _other_order(first: WrittenLayout, second: WrittenLayout) -> tuple[int, ...] | None:
    """An order of the second layout's axes in which the two are the same; None where none is found."""
    assert first.shape is not None and second.shape is not None
    rank = len(first.shape)
    if not 1 < rank <= MAX_PERMUTED or first.where is not None or second.where is not None:
        return None
    for order in _orders(_numbers(first.shape), _numbers(second.shape)):
        inputs = tuple(second.index_map.inputs[axis] for axis in order)
        turned = replace(
            second,
            index_map=IndexMap(inputs, second.index_map.outputs),
            shape=tuple(second.shape[axis] for axis in order),
        )
        if prove_same(first, turned)[0].status is Status.PROVED:
            return order
    return None


def _orders(first: Sequence[int | str], second: Sequence[int | str]) -> Iterator[tuple[int, ...]]:
    for order in permutations(range(len(first))):
        if order != tuple(range(len(first))) and [second[axis] for axis in order] == list(first):
            yield order


# Conversion


def _conversion(first: WrittenLayout, second: WrittenLayout) -> Conversion:
    """The second map after the inverse of the first."""
    assert first.shape is not None and second.shape is not None
    if first.where is not None or second.where is not None:
        return Conversion(None, "a layout is defined on a part of its box only")
    if _numbers(first.shape) != _numbers(second.shape):
        return Conversion(None, "the layouts have different shapes")
    report = report_on(first.index_map, first.shape)
    if report.inverse is None:
        return Conversion(None, f"the first layout has no inverse: {report.inverse_reason}")
    composed = second.index_map.compose(report.inverse)
    if any(size is None for size in report.physical_shape):
        return Conversion(composed)
    return Conversion(simplified_map(composed, [size for size in report.physical_shape if size is not None]))
