"""Chosen cells of a large kernel's outputs compared with the reference interpreter, which runs only what those cells depend on.

The kernel itself runs in full on made-up data, so it is only tried where no data can lead it astray: where indices, loop bounds
and divisors do not depend on what is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Binary, BinaryOp, Cast, Expr, IntImm
from layoutproof.ir.interp.memory import Fill, Filling
from layoutproof.ir.interp.slicing import run_slice
from layoutproof.ir.layout_record import Cell, padding_cells
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, For, Let
from layoutproof.ir.visit import loads_in, walk
from layoutproof.lowering.runtime.arrays import Array

CELLS = 40
"""Cells of each output that are compared."""

MOST_INSTANCES = 300_000_000  # a second or so of a kernel's time
MOST_BYTES = 256 << 20  # of made-up data

_DIVISIONS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD)


def is_safe_on_any_data(func: PrimFunc) -> bool:
    """Whether no index, loop bound, divisor, shift or integer from a float depends on memory, and no whole number is passed in."""
    mapped = dict(func.buffer_map)
    if any(p not in mapped and not p.dtype.is_float for p in func.params):
        return False
    named = {n.var.name for n in walk(func.body) if isinstance(n, Let) and any(True for _ in loads_in(n.value))}
    return not named and not any(True for part in _delicate(func) for _ in loads_in(part))


def _delicate(func: PrimFunc) -> Iterator[Expr]:
    """Expressions whose value decides whether a run is defined."""
    for node in walk(func.body):
        match node:
            case BufferLoad() | BufferStore():
                yield from node.indices
            case For():
                yield from (node.start, node.extent)
            case Binary() if node.op in _DIVISIONS and not (isinstance(node.rhs, IntImm) and node.rhs.value > 0):
                yield from (node.lhs, node.rhs)
            case Binary() if node.op in (BinaryOp.SHL, BinaryOp.SHR) and not isinstance(node.rhs, IntImm):
                yield node.rhs
            case Cast() if node.value.dtype.is_float and node.dtype.is_integer:
                yield node.value
            case _:
                pass


def chosen_cells(func: PrimFunc, name: str, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The first and the last cell of a parameter and others at random, none of them padding."""
    data = next(b.data.name for b in func.buffers if b.name == name)
    records = padding_cells(func, {})
    wanted = np.flatnonzero(records[data].reshape(-1) == Cell.LOGICAL) if data in records else None
    count = wanted.size if wanted is not None else int(np.prod(shape, dtype=np.int64))
    if count == 0:
        return []
    generator = np.random.default_rng(count)
    picked = np.unique(np.concatenate([[0, count - 1], generator.integers(0, count, CELLS - 2)]))
    flat = wanted[picked] if wanted is not None else picked
    return [tuple(int(axis) for axis in place) for place in zip(*np.unravel_index(flat, shape), strict=True)] if shape else [()]


def slices(func: PrimFunc, arguments: Mapping[str, object], cells: Mapping[str, list[tuple[int, ...]]]) -> dict[str, Array] | None:
    """What the interpreter finds in the cells; None where that depends on undefined values. Raises Fault and LayoutproofError."""
    first = run_slice(func, dict(arguments), dict(cells), filling=Filling(Fill.RANDOM))
    if any(bool((found == Cell.PAD_UNDEF).any()) for found in padding_cells(func, {}).values()):
        second = run_slice(func, dict(arguments), dict(cells), filling=Filling(Fill.ZERO))
        if any(np.asarray(first[name]).tobytes() != np.asarray(second[name]).tobytes() for name in cells):
            return None
    return {name: np.asarray(first[name]) for name in cells}
