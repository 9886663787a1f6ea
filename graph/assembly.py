"""Putting a graph together step by step: names are found, shapes are derived, and what is wrong is said at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.maps import box_of
from layoutproof.graph.model import Call, Constant, Crop, Graph, LayoutTransform, Pad, Step, Value
from layoutproof.graph.scalars import scalar
from layoutproof.graph.signature import shape_of, signature_of
from layoutproof.graph.wellformed import require_graph
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc

MapLike = IndexMap | Callable[..., Any] | str


class Assembly:
    """A graph on its way. A method that adds a step gives its value; the name is found where none is asked for."""

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self._inputs: list[Value] = []
        self._constants: list[Constant] = []
        self._steps: list[Step] = []
        self._names: set[str] = set()
        self._functions: dict[str, PrimFunc] = {}

    def input(self, name: str, shape: Sequence[int], dtype: str = "float32") -> Value:
        """An input of the graph."""
        value = Value(self._take(name), tuple(shape), DType.parse(dtype))
        self._inputs.append(value)
        return value

    def constant(self, data: Any, name: str = "constant") -> Value:
        """A value known at compile time, kept as it is given; the name gets a number where it is taken."""
        array = np.asarray(data, order="C")
        value = Value(self._fresh(name), array.shape, DType.parse(array.dtype.name))
        self._constants.append(Constant(value, array))
        return value

    def call(self, function: PrimFunc, *operands: Value, names: Sequence[str] = ()) -> tuple[Value, ...]:
        """The results of a function. It gets a name of its own where another function has its name.

        Raises LayoutproofError where a graph cannot call the function.
        """
        named = self._named(function)
        results = signature_of(named).results
        wanted = names if len(names) == len(results) else [named.name] * len(results)
        made = tuple(Value(self._fresh(name), shape_of(buffer), buffer.dtype) for name, buffer in zip(wanted, results, strict=True))
        self._steps.append(Call(made, named, tuple(value.name for value in operands)))
        return made

    def layout_transform(self, operand: Value, index_map: MapLike, name: str = "transformed") -> Value:
        """The operand stored by a map. Raises LayoutproofError for a map that does not take its indices."""
        found = map_of(index_map, len(operand.shape))
        result = Value(self._fresh(name), box_of(found, operand.shape), operand.dtype)
        self._steps.append(LayoutTransform(result, operand.name, found))
        return result

    def pad(
        self, operand: Value, widths: Sequence[tuple[int, int]], value: bool | int | float | Expr | None, name: str = "padded"
    ) -> Value:
        """The operand with more cells on each axis, `widths` before and after; None pads with undef."""
        pairs = tuple((int(before), int(after)) for before, after in widths)
        if len(pairs) != len(operand.shape):
            raise error(codes.PAD_WIDTHS, f"the widths {list(pairs)} do not fit {operand}")
        shape = tuple(extent + before + after for extent, (before, after) in zip(operand.shape, pairs, strict=True))
        result = Value(self._fresh(name), shape, operand.dtype)
        self._steps.append(Pad(result, operand.name, pairs, scalar(value, operand.dtype)))
        return result

    def crop(
        self,
        operand: Value,
        starts: Sequence[int],
        sizes: Sequence[int],
        cropped_value: bool | int | float | Expr | None = None,
        name: str = "cropped",
    ) -> Value:
        """The box of `sizes` from `starts`; `cropped_value` is what is said of the rest, None says nothing."""
        result = Value(self._fresh(name), tuple(sizes), operand.dtype)
        known = None if cropped_value is None else scalar(cropped_value, operand.dtype)
        self._steps.append(Crop(result, operand.name, tuple(starts), tuple(sizes), known))
        return result

    def build(self, *outputs: Value) -> Graph:
        """The graph that gives these values. Raises LayoutproofError for one that is not well-formed."""
        names = tuple(value.name for value in outputs)
        return require_graph(Graph(self.name, tuple(self._inputs), tuple(self._constants), tuple(self._steps), names))

    def _take(self, name: str) -> str:
        if name in self._names:
            raise error(codes.TWO_VALUES, f"two values are called {name}")
        self._names.add(name)
        return name

    def _fresh(self, name: str) -> str:
        return self._take(unused(name, self._names))

    def _named(self, function: PrimFunc) -> PrimFunc:
        """The function under a name that stands for it alone."""
        name, number = function.name, 0
        while True:
            known = self._functions.get(name)
            candidate = function if name == function.name else replace(function, name=name)
            if known is None or known == candidate:
                return self._functions.setdefault(name, candidate)
            number += 1
            name = f"{function.name}_{number}"


def unused(name: str, taken: set[str]) -> str:
    """The name, with a number behind it where it is taken."""
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


def map_of(index_map: MapLike, rank: int) -> IndexMap:
    """A map given as text, as a function of `rank` indices, or as itself. Raises LayoutproofError for what is none."""
    if isinstance(index_map, IndexMap):
        return index_map
    return parse_index_map(index_map) if isinstance(index_map, str) else IndexMap.from_func(index_map, rank)
