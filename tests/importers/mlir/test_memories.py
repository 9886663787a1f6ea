"""Which memory a value is, and how long there is one: each pair was once proved, and differs."""

from __future__ import annotations

import pytest
from tests.importers.mlir.programs import compared, function

from layoutproof.importers.mlir import read_functions
from layoutproof.ir.diagnostic import LayoutproofError

INDEX = """%c0 = arith.constant 0 : index
%c2 = arith.constant 2 : index
%zero = arith.constant 0.0 : f32
%one = arith.constant 1.0 : f32
"""
FORALL = """%r = scf.forall (%i) in (4) shared_outs(%s = %t) -> (tensor<4xf32>) {
  %u = tensor.insert %one into %s[%i] : tensor<4xf32>
  %v = tensor.extract %u[%i] : tensor<4xf32>
  memref.store %v, %o[%i] : memref<4xf32>
  scf.forall.in_parallel {
  }
}
return %r : tensor<4xf32>"""
SERIAL = """affine.for %i = 0 to 4 {{
  affine.store %one, %o[%i] : memref<4xf32>
}}
%r = tensor.generate {{
^bb0(%i: index):
  %x = tensor.extract %t[%i] : tensor<4xf32>
  tensor.yield {} : f32
}} : tensor<4xf32>
return %r : tensor<4xf32>"""


def test_what_a_forall_shares() -> None:
    """A result of `scf.forall` has what is inserted at the end, not what iterations make of it in their own tensors."""
    arguments = "%t: tensor<4xf32>, %o: memref<4xf32>"
    before = function(arguments, INDEX + FORALL, "tensor<4xf32>")
    for value, wanted in (("%x", "proved"), ("%one", "refuted")):
        after = function(arguments, INDEX + SERIAL.format(value), "tensor<4xf32>")
        assert compared(before, after).status.value == wanted


REGION = """%m = memref.alloc() : memref<1xf32>
memref.store %one, %m[%c0] : memref<1xf32>
%r = scf.execute_region -> memref<1xf32> {
  scf.yield %m : memref<1xf32>
}
%x = memref.load %r[%c0] : memref<1xf32>
memref.store %zero, %m[%c0] : memref<1xf32>
memref.store %x, %o[%c0] : memref<1xf32>"""


def test_memory_that_a_region_yields() -> None:
    """Memory that a region yields is that which it was given, so a store to the one is one to the other."""
    before = function("%o: memref<1xf32>", INDEX + REGION)
    for value, wanted in (("%one", "proved"), ("%zero", "refuted")):
        after = function("%o: memref<1xf32>", f"{INDEX}memref.store {value}, %o[%c0] : memref<1xf32>")
        assert compared(before, after).status.value == wanted


SHIFTED = "memref<4xf32, strided<[1], offset: 2>>"
RETURNED = """%m = memref.ALLOC() : memref<1xf32>
memref.store %one, %m[%c0] : memref<1xf32>
END
return %m : memref<1xf32>"""
REFUSED = {
    "freed": (RETURNED.replace("ALLOC", "alloc").replace("END", "memref.dealloc %m : memref<1xf32>"), "it was freed"),
    "of the stack": (RETURNED.replace("ALLOC", "alloca").replace("END", ""), "ends with its function"),
    "before an offset": (
        f"""%m, %f, %n, %s = memref.extract_strided_metadata %b : {SHIFTED} -> memref<f32>, index, index, index
        %x = memref.load %m[] : memref<f32>
        memref.store %x, %o[%c0] : memref<1xf32>
        return %o : memref<1xf32>""",
        "with a layout where it begins",
    ),
    "beyond one number": (
        """%m = memref.reinterpret_cast %a to offset: [0], sizes: [4], strides: [1] : memref<f32> to memref<4xf32>
        %x = memref.load %m[%c2] : memref<4xf32>
        memref.store %x, %o[%c0] : memref<1xf32>
        return %o : memref<1xf32>""",
        "at another place",
    ),
    "outside of an axis": (
        """%m = memref.expand_shape %a [] output_shape [1] : memref<f32> into memref<1xf32>
        %x = memref.load %m[%c2] : memref<1xf32>
        memref.store %x, %o[%c0] : memref<1xf32>
        return %o : memref<1xf32>""",
        "may be outside",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_memory_that_is_not_there(name: str) -> None:
    """Memory that has ended, or that is no part of what is known, is refused."""
    body, message = REFUSED[name]
    text = function(f"%a: memref<f32>, %b: {SHIFTED}, %o: memref<1xf32>", INDEX + body, "memref<1xf32>")
    with pytest.raises(LayoutproofError, match=message):
        read_functions(text, "file.mlir")


def test_a_number_as_axes() -> None:
    """Memory for one number under axes of extent 1 is that number."""
    expanded = """%m = memref.expand_shape %a [] output_shape [1, 1] : memref<f32> into memref<1x1xf32>
    memref.store %one, %m[%c0, %c0] : memref<1x1xf32>"""
    before, after = (
        function("%a: memref<f32>", INDEX + body) for body in (expanded, "memref.store %one, %a[] : memref<f32>")
    )
    assert compared(before, after).status.value == "proved"


USED = """%t = bufferization.to_tensor %a restrict : memref<4xf32>
%e = tensor.empty() : tensor<4xf32>
%z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
%s = linalg.add ins(%t, %z : tensor<4xf32>, tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
{}%x = tensor.extract %t[%c0] : tensor<4xf32>
{}memref.store %x, %o[%c0] : memref<1xf32>"""
STORE = "memref.store %one, %a[%c0] : memref<4xf32>\n"


def test_memory_that_is_written_under_a_tensor() -> None:
    """A tensor made of memory is undefined once that is written; other tensors are no memory."""
    arguments = "%a: memref<4xf32>, %o: memref<1xf32>"
    after = function(arguments, INDEX + USED.format("", STORE))
    plain = f"%x = memref.load %a[%c0] : memref<4xf32>\n{STORE}memref.store %x, %o[%c0] : memref<1xf32>"
    assert compared(function(arguments, INDEX + plain), after).status.value == "proved"
    with pytest.raises(LayoutproofError, match="while its tensor is used"):
        read_functions(function(arguments, INDEX + USED.format(STORE, "")), "file.mlir")


T = "tensor<4xf32>"
YIELDS = f"""%r = scf.for %i = %c0 to %c2 step %c2 iter_args(%a = %t) -> ({T}) {{
  %e = tensor.empty() : {T}
  scf.yield %e : {T}
}}
return %r : {T}"""
COPIED = f"""%a = bufferization.alloc_tensor() copy(%t) : {T}
%r = tensor.insert %one into %a[%c0] : {T}
%x = tensor.extract %a[%c2] : {T}
%s = tensor.insert VALUE into %r[%c2] : {T}
return %s : {T}"""


def test_tensors_without_contents() -> None:
    """A tensor without contents that a loop yields has none; one that is allocated as a copy has those of another."""
    with pytest.raises(LayoutproofError, match="without contents that an iteration yields"):
        read_functions(function(f"%t: {T}", INDEX + YIELDS, T), "file.mlir")
    after = function(f"%t: {T}", f"{INDEX}%r = tensor.insert %one into %t[%c0] : {T}\nreturn %r : {T}", T)
    for value, wanted in (("%x", "proved"), ("%one", "refuted")):
        before = function(f"%t: {T}", INDEX + COPIED.replace("VALUE", value), T)
        assert compared(before, after).status.value == wanted


def test_results_that_are_more_defined() -> None:
    """A result that the program before leaves undefined may be anything after; one that it stores may not."""
    fresh = f"{INDEX}%m = memref.alloc() : memref<1xf32>\n{{}}return %m : memref<1xf32>"
    stored = "memref.store %one, %m[%c0] : memref<1xf32>\n"
    nothing, something = (function("", fresh.format(text), "memref<1xf32>") for text in ("", stored))
    assert compared(nothing, something).status.value == "unknown"
    assert compared(something, nothing).status.value == "refuted"
