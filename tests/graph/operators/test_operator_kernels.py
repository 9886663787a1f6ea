"""Every operator of the library as a kernel with its loops arranged, in plain layouts and others: the bits that the
interpreter gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.shares import one_in

from layoutproof.graph.flow.layout_flow import NoFlow, flow, relaid
from layoutproof.graph.model.graph import shape_of, signature_of
from layoutproof.graph.model.graph_run import interpret
from layoutproof.graph.operators.convolution import Sliding, conv, conv2d
from layoutproof.graph.operators.elementwise import BINARY, UNARY, binary, unary
from layoutproof.graph.operators.moving import concat, reshape, split, strided_slice, transpose
from layoutproof.graph.operators.normalise import batch_norm, response_norm, softmax
from layoutproof.graph.operators.reduction import dense, matmul, reduce
from layoutproof.graph.operators.spatial import avg_pool2d, max_pool2d
from layoutproof.graph.tuning.kernels import Kernels, arranged, rows_of, tiling_of
from layoutproof.graph.tuning.loop_schedules import follow
from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import walk
from layoutproof.lowering.schedule.schedule import Schedule

BY_4 = "lambda n, c, h, w: [n, c//4, h, w, c%4]"
BY_8 = "lambda n, c, h, w: [n, c//8, h, w, c%8]"
CHANNELS_LAST = "lambda n, c, h, w: [n, h, w, c]"
TURNED = "lambda n, c, h, w: [w, c, n, h]"
LAYOUTS: tuple[str | None, ...] = (None, BY_4, BY_8, CHANNELS_LAST, TURNED)

IMAGE = (2, 8, 6, 5)
OPERATORS: Mapping[str, PrimFunc] = {
    "convolution": conv2d(IMAGE, (16, 8, 3, 3)),
    "halo": conv2d(IMAGE, (16, 8, 3, 3), Sliding((1, 1), (1, 1, 1, 1))),
    "halo on one side": conv2d(IMAGE, (8, 8, 2, 2), Sliding((1, 1), (0, 1, 1, 0))),
    "stride": conv2d(IMAGE, (8, 8, 3, 3), Sliding((2, 2), (1, 1, 1, 1))),
    "stride of single pixels": conv2d(IMAGE, (8, 8, 1, 1), Sliding((2, 2))),
    "dilation": conv2d((1, 8, 7, 7), (8, 8, 3, 3), Sliding(dilation=(2, 2))),
    "dilation and stride": conv2d((1, 8, 9, 9), (8, 8, 3, 3), Sliding((2, 1), (2, 2, 2, 2), (2, 2))),
    "three channels": conv2d((1, 3, 8, 8), (8, 3, 3, 3), Sliding((2, 2), (1, 1, 1, 1))),
    "groups": conv2d((1, 16, 5, 5), (16, 8, 1, 1), groups=2),
    "groups with halo": conv2d((1, 16, 5, 5), (32, 8, 3, 3), Sliding(halo=(1, 1, 1, 1)), groups=2),
    "depthwise": conv2d(IMAGE, (8, 1, 3, 3), Sliding(halo=(1, 1, 1, 1)), groups=8),
    "depthwise, two filters each": conv2d(IMAGE, (16, 1, 3, 3), Sliding((2, 2), (1, 1, 1, 1)), groups=8),
    "max_pool2d": max_pool2d(IMAGE, (3, 3), (2, 2), (1, 1, 1, 1)),
    "avg_pool2d": avg_pool2d(IMAGE, (3, 2), (2, 1), (1, 0, 0, 1)),
    "avg_pool2d with its halo": avg_pool2d(IMAGE, (2, 2), (2, 2), (1, 1, 1, 1), count_halo=True),
    "relu": unary("relu", IMAGE),
    "sigmoid": unary("sigmoid", IMAGE),
    "add": binary("add", IMAGE, IMAGE),
    "bias": binary("add", IMAGE, (8, 1, 1)),
    "multiply": binary("multiply", IMAGE, (2, 8, 1, 1)),
    "batch_norm": batch_norm(IMAGE),
    "response_norm": response_norm(IMAGE, 3, 1e-2, 0.75, 2.0),
    "softmax": softmax(IMAGE, 1),
    "sum": reduce("sum", IMAGE, (2, 3)),
    "mean": reduce("mean", IMAGE, (2, 3), True),
    "max over channels": reduce("max", IMAGE, (1,)),
    "concat": concat((IMAGE, (2, 16, 6, 5)), 1),
    "split": split((2, 16, 6, 5), (8, 8), 1),
    "slice": strided_slice(IMAGE, (0, 0, 1, 0), (2, 8, 2, 3), (1, 1, 2, 1)),
    "transpose": transpose(IMAGE, (0, 1, 3, 2)),
    "reshape": reshape(IMAGE, (2, 8, 30)),
}
FLAT: Mapping[str, PrimFunc] = {
    "dense": dense((2, 40), (24, 40)),
    "matmul": matmul((12, 20), (20, 16)),
    "batched matmul": matmul((3, 8, 10), (3, 10, 8)),
    "one row": dense((1, 7), (5, 7)),
    "conv1d": conv((1, 8, 12), (16, 8, 3), Sliding((1,), (1, 1), (1,))),
    "sum of rows": reduce("sum", (6, 16, 10), (2,)),
}
USUAL = [
    ("halo", BY_4),
    ("stride", BY_8),
    ("dilation and stride", BY_4),
    ("three channels", BY_4),
    ("groups with halo", BY_4),
    ("depthwise", BY_4),
    ("halo", None),
    ("groups", None),
    ("stride", CHANNELS_LAST),
    ("max_pool2d", BY_4),
    ("avg_pool2d", BY_8),
    ("batch_norm", BY_4),
    ("mean", BY_4),
    ("concat", BY_8),
]


def maps_of(func: PrimFunc, layout: str | None) -> Mapping[str, IndexMap] | None:
    """The layouts of a function's arrays if its results and its images have this one; None where it does not flow."""
    if layout is None:
        return {}
    asked = parse_index_map(layout)
    signature = signature_of(func)
    images = [
        buffer.name for buffer in (*signature.results, *signature.operands[:1]) if buffer.rank == len(asked.inputs)
    ]
    for some in (images, images[:1]):
        try:
            found = flow(func, dict.fromkeys(some, asked))
        except NoFlow:
            continue
        assert found, "no array has as many axes as the layout"
        return found
    return None


def arrays_of(func: PrimFunc) -> list[NDArray[Any]]:
    """Operands: numbers of which none is 0, the last ones positive, since a variance is."""
    random = np.random.default_rng(3)
    shapes = [(shape_of(buffer), numpy_dtype(buffer.dtype)) for buffer in signature_of(func).operands]
    found = [random.normal(size=shape).astype(dtype) for shape, dtype in shapes]
    return [*found[:-1], np.abs(found[-1]) + np.asarray(0.5, found[-1].dtype)] if len(found) > 1 else found


def check(func: PrimFunc, layouts: Mapping[str, IndexMap]) -> None:
    """Fail unless the function's kernel in these layouts makes the elements that the interpreter makes of the function
    as it is.
    """
    schedule = relaid(func, layouts)
    signature = signature_of(func)
    operands = arrays_of(func)
    wanted = interpret(func, operands)
    new = replace(schedule.func, name=func.name)
    stored = {buffer.name: shape_of(buffer) for buffer in (*signature_of(new).operands, *signature_of(new).results)}

    def laid(name: str, array: NDArray[Any]) -> NDArray[Any]:
        return layouts[name].map_array(array, stored[name]) if name in layouts else array

    given = [laid(buffer.name, array) for buffer, array in zip(signature.operands, operands, strict=True)]
    for buffer, made, expected in zip(
        signature.results, Kernels({func.name: schedule})(new, given), wanted, strict=True
    ):
        found = layouts[buffer.name].unmap_array(made, expected.shape) if buffer.name in layouts else made
        same(found, expected)


def same(found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Fail unless two arrays have the same bits; a NaN is a NaN."""
    one, other = (np.where(array != array, np.nan, array).astype(expected.dtype) for array in (found, expected))
    np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))


@one_in(32)
@pytest.mark.parametrize(("name", "layout"), USUAL, ids=lambda each: str(each).rpartition(": ")[2])
def test_kernels_of_operators_in_layouts(name: str, layout: str | None) -> None:
    """Operators as networks have them, in layouts as kernels want them."""
    maps = maps_of(OPERATORS[name], layout)
    assert maps is not None
    check(OPERATORS[name], maps)


@one_in(9)
@pytest.mark.parametrize("name", FLAT)
def test_kernels_of_matrices_and_rows(name: str) -> None:
    """Operators on arrays of other ranks, as they are."""
    check(FLAT[name], {})


@pytest.mark.campaign
@pytest.mark.parametrize("name", OPERATORS)
def test_kernels_of_all_operators_in_all_layouts(name: str) -> None:
    """Each operator in each layout that flows through it; in blocks of channels at least."""
    flowing = [maps for layout in LAYOUTS if (maps := maps_of(OPERATORS[name], layout)) is not None]
    assert len(flowing) >= 2
    for maps in flowing:
        check(OPERATORS[name], maps)


@pytest.mark.campaign
@pytest.mark.parametrize("kind", [*UNARY, *BINARY])
def test_kernels_of_all_kinds_of_elementwise_operators(kind: str) -> None:
    """Each unary and binary operator, plain and in blocks."""
    func = unary(kind, IMAGE) if kind in UNARY else binary(kind, IMAGE, (8, 1, 1))
    for layout in (None, BY_4):
        maps = maps_of(func, layout)
        assert maps is not None
        check(func, maps)


def _lanes(schedule: Schedule) -> set[int]:
    return {node.dtype.lanes for node in walk(schedule.func.body) if isinstance(node, BufferLoad)}


@one_in(4)
@pytest.mark.parametrize("name", ["max_pool2d", "depthwise", "mean"])
def test_reductions_in_blocks_have_lanes(name: str) -> None:
    """What runs over whole blocks of channels is vectors, each step proved."""
    maps = maps_of(OPERATORS[name], BY_4)
    assert maps is not None
    made = follow(relaid(OPERATORS[name], maps))
    assert 4 in _lanes(made) and all(verdict.status == "proved" for step in made.steps for verdict in step.verdicts)


def test_sums_run_side_by_side() -> None:
    """Rows are summed whole where what is read lies in rows, and neighbours together where it lies along the sum."""
    image, product = rows_of(OPERATORS["halo"]), rows_of(FLAT["matmul"])
    row = rows_of(FLAT["dense"])
    assert image is not None and image.inner == ((1, 8), (3, 5)) and not image.unrolled
    assert product is not None and product.inner == ((0, 6), (1, 16))
    assert row is not None and row.inner == ((1, 8),) and row.unrolled
    assert (
        rows_of(OPERATORS["depthwise"]) is None
        and rows_of(OPERATORS["max_pool2d"]) is None
        and rows_of(OPERATORS["relu"]) is None
    )


def test_what_cannot_be_arranged_stays_as_it_is() -> None:
    """A function without a reduction, and one whose loops are in order, keep their loops."""
    for name in ("relu", "transpose"):
        schedule = Schedule(OPERATORS[name])
        assert arranged(schedule).func == OPERATORS[name] and tiling_of(OPERATORS[name]) is None


def test_operands_that_do_not_fit_are_refused() -> None:
    """A kernel is not run on arrays of another shape or type, and takes those that are not contiguous."""
    kernels, func = Kernels(), OPERATORS["relu"]
    (image,) = arrays_of(func)
    wanted = interpret(func, [image])[0]
    turned: Sequence[NDArray[Any]] = [np.ascontiguousarray(image.T).T]
    same(kernels(func, turned)[0], wanted)
    for wrong in (image[:, :4], image.astype(np.float64)):
        with pytest.raises(LayoutproofError):
            kernels(func, [wrong])
