"""Garbage in every parser: a layout, or an error with a place in the text; never another exception."""

from __future__ import annotations

from random import Random

import pytest
from tests.random.layouts import DRAWS

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.notations.map_text import parse_shape
from layoutproof.ir.notations.notation import Notation
from layoutproof.verify.maps.layout_text import read_layout

PIECES = [
    "(", ")", "[", "]", "{", "}", "<", ">", ":", ",", "->", "o", "@", "1@0", "Sw<3,3,3>", "#", "=", "-", "*", "0", "1",
    "-1", "8", "99999999999999999999", "lambda", "i", "a", "B", "4b", "affine_map<", "memref<", "floordiv", "mod", "T",
    "shape=", "strides=", "order=", "register", "lane = [[0, 1]]", "#ttg.slice<{dim = 0, parent = ", "\n", " ", "...",
    "\u00e9", "\x00", "f32", "S(1)", "and", "SM80_16x8x16_F32F16F16F32_TN", ".A", "instrShape = [16, 8]", "true",
]  # fmt: skip
GOOD = {
    "lambda": "lambda i, j: [i//4, j, i%4]",
    "string": "NHWC->NCHW4c",
    "mma": "SM80_16x8x16_F32F16F16F32_TN.A",
}
SHAPES = [None, "8,8", "4", "n,8", "2,3,4,5"]


def damaged(draw: Random, text: str) -> str:
    """A text with pieces put in, taken out, doubled or changed."""
    for _ in range(draw.randint(1, 4)):
        start = draw.randint(0, len(text))
        end = min(len(text), start + draw.choice([0, 0, 1, 1, 2, 6]))
        text = text[:start] + draw.choice([*PIECES, "", "", text[start:end] * 2]) + text[end:]
    return text


def garbage(draw: Random, notation: Notation) -> str:
    """Pieces in a row, or a layout of the notation that was damaged."""
    if draw.random() < 0.25:
        return draw.choice(["", " "]).join(draw.choice(PIECES) for _ in range(draw.randint(0, 9)))
    good = GOOD[notation] if notation in GOOD else DRAWS[notation](draw).text
    return damaged(draw, good)


@pytest.mark.parametrize("notation", Notation)
def test_garbage_is_an_error_with_its_place(notation: Notation) -> None:
    """What is no layout is refused with a line and a column of the text, and a message that says what was read."""
    draw = Random(f"garbage in {notation}")
    refused = 0
    for _ in range(120):
        text, shape = garbage(draw, notation), draw.choice(SHAPES)
        given = None if shape is None else parse_shape(shape)
        try:
            read_layout(text, given, notation=notation, axes={"p": 2} if notation is Notation.EINOPS else None)
        except LayoutproofError as problem:
            refused += 1
            for found in problem.diagnostics:
                assert found.span is not None, (text, str(problem))
                assert 1 <= found.span.line <= text.count("\n") + 1 and found.span.column >= 0, (text, str(problem))
                assert found.code != codes.NOTATION or "expected" in found.message or len(found.message) > 20
    assert refused > 40


@pytest.mark.parametrize(
    "text",
    ["{ [i] -> [4294967296*i] : 0 <= i < 6 }", "{ [i] -> [i] : 0 <= i < 99999999999999999999 }"],
)
def test_numbers_that_no_index_has(text: str) -> None:
    """A relation with numbers beyond the types of indices is refused with its place."""
    with pytest.raises(LayoutproofError, match="does not fit"):
        read_layout(text, None, notation=Notation.ISL)
