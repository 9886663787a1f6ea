"""How a user's arrays become the arrays of a kernel.

The index maps of a function's layout records are applied in order, and padding is filled by its contract. Each
transform of a buffer has its own physical box and its own contract for the padding that it introduces. A pad value is a
constant, or an expression over the physical indices that may load the buffer itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutproof.ir import semantics
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Select,
    Var,
)
from layoutproof.ir.index_map import IndexMap, index_map_text, retype
from layoutproof.ir.interp.analysis import is_index_like
from layoutproof.ir.intrinsics import Limit, LimitKind, Undef
from layoutproof.ir.layout_record import LayoutRecord, boxed, layout_records
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.lowering import codes as lowering_codes
from layoutproof.lowering.arith.known_facts import assumed_of_constants, constants_of
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.layout.pad_value import checked
from layoutproof.lowering.runtime.arrays import Array, lane_shape, poison
from layoutproof.lowering.runtime.call_arguments import extent_text
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.verdict.verdict import Status

_FLOAT: Mapping[BinaryOp, Callable[[Any, Any], Any]] = {
    BinaryOp.ADD: np.add,
    BinaryOp.SUB: np.subtract,
    BinaryOp.MUL: np.multiply,
    BinaryOp.DIV: np.divide,
    BinaryOp.MIN: lambda a, b: np.where(a < b, a, b),
    BinaryOp.MAX: lambda a, b: np.where(a > b, a, b),
}

_COMPARED: Mapping[CompareOp, Callable[[Any, Any], Any]] = {
    CompareOp.EQ: np.equal,
    CompareOp.NE: np.not_equal,
    CompareOp.LT: np.less,
    CompareOp.LE: np.less_equal,
    CompareOp.GT: np.greater,
    CompareOp.GE: np.greater_equal,
}

Positions = npt.NDArray[np.int64]


class _Cells:
    """The padding cells of one array: their indices, and the array itself for loads."""

    def __init__(self, env: Mapping[str, Any], flat: Array, shape: Sequence[int], count: int) -> None:
        self.env, self.flat, self.shape, self.count = env, flat, shape, count

    def spread(self, value: Any, dtype: DType) -> Array:
        """One value for every cell and lane."""
        return np.full((self.count, dtype.lanes), value, dtype=numpy_dtype(dtype))

    def where(self, chosen: npt.NDArray[np.bool_]) -> _Cells:
        """Some of the cells."""
        env = {name: value[chosen] if isinstance(value, np.ndarray) else value for name, value in self.env.items()}
        return _Cells(env, self.flat, self.shape, int(np.count_nonzero(chosen)))


def pad_values(pad: Expr, env: Mapping[str, Any], flat: Array, shape: Sequence[int], count: int) -> Array:
    """The values of `count` padding cells, (cells, lanes); `env` has the physical indices by name, `flat` the array so
    far. Raises LayoutproofError (LP430) for a pad value with anything else.
    """
    return _value(pad, _Cells(env, flat, shape, count))


def _value(expr: Expr, cells: _Cells) -> Array:
    rule = _RULES.get(type(expr))
    if rule is None:
        raise error(
            codes.PAD_FILLING, f"a pad value with {type(expr).__name__} cannot be filled in before a call", expr.span
        )
    return rule(expr, cells)


def _constant(expr: IntImm | FloatImm, cells: _Cells) -> Array:
    return cells.spread(expr.value, expr.dtype)


def _limit(expr: Limit, cells: _Cells) -> Array:
    if expr.dtype.is_float:
        largest = semantics.max_finite(expr.dtype)
        values = {LimitKind.INFINITY: float("inf"), LimitKind.MAX: largest, LimitKind.MIN: -largest}
        return cells.spread(values[expr.kind], expr.dtype)
    return cells.spread(expr.dtype.max_int if expr.kind is LimitKind.MAX else expr.dtype.min_int, expr.dtype)


def _index(expr: Expr, cells: _Cells) -> Array:
    """Index arithmetic over the physical indices."""
    values = np.broadcast_to(np.asarray(evaluate(expr, cells.env)), (cells.count,)).reshape(-1, 1)
    return values.astype(numpy_dtype(expr.dtype))


def _binary(expr: Binary, cells: _Cells) -> Array:
    left, right = _value(expr.lhs, cells), _value(expr.rhs, cells)
    if not expr.dtype.is_float:
        return _wrapping(expr, left, right)
    with np.errstate(all="ignore"):
        result: Array = _FLOAT[expr.op](left, right)
    return result.astype(numpy_dtype(expr.dtype))


def _wrapping(expr: Binary, left: Array, right: Array) -> Array:
    """One operation on integers, of which each wraps in its own type."""
    dtype = expr.dtype.element
    exact = object if dtype.bits == 64 else np.int64
    env = {"a": left.astype(exact), "b": right.astype(exact)}
    found = np.asarray(evaluate(Binary(expr.op, Var("a", dtype), Var("b", dtype)), env))
    if found.dtype == object:
        wrapped = [semantics.wrap(int(value), dtype) for value in found.reshape(-1)]
        return np.array(wrapped, dtype=numpy_dtype(dtype)).reshape(found.shape)
    return found.astype(numpy_dtype(dtype))


def _compare(expr: Compare, cells: _Cells) -> Array:
    """Index arithmetic is compared over the integers, values as they are."""
    if is_index_like(expr.lhs) and is_index_like(expr.rhs):
        return _index(expr, cells)
    return np.asarray(_COMPARED[expr.op](_value(expr.lhs, cells), _value(expr.rhs, cells)))


def _logical(expr: Logical, cells: _Cells) -> Array:
    """The right side is asked only where it counts."""
    found = _value(expr.lhs, cells).copy()
    open_ = found.reshape(-1) if expr.op is LogicalOp.AND else ~found.reshape(-1)
    found[open_] = _value(expr.rhs, cells.where(open_))
    return found


def _not(expr: Not, cells: _Cells) -> Array:
    return np.logical_not(_value(expr.operand, cells))


def _cast(expr: Cast, cells: _Cells) -> Array:
    """`semantics.cast_value`, one value at a time: int64 to bfloat16 must not round twice."""
    values = _value(expr.value, cells)
    source, target = expr.value.dtype.element, expr.dtype.element
    convert = float if source.is_float else int
    converted = [semantics.cast_value(convert(v), source, target) for v in values.reshape(-1).tolist()]
    return np.array(converted, dtype=numpy_dtype(target)).reshape(values.shape)


def _choice(expr: Select | IfThenElseExpr, cells: _Cells) -> Array:
    condition = _value(expr.condition, cells)
    if isinstance(expr, Select):
        return np.where(condition, _value(expr.then, cells), _value(expr.otherwise, cells))
    chosen = condition.reshape(-1)
    found = np.empty((cells.count, expr.dtype.lanes), dtype=numpy_dtype(expr.dtype))
    for side, mask in ((expr.then, chosen), (expr.otherwise, ~chosen)):
        found[mask] = _value(side, cells.where(mask))
    return found


def _broadcast(expr: Broadcast, cells: _Cells) -> Array:
    return np.repeat(_value(expr.value, cells), expr.lanes, axis=1)


def _load(expr: BufferLoad, cells: _Cells) -> Array:
    """The buffer's own cells, before padding is filled. Raises LayoutproofError (LP430) outside the array."""
    places = [np.broadcast_to(np.asarray(evaluate(index, cells.env)), (cells.count,)) for index in expr.indices]
    for axis, (place, extent) in enumerate(zip(places, cells.shape, strict=True)):
        if place.size and not (int(place.min()) >= 0 and int(place.max()) < extent):
            raise error(
                codes.PAD_FILLING,
                f"a pad value loads {expr.buffer.name} outside of axis {axis}, whose extent is {extent}",
                expr.span,
            )
    result: Array = cells.flat[np.ravel_multi_index(places, tuple(cells.shape))]
    return result


_RULES: Mapping[type[Expr], Callable[[Any, _Cells], Array]] = {
    IntImm: _constant,
    FloatImm: _constant,
    Limit: _limit,
    Var: _index,
    Compare: _compare,
    Logical: _logical,
    Not: _not,
    Binary: _binary,
    Cast: _cast,
    Select: _choice,
    IfThenElseExpr: _choice,
    Broadcast: _broadcast,
    BufferLoad: _load,
}


@dataclass(frozen=True, slots=True)
class Step:
    """One transform: the map, the physical shape it leads to, and what its padding holds.

    `pad` is an expression over `pad_inputs` (the physical indices), or None where padding may not be touched.
    """

    index_map: IndexMap
    physical_shape: tuple[Expr, ...]
    pad: Expr | None = None
    pad_inputs: tuple[str, ...] = ()

    @property
    def contract(self) -> str | None:
        """The contract as text: None, `undef`, or the value, as a lambda where it depends on the place."""
        if self.pad is None:
            return None
        if isinstance(self.pad, Undef):
            return "undef"
        text = expr_text(self.pad)
        depends = any(v.name in self.pad_inputs for v in free_variables(self.pad))
        return f"lambda {', '.join(self.pad_inputs)}: {text}" if depends else text

    @property
    def fills(self) -> bool:
        """Whether padding holds a known value."""
        return self.pad is not None and not isinstance(self.pad, Undef)


@dataclass(frozen=True, slots=True)
class Layout:
    """A buffer's logical shape and the transforms that lead to its physical one, in order."""

    logical_shape: tuple[Expr, ...]
    steps: tuple[Step, ...] = ()


@dataclass(slots=True)
class Packer:
    """Packs and unpacks arrays of one buffer; the positions of the latest shapes are cached."""

    layout: Layout
    dtype: DType
    _positions: dict[tuple[object, ...], list[Positions]] = field(default_factory=dict)

    def shapes(self, symbols: Mapping[str, int]) -> list[tuple[int, ...]]:
        """The logical shape, then the shape after each step."""
        found = [self.layout.logical_shape, *(step.physical_shape for step in self.layout.steps)]
        return [tuple(int(evaluate(extent, symbols)) for extent in shape) for shape in found]

    def _steps(self, symbols: Mapping[str, int]) -> list[Positions]:
        """For each step, the flat place of every element of the shape before it."""
        shapes = self.shapes(symbols)
        key = (*shapes, *sorted(symbols.items()))
        found = self._positions.get(key)
        if found is None:
            found = [
                np.ascontiguousarray(step.index_map.flat_positions(before, after, symbols)).reshape(-1)
                for step, before, after in zip(self.layout.steps, shapes, shapes[1:], strict=False)
            ]
            if len(self._positions) >= 4:
                self._positions.pop(next(iter(self._positions)))
            self._positions[key] = found
        return found

    def pack(self, logical: Array, symbols: Mapping[str, int]) -> Array:
        """A new physical array with the content of a logical one; padding is filled by its contract, or with poison."""
        current = logical
        shapes = self.shapes(symbols)[1:]
        for step, positions, shape in zip(self.layout.steps, self._steps(symbols), shapes, strict=True):
            elements = int(np.prod(shape, dtype=np.int64))
            lanes = self.dtype.lanes
            flat = np.full((elements, lanes), poison(self.dtype), dtype=logical.dtype)
            flat[positions] = current.reshape(-1, lanes)
            result = flat.reshape(lane_shape(shape, self.dtype))
            if step.fills and elements > positions.size:
                self._fill(step, flat, positions, shape, symbols)
            current = result
        return current

    def _fill(
        self, step: Step, flat: Array, positions: Positions, shape: tuple[int, ...], symbols: Mapping[str, int]
    ) -> None:
        padding = np.ones(flat.shape[0], dtype=np.bool_)
        padding[positions] = False
        cells = np.flatnonzero(padding)
        assert step.pad is not None
        indices = dict(zip(step.pad_inputs, np.unravel_index(cells, shape), strict=True)) if step.pad_inputs else {}
        flat[cells] = pad_values(step.pad, {**symbols, **indices}, flat, shape, cells.size)

    def unpack(self, physical: Array, symbols: Mapping[str, int]) -> Array:
        """A new logical array with the content of a physical one; padding is dropped."""
        lanes = self.dtype.lanes
        shapes = self.shapes(symbols)
        current = physical
        for positions, shape in zip(reversed(self._steps(symbols)), reversed(shapes[:-1]), strict=True):
            current = current.reshape(-1, lanes)[positions].reshape(lane_shape(shape, self.dtype))
        return current


def layout_notes(layouts: Mapping[str, Layout]) -> dict[str, str]:
    """A remark for each buffer with a layout: its logical shape and the maps that lead to the physical one."""
    return {name: _note(layout) for name, layout in layouts.items() if layout.steps}


def _note(layout: Layout) -> str:
    shape = ", ".join(extent_text(extent) for extent in layout.logical_shape)
    maps = ", then ".join(index_map_text(step.index_map) for step in layout.steps)
    return f"logical [{shape}] by {maps}"


def runtime_layouts(func: PrimFunc) -> dict[str, Layout]:
    """The layouts of the parameters' arrays, by buffer name. Raises LayoutproofError for a malformed layout record."""
    records = layout_records(func)
    return {b.name: _layout(func, b, records[b.data.name]) for b in func.buffers if b.data.name in records}


def check_records(func: PrimFunc) -> None:
    """Raise LayoutproofError for a layout record with a map that is not proved injective and inside its box."""
    for name, record in layout_records(func).items():
        record.check_names(v.name for v in constants_of(func))
        shape = _shape(func, record.logical_shape)
        for step in record.steps:
            box = _shape(func, step.shape)
            index_map = step.index_map.with_symbols(constants_of(func))
            verdict = check_map(index_map, shape, assumed_of_constants(func), physical_shape=box).injective
            if verdict.status is not Status.PROVED:
                raise error(
                    lowering_codes.RECORD_MAP,
                    f"the layout record of {name}: `{step.map_text}` is not proved to be injective",
                    func.span,
                )
            shape = box


def _layout(func: PrimFunc, buffer: Buffer, record: LayoutRecord) -> Layout:
    symbols = constants_of(func)
    record.check_names(v.name for v in symbols)
    steps: list[Step] = []
    for step in record.steps:
        pad = step.contract
        if pad is not None and not pad.is_undef:
            checked(pad, boxed(buffer, step.shape, symbols))
        value, inputs = (pad.value, tuple(v.name for v in pad.inputs)) if pad is not None else (None, ())
        steps.append(Step(step.index_map.with_symbols(symbols), _shape(func, step.shape), value, inputs))
    return Layout(_shape(func, record.logical_shape), tuple(steps))


def _shape(func: PrimFunc, shape: Sequence[Expr]) -> tuple[Expr, ...]:
    types = {v.name: v.dtype for v in constants_of(func)}
    return tuple(retype(extent, types) for extent in shape)
