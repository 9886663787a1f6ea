"""The nine networks inside the package `onnx`, with random weights, which the files leave out.

Filters are scaled by the number of their summands, so that values neither vanish nor grow; additions to a shortcut are
small, or the softmax would give everything to one class. Variances are positive. One seed gives the graph here and the
session of onnxruntime the same weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

NETWORKS = (
    "squeezenet",
    "resnet50",
    "shufflenet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "vgg19",
    "zfnet512",
    "bvlc_alexnet",
)

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
MADE = "ConstantOfShape"
GAMMA, VARIANCE = 1, 4
"""The places of a batch normalisation's operands that hold factors around 1."""
ADDED = 0.3
"""The factor on what is added to something else."""


def network(name: str, seed: int = 0) -> Any:
    """The `onnx.ModelProto` of a network, each `ConstantOfShape` replaced by an array."""
    proto = onnx.load(str(FOLDER / f"light_{name}.onnx"))
    shapes = {item.name: numpy_helper.to_array(item) for item in proto.graph.initializer}
    uses = {
        operand: (node.op_type, place)
        for node in reversed(proto.graph.node)
        for place, operand in enumerate(node.input)
    }
    added = {operand for node in proto.graph.node if node.op_type in ("Add", "Sum") for operand in node.input}
    small = {
        node.input[GAMMA]
        for node in proto.graph.node
        if node.op_type == "BatchNormalization" and node.output[0] in added
    }
    random = np.random.default_rng(seed)
    kept = []
    for node in proto.graph.node:
        if node.op_type == MADE:
            extents = [int(extent) for extent in shapes[node.input[0]]]
            weights = _weights(random, uses.get(node.output[0], ("", 0)), extents)
            weights *= np.float32(ADDED if node.output[0] in small else 1)
            proto.graph.initializer.append(numpy_helper.from_array(weights, node.output[0]))
        else:
            kept.append(node)
    del proto.graph.node[:]
    proto.graph.node.extend(kept)
    return proto


def _weights(random: np.random.Generator, use: tuple[str, int], extents: Sequence[int]) -> NDArray[np.float32]:
    operator, place = use
    if operator == "BatchNormalization" and place == VARIANCE:
        return random.uniform(0.5, 1.5, extents).astype(np.float32)
    if operator == "BatchNormalization" and place == GAMMA:
        return random.uniform(0.8, 1.2, extents).astype(np.float32)
    # Half of what a rectifier lets through is zero; behind depthwise filters there is none.
    scale = {4: np.sqrt((1 if extents[1:2] == [1] else 2) / np.prod(extents[1:])), 2: np.sqrt(1 / extents[-1])}.get(
        len(extents), 0.1
    )
    weights: NDArray[np.float64] = random.normal(size=extents) * scale
    return weights.astype(np.float32)
