"""Pad values that load from the transformed buffer itself: what they load must be an element, never padding.

Padding that refers to padding would depend on the order in which it is filled, and on what a caller left there. Checked cell by cell.
"""

from __future__ import annotations

from math import prod

import numpy as np

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import error
from layoutproof.ir.evaluate import Overflow, evaluate
from layoutproof.ir.expr import FALSE, Expr, IntImm
from layoutproof.ir.layout_record import Contract
from layoutproof.ir.semantics import Trap
from layoutproof.ir.visit import free_variables, walk
from layoutproof.lowering import codes

_MOST_CELLS = 1 << 22


def check_self_loads(pad: Contract, predicate: Expr, physical: Buffer) -> None:
    """Raise LayoutproofError unless every load of the pad value, at every padding cell, is of a cell that `predicate` is false for.

    `predicate` is over `p0, p1, ...`. Loads count wherever they stand, under a condition too.
    """
    loads = [node for node in walk(pad.value) if isinstance(node, BufferLoad)]
    if not loads or predicate == FALSE:
        return
    if not pad.value.dtype.is_float and not isinstance(pad.value, BufferLoad):
        raise error(codes.PAD_REFERENCE, f"a pad value of {physical.dtype} that loads from {physical.name} is one load and nothing else")
    known = {*(v.name for v in pad.inputs), *(f"p{axis}" for axis in range(physical.rank))}
    parts = (predicate, *(index for load in loads for index in load.indices))
    symbols = [v.name for part in parts for v in free_variables(part) if v.name not in known]
    if symbols:
        raise error(codes.PAD_REFERENCE, f"a pad value that loads from {physical.name} may not depend on the symbol {symbols[0]}")
    shape = tuple(extent.value for extent in physical.shape if isinstance(extent, IntImm))
    if len(shape) != physical.rank or prod(shape) > _MOST_CELLS:
        raise error(
            codes.PAD_REFERENCE, f"a pad value that loads from {physical.name} needs constant extents of at most {_MOST_CELLS} cells"
        )
    cells = np.indices(shape, dtype=np.int64).reshape(len(shape), -1)
    padding = cells[:, _holds(predicate, cells)]
    for load in loads:
        if any(isinstance(node, BufferLoad) for index in load.indices for node in walk(index)):
            raise error(codes.PAD_REFERENCE, f"a pad value loads from {physical.name} at an index that is itself loaded")
        env = {v.name: axis for v, axis in zip(pad.inputs, padding, strict=True)}
        try:
            at = np.stack([np.broadcast_to(np.asarray(evaluate(i, env), dtype=np.int64), padding.shape[1:]) for i in load.indices])
        except (Trap, Overflow, TypeError) as problem:
            why = str(problem) or "a number past 64 bits"
            raise error(codes.PAD_REFERENCE, f"a pad value loads from {physical.name} at an index without a value: {why}") from problem
        inside = np.all((at >= 0) & (at < np.asarray(shape, dtype=np.int64)[:, None]), axis=0)
        wrong = ~inside
        wrong[inside] = _holds(predicate, at[:, inside])
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            cell, target = ([int(i) for i in column] for column in (padding[:, first], at[:, first]))
            what = "padding too" if inside[first] else "outside the buffer"
            raise error(codes.PAD_REFERENCE, f"the pad value of {physical.name}{cell} loads {physical.name}{target}, which is {what}")


def _holds(predicate: Expr, cells: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """The predicate at each column of `cells`."""
    value = evaluate(predicate, {f"p{axis}": row for axis, row in enumerate(cells)})
    return np.broadcast_to(np.asarray(value, dtype=np.bool_), cells.shape[1:])
