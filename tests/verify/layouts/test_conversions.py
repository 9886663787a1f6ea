"""Maps in other forms: each form is the map at every index, and a refusal names an index that shows it."""

from __future__ import annotations

from itertools import product

import pytest
from tests.random.layout_campaign import cells_of

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_index_map, parse_shape
from layoutproof.ir.notations.notation import Context
from layoutproof.ir.notations.triton import LinearLayout
from layoutproof.verify.layouts.conversions import Strides
from layoutproof.verify.maps.layout_text import read_layout


def the_map(text: str) -> IndexMap:
    return parse_index_map(text, symbols=("n", "m"))


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        ("lambda i, j: [i*8 + j]", (4, 8), "(4,8):(8,1)"),
        ("lambda i, j: [i*2 + j%2 + j//2*8]", (4, 8), "(4,(2,4)):(2,(1,8))"),
        ("lambda i: [i//4, i%4]", (14,), "14:1"),
        ("lambda i: [i%4]", (12,), "(4,3):(1,0)"),
        ("lambda i, j: [i, j ^ i % 8]", (16, 8), "Sw<3,0,3> o 0 o (16,8):(8,1)"),
        ("lambda i, j: [j*3 + 5]", (1, 6), "Sw<0,4,3> o 5 o (1,6):(0,3)"),
        ("lambda i: [7 - i]", (8,), "Sw<0,4,3> o 7 o 8:-1"),
    ],
)
def test_to_cute(text: str, shape: tuple[int, ...], expected: str) -> None:
    """A map is a CuTe layout in as few digits as possible, behind the smallest swizzle."""
    assert str(the_map(text).to_cute(shape)) == expected


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        ("lambda i: [i%3]", (8,), r"ends at 3, and 3 does not divide 8"),
        ("lambda i, j: [i*j]", (3, 3), r"goes to"),
        ("lambda i: [i*i]", (4,), r"ends at 2|goes to"),
        ("lambda i, j: [(i + j) % 4]", (4, 4), r"\(\d, \d\) goes to"),
    ],
)
def test_what_is_no_cute_layout(text: str, shape: tuple[int, ...], expected: str) -> None:
    """Where no digits and strides give the offset, an index shows it."""
    with pytest.raises(LayoutproofError, match=expected) as caught:
        the_map(text).to_cute(shape)
    assert caught.value.diagnostics[0].code == "LP136"


def test_to_strides() -> None:
    """Strides may be symbols, and an offset that is no sum of them is refused with an index."""
    found = the_map("lambda i, j: [i*m + j + 3]").to_strides(parse_shape("n,m"))
    assert isinstance(found, Strides)
    assert str(found) == "shape=(n,m), strides=(m,1), offset=3"
    with pytest.raises(LayoutproofError, match=r"3 goes to 0, not to 3"):
        the_map("lambda i: [i % 3]").to_strides((8,))


def test_to_linear() -> None:
    """The images of bits are found, and two bits that do not add are named."""
    found = the_map("lambda i, j: [i ^ j, i//2 + j%2*2]").to_linear((4, 4))
    assert isinstance(found, LinearLayout)
    assert found.inputs == (("i", ((1, 0), (2, 1))), ("j", ((1, 2), (2, 0))))
    with pytest.raises(LayoutproofError, match=r"the bits of 1 and 2 do not add: 3 goes to 0"):
        the_map("lambda i: [i % 3]").to_linear((8,))
    with pytest.raises(LayoutproofError, match="the index 0 goes to"):
        the_map("lambda i: [i + 1]").to_linear((8,))
    with pytest.raises(LayoutproofError, match="6 is no power of two"):
        the_map("lambda i: [i]").to_linear((6,))


def test_a_map_that_only_breaks_with_three_bits_is_not_linear() -> None:
    """Pairs of bits that add are not enough."""
    with pytest.raises(LayoutproofError, match=r"not linear over F2: 7 goes to"):
        the_map("lambda i: [i ^ (i//7)*8]").to_linear((8,))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("lambda i, j: [i | j, i & j, (i + j) ^ 5, i & 6, i << 2, j >> 1]", (6, 7)),
        ("lambda i, j: [(i*8 + j) ^ (i*8 + j >> 3 & 7)]", (8, 8)),
        ("lambda i, j: [i*3 - j + 20, (i - j)//3, (j - i) % 5]", (5, 9)),
    ],
)
def test_to_affine_map(text: str, shape: tuple[int, ...]) -> None:
    """The affine map has the map's value at every index, bitwise operations included."""
    given = the_map(text)
    back = read_layout(given.to_affine_map(shape)).index_map
    assert (cells_of(given, shape) == cells_of(back, shape)).all()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lambda i, j: [i*j]", "a product of two indices"),
        ("lambda i, j: [min(i, j)]", "is not made of"),
        ("lambda i, j: [i//(j + 1)]", "divides by an index"),
        ("lambda i, j: [i % -3]", "divides by a number below 1"),
        ("lambda i, j: [(i - j) ^ 1]", "may be below 0"),
    ],
)
def test_what_is_no_affine_map(text: str, expected: str) -> None:
    """The part that MLIR's affine maps lack is named."""
    with pytest.raises(LayoutproofError, match=expected):
        the_map(text).to_affine_map((4, 4))


def test_a_shape_that_is_none() -> None:
    """A number, and an extent below 1, are no shapes."""
    with pytest.raises(LayoutproofError, match="the shape is 8"):
        the_map("lambda i: [i]").to_cute(8)  # type: ignore[arg-type]  # what is refused
    with pytest.raises(LayoutproofError, match="at least 1"):
        the_map("lambda i: [i]").to_strides((0,))


def test_isl_and_back() -> None:
    """A map goes to `islpy.Map` and comes back with the same cells, piecewise ones too; everywhere without a shape."""
    for text, shape in (("lambda i, j: [i//4, (i ^ j) % 4]", (8, 8)), ("lambda i: [min(i, 7 - i)]", (8,))):
        relation = the_map(text).to_isl(shape)
        assert type(relation).__name__ == "Map"
        back = IndexMap.from_isl(relation)
        assert (cells_of(the_map(text), shape) == cells_of(back, shape)).all()
    assert "0 <=" not in str(the_map("lambda i: [2*i]").to_isl())
    with pytest.raises(LayoutproofError, match="a product of two variables"):
        the_map("lambda i, j: [i*j]").to_isl()


def test_a_partial_relation_is_no_index_map() -> None:
    """A relation on a part of its box keeps the condition, and is refused where a whole map is needed."""
    text = "{ [i, j] -> [i + 4j] : 0 <= i < 4 and 0 <= j <= i }"
    layout = read_layout(text)
    assert layout.where is not None
    with pytest.raises(LayoutproofError, match="defined only where `i >= j`"):
        IndexMap.from_isl(text)


def test_a_parametric_relation() -> None:
    """Parameters of a relation are symbols of the shape."""
    found = read_layout("[n, m] -> { [i, j] -> [j*2 + i] : 0 <= i < n and 0 <= j < 4m }")
    assert found.shape == parse_shape("n,4*m")


def test_a_pack_is_a_digit_layout_of_every_notation() -> None:
    """The tiles of a pack, a oneDNN tag and an XLA tile are one function."""
    shape = parse_shape("16,8")
    texts = ("outer_dims_perm = [0, 1] inner_dims_pos = [0, 1] inner_tiles = [8, 2]", "AB8a2b", "{1,0:T(8,2)}")
    cells = [cells_of(read_layout(text, shape).index_map, (16, 8)) for text in texts]
    assert all((cells[0] == other).all() for other in cells)


def test_strides_of_the_context_are_not_needed() -> None:
    """A context without shape says what is missing where a text needs one."""
    with pytest.raises(LayoutproofError, match="give the logical shape"):
        read_layout("strides=(4,1)")
    assert Context().shape is None


def test_every_point_of_a_linear_layout() -> None:
    """The expression that is written for bases has the XOR of the bases at every index."""
    layout = LinearLayout((("a", ((1, 6), (3, 1), (0, 5))), ("b", ((2, 2), (2, 4)))), (4, 8))
    index_map = layout.index_map()
    for point in product(range(8), range(4)):
        expected = [0, 0]
        for value, (_, bases) in zip(point, layout.inputs, strict=True):
            for bit, basis in enumerate(bases):
                if value >> bit & 1:
                    expected = [x ^ y for x, y in zip(expected, basis, strict=True)]
        assert list(index_map.evaluate(point)) == expected == list(layout(point))
