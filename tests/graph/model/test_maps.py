"""Facts about maps: when two of them store an array alike."""

from __future__ import annotations

import pytest

from layoutproof.graph.model.layout_maps import is_stored_alike
from layoutproof.ir.notations.map_text import parse_index_map


@pytest.mark.parametrize(
    ("first", "second", "shape", "alike"),
    [
        ("lambda c: [c // 2, c % 2]", "lambda c: [(c + 0) // 2, c % 2]", (4,), True),
        ("lambda c: [c // 2, c % 2]", "lambda c: [c // 4, c % 4]", (1,), False),
        ("lambda c: [c]", "lambda c: [c % 4]", (2,), False),
        ("lambda c: [c // 2, c % 2]", "lambda c: [c]", (4,), False),
    ],
)
def test_stored_alike(first: str, second: str, shape: tuple[int, ...], alike: bool) -> None:
    """One place for each index is not enough: the boxes, padding and all, are the same too."""
    assert is_stored_alike(parse_index_map(first), parse_index_map(second), shape) is alike
