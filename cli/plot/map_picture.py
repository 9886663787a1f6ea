"""The picture of a layout: placed, filled and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np

from layoutproof.cli import codes
from layoutproof.cli.option_values import names_of
from layoutproof.cli.plot.layout_cells import MAX_CELLS, Content, Picture, lay_out
from layoutproof.ir.diagnostic import error
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.semantics import Trap
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.verify.maps.map_report import MapReport

_ENDINGS = ("svg", "png")
_MOST_COLLIDING = 1 << 18


def ending_of(path: Path) -> str:
    """`svg` or `png`. Raises LayoutproofError for another file."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in _ENDINGS:
        raise error(codes.PICTURE_FORMAT, f"{path}: the file's ending chooses the format; expected .svg or .png")
    return ending


def concrete(shape: Sequence[Expr], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A shape with its sizes, as numbers. Raises LayoutproofError for sizes that do not fit."""
    names = [v.name for v in names_of(shape)]
    for name in sizes:
        if name not in names:
            raise error(codes.SIZE, f"--size {name}: the shape has no size of this name")
    extents = []
    for axis, extent in enumerate(shape):
        missing = [v.name for v in free_variables(extent) if v.name not in sizes]
        if missing:
            raise error(codes.SIZE, f"extent {axis} of the shape is symbolic; say --size {missing[0]}=N")
        try:
            extents.append(int(evaluate(extent, sizes)))
        except (Trap, OverflowError) as problem:
            raise error(codes.SIZE, f"with these sizes extent {axis} of the shape has no value: {problem}") from problem
        if extents[-1] < 1:
            raise error(
                codes.SIZE, f"with these sizes extent {axis} of the shape is {extents[-1]}: it must be at least 1"
            )
    return tuple(extents)


def with_sizes(index_map: IndexMap, sizes: Mapping[str, int]) -> IndexMap:
    """The map with the shape's names replaced by their numbers."""
    inputs = {v.name for v in index_map.inputs}
    values: dict[Var, Expr] = {Var(name): const(number) for name, number in sizes.items() if name not in inputs}
    return replace(index_map, outputs=tuple(substitute(output, values) for output in index_map.outputs))


def picture_of(report: MapReport, ending: str, cells: int = MAX_CELLS) -> bytes:
    """The picture of a checked map of concrete shape, as the bytes of an `svg` or `png` file.

    Raises LayoutproofError for a map that is not injective on more than 262,144 points: its clashes would have to be
    searched.
    """
    from layoutproof.cli.plot.layout_figure import draw_picture

    box = _numbers(report.physical_shape)
    shape = _numbers(report.shape)
    picture = lay_out(box, report.axis_separators, cells)
    held = (
        _by_inverse(report, picture)
        if report.inverse is not None and report.padding.predicate is not None
        else _by_search(report, picture, shape)
    )
    contents = _contents(held, shape)
    caption = f"[{', '.join(map(str, shape))}] stored as [{', '.join(map(str, box))}]: {_legend(picture, contents)}"
    return draw_picture(picture, contents, index_map_text(report.index_map), caption, ending)


def _numbers(extents: Sequence[Expr | None]) -> tuple[int, ...]:
    known = [extent for extent in extents if extent is not None]
    if len(known) < len(extents):
        raise error(codes.NOTHING_TO_DRAW, "the physical shape is not known as numbers: there is no box to draw")
    return tuple(int(evaluate(extent, {})) for extent in known)


def _legend(picture: Picture, contents: Mapping[tuple[int, ...], Content]) -> str:
    """Entries for what the picture shows."""
    counts = {len(content.logical) for content in contents.values()}
    parts = ["logical index, offset in the corner"]
    parts += ["padding hatched"] if 0 in counts else []
    parts += ["red where several logical indices meet (one is written, +n more)"] if max(counts) > 1 else []
    parts += [] if picture.complete else [f"{len(picture.places):,} of {prod(picture.shape):,} cells shown"]
    return ", ".join(parts)


Held = dict[tuple[int, ...], list[tuple[int, ...]]]


def _by_inverse(report: MapReport, picture: Picture) -> Held:
    """The logical index of each shown cell, from the proved inverse and padding predicate."""
    assert report.inverse is not None
    assert report.padding.predicate is not None
    held: Held = {}
    for place in picture.places:
        names = {f"p{axis}": value for axis, value in enumerate(place.index)}
        padding = bool(evaluate(report.padding.predicate, names))
        held[place.index] = [] if padding else [report.inverse.evaluate(place.index)]
    return held


def _by_search(report: MapReport, picture: Picture, shape: tuple[int, ...]) -> Held:
    """The same for a map without an inverse, by enumeration of the logical box."""
    if prod(shape) > _MOST_COLLIDING:
        raise error(
            codes.NOTHING_TO_DRAW,
            f"the map is not injective and its shape has more than {_MOST_COLLIDING} points: too many to draw its "
            "clashes",
        )
    held: Held = {place.index: [] for place in picture.places}
    for index in np.ndindex(*shape):
        cell = held.get(report.index_map.evaluate(index))
        if cell is not None:
            cell.append(tuple(index))
    return held


def _contents(held: Held, shape: tuple[int, ...]) -> dict[tuple[int, ...], Content]:
    total = max(prod(shape) - 1, 1)
    contents = {}
    for index, logical in held.items():
        rank = 0
        for position, extent in zip(logical[0], shape, strict=True) if logical else ():
            rank = rank * extent + position
        contents[index] = Content(tuple(logical), rank / total)
    return contents
