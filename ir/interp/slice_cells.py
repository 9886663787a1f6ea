"""Which iterations access which cells, and how many store instances a full run has: loops are opened one by one, and
boxes that cannot access a needed cell are dropped early.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np
import numpy.typing as npt

from layoutproof.ir import codes
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.expr import Binary, Broadcast, Compare, Expr, Logical, Ramp, Var
from layoutproof.ir.interp.analysis import Memories
from layoutproof.ir.interp.arguments import Shape, shape_of
from layoutproof.ir.interp.slice_units import Access, Boxes, Definition, Loop, Range, range_of, take_apart
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc

Bits = npt.NDArray[np.bool_]

MOST_POINTS = 20_000_000
_PIECES = 256
_CHUNK = 2_000_000


def cannot_slice(message: str) -> LayoutproofError:
    """The error for a program whose slice cannot be found."""
    return error(codes.NO_SLICE, f"the backward slice cannot be taken: {message}")


@dataclass(slots=True)
class Cells:
    """The needed cells of every memory, one bit a state unit."""

    memories: Memories
    symbols: Mapping[str, int]
    bits: dict[str, Bits]
    shapes: dict[Buffer, Shape] = field(default_factory=dict)

    def shape(self, buffer: Buffer) -> Shape:
        """A buffer's numbers. Raises LayoutproofError where they depend on more than symbols."""
        found = self.shapes.get(buffer)
        if found is None:
            try:
                found = self.shapes[buffer] = shape_of(buffer, self.symbols)
            except KeyError as missing:
                raise cannot_slice(
                    f"the shape of {buffer.name} depends on {missing.args[0].rpartition(' ')[2]}"
                ) from missing
        return found

    def units_of(self, buffer: Buffer) -> int:
        """State units an element."""
        return buffer.dtype.bytes // self.memories.units[self.memories.of(buffer)]

    def needed(self, buffer: Buffer) -> Bits:
        """One bit an element, counted from the start of the memory."""
        bits, units = self.bits[self.memories.of(buffer)], self.units_of(buffer)
        whole = len(bits) // units * units
        if units == 1:
            return bits
        return np.asarray(bits[:whole].reshape(-1, units).any(axis=1))

    def need(self, buffer: Buffer, elements: npt.NDArray[np.int64]) -> bool:
        """Mark elements; whether any was not marked before."""
        bits, units = self.bits[self.memories.of(buffer)], self.units_of(buffer)
        places = (elements[:, None] * units + np.arange(units)).reshape(-1)
        new = not bool(bits[places].all())
        bits[places] = True
        return new

    def need_all(self, buffer: Buffer) -> bool:
        """Mark the whole memory behind a buffer; whether any of it was not marked before."""
        bits = self.bits[self.memories.of(buffer)]
        new = not bool(bits.all())
        bits[:] = True
        return new


def lane_ranges(index: Expr, boxes: Boxes) -> list[Range | None]:
    """The range of an index, by lane."""
    if isinstance(index, Ramp):
        base, stride = range_of(index.base, boxes), range_of(index.stride, boxes)
        if base is None or stride is None:
            return [None]
        lanes: list[Range | None] = []
        for k in range(index.lanes):
            lanes.append((base[0] + k * stride[0], base[1] + k * stride[1]))
        return lanes
    if isinstance(index, Broadcast):
        return [range_of(index.value, boxes)]
    return [range_of(index, boxes)]


def open_boxes(boxes: Boxes, access: Access, opened: frozenset[str]) -> Boxes:
    """The boxes with an interval for every loop and definition around an access; `opened` loops have theirs."""
    for step in access.steps:
        if isinstance(step, Loop):
            if step.name in opened:
                continue
            start, extent = range_of(step.stmt.start, boxes), range_of(step.stmt.extent, boxes)
            if start is not None and extent is not None:
                boxes = boxes.with_range(step.name, (start[0], np.maximum(start[0], start[1] + extent[1] - 1)))
            continue
        value = range_of(step.value, boxes)
        if value is not None:
            boxes = boxes.with_range(step.name, value)
    return boxes


def bounded_loops(access: Access, symbols: Mapping[str, int]) -> frozenset[str]:
    """The loops around an access whose bounds can be told without memory."""
    boxes = start_boxes(symbols)
    framed = open_boxes(boxes, access, frozenset())
    return frozenset(loop.name for loop in access.loops if loop.name in framed.ranges)


def start_boxes(symbols: Mapping[str, int]) -> Boxes:
    """One box that knows the symbols."""
    boxes = Boxes(1, {})
    for name, value in symbols.items():
        boxes = boxes.with_value(name, value)
    return boxes


class Target:
    """A test whether boxes can touch a needed element of a buffer: by axis, and by the range of element numbers."""

    def __init__(self, cells: Cells, buffer: Buffer) -> None:
        self.shape = cells.shape(buffer)
        needed = cells.needed(buffer)
        self.size = len(needed)
        self.marked = np.flatnonzero(needed)  # the needed elements' numbers, in order
        self.by_axis: list[npt.NDArray[np.int64]] = []
        self.empty = not len(self.marked)
        if self.shape.compact and self.shape.elements <= self.size:
            inside = self.marked[: np.searchsorted(self.marked, self.shape.elements)]
            for extent, stride in zip(self.shape.extents, self.shape.strides, strict=True):
                whole = len(inside) == self.shape.elements
                self.by_axis.append(
                    np.arange(extent) if whole else np.unique(inside // max(stride, 1) % max(extent, 1))
                )

    def touched(self, access: Access, boxes: Boxes) -> Bits:
        """The boxes that may touch a needed element."""
        keep = np.full(boxes.count, not self.empty)
        low, high = (np.full(boxes.count, self.shape.offset, dtype=np.int64) for _ in range(2))
        known = True
        for axis, index in enumerate(access.indices):
            found = lane_ranges(index, boxes)
            if any(r is None for r in found):
                known = False
                continue
            ranges = [r for r in found if r is not None]
            extent, stride = self.shape.extents[axis], self.shape.strides[axis]
            first = np.clip(np.minimum.reduce([r[0] for r in ranges]), 0, extent)
            last = np.clip(np.maximum.reduce([r[1] for r in ranges]), -1, extent - 1)
            keep &= first <= last
            if self.by_axis:
                marked = self.by_axis[axis]  # the axis's indices of needed elements, in order
                keep &= np.searchsorted(marked, last + 1) > np.searchsorted(marked, first)
            low += np.minimum(first * stride, last * stride)
            high += np.maximum(first * stride, last * stride)
        if known:
            first, last = np.clip(low, 0, self.size), np.clip(high + 1, 0, self.size)
            keep &= np.searchsorted(self.marked, last) > np.searchsorted(self.marked, first)
        return keep


def prune(boxes: Boxes, access: Access, target: Target | None) -> Boxes:
    """The boxes whose guards can hold and that can touch a needed element."""
    keep = np.ones(boxes.count, dtype=np.bool_)
    for guard in access.guards:
        holds = range_of(guard, boxes)
        if holds is not None:
            keep &= holds[1] != 0
    if target is not None:
        keep &= target.touched(access, boxes)
    return boxes if bool(keep.all()) else boxes.take(keep)


def enumerate_points(boxes: Boxes, access: Access, names: frozenset[str], target: Target | None) -> Boxes:
    """The boxes with every loop in `names` opened to single values, those dropped that cannot matter.

    Raises LayoutproofError where that makes too many.
    """
    opened = frozenset(name for name in (loop.name for loop in access.loops) if name in boxes.ranges)
    for loop in access.loops:
        if loop.name not in names or loop.name in opened:
            continue
        framed = open_boxes(boxes, access, opened)
        start, extent = range_of(loop.stmt.start, framed), range_of(loop.stmt.extent, framed)
        assert start is not None and extent is not None
        alive = extent[1] > 0
        low, high = start[0], start[1] + extent[1] - 1
        boxes = boxes.with_range(loop.name, (low, high)).take(alive)
        opened |= {loop.name}
        while boxes.count and not boxes.is_point(loop.name):
            boxes = _split(boxes, loop.name)
            boxes = _bare(prune(open_boxes(boxes, access, opened), access, target), boxes)
    boxes = _bare(prune(open_boxes(boxes, access, opened), access, target), boxes)
    return boxes


def _bare(boxes: Boxes, like: Boxes) -> Boxes:
    """The boxes with the intervals of `like` only: those of inner loops and definitions are computed anew."""
    return Boxes(boxes.count, {name: boxes.ranges[name] for name in like.ranges})


def _split(boxes: Boxes, name: str) -> Boxes:
    """Every box cut in pieces along one variable."""
    low, high = boxes.ranges[name]
    width = high - low + 1
    pieces = np.minimum(width, _PIECES)
    total = int(pieces.sum())
    if total > MOST_POINTS:
        raise cannot_slice(f"more than {MOST_POINTS} iterations of {name} have to be looked at")
    size = -(-width // pieces)
    source = np.repeat(np.arange(boxes.count), pieces)
    number = np.arange(total) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    first = low[source] + number * size[source]
    last = np.minimum(first + size[source] - 1, high[source])
    whole = first <= last
    return boxes.take(source[whole]).with_range(name, (first[whole], last[whole]))


def distinct(boxes: Boxes, names: tuple[str, ...]) -> npt.NDArray[np.int64]:
    """The different values of some variables (single values in each box), one row each, in lexicographic order."""
    if not names:
        return np.zeros((min(boxes.count, 1), 0), dtype=np.int64)
    return unique_rows(np.stack([boxes.ranges[name][0] for name in names], axis=1))


def unique_rows(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The different rows, in lexicographic order."""
    if rows.shape[0] == 0 or rows.shape[1] == 0:
        return rows[:1]
    ordered = rows[np.lexsort(rows.T[::-1])]
    new = np.ones(len(ordered), dtype=np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return ordered[new]


def boxes_of(rows: npt.NDArray[np.int64], names: tuple[str, ...], symbols: Mapping[str, int]) -> Boxes:
    """One box a row."""
    boxes = Boxes(len(rows), {})
    for name, value in symbols.items():
        boxes = boxes.with_value(name, value)
    for column, name in enumerate(names):
        boxes = boxes.with_range(name, (rows[:, column], rows[:, column]))
    return boxes


def elements_touched(
    cells: Cells, access: Access, rows: npt.NDArray[np.int64], names: tuple[str, ...]
) -> Iterator[npt.NDArray[np.int64] | None]:
    """The elements of an access when the loops in `names` have the values of any row, in chunks; None: unknown."""
    wanted = access.relevant() & bounded_loops(access, cells.symbols)
    used = tuple(n for n in names if n in wanted)
    rows = unique_rows(rows[:, [names.index(n) for n in used]]) if used else rows[:1, :0]
    inner = 1
    framed = open_boxes(start_boxes(cells.symbols), access, frozenset())
    for loop in access.loops:
        if loop.name in wanted and loop.name not in used:
            low, high = framed.ranges[loop.name]
            inner *= int(high[0] - low[0] + 1)
    step = max(1, _CHUNK // max(inner, 1))
    for begin in range(0, len(rows), step):
        boxes = boxes_of(rows[begin : begin + step], used, cells.symbols)
        points = enumerate_points(boxes, access, wanted, None)
        yield _elements(cells.shape(access.buffer), access, open_boxes(points, access, wanted))


def _elements(shape: Shape, access: Access, boxes: Boxes) -> npt.NDArray[np.int64] | None:
    """Every element in bounds that the boxes touch; None where an index is not known exactly."""
    axes = [lane_ranges(index, boxes) for index in access.indices]
    found: list[npt.NDArray[np.int64]] = []
    for lane in range(max((len(a) for a in axes), default=1)):
        place = np.full(boxes.count, shape.offset, dtype=np.int64)
        valid = np.ones(boxes.count, dtype=np.bool_)
        for axis, lanes in enumerate(axes):
            values = lanes[lane] if len(lanes) > 1 else lanes[0]
            if values is None or not np.array_equal(values[0], values[1]):
                return None
            valid &= (values[0] >= 0) & (values[0] < shape.extents[axis])
            place += values[0] * shape.strides[axis]
        found.append(np.unique(place[valid]))
    return np.unique(np.concatenate(found))


def count_instances(func: PrimFunc, sizes: Mapping[str, object] | None = None) -> int:
    """How many store instances a full run has at most: every loop in full, every branch taken.

    Loops that a branch's equalities pin to one value count once there: a block's init runs at the start of the
    reduction only. `sizes` gives the names in shapes and integer parameters, or arrays by the names of buffers, whose
    shapes give them. Raises LayoutproofError for a loop whose extent depends on data or on a name without a value.
    """
    symbols: dict[str, int] = {}
    shapes = {b.name: b.shape for b in func.buffers}
    for name, value in (sizes if sizes is not None else {}).items():
        if isinstance(value, np.ndarray):
            shape = shapes.get(name, ())
            known = zip(shape[: value.ndim], value.shape[: len(shape)], strict=True)
            symbols.update({extent.name: size for extent, size in known if isinstance(extent, Var)})
        elif isinstance(value, int | np.integer):
            symbols[name] = int(value)
    return sum(_instances(access, symbols) for unit in take_apart(func.body) for access in unit.writes)


def _instances(access: Access, symbols: Mapping[str, int]) -> int:
    boxes = open_boxes(start_boxes(symbols), access, frozenset())
    extents = {}
    for loop in access.loops:
        extent = range_of(loop.stmt.extent, boxes)
        if extent is None:
            raise cannot_slice(f"the extent of loop {loop.name} is not known")
        extents[loop.name] = max(int(extent[1][0]), 0)
    for name in _pinned(access, boxes):
        extents[name] = min(extents[name], 1)
    return prod(extents.values())


def _pinned(access: Access, boxes: Boxes) -> Iterator[str]:
    """The loops that have one value at most wherever an access's guards hold, for each value of the others."""
    pins = _Pins(boxes, {s.name: s.value if isinstance(s, Definition) else None for s in access.steps})
    for guard in access.guards:
        for equality in _equalities(guard):
            for side, other in ((equality.lhs, equality.rhs), (equality.rhs, equality.lhs)):
                value = _point(other, boxes)
                if value is not None:
                    yield from pins.of(side, value)


def _equalities(guard: Expr) -> Iterator[Compare]:
    if isinstance(guard, Logical) and guard.op is LogicalOp.AND:
        yield from _equalities(guard.lhs)
        yield from _equalities(guard.rhs)
    elif isinstance(guard, Compare) and guard.op is CompareOp.EQ:
        yield guard


def _point(expr: Expr, boxes: Boxes) -> int | None:
    found = range_of(expr, boxes)
    return int(found[0][0]) if found is not None and found[0][0] == found[1][0] else None


class _Pins:
    """The loops with one value where an expression has a given one; `steps` has definitions by name, None for loops."""

    def __init__(self, boxes: Boxes, steps: Mapping[str, Expr | None]) -> None:
        self.boxes = boxes
        self.steps = steps

    def of(self, expr: Expr, value: int) -> Iterator[str]:
        """The loops that `expr == value` pins."""
        if isinstance(expr, Var):
            if expr.name in self.steps:
                definition = self.steps[expr.name]
                yield from (expr.name,) if definition is None else self.of(definition, value)
        elif isinstance(expr, Binary):
            yield from self._operands(expr, value)

    def _operands(self, expr: Binary, value: int) -> Iterator[str]:
        match expr.op:
            case BinaryOp.ADD:
                yield from self._sum(expr.lhs, expr.rhs, value)
            case BinaryOp.SUB:
                first, second = _point(expr.lhs, self.boxes), _point(expr.rhs, self.boxes)
                if second is not None:
                    yield from self.of(expr.lhs, value + second)
                elif first is not None:
                    yield from self.of(expr.rhs, first - value)
            case BinaryOp.MUL:
                for side, other in ((expr.lhs, expr.rhs), (expr.rhs, expr.lhs)):
                    factor = _point(other, self.boxes)
                    if factor:  # a value between the multiples is never met: then any number does
                        yield from self.of(side, value // factor)
            case _:
                return

    def _sum(self, lhs: Expr, rhs: Expr, value: int) -> Iterator[str]:
        """A sum that is as small, or as large, as it can be has both operands so."""
        a, b = range_of(lhs, self.boxes), range_of(rhs, self.boxes)
        if a is None or b is None:
            return
        for x, y in zip(a, b, strict=True):
            if value == int(x[0]) + int(y[0]):
                yield from self.of(lhs, int(x[0]))
                yield from self.of(rhs, int(y[0]))
                return
        for side, other in ((lhs, rhs), (rhs, lhs)):
            known = _point(other, self.boxes)
            if known is not None:
                yield from self.of(side, value - known)
