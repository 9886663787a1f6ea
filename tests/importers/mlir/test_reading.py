"""Reading MLIR: the forms that it has, and errors with their place for what has no translation."""

from __future__ import annotations

import re

import pytest
from tests.importers.mlir.programs import compared, function
from tests.shares import one_in

from layoutproof.importers.mlir import read_functions
from layoutproof.importers.mlir.validation import pair_of_texts
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.script.printer import print_func

M = "%m: memref<8xf32>, %n: index"
ERRORS = {
    "unknown_operation": (
        '"some.thing"(%m) : (memref<8xf32>) -> ()',
        2,
        "some.thing: this operation has no translation",
    ),
    "no_module": ("affine.load %m[", 3, ""),
    "undefined_value": ("affine.store %x, %m[0] : memref<8xf32>", None, "%x"),
    "free_twice": (
        "%a = memref.alloc() : memref<4xf32>\nmemref.dealloc %a : memref<4xf32>\nmemref.dealloc %a : memref<4xf32>",
        4,
        "memref.dealloc: memory is used after it was freed",
    ),
    "freed_elsewhere": ("memref.dealloc %m : memref<8xf32>", 2, "freed elsewhere"),
    "layout_of_two_in_one": (
        "%a = memref.alloc() : memref<4xf32, affine_map<(d0) -> (d0 floordiv 2)>>",
        2,
        "may store two elements in one cell",
    ),
    "step": (
        "%c = arith.constant 0 : index\nscf.for %i = %c to %n step %c {\n}",
        3,
        "a step of 0 is undefined",
    ),
    "element_type": ("%a = memref.alloc() : memref<4xi17>", 2, "the type i17 is not translated"),
    "reduction": (
        '%x = arith.constant 0.0 : f32\n%r = affine.parallel (%i) = (0) to (8) reduce ("addf") -> (f32) {\n'
        "  affine.yield %x : f32\n}\naffine.store %r, %m[0] : memref<8xf32>",
        3,
        "depends on the order",
    ),
    "rounding": (
        "%x = affine.load %m[0] : memref<8xf32>\n"
        '%y = "arith.truncf"(%x) <{roundingmode = 2 : i32}> : (f32) -> bf16\nfunc.call @g(%y) : (bf16) -> ()',
        3,
        "arith.truncf: the attribute roundingmode is not translated",
    ),
    "packed_bits": (
        '%b = arith.constant dense<"0x05"> : vector<3xi1>\naffine.store %b, %m[0] : memref<8xf32>',
        None,
        "truth values as bytes",
    ),
    "branches": ("cf.br ^next\n^next:", 2, "branches between blocks"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    """Every error has the line of what has no translation; nothing is left out."""
    body, line, message = ERRORS[name]
    with pytest.raises(LayoutproofError) as found:
        read_functions(function(M, body), "file.mlir")
    (diagnostic,) = found.value.diagnostics
    assert diagnostic.code in ("LP651", "LP652")
    assert message in diagnostic.message
    assert diagnostic.span is not None and (line is None or diagnostic.span.line == line)


PLAIN = function(
    M,
    """
    affine.for %i = 0 to 8 step 2 {
      %x = affine.load %m[%i + 1] : memref<8xf32>
      affine.if affine_set<(d0)[s0] : (s0 - d0 >= 0)>(%i)[%n] {
        affine.store %x, %m[%i] : memref<8xf32>
      }
    }
    """,
)
GENERIC = """
"builtin.module"() ({
  "func.func"() <{function_type = (memref<8xf32>, index) -> (), sym_name = "f"}> ({
  ^bb0(%m: memref<8xf32>, %n: index):
    "affine.for"() <{
      lowerBoundMap = affine_map<() -> (0)>, operandSegmentSizes = array<i32: 0, 0, 0>, step = 2 : index,
      upperBoundMap = affine_map<() -> (8)>}> ({
    ^bb0(%i: index):
      %x = "affine.load"(%m, %i) <{map = affine_map<(d0) -> (d0 + 1)>}> : (memref<8xf32>, index) -> f32
      "affine.if"(%i, %n) ({
        "affine.store"(%x, %m, %i) <{map = affine_map<(d0) -> (d0)>}> : (f32, memref<8xf32>, index) -> ()
        "affine.yield"() : () -> ()
      }, {
      }) {condition = affine_set<(d0)[s0] : (s0 - d0 >= 0)>} : (index, index) -> ()
      "affine.yield"() : () -> ()
    }) : () -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""


def test_generic_form() -> None:
    """The generic form of a function is the same program as its custom form."""
    texts = [print_func(read_functions(text, "file.mlir")["f"].program) for text in (PLAIN, GENERIC)]
    assert texts[0] == texts[1]


def test_bits_of_floats() -> None:
    """A hexadecimal number gives the bits of a float, also in a dense constant."""
    scalar = function(M, "%x = arith.constant 0xFF800000 : f32\naffine.store %x, %m[0] : memref<8xf32>")
    dense = function(
        M,
        "%c = arith.constant 0 : index\n%x = arith.constant dense<0xFF800000> : vector<4xf32>\n"
        "vector.transfer_write %x, %m[%c] : vector<4xf32>, memref<8xf32>",
    )
    for text in (scalar, dense):
        assert re.search(r'"-inf"|-T.infinity|infinity', print_func(read_functions(text, "file.mlir")["f"].program))


def test_maps_are_kept_as_written() -> None:
    """Divisions of maps round down, also of negative numbers, and symbols may be divisors."""
    text = function(
        M, "%x = affine.load %m[((-%n + 3) floordiv 2) mod 8] : memref<8xf32>\naffine.store %x, %m[0] : memref<8xf32>"
    )
    assert "// T.int64(2) % T.int64(8)" in print_func(read_functions(text, "file.mlir")["f"].program)


FLAGS = """
func.func @f(%m: memref<8xf32>, %r: memref<8xi32>, %a: i8, %b: i32) {
  %e = arith.extsi %a : i8 to i32
  affine.for %i = 0 to 8 {
    %x = affine.load %m[%i] : memref<8xf32>
    %y = arith.addf %x, %x fastmath<nnan> : f32
    affine.store %y, %m[%i] : memref<8xf32>
    %z = arith.addi %e, VALUE : i32
    affine.store %z, %r[%i] : memref<8xi32>
  }
  return
}
"""


def _flags(before: tuple[str, str], after: tuple[str, str]) -> str:
    """The verdict where `before` and `after` replace a part of the function."""
    texts = [FLAGS.replace(*each).replace("VALUE", "%e") for each in (before, after)]
    files = (("before.mlir", texts[0]), ("after.mlir", texts[1]))
    return pair_of_texts(files, ("f", "f")).compared().status.value


@one_in(4)
def test_flags() -> None:
    """Flags may be dropped; a difference that they may allow is no refutation; an added `nsw` is an obligation."""
    nothing, no_flag = ("", ""), (" fastmath<nnan>", "")
    assert _flags(nothing, nothing) == "proved"
    assert _flags(nothing, no_flag) == "proved"
    assert _flags(nothing, ("arith.addf %x, %x fastmath<nnan>", "arith.mulf %x, %x")) == "unknown"
    assert _flags(no_flag, ("arith.addf %x, %x fastmath<nnan>", "arith.mulf %x, %x")) == "refuted"
    with pytest.raises(LayoutproofError, match="the flag nnan is not on every"):
        _flags(no_flag, nothing)
    assert _flags(nothing, ("VALUE", "%e overflow<nsw>")) == "proved"
    assert _flags(("VALUE", "%b"), ("VALUE", "%b overflow<nsw>")) == "unknown"
    assert _flags(("VALUE", "%b overflow<nsw>"), ("VALUE", "%b")) == "proved"


@one_in(4)
@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ("arith.mulf %x, %two", "arith.addf %x, %x fastmath<nnan>", "unknown"),
        ("arith.mulf %x, %two", "arith.addf %x, %x", "proved"),
        ("arith.addf %x, %x fastmath<nnan,ninf>", "arith.addf %x, %x fastmath<nnan>", "proved"),
        ("arith.addf %x, %y fastmath<nnan>", "arith.addf %y, %x fastmath<nnan>", "proved"),
        ("arith.constant 0.0", "arith.maxnumf %zero, %minus_zero", "unknown"),
        ("arith.maxnumf %x, %y", "arith.maxnumf %y, %x", "proved"),
    ],
)
def test_an_operation_with_flags_does_what_one_did_before(before: str, after: str, status: str) -> None:
    """That all operations of a name have a flag before is not enough: what one computes after was computed by these."""
    body = """
    %two = arith.constant 2.0 : f32
    %zero = arith.constant 0.0 : f32
    %minus_zero = arith.constant -0.0 : f32
    %x = affine.load %m[0] : memref<8xf32>
    %y = affine.load %m[1] : memref<8xf32>
    %u = arith.addf %y, %y fastmath<nnan> : f32
    affine.store %u, %m[2] : memref<8xf32>
    %v = arith.maxnumf %y, %two : f32
    affine.store %v, %m[3] : memref<8xf32>
    %z = VALUE : f32
    affine.store %z, %m[4] : memref<8xf32>
    """
    old, new = (function(M, body.replace("VALUE", each)) for each in (before, after))
    assert compared(old, new).status.value == status


def test_a_sum_of_lanes_without_an_accumulator_may_give_either_zero() -> None:
    """LLVM starts with 0.0, and takes the only lane of one for its sum: of -0.0 the sign of the sum is open."""
    lanes = "%x = vector.load %m[%n] : memref<8xf32>, vector<2xf32>\n"
    reduced = lanes + "%s = vector.reduction <add>, %x : vector<2xf32> into f32\n"
    added = (
        lanes + "%a = vector.extract %x[0] : f32 from vector<2xf32>\n"
        "%b = vector.extract %x[1] : f32 from vector<2xf32>\n%s = arith.addf %a, %b : f32\n"
    )
    store = "memref.store %s, %m[%n] : memref<8xf32>"
    old, new = function(M, reduced + store), function(M, added + store)
    assert compared(old, old).status.value == "proved"
    assert compared(old, new).status.value == "proved"
    assert compared(new, old).status.value == "unknown"
