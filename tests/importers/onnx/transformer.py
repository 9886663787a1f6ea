"""A block of a transformer as exporters write it: attention of several heads, two normalisations, and a gelu between
two layers.

The batch is open; heads are taken apart and put together by shapes that are computed in the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from layoutproof.graph.model.graph import Array


class Written:
    """A model on its way: nodes and arrays, each under a name of its own."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.arrays: list[onnx.TensorProto] = []

    def node(self, operator: str, operands: Sequence[str], **attributes: Any) -> str:
        """A node; the name of what it makes."""
        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(operands), [name], name=f"/block/{name}", **attributes))
        return name

    def held(self, array: Array) -> str:
        """An array that stands in the model."""
        name = f"w_{len(self.arrays)}"
        self.arrays.append(numpy_helper.from_array(array, name))
        return name

    def number(self, value: float) -> str:
        """One number."""
        return self.held(np.array(value, np.float32))

    def integers(self, *values: int) -> str:
        """A list of integers."""
        return self.held(np.array(values, np.int64))

    def drawn(self, *shape: int, around: float = 0.0) -> str:
        """Weights that keep the size of what they are multiplied with."""
        return self.held((around + self.random.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32))

    def linear(self, x: str, rows: int, columns: int) -> str:
        """A layer: a product with weights, and a bias."""
        return self.node("Add", [self.node("MatMul", [x, self.drawn(rows, columns)]), self.drawn(columns)])

    def norm(self, x: str, width: int, opset: int) -> str:
        """Layer normalisation; before version 17 by its parts."""
        scale, bias = self.drawn(width, around=1.0), self.drawn(width)
        if opset >= 17:
            return self.node("LayerNormalization", [x, scale, bias], axis=-1)
        apart = self.node("Sub", [x, self.node("ReduceMean", [x], axes=[-1])])
        squares = self.node("ReduceMean", [self.node("Pow", [apart, self.number(2)])], axes=[-1])
        root = self.node("Sqrt", [self.node("Add", [squares, self.number(1e-5)])])
        return self.node("Add", [self.node("Mul", [self.node("Div", [apart, root]), scale]), bias])

    def gelu(self, x: str) -> str:
        """The gelu by its parts."""
        error = self.node("Add", [self.node("Erf", [self.node("Div", [x, self.number(2**0.5)])]), self.number(1)])
        return self.node("Mul", [self.node("Mul", [x, error]), self.number(0.5)])

    def attention(self, x: str, width: int, heads: int) -> str:
        """Attention of several heads, whose shapes are computed from that of `x`."""
        shape, axis = self.node("Shape", [x]), self.integers(0)
        sizes = [self.node("Unsqueeze", [self.node("Gather", [shape, self.held(np.array(k))]), axis]) for k in (0, 1)]
        apart = self.node("Concat", [*sizes, self.integers(heads), self.integers(-1)], axis=0)
        together = self.node("Concat", [*sizes, self.integers(width)], axis=0)
        query, key, value = (
            self.node("Transpose", [self.node("Reshape", [self.linear(x, width, width), apart])], perm=[0, 2, 1, 3])
            for _ in range(3)
        )
        scores = self.node("MatMul", [query, self.node("Transpose", [key], perm=[0, 1, 3, 2])])
        shares = self.node("Softmax", [self.node("Div", [scores, self.number((width // heads) ** 0.5)])], axis=-1)
        seen = self.node("Transpose", [self.node("MatMul", [shares, value])], perm=[0, 2, 1, 3])
        return self.linear(self.node("Reshape", [seen, together]), width, width)


def transformer_block(
    *, width: int = 16, heads: int = 2, hidden: int = 32, length: int = 4, opset: int = 17
) -> onnx.ModelProto:
    """The block; its input `x` is `[batch, length, width]`."""
    made = Written()
    attended = made.node("Add", ["x", made.attention(made.norm("x", width, opset), width, heads)])
    layer = made.gelu(made.linear(made.norm(attended, width, opset), width, hidden))
    made.node("Add", [attended, made.linear(layer, hidden, width)])
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", length, width])
        for name in ("x", made.nodes[-1].output[0])
    ]
    graph = helper.make_graph(made.nodes, "block", ends[:1], ends[1:], made.arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
