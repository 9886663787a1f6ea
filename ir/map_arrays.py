"""The methods of index maps that read Python functions and work on arrays of numbers: the values of a map on a box, its
shape there, and arrays in its layout.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any, Self

from layoutproof.ir import codes
from layoutproof.ir.buffer import axes_text
from layoutproof.ir.diagnostic import counted, error
from layoutproof.ir.evaluate import Overflow, evaluate
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.node import comparisons_refused
from layoutproof.ir.semantics import Trap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from layoutproof.ir.late import np

_LARGEST_ARRAY = 1 << 46  # bytes; what no machine has is refused by name instead of by the allocator


class MapArrays:
    """An index map on numbers. A shape is the logical one; symbols of the map have the values of `symbols`."""

    __slots__ = ()

    if TYPE_CHECKING:
        # What an index map has.
        inputs: tuple[Var, ...]
        outputs: tuple[Expr, ...]

        @classmethod
        def from_outputs(cls, inputs: tuple[Var, ...], items: Sequence[Any]) -> Self:
            """A map from a list."""

        def digit_extent(self, axis: int) -> Expr | None:
            """The written extent of an axis."""

    @classmethod
    def from_func(cls, function: Callable[..., Any], rank: int | None = None) -> Self:
        """The map that a Python function states: it takes N named indices, or `*indices` with `rank` given, and returns
        a list.

        Raises LayoutproofError for a function whose arguments or result are something else.
        """
        names = _argument_names(function, rank)
        inputs = tuple(Var(name) for name in names)
        try:
            with comparisons_refused():
                result = function(*inputs)
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as problem:
            raise error(codes.MAP_FORM, f"the index map cannot be evaluated: {problem}") from problem
        if not isinstance(result, list | tuple):
            raise error(codes.MAP_FORM, f"an index map returns a list of expressions, not {type(result).__name__}")
        return cls.from_outputs(inputs, result)

    def output_values(self, shape: Sequence[int], symbols: Mapping[str, int] | None = None) -> list[NDArray[np.int64]]:
        """Each output over the whole logical box, as arrays that broadcast to `shape`: an axis an output does not use
        has length 1.

        Raises LayoutproofError for a wrong rank, and where an output traps or its value does not fit 64 bits.
        """
        extents = self._extents(shape)
        axes = np.ix_(*(np.arange(extent, dtype=np.int64) for extent in extents)) if extents else ()
        env: dict[str, Any] = {**(symbols or {}), **{v.name: a for v, a in zip(self.inputs, axes, strict=True)}}
        ones = (1,) * len(extents)
        values = (self._output_array(axis, extents, env) for axis in range(len(self.outputs)))
        return [v if v.ndim == len(extents) else v.reshape(ones) for v in values]

    def _extents(self, shape: Sequence[int]) -> tuple[int, ...]:
        if len(shape) != len(self.inputs):
            taken, axes = indices_text(len(self.inputs)), axes_text(len(shape))
            raise error(codes.RANK, f"the index map takes {taken}, the shape {list(shape)} has {axes}")
        for extent in shape:
            if isinstance(extent, bool) or not isinstance(extent, int | np.integer):
                raise error(codes.SHAPE, f"an extent of the shape is {extent!r}, an integer is expected")
        return tuple(int(extent) for extent in shape)

    def _output_array(self, axis: int, shape: tuple[int, ...], env: Mapping[str, Any]) -> NDArray[np.int64]:
        try:
            try:
                return np.asarray(evaluate(self.outputs[axis], env), dtype=np.int64)
            except (Overflow, OverflowError):
                exact = {name: a.astype(object) if isinstance(a, np.ndarray) else a for name, a in env.items()}
                return np.asarray(evaluate(self.outputs[axis], exact)).astype(np.int64)
        except OverflowError as problem:
            raise error(
                codes.TOO_WIDE, f"axis {axis} of the index map does not fit 64 bits on the shape {list(shape)}"
            ) from problem
        except Trap as problem:
            where = self._first_trap(axis, shape, env)
            at = f" at the logical index {where}" if where is not None else ""
            raise error(codes.NO_VALUE, f"axis {axis} of the index map has no value{at}: {problem}") from problem

    def _first_trap(self, axis: int, shape: tuple[int, ...], env: Mapping[str, Any]) -> tuple[int, ...] | None:
        """The first logical index where an output traps, searched among the first 65,536 for the message."""
        for index in islice(np.ndindex(*shape), 1 << 16):
            try:
                evaluate(self.outputs[axis], {**env, **{v.name: i for v, i in zip(self.inputs, index, strict=True)}})
            except Trap:
                return tuple(index)
        return None

    def map_shape(self, shape: Sequence[int], symbols: Mapping[str, int] | None = None) -> tuple[int, ...]:
        """The physical shape of a concrete logical shape: digit axes have their extent, others the least one that holds
        the image.

        Raises LayoutproofError, naming the logical index, where the image goes below zero.
        """
        if any(extent < 1 for extent in shape):
            raise error(codes.SHAPE, f"every extent of the shape {list(shape)} must be at least 1")
        extents = []
        for axis, values in enumerate(self.output_values(shape, symbols)):
            lowest = int(values.min())
            if lowest < 0:
                where = np.unravel_index(int(values.argmin()), values.shape)
                raise error(
                    codes.BELOW_ZERO,
                    f"axis {axis} of the index map is {lowest} at the logical index {tuple(int(w) for w in where)}",
                )
            digit = self.digit_extent(axis)
            size = 0 if digit is None else int(evaluate(digit, dict(symbols or {})))
            # A remainder by a negative number is no digit: its values are 0 and below.
            extents.append(size if size > 0 else int(values.max()) + 1)
        return tuple(extents)

    def flat_positions(
        self, shape: Sequence[int], physical_shape: Sequence[int], symbols: Mapping[str, int] | None = None
    ) -> NDArray[np.int64]:
        """The row-major offset in the physical box of every logical element, as an array of the logical shape."""
        flat = np.zeros((1,) * len(shape), dtype=np.int64)
        for extent, values in zip(physical_shape, self.output_values(shape, symbols), strict=True):
            flat = flat * np.int64(extent) + values
        return np.broadcast_to(flat, tuple(shape))

    def map_array(
        self, array: NDArray[Any], physical_shape: Sequence[int] | None = None, fill: Any = 0
    ) -> NDArray[Any]:
        """`array` in the physical layout: a new array of the physical shape, padding holding `fill`.

        Raises LayoutproofError for a rank that does not fit and for an image outside `physical_shape`.
        """
        if array.ndim != len(self.inputs):
            raise error(
                codes.RANK,
                f"the index map takes {indices_text(len(self.inputs))}, the array has {axes_text(array.ndim)}",
            )
        box = self._box(array.shape, physical_shape)
        cells = prod(box)
        if cells * array.dtype.itemsize > _LARGEST_ARRAY:
            raise error(
                codes.TOO_MANY_CELLS, f"the physical shape {list(box)} has {cells} cells: too many for an array"
            )
        result = np.full(cells, fill, dtype=array.dtype)
        result[self.flat_positions(array.shape, box).reshape(-1)] = array.reshape(-1)
        return result.reshape(box)

    def unmap_array(self, physical: NDArray[Any], shape: Sequence[int]) -> NDArray[Any]:
        """The logical array of shape `shape` that `physical` holds; the reverse of `map_array`, padding dropped."""
        box = self._box(shape, physical.shape)
        return physical.reshape(-1)[self.flat_positions(shape, box)]

    def _box(self, shape: Sequence[int], physical_shape: Sequence[int] | None) -> tuple[int, ...]:
        least = self.map_shape(shape)
        if physical_shape is None:
            return least
        box = tuple(int(extent) for extent in physical_shape)
        largest = [int(values.max()) + 1 for values in self.output_values(shape)]
        if len(box) != len(self.outputs) or any(a < b for a, b in zip(box, largest, strict=True)):
            raise error(
                codes.PHYSICAL_SHAPE,
                f"the physical shape {list(box)} does not hold the image, whose extents are {largest}",
            )
        return box


def _argument_names(function: Callable[..., Any], rank: int | None) -> list[str]:
    names: list[str] = []
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as problem:
        raise error(codes.MAP_FORM, f"the arguments of the index map are not known: {problem}") from problem
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            if rank is None or rank < len(names):
                raise error(codes.MAP_FORM, f"the index map takes *{parameter.name}: say how many indices there are")
            names.extend(f"{parameter.name}_{k}" for k in range(rank - len(names)))
        else:
            raise error(
                codes.MAP_FORM, f"the index map has a keyword argument {parameter.name}; it takes positional indices"
            )
    if rank is not None and len(names) != rank:
        raise error(codes.MAP_FORM, f"the index map takes {indices_text(len(names))}, the buffer has {axes_text(rank)}")
    return names


def indices_text(number: int) -> str:
    """A number of indices in a message."""
    return counted(number, "index", "indices")
