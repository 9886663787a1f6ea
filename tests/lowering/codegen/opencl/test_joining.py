"""Lanes that are joined into vectors, and lanes that are left as they are because joining them could mean something
else.
"""

import pytest

from layoutproof.lowering.codegen.opencl.cl_lanes import elements_in_a_row, same_of_all, whole_texel


def is_float_pointer(name: str) -> bool:
    """A and B point to floats."""
    return name in ("A", "B")


def lanes(text: str) -> list[str]:
    """Four lanes: `@` stands for the channel, `#` for what is added to the first element's place."""
    return [text.replace("@", channel).replace("#", f" + {k}" if k else "") for k, channel in enumerate("xyzw")]


def test_places_that_are_numbers() -> None:
    """Constant places are neighbours by their numbers."""
    assert elements_in_a_row(["A[0]", "A[1]", "A[2]", "A[3]"], is_float_pointer) == "vload4(0, A)"
    assert elements_in_a_row(["A[8]", "A[9]", "A[10]", "A[11]"], is_float_pointer) == "vload4(0, A + 8)"
    assert elements_in_a_row(["A[8]", "A[9]", "A[11]", "A[10]"], is_float_pointer) is None


def test_a_texel_is_its_four_channels_in_order() -> None:
    """All four of one variable, each in its place."""
    assert whole_texel(lanes("t.@")) == "t"
    assert whole_texel(["t.x", "t.y", "t.w", "t.z"]) is None
    assert whole_texel(["t.x", "u.y", "t.z", "t.w"]) is None
    assert whole_texel(["f(t).x", "f(t).y", "f(t).z", "f(t).w"]) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A[i#]", "vload4(0, A + i)"),
        ("A[y * 8 + x * 4#]", "vload4(0, A + (y * 8 + x * 4))"),
        ("C[i#]", None),  # not a pointer to floats
        ("A[c ? i : j#]", None),  # one more on one side only
        ("A[i & j#]", None),
        ("A[i << 2#]", None),
        ("A[P[i]#]", None),
        ("-A[i#]", None),
    ],
)
def test_elements_in_a_row(text: str, expected: str | None) -> None:
    """Four neighbours are one load, if what is added is added to the whole place."""
    assert elements_in_a_row(lanes(text), is_float_pointer) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t.@ * 2.0f + A[i#]", "t * 2.0f + vload4(0, A + i)"),
        ("(t.@ - s) / (u.@ + t.x)", "(t - s) / (u + t.x)"),
        ("t.@ * A[y]", "t * A[y]"),
        ("-t.@ + (-1.0f) * 0x1.8p-3f", "-t + (-1.0f) * 0x1.8p-3f"),
        ("lp_channel_f32(s, (k + 1) % 4) * t.@", "lp_channel_f32(s, (k + 1) % 4) * t"),
        ("t.@ + read_imagef(T, p).y * s", "t + read_imagef(T, p).y * s"),
        ("a * b", None),  # nothing differs: one value for all is another thing
        ("lp_max_f32(t.@, 0.0f)", None),
        ("(float)t.@ * 2.0f", None),
        ("(float)k * t.@", None),
        ("t.@ * 2", None),  # an integer may be in arithmetic of its own type
        ("x < 2 ? t.@ : 1.0f", None),
        ("C[i#] + t.@", None),
        ("read_imagef(T, p).@ + 1.0f", None),
        ("t.@ % u.@", None),
        ("sqrt(t.@)", None),
    ],
)
def test_the_same_of_all_lanes(text: str, expected: str | None) -> None:
    """Float arithmetic of channels, neighbours and common values is written on vectors; nothing else is."""
    assert same_of_all(lanes(text), is_float_pointer) == expected


def test_lanes_that_differ_otherwise_are_left_alone() -> None:
    """Another operator, another constant or another shape in one lane."""
    assert same_of_all(["t.x + 1.0f", "t.y + 1.0f", "t.z - 1.0f", "t.w + 1.0f"], is_float_pointer) is None
    assert same_of_all(["t.x + 1.0f", "t.y + 1.0f", "t.z + 2.0f", "t.w + 1.0f"], is_float_pointer) is None
    assert same_of_all(["t.x", "t.y", "t.z", "t.w + 1.0f"], is_float_pointer) is None
