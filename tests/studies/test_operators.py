"""The operators of studies: every template is a program, for each of its types, with extents and without."""

from __future__ import annotations

import pytest
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.stmt import Block
from layoutproof.ir.visit import walk
from layoutproof.studies.cells import PAD_VALUES, pad_value
from layoutproof.studies.layouts import layout_named
from layoutproof.studies.operators import library, operator_of_text
from layoutproof.verify.maps.check_map import check_map

OPERATORS = library()


@one_in(10)
@pytest.mark.parametrize("name", OPERATORS)
def test_a_template_is_a_program(name: str) -> None:
    """It is read for each type and shape, and has the buffers and blocks that its entry speaks of, with their axes."""
    operator = OPERATORS[name]
    for dtype in operator.types:
        for shape in ("fixed", "symbolic", "1x1", "3x30"):
            func = operator.program(dtype, operator.sizes(shape))
            blocks = {n.name: n for n in walk(func.body) if isinstance(n, Block)}
            ranks = {b.name: b.rank for b in (*func.buffers, *(b for n in blocks.values() for b in n.alloc_buffers))}
            assert {buffer: len(letters) for buffer, letters in operator.buffers.items()}.items() <= ranks.items()
            assert all(len(blocks[block].iter_vars) == len(letters) for block, letters in operator.blocks.items())


@one_in(4)
@pytest.mark.parametrize("name", ["block2", "block4", "block128", "offset", "two-axes", "swizzle", "texture"])
def test_a_layout_is_injective(name: str) -> None:
    """Every layout stores each element of a row in a cell of its own."""
    text = layout_named(name).map_text("rn")
    assert text is not None
    check_map(text, (2, 14)).require()


def test_letters_are_checked() -> None:
    """A buffer of a user's program that does not exist, and letters that do not fit, are named."""
    text = OPERATORS["relu"].script("float32", {"m": 2, "n": 14})
    for buffers, message in (({"X": "rn"}, "no buffer X"), ({"A": "n"}, "takes 2"), ({"A": "xy"}, "takes 2")):
        with pytest.raises(LayoutproofError, match=message):
            operator_of_text("own", text, buffers, {"update": "rn"}, ("B",))


def test_values_of_a_type() -> None:
    """Integers have no signed zero, no infinity and no NaN, and `ones` has all bits set."""
    assert {n for n in PAD_VALUES if pad_value(n, "int8") is None} == {"-0", "-inf", "inf", "nan"}
    assert (pad_value("ones", "int8"), pad_value("lowest", "uint8"), pad_value("highest", "uint8")) == (-1, 0, 255)
    assert pad_value("ones", "float32") is None
