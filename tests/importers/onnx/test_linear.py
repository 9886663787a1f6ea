"""Products of matrices, shares and normalisations of models, against ONNX's reference, over shapes and attributes drawn
at random.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.graph.nets import filled
from tests.importers.onnx.nodes import Array, Held, agree, calls, graph_from, one
from tests.shares import one_in

from layoutproof.graph.model.graph import Graph
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.ir.diagnostic import LayoutproofError

SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_gemm(seed: int) -> None:
    """Transposed operands, factors, and a last operand of each shape that is repeated to the product."""
    random = np.random.default_rng(seed)
    rows, length, columns = (int(k) for k in random.integers(1, 5, size=3))
    turned = [int(k) for k in random.integers(2, size=2)]
    first = filled(*((length, rows) if turned[0] else (rows, length)), seed=seed)
    second = filled(*((columns, length) if turned[1] else (length, columns)), seed=seed + 1)
    shapes: list[tuple[int, ...] | None] = [None, (), (1,), (columns,), (1, columns), (rows, 1), (rows, columns)]
    shape = shapes[seed % len(shapes)]
    operands = [first, second, *([filled(*shape, seed=seed + 2)] if shape is not None else [])]
    alpha, beta = (float(k) for k in random.choice([1.0, 0.5, -2.0, 0.0], size=2))
    proto = one("Gemm", operands, transA=turned[0], transB=turned[1], alpha=alpha, beta=beta)
    agree(proto, *operands)


@one_in(10)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((3, 4), (4, 5)),
        ((4,), (4,)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((2, 3, 4), (4,)),
        ((4,), (2, 4, 5)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((1, 3, 4), (2, 4, 2)),
        ((3, 4), (2, 2, 4, 1)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_matmul(first: tuple[int, ...], second: tuple[int, ...], dtype: str) -> None:
    """Matrices, rows and columns, many at once, repeated as numpy has it."""
    operands = [(filled(*shape) * 3).astype(dtype) for shape in (first, second)]
    agree(one("MatMul", operands), *operands)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("ij", [(3, 4)]),
        ("ba", [(3, 4)]),
        ("...ij,...jk", [(2, 3, 4), (4, 5)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("i,j -> ij", [(3,), (4,)]),
        ("i,i", [(4,), (4,)]),
        ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("bhqk,bhkd->bqhd", [(2, 2, 3, 5), (2, 2, 5, 4)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
        ("ij->", [(3, 4)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    """A sum of products, with and without a result that is written down, with axes that `...` stands for."""
    operands = [filled(*shape, seed=k) for k, shape in enumerate(shapes)]
    graph = agree(one("Einsum", operands, equation=equation), *operands)
    assert calls(graph) == ["einsum"]


@pytest.mark.parametrize("equation", ["ij,jk->iq", "ij,jk->ii", "ijk,jk", "ij", "i1,jk->ik", "ij,kj->ik->", "ij,jj->i"])
def test_equations_that_do_not_fit(equation: str) -> None:
    """An equation with letters that there are not, or for other operands, is an error that names the node."""
    operands = [filled(2, 3), filled(3, 4)]
    with pytest.raises(LayoutproofError, match="Einsum that makes y0: einsum: "):
        graph_from(one("Einsum", operands, equation=equation))


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
@pytest.mark.parametrize("opset", [9, 13])
def test_shares(operator: str, axis: int, opset: int) -> None:
    """Shares along an axis; up to version 12 of all axes from one on, which the reference does not know."""
    x = filled(2, 3, 4)
    if opset == 13:
        agree(one(operator, [x], opset=opset, axis=axis), x)
        return
    flat = x.reshape(int(np.prod(x.shape[: axis % 3])), -1)
    old = graph_from(one(operator, [x], opset=opset, axis=axis))
    new = graph_from(one(operator, [flat], opset=13, axis=1))
    np.testing.assert_array_equal(ran(old, x), ran(new, flat).reshape(x.shape))


def ran(graph: Graph, *inputs: Array) -> Array:
    """The one output of a graph."""
    return run_graph(graph, {value.name: array for value, array in zip(graph.inputs, inputs, strict=True)})[0]


def test_shares_where_much_is_masked() -> None:
    """A row with elements at minus infinity gives them nothing; one with nothing else has no shares."""
    x = filled(3, 4)
    x[0, 1:3] = x[1, :] = -np.inf
    with np.errstate(invalid="ignore"):
        agree(one("Softmax", [x], axis=-1), x)


@pytest.mark.parametrize("axis", [-1, 1, 0, -2])
@pytest.mark.parametrize("bias", [True, False])
def test_layer_normalization(axis: int, bias: bool) -> None:
    """One function of the library for all axes from one on."""
    x = filled(2, 3, 4)
    others = [Held(filled(*x.shape[axis:], seed=k)) for k in range(1 + bias)]
    assert calls(agree(one("LayerNormalization", [x, *others], axis=axis, epsilon=1e-3), x)) == ["layer_norm"]


def test_layer_normalization_as_onnx_defines_it() -> None:
    """With the mean as a second result, and for halves, it is what ONNX's own definition makes of it."""
    x, scale = filled(2, 3, 4), Held(filled(4, seed=1))
    assert len(calls(agree(one("LayerNormalization", [x, scale], results=3), x))) > 5
    half = x.astype(np.float16)
    agree(one("LayerNormalization", [half, Held(scale.array.astype(np.float16))]), half, rtol=4e-3, atol=4e-3)


def test_rms_normalization() -> None:
    """Root mean squares, of the newest versions."""
    x = filled(2, 3, 4)
    assert calls(agree(one("RMSNormalization", [x, Held(filled(4, seed=1))], opset=23), x)) == ["rms_norm"]


@pytest.mark.parametrize(
    ("operator", "operands", "attributes", "message"),
    [
        ("Gemm", [filled(2, 3), filled(4, 5)], {}, "gemm|matmul"),
        ("Gemm", [filled(2, 3), filled(3, 5), filled(2, 2, 5)], {}, "the last operand"),
        ("Gemm", [filled(2, 3, 4), filled(3, 5)], {}, "no two matrices"),
        ("MatMul", [filled(2, 3), filled(2, 3)], {}, "no product"),
        ("MatMul", [filled(2, 2, 3), filled(3, 3, 3)], {}, "do not go together"),
        ("MatMul", [np.array(1, np.float32), filled(3)], {}, "no product"),
        ("Softmax", [filled(2, 3)], {"axis": 2}, "no axis 2"),
        ("LayerNormalization", [filled(2, 3), filled(2)], {}, "not repeated|do not go together"),
        (
            "MaxPool",
            [filled(1, 1, 6)],
            {"kernel_shape": [3], "strides": [2], "auto_pad": "VALID", "ceil_mode": 1},
            "ceil_mode is not translated for auto_pad VALID",
        ),
        (
            "Gemm",
            [filled(2, 3).astype(np.int32), filled(3, 4).astype(np.int32)],
            {"alpha": 0.5},
            "not multiplied by 0.5",
        ),
    ],
)
def test_what_does_not_fit_is_named(
    operator: str, operands: list[Array], attributes: dict[str, Any], message: str
) -> None:
    """Shapes and attributes that do not go together are an error that names the node."""
    with pytest.raises(LayoutproofError, match=f"{operator} that makes y0: .*({message})"):
        graph_from(one(operator, operands, **attributes))
