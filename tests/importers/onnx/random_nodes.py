"""Models of one node each with random attributes and shapes, for the operators that have many of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Random:
    """Random choices, each with the same chance."""

    generator: np.random.Generator

    def among(self, *choices: Any) -> Any:
        """One of some things."""
        return choices[int(self.generator.integers(len(choices)))]

    def number(self, least: int, most: int) -> int:
        """A whole number, both ends included."""
        return int(self.generator.integers(least, most + 1))

    def numbers(self, count: int, least: int, most: int) -> list[int]:
        """Some whole numbers."""
        return [self.number(least, most) for _ in range(count)]

    def array(self, *shape: int) -> Array:
        """An array of small numbers."""
        return self.generator.normal(size=shape).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Node:
    """An operator, its operands (None is left out; those in `held` stand in the model), its attributes, the version."""

    operator: str
    operands: Sequence[Array | None]
    attributes: Mapping[str, Any]
    opset: int = 18
    held: frozenset[int] = frozenset()

    def model(self) -> onnx.ModelProto:
        """The model of this node."""
        names = ["" if array is None else f"x{k}" for k, array in enumerate(self.operands)]
        given = [
            helper.make_tensor_value_info(f"x{k}", helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for k, array in enumerate(self.operands)
            if array is not None and k not in self.held
        ]
        held = [
            numpy_helper.from_array(array, f"x{k}")
            for k, array in enumerate(self.operands)
            if array is not None and k in self.held
        ]
        graph = helper.make_graph(
            [helper.make_node(self.operator, names, ["y"], **self.attributes)],
            "one",
            given,
            [helper.make_empty_tensor_value_info("y")],
            held,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)

    def inputs(self) -> dict[str, Array]:
        """What the model is given when it runs."""
        return {f"x{k}": array for k, array in enumerate(self.operands) if array is not None and k not in self.held}


def _windows(random: Random, rank: int, sizes: Sequence[int], *, dilated: bool = True) -> dict[str, Any]:
    """Windows that fit, with all ways to say what lies around them."""
    window = random.numbers(rank, 1, 3)
    found: dict[str, Any] = {"kernel_shape": window}
    if random.among(True, False):
        found["strides"] = random.numbers(rank, 1, 3)
    if dilated and random.among(True, False, False):
        found["dilations"] = [random.number(1, 2) for _ in window]
    how = random.among("pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID", None)
    if how == "pads":
        found["pads"] = [random.number(0, size - 1) for size in (*window, *window)]
    elif how is not None:
        found["auto_pad"] = how
    return found


def _agreed(given: dict[str, Any]) -> dict[str, Any]:
    """Windows without what runtimes do not do alike: as many as strides ask for, with gaps or so small that elements
    are left out.
    """
    if str(given.get("auto_pad")).startswith("SAME"):
        given.pop("dilations", None)
        given["strides"] = [
            min(pair) for pair in zip(given["kernel_shape"], given.get("strides", given["kernel_shape"]), strict=True)
        ]
    return given


def conv(random: Random) -> Node:
    """A convolution over one to three axes, with groups."""
    rank = random.number(1, 3)
    groups, inner, each = random.number(1, 3), random.number(1, 2), random.number(1, 2)
    sizes = random.numbers(rank, 5, 7 if rank < 3 else 5)
    given = _windows(random, rank, sizes)
    weight = random.array(groups * each, inner, *given["kernel_shape"])
    bias = random.among(None, random.array(groups * each))
    if random.among(True, False):
        del given["kernel_shape"]
    operands = [
        random.array(random.number(1, 2), groups * inner, *sizes),
        weight,
        *([bias] if bias is not None else []),
    ]
    return Node("Conv", operands, {**given, "group": groups}, random.among(1, 11, 18))


def conv_transpose(random: Random) -> Node:
    """A transposed convolution over one to three axes, with groups and all ways to say the size of the result."""
    rank = random.number(1, 3)
    groups, inner, each = random.number(1, 2), random.number(1, 2), random.number(1, 2)
    window, strides = random.numbers(rank, 1, 3), random.numbers(rank, 1, 3)
    given: dict[str, Any] = {"kernel_shape": window, "strides": strides, "group": groups}
    if random.among(True, False):
        given["dilations"] = random.numbers(rank, 1, 2)
    how = random.among("pads", "pads", None, "SAME_UPPER", "SAME_LOWER", "VALID")
    if how == "pads":
        given["pads"] = [random.number(0, size - 1) for size in (*window, *window)]
    elif how is not None:
        given["auto_pad"] = how
        # As many elements as strides ask for have to be reached.
        given["strides"] = [min(pair) for pair in zip(window, strides, strict=True)]
    if random.among(True, False) and how not in ("SAME_UPPER", "SAME_LOWER"):
        given["output_padding"] = [random.number(0, stride - 1) for stride in given["strides"]]
    sizes = random.numbers(rank, 3, 4)
    if how is None and random.among(True, False):
        gaps = given.get("dilations", [1] * rank)
        given.pop("output_padding", None)
        whole = [(size - 1) * given["strides"][k] + (window[k] - 1) * gaps[k] + 1 for k, size in enumerate(sizes)]
        given["output_shape"] = [max(1, size - random.number(-1, 3)) for size in whole]
    operands = [random.array(1, groups * inner, *sizes), random.array(groups * inner, each, *window)]
    return Node("ConvTranspose", [*operands, random.array(groups * each)], given, 11)


def max_pool(random: Random) -> Node:
    """A pooling with dilations, and windows that reach past the end."""
    rank = random.number(1, 3)
    sizes = random.numbers(rank, 5, 7)
    given = {**_agreed(_windows(random, rank, sizes)), "ceil_mode": random.number(0, 1)}
    return Node("MaxPool", [random.array(1, 2, *sizes)], given, random.among(10, 12, 22))


def average_pool(random: Random) -> Node:
    """A mean over windows, what lies around them counted or not."""
    rank = random.number(1, 3)
    sizes = random.numbers(rank, 5, 7)
    given = {
        **_agreed(_windows(random, rank, sizes)),
        "ceil_mode": random.number(0, 1),
        "count_include_pad": random.number(0, 1),
    }
    return Node("AveragePool", [random.array(1, 2, *sizes)], given, 22)


def resize(random: Random) -> Node:
    """A resize by scales or sizes, in all modes."""
    rank = random.number(1, 2)
    sizes = random.numbers(rank, 2, 6)
    data = random.array(1, 2, *sizes)
    mode = random.among("nearest", "linear", "cubic") if rank == 2 else random.among("nearest", "linear")
    given: dict[str, Any] = {"mode": mode}
    if mode == "nearest":
        given["nearest_mode"] = random.among("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    # What is left out here, runtimes and the reference do not do alike.
    ways = ["half_pixel", "asymmetric"]
    if random.among(True, False):
        given["coordinate_transformation_mode"] = random.among(*ways)
        scales = np.array([1, 1, *(random.among(0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0) for _ in sizes)], np.float32)
        return Node("Resize", [data, None, scales], given, held=frozenset([2]))
    given["coordinate_transformation_mode"] = random.among(
        *ways, "align_corners", "half_pixel" if mode == "cubic" else "pytorch_half_pixel"
    )
    new = np.array([1, 2, *random.numbers(rank, 1, 9)], np.int64)
    return Node("Resize", [data, None, None, new], given, held=frozenset([3]))


def clip(random: Random) -> Node:
    """Bounds that are given or not, in the model or when it runs."""
    bounds = [random.among(None, np.array(random.generator.normal(), np.float32)) for _ in range(2)]
    return Node("Clip", [random.array(3, 4), *bounds], {}, 13, frozenset(random.among([1, 2], [], [1])))


def arg(random: Random) -> Node:
    """The place of the largest or smallest element, of few different ones."""
    data = random.generator.integers(0, 3, size=random.numbers(3, 2, 4)).astype(random.among(np.float32, np.int32))
    given = {"axis": random.number(-3, 2), "keepdims": random.number(0, 1), "select_last_index": random.number(0, 1)}
    return Node(random.among("ArgMax", "ArgMin"), [data], given, 13)


def norm(random: Random) -> Node:
    """A normalisation of channels."""
    rank = random.number(1, 3)
    groups, each = random.number(1, 3), random.number(1, 3)
    data = random.array(2, groups * each, *random.numbers(rank, 2, 4))
    if random.among(True, False):
        return Node(
            "InstanceNormalization",
            [data, random.array(groups * each), random.array(groups * each)],
            {"epsilon": 1e-3},
            6,
        )
    opset = random.among(18, 21)
    size = groups * each if opset == 21 else groups
    return Node(
        "GroupNormalization",
        [data, random.array(size), random.array(size)],
        {"num_groups": groups, "epsilon": 1e-3},
        opset,
    )


NODES: Mapping[str, Callable[[Random], Node]] = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "Resize": resize,
    "Clip": clip,
    "ArgMax": arg,
    "normalisations": norm,
}


def random_node(kind: str, seed: int) -> Node:
    """A node of a kind."""
    return NODES[kind](Random(np.random.default_rng(seed)))
