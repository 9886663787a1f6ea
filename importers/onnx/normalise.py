"""Normalisations by channels: how ONNX's operators are said in the library."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from layoutproof.graph.operators.elementwise import pointwise, unary
from layoutproof.graph.operators.normalise import batch_norm, group_mean, instance_norm
from layoutproof.graph.operators.page import number
from layoutproof.importers.onnx.applying import called, entered, same_type
from layoutproof.importers.onnx.model import ModelNode
from layoutproof.importers.onnx.translate import Made, Translate, Translation, only, require


def _batch_normalization(into: Translation, node: ModelNode) -> Made:
    given = only(node, epsilon=1e-5, momentum=0.9, spatial=1, training_mode=0, is_test=0, consumed_inputs=())
    # Up to version 6 an attribute says that the model is not trained, up to version 13 the number of results does.
    plain = given["training_mode"] == 0 and (node.opset >= 7 or given["is_test"] == 1) and len([name for name in node.results if name]) == 1
    require(plain, node, "only inference is translated")
    data, *rest = node.operands
    shape, dtype, epsilon = into.shape(data), same_type(into, node, node.operands, "f"), _epsilon(given["epsilon"])
    require(len(shape) >= 2, node, f"an array of {len(shape)} axes has no channels")
    wanted = (shape[1],) if given["spatial"] == 1 else shape[1:]
    wrong = next((name for name in rest if into.shape(name) != wanted), None)
    require(wrong is None, node, f"{wrong} has the shape {list(wanted)}, not {list(into.shape(wrong)) if wrong is not None else ''}")
    if given["spatial"] == 1:
        return (called(into, batch_norm(shape, epsilon, dtype), *node.operands),)
    text = f"({{X}} - {{M}}) / T.sqrt({{V}} + {number(epsilon, dtype)}) * {{G}} + {{B}}"
    func = pointwise("batch_norm", {"X": shape, **dict.fromkeys("GBMV", wanted)}, text, dtype=dtype)
    return (called(into, func, *node.operands),)


def _instance_normalization(into: Translation, node: ModelNode) -> Made:
    given = only(node, epsilon=1e-5, consumed_inputs=())
    shape, dtype = into.shape(node.operands[0]), same_type(into, node, node.operands, "f")
    _check_channels(into, node, shape, shape[1:2])
    return (called(into, instance_norm(shape, _epsilon(given["epsilon"]), dtype), *node.operands),)


def _group_normalization(into: Translation, node: ModelNode) -> Made:
    """Several calls, so that a layout of channels flows through those over whole images; the means of groups are small."""
    given = only(node, epsilon=1e-5, num_groups=None, stash_type=1)
    shape, dtype, groups = into.shape(node.operands[0]), same_type(into, node, node.operands, "f"), given["num_groups"]
    # The statistics of narrower floats are made in the type that is given, which the library does not do.
    require(dtype in ("float32", "float64"), node, f"of float32 or float64 it is translated, not of {dtype}")
    require(given["stash_type"] == 1, node, "statistics are made in float32")
    require(
        groups >= 1 and len(shape) >= 3 and shape[1] % groups == 0, node, f"an array of {list(shape)} has no {groups} groups of channels"
    )
    # Up to version 20 there is one factor for each group, from then on for each channel.
    each = shape[1] if node.opset >= 21 else groups
    _check_channels(into, node, shape, (each,))
    data, places = entered(into, node.operands[0]), tuple(range(2, len(shape)))
    single = (1, shape[1], *(1,) * len(places))
    build = into.builder
    whole = group_mean((shape[0], *single[1:]), groups, dtype)
    mean = build.call(whole, build.mean(data, places, keep=True))[0]
    apart = build.binary("subtract", data, mean)
    squares = build.call(unary("square", shape, dtype), apart)[0]
    variance = build.call(whole, build.mean(squares, places, keep=True))[0]
    factors = []
    for name in node.operands[1:]:
        if each != shape[1] and into.is_known(name):
            found = np.repeat(into.array(node, name), shape[1] // groups).reshape(single[1:])
            factors.append(build.constant(found, "factor"))
        elif each != shape[1]:
            columns = build.reshape(into.value(name), (groups, 1))
            ones = build.constant(np.ones((groups, shape[1] // groups), dtype=dtype), "ones")
            factors.append(build.reshape(build.multiply(columns, ones), single[1:]))
        else:
            factors.append(into.value(name, single[1:]))
    text = f"{{X}} / T.sqrt({{V}} + {number(_epsilon(given['epsilon']), dtype)}) * {{G}} + {{B}}"
    func = pointwise("group_norm", {"X": shape, "V": variance.shape, "G": single[1:], "B": single[1:]}, text, dtype=dtype)
    return build.call(func, apart, variance, *factors)


def _lrn(into: Translation, node: ModelNode) -> Made:
    given = only(node, size=1, alpha=1e-4, beta=0.75, bias=1.0)
    same_type(into, node, node.operands, "f")
    shape = into.shape(node.operands[0])
    require(len(shape) >= 2 and given["size"] >= 1, node, f"an array of {len(shape)} axes has no {given['size']} channels")
    data = into.value(node.operands[0])
    return (into.builder.response_norm(data, size=given["size"], alpha=given["alpha"], beta=given["beta"], bias=given["bias"]),)


def _check_channels(into: Translation, node: ModelNode, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Raise LayoutproofError unless there are channels of several elements, and the scale and the bias have the shape that is wanted."""
    require(len(shape) >= 3, node, f"an array of {len(shape)} axes is no image")
    for name in node.operands[1:]:
        require(into.shape(name) == wanted, node, f"{name} has the shape {list(wanted)}, not {list(into.shape(name))}")


def _epsilon(given: float) -> float:
    """As a model's file has it."""
    return float(np.float32(given))


NORMALISE: Mapping[str, Translate] = {
    "BatchNormalization": _batch_normalization,
    "GroupNormalization": _group_normalization,
    "InstanceNormalization": _instance_normalization,
    "LRN": _lrn,
}
