"""Layout strings and the maps between them."""

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.notations.layout_strings import layout_map, parse_layout


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        ("NHWC", "NCHW", "lambda n, h, w, c: [n, c, h, w]"),
        ("NHWC", "NCHW4c", "lambda n, h, w, c: [n, c//4, h, w, c%4]"),
        ("NCHW", "NCHW16c", "lambda n, c, h, w: [n, c//16, h, w, c%16]"),
        ("NCHW4c", "NHWC", "lambda n, c, h, w, c_4: [n, h, w, c*4 + c_4]"),
        ("OIHW", "OIHW4i16o4i", "lambda o, i, h, w: [o//16, i//16, h, w, i//4%4, o%16, i%4]"),
        ("NCHW4c", "CNHW4c", "lambda n, c, h, w, c_4: [c, n, h, w, c_4]"),
        ("NCHW4c", "NCHW8c", "lambda n, c, h, w, c_4: [n, (c*4 + c_4)//8, h, w, (c*4 + c_4)%8]"),
        ("C", "4cC", "lambda c: [c%4, c//4]"),
    ],
)
def test_map_between_layouts(source: str, target: str, text: str) -> None:
    """The map from one layout string to another, tiles included on both sides."""
    assert index_map_text(layout_map(source, target)) == text


def test_nested_tiles_lie_as_numpy_lays_them() -> None:
    """OIHW4i16o4i is the reshape and transpose that its letters say, and its map back undoes it."""
    array = np.arange(32 * 48 * 3 * 2).reshape(48, 32, 3, 2)
    physical = layout_map("OIHW", "OIHW4i16o4i").map_array(array)
    expected = array.reshape(3, 16, 2, 4, 4, 3, 2).transpose(0, 2, 5, 6, 3, 1, 4)
    assert np.array_equal(physical, expected)
    assert np.array_equal(layout_map("OIHW4i16o4i", "OIHW").map_array(physical), array)


def test_strides_of_the_parts() -> None:
    """Each part knows how far one step along it goes along its axis."""
    assert [(a.name, a.extent, a.stride) for a in parse_layout("OI4i16o2i").axes] == [
        ("O", None, 16), ("I", None, 8), ("I", 4, 2), ("O", 16, 1), ("I", 2, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("NCHW", "NHW", "NCHW has an axis C that NHW lacks"),
        ("NHW", "NCHW", "NCHW has an axis C that NHW lacks"),
        ("NCHW", "NCHWc", "the tile c has no size"),
        ("NCHW", "NCHW4x", "belongs to an axis X that NCHW4x lacks"),
        ("NCCHW", "NCHW", "the axis C stands twice"),
        ("NCHW", "NCHW4C", "the axis C stands twice|takes no size"),
        ("NCHW", "", "the text is empty"),
        ("NCHW", "NCHW4", "a size without an axis"),
        ("NCHW", "NC-HW", "'-', which is no axis"),
        ("NCHW", "NCHW0c", "needs a size from 1"),
        ("NCHW", "NCHW99999999999c", "too large"),
        ("NCHW", "NCHW65536c65536c", "past 32 bits"),
        ("NCHW", "NCHW\u0664c", "which is no axis"),
    ],
)
def test_bad_layouts(source: str, target: str, message: str) -> None:
    """Each bad layout string has its own message, with its place."""
    with pytest.raises(LayoutproofError, match=message) as caught:
        layout_map(source, target)
    assert caught.value.diagnostics[0].span is not None


def test_two_layouts_are_a_map_wherever_one_is_taken() -> None:
    """`NHWC->NCHW4c` stands for its lambda: in the API, in a schedule, in a trace."""
    text, whole = "NHWC->NCHW4c", "lambda n, h, w, c: [n, c//4, h, w, c%4]"
    shape = (1, 4, 4, 8)
    assert lp.check_map(text, shape).to_dict()["index_map"] == whole
    program = (
        "@T.prim_func(s_tir=True)\n"
        'def copy(A: T.Buffer((1, 4, 4, 8), "float32"), B: T.Buffer((1, 4, 4, 8), "float32")):\n'
        "    for i, j, k, l in T.grid(1, 4, 4, 8):\n"
        '        with T.sblock("copy"):\n'
        '            a, b, c, d = T.axis.remap("SSSS", [i, j, k, l])\n'
        "            B[a, b, c, d] = A[a, b, c, d]\n"
    )
    schedule = lp.Schedule(lp.loads(program))
    schedule.transform_layout("copy", "A", text)
    again = lp.Schedule.replay(
        lp.loads(program), [["transform_layout", {"block": "copy", "buffer": "A", "index_map": text}]]
    )
    assert schedule.trace == again.trace and schedule.trace[0][1]["index_map"] == whole
    with pytest.raises(lp.LayoutproofError, match="LP1"):
        lp.check_map("NHWC->NCHW4d", shape)
