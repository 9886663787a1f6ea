"""`nsw` and `nuw` of indices: obligations of the program after, decided by the ranges that indices have."""

from __future__ import annotations

import pytest
from tests.importers.mlir.programs import compared, function

from layoutproof.ir.diagnostic import LayoutproofError

ARGUMENTS = "%n: index, %i: memref<1xindex>, %a: memref<?xindex>"
HEAD = "%c0 = arith.constant 0 : index\n%c4 = arith.constant 4 : index\n"
TAIL = "memref.store %k, %a[%c0] : memref<?xindex>"
SUMS = {
    "argument": "%k = arith.addi %n, %c4{} : index\n",
    "data": "%x = memref.load %i[%c0] : memref<1xindex>\n%k = arith.addi %x, %x{} : index\n",
    "extent": "%m = memref.dim %a, %c0 : memref<?xindex>\n%k = arith.muli %m, %c4{} : index\n",
}
FITS = {"argument": ("nsw",), "data": (), "extent": ("nsw", "nuw")}


@pytest.mark.parametrize("flag", ["nsw", "nuw"])
@pytest.mark.parametrize("name", SUMS)
def test_flags_of_indices(name: str, flag: str) -> None:
    """A flag that the ranges of indices do not imply is refused; `nuw` is none of a sum of negative numbers."""
    before, after = (function(ARGUMENTS, HEAD + SUMS[name].format(f) + TAIL) for f in ("", f" overflow<{flag}>"))
    if flag in FITS[name]:
        assert compared(before, after).status.value == "proved"
    else:
        with pytest.raises(LayoutproofError, match=f"the flags {flag} of an index"):
            compared(before, after)
    assert compared(after, before).status.value == "proved"
