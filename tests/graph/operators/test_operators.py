"""Every operator of the library computes what numpy says, on small arrays, by the reference interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import erf
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.graph.nets import filled

from layoutproof.graph import codes
from layoutproof.graph.model.graph_run import interpret
from layoutproof.graph.operators.convolution import Halo, Sliding, conv2d
from layoutproof.graph.operators.elementwise import BINARY, UNARY, binary, unary
from layoutproof.graph.operators.moving import concat, pad, reshape, split, strided_slice, transpose
from layoutproof.graph.operators.normalise import batch_norm, response_norm, softmax
from layoutproof.graph.operators.reduction import dense, matmul, reduce
from layoutproof.graph.operators.spatial import avg_pool2d, max_pool2d
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads

Array = NDArray[Any]


def close(func: PrimFunc, operands: Sequence[Array], wanted: Sequence[Array]) -> None:
    """Fail unless the function makes these arrays, rounding aside."""
    for found, expected in zip(interpret(func, operands), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)
        assert found.shape == expected.shape


def windows(data: Array, size: tuple[int, int], strides: tuple[int, int], halo: Halo, outside: float) -> Array:
    """All windows: N, C, Y, X, R, S."""
    padded = np.pad(data, ((0, 0), (0, 0), (halo[0], halo[2]), (halo[1], halo[3])), constant_values=outside)
    return np.lib.stride_tricks.sliding_window_view(padded, size, axis=(2, 3))[:, :, :: strides[0], :: strides[1]]


def convolved(data: Array, weight: Array, strides: tuple[int, int], halo: Halo, groups: int) -> Array:
    """A convolution, group by group."""
    parts = zip(np.split(data, groups, axis=1), np.split(weight, groups, axis=0), strict=True)
    size = (weight.shape[2], weight.shape[3])
    return np.concatenate(
        [np.einsum("ncyxrs,kcrs->nkyx", windows(d, size, strides, halo, 0.0), w) for d, w in parts], axis=1
    )


@pytest.mark.parametrize(
    ("data", "weight", "strides", "halo", "groups"),
    [
        ((1, 3, 6, 5), (4, 3, 3, 2), (1, 1), (0, 0, 0, 0), 1),
        ((2, 3, 6, 6), (4, 3, 3, 3), (2, 2), (1, 1, 1, 1), 1),
        ((1, 4, 5, 5), (6, 2, 3, 3), (1, 1), (1, 0, 0, 1), 2),
        ((1, 4, 5, 5), (4, 1, 3, 3), (2, 1), (1, 1, 1, 1), 4),
        ((1, 4, 5, 5), (8, 1, 3, 3), (1, 1), (0, 0, 0, 0), 4),
    ],
)
def test_convolutions(
    data: tuple[int, ...], weight: tuple[int, ...], strides: tuple[int, int], halo: Halo, groups: int
) -> None:
    """Convolutions with halo, strides and groups, and depthwise ones, are the sums of products that they say."""
    x, w = filled(*data), filled(*weight, seed=1)
    close(conv2d(data, weight, Sliding(strides, halo), groups), [x, w], [convolved(x, w, strides, halo, groups)])


def test_a_dilated_convolution() -> None:
    """Dilation takes every second element of a window."""
    x, w = filled(1, 2, 6, 6), filled(3, 2, 2, 2, seed=1)
    wanted = np.einsum("ncyxrs,kcrs->nkyx", windows(x, (3, 3), (1, 1), (0, 0, 0, 0), 0.0)[..., ::2, ::2], w)
    close(conv2d(x.shape, w.shape, Sliding(dilation=(2, 2))), [x, w], [wanted])


ONE: Mapping[str, Callable[[Array], Array]] = {
    "relu": lambda a: np.maximum(a, 0),
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "negative": np.negative,
    "erf": np.vectorize(erf),
    "floor": np.floor,
    "ceil": np.ceil,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "atan": np.arctan,
    "reciprocal": np.reciprocal,
    "square": np.square,
    "round": np.rint,
    "sign": np.sign,
}
TWO: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "not_below": np.maximum,
    "not_above": np.minimum,
    "leaky_multiply": lambda a, b: np.where(a < 0, a * b, a),
    "power": np.power,
}


@pytest.mark.parametrize("kind", list(UNARY))
def test_operators_of_one_operand(kind: str) -> None:
    """Each is its function of every element."""
    x = filled(2, 3)
    given = np.abs(x) + np.float32(0.5) if kind in ("log", "sqrt") else x
    close(unary(kind, (2, 3)), [given], [ONE[kind](given)])


@pytest.mark.parametrize("kind", list(BINARY))
@pytest.mark.parametrize(("first", "second"), [((2, 3), (2, 3)), ((2, 3, 2), (3, 1)), ((1, 3), (4, 1)), ((), (2,))])
def test_operators_of_two_operands(kind: str, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    """Each is its function of pairs of elements, with numpy's broadcasting."""
    a, b = filled(*first), filled(*second, seed=1)
    a = np.asarray(np.abs(a)) if kind == "power" else a
    close(binary(kind, first, second), [a, b], [TWO[kind](a, b)])


@pytest.mark.parametrize("halo", [(0, 0, 0, 0), (1, 1, 1, 1), (0, 0, 1, 1)])
def test_pooling(halo: Halo) -> None:
    """Largest elements and means of windows, the halo left out of both."""
    x = filled(1, 2, 7, 6)
    found = windows(x, (3, 2), (2, 1), halo, -np.inf)
    close(max_pool2d(x.shape, (3, 2), (2, 1), halo), [x], [found.max(axis=(-2, -1))])
    total = windows(x, (3, 2), (2, 1), halo, 0.0).sum(axis=(-2, -1))
    count = np.isfinite(found).sum(axis=(-2, -1))
    close(avg_pool2d(x.shape, (3, 2), (2, 1), halo), [x], [total / count])
    close(avg_pool2d(x.shape, (3, 2), (2, 1), halo, True), [x], [total / 6])


def test_products_of_matrices() -> None:
    """A product, and one with the transpose of the second."""
    a, b = filled(2, 3), filled(3, 4, seed=1)
    close(matmul((2, 3), (3, 4)), [a, b], [a @ b])
    close(dense((2, 3), (4, 3)), [a, np.ascontiguousarray(b.T)], [a @ b])


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axes", [(1,), (0, 2), (0, 1, 2), (-1,)])
@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min"])
def test_reductions(kind: str, axes: tuple[int, ...], keep: bool) -> None:
    """Sums, means and extremes over some axes, which go or stay."""
    x = filled(2, 3, 4)
    close(reduce(kind, x.shape, axes, keep), [x], [np.asarray(getattr(np, kind)(x, axis=axes, keepdims=keep))])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis: int) -> None:
    """Shares along any axis add up to one."""
    x = filled(2, 3, 4)
    raised = np.exp(x - x.max(axis=axis, keepdims=True))
    close(softmax(x.shape, axis), [x], [raised / raised.sum(axis=axis, keepdims=True)])


def test_normalisations() -> None:
    """Batch normalisation by its statistics, response normalisation by the channels around."""
    x = filled(1, 5, 2, 2)
    g, b, m, v = filled(5), filled(5, seed=1), filled(5, seed=2), np.abs(filled(5, seed=3)) + np.float32(0.5)
    over = (slice(None), None, None)
    close(batch_norm(x.shape, 1e-3), [x, g, b, m, v], [(x - m[over]) / np.sqrt(v[over] + 1e-3) * g[over] + b[over]])
    squares = np.stack([(x[:, max(0, c - 1) : c + 2] ** 2).sum(axis=1) for c in range(5)], axis=1)
    close(response_norm(x.shape, 3, 0.1, 0.75, 2.0), [x], [x / (2.0 + 0.1 / 3 * squares) ** 0.75])


@pytest.mark.parametrize(
    ("shape", "new"),
    [
        ((2, 12), (2, 3, 4)),
        ((2, 3, 4), (6, 4)),
        ((4, 6), (3, 8)),
        ((1, 8, 1, 1), (1, 8)),
        ((6,), (1, 6, 1)),
        ((1, 1), ()),
        ((2, 3), (3, 2)),
    ],
)
def test_reshape(shape: tuple[int, ...], new: tuple[int, ...]) -> None:
    """Elements keep their row-major order."""
    x = filled(*shape)
    close(reshape(shape, new), [x], [x.reshape(new)])


def test_parts_and_orders() -> None:
    """Transposing, putting together, taking apart and slicing move elements as numpy does."""
    x, y = filled(2, 3, 4), filled(2, 5, 4, seed=1)
    close(transpose(x.shape, (2, 0, 1)), [x], [x.transpose(2, 0, 1)])
    whole = np.concatenate([x, y], axis=1)
    close(concat((x.shape, y.shape), 1), [x, y], [whole])
    close(split(whole.shape, (3, 5), 1), [whole], [x, y])
    close(strided_slice(y.shape, (0, 4, 1), (2, 3, 2), (1, -2, 2)), [y], [y[:, 4::-2, 1::2]])


@pytest.mark.parametrize(
    "make",
    [
        lambda: conv2d((1, 3, 4, 4), (2, 4, 3, 3)),
        lambda: conv2d((1, 3, 2, 2), (2, 3, 3, 3)),
        lambda: unary("cube", (2,)),
        lambda: binary("add", (2,), (3,)),
        lambda: max_pool2d((1, 1, 4, 4), (2, 2), (1, 1), (2, 2, 0, 0)),
        lambda: matmul((2, 3), (2, 3)),
        lambda: dense((2, 3), (3, 2)),
        lambda: reduce("sum", (2, 3), (1, -1)),
        lambda: reduce("product", (2, 3), (1,)),
        lambda: softmax((2, 3), 2),
        lambda: reshape((2, 3), (4,)),
        lambda: transpose((2, 3), (0, 0)),
        lambda: concat(((2, 3), (3, 4)), 0),
        lambda: split((4,), (1, 2), 0),
        lambda: strided_slice((4,), (2,), (3,)),
        lambda: batch_norm((3,)),
        lambda: response_norm((3,), 3, 0.1, 0.5, 1.0),
    ],
)
def test_what_does_not_fit_is_refused(make: Callable[[], PrimFunc]) -> None:
    """Shapes and attributes that do not fit are an error that names the operator."""
    with pytest.raises(LayoutproofError, match=codes.OPERATOR_ARGUMENT):
        make()


def test_operators_are_made_once() -> None:
    """The same shapes and attributes give the same function, which is so much as proved once."""
    assert conv2d((1, 3, 4, 4), (2, 3, 3, 3)) is conv2d((1, 3, 4, 4), (2, 3, 3, 3))


def test_operators_read_back() -> None:
    """An operator's text reads back as the operator."""
    func = avg_pool2d((1, 4, 7, 7), (3, 3), (2, 2), (1, 1, 1, 1))
    assert loads(print_func(func)) == func


def test_zeros_of_both_signs_are_two_numbers() -> None:
    """A function that was made with 0.0 is not given out for -0.0."""
    x = np.ones(2, np.float32)
    for zero in (0.0, -0.0):
        around = interpret(pad((2,), (1,), (1,), zero), [x])[0]
        below = interpret(unary("clip", (2,), "float32", (-1.0, zero)), [x])[0]
        assert (np.signbit([around[0], below[0]]) == np.signbit(zero)).all()
        assert pad((2,), (1,), (1,), zero) is pad((2,), (1,), (1,), zero)
