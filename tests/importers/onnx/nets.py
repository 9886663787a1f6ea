"""Small networks as exporters write them: the blocks of mobile, segmenting, detecting and one-dimensional networks,
with random weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]


class Net:
    """A model on its way: `add` adds a node and gives its result's name, weights are random."""

    def __init__(self, shape: Sequence[int], opset: int = 18, seed: int = 0) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.arrays: list[onnx.TensorProto] = []
        self.opset, self.shape = opset, tuple(shape)
        self._random = np.random.default_rng(seed)

    def add(self, operator: str, *operands: str, **attributes: Any) -> str:
        """A node with one result."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(operator, list(operands), [name], name=f"{operator}_{len(self.nodes)}", **attributes)
        )
        return name

    def array(self, value: Any, dtype: type[np.generic] | None = None) -> str:
        """An array that stands in the model."""
        name = f"w{len(self.arrays)}"
        self.arrays.append(numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def weight(self, *shape: int) -> str:
        """Random weights, so small that sums of them stay near one."""
        fan = max(1, int(np.prod(shape[1:])))
        return self.array((self._random.normal(size=shape) / np.sqrt(fan)).astype(np.float32))

    def conv(
        self,
        data: str,
        filters: int,
        channels: int,
        size: int = 1,
        *,
        bias: bool = True,
        rank: int = 2,
        **attributes: Any,
    ) -> str:
        """A convolution that keeps the places, strides aside."""
        operands = [data, self.weight(filters, channels // attributes.get("group", 1), *(size,) * rank)]
        operands += [self.weight(filters)] if bias else []
        given = {"kernel_shape": [size] * rank, "pads": [size // 2] * (2 * rank), **attributes}
        return self.add("Conv", *operands, **given)

    def norm(self, data: str, channels: int) -> str:
        """A batch normalisation."""
        rows = [self._random.uniform(0.5, 1.5, size=channels).astype(np.float32) for _ in range(4)]
        return self.add("BatchNormalization", data, *(self.array(row) for row in rows), epsilon=1e-3)

    def build(self, *outputs: str) -> onnx.ModelProto:
        """The model."""
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * len(self.shape)) for name in outputs]
        graph = helper.make_graph(self.nodes, "net", [given], made, self.arrays)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


def inverted_residual() -> onnx.ModelProto:
    """Mobile networks, second version: expand, depthwise, project, with clipping at six, and what went in added."""
    net = Net((1, 8, 8, 8))
    low, high = net.array(0.0, np.float32), net.array(6.0, np.float32)
    start = net.add("Clip", net.norm(net.conv("x", 8, 8, 3, bias=False), 8), low, high)
    wide = net.add("Clip", net.norm(net.conv(start, 24, 8, bias=False), 24), low, high)
    deep = net.add("Clip", net.norm(net.conv(wide, 24, 24, 3, bias=False, group=24), 24), low, high)
    added = net.add("Add", start, net.norm(net.conv(deep, 8, 24, bias=False), 8))
    return net.build(net.conv(added, 8, 8))


def squeeze_excite() -> onnx.ModelProto:
    """Mobile networks, third version: hard swish, and channels scaled by what their means say."""
    net = Net((1, 8, 8, 8))
    wide = net.add("HardSwish", net.norm(net.conv("x", 16, 8, bias=False), 16))
    deep = net.add("HardSwish", net.conv(wide, 16, 16, 5, group=16, strides=[2, 2]))
    mean = net.add("GlobalAveragePool", deep)
    inner = net.add("Relu", net.conv(mean, 8, 16))
    scale = net.add("HardSigmoid", net.conv(inner, 16, 8), alpha=1 / 6)
    return net.build(net.conv(net.add("Mul", deep, scale), 8, 16))


def unet(up: str) -> onnx.ModelProto:
    """Down and up again, with what was on the way down put beside; `up` is a transposed convolution, or a nearest or
    linear resize.
    """
    net = Net((1, 4, 8, 8))
    first = net.add("Relu", net.conv("x", 8, 4, 3))
    small = net.add("MaxPool", first, kernel_shape=[2, 2], strides=[2, 2])
    deep = net.add("LeakyRelu", net.conv(small, 16, 8, 3), alpha=0.1)
    if up == "ConvTranspose":
        large = net.add(
            "ConvTranspose", deep, net.weight(16, 8, 2, 2), net.weight(8), kernel_shape=[2, 2], strides=[2, 2]
        )
    else:
        half = "asymmetric" if up == "nearest" else "half_pixel"
        scales = net.array([1, 1, 2, 2], np.float32)
        rounding = {"nearest_mode": "floor"} if up == "nearest" else {}
        wide = net.add("Resize", deep, "", scales, mode=up, coordinate_transformation_mode=half, **rounding)
        large = net.conv(wide, 8, 16)
    both = net.add("Concat", first, large, axis=1)
    last = net.add("InstanceNormalization", net.conv(both, 8, 16, 3), net.weight(8), net.weight(8))
    return net.build(net.conv(net.add("PRelu", last, net.weight(8, 1, 1)), 4, 8))


def one_dimensional() -> onnx.ModelProto:
    """A network over a signal: dilated convolutions, group normalisation, poolings."""
    net = Net((2, 4, 24), opset=21)
    start = net.add("Gelu", net.conv("x", 8, 4, 3, rank=1))
    wide = net.add(
        "GroupNormalization",
        net.conv(start, 8, 8, 3, rank=1, dilations=[2], pads=[2, 2]),
        net.weight(8),
        net.weight(8),
        num_groups=2,
    )
    pooled = net.add("MaxPool", net.add("Mish", wide), kernel_shape=[3], strides=[2], ceil_mode=1)
    mean = net.add("AveragePool", pooled, kernel_shape=[2], strides=[2], auto_pad="SAME_UPPER")
    return net.build(net.conv(mean, 8, 8, rank=1, group=2))


def detecting() -> onnx.ModelProto:
    """Parts of a detecting network: sigmoid times what goes in, poolings of several sizes put beside each other,
    channels split.
    """
    net = Net((1, 8, 8, 8))
    first = net.conv("x", 16, 8, 3, strides=[2, 2])
    first = net.add("Mul", first, net.add("Sigmoid", first))
    left, right = net.conv(first, 8, 16), net.conv(first, 8, 16)
    pools = [
        net.add("MaxPool", left, kernel_shape=[size, size], pads=[size // 2] * 4, strides=[1, 1]) for size in (3, 5)
    ]
    both = net.add("Concat", left, *pools, right, axis=1)
    up = net.add("Upsample", net.conv(both, 8, 32), net.array([1, 1, 2, 2], np.float32), mode="nearest")
    net.opset = 9
    return net.build(net.conv(net.add("Softplus", up), 4, 8))


def shuffled() -> onnx.ModelProto:
    """A network that makes images larger by moving channels into places, and back."""
    net = Net((1, 4, 4, 4))
    wide = net.add("Elu", net.conv("x", 32, 4, 3))
    large = net.add("DepthToSpace", wide, blocksize=2, mode="DCR")
    done = net.add("Tanh", net.conv(large, 8, 8, 3))
    return net.build(net.conv(net.add("SpaceToDepth", done, blocksize=2), 8, 32))


NETS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "inverted residual": inverted_residual,
    "squeeze and excite": squeeze_excite,
    "unet by transposed convolutions": lambda: unet("ConvTranspose"),
    "unet by nearest neighbours": lambda: unet("nearest"),
    "unet by lines": lambda: unet("linear"),
    "one-dimensional": one_dimensional,
    "detecting": detecting,
    "shuffled": shuffled,
}
