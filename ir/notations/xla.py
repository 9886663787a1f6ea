"""XLA's layouts, `f32[8,512]{1,0:T(8,128)(2,1)}`: dimensions from minor to major, then tiles over the minor dimensions,
a further tile over the dimensions of the tile before it. The map goes to the tiled index; padding is unspecified.

Source: "Tiled layout" in XLA's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, IntImm, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.notation import (
    Context,
    Notation,
    Scanner,
    WrittenLayout,
    check_agrees,
    index_variables,
    scaled,
    whole,
)

_WHAT = "XLA layout"
_TYPE = re.compile(r"[a-z]+[0-9]*[a-z0-9]*(?=\[)")
_SIZE = re.compile(r"(?:<=)?([0-9]+)")
_IGNORED = re.compile(r"[SE]\([0-9]+\)")
_COMBINED = -1


@dataclass(frozen=True, slots=True)
class XlaLayout:
    """Dimensions from minor to major, and tiles, whose entries are -1 where a dimension joins the next."""

    minor_to_major: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...] | None = None

    def __str__(self) -> str:
        order = ",".join(map(str, self.minor_to_major))
        tiles = "".join(f"({','.join('*' if t == _COMBINED else str(t) for t in tile)})" for tile in self.tiles)
        return f"{{{order}{':T' if tiles else ''}{tiles}}}"


def parse_xla(text: str, name: str = "<layout>") -> XlaLayout:
    """Read a layout, with or without its type. Raises LayoutproofError."""
    scanner = Scanner(text, _WHAT, name)
    shape = _shape(scanner) if scanner.matched(_TYPE) is not None or scanner.sees("[") else None
    start = scanner.position
    scanner.expect("{", "before the order of dimensions")
    order: list[int] = []
    while scanner.position < len(text) and text[scanner.position] not in ":}":
        if order:
            scanner.expect(",", "or ':' or '}'")
        order.append(scanner.integer("the number of a dimension"))
    if sorted(order) != list(range(len(order))):
        message = f"the dimensions from minor to major are a permutation of 0 to {max(0, len(order) - 1)}"
        raise scanner.fail(message, start + 1, scanner.position)
    if shape is not None and len(shape) != len(order):
        raise scanner.fail(f"the type has {len(shape)} dimensions, the layout {len(order)}", start, scanner.position)
    tiles = _tiles(scanner, len(order)) if scanner.optional(":") else ()
    scanner.expect("}", "at the end")
    scanner.end()
    return XlaLayout(tuple(order), tiles, shape)


def _shape(scanner: Scanner) -> tuple[int, ...]:
    scanner.expect("[")
    found: list[int] = []
    while not scanner.optional("]"):
        if found:
            scanner.expect(",", "or ']'")
        match = scanner.matched(_SIZE)
        if match is None or len(match[1]) > 18 or int(match[1]) < 1:
            raise scanner.fail("an extent of at least 1 is expected")
        found.append(int(match[1]))
    return tuple(found)


def _tiles(scanner: Scanner, rank: int) -> tuple[tuple[int, ...], ...]:
    tiles: list[tuple[int, ...]] = []
    while not scanner.sees("}"):
        # A memory space or the width of an element does not move anything.
        if scanner.matched(_IGNORED) is not None:
            continue
        if not tiles:
            scanner.expect("T", "before tiles")
        while scanner.sees("("):
            start = scanner.position
            tile = _tile(scanner)
            below = rank if not tiles else sum(size != _COMBINED for size in tiles[-1])
            if len(tile) > below:
                what = "dimensions of the array" if not tiles else "dimensions of the tile before"
                raise scanner.fail(f"the tile has {len(tile)} entries for {below} {what}", start, scanner.position)
            tiles.append(tile)
        if not tiles or not (scanner.sees("}") or _IGNORED.match(scanner.text, scanner.position)):
            raise scanner.fail(f"a tile in parentheses is expected, not {scanner.next}")
    return tuple(tiles)


def _tile(scanner: Scanner) -> tuple[int, ...]:
    scanner.expect("(")
    found: list[int] = []
    while not scanner.optional(")"):
        if found:
            scanner.expect(",", "or ')'")
        start = scanner.position
        found.append(_COMBINED if scanner.optional("*") else scanner.integer("the extent of a tile"))
        if found[-1] == 0 or found[-1] < _COMBINED:
            raise scanner.fail("an extent of a tile is at least 1", start, scanner.position)
    if not found or found[-1] == _COMBINED:
        raise scanner.fail("a tile ends with a number", scanner.position - 1, scanner.position)
    return tuple(found)


def read_xla(text: str, context: Context, name: str = "<layout>") -> WrittenLayout:
    """The map of a layout on the shape of its type or of the context. Raises LayoutproofError."""
    layout = parse_xla(text, name)
    source = Scanner(text, _WHAT, name).source
    given = context.shape
    own: tuple[Expr, ...] | None = None if layout.shape is None else tuple(const(e) for e in layout.shape)
    if own is not None:
        check_agrees(own, context, source)
    shape = own if own is not None else given
    if shape is None and any(_COMBINED in tile for tile in layout.tiles):
        shape = context.needed(source, "a tile with * joins dimensions")
    rank = len(layout.minor_to_major)
    if shape is not None and len(shape) != rank:
        message = f"the layout has {rank} dimensions, the shape {len(shape)}"
        raise error(codes.NOTATION_INCOMPLETE, message, whole(source))
    inputs = index_variables([f"i{axis}" for axis in range(rank)], shape or ())
    order = tuple(reversed(layout.minor_to_major))
    axes: list[_Axis] = [(inputs[axis], None if shape is None else shape[axis]) for axis in order]
    first = 0
    for tile in layout.tiles:
        axes, first = _tiled(axes, first, tile)
    return WrittenLayout(Notation.XLA, text, IndexMap(inputs, tuple(index for index, _ in axes)), shape)


_Axis = tuple[Expr, Expr | None]


def _tiled(axes: list[_Axis], first: int, tile: Sequence[int]) -> tuple[list[_Axis], int]:
    """The axes with a tile over the last ones, none of them before `first`; and where the tile's own dimensions are."""
    begin = len(axes) - len(tile)
    assert begin >= first
    kept, joined = axes[:begin], list[_Axis]()
    sizes: list[int] = []
    pending: _Axis | None = None
    for axis, size in zip(axes[begin:], tile, strict=True):
        axis = axis if pending is None else _join(pending, axis)
        pending = axis if size == _COMBINED else None
        if size != _COMBINED:
            joined.append(axis)
            sizes.append(size)
    pairs = list(zip(joined, sizes, strict=True))
    outer = [(index // size if size > 1 else index, _quotient(extent, size)) for (index, extent), size in pairs]
    inner: list[_Axis] = [(index % size, const(size)) for (index, _), size in pairs]
    return [*kept, *outer, *inner], len(kept) + len(outer)


def _quotient(extent: Expr | None, size: int) -> Expr | None:
    if isinstance(extent, IntImm):
        return const(-(-extent.value // size))
    return None if extent is None else (extent + (size - 1)) // size


def _join(major: _Axis, minor: _Axis) -> _Axis:
    """Two dimensions as one, in row-major order."""
    (a, m), (b, n) = major, minor
    assert n is not None
    both = const(m.value * n.value) if isinstance(m, IntImm) and isinstance(n, IntImm) else None
    return scaled(a, n) + b, both if both is not None else None if m is None else m * n
