"""Extents that an operation presupposes to be the same: the program after may presuppose no more than that before."""

from __future__ import annotations

import pytest
from tests.importers.mlir.programs import compared, function

from layoutproof.importers.mlir import read_functions
from layoutproof.ir.diagnostic import LayoutproofError

ZERO = "%c0 = arith.constant 0 : index\n"
LOOP = """%n = memref.dim %b, %c0 : memref<?xf32>
affine.for %i = 0 to %n {
  %x = affine.load %a[%i] : memref<?xf32>
  affine.store %x, %b[%i] : memref<?xf32>
}"""
COPY = "memref.copy %a, %b : memref<?xf32> to memref<?xf32>"


def test_a_copy_of_all() -> None:
    """A copy is one between memories of one size; a loop that reads a part of a larger one is none."""
    before, after = (function("%a: memref<?xf32>, %b: memref<?xf32>", ZERO + text) for text in (LOOP, COPY))
    assert compared(before, after).status.value == "refuted"
    assert compared(after, before).status.value == "proved"


INSERTED = """%n = tensor.dim %s, %c0 : tensor<?xf32>
%r = tensor.insert_slice %s into %t[0] [{}] [1] : tensor<?xf32> into tensor<?xf32>
return %r : tensor<?xf32>"""


def test_the_size_of_a_slice() -> None:
    """A slice that a tensor is inserted as has the tensor's size."""
    arguments = "%s: tensor<?xf32>, %t: tensor<?xf32>, %m: index"
    before, after = (function(arguments, ZERO + INSERTED.format(size), "tensor<?xf32>") for size in ("%n", "%m"))
    assert compared(before, before).status.value == "proved"
    assert compared(before, after).status.value == "refuted"


IN_LOOP = """scf.for %q = %c0 to %m step %c1 {{
  %n = memref.load %k[%c0] : memref<1xindex>
  %x = memref.alloc(%n) : memref<?xf32>
  %y = memref.alloc({}) : memref<?xf32>
  linalg.fill ins(%z : f32) outs(%x : memref<?xf32>)
  linalg.copy ins(%x : memref<?xf32>) outs(%y : memref<?xf32>)
}}"""


def test_extents_inside_of_a_loop() -> None:
    """Extents that callers do not know have to be the same, too: there they are not assumed to be."""
    arguments = "%m: index, %k: memref<1xindex>, %z: f32"
    constants = f"{ZERO}%c1 = arith.constant 1 : index\n%c9 = arith.constant 9 : index\n"
    before, after = (function(arguments, constants + IN_LOOP.format(size)) for size in ("%n", "%c9"))
    assert compared(before, before).status.value == "proved"
    assert compared(before, after).status.value != "proved"


BRANCH = """%r = scf.if %c -> (tensor<?xf32>) {
  scf.yield %t : tensor<?xf32>
} else {
  scf.yield %u : tensor<?xf32>
}
%n = tensor.dim %r, %c0 : tensor<?xf32>
return %n : index"""
CARRIED = """%c1 = arith.constant 1 : index
%r = scf.for %i = %c0 to %c1 step %c1 iter_args(%s = %t) -> (tensor<?xf32>) {
  scf.yield %u : tensor<?xf32>
}
%n = tensor.dim %r, %c0 : tensor<?xf32>
return %n : index"""


@pytest.mark.parametrize("body", [BRANCH, CARRIED], ids=["branch", "loop"])
def test_tensors_that_change_their_size(body: str) -> None:
    """A tensor that a branch or a loop yields is not taken to have the size of another one."""
    text = function("%c: i1, %t: tensor<?xf32>, %u: tensor<?xf32>", ZERO + body, "index")
    with pytest.raises(LayoutproofError, match="extents may not be those"):
        read_functions(text, "file.mlir")
