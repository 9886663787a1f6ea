"""What is no layout change is refused, with what is wrong and what was expected."""

from __future__ import annotations

from typing import Any

import pytest

from layoutproof import relayout
from layoutproof.ir.diagnostic import LayoutproofError

PLAIN = "lambda i, j: [j, i]"
REFUSED: list[tuple[dict[str, Any], str, tuple[str, ...]]] = [
    ({"index_map": "lambda i, j: [i + j]", "shape": (4, 5)}, "LP314", ("place of its own", "refuted", "first")),
    ({"index_map": "lambda i: [i//2, 0]", "shape": (4,)}, "LP314", ("every element", "refuted")),
    ({"index_map": PLAIN, "shape": (4,)}, "LP", ("2 indices", "1 extent")),
    ({"index_map": PLAIN, "shape": (4, -1)}, "LP", ("extent",)),
    ({"index_map": PLAIN, "shape": (4, 5), "dtype": "float33"}, "LP313", ("dtype", "float33", "bfloat16")),
    ({"index_map": PLAIN, "shape": (4, 5), "dtype": "float32x4"}, "LP313", ("float32x4", "one element")),
    ({"index_map": PLAIN, "shape": (4, 5), "dtype": "handle"}, "LP313", ("handle",)),
    ({"index_map": PLAIN, "shape": (4, 5), "dtype": 3}, "LP313", ("dtype",)),
    ({"index_map": PLAIN, "shape": (4, 5), "inverse": "yes"}, "LP313", ("inverse", "true or false")),
    ({"index_map": "NHWC->NCHX", "shape": (1, 2, 3, 4)}, "LP", ("NHWC", "axis W")),
    ({"index_map": "lambda i: [i - 3]", "shape": (4,)}, "LP", ("logical index",)),
    (
        {"index_map": "lambda i: [i//4, i%4]", "shape": (6,), "dtype": "int8", "pad_value": 1.5},
        "LP305",
        ("1.5", "int8"),
    ),
    ({"index_map": 7, "shape": (6,)}, "LP", ("index map",)),
]


@pytest.mark.parametrize(("arguments", "code", "words"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_refused_with_a_reason(arguments: dict[str, Any], code: str, words: tuple[str, ...]) -> None:
    """Each is a diagnostic with a code that names what was given."""
    with pytest.raises(LayoutproofError) as caught:
        relayout(**arguments)
    text = str(caught.value)
    assert code in text and all(word in text for word in words), text


def test_a_symbolic_map_that_is_not_injective() -> None:
    """A map that is injective for some extents only is refused."""
    with pytest.raises(LayoutproofError, match="LP314") as caught:
        relayout("lambda i: [i % 4]", "n")
    assert "place of its own" in str(caught.value)
