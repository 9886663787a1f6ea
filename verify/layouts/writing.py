"""A layout as text in any notation, and as methods of `IndexMap` find it; each text is proved to be the layout.

Layouts that only split, order and join axes, as digits of indices from the slowest to the fastest; and these as
oneDNN tags, einops patterns and XLA tiles, each read back and proved to be the layout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Binary, Expr, IntImm, Var, const
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.notation import Notation, WrittenLayout
from layoutproof.ir.operators import BinaryOp
from layoutproof.verify.isl.layout_relation import to_isl
from layoutproof.verify.layouts.affine import to_affine_map
from layoutproof.verify.layouts.comparison import prove_same
from layoutproof.verify.layouts.conversions import axis_digits, refused, to_cute, to_linear, to_strides
from layoutproof.verify.layouts.offsets import concrete_extents
from layoutproof.verify.maps.layout_text import read_layout
from layoutproof.verify.maps.problem import Shape, coerce_shape
from layoutproof.verify.verdict.verdict import Status


@dataclass(frozen=True, slots=True)
class Digit:
    """`index[axis] // stride`, modulo `extent`; None for the outermost digit of the axis."""

    axis: int
    stride: int
    extent: int | None


def digits_of(index_map: IndexMap, shape: Shape) -> list[list[Digit]]:
    """The digits of each physical axis. Raises LayoutproofError for a map that does more than order digits."""
    extents = concrete_extents(shape, "a layout of digits")
    found = [_read_digit(index_map, output) for output in index_map.outputs]
    groups = [
        [digit] if digit is not None else _joined_digits(index_map, axis, extents) for axis, digit in enumerate(found)
    ]
    return [[_outermost(digit, extents) for digit in group] for group in groups]


def _outermost(digit: Digit, extents: Sequence[int]) -> Digit:
    """The digit without an extent where nothing lies above it."""
    whole = digit.extent is not None and digit.stride * digit.extent >= extents[digit.axis]
    return Digit(digit.axis, digit.stride, None) if whole and digit.stride > 1 else digit


def _read_digit(index_map: IndexMap, expr: Expr) -> Digit | None:
    """The digit that is written so; None for another expression."""
    if isinstance(expr, Var) and expr in index_map.inputs:
        return Digit(index_map.inputs.index(expr), 1, None)
    if not isinstance(expr, Binary) or not isinstance(expr.rhs, IntImm) or expr.rhs.value < 1:
        return None
    inner, number = _read_digit(index_map, expr.lhs), expr.rhs.value
    if inner is None:
        return None
    if expr.op is BinaryOp.FLOORDIV:
        if inner.extent is None:
            return Digit(inner.axis, inner.stride * number, None)
        return None if inner.extent % number else Digit(inner.axis, inner.stride * number, inner.extent // number)
    if expr.op is not BinaryOp.FLOORMOD or (inner.extent is not None and inner.extent % number):
        return None
    return Digit(inner.axis, inner.stride, number)


def _joined_digits(index_map: IndexMap, output: int, extents: Sequence[int]) -> list[Digit]:
    """The digits of one output, found by its values along each axis: each stride is the product of the faster ones."""
    line = IndexMap(index_map.inputs, (index_map.outputs[output],))
    steps: list[tuple[int, Digit]] = []
    for axis, extent in enumerate(extents):
        step = 1
        for size, stride in axis_digits(line, axis, extent):
            if stride:
                steps.append((stride, Digit(axis, step, size)))
            step *= size
    expected, found = 1, list[Digit]()
    for stride, digit in sorted(steps, key=lambda item: item[0]):
        if stride != expected:
            why = f"the offset has the stride {stride}, where {expected} is expected without gaps"
            raise refused(index_map, "not made of digits", why)
        assert digit.extent is not None
        expected *= digit.extent
        found.append(digit)
    return [
        Digit(d.axis, d.stride, None) if d.stride == 1 and d.extent == extents[d.axis] else d for d in reversed(found)
    ]


def _proved(index_map: IndexMap, shape: Shape, text: str, notation: Notation, axes: dict[str, int]) -> str:
    """The text, once it is read back and proved to be the layout. Raises LayoutproofError."""
    extents = tuple(const(extent) for extent in concrete_extents(shape, "a layout of digits"))
    own = WrittenLayout(Notation.LAMBDA, index_map_text(index_map), index_map, extents)
    verdict, _ = prove_same(own, read_layout(text, extents, notation=notation, axes=axes))
    if verdict.status is not Status.PROVED:
        raise refused(index_map, f"not `{text}`", "it is another layout with these digits")
    return text


def _sorted_by_axis(groups: Sequence[Sequence[Digit]], rank: int) -> list[list[Digit]]:
    """The digits of each axis, the outermost first."""
    every = [digit for group in groups for digit in group]
    return [sorted((d for d in every if d.axis == axis), key=lambda d: -d.stride) for axis in range(rank)]


def to_onednn(index_map: IndexMap, shape: Shape) -> str:
    """The oneDNN tag of a layout. Raises LayoutproofError where it has none."""
    groups = digits_of(index_map, shape)
    rank = len(index_map.inputs)
    if rank > 12:
        raise refused(index_map, "no oneDNN tag", f"it has {rank} axes, oneDNN has 12")
    by_axis = _sorted_by_axis(groups, rank)
    order = [digit for group in groups for digit in group]
    outer = [digit for digit in order if digit == by_axis[digit.axis][0]]
    outer = [Digit(axis, 1, None) for axis in range(rank) if not by_axis[axis]] + outer
    inner = [digit for digit in order if digit not in outer]
    if [digit for digit in order if digit in outer] != order[: len(order) - len(inner)]:
        raise refused(index_map, "no oneDNN tag", "an inner block lies outside an outer dimension")
    letters = "".join(chr((65 if len(by_axis[d.axis]) > 1 else 97) + d.axis) for d in outer)
    blocks = "".join(f"{d.extent}{chr(97 + d.axis)}" for d in inner)
    return _proved(index_map, shape, letters + blocks, Notation.ONEDNN, {})


def to_einops(index_map: IndexMap, shape: Shape) -> tuple[str, dict[str, int]]:
    """The einops pattern of a layout, and the lengths that it needs. Raises LayoutproofError where it has none."""
    groups = digits_of(index_map, shape)
    extents = concrete_extents(shape, "an einops pattern")
    by_axis = _sorted_by_axis(groups, len(extents))
    names: dict[Digit, str] = {}
    lengths: dict[str, int] = {}
    for axis, digits in enumerate(by_axis):
        base = chr(97 + axis) if axis < 26 else f"x{axis}"
        for position, digit in enumerate(digits):
            names[digit] = base if len(digits) == 1 else f"{base}{position}"
            if position:
                lengths[names[digit]] = digit.extent if digit.extent is not None else 1
    left = " ".join(_group([names[d] for d in digits]) for digits in by_axis)
    right = " ".join(_group([names[d] for d in group]) for group in groups)
    for axis, digits in enumerate(by_axis):
        if extents[axis] % prod(lengths.get(names[d], 1) for d in digits):
            raise refused(index_map, "no einops pattern", f"axis {axis} of {extents[axis]} indices is padded")
    text = f"{left} -> {right}"
    return _proved(index_map, shape, text, Notation.EINOPS, lengths), lengths


def _group(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({' '.join(names)})" if names else "1"


def to_xla(index_map: IndexMap, shape: Shape) -> str:
    """The XLA layout of a layout of digits with one tile at most. Raises LayoutproofError where it has none."""
    groups = digits_of(index_map, shape)
    rank = len(index_map.inputs)
    by_axis = _sorted_by_axis(groups, rank)
    order = [digit for group in groups for digit in group]
    outer = [axis for axis in range(rank) if not by_axis[axis]]
    outer += [digit.axis for digit in order if digit == by_axis[digit.axis][0]]
    inner = [digit for digit in order if digit != by_axis[digit.axis][0]]
    tile = ""
    if inner:
        sizes = {digit.axis: digit.extent for digit in inner}
        first = min(outer.index(digit.axis) for digit in inner)
        if len(sizes) < len(inner) or [d.axis for d in inner] != [axis for axis in outer[first:] if axis in sizes]:
            raise refused(index_map, "no XLA layout", "its inner digits are not one tile over the minor dimensions")
        tile = f":T({','.join(str(sizes.get(axis, 1)) for axis in outer[first:])})"
    text = f"{{{','.join(map(str, reversed(outer)))}{tile}}}"
    return _proved(index_map, shape, text, Notation.XLA, {})


@dataclass(frozen=True, slots=True)
class Written:
    """The text in one notation, or why there is none."""

    notation: Notation
    text: str | None
    reason: str | None = None


def write_layout(index_map: IndexMap, shape: Shape, notation: Notation | str) -> str:
    """The text of a map on a shape in a notation. Raises LayoutproofError, if possible with an index, where none is."""
    writer = _WRITERS.get(Notation(notation))
    if writer is None:
        raise refused(index_map, "not written as a matrix instruction", "their operands are read only")
    return writer(index_map, shape)


def all_notations(index_map: IndexMap, shape: Shape) -> tuple[Written, ...]:
    """The map in every notation that it has a text in."""
    found: list[Written] = []
    for notation in _WRITERS:
        try:
            found.append(Written(notation, write_layout(index_map, shape, notation)))
        except LayoutproofError as problem:
            found.append(Written(notation, None, problem.diagnostics[0].message))
    return tuple(found)


def _einops(index_map: IndexMap, shape: Shape) -> str:
    text, lengths = to_einops(index_map, shape)
    return f"{text}, {', '.join(f'{name}={length}' for name, length in lengths.items())}" if lengths else text


def _string(index_map: IndexMap, shape: Shape) -> str:
    """oneDNN's tag in upper case, which is a layout string of TVM."""
    tag = to_onednn(index_map, shape)
    letters = "".join(chr(65 + axis) for axis in range(len(index_map.inputs)))
    if not letters:
        raise refused(index_map, "no layout string", "it has no axes")
    outer = tag[: len(letters)].upper()
    return f"{letters}->{outer}{tag[len(letters) :]}"


_WRITERS: Mapping[Notation, Callable[[IndexMap, Shape], str]] = {
    Notation.LAMBDA: lambda m, s: index_map_text(m),
    Notation.STRING: _string,
    Notation.CUTE: lambda m, s: str(to_cute(m, s)),
    Notation.TRITON: lambda m, s: str(to_linear(m, s)),
    Notation.MLIR: to_affine_map,
    Notation.ONEDNN: to_onednn,
    Notation.EINOPS: _einops,
    Notation.ISL: lambda m, s: str(to_isl(m, coerce_shape(s))),
    Notation.STRIDES: lambda m, s: str(to_strides(m, s)),
    Notation.XLA: to_xla,
}
