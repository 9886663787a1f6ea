"""Arguments of a run: arrays and numbers in, symbols bound, memory filled; memory out as arrays again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import HANDLE, numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.interp.analysis import Memories
from layoutproof.ir.interp.memory import DEFINED, FORBIDDEN, POISON, UNINITIALISED, Storage, bad_argument
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import Trap, round_float
from layoutproof.ir.visit import free_variables

Array = npt.NDArray[Any]
Arguments = Sequence[object] | Mapping[str, object]


@dataclass(slots=True)
class Bound:
    """Arguments matched to parameters: `symbols` are integers by name (shapes' names and integer parameters), `floats`
    float parameters, `arrays` by buffer name (None: nothing given, the cells start uninitialised).
    """

    symbols: dict[str, int] = field(default_factory=dict)
    floats: dict[str, float] = field(default_factory=dict)
    arrays: dict[str, Array | None] = field(default_factory=dict)
    raw: dict[str, Array] = field(default_factory=dict)  # handles without a buffer of their own


def bind(func: PrimFunc, arguments: Arguments) -> Bound:
    """Match arguments to `func`'s parameters and bind the names in its shapes.

    A sequence goes by position; a mapping by the names of buffers, parameters and symbols. Raises LayoutproofError for
    a wrong count, type, rank or shape, for shapes that disagree about a name and for names without a value.
    """
    given = _by_name(func, arguments)
    bound = Bound()
    mapped = dict(func.buffer_map)
    for param in func.params:
        value = given.pop(param.name, None)
        buffer = mapped.get(param)
        if buffer is not None:
            bound.arrays[buffer.name] = _array(func, buffer, value)
        elif param.dtype == HANDLE:
            bound.raw[param.name] = _raw(func, param, value)
        else:
            _scalar(func, param, value, bound)
    for name, value in given.items():
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            raise bad_argument(f"{func.name}: no parameter is called {name}")
        bound.symbols[name] = int(value)
    _bind_shapes(func, bound)
    return bound


def _by_name(func: PrimFunc, arguments: Arguments) -> dict[str, object]:
    """Arguments by parameter name, and symbols by their own."""
    mapped = dict(func.buffer_map)
    if not isinstance(arguments, Mapping):
        if len(arguments) != len(func.params):
            raise bad_argument(f"{func.name} takes {len(func.params)} arguments, {len(arguments)} given")
        return dict(zip((p.name for p in func.params), arguments, strict=True))
    names = {mapped[p].name: p.name for p in func.params if p in mapped}
    symbols = {
        v.name for b in mapped.values() for e in (*b.shape, *b.strides, b.elem_offset) for v in free_variables(e)
    }
    known = {p.name for p in func.params} | symbols
    result: dict[str, object] = {}
    for name, value in arguments.items():
        target = names.get(name, name)
        if target not in known:
            raise bad_argument(f"{func.name} has no parameter {name}; it has {', '.join((*names, *sorted(symbols)))}")
        result[target] = value
    return result


def _array(func: PrimFunc, buffer: Buffer, value: object) -> Array | None:
    if value is None:
        return None
    if not isinstance(value, np.ndarray):
        raise bad_argument(f"{func.name}: {buffer.name} takes an array, not {type(value).__name__}")
    if value.dtype != numpy_dtype(buffer.dtype):
        raise bad_argument(f"{func.name}: {buffer.name} holds {buffer.dtype}, the array {value.dtype}")
    rank = buffer.rank + (buffer.dtype.lanes > 1)
    if value.ndim != rank:
        raise bad_argument(f"{func.name}: {buffer.name} has {rank} axes (lanes included), the array {value.ndim}")
    if buffer.dtype.lanes > 1 and value.shape[-1] != buffer.dtype.lanes:
        raise bad_argument(
            f"{func.name}: the last axis of {buffer.name} is its {buffer.dtype.lanes} lanes, not {value.shape[-1]}"
        )
    return value


def _raw(func: PrimFunc, param: Var, value: object) -> Array:
    if not isinstance(value, np.ndarray):
        raise bad_argument(f"{func.name}: {param.name} is a bare pointer and takes an array")
    return value


def _scalar(func: PrimFunc, param: Var, value: object, bound: Bound) -> None:
    dtype = param.dtype
    if value is None:
        raise bad_argument(f"{func.name}: no value for {param.name}")
    if dtype.is_float:
        if not isinstance(value, int | float | np.floating | np.integer):
            raise bad_argument(f"{func.name}: {param.name} takes a {dtype}, not {value!r}")
        bound.floats[param.name] = round_float(float(value), dtype)
        return
    if not isinstance(value, int | np.integer | np.bool_) or not dtype.min_int <= int(value) <= dtype.max_int:
        raise bad_argument(f"{func.name}: {param.name} takes a {dtype}, not {value!r}")
    bound.symbols[param.name] = int(value)


def _bind_shapes(func: PrimFunc, bound: Bound) -> None:
    """Plain names in shapes from the arrays, then everything else checked against them."""
    symbols = bound.symbols
    for buffer in func.buffers:
        array = bound.arrays[buffer.name]
        if array is None or array.ndim < buffer.rank:
            continue
        for extent, size in zip(buffer.shape, array.shape[: buffer.rank], strict=True):  # lanes come after
            if isinstance(extent, Var):
                if symbols.setdefault(extent.name, size) != size:
                    raise bad_argument(
                        f"{func.name}: {extent.name} is {symbols[extent.name]}, but {buffer.name} says {size}"
                    )
    for buffer in func.buffers:
        _bind_strides(func, buffer, symbols)
        array = bound.arrays[buffer.name]
        shape = tuple(_value(func, buffer, e, symbols) for e in buffer.shape)
        if any(s < 0 for s in shape):
            raise bad_argument(f"{func.name}: {buffer.name} has the shape {list(shape)}")
        if array is not None and array.shape[: buffer.rank] != shape:
            raise bad_argument(
                f"{func.name}: {buffer.name} has the shape {list(shape)}, the array {list(array.shape[: buffer.rank])}"
            )


def _bind_strides(func: PrimFunc, buffer: Buffer, symbols: dict[str, int]) -> None:
    """Free names of strides and of the offset get the values of a compact array."""
    if isinstance(buffer.elem_offset, Var):
        symbols.setdefault(buffer.elem_offset.name, 0)
    step = 1
    for stride, extent in zip(reversed(buffer.strides), reversed(buffer.shape), strict=True) if buffer.strides else ():
        if isinstance(stride, Var):
            symbols.setdefault(stride.name, step)
        step *= max(_value(func, buffer, extent, symbols), 1)


def _value(func: PrimFunc, buffer: Buffer, extent: Expr, symbols: Mapping[str, int]) -> int:
    try:
        return int(evaluate(extent, symbols))
    except KeyError as missing:
        raise bad_argument(f"{func.name}: the shape of {buffer.name}: {missing.args[0]}; give it by name") from missing
    except Trap as trap:
        raise bad_argument(f"{func.name}: the shape of {buffer.name}: {trap}") from trap


@dataclass(frozen=True, slots=True)
class Shape:
    """A buffer's numbers: extents, strides (elements), offset (elements)."""

    extents: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def compact(self) -> bool:
        """Row-major from the start of the memory."""
        return self.offset == 0 and self.strides == row_major(self.extents)

    @property
    def elements(self) -> int:
        """One more than the last element's number, counted from the start of the memory; 0 when there is no element."""
        if any(e == 0 for e in self.extents):
            return 0
        return self.offset + sum((e - 1) * max(s, 0) for e, s in zip(self.extents, self.strides, strict=True)) + 1

    @property
    def first(self) -> int:
        """The lowest number of an element, below 0 where strides or the offset lead out of the memory."""
        return self.offset + sum((e - 1) * min(s, 0) for e, s in zip(self.extents, self.strides, strict=True))

    def numbers(self) -> Array:
        """The element number of every index, as an array of the buffer's shape."""
        result = np.full((), self.offset, dtype=np.int64)
        for extent, stride in zip(self.extents, self.strides, strict=True):
            result = np.add.outer(result, np.arange(extent, dtype=np.int64) * stride)
        return result


def row_major(extents: Sequence[int]) -> tuple[int, ...]:
    """The strides of a compact array."""
    strides, step = [], 1
    for extent in reversed(extents):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def shape_of(buffer: Buffer, symbols: Mapping[str, int]) -> Shape:
    """The numbers of a buffer whose shape depends on symbols only."""
    extents = tuple(int(evaluate(e, symbols)) for e in buffer.shape)
    strides = tuple(int(evaluate(e, symbols)) for e in buffer.strides) if buffer.strides else row_major(extents)
    return Shape(extents, strides, int(evaluate(buffer.elem_offset, symbols)))


def fill_memory(func: PrimFunc, bound: Bound, memories: Memories) -> dict[str, Storage]:
    """A storage for every parameter's data, with the arrays' content; what lies between strided elements is not the
    array's.

    An array that nothing can change is not copied, however large.
    """
    storages: dict[str, Storage] = {}
    for buffer in func.buffers:
        shape, array = shape_of(buffer, bound.symbols), bound.arrays[buffer.name]
        if shape.elements and shape.first < 0:
            raise bad_argument(f"{func.name}: an element of {buffer.name} lies before its memory, at {shape.first}")
        dtype, root = buffer.dtype, memories.of(buffer)
        unit = memories.units[root]
        changes = root in memories.written or root in memories.arbitrary
        shared = None if changes or array is None or not shape.compact else _shared(array)
        storage = storages[root] = Storage(root, shape.elements * dtype.bytes, unit, shared)
        per_element = dtype.bytes // unit
        cells = np.frombuffer(storage.state, dtype=np.uint8)[: shape.elements * per_element].reshape(-1, per_element)
        data = storage.data[: storage.size].view(numpy_dtype(dtype)).reshape(-1, dtype.lanes)
        if shape.compact:
            cells[:] = 0 if array is None else DEFINED
            if array is not None and shared is None:
                data.reshape(*shape.extents, dtype.lanes)[...] = array.reshape(*shape.extents, dtype.lanes)
            continue
        numbers = shape.numbers()
        cells[:] = FORBIDDEN
        cells[numbers] = 0 if array is None else DEFINED
        if array is not None:
            data[numbers] = array.reshape(*shape.extents, dtype.lanes)
    for name, array in bound.raw.items():
        content = np.ascontiguousarray(array)
        storage = storages[name] = Storage(name, content.nbytes, memories.units.get(name, content.itemsize))
        storage.data[: content.nbytes] = content.reshape(-1).view(np.uint8)
        storage.state[: content.nbytes // storage.unit] = bytes((DEFINED,)) * (content.nbytes // storage.unit)
    return storages


def _shared(array: Array) -> npt.NDArray[np.uint8] | None:
    """The bytes of an array for reading; None where they do not lie as a storage's do."""
    if not array.flags.c_contiguous or array.nbytes == 0 or array.nbytes % 8 != 0:
        return None
    found: npt.NDArray[np.uint8] = array.reshape(-1).view(np.uint8)
    found.flags.writeable = False
    return found


# Which of several states is the worse: defined, poison, uninitialised, forbidden.
_BY_RANK = np.array([DEFINED, POISON, UNINITIALISED, FORBIDDEN], dtype=np.uint8)
_RANK = np.array(
    [int(np.flatnonzero(_BY_RANK == s)[0]) if s in _BY_RANK else 0 for s in range(FORBIDDEN + 1)], dtype=np.uint8
)


def read_back(buffer: Buffer, symbols: Mapping[str, int], storage: Storage) -> tuple[Array, npt.NDArray[np.uint8]]:
    """A parameter's array after the run (lanes last), and the worst state of each of its scalars."""
    shape, dtype = shape_of(buffer, symbols), buffer.dtype
    data, worst = elements_of(buffer, storage), states_of(buffer, storage, slice(0, shape.elements))
    tail = (dtype.lanes,) if dtype.lanes > 1 else ()
    if shape.compact:
        return data.reshape((*shape.extents, *tail)).copy(), worst.reshape((*shape.extents, *tail))
    numbers = shape.numbers()
    return data[numbers].reshape((*shape.extents, *tail)), worst[numbers].reshape((*shape.extents, *tail))


def states_of(buffer: Buffer, storage: Storage, elements: slice | npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """The worst state of each scalar of some elements, counted from the storage's start: one row of lanes each."""
    dtype = buffer.dtype
    units = dtype.bits // 8 // storage.unit
    whole = storage.size // dtype.bytes
    states = np.frombuffer(storage.state, dtype=np.uint8)[: whole * dtype.lanes * units].reshape(
        -1, dtype.lanes, units
    )[elements]
    return _BY_RANK[_RANK[states].max(axis=2)] if states.size else np.zeros((0, dtype.lanes), dtype=np.uint8)


def elements_of(buffer: Buffer, storage: Storage) -> Array:
    """The whole elements in a storage, counted from its start: one row of lanes each. Not a copy."""
    dtype = buffer.dtype
    found: Array = (
        storage.data[: storage.size // dtype.bytes * dtype.bytes].view(numpy_dtype(dtype)).reshape(-1, dtype.lanes)
    )
    return found
