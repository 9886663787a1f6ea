"""Kernels of layout changes against index maps run on arrays: both directions, every type, fill and crop, all steps
proved.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from tests.random.index_maps import draw_map
from tests.shares import one_in, some

from layoutproof import relayout
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.layout_strings import layout_map
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.lowering.kernels.relayout import RelayoutKernel, _Plan
from layoutproof.lowering.kernels.relayout_program import plain_program, read_relayout
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.verdict.verdict import Status

TILES = "lambda i, j: [i//16, j//16, i%16, j%16]"
CASES: list[tuple[str, tuple[int, ...]]] = [
    ("NHWC->NCHW4c", (2, 13, 17, 131)),
    ("NHWC->NCHW4c", (3, 20, 20, 3)),
    ("NCHW->NHWC", (2, 61, 17, 31)),
    ("NCHW->NCHW4c", (1, 70, 14, 14)),
    ("OIHW->OIHW4i16o", (64, 32, 3, 3)),
    ("OIHW->OIHW4i16o", (70, 30, 3, 3)),
    (TILES, (100, 210)),
    ("lambda i: [(i + 14)//4, (i + 14)%4]", (1000,)),
    ("lambda i: [i//4 ^ 1, i%4]", (256,)),
    ("lambda i, j: [j, i]", (77, 203)),
    ("lambda i, j, k: [k, i, j]", (33, 34, 35)),
    ("lambda i: [i]", (5000,)),
    ("lambda i, j: [3*i + 1, j]", (50, 60)),
    ("lambda i, j: [(i*512 + j)//8 % 16, ((i*512 + j)//128)*8 + (i*512 + j)%8]", (8, 512)),
]
# One of every width first.
TYPES = ["bool", "int8", "bfloat16", "float32", "int64", "uint8", "int16", "float16", "int32", "uint32", "float64"]


def map_of(text: str) -> IndexMap:
    """The map that a case names."""
    source, arrow, target = text.partition("->")
    return layout_map(source, target) if arrow else parse_index_map(text)


def some_array(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    """Elements of a type, of any bits where every pattern is a value."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    return rng.integers(1, 100, shape).astype(numpy_dtype(DType.parse(dtype)))


def same(a: Any, b: Any) -> bool:
    """Whether two arrays are the same in shape and bits."""
    return bool(a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes())


def check_proved(kernel: RelayoutKernel) -> None:
    """Every step of the schedule and of its lowering is proved, and some step was taken."""
    steps = (*kernel.schedule.steps, *kernel.schedule.lowering_steps)
    assert steps and all(step.status is Status.PROVED for step in steps)


def check_case(text: str, shape: tuple[int, ...], dtype: str = "float32", pad: Any = 0) -> None:
    """Both directions of a map, against the map run on the array."""
    index_map = map_of(text)
    array = some_array(shape, dtype)
    physical = index_map.map_array(array, fill=array.dtype.type(pad))
    there, back = relayout(text, shape, dtype, pad_value=pad), relayout(text, shape, dtype, inverse=True)
    assert same(there(array), physical)
    assert same(back(physical), array)
    check_proved(there)
    check_proved(back)


@one_in(28)
@pytest.mark.parametrize(("text", "shape"), CASES)
def test_there_and_back(text: str, shape: tuple[int, ...]) -> None:
    """What padding holds is the pad value on the way there, and is left out on the way back."""
    check_case(text, shape, pad=-2.5)


@one_in(10)
@pytest.mark.parametrize("dtype", some(TYPES, 5))
def test_every_type(dtype: str) -> None:
    """Elements of every width are moved as they are, in blocks that are turned and in pieces that stay."""
    check_case("NCHW->NHWC", (2, 37, 9, 21), dtype)
    check_case("NHWC->NCHW4c", (2, 9, 21, 30), dtype, pad=1)


@one_in(4)
@pytest.mark.parametrize("shape", [(7, 61, 67, 131)])
def test_prime_extents_past_the_cache(shape: tuple[int, ...]) -> None:
    """Large arrays of prime extents, which go past the cache in unaligned runs, arrive whole."""
    for text in ("NHWC->NCHW4c", "NCHW->NHWC"):
        kernel = relayout(text, shape)
        assert "lp_stream_end();" in kernel.source.text
        array = some_array(shape, "float32")
        physical = map_of(text).map_array(array)
        offset = np.zeros(physical.size + 7, dtype=np.float32)[3:-4].reshape(physical.shape)
        kernel.raw(A=array, B=offset)
        assert same(offset, physical)


@one_in(21)
@pytest.mark.parametrize("seed", range(0, 2000, 160))
def test_random_maps(seed: int) -> None:
    """Any map that is proved injective, splits, fusions, swizzles and windows, is run in both directions."""
    drawn = draw_map(seed)
    report = check_map(drawn.text, drawn.shape)
    if report.injective.status is not Status.PROVED:
        return
    check_case(drawn.text, tuple(drawn.shape), Random(seed).choice(["int8", "float16", "float32", "float64"]), pad=3)


@one_in(4)
def test_what_padding_gets() -> None:
    """None leaves padding as it is, a text or function of the physical index fills it, undef allows anything."""
    array = some_array((14,), "float32")
    text = "lambda i: [i//4, i%4]"
    untouched = np.full((4, 4), 7, dtype=np.float32)
    relayout(text, (14,), pad_value=None).raw(A=array, B=untouched)
    assert same(untouched, map_of(text).map_array(array, fill=7))
    assert same(relayout(text, (14,), pad_value="T.float32(1.5)")(array), map_of(text).map_array(array, fill=1.5))
    by_index: Any = relayout(text, (14,), pad_value="lambda io, ii: T.Cast('float32', io*10 + ii)")(array)
    assert by_index[3, 2] == 32 and by_index[3, 3] == 33 and same(by_index.reshape(-1)[:14], array)
    anything: Any = relayout(text, (14,), pad_value="T.undef()")(array)
    assert same(anything.reshape(-1)[:14], array)


@one_in(4)
def test_a_nest_that_is_all_padding_is_none_when_lowered() -> None:
    """Where padding may hold anything the lowered program is without a nest that has no element: what is asked of the
    nests around it is asked of these.
    """
    text = "lambda i, j: [i//32, j//32, i%32, j%32]"
    change = read_relayout(text, (65, 33), "float32", False, None, None)
    plan = _Plan(Schedule(plain_program(change)), 4, threads=False)
    assert plan.cut("relayout", "i2", 1) and plan.cut("relayout_rest", "i0", 2)
    blocks = plan.blocks()
    assert blocks == ["relayout", "relayout_rest", "relayout_rest_rest"]
    stores = [plan.store_of(block, plan.schedule.lower()) for block in blocks]
    assert stores == [0, 1, None]
    assert plan.digits("relayout") is not None and plan.digits("relayout_rest_rest") is None


def test_a_function_and_an_index_map() -> None:
    """Maps come as functions and as IndexMap objects too."""
    array = some_array((6, 10), "int32")
    for index_map in (lambda i, j: [j, i], IndexMap.from_func(lambda i, j: [j, i])):
        assert same(relayout(index_map, (6, 10), "int32")(array), np.ascontiguousarray(array.T))


def test_the_kernel_says_what_it_is() -> None:
    """The map's report, the schedule with its trace, and the buffers are there to be asked."""
    kernel = relayout("NHWC->NCHW4c", (1, 6, 6, 10))
    assert kernel.map_report.injective.status is Status.PROVED
    assert kernel.buffers["B"].physical_shape == (1, 3, 6, 6, 4) and kernel.buffers["B"].is_output
    replayed = type(kernel.schedule).replay(kernel.schedule.original, kernel.schedule.trace)
    assert replayed.func == kernel.schedule.func
    assert kernel.report.self_check.startswith("equal")


@one_in(4)
def test_the_certificate_can_be_checked_again() -> None:
    """A certificate has every step, each proved on its text alone."""
    kernel = relayout("NHWC->NCHW4c", (1, 5, 7, 10))
    document = kernel.certificate.document
    primitives = [step["primitive"] for step in document["steps"]]
    assert "stream" in primitives and "flatten_buffer" in primitives
    assert len(primitives) == len(kernel.schedule.steps) + len(kernel.schedule.lowering_steps)


SIZES = [(1, 2, 3, 4), (2, 5, 3, 7), (1, 1, 1, 1), (2, 17, 33, 70)]


@one_in(4)
@pytest.mark.parametrize("text", ["NHWC->NCHW4c", "NCHW->NHWC", "OIHW->OIHW4i16o"])
def test_symbolic_shapes(text: str) -> None:
    """One kernel for all extents, each step proved for all of them."""
    there, back = relayout(text, "a,b,c,d"), relayout(text, "a,b,c,d", inverse=True)
    for size in SIZES:
        array = some_array(size, "float32")
        physical = map_of(text).map_array(array)
        found, again = np.full_like(physical, 9), np.full_like(array, 9)
        there.raw(A=array, B=found)
        back.raw(B=physical, A=again)
        assert same(found, physical) and same(again, array)
    check_proved(there)
    check_proved(back)


@one_in(4)
def test_a_condition_on_symbols_is_checked() -> None:
    """What the kernel's proofs assume of the extents is asked of every call."""
    kernel = relayout("lambda i, j: [i//4, j, i%4]", "n,8", where="n >= 4")
    texts = [assumption.text for assumption in kernel.assumptions]
    assert "n >= 4" in texts
    array = some_array((6, 8), "float32")
    physical = parse_index_map("lambda i, j: [i//4, j, i%4]").map_array(array)
    found = np.empty_like(physical)
    kernel.raw(A=array, B=found)
    assert same(found, physical)
