"""Running a whole graph on arrays, step by step; functions by the reference interpreter or a given evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model.graph import (
    Array,
    Call,
    Crop,
    Graph,
    LayoutTransform,
    Pad,
    Shape,
    Step,
    number_of,
    signature_of,
)
from layoutproof.graph.model.layout_maps import box_of
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.interp.memory import Filling
from layoutproof.ir.interp.run import run
from layoutproof.ir.primfunc import PrimFunc

Runner = Callable[[PrimFunc, Sequence[Array]], Sequence[Array]]
"""A function on its operands gives its results."""

Mover = Callable[[Array, IndexMap], Array]
"""An array and a bijection give the array with each element where the map says."""


def transformed(array: Array, index_map: IndexMap) -> Array:
    """The array with each element where a bijection says."""
    return index_map.map_array(array, box_of(index_map, array.shape))


def interpret(func: PrimFunc, operands: Sequence[Array]) -> tuple[Array, ...]:
    """A function by the reference interpreter, results uninitialised. Raises Fault for its faults."""
    signature = signature_of(func)
    given = {buffer.name: array for buffer, array in zip(signature.operands, operands, strict=True)}
    result = run(func, given)
    return tuple(result[buffer.name] for buffer in signature.results)


def run_graph(
    graph: Graph,
    inputs: Mapping[str, Array],
    *,
    runner: Runner = interpret,
    mover: Mover = transformed,
    filling: Filling | None = None,
) -> tuple[Array, ...]:
    """The outputs of a well-formed graph, in order. `filling` gives what undefined padding holds.

    What no later step uses is let go, so that its memory can hold what comes next.
    Raises LayoutproofError for inputs that are missing, unknown or do not fit.
    """
    values = _given(graph, inputs)
    fill = filling if filling is not None else Filling()
    for step, done in zip(graph.steps, last_uses(graph), strict=True):
        _take(step, values, runner, mover, fill)
        for name in done:
            del values[name]
    return tuple(values[name] for name in graph.outputs)


def run_values(
    graph: Graph,
    inputs: Mapping[str, Array],
    *,
    runner: Runner = interpret,
    mover: Mover = transformed,
    filling: Filling | None = None,
) -> Mapping[str, Array]:
    """Every value of a well-formed graph. Raises as `run_graph` does."""
    values = _given(graph, inputs)
    fill = filling if filling is not None else Filling()
    for step in graph.steps:
        _take(step, values, runner, mover, fill)
    return values


def last_uses(graph: Graph) -> list[list[str]]:
    """For each step, the values that neither a later step nor the caller uses."""
    kept = set(graph.outputs)
    found: list[list[str]] = []
    for step in reversed(graph.steps):
        mine = dict.fromkeys([*step.operands, *(value.name for value in step.results)])
        found.append([name for name in mine if name not in kept])
        kept |= set(mine)
    return found[::-1]


def _take(step: Step, values: dict[str, Array], runner: Runner, mover: Mover, fill: Filling) -> None:
    operands = [values[name] for name in step.operands]
    made = _made(step, operands, runner, mover, fill)
    for value, array in zip(step.results, made, strict=True):
        values[value.name] = array


def _given(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    names = [value.name for value in graph.inputs]
    unknown = [name for name in inputs if name not in names]
    if unknown:
        raise error(
            codes.RUN_INPUT, f"{graph.name} has no input called {unknown[0]}", help=f"available: {', '.join(names)}"
        )
    values: dict[str, Array] = {}
    for value in graph.inputs:
        if value.name not in inputs:
            raise error(codes.RUN_INPUT, f"the input {value} is missing")
        array = np.asarray(inputs[value.name])
        if (array.shape, array.dtype) != (value.shape, numpy_dtype(value.dtype)):
            raise error(codes.RUN_INPUT, f"the input {value} is given as {array.dtype}{list(array.shape)}")
        values[value.name] = array
    unread = [constant for constant in graph.constants if constant.sha256 is not None]
    if unread:
        raise error(
            codes.CONSTANT_DATA, f"the elements of the constant {unread[0].value} are not known, only their SHA-256"
        )
    return values | {constant.value.name: constant.data for constant in graph.constants}


def _made(step: Step, operands: Sequence[Array], runner: Runner, mover: Mover, filling: Filling) -> Sequence[Array]:
    match step:
        case Call():
            return runner(step.function, operands)
        case LayoutTransform():
            return (mover(operands[0], step.index_map),)
        case Pad():
            number = number_of(step.value)
            return (
                padded(operands[0], step.widths, number if number is not None else filling.value(step.result.dtype)),
            )
        case Crop():
            # Of an array without axes a box is a number.
            return (np.array(operands[0][box(step.starts, step.sizes)]),)


def padded(array: Array, widths: Sequence[tuple[int, int]], value: int | float) -> Array:
    """The array with more cells around it."""
    return np.pad(array, widths, constant_values=np.asarray(value).astype(array.dtype)) if array.ndim else array.copy()


def box(starts: Shape, sizes: Shape) -> tuple[slice, ...]:
    """A box as numpy takes it."""
    return tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))
