"""The picture of a checked map: what each cell holds, how it is coloured, what is traced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import prod
from pathlib import Path

from layoutproof.cli import codes
from layoutproof.cli.option_values import names_of
from layoutproof.cli.plot.layout_cells import MAX_CELLS, Picture, lay_out
from layoutproof.cli.plot.layout_figure import (
    Cell,
    Figure,
    Footprint,
    Panel,
    index_lines,
    sample,
    scene_of,
    short_names,
    traced_sample,
)
from layoutproof.cli.plot.palette import CLASH, by_bank, by_order, by_row, of_padding
from layoutproof.cli.plot.scene import Rect, Scene, cut, file_of
from layoutproof.ir.diagnostic import error
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.semantics import Trap
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.verify.maps.map_report import MapReport

Held = dict[tuple[int, ...], list[tuple[int, ...]]]
"""The logical indices of each shown cell: none in padding, several where a map is not injective."""
_ENDINGS = ("svg", "png")
_MOST_COLLIDING = 1 << 18
_ELIDED = 1.5  # cells further apart than that have others between them that are not shown


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


COLOURS = ("auto", "order", "row", "bank", "thread")
_THREADS = ("lane", "warp", "block", "thread")
_HUES = 32


@dataclass(frozen=True, slots=True)
class PictureOptions:
    """How a layout is drawn: about how many cells of a box are shown, what colours mean, and what the padding holds.

    `colour` is `order` (light to dark in the logical order), `row` (the source row: all logical axes but the last),
    `bank` (the row-major offset modulo `banks`), `thread` (the axes lane, warp and block, else the first axis; cells
    that several threads hold are not clashes then), or `auto`: `thread` where an axis is the lane, `row` where a map
    changes the order, else `order`. `pad` is a contract's text: None where there is no contract.
    """

    cells: int = MAX_CELLS
    colour: str = "auto"
    banks: int = 32
    pad: str | None = None

    def __post_init__(self) -> None:
        """Raises LayoutproofError for a contract without text."""
        if self.pad is not None and not self.pad.strip():
            raise error(codes.NOTHING_TO_DRAW, "what padding holds is a number, a text such as undef, or not said")


def picture_of(report: MapReport, ending: str, options: PictureOptions = PictureOptions()) -> bytes:
    """The picture of a checked map of concrete shape, as the bytes of an `svg` or `png` file.

    Raises LayoutproofError as `scene_of_map` does.
    """
    return file_of(scene_of_map(report, options), ending)


def scene_of_map(report: MapReport, options: PictureOptions = PictureOptions()) -> Scene:
    """The picture of a checked map of concrete shape.

    Raises LayoutproofError for a map that is not injective on more than 262,144 points: its clashes would have to be
    searched.
    """
    return scene_of(_Maker.of(report, options).figure())


def text_of(report: MapReport, options: PictureOptions = PictureOptions()) -> str:
    """The physical box as lines of text, padding with its contract's text or a dot. Raises as `scene_of_map`."""
    maker = _Maker.of(report, options)
    padding = "." if options.pad is None else f"({''.join(maker.padding_lines())})"
    texts = {index: cell_text(held) if held else padding for index, held in maker.held.items()}
    return _in_rows(maker.physical, texts)


def cell_text(held: Sequence[tuple[int, ...]]) -> str:
    """The first index in a cell, with the number of further ones."""
    return ",".join(map(str, held[0])) + (f" +{len(held) - 1}" if len(held) > 1 else "")


@dataclass(frozen=True, slots=True)
class _Maker:
    """A map's report with what is shown of it: both boxes, and the logical indices of each shown physical cell."""

    report: MapReport
    options: PictureOptions
    shape: tuple[int, ...]
    box: tuple[int, ...]
    physical: Picture
    logical: Picture
    held: Held

    @staticmethod
    def of(report: MapReport, options: PictureOptions) -> _Maker:
        shape, box = _numbers(report.shape), _numbers(report.physical_shape)
        physical = lay_out(box, report.axis_separators, options.cells)
        known = report.inverse is not None and report.padding.predicate is not None
        held = _by_inverse(report, physical) if known else _by_search(report, physical, shape)
        return _Maker(report, options, shape, box, physical, lay_out(shape, (), options.cells), held)

    @property
    def reorders(self) -> bool:
        """Whether some shown cell holds a later element than a shown cell behind it."""
        order = [row_major(index[0], self.shape) for index in self.held.values() if index]
        return any(b < a for a, b in pairwise(order))

    @property
    def clash(self) -> tuple[tuple[int, ...], ...]:
        """Two logical indices in one cell, if the map is refuted."""
        found = self.report.injective.counterexample
        return () if found is None or self.colour == "thread" else (tuple(found["first"]), tuple(found["second"]))

    @property
    def colour(self) -> str:
        if self.options.colour != "auto":
            return self.options.colour
        if any(v.name == "lane" for v in self.report.index_map.inputs):
            return "thread"
        return "row" if self.reorders and prod(self.shape[:-1]) > 1 else "order"

    def figure(self) -> Figure:
        beside = self.reorders or bool(self.clash)
        rank = len(self.report.index_map.inputs)
        outputs = [expr_text(output, "plain") for output in self.report.index_map.outputs]
        names, long = short_names(outputs)
        traced, meaning = self.traced() if beside else (frozenset[tuple[int, ...]](), "")
        stored = Panel(self.physical, self.physical_cells(traced), names, f"stored as {list(self.box)}")
        panels = [stored]
        if beside:
            inputs = tuple(v.name for v in self.report.index_map.inputs[:rank])
            panels.insert(
                0, Panel(self.logical, self.logical_cells(traced), inputs, f"logical {list(self.shape)}", False)
            )
        arrows = tuple((index, self.image(index)) for index in self.clash)
        caption = "figures in the corners: row-major offsets" + (f"; {long}" if long else "")
        if not self.physical.complete:
            caption += f"; {len(self.physical.places):,} of {prod(self.box):,} cells shown"
        title = index_map_text(self.report.index_map)
        return Figure(title, tuple(panels), self.entries(meaning), caption, self.footprint(), arrows)

    def image(self, index: tuple[int, ...]) -> tuple[int, ...]:
        return self.report.index_map.evaluate(index)

    def fill(self, index: tuple[int, ...], offset: int) -> str:
        """The colour of an element that is stored at a row-major offset."""
        place = row_major(index, self.shape)
        if self.colour == "thread":
            return by_bank(self.thread(index) % _HUES, _HUES)
        if self.colour == "row":
            return by_row(place // max(self.shape[-1] if self.shape else 1, 1))
        if self.colour == "bank":
            return by_bank(offset % self.options.banks, self.options.banks)
        return by_order(0.1 + 0.9 * place / max(prod(self.shape) - 1, 1))

    def thread_axes(self) -> list[int]:
        """The axes whose indices say which thread it is, the fastest last."""
        named = {v.name: axis for axis, v in enumerate(self.report.index_map.inputs)}
        return [named[name] for name in reversed(_THREADS) if name in named] or [0][: len(self.shape)]

    def thread(self, index: tuple[int, ...]) -> int:
        """The number of the thread that has an element."""
        axes = self.thread_axes()
        return row_major([index[axis] for axis in axes], [self.shape[axis] for axis in axes])

    def physical_cells(self, traced: frozenset[tuple[int, ...]]) -> dict[tuple[int, ...], Cell]:
        cells = {}
        for place in self.physical.places:
            held, where = self.held[place.index], f"cell {list(place.index)} at {place.offset}"
            if not held:
                fill, hatch = of_padding(self.options.pad)
                cells[place.index] = Cell(
                    self.padding_lines(), fill, hatch, f"{where}: padding, {self.padding_words()}"
                )
                continue
            fill = CLASH if self.is_clash(held) else self.fill(held[0], place.offset)
            what = ", ".join(str(list(index)) for index in held[:4])
            title = f"{where}: {what}{', ...' if len(held) > 4 else ''}"
            lines = index_lines(held[0], len(held) - 1)
            cells[place.index] = Cell(lines, fill, "", title, any(index in traced for index in held))
        return cells

    def is_clash(self, held: Sequence[tuple[int, ...]]) -> bool:
        """Whether a cell's elements are drawn as clashing: several threads may hold one element."""
        return len(held) > 1 and self.colour != "thread"

    def logical_cells(self, traced: frozenset[tuple[int, ...]]) -> dict[tuple[int, ...], Cell]:
        cells, colliding = {}, {index for held in self.held.values() if self.is_clash(held) for index in held}
        for place in self.logical.places:
            image = self.image(place.index)
            offset = row_major(image, self.box)
            fill = CLASH if place.index in colliding else self.fill(place.index, offset)
            title = f"{list(place.index)} is in cell {list(image)} at {offset}"
            cells[place.index] = Cell(index_lines(place.index), fill, "", title, place.index in traced)
        return cells

    def traced(self) -> tuple[frozenset[tuple[int, ...]], str]:
        """The elements that are outlined, and what they are: two that share a cell, a column, or a stored block."""
        if self.clash:
            return frozenset(self.clash), "two elements with one cell"
        inner = len(self.box) - len(self.shape)
        if inner > 0:
            block = [held[0] for index, held in self.held.items() if held and not any(index[:-inner])]
            return frozenset(block), "one stored block and its elements" if len(block) > 1 else ""
        names = self.report.index_map.inputs
        if len(self.shape) == 2 and self.shape[1] > 1:
            column = frozenset((row, 1) for row in range(self.shape[0]))
            return column, f"the column {names[1].name} = 1"
        return frozenset(), ""

    def entries(self, traced: str) -> tuple[tuple[Rect, str], ...]:
        """The legend: what the picture shows."""
        meaning = {
            "order": "elements, light to dark in the logical order",
            "row": f"a colour for each row ({self.row_name()})",
            "bank": f"a colour for each of {self.options.banks} banks (offset modulo {self.options.banks})",
            "thread": f"a colour for each thread ({self.thread_name()})",
        }[self.colour]
        sizes = {len(held) for held in self.held.values()}
        found = (
            [(sample(self.fill((0,) * len(self.shape), 0)), meaning)] if 1 in sizes or self.colour == "thread" else []
        )
        if 0 in sizes:
            found.append((sample(*of_padding(self.options.pad)), f"padding: {self.padding_words()}"))
        if max(sizes) > 1 and self.colour != "thread":
            found.append((sample(CLASH), "several elements in one cell (one is written, +n more)"))
        if traced:
            found.append((traced_sample(), traced))
        return tuple(found)

    def row_name(self) -> str:
        names = [v.name for v in self.report.index_map.inputs[:-1]]
        return f"{', '.join(names)} fixed" if names else "one row"

    def thread_name(self) -> str:
        return ", ".join(self.report.index_map.inputs[axis].name for axis in reversed(self.thread_axes()))

    def padding_words(self) -> str:
        if self.options.pad is None:
            return "no contract, must not be read"
        return "may hold anything" if "undef" in self.options.pad else f"holds {self.options.pad}"

    def padding_lines(self) -> tuple[str, ...]:
        if self.options.pad is None:
            return ()
        return ("?",) if "undef" in self.options.pad else (cut(self.options.pad, 6),)

    def footprint(self) -> Footprint | None:
        """The share of padding, where the number of its cells is known."""
        cells = self.report.padding.cells
        if self.clash or not isinstance(cells, int):
            return None
        return Footprint(prod(self.box), cells, of_padding(self.options.pad))


def row_major(index: Sequence[int], shape: Sequence[int]) -> int:
    """The row-major place of an index in a box."""
    place = 0
    for position, extent in zip(index, shape, strict=True):
        place = place * extent + position
    return place


def _numbers(extents: Sequence[Expr | None]) -> tuple[int, ...]:
    known = [extent for extent in extents if extent is not None and not free_variables(extent)]
    if len(known) < len(extents):
        raise error(codes.NOTHING_TO_DRAW, "the physical shape is not known as numbers: there is no box to draw")
    return tuple(int(evaluate(extent, {})) for extent in known)


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
    for index in product(*map(range, shape)):
        cell = held.get(report.index_map.evaluate(index))
        if cell is not None:
            cell.append(index)
    return held


def _in_rows(picture: Picture, texts: Mapping[tuple[int, ...], str]) -> str:
    """Lines of a plane: `texts` has every shown cell. Blocks are apart, and dots stand for what is left out."""
    columns = sorted({place.x for place in picture.places})
    rows = sorted({place.y for place in picture.places})
    at = {(place.x, place.y): texts[place.index] for place in picture.places}
    wide = max(len(text) for text in texts.values())
    lines: list[str] = []
    for number, y in enumerate(rows):
        if number:
            lines += _between(rows[number - 1], y)
        cells = [at.get((x, y), "").rjust(wide) for x in columns]
        gaps = ["", *(_gap(a, b) for a, b in pairwise(columns))]
        lines.append("".join(f"{gap}{cell}" for gap, cell in zip(gaps, cells, strict=True)).rstrip())
    return "\n".join(lines) + "\n"


def _gap(before: float, after: float) -> str:
    """What separates two columns."""
    if after - before > 1 + _ELIDED / 2 and after - before < 2 + _ELIDED / 2:
        return "  ..  "
    return " | " if after - before > 1.01 else "  "


def _between(before: float, after: float) -> Iterator[str]:
    """Lines between two rows."""
    if after - before > 1.01:
        yield "" if after - before < 1 + _ELIDED / 2 else "  .."
