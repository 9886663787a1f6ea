"""Numbers kept as integers with a scale and a zero, against ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.graph.nets import filled
from tests.importers.onnx.nodes import Array, Held, agree, calls, graph_from, one

from layoutproof.graph.model.graph_run import run_graph
from layoutproof.ir.diagnostic import LayoutproofError

X = filled(3, 4) * 4
S = np.abs(filled(3, seed=1)) + 0.05


def small(dtype: str, *shape: int) -> Array:
    """Integers of any size that the type has."""
    ends = np.iinfo(dtype)
    return np.random.default_rng(0).integers(ends.min, ends.max, size=shape, endpoint=True).astype(dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("axis", [None, 0, -2])
def test_there_and_back(dtype: str, axis: int | None) -> None:
    """One scale, or one for each place of an axis; what is too large is the largest."""
    scale = np.array(0.03, np.float32) if axis is None else S
    zero = small(dtype, *scale.shape)
    attributes = {} if axis is None else {"axis": axis}
    agree(one("QuantizeLinear", [X, Held(scale), Held(zero)], **attributes), X)
    kept = small(dtype, 3, 4)
    agree(one("DequantizeLinear", [kept, Held(scale), Held(zero)], **attributes), kept)


@pytest.mark.parametrize("kept", ["int16", "uint16"])
def test_more_bits_than_half_precision_has(kept: str) -> None:
    """Numbers of 16 bits and their zeros are not rounded to float16 before they are subtracted or added."""
    one_, zero = np.array(1, np.float16), np.array(3000 if kept == "int16" else 65535, kept)
    numbers = np.array([3001, 3000, 32767], kept)
    agree(one("DequantizeLinear", [numbers, Held(one_), Held(zero)]), numbers)
    assert calls(agree(one("DequantizeLinear", [Held(numbers), Held(one_), Held(zero)]))) == []
    x = np.array([3000, -60000, 60000, -1, 0.5], np.float16)
    agree(one("QuantizeLinear", [x, Held(one_), Held(np.array(1, kept))]), x)
    agree(one("QuantizeLinear", [x[:4], Held(one_), Held(zero)]), x[:4])


def test_halves_are_rounded_to_even() -> None:
    """As ONNX says; the zero is left out."""
    x = np.array([0.5, 1.5, 2.5, 3.5, -1.0, 300.0], np.float32)
    agree(one("QuantizeLinear", [x, Held(np.array(1, np.float32))]), x)
    assert calls(
        agree(one("DequantizeLinear", [small("int32", 4), Held(np.array(0.5, np.float32))]), small("int32", 4))
    ) == [
        "cast",
        "multiply",
    ]


def test_blocks() -> None:
    """A scale for each block of an axis."""
    x, scale = filled(4, 3), np.abs(filled(2, 3, seed=1)) + 0.1
    zero = small("int8", 2, 3)
    agree(one("QuantizeLinear", [x, Held(scale), Held(zero)], axis=0, block_size=2), x)
    kept = small("int8", 4, 3)
    agree(one("DequantizeLinear", [kept, Held(scale), Held(zero)], axis=0, block_size=2), kept)


def test_weights_that_are_kept_small() -> None:
    """Weights that stand in the model are the numbers that they stand for: the graph casts nothing."""
    assert (
        calls(agree(one("DequantizeLinear", [Held(small("int8", 3, 4)), Held(S), Held(small("int8", 3))], axis=0)))
        == []
    )


def test_scales_that_only_the_run_knows() -> None:
    """A scale and a zero found from the data, as ONNX defines it."""
    agree(one("DynamicQuantizeLinear", [X], results=3, opset=20), X)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (None, None),
        (np.array(3, np.uint8), np.array([-1], np.int8)),
        (np.array(200, np.uint8), np.array([1, -2, 3, 4, 5], np.int8)),
    ],
)
def test_products(first: Any, second: Any) -> None:
    """Products of bytes in larger integers, each side with a zero, or with one for each column."""
    a, b = small("uint8", 3, 4), small("int8", 4, 5)
    zeros = [Held(first), Held(second)] if first is not None else []
    agree(one("MatMulInteger", [a, b, *zeros]), a, b)


def test_products_with_a_zero_for_each_row() -> None:
    """Which the reference does not know."""
    a, b, zeros = small("uint8", 3, 4), small("int8", 4, 5), np.array([1, 200, 7], np.uint8)
    made = run_graph(graph_from(one("MatMulInteger", [a, b, Held(zeros)])), {"x0": a, "x1": b})[0]
    np.testing.assert_array_equal(made, (a.astype(np.int32) - zeros.astype(np.int32)[:, None]) @ b.astype(np.int32))


@pytest.mark.parametrize(
    ("operator", "operands", "attributes", "message"),
    [
        ("QuantizeLinear", [X, Held(S)], {"axis": 1}, "no number for each place of axis 1"),
        ("QuantizeLinear", [X, Held(S)], {"axis": 2}, "no axis 2"),
        ("QuantizeLinear", [X, Held(S[0]), Held(np.array(0, np.int32))], {}, "not as int32"),
        (
            "DequantizeLinear",
            [small("int8", 4, 3), Held(filled(3, 3))],
            {"axis": 0, "block_size": 2},
            "no number for each 2 of axis 0",
        ),
    ],
)
def test_what_does_not_fit_is_named(
    operator: str, operands: list[Any], attributes: dict[str, Any], message: str
) -> None:
    """Scales that do not go with the numbers are an error that names the node."""
    with pytest.raises(LayoutproofError, match=f"{operator} that makes y0: .*{message}"):
        graph_from(one(operator, operands, **attributes))
