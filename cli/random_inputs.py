"""Random inputs for a function's parameters, in logical layout, and the cells of a large output to compare: random ones
and those beside padding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ldexp, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.cli import codes
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import HANDLE, DType, Kind, numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import Trap, float_format
from layoutproof.ir.visit import free_variables
from layoutproof.lowering.runtime.array_layouts import Layout
from layoutproof.lowering.runtime.kernel import Kernel

# Data, its copies and the interpreter's memory together take some ten times as much.
MOST_BYTES = 1 << 30
Array = NDArray[Any]


def logical_shapes(
    func: PrimFunc, layouts: Mapping[str, Layout], sizes: Mapping[str, int]
) -> dict[str, tuple[int, ...]]:
    """The logical shape of every buffer parameter, by name, as numbers.

    Raises LayoutproofError for an extent without a size, for negative and unused sizes, and for a layout whose last box
    has another number of cells than the parameter.
    """
    known = {v.name for b in func.buffers for e in b.shape for v in free_variables(e)} | {p.name for p in func.params}
    for name in sizes:
        if name not in known:
            raise error(codes.SIZE, f"--size {name}: {func.name} has no size of this name", help=_names(func))
    shapes = {b.name: layouts[b.name].logical_shape if b.name in layouts else b.shape for b in func.buffers}
    for buffer in func.buffers:
        steps = layouts[buffer.name].steps if buffer.name in layouts else ()
        box, shape = (
            _numbers(func, buffer.name, s, sizes)
            for s in (steps[-1].physical_shape if steps else buffer.shape, buffer.shape)
        )
        if prod(box) != prod(shape):
            message = (
                f"the layout of {buffer.name} ends in {list(box)}, which has not as many cells as its shape "
                f"{list(shape)}"
            )
            raise error(codes.LAYOUT, f"{func.name}: {message}", func.span)
    return {name: _numbers(func, name, shape, sizes) for name, shape in shapes.items()}


def physical_shapes(func: PrimFunc, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """The shape of every buffer parameter in memory, by name; with a last axis for lanes.

    A flattened parameter has another shape than the last box of its layout, with as many cells.
    """
    shapes = {b.name: _numbers(func, b.name, b.shape, sizes) for b in func.buffers}
    return {b.name: shapes[b.name] if b.dtype.lanes == 1 else (*shapes[b.name], b.dtype.lanes) for b in func.buffers}


def check_amount(func: PrimFunc, sizes: Mapping[str, int]) -> None:
    """Raise LayoutproofError if the parameters take more than a gigabyte in memory."""
    shapes = physical_shapes(func, sizes)
    total = sum(prod(shapes[b.name]) * numpy_dtype(b.dtype.element).itemsize for b in func.buffers)
    if total > MOST_BYTES:
        raise error(
            codes.TOO_LARGE,
            f"{func.name}: its parameters take {total / (1 << 30):,.1f} GiB; runs go up to {MOST_BYTES >> 30} GiB",
        )


def _names(func: PrimFunc) -> str:
    names = dict.fromkeys(v.name for b in func.buffers for e in b.shape for v in free_variables(e))
    return f"it has {', '.join(names)}" if names else "its shapes are all numbers"


def _numbers(func: PrimFunc, name: str, shape: Sequence[Expr], sizes: Mapping[str, int]) -> tuple[int, ...]:
    extents = []
    for extent in shape:
        missing = [v.name for v in free_variables(extent) if v.name not in sizes]
        if missing:
            raise error(
                codes.SIZE, f"{func.name}: the shape of {name} is symbolic; say --size {missing[0]}=N", extent.span
            )
        try:
            extents.append(int(evaluate(extent, sizes)))
        except (Trap, OverflowError) as problem:
            raise error(
                codes.SIZE, f"{func.name}: with these sizes the shape of {name} has no value: {problem}", extent.span
            ) from problem
    if any(extent < 0 for extent in extents):
        raise error(codes.SIZE, f"{func.name}: with these sizes the shape of {name} is {extents}")
    return tuple(extents)


def scalar_values(func: PrimFunc, sizes: Mapping[str, int]) -> dict[str, int | bool]:
    """The values of scalar parameters, given as sizes like symbolic extents.

    Raises LayoutproofError for one that is not an integer or has no size.
    """
    mapped = {param for param, _ in func.buffer_map}
    scalars = [p for p in func.params if p not in mapped and p.dtype != HANDLE]
    for param in scalars:
        if param.name not in sizes:
            raise error(
                codes.SIZE,
                f"{func.name}: {param.name} is a parameter of type {param.dtype}; say --size {param.name}=N",
                param.span,
            )
    return {p.name: bool(sizes[p.name]) if p.dtype.is_bool else sizes[p.name] for p in scalars}


def random_arrays(func: PrimFunc, shapes: Mapping[str, tuple[int, ...]], seed: int) -> dict[str, Array]:
    """Data for every buffer parameter: ordinary numbers, with zeros of both signs and subnormals among the floats."""
    generator = np.random.default_rng(seed)
    return {buffer.name: random_array(shapes[buffer.name], buffer.dtype, generator) for buffer in func.buffers}


def random_array(shape: tuple[int, ...], dtype: DType, generator: np.random.Generator) -> Array:
    """One such array. `shape` is in elements of the type, vectors if it has lanes."""
    element = numpy_dtype(dtype.element)
    full = shape if dtype.lanes == 1 else (*shape, dtype.lanes)
    if dtype.is_float:
        values = generator.standard_normal(full)
        special = generator.random(full)
        precision, lowest, _ = float_format(dtype.element)
        tiny = ldexp(1.0, lowest - precision + 1)
        values = np.where(special < 0.01, 0.0, np.where(special > 0.99, -0.0, values))
        return np.where((0.01 <= special) & (special < 0.015), np.rint(values * 100) * tiny, values).astype(element)
    if dtype.is_bool:
        return generator.integers(0, 2, full).astype(element)
    # Small numbers: products and sums of them stay in range often enough that the result says something.
    low = 0 if dtype.kind is Kind.UINT else -100
    return generator.integers(low, 101, full).astype(element)


RANDOM_CELLS = 1_000
BESIDE_PADDING = 1_000


@dataclass(frozen=True, slots=True)
class Chosen:
    """Logical indices in order; how many of those beside padding are among them, and how many there are."""

    cells: tuple[tuple[int, ...], ...]
    beside_padding: int
    all_beside_padding: int


def choose_cells(shape: tuple[int, ...], kernel: Kernel, name: str, sizes: Mapping[str, int], seed: int) -> Chosen:
    """1,000 random cells, the first and the last, and those beside padding in the physical layout: all of them, or
    1,000 evenly spread.
    """
    if prod(shape) == 0:
        return Chosen((), 0, 0)
    generator = np.random.default_rng(seed + 1)
    cells = {tuple(int(generator.integers(extent)) for extent in shape) for _ in range(RANDOM_CELLS)}
    edge = padding_edge(kernel, name, shape, sizes)
    taken = edge[np.linspace(0, len(edge) - 1, min(len(edge), BESIDE_PADDING), dtype=np.int64)]
    cells.update(tuple(int(i) for i in index) for index in taken)
    cells.update({tuple(0 for _ in shape), tuple(extent - 1 for extent in shape)})
    return Chosen(tuple(sorted(cells)), len(taken), len(edge))


def padding_edge(kernel: Kernel, name: str, shape: Sequence[int], sizes: Mapping[str, int]) -> Array:
    """The logical indices, one a row, of a buffer's cells that have a padding cell next to them along some physical
    axis.
    """
    info = kernel.buffers[name]
    if info.index_map is None:
        return np.zeros((0, len(shape)), dtype=np.int64)
    # Not the parameter's own shape: it may have been flattened since, and neighbours are those in the box.
    box = tuple(int(evaluate(extent, sizes)) for extent in info.steps[-1].physical_shape)
    positions = info.index_map.flat_positions(shape, box, sizes)
    held = np.zeros(prod(box), dtype=bool)
    held[positions.reshape(-1)] = True
    held = held.reshape(tuple(box))
    beside = np.zeros_like(held)
    for axis in range(held.ndim):
        ahead, behind = [slice(None)] * held.ndim, [slice(None)] * held.ndim
        ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
        beside[tuple(behind)] |= ~held[tuple(ahead)]
        beside[tuple(ahead)] |= ~held[tuple(behind)]
    return np.argwhere(beside.reshape(-1)[positions])
