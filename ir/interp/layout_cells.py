"""What each cell of a buffer is in a run, by its layout record: of an element, or padding with a contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import counted, error
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr
from layoutproof.ir.layout_record import Cell, LayoutRecord, check_known, layout_records
from layoutproof.ir.primfunc import PrimFunc

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from layoutproof.ir.late import np


def cells_of(record: LayoutRecord, symbols: Mapping[str, int]) -> NDArray[np.uint8]:
    """What each cell of the last box is (`Cell`), as an array of its shape.

    Each padding cell has the contract of the step that introduced it. Raises LayoutproofError for a map that does not
    fit its shape or puts two cells in one place, and for a box with a negative extent.
    """
    record.check_names(symbols)
    shape = extents_for(record.logical_shape, symbols)
    if min(shape, default=0) < 0:
        raise error(codes.LAYOUT_RECORD, f"the logical shape {list(shape)} of a layout has a negative extent")
    cells = np.full(shape, Cell.LOGICAL, dtype=np.uint8)
    for step in record.steps:
        index_map, text = step.index_map, step.map_text
        box = extents_for(step.shape, symbols)
        if min(box, default=0) < 0:
            raise error(codes.LAYOUT_RECORD, f"the box of {text} has a negative extent: {list(box)}")
        if len(index_map.inputs) != cells.ndim or index_map.rank != len(box):
            raise error(
                codes.LAYOUT_RECORD, f"{text} does not lead from {cells.ndim} to {counted(len(box), 'axis', 'axes')}"
            )
        values = index_map.output_values(cells.shape, symbols)
        if cells.size and any(
            int(v.min()) < 0 or int(v.max()) >= extent for v, extent in zip(values, box, strict=True)
        ):
            raise error(codes.LAYOUT_RECORD, f"{text} leaves the box {list(box)}")
        positions = index_map.flat_positions(cells.shape, box, symbols).reshape(-1)
        taken = np.zeros(int(np.prod(box, dtype=np.int64)), dtype=np.bool_)
        taken[positions] = True
        if np.count_nonzero(taken) != positions.size:
            raise error(codes.LAYOUT_RECORD, f"{text} is not injective on {list(cells.shape)}")
        moved = np.full(taken.size, step.padding, dtype=np.uint8)
        moved[positions] = cells.reshape(-1)
        cells = moved.reshape(box)
    return cells


def padding_cells(func: PrimFunc, symbols: Mapping[str, int]) -> dict[str, NDArray[np.uint8]]:
    """`cells_of` for every record of a function, by data variable."""
    return {name: cells_of(record, symbols) for name, record in layout_records(func).items()}


def extents_for(shape: Sequence[Expr], symbols: Mapping[str, int]) -> tuple[int, ...]:
    """Extents in numbers. Raises LayoutproofError for a symbol that has none."""
    check_known(shape, symbols)
    return tuple(int(evaluate(extent, symbols)) for extent in shape)
