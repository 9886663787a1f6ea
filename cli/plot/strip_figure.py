"""A buffer's memory through the layout steps of a program: a strip of cells a step, and the share of padding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from layoutproof.cli import codes
from layoutproof.cli.plot.layout_figure import Footprint, footprint_bar, index_lines
from layoutproof.cli.plot.palette import by_row, of_padding
from layoutproof.cli.plot.scene import EDGE, Rect, Scene, Text, fitting, legend
from layoutproof.ir.diagnostic import error
from layoutproof.ir.interp.layout_cells import extents_for
from layoutproof.ir.layout_record import LayoutRecord, layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import free_variables
from layoutproof.lowering.passes.find import find_buffer

_CELL, _HIGH, _MARGIN = 34.0, 30.0, 16.0
_FIRST, _LAST = 24, 6  # cells shown of a strip that is long


@dataclass(frozen=True, slots=True)
class Strip:
    """Memory after some steps: what was done, the box, and for each cell the row-major number of its element, or -1 - k
    for padding of the k-th step.
    """

    text: str
    box: tuple[int, ...]
    cells: NDArray[np.int64]


def scene_of_buffer(func: PrimFunc, buffer: str, sizes: Mapping[str, int]) -> Scene:
    """The strips of a buffer. Raises LayoutproofError for an unknown buffer, and for symbols without a size."""
    found = find_buffer(func, buffer)
    record = layout_records(func).get(found.data.name)
    if record is None:
        record = LayoutRecord(found.shape)
    shapes = (record.logical_shape, *(step.shape for step in record.steps))
    missing = sorted({v.name for shape in shapes for extent in shape for v in free_variables(extent)} - set(sizes))
    if missing:
        raise error(codes.SIZE, f"the shape of {buffer} depends on {missing[0]}: give its size, {missing[0]}=N")
    shape = extents_for(record.logical_shape, sizes)
    contracts = [None if step.contract is None else step.contract.text for step in record.steps]
    return _drawn(buffer, shape, list(strips(record, sizes)), contracts)


def strips(record: LayoutRecord, sizes: Mapping[str, int]) -> Iterator[Strip]:
    """The memory of a record's buffer before its steps and after each of them."""
    shape = extents_for(record.logical_shape, sizes)
    cells = np.arange(prod(shape), dtype=np.int64)
    yield Strip("logical", shape, cells)
    for number, step in enumerate(record.steps):
        box = extents_for(step.shape, sizes)
        moved = np.full(prod(box), -1 - number, dtype=np.int64)
        moved[step.index_map.flat_positions(shape, box, sizes).reshape(-1)] = cells
        shape, cells = box, moved
        yield Strip(step.map_text, box, cells)


def _drawn(name: str, shape: tuple[int, ...], found: list[Strip], contracts: list[str | None]) -> Scene:
    scene = Scene(f"{name} in memory, step by step", (_FIRST + _LAST + 1) * _CELL + 2 * _MARGIN)
    longest = max(strip.cells.size for strip in found)
    if longest <= _FIRST + _LAST:
        scene.width = max(longest * _CELL, 380.0) + 2 * _MARGIN
    inside, y = scene.width - 2 * _MARGIN, _MARGIN + 12
    scene.add(Text(_MARGIN, y, scene.title, 14, "start", bold=True))
    for strip in found:
        y += 24
        text = f"{strip.text}  {list(strip.box)}"
        scene.add(Text(_MARGIN, y, text, fitting(text, 12, inside), "start", mono=True))
        _draw_strip(scene, y + 6, strip, shape, contracts)
        padding = int((strip.cells < 0).sum())
        contract = next((contracts[-1 - int(c)] for c in strip.cells if c < 0), None)
        bar = footprint_bar(
            Footprint(strip.cells.size, padding, of_padding(contract)), inside * strip.cells.size / longest
        )
        scene.place(bar, _MARGIN, y + _HIGH + 24)
        y += _HIGH + 24 + bar.height
    kinds = dict.fromkeys(contracts)
    entries = [(Rect(0, 0, 0, 0, by_row(0)), "a colour for each logical row")]
    for contract in kinds:
        fill, hatch = of_padding(contract)
        entries.append((Rect(0, 0, 0, 0, fill, hatch=hatch), f"padding: {contract or 'no contract'}"))
    scene.place(legend(entries, inside), _MARGIN, y + 12)
    scene.height += _MARGIN / 2
    return scene


def _draw_strip(scene: Scene, y: float, strip: Strip, shape: tuple[int, ...], contracts: list[str | None]) -> None:
    size = strip.cells.size
    shown = list(range(size)) if size <= _FIRST + _LAST else [*range(_FIRST), *range(size - _LAST, size)]
    for place, cell in enumerate(shown):
        x = _MARGIN + _CELL * (place + (place >= _FIRST and size > len(shown)))
        element = int(strip.cells[cell])
        if element < 0:
            contract = contracts[-1 - element]
            fill, hatch = of_padding(contract)
            scene.add(
                Rect(
                    x, y, _CELL, _HIGH, fill, hatch=hatch, title=f"offset {cell}: padding, {contract or 'no contract'}"
                )
            )
        else:
            index = tuple(int(i) for i in np.unravel_index(element, shape)) if shape else ()
            row = element // max(shape[-1] if shape else 1, 1)
            scene.add(Rect(x, y, _CELL, _HIGH, by_row(row), title=f"offset {cell}: element {list(index)}"))
            lines = index_lines(index)
            for number, line in enumerate(lines):
                at = y + _HIGH * 0.62 + (number - (len(lines) - 1) / 2) * 10
                scene.add(Text(x + _CELL / 2, at, line, fitting(line, 11, _CELL - 4)))
        scene.add(Text(x + _CELL / 2, y + _HIGH + 11, str(cell), fitting(str(cell), 9, _CELL - 2), fill=EDGE))
    if size > len(shown):
        scene.add(Text(_MARGIN + _CELL * (_FIRST + 0.5), y + _HIGH / 2, "…", 16))
