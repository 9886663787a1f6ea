"""Layouts as strings, `NCHW4c`, `OIHW4i16o4i`, and the index map from one to another.

An upper-case letter is an axis, a number with the lower-case letter a tile of it. Tiles of one axis are written from
coarse to fine: in `OIHW4i16o4i` the axis I is split into I//16, then four, then four. The numbers are extents, so each
tile is a digit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import LayoutproofError, Source, Span, error
from layoutproof.ir.dtype import INT32
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap

_TOKEN = re.compile(r"(?P<digits>[0-9]*)(?P<letter>[A-Za-z])")


@dataclass(frozen=True, slots=True)
class LayoutAxis:
    """A part of an axis: `name` in upper case, `extent` of a tile (None: outermost part), `stride` of one step."""

    name: str
    extent: int | None
    stride: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout string, read."""

    text: str
    axes: tuple[LayoutAxis, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The axes it lays out, in order of their outermost parts."""
        return tuple(axis.name for axis in self.axes if axis.extent is None)

    def of(self, name: str) -> tuple[tuple[int, LayoutAxis], ...]:
        """The positions and parts of one axis, as written."""
        return tuple((k, axis) for k, axis in enumerate(self.axes) if axis.name == name)


def parse_layout(text: str, name: str = "<layout>") -> Layout:
    """Read a layout string. Raises LayoutproofError at a repeated axis, or a tile without size or axis."""
    source = Source(name, text)
    if not text.strip():
        raise error(codes.EMPTY, "the text is empty: a layout such as NCHW4c is expected", _span(source, 0, 1))
    parts = _tokens(source)
    axes = set[str]()
    for letter, size, span in (part for part in parts if part[0].isupper()):
        if size is not None:
            message = f"the axis {letter} takes no size; a tile of it is written {size}{letter.lower()}"
            raise error(codes.LAYOUT_STRING, message, span)
        if letter in axes:
            raise error(codes.LAYOUT_STRING, f"the axis {letter} stands twice in {text}", span)
        axes.add(letter)
    for letter, size, span in (part for part in parts if part[0].islower()):
        problem = _tile_problem(letter, size, axes, text)
        if problem is not None:
            raise error(codes.LAYOUT_STRING, problem, span)
    return Layout(text, _with_strides(parts))


def _tile_problem(letter: str, size: int | None, axes: set[str], text: str) -> str | None:
    if size is None:
        return f"the tile {letter} has no size: write for example 4{letter}"
    if not 1 <= size <= INT32.max_int:
        return f"the tile {size}{letter} needs a size from 1 to {INT32.max_int}"
    if letter.upper() not in axes:
        return f"the tile {size}{letter} belongs to an axis {letter.upper()} that {text} lacks"
    return None


_Part = tuple[str, int | None, Span]


def _tokens(source: Source) -> list[_Part]:
    parts: list[_Part] = []
    position = 0
    while position < len(source.text):
        match = _TOKEN.match(source.text, position)
        if match is None:
            stray = source.text[position]
            what = "a size without an axis" if stray.isascii() and stray.isdigit() else f"{stray!r}, which is no axis"
            raise error(codes.LAYOUT_STRING, f"{source.text} has {what}", _span(source, position, position + 1))
        span = _span(source, match.start(), match.end())
        if len(match["digits"]) > 10:
            raise error(codes.LAYOUT_STRING, f"the size of the tile {match['letter']} is too large", span)
        parts.append((match["letter"], int(match["digits"]) if match["digits"] else None, span))
        position = match.end()
    return parts


def _span(source: Source, start: int, end: int) -> Span:
    return Span(source, 1, start, 1, end)


def _with_strides(parts: list[_Part]) -> tuple[LayoutAxis, ...]:
    """Each part's stride: the product of the finer tiles of its axis, those written after it."""
    axes: list[LayoutAxis] = []
    steps: dict[str, int] = {}
    tiles = [(letter.upper(), size) for letter, size, _ in parts if letter.islower()]
    for name, size in tiles:
        assert size is not None
        steps[name] = steps.get(name, 1) * size
    totals = dict(steps)
    for letter, size, span in parts:
        name = letter.upper()
        if size is None:
            axes.append(LayoutAxis(name, None, totals.get(name, 1)))
            if totals.get(name, 1) > INT32.max_int:
                raise error(codes.LAYOUT_STRING, f"the tiles of {name} multiply to {totals[name]}, past 32 bits", span)
        else:
            steps[name] //= size
            axes.append(LayoutAxis(name, size, steps[name]))
    return tuple(axes)


def layout_map(source: str | Layout, target: str | Layout) -> IndexMap:
    """The index map from one layout to another: NHWC to NCHW4c is `lambda n, h, w, c: [n, c//4, h, w, c%4]`.

    The source may be tiled too; its tiles' indices are named by their sizes (`c_4`). Raises LayoutproofError where the
    two layouts do not have the same axes.
    """
    old = parse_layout(source) if isinstance(source, str) else source
    new = parse_layout(target) if isinstance(target, str) else target
    _check_same_axes(old, new)
    inputs = _input_names(old)
    whole = {name: _joined(old, inputs, name) for name in old.names}
    outputs: list[Expr] = []
    for axis in new.axes:
        same = [inputs[k] for k, part in old.of(axis.name) if part == axis]
        outputs.append(same[0] if same else _digit(whole[axis.name], axis))
    return IndexMap(inputs, tuple(outputs))


def _check_same_axes(old: Layout, new: Layout) -> None:
    for first, second in ((old, new), (new, old)):
        extra = [name for name in first.names if name not in second.names]
        if extra:
            raise _axis_error(first, second, extra[0])


def _axis_error(first: Layout, second: Layout, name: str) -> LayoutproofError:
    source = Source("<layout>", first.text)
    column = first.text.index(name)
    return error(
        codes.LAYOUT_STRING,
        f"{first.text} has an axis {name} that {second.text} lacks",
        _span(source, column, column + 1),
    )


def _input_names(layout: Layout) -> tuple[Var, ...]:
    names: list[str] = []
    for axis in layout.axes:
        name = axis.name.lower() if axis.extent is None else f"{axis.name.lower()}_{axis.extent}"
        repeated = name
        while repeated in names:
            repeated += "_"
        names.append(repeated)
    return tuple(Var(name) for name in names)


def _joined(layout: Layout, inputs: tuple[Var, ...], name: str) -> Expr:
    """The logical index of an axis, from the indices of its parts, coarse to fine."""
    parts = sorted(layout.of(name), key=lambda part: part[1].extent is not None)
    result: Expr | None = None
    for position, axis in parts:
        result = (
            inputs[position]
            if result is None
            else result * axis.extent + inputs[position]
            if axis.extent is not None
            else result
        )
    assert result is not None
    return result


def _digit(index: Expr, axis: LayoutAxis) -> Expr:
    shifted = index // axis.stride if axis.stride > 1 else index
    return shifted % axis.extent if axis.extent is not None else shifted
