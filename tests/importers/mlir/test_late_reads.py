"""What is read is read once, where it stands: not again where it is used, or while memory is written."""

from __future__ import annotations

import pytest
from tests.importers.mlir.programs import compared, function

INDEX = """%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%one = arith.constant 1.0 : f32
"""
SETS = "memref.store %c1, %i[%c0] : memref<8xindex>\n"
READS = "%k = memref.load %i[%c0] : memref<8xindex>\n%x = memref.load %a[%k] : memref<4xf32>\n"
PADS = """%k = memref.load %p[%c0] : memref<1xf32>
%v = vector.transfer_read %a[%c0], %k : memref<4xf32>, vector<8xf32>
"""
CLEARS = "memref.store %one, %p[%c0] : memref<1xf32>\n"
ARGUMENTS = "%a: memref<4xf32>, %i: memref<8xindex>, %p: memref<1xf32>, %o: memref<8xf32>"

# The number of a read, and what is not: each with arguments, the program, and what it was taken for.
PAIRS = {
    "index": (
        ARGUMENTS,
        f"{READS}{SETS}memref.store %x, %o[%c0] : memref<8xf32>",
        f"{SETS}{READS}memref.store %x, %o[%c0] : memref<8xf32>",
    ),
    "padding": (
        ARGUMENTS,
        f"{PADS}{CLEARS}vector.store %v, %o[%c0] : memref<8xf32>, vector<8xf32>",
        f"{CLEARS}{PADS}vector.store %v, %o[%c0] : memref<8xf32>, vector<8xf32>",
    ),
    "filling": (
        "%a: memref<4xf32>",
        """%x = memref.load %a[%c0] : memref<4xf32>
        %y = arith.addf %x, %one : f32
        linalg.fill ins(%y : f32) outs(%a : memref<4xf32>)""",
        """affine.for %k = 0 to 4 {
          %x = memref.load %a[%c0] : memref<4xf32>
          %y = arith.addf %x, %one : f32
          memref.store %y, %a[%k] : memref<4xf32>
        }""",
    ),
    "mask": (
        "%m: memref<8xi1>, %v: vector<4xi1>",
        """%k = vector.load %m[%c0] : memref<8xi1>, vector<4xi1>
        vector.transfer_write %v, %m[%c1], %k {in_bounds = [true]} : vector<4xi1>, memref<8xi1>""",
        """affine.for %l = 0 to 4 {
          %k = memref.load %m[%l] : memref<8xi1>
          scf.if %k {
            %e = vector.extract %v[%l] : i1 from vector<4xi1>
            affine.store %e, %m[%l + 1] : memref<8xi1>
          }
        }""",
    ),
    "place": (
        "%i: memref<8xindex>, %v: vector<4xindex>",
        """%k = memref.load %i[%c0] : memref<8xindex>
        vector.store %v, %i[%k] : memref<8xindex>, vector<4xindex>""",
        """affine.for %l = 0 to 4 {
          %k = memref.load %i[%c0] : memref<8xindex>
          %j = arith.addi %k, %l : index
          %e = vector.extract %v[%l] : index from vector<4xindex>
          memref.store %e, %i[%j] : memref<8xindex>
        }""",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_read_stays_where_it_stands(name: str) -> None:
    """A number that is an operand of a read, or of an operation that writes its memory, is read once, before that."""
    arguments, body, late = PAIRS[name]
    before, after = (function(arguments, INDEX + text) for text in (body, late))
    assert compared(before, before).status.value == "proved"
    assert compared(before, after).status.value == "refuted"


LOOP = """%s, %v = scf.for %k = %c0 to %c2 step %c1 iter_args(%s = %x, %w = %y) -> (f32, vector<8xf32>) {
  %t = vector.transfer_read %a[%c0], %s : memref<4xf32>, vector<8xf32>
  %u = arith.addf %s, %one : f32
  scf.yield %u, %t : f32, vector<8xf32>
}
vector.store %v, %o[%c0] : memref<8xf32>, vector<8xf32>"""
BY_HAND = """affine.for %k = 0 to 4 {{
  %e = affine.load %a[%k] : memref<4xf32>
  affine.store %e, %o[%k] : memref<8xf32>
}}
affine.for %k = 4 to 8 {{
  %s = arith.addf %x, %one : f32
  %t = arith.addf %s, %one : f32
  affine.store {}, %o[%k] : memref<8xf32>
}}"""


def test_padding_that_a_loop_carries() -> None:
    """A vector is yielded with the padding that its iteration was given, not with the one that it yields."""
    arguments = "%a: memref<4xf32>, %x: f32, %y: vector<8xf32>, %o: memref<8xf32>"
    before = function(arguments, INDEX + LOOP)
    assert compared(before, function(arguments, INDEX + BY_HAND.format("%s"))).status.value != "refuted"
    assert compared(before, function(arguments, INDEX + BY_HAND.format("%t"))).status.value == "refuted"


TRANSFER = "%v = vector.transfer_read %a[%c0], {} : memref<8xf32>, vector<8xf32>\n"
MASKED = """%m = vector.load %b[{}] : memref<4xi1>, vector<4xi1>
%v = vector.transfer_read %a[%c8], %one, %m : memref<8xf32>, vector<4xf32>
vector.store %v, %a[%c0] : memref<8xf32>, vector<4xf32>"""
UNUSED = {
    "padding": [
        f"%p = memref.load %p1[{place}] : memref<1xf32>\n{TRANSFER.format('%p')}"
        "vector.store %v, %a[%c0] : memref<8xf32>, vector<8xf32>"
        for place in ("%c0", "%c2")
    ],
    "mask": [f"%c8 = arith.constant 8 : index\n{MASKED.format(place)}" for place in ("%c0", "%c2")],
}


@pytest.mark.parametrize("name", UNUSED)
def test_what_is_read_in_vain(name: str) -> None:
    """Padding and masks are read also where no lane depends on them: a read outside is one."""
    arguments = "%a: memref<8xf32>, %p1: memref<1xf32>, %b: memref<4xi1>"
    before, after = (function(arguments, INDEX + text) for text in UNUSED[name])
    assert compared(before, before).status.value == "proved"
    assert compared(before, after).status.value == "refuted"


CHOSEN = """
%q = vector.create_mask %k : vector<4xi1>
%z = arith.constant 0.0 : f32
%c0 = arith.constant 0 : index
%o = arith.constant dense<7> : vector<4xi32>
READ
%i = "arith.fptosi"(%x) : (vector<4xf32>) -> vector<4xi32>
%r = "arith.select"(%q, %i, %o) : (vector<4xi1>, vector<4xi32>, vector<4xi32>) -> vector<4xi32>
vector.store %r, %m[%c0] : memref<4xi32>, vector<4xi32>
"""
ALL_LANES = "%x = vector.load %a[%c0] : memref<?xf32>, vector<4xf32>"
SOME_LANES = "%x = vector.transfer_read %a[%c0], %z, %q {in_bounds = [true]} : memref<?xf32>, vector<4xf32>"


def test_lanes_that_are_not_chosen_are_read() -> None:
    """A lane outside of memory is undefined also where another value is chosen; what a mask leaves out is not read."""
    some, every = (
        function("%m: memref<4xi32>, %a: memref<?xf32>, %k: index", CHOSEN.replace("READ", each))
        for each in (SOME_LANES, ALL_LANES)
    )
    assert compared(some, every).status.value == "refuted"
    assert compared(every, some).status.value == "proved"


def test_the_other_value_of_a_choice_is_read() -> None:
    """Where one may be undefined, and so is evaluated only if it is chosen, the other one is read all the same."""
    body = """
    %p = arith.cmpi slt, %k, %k : index
    {}
    %x = arith.fptosi %f : f32 to i32
    %r = arith.select %p, %y, %x : i32
    affine.store %r, %m[0] : memref<4xi32>
    """
    before, after = (
        function("%m: memref<4xi32>, %k: index, %f: f32", body.format(each))
        for each in ("%y = arith.constant 7 : i32", "%y = memref.load %m[%k] : memref<4xi32>")
    )
    assert compared(before, after).status.value == "refuted"
