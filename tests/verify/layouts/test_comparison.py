"""Two layouts: the same function, another one with an index, or the same up to the order of axes; and one layout's
properties, against brute force.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.random.layout_campaign import cells_of
from tests.random.layouts import DRAWS

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import const
from layoutproof.ir.notations.map_text import parse_index_map, parse_shape
from layoutproof.verify.layouts.comparison import compare_layouts
from layoutproof.verify.layouts.described import describe_layout
from layoutproof.verify.layouts.offsets import offset_map
from layoutproof.verify.layouts.properties import contiguity_by_points, properties_of
from layoutproof.verify.maps.layout_text import read_layout
from layoutproof.verify.verdict.verdict import Status

SAME = [
    ("(8,8):(8,1)", "memref<8x8xf32>", None),
    ("aBcd8b", "NCHW->NCHW8c", "1,16,4,4"),
    ("aBcd8b", "(1,(8,2),4,4):(0,(1,128),32,8)", "1,16,4,4"),
    ("nhwc", "shape=(2,3,4,5), memory_format=channels_last", "2,3,4,5"),
    ("nhwc", "n c h w -> n h w c", "2,3,4,5"),
    ("{0,1}", "ba", "4,8"),
    ("Sw<3,0,3> o 0 o (8,8):(8,1)", "lambda i, j: [i, j ^ i]", "8,8"),
    ("#linear<{register=[], lane=[[1],[2]], warp=[[4]], block=[]}>", "lambda r, l, w, b: [l + w*4]", "1,4,2,1"),
    ("lambda i, j: [i*m + j]", "lambda a, b: [b + m*a]", "n,m"),
    ("{ [i,j] -> [i+4j] : 0<=i<4 and 0<=j<=i }", "{ [a,b] -> [4b+a] : 0<=b<4 and b<=a<4 }", None),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "shape"), SAME)
def test_the_same_layout_in_two_notations(first: str, second: str, shape: str | None) -> None:
    """Layouts that are one function are proved to be it, whatever notation they are in."""
    given = None if shape is None else parse_shape(shape)
    own = ("(", "Sw<", "#linear", "memref", "{ [")
    texts = [read_layout(text, None if text.startswith(own) else given) for text in (first, second)]
    found = compare_layouts(*texts)
    assert found.same.status is Status.PROVED
    assert found.axes == tuple(range(len(found.shape)))


def test_a_difference_is_an_index() -> None:
    """A counterexample is an index whose two images differ as it says."""
    found = compare_layouts(read_layout("(4,(2,4)):(2,(1,8))"), read_layout("shape=(4,8), strides=(2,1)"))
    example = found.same.counterexample
    assert found.same.status is Status.REFUTED and example is not None
    for layout, side in ((found.first, "first"), (found.second, "second")):
        assert list(layout.index_map.evaluate(example["index"])) == example[side]
    assert example["first"] != example["second"]


def test_the_same_up_to_the_order_of_axes() -> None:
    """A transposed layout is another function, and the order of axes that makes it the same is found."""
    found = compare_layouts(read_layout("(4,8):(8,1)"), read_layout("(8,4):(1,8)"))
    assert found.same.status is Status.REFUTED
    assert found.axes == (1, 0)


def test_other_domains() -> None:
    """Shapes that differ are told by an index of one of them, domains by an index where one map has no image."""
    shapes = compare_layouts(read_layout("(8,8):(1,8)"), read_layout("(8,9):(1,8)"))
    assert shapes.same.counterexample == {"index": [0, 8], "first_shape": [8, 8], "second_shape": [8, 9]}
    partial, whole = "{ [i,j] -> [i+4j] : 0<=i<4 and 0<=j<=i }", "{ [i,j] -> [i+4j] : 0<=i<4 and 0<=j<4 }"
    domains = compare_layouts(read_layout(partial), read_layout(whole)).same
    assert domains.counterexample == {"index": [0, 1], "first": None, "second": [4]}
    with pytest.raises(LayoutproofError, match="another number of axes"):
        compare_layouts(read_layout("8:1"), read_layout("(8,8):(1,8)"))
    with pytest.raises(LayoutproofError, match="neither layout says its shape"):
        compare_layouts(read_layout("nhwc"), read_layout("nchw"))


def test_the_conversion_leads_from_one_to_the_other() -> None:
    """The first layout's cells go, by the conversion, to the second's."""
    found = compare_layouts(read_layout("aBcd8b", parse_shape("2,16,3,3")), read_layout("(2,16,3,3):(144,9,3,1)"))
    assert found.conversion.index_map is not None
    through = found.conversion.index_map.compose(found.first.index_map)
    assert (cells_of(through, (2, 16, 3, 3)) == cells_of(found.second.index_map, (2, 16, 3, 3))).all()


def brute_runs(values: np.ndarray, axis: int) -> int:
    """The longest run: each run as long as the last allows is tried, from the whole axis down."""
    moved = np.moveaxis(values, axis, -1)
    extent = moved.shape[-1]
    for run in range(extent, 0, -1):
        index = np.arange(extent)
        if (moved == moved[..., index - index % run] + index % run).all():
            return run
    return 1


@pytest.mark.parametrize("notation", ["cute", "strides", "onednn", "xla"])
def test_runs_and_alignment_by_brute_force(notation: str) -> None:
    """Contiguous runs, and the alignment of their beginnings, are those that trying every length finds."""
    draw = Random(f"runs of {notation}")
    for _ in range(25):
        layout = DRAWS[notation](draw)
        shape = tuple(const(extent) for extent in layout.shape)
        index_map = read_layout(layout.text, None if layout.says_shape else shape).index_map
        offset = offset_map(index_map, shape) if layout.cells.min() >= 0 else index_map
        values = cells_of(offset, layout.shape).reshape(layout.shape)
        found = contiguity_by_points(offset, layout.shape)
        for axis, (run, start) in enumerate(zip(found.runs, found.alignments, strict=True)):
            expected = brute_runs(values, axis)
            assert run == expected or (run % expected == 0 and run > layout.shape[axis]), layout
            first = np.moveaxis(values, axis, 0)[::run]
            assert start == np.gcd.reduce(first, axis=None), layout


def test_broadcast_axes() -> None:
    """An axis that no cell depends on is found, though its index is written."""
    shape = parse_shape("4,8,n")
    index_map = parse_index_map("lambda i, j, k: [i*0 + j + (k - k)]", symbols=("n",))
    assert properties_of(index_map, shape).broadcast == (0, 2)


def test_the_widest_vector() -> None:
    """A vector lies in one run, begins at its multiples, and fills its axis evenly."""
    cases = [("(4,8):(8,1)", (1, 8)), ("(4,6):(8,1)", (1, 2)), ("shape=(4,8), strides=(8,1), offset=4", (1, 4))]
    for text, expected in cases:
        known = describe_layout(read_layout(text)).properties.contiguity
        assert known is not None and known.vector == expected


def test_runs_of_large_and_symbolic_shapes_are_those_of_strides() -> None:
    """Where not every offset is computed, strides tell, and other layouts have an honest reason."""
    large = properties_of(parse_index_map("lambda i, j: [i*4096 + j]"), parse_shape("4096,4096")).contiguity
    assert large is not None and large.runs == (1, 4096) and large.vector == (1, 4096)
    swizzled = properties_of(parse_index_map("lambda i, j: [i*4096 + (j ^ i)]"), parse_shape("4096,4096"))
    assert swizzled.contiguity is None and swizzled.reason is not None and "strided layouts only" in swizzled.reason


def test_a_swizzle_of_many_points_is_compared_over_bits() -> None:
    """Two million points are decided without visiting them, and a difference is still an index."""
    layout = read_layout("Sw<3,4,3> o 0 o (2048,1024):(1024,1)")
    other = "lambda i, j: [i*1024 + (j ^ j // 128 % 8 * 16)]"
    assert layout.shape is not None
    second = read_layout(other, layout.shape)
    found = compare_layouts(layout, second).same
    assert found.status is Status.PROVED and found.engine in ("symbolic", "GF(2)")
    wrong = compare_layouts(layout, read_layout(other.replace("* 16", "* 8"), layout.shape)).same
    example = wrong.counterexample
    assert wrong.engine == "GF(2)" and example is not None and example["first"] != example["second"]


def test_one_layout_in_every_notation() -> None:
    """A description has a text for each notation, or the reason why there is none."""
    found = describe_layout(read_layout("aBcd8b", parse_shape("1,16,4,4"))).to_dict()
    assert found["notations"]["cute"] == "(1,(8,2),4,4):(0,(1,128),32,8)"
    assert found["notations"]["xla"] == "{3,2,1,0:T(8,1,1)}"
    assert found["notations"]["einops"] == "a (b0 b1) c d -> a b0 c d b1, b1=8"
    assert found["notations"]["strides"] is None and "goes to" in found["reasons"]["strides"]


def test_flattening_keeps_the_order_of_cells() -> None:
    """The offset of a map of several axes is the row-major position in its physical box."""
    index_map = parse_index_map("lambda i: [i//4, i%4]")
    flat = offset_map(index_map, parse_shape("14"))
    assert (cells_of(flat, (14,))[:, 0] == np.arange(14)).all()
