"""The builder: graphs in a few lines of Python, with the operators as methods."""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.graph.assembly import Assembly
from layoutproof.graph.model import Value
from layoutproof.graph.operators.convolution import Halo, Pair, conv2d
from layoutproof.graph.operators.elementwise import binary, unary
from layoutproof.graph.operators.indexing import gather
from layoutproof.graph.operators.linear import dense, einsum, matmul
from layoutproof.graph.operators.moving import concat, expand, reshape, split, strided_slice, transpose
from layoutproof.graph.operators.normalise import batch_norm, response_norm, softmax
from layoutproof.graph.operators.pooling import avg_pool2d, max_pool2d
from layoutproof.graph.operators.reduction import reduce
from layoutproof.graph.operators.statistics import layer_norm, log_softmax

NO_HALO: Halo = (0, 0, 0, 0)


class GraphBuilder(Assembly):
    """A graph on its way: `g.input(...)`, `g.constant(...)`, an operator's method for each step, `g.build(outputs...)`.

    Every operator is a `PrimFunc` of the library; `g.call(function, ...)` takes any other. All methods raise LayoutproofError for shapes
    and attributes that do not fit.
    """

    def conv2d(
        self, data: Value, weight: Value, *, strides: Pair = (1, 1), halo: Halo = NO_HALO, dilation: Pair = (1, 1), groups: int = 1
    ) -> Value:
        """A convolution of NCHW by OIHW; `halo` is rows before, columns before, rows after, columns after."""
        return self.call(conv2d(data.shape, weight.shape, strides, halo, dilation, groups, str(data.dtype)), data, weight)[0]

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
        """The sum with a bias for each channel; of a bias with one axis, the one that is repeated is given by `[C, 1, ...]`."""
        return self.binary("add", data, bias)

    def relu(self, operand: Value) -> Value:
        """The larger of an element and zero."""
        return self.unary("relu", operand)

    def sigmoid(self, operand: Value) -> Value:
        """The logistic function of each element."""
        return self.unary("sigmoid", operand)

    def batch_norm(self, data: Value, gamma: Value, beta: Value, mean: Value, variance: Value, *, epsilon: float = 1e-5) -> Value:
        """Each channel scaled by its statistics."""
        return self.call(batch_norm(data.shape, epsilon, str(data.dtype)), data, gamma, beta, mean, variance)[0]

    def response_norm(self, data: Value, *, size: int, alpha: float, beta: float, bias: float) -> Value:
        """Each element scaled by the channels around it."""
        return self.call(response_norm(data.shape, size, alpha, beta, bias, str(data.dtype)), data)[0]

    def max_pool2d(self, data: Value, window: Pair, *, strides: Pair = (1, 1), halo: Halo = NO_HALO) -> Value:
        """The largest element of each window."""
        return self.call(max_pool2d(data.shape, window, strides, halo, str(data.dtype)), data)[0]

    def avg_pool2d(self, data: Value, window: Pair, *, strides: Pair = (1, 1), halo: Halo = NO_HALO, count_halo: bool = False) -> Value:
        """The mean of each window."""
        return self.call(avg_pool2d(data.shape, window, strides, halo, count_halo, str(data.dtype)), data)[0]

    def global_avg_pool2d(self, data: Value) -> Value:
        """The mean of each image, with axes of extent 1 left."""
        return self.reduce("mean", data, (2, 3), keep=True)

    def reduce(self, kind: str, data: Value, axes: Sequence[int], *, keep: bool = False) -> Value:
        """A reduction over some axes: `sum`, `mean`, `max`, `min`, `prod`, `l1`, `l2`, `sum_square`, `log_sum`, `log_sum_exp`."""
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
        func = einsum(equation, tuple(operand.shape for operand in operands), str(operands[0].dtype) if operands else "float32")
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

    def slice(self, data: Value, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int] | None = None) -> Value:
        """Every so many elements of a box."""
        apart = tuple(steps) if steps is not None else None
        return self.call(strided_slice(data.shape, tuple(starts), tuple(sizes), apart, str(data.dtype)), data)[0]
