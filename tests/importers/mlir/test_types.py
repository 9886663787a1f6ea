"""Types of arguments and results: callers of the function before call the one after with the same values."""

from __future__ import annotations

import pytest
from tests.importers.mlir.programs import compared, function

from layoutproof.ir.diagnostic import LayoutproofError

LOAD = "%c = arith.constant 0 : index\n%x = memref.load %m[%c] : TYPE\nreturn %x : f32"


def _loads(kind: str) -> str:
    return function(f"%m: {kind}", LOAD.replace("TYPE", kind), "f32")


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ("memref<4xf32, strided<[2]>>", "memref<4xf32>", "layout"),
        ("memref<4xf32>", "memref<4xf32, strided<[2]>>", "layout"),
        ("memref<4xf32>", "memref<4xf32, affine_map<(d0) -> (3 - d0)>>", "layout"),
        ("memref<4xf32, affine_map<(d0) -> (d0 + 1)>>", "memref<4xf32, affine_map<(d0) -> (3 - d0)>>", "layout"),
        ("memref<?xf32, strided<[?], offset: ?>>", "memref<?xf32>", "layout"),
        ("memref<4xf32>", "memref<4xf32, 3>", "memory space"),
    ],
)
def test_a_memref_of_another_layout_or_memory_is_refused(before: str, after: str, word: str) -> None:
    """The function after would find its elements elsewhere than the caller has them."""
    with pytest.raises(LayoutproofError, match=f"argument 0: its {word} is not that of the function before"):
        compared(_loads(before), _loads(after))


@pytest.mark.parametrize("after", ["memref<4xf32, strided<[?], offset: ?>>", "memref<4xf32, 0>", "memref<?xf32>"])
def test_a_type_may_become_more_general(after: str) -> None:
    """What callers pass is passed with its strides, offset and sizes."""
    assert compared(_loads("memref<4xf32>"), _loads(after)).status.value == "proved"


@pytest.mark.parametrize(
    ("before", "after"), [("vector<4xf32>", "tensor<4xf32>"), ("index", "i64"), ("tensor<1xf32>", "f32")]
)
def test_a_value_of_another_type_is_refused(before: str, after: str) -> None:
    """Also where both have the same numbers."""
    old, new = (function(f"%x: {kind}", f"return %x : {kind}", kind) for kind in (before, after))
    with pytest.raises(LayoutproofError, match="type is not that of the function before"):
        compared(old, new)


def test_a_module_that_says_how_wide_indices_are_is_refused() -> None:
    """Indices are of 64 bits here."""
    text = "module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32>} {\n" + _loads("memref<4xf32>") + "}\n"
    with pytest.raises(LayoutproofError, match=r"the attribute dlti\.dl_spec is not translated"):
        compared(text, text)
