"""Operators that move elements, and that take them by places, against ONNX's reference: both forms of each, drawn at
random.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.graph.nets import filled
from tests.importers.onnx.nodes import Array, Held, agree, calls, graph_from, ints, one
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError

SEEDS = range(15)


def drawn(seed: int, least: int = 1) -> tuple[np.random.Generator, Array]:
    """A generator, and an array of one to four axes."""
    random = np.random.default_rng(seed)
    shape = [int(extent) for extent in random.integers(1, 5, size=random.integers(least, 5))]
    return random, filled(*shape, seed=seed)


@one_in(4)
@pytest.mark.parametrize("seed", range(40))
def test_slice(seed: int) -> None:
    """Starts, ends and steps of either sign, beyond the array too; of some axes or of all, as attributes or as
    operands.
    """
    random, x = drawn(seed)
    axes = random.permutation(x.ndim)[: random.integers(1, x.ndim + 1)]
    old = seed % 4 == 0
    starts, ends, steps = [], [], []
    for axis in axes:
        extent = x.shape[axis]
        step = 1 if old else int(random.choice([1, 1, 2, -1, -2, 3]))
        first = random.integers(0, extent) if step > 0 else random.choice([extent - 1, extent + 4, -1])
        last = random.choice([extent, extent + 3, 2**31 - 1] if step > 0 else [-extent - 1, -(2**31)])
        starts.append(int(first) - extent * int(0 <= first < extent and random.integers(2)))
        ends.append(int(last))
        steps.append(step)
    signed = [int(axis) - x.ndim if random.integers(2) else int(axis) for axis in axes]
    if old:
        agree_old_slice(x, starts, ends, [int(axis) for axis in axes])
    else:
        agree(one("Slice", [x, ints(*starts), ints(*ends), ints(*signed), ints(*steps)]), x)


def agree_old_slice(x: Array, starts: list[int], ends: list[int], axes: list[int]) -> None:
    """Attributes, up to version 9, which the reference takes as well."""
    agree(one("Slice", [x], opset=9, starts=starts, ends=ends, axes=axes), x)


@pytest.mark.parametrize("seed", SEEDS)
def test_split(seed: int) -> None:
    """Equal parts, parts of given sizes in both forms, and a last part that is smaller."""
    random = np.random.default_rng(seed)
    x = filled(3, 7, 2, seed=seed)
    axis = int(random.choice([1, -2]))
    form = seed % 4
    sizes = [3, 0, 4] if form == 2 else [1, 4, 2]
    if form == 0:
        proto = one("Split", [x], opset=18, results=4, axis=axis, num_outputs=4)
    elif form == 1:
        proto = one("Split", [x], opset=11, results=3, axis=axis, split=sizes)
    else:
        proto = one("Split", [x, ints(*sizes)], opset=13, results=3, axis=axis)
    if form == 2:
        # The part without elements is no output that a graph can have.
        proto.graph.output.pop(1)
    agree(proto, x)


@pytest.mark.parametrize("seed", range(24))
def test_pad(seed: int) -> None:
    """Each mode, widths below zero for constants, some axes or all, attributes or operands."""
    random, x = drawn(seed)
    mode = ["constant", "edge", "reflect", "wrap"][seed % 4]
    least, most = (-1 if min(x.shape) > 2 else 0, 3) if mode == "constant" else (0, 2)
    if mode == "reflect":
        x = filled(*(extent + 2 for extent in x.shape), seed=seed)
    widths = [int(k) for k in random.integers(least, most, size=2 * x.ndim)]
    if mode == "wrap":
        agree(one("Pad", [x, ints(*widths)], opset=19, mode=mode), x)
    elif seed % 8 < 4:
        value = [Held(np.array(1.5, np.float32))] if mode == "constant" else []
        agree(one("Pad", [x, ints(*widths), *value], opset=13, mode=mode), x)
    elif mode == "constant":
        axis = int(random.integers(x.ndim))
        agree(one("Pad", [x, ints(1, 2), Held(np.array(-np.inf, np.float32)), ints(axis - x.ndim)], opset=18), x)
    else:
        agree(one("Pad", [x], opset=2 if mode == "constant" else 10, mode=mode, pads=widths), x)


@pytest.mark.parametrize(("dtype", "value"), [("int64", 7), ("uint8", 200), ("bool", True), ("float16", -np.inf)])
def test_pads_of_other_types(dtype: str, value: float) -> None:
    """Cells around hold a number of the array's type."""
    x = (filled(2, 3) * 4).astype(dtype)
    agree(one("Pad", [x, ints(1, 0, 0, 2), Held(np.array(value, dtype))]), x)


@one_in(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_axes_of_extent_one(seed: int) -> None:
    """Axes that are put in and taken out, in both forms, counted from either end."""
    random, x = drawn(seed)
    places = sorted(int(k) for k in random.permutation(x.ndim + 2)[:2])
    signed = [place - x.ndim - 2 if random.integers(2) else place for place in places]
    old = seed % 2 == 0
    agree(one("Unsqueeze", [x], opset=11, axes=places) if old else one("Unsqueeze", [x, ints(*signed)]), x)
    wide = np.expand_dims(x, tuple(places))
    agree(one("Squeeze", [wide], opset=11, axes=places) if old else one("Squeeze", [wide, ints(*signed)]), wide)
    agree(one("Squeeze", [wide]), wide)


@pytest.mark.parametrize("seed", SEEDS)
def test_other_shapes(seed: int) -> None:
    """Reshapes with an extent that is found and one that stays, flattening at each axis, other orders."""
    random, x = drawn(seed, least=2)
    asked = [0, *(int(extent) for extent in reversed(x.shape[1:])), 1]
    asked[1 + int(random.integers(len(asked) - 1))] = -1
    agree(one("Reshape", [x, ints(*asked)]), x)
    agree(one("Flatten", [x], axis=int(random.integers(-x.ndim, x.ndim + 1))), x)
    agree(one("Transpose", [x], perm=[int(k) for k in random.permutation(x.ndim)]), x)


@pytest.mark.parametrize("seed", SEEDS)
def test_repeated(seed: int) -> None:
    """Elements repeated to a shape that goes together with theirs, and arrays one after the other."""
    random, x = drawn(seed)
    thin = np.ascontiguousarray(x[tuple(slice(0, 1) if random.integers(2) else slice(None) for _ in x.shape)])
    shape = [1 if random.integers(3) == 0 else extent for extent in x.shape]
    agree(one("Expand", [thin, ints(*([2] * int(random.integers(2))), *shape)]), thin)
    agree(one("Tile", [x, ints(*(int(k) for k in random.integers(1, 4, size=x.ndim)))]), x)


@pytest.mark.parametrize("seed", SEEDS)
def test_concat(seed: int) -> None:
    """Several operands along an axis counted from either end."""
    random, x = drawn(seed)
    axis = int(random.integers(-x.ndim, x.ndim))
    other = np.concatenate([x, x], axis=axis) + 1
    agree(one("Concat", [x, other, x], axis=axis), x, other, x)


@one_in(4)
@pytest.mark.parametrize("seed", range(25))
def test_gather(seed: int) -> None:
    """Places that are known, where runs of them are moved, and places that are data; some count from the end."""
    random, x = drawn(seed)
    axis = int(random.integers(-x.ndim, x.ndim))
    extent = x.shape[axis]
    shape = [int(k) for k in random.integers(1, 4, size=seed % 3)]
    places = np.asarray(random.integers(-extent, extent, size=shape), dtype=np.int64 if seed % 2 else np.int32)
    known = agree(one("Gather", [x, Held(places)], axis=axis), x)
    assert "gather" not in calls(known)
    assert calls(agree(one("Gather", [x, places], axis=axis), x, places)) == ["gather"]


def test_many_places() -> None:
    """Known places without any order are data of the graph: a block for each would make long functions."""
    x, places = filled(64), np.random.default_rng(0).permutation(64)
    assert calls(agree(one("Gather", [x, Held(places)]), x)) == ["gather"]


@pytest.mark.parametrize("seed", SEEDS)
def test_gather_by_elements(seed: int) -> None:
    """A place for each element, and places of several axes at once."""
    random, x = drawn(seed, least=2)
    # The reference takes only axes that are counted from the front.
    axis = int(random.integers(x.ndim))
    shape = list(x.shape)
    shape[axis] = int(random.integers(1, 5))
    places = np.asarray(random.integers(-x.shape[axis], x.shape[axis], size=shape))
    agree(one("GatherElements", [x, places], axis=axis), x, places)
    deep = int(random.integers(1, x.ndim + 1))
    several = np.stack([random.integers(0, extent, size=3) for extent in x.shape[:deep]], axis=-1)
    agree(one("GatherND", [x, several]), x, several)


def test_gather_in_batches() -> None:
    """Axes in front that places and data have in common."""
    x, places = filled(2, 3, 4), np.array([[[1], [0]], [[2], [1]]])
    agree(one("GatherND", [x, places], batch_dims=1), x, places)


@one_in(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_scatter(seed: int) -> None:
    """What is put in at known places, which are not data of the graph that computes."""
    random = np.random.default_rng(seed)
    x = filled(3, 4, 2, seed=seed)
    places = np.stack([random.permutation(3)[:2], random.integers(-4, 4, size=2)], axis=-1)
    updates = filled(2, 2, seed=seed + 1)
    agree(one("ScatterND", [x, Held(places), updates]), x, updates)
    along = random.permuted(np.tile(np.arange(4), (3, 1)), axis=1)[:, :2, None]
    put = filled(*along.shape, seed=seed + 2)
    agree(one("ScatterElements", [x, Held(along), put], axis=1), x, put)


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("index_type", ["int64", "int32"])
def test_one_hot(axis: int, index_type: str) -> None:
    """Places that are data; those that are not there are hot nowhere, those below zero count from the end."""
    places, values = np.array([[1, -1], [0, 5]], dtype=index_type), np.array([-2, 3], dtype=np.float32)
    agree(one("OneHot", [places, Held(np.array(4, dtype=np.int64)), values], axis=axis), places, values)


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("offset", [None, -1, 0, 2])
def test_triangles(upper: int, offset: int | None) -> None:
    """What lies on one side of a diagonal; the rest is zero."""
    x = filled(2, 3, 4)
    agree(one("Trilu", [x, *([Held(np.array(offset, dtype=np.int64))] if offset is not None else [])], upper=upper), x)


@one_in(4)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float64"])
def test_elements_of_other_types(dtype: str) -> None:
    """What moves elements moves those of any type."""
    x = (filled(3, 4) * 5).astype(dtype)
    cases: list[tuple[str, list[Held], dict[str, Any]]] = [
        ("Transpose", [], {}),
        ("Expand", [ints(2, 3, 4)], {}),
        ("Tile", [ints(2, 1)], {}),
        ("Slice", [ints(3), ints(0), ints(1), ints(-2)], {}),
        ("Gather", [ints(2, 0)], {}),
        ("Reshape", [ints(2, 6)], {}),
        ("Trilu", [], {}),
        ("Identity", [], {}),
    ]
    for operator, others, attributes in cases:
        agree(one(operator, [x, *others], **attributes), x)


@pytest.mark.parametrize(
    ("operator", "operands", "attributes", "message"),
    [
        ("Slice", [filled(4), ints(0), ints(2), ints(0), ints(0)], {}, "do not go together"),
        ("Slice", [filled(4), ints(0), ints(2), ints(1)], {}, "no axis 1"),
        ("Slice", [filled(4, 4), ints(0, 0), ints(2, 2), ints(0, 0)], {}, "do not go together"),
        ("Slice", [filled(4), np.array([0]), ints(2)], {}, "not known before the model runs"),
        ("Slice", [filled(4), ints(-9), ints(-20), ints(0), ints(-1)], {}, "from -9 backwards"),
        ("Split", [filled(4), ints(1, 1)], {"results": 2}, "do not make 2 parts"),
        ("Split", [filled(4), ints(5, -1)], {"results": 2}, "do not make 2 parts"),
        ("Pad", [filled(4), ints(1)], {}, "are not two for each"),
        ("Pad", [filled(4), ints(-2, -2)], {}, "nothing is left"),
        ("Pad", [filled(4), ints(6, -6)], {}, "nothing is left"),
        ("Pad", [filled(4), ints(2, -1)], {"mode": "wrap"}, "grows by 2 and is cut"),
        ("Pad", [filled(4), ints(-1, -5)], {"mode": "edge"}, "nothing is left"),
        ("Pad", [filled(4), ints(1, 1)], {"mode": "mirror"}, "the mode 'mirror'"),
        ("Expand", [filled(4), ints(3)], {}, "do not go together"),
        ("Tile", [filled(4), ints(2, 2)], {}, "are not times for each axis"),
        ("Gather", [filled(4), ints(4)], {}, "places outside an axis of extent 4"),
        ("Gather", [filled(4), filled(2)], {}, "places are of type int32 or int64"),
        ("Gather", [filled(4), np.array([0])], {"axis": 1}, "no axis 1"),
        ("GatherND", [filled(4), np.array([[0, 0]])], {}, "do not fit"),
        ("GatherElements", [filled(4), np.array([[0]])], {}, "do not fit"),
        ("Concat", [filled(4), filled(2, 2)], {"axis": 0}, "differ beside axis"),
        ("Concat", [filled(4), filled(4).astype(np.float64)], {"axis": 0}, "differ in type"),
        ("Squeeze", [filled(4, 2), ints(0)], {}, "have extent 1"),
        ("Unsqueeze", [filled(4), ints(0, 0)], {}, "not different axes"),
        ("Reshape", [filled(4), ints(-1, 3)], {}, "other elements"),
        ("Reshape", [filled(4), ints(0, -1)], {"allowzero": 1}, "no shape for"),
        ("Transpose", [filled(4, 2)], {"perm": [0, 0]}, "no order"),
        ("Trilu", [filled(4)], {}, "no diagonal"),
        ("Flatten", [filled(4)], {"axis": 3}, "no axis 3"),
        ("ScatterND", [filled(4), ints(7), filled(1)], {}, "do not fit|outside"),
        ("OneHot", [np.array([0]), Held(np.array(0)), filled(2)], {}, "a depth of 0"),
    ],
)
def test_what_does_not_fit_is_named(
    operator: str, operands: list[Any], attributes: dict[str, Any], message: str
) -> None:
    """Places, widths and shapes that do not fit are an error that names the node."""
    with pytest.raises(LayoutproofError, match=f"{operator} that makes y0.*: .*({message})"):
        graph_from(one(operator, operands, **attributes))
