"""The builder: graphs in a few lines of Python, with the operators as methods; names and shapes are derived."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model.graph import (
    Call,
    Constant,
    Crop,
    Graph,
    LayoutTransform,
    Pad,
    Step,
    Value,
    scalar,
    shape_of,
    signature_of,
)
from layoutproof.graph.model.layout_maps import box_of
from layoutproof.graph.model.wellformed_graph import require_graph
from layoutproof.graph.operators.convolution import Halo, Pair, Sliding, conv2d
from layoutproof.graph.operators.elementwise import binary, unary
from layoutproof.graph.operators.moving import concat, expand, gather, reshape, split, strided_slice, transpose
from layoutproof.graph.operators.normalise import batch_norm, layer_norm, log_softmax, response_norm, softmax
from layoutproof.graph.operators.reduction import dense, einsum, matmul, reduce
from layoutproof.graph.operators.spatial import avg_pool2d, max_pool2d
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import take_fresh

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
        made = tuple(
            Value(self._fresh(name), shape_of(buffer), buffer.dtype)
            for name, buffer in zip(wanted, results, strict=True)
        )
        self._steps.append(Call(made, named, tuple(value.name for value in operands)))
        return made

    def layout_transform(self, operand: Value, index_map: MapLike, name: str = "transformed") -> Value:
        """The operand stored by a map. Raises LayoutproofError for a map that does not take its indices."""
        found = map_of(index_map, len(operand.shape))
        result = Value(self._fresh(name), box_of(found, operand.shape), operand.dtype)
        self._steps.append(LayoutTransform(result, operand.name, found))
        return result

    def pad(
        self,
        operand: Value,
        widths: Sequence[tuple[int, int]],
        value: bool | int | float | Expr | None,
        name: str = "padded",
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
        """The box of `sizes` from `starts`; `cropped_value` is what the rest holds, None: anything."""
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
        return take_fresh(name, self._names)

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


def map_of(index_map: MapLike, rank: int) -> IndexMap:
    """A map given as text, as a function of `rank` indices, or as itself. Raises LayoutproofError for what is none."""
    if isinstance(index_map, IndexMap):
        return index_map
    return parse_index_map(index_map) if isinstance(index_map, str) else IndexMap.from_func(index_map, rank)


NO_HALO: Halo = (0, 0, 0, 0)


class GraphBuilder(Assembly):
    """A graph on its way: `g.input(...)`, `g.constant(...)`, an operator's method for each step, `g.build(outputs...)`.

    Every operator is a `PrimFunc` of the library; `g.call(function, ...)` takes any other. All methods raise
    LayoutproofError for shapes and attributes that do not fit.
    """

    def conv2d(
        self,
        data: Value,
        weight: Value,
        *,
        strides: Pair = (1, 1),
        halo: Halo = NO_HALO,
        dilation: Pair = (1, 1),
        groups: int = 1,
    ) -> Value:
        """A convolution of NCHW by OIHW; `halo` is rows before, columns before, rows after, columns after."""
        sliding = Sliding(strides, halo, dilation)
        return self.call(conv2d(data.shape, weight.shape, sliding, groups, str(data.dtype)), data, weight)[0]

    def depthwise_conv2d(self, data: Value, weight: Value, *, strides: Pair = (1, 1), halo: Halo = NO_HALO) -> Value:
        """A convolution in which each channel has filters of its own."""
        return self.conv2d(data, weight, strides=strides, halo=halo, groups=data.shape[1])

    def matmul(self, first: Value, second: Value) -> Value:
        """The product of two matrices; of many, axes in front are repeated as numpy has it."""
        return self.call(matmul(first.shape, second.shape, str(first.dtype)), first, second)[0]

    def dense(self, data: Value, weight: Value) -> Value:
        """The product of a matrix and the transpose of another."""
        return self.call(dense(data.shape, weight.shape, str(data.dtype)), data, weight)[0]

    def unary(self, kind: str, operand: Value) -> Value:
        """An operator of one operand, element by element."""
        return self.call(unary(kind, operand.shape, str(operand.dtype)), operand)[0]

    def binary(self, kind: str, first: Value, second: Value) -> Value:
        """An operator of two operands, element by element, with broadcasting."""
        return self.call(binary(kind, first.shape, second.shape, str(first.dtype)), first, second)[0]

    def add(self, first: Value, second: Value) -> Value:
        """The sum, element by element."""
        return self.binary("add", first, second)

    def multiply(self, first: Value, second: Value) -> Value:
        """The product, element by element."""
        return self.binary("multiply", first, second)

    def bias_add(self, data: Value, bias: Value) -> Value:
        """The sum with a bias for each channel; of a bias with one axis, the one that is repeated is given by `[C, 1,
        ...]`.
        """
        return self.binary("add", data, bias)

    def relu(self, operand: Value) -> Value:
        """The larger of an element and zero."""
        return self.unary("relu", operand)

    def sigmoid(self, operand: Value) -> Value:
        """The logistic function of each element."""
        return self.unary("sigmoid", operand)

    def batch_norm(
        self, data: Value, gamma: Value, beta: Value, mean: Value, variance: Value, *, epsilon: float = 1e-5
    ) -> Value:
        """Each channel scaled by its statistics."""
        return self.call(batch_norm(data.shape, epsilon, str(data.dtype)), data, gamma, beta, mean, variance)[0]

    def response_norm(self, data: Value, *, size: int, alpha: float, beta: float, bias: float) -> Value:
        """Each element scaled by the channels around it."""
        return self.call(response_norm(data.shape, size, alpha, beta, bias, str(data.dtype)), data)[0]

    def max_pool2d(self, data: Value, window: Pair, *, strides: Pair = (1, 1), halo: Halo = NO_HALO) -> Value:
        """The largest element of each window."""
        return self.call(max_pool2d(data.shape, window, strides, halo, str(data.dtype)), data)[0]

    def avg_pool2d(
        self, data: Value, window: Pair, *, strides: Pair = (1, 1), halo: Halo = NO_HALO, count_halo: bool = False
    ) -> Value:
        """The mean of each window."""
        return self.call(avg_pool2d(data.shape, window, strides, halo, count_halo, str(data.dtype)), data)[0]

    def global_avg_pool2d(self, data: Value) -> Value:
        """The mean of each image, with axes of extent 1 left."""
        return self.reduce("mean", data, (2, 3), keep=True)

    def reduce(self, kind: str, data: Value, axes: Sequence[int], *, keep: bool = False) -> Value:
        """A reduction over some axes: `sum`, `mean`, `max`, `min`, `prod`, `l1`, `l2`, `sum_square`, `log_sum`,
        `log_sum_exp`.
        """
        return self.call(reduce(kind, data.shape, tuple(axes), keep, str(data.dtype)), data)[0]

    def sum(self, data: Value, axes: Sequence[int], *, keep: bool = False) -> Value:
        """The sum over some axes."""
        return self.reduce("sum", data, axes, keep=keep)

    def mean(self, data: Value, axes: Sequence[int], *, keep: bool = False) -> Value:
        """The mean over some axes."""
        return self.reduce("mean", data, axes, keep=keep)

    def softmax(self, data: Value, *, axis: int = -1) -> Value:
        """Shares that add up to one along an axis."""
        return self.call(softmax(data.shape, axis, str(data.dtype)), data)[0]

    def log_softmax(self, data: Value, *, axis: int = -1) -> Value:
        """The logarithms of shares along an axis."""
        return self.call(log_softmax(data.shape, axis, str(data.dtype)), data)[0]

    def layer_norm(self, data: Value, scale: Value, bias: Value, *, axis: int = -1, epsilon: float = 1e-5) -> Value:
        """Elements scaled by the mean and the variance over all axes from one on."""
        func = layer_norm(data.shape, axis, scale.shape, bias.shape, epsilon, str(data.dtype))
        return self.call(func, data, scale, bias)[0]

    def einsum(self, equation: str, *operands: Value) -> Value:
        """A sum of products: `bij,bjk->bik`."""
        func = einsum(
            equation, tuple(operand.shape for operand in operands), str(operands[0].dtype) if operands else "float32"
        )
        return self.call(func, *operands)[0]

    def gather(self, data: Value, places: Value, *, axis: int = 0) -> Value:
        """What stands at places of an axis; the places are data."""
        return self.call(gather(data.shape, places.shape, axis, str(data.dtype), str(places.dtype)), data, places)[0]

    def expand(self, data: Value, shape: Sequence[int]) -> Value:
        """The elements repeated over axes of extent 1, and over more axes in front."""
        return self.call(expand(data.shape, tuple(shape), str(data.dtype)), data)[0]

    def reshape(self, data: Value, shape: Sequence[int]) -> Value:
        """The elements under other axes."""
        return self.call(reshape(data.shape, tuple(shape), str(data.dtype)), data)[0]

    def transpose(self, data: Value, order: Sequence[int]) -> Value:
        """The axes in another order."""
        return self.call(transpose(data.shape, tuple(order), str(data.dtype)), data)[0]

    def concat(self, parts: Sequence[Value], *, axis: int) -> Value:
        """Arrays one after the other along an axis."""
        return self.call(concat(tuple(part.shape for part in parts), axis, str(parts[0].dtype)), *parts)[0]

    def split(self, data: Value, sizes: Sequence[int], *, axis: int) -> tuple[Value, ...]:
        """The parts of an array along an axis."""
        return self.call(split(data.shape, tuple(sizes), axis, str(data.dtype)), data)

    def slice(
        self, data: Value, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int] | None = None
    ) -> Value:
        """Every so many elements of a box."""
        apart = tuple(steps) if steps is not None else None
        return self.call(strided_slice(data.shape, tuple(starts), tuple(sizes), apart, str(data.dtype)), data)[0]
