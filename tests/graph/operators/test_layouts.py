"""Layouts of channels go through every operator of images: the function in its new layouts is proved, and makes the
same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.graph.nets import filled
from tests.shares import one_in

from layoutproof.graph.flow.layout_flow import NoFlow, flow, relaid
from layoutproof.graph.model.graph import shape_of, signature_of
from layoutproof.graph.model.graph_run import interpret
from layoutproof.graph.operators.convolution import Sliding, conv, conv_transpose
from layoutproof.graph.operators.elementwise import (
    ACTIVATIONS,
    BINARY,
    COMPARISONS,
    LOGICAL,
    SIGNED,
    UNARY,
    UNSIGNED,
    binary,
    cast,
    choose,
    predicate,
    unary,
)
from layoutproof.graph.operators.normalise import batch_norm, group_mean, instance_norm, response_norm
from layoutproof.graph.operators.reduction import arg_extreme
from layoutproof.graph.operators.spatial import (
    avg_pool,
    depth_to_space,
    max_pool,
    resize_cubic,
    resize_linear,
    resize_nearest,
    space_to_depth,
)
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.layout_strings import layout_map
from layoutproof.ir.primfunc import PrimFunc

Array = NDArray[Any]
IMAGE = (1, 8, 4, 5)
NUMBERS = {kind: (0.5, 0.25)[:count] for kind, (count, _) in ACTIVATIONS.items()}
BLOCKED = {3: layout_map("NCW", "NCW4c"), 4: layout_map("NCHW", "NCHW4c"), 5: layout_map("NCDHW", "NCDHW4c")}

FUNCTIONS: Mapping[str, Callable[[], PrimFunc]] = {
    **{kind: partial(unary, kind, IMAGE) for kind in UNARY},
    **{kind: partial(unary, kind, IMAGE, "float32", NUMBERS[kind]) for kind in ACTIVATIONS},
    "clip": lambda: unary("clip", IMAGE, "float32", (0.0, 6.0)),
    **{kind: partial(binary, kind, IMAGE, IMAGE) for kind in (*BINARY, *COMPARISONS)},
    **{f"{kind} of integers": partial(binary, kind, IMAGE, (8, 1, 1), "int32") for kind in SIGNED},
    **{f"{kind} of bytes": partial(binary, kind, IMAGE, (8, 1, 1), "uint8") for kind in UNSIGNED},
    **{f"{kind} of truth values": partial(binary, kind, IMAGE, IMAGE, "bool") for kind in LOGICAL},
    "where": lambda: choose(IMAGE, (8, 1, 1), IMAGE),
    "cast": lambda: cast(IMAGE, "int32", "float32"),
    "cast to truth values": lambda: cast(IMAGE, "float32", "bool"),
    "is_nan": lambda: predicate("is_nan", IMAGE),
    "logical_not": lambda: predicate("logical_not", IMAGE, "bool"),
    "conv1d": lambda: conv((1, 8, 9), (8, 8, 3), Sliding((2,), (1, 1), (1,))),
    "conv3d": lambda: conv((1, 4, 3, 3, 3), (4, 4, 2, 2, 2), Sliding((1, 1, 1), (1, 0, 0, 0, 0, 1), (1, 1, 1))),
    "depthwise_conv1d": lambda: conv((1, 8, 9), (8, 1, 3), Sliding((1,), (1, 1), (2,)), 8),
    "conv_transpose2d": lambda: conv_transpose(IMAGE, (8, 4, 3, 3), Sliding((2, 2), (1, 1, 1, 1)), 1, (1, 1)),
    "depthwise_conv_transpose1d": lambda: conv_transpose((1, 8, 5), (8, 1, 3), Sliding((2,), (0, 1), (1,)), 8),
    "max_pool2d": lambda: max_pool(IMAGE, (3, 2), Sliding((2, 2), (1, 0, 1, 0)), steps=(2, 3)),
    "max_pool1d": lambda: max_pool((1, 8, 9), (3,), Sliding((1,), (0, 0), (2,))),
    "max_pool3d": lambda: max_pool((1, 4, 3, 3, 3), (2, 2, 2), Sliding((1, 1, 1), (0,) * 6, (1, 1, 1))),
    "avg_pool2d": lambda: avg_pool(IMAGE, (3, 2), Sliding((2, 1), (1, 1, 1, 1))),
    "avg_pool2d, the halo counted": lambda: avg_pool(
        IMAGE, (3, 2), Sliding((2, 1), (1, 1, 1, 1)), count_halo=True, steps=(2, 6)
    ),
    "avg_pool1d with gaps": lambda: avg_pool((1, 8, 9), (3,), Sliding((1,), (2, 2), (2,))),
    "batch_norm": lambda: batch_norm(IMAGE),
    "instance_norm": lambda: instance_norm(IMAGE),
    "resize_nearest": lambda: resize_nearest(IMAGE, (1, 8, 8, 7), ((1, 0, 1), (1, 0, 1), (1, 0, 2), (5, 1, 7))),
    "resize_linear": lambda: resize_linear(IMAGE, 2, 7, (8, -3, 14)),
    "resize_cubic": lambda: resize_cubic(IMAGE, 3, 10, (2, -1, 4)),
    "grouped_conv2d, each group a block": lambda: conv((1, 16, 4, 4), (16, 4, 3, 3), Sliding(halo=(1, 1, 1, 1)), 4),
    "depth_to_space to one block": lambda: depth_to_space((1, 16, 2, 3), 2),
    "depth_to_space": lambda: depth_to_space((1, 32, 2, 3), 2),
    "argmax of rows": lambda: arg_extreme("argmax", IMAGE, 2, keep=True),
}
STOPS: Mapping[str, tuple[Callable[[], PrimFunc], str]] = {
    "channels beside each other": (lambda: response_norm(IMAGE, 3, 0.1, 0.75, 1.0), "mixes"),
    "means of groups": (lambda: group_mean((1, 8, 1, 1), 2), "mixes"),
    "channels in squares of places": (lambda: depth_to_space((1, 8, 2, 3), 2, True), "mixes"),
    "squares of places in channels": (lambda: space_to_depth((1, 8, 2, 4), 2), "mixes"),
}


def elements(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Numbers of a type; of floats some that are none, or infinite, or zeros with a sign."""
    found = filled(*shape, seed=seed).reshape(-1)
    if "float" in dtype:
        found[: min(4, found.size)] = [np.nan, -0.0, np.inf, -np.inf][: min(4, found.size)]
        return found.reshape(shape)
    return (found > 0).reshape(shape) if dtype == "bool" else (np.abs(found * 3) + 1).astype(dtype).reshape(shape)


def moved(array: Array, index_map: IndexMap | None) -> Array:
    """The array stored by a map, with nothing that counts in the rest of it."""
    return array if index_map is None else index_map.map_array(array, index_map.map_shape(array.shape))


@one_in(46)
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_a_layout_goes_through(name: str) -> None:
    """From the first operand, of convolutions from the result too, the others get their layouts; that is proved; bits
    stay the same.
    """
    func = FUNCTIONS[name]()
    signature = signature_of(func)
    first = signature.operands[0]
    given = [first, *(signature.results if "W" in (buffer.name for buffer in signature.operands) else ())]
    layouts = flow(func, {buffer.name: BLOCKED[buffer.rank] for buffer in given})
    assert layouts[signature.results[0].name].outputs != layouts[signature.results[0].name].inputs
    made = relaid(func, layouts)
    operands = [elements(shape_of(buffer), str(buffer.dtype), seed) for seed, buffer in enumerate(signature.operands)]
    before = interpret(func, operands)
    after = interpret(
        made.func,
        [moved(array, layouts.get(buffer.name)) for array, buffer in zip(operands, signature.operands, strict=True)],
    )
    for old, new, buffer in zip(before, after, signature.results, strict=True):
        wanted = moved(old, layouts.get(buffer.name))
        assert wanted.tobytes() == new.tobytes(), index_map_text(layouts[buffer.name])


@pytest.mark.parametrize("name", list(STOPS))
def test_a_layout_stops(name: str) -> None:
    """Where channels are mixed, a layout that takes them apart stops, and it is said at which access."""
    func, reason = STOPS[name][0](), STOPS[name][1]
    with pytest.raises(NoFlow, match=reason):
        flow(func, {"X": BLOCKED[4]})
