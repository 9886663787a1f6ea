"""What operations mean: pairs that differ in one point of their definition, with the verdict that it gives."""

from __future__ import annotations

import pytest
from tests.importers.mlir.programs import compared, function
from tests.shares import one_in

from layoutproof.importers.mlir.validation import pair_of_texts
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.script.printer import print_func

A = "%a: memref<?xf32>, %b: memref<?xf32>"
EACH = "%c0 = arith.constant 0 : index\n%n = memref.dim %a, %c0 : memref<?xf32>\naffine.for %i = 0 to %n {{\n{}\n}}"


def each(body: str) -> str:
    """A loop over the elements of `%a`."""
    return function(A, EACH.format(body))


def element(operation: str) -> str:
    """`b[i]` as an operation of `%x`, which is `a[i]`."""
    return each(f"%x = affine.load %a[%i] : memref<?xf32>\n{operation}\naffine.store %y, %b[%i] : memref<?xf32>")


def integer(operation: str) -> str:
    """One element as an operation of `%x`, an integer of 32 bits."""
    body = "%x = affine.load %a[0] : memref<1xi32>\n{}\naffine.store %y, %a[0] : memref<1xi32>"
    return function("%a: memref<1xi32>", body.format(operation))


def constant(name: str, value: str, kind: str = "i32") -> str:
    """A constant."""
    return f"%{name} = arith.constant {value} : {kind}\n"


ZERO = constant("z", "0.0", "f32")
FLOATS = {
    "maximum_of_nan": (f"{ZERO}%y = arith.maximumf %x, %z : f32", f"{ZERO}%y = arith.maxnumf %x, %z : f32", "refuted"),
    "maximum_commutes": (
        f"{ZERO}%y = arith.maximumf %x, %z : f32",
        f"{ZERO}%y = arith.maximumf %z, %x : f32",
        "proved",
    ),
    "adding_zero": ("%y = arith.negf %x : f32", f"{ZERO}%y = arith.subf %z, %x : f32", "refuted"),
    "negation": (
        "%y = arith.negf %x : f32",
        constant("m", "-1.0", "f32") + "%y = arith.mulf %x, %m : f32",
        "proved",
    ),
    "ordered": (
        f"{ZERO}%c = arith.cmpf olt, %x, %z : f32\n%y = arith.select %c, %z, %x : f32",
        f"{ZERO}%c = arith.cmpf ult, %x, %z : f32\n%y = arith.select %c, %z, %x : f32",
        "refuted",
    ),
    "negated_comparison": (
        f"{ZERO}%c = arith.cmpf olt, %x, %z : f32\n%y = arith.select %c, %z, %x : f32",
        f"{ZERO}%c = arith.cmpf uge, %x, %z : f32\n%y = arith.select %c, %x, %z : f32",
        "proved",
    ),
}
INTEGERS = {
    "wraps": (
        constant("c", "1") + "%w = arith.addi %x, %c : i32\n%y = arith.subi %w, %c : i32",
        constant("c", "0") + "%y = arith.addi %x, %c : i32",
        "proved",
    ),
    "comparison_wraps": (
        constant("c", "1") + "%w = arith.addi %x, %c : i32\n%s = arith.cmpi sgt, %w, %x : i32\n"
        "%y = arith.select %s, %c, %x : i32",
        constant("y", "1"),
        "refuted",
    ),
    "rounds_to_zero": (
        constant("c", "2") + "%y = arith.divsi %x, %c : i32",
        constant("c", "2") + "%y = arith.floordivsi %x, %c : i32",
        "refuted",
    ),
    "shifts_round_down": (
        constant("c", "2") + "%y = arith.floordivsi %x, %c : i32",
        constant("c", "1") + "%y = arith.shrsi %x, %c : i32",
        "proved",
    ),
    "unsigned": (
        constant("c", "7") + "%y = arith.minui %x, %c : i32",
        constant("c", "7") + "%y = arith.minsi %x, %c : i32",
        "refuted",
    ),
    "masks": (
        constant("c", "8") + "%y = arith.remui %x, %c : i32",
        constant("c", "7") + "%y = arith.andi %x, %c : i32",
        "proved",
    ),
}


@one_in(4)
@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str) -> None:
    """Floats are IEEE's, the sign of zero and NaN included."""
    before, after, wanted = FLOATS[name]
    assert compared(element(before), element(after)).status.value == wanted


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    """Integers wrap, and each division has its own rounding."""
    before, after, wanted = INTEGERS[name]
    assert compared(integer(before), integer(after)).status.value == wanted


LOOP = "affine.for %i = {} {{\n affine.store %x, %a[%i] : memref<9xf32>\n}}"
LOOPS = {
    "no_trips": ("5 to 5", "5 to 2", "proved"),
    "one_more": ("2 to 5", "2 to 6", "refuted"),
    "steps": ("0 to 9 step 4", "0 to 12 step 4", "proved"),
    "step_counts": ("0 to 9 step 4", "0 to 9 step 3", "refuted"),
    "minimum": ("0 to 4", "0 to min affine_map<() -> (4, 7)>()", "proved"),
    "maximum": ("3 to 6", "max affine_map<() -> (3, 1)>() to 6", "proved"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_bounds(name: str) -> None:
    """A loop runs from its greatest lower bound to its least upper one, not at all if that is below."""
    before, after, wanted = LOOPS[name]
    programs = [function("%a: memref<9xf32>, %x: f32", LOOP.format(bounds)) for bounds in (before, after)]
    assert compared(programs[0], programs[1]).status.value == wanted


CARRY = """
%c0 = arith.constant 0 : index
%n = memref.dim %a, %c0 : memref<?xf32>
%z = arith.constant 0.0 : f32
%o = arith.constant 1.0 : f32
%r:2 = affine.for %i = 0 to %n iter_args(%p = %z, %q = %o) -> (f32, f32) {{
  %x = affine.load %a[%i] : memref<?xf32>
  affine.yield {} : f32, f32
}}
affine.store %r#0, %b[0] : memref<?xf32>
"""


def test_values_change_places() -> None:
    """What a loop yields is stored all at once: the second value is not the new first one."""
    delayed = function(A, CARRY.format("%q, %x"))
    assert compared(delayed, delayed).status.value == "proved"
    assert compared(delayed, function(A, CARRY.format("%x, %x"))).status.value == "refuted"
    assert compared(function(A, CARRY.format("%q, %p")), function(A, CARRY.format("%p, %q"))).status.value == "refuted"


COPY = "%x = affine.load %a[%i] : memref<?xf32>\naffine.store %x, %b[%i] : memref<?xf32>\n"
TWICE = COPY + "%y = affine.load {}[%i] : memref<?xf32>\naffine.store %y, %b[%i] : memref<?xf32>"


@one_in(4)
def test_arguments_may_overlap() -> None:
    """That memrefs are apart is a precondition, unless the caller says otherwise."""
    reads_first, reads_second = (
        each("%x = affine.load %a[0] : memref<?xf32>\naffine.store %x, %b[%i] : memref<?xf32>"),
        each(
            "%x = affine.load %a[0] : memref<?xf32>\n%z = arith.constant 1.0 : f32\n"
            "affine.store %z, %b[%i] : memref<?xf32>\naffine.store %x, %b[%i] : memref<?xf32>"
        ),
    )
    assert compared(reads_first, reads_second).status.value == "proved"
    late = each(
        "%z = arith.constant 1.0 : f32\naffine.store %z, %b[%i] : memref<?xf32>\n"
        "%x = affine.load %a[0] : memref<?xf32>\naffine.store %x, %b[%i] : memref<?xf32>"
    )
    assert compared(reads_first, late).status.value == "proved"
    assert compared(reads_first, late, may_alias=True).status.value != "proved"


def test_reads_stay_where_they_are() -> None:
    """A value that is read before a store is the old one."""
    before = "%x = affine.load %a[0] : memref<2xf32>\n%y = affine.load %a[1] : memref<2xf32>\n"
    swap = "affine.store %y, %a[0] : memref<2xf32>\naffine.store %x, %a[1] : memref<2xf32>"
    late = "%y = affine.load %a[1] : memref<2xf32>\naffine.store %y, %a[0] : memref<2xf32>\n"
    both = late + "%x = affine.load %a[0] : memref<2xf32>\naffine.store %x, %a[1] : memref<2xf32>"
    right, wrong = function("%a: memref<2xf32>", before + swap), function("%a: memref<2xf32>", both)
    assert compared(right, wrong).status.value == "refuted"


def test_a_read_that_is_not_used_is_one() -> None:
    """A new access out of bounds is a fault, also where its value is used nowhere, or in a branch only."""
    plain = "affine.store %x, %a[0] : memref<4xf32>"
    unused = f"%c9 = arith.constant 9 : index\n%y = memref.load %a[%c9] : memref<4xf32>\n{plain}"
    assert (
        compared(
            function("%a: memref<4xf32>, %x: f32", plain), function("%a: memref<4xf32>, %x: f32", unused)
        ).status.value
        == "refuted"
    )


def test_outside_of_a_view() -> None:
    """An access outside of a view is a fault, though it is inside the memory."""
    arguments, view = "%a: memref<8xf32>, %x: f32", "memref<4xf32, strided<[1], offset: 2>>"
    part = f"%v = memref.subview %a[2] [4] [1] : memref<8xf32> to {view}\n%c = arith.constant {{}} : index\n"
    inside = part + f"memref.store %x, %v[%c] : {view}"
    for place, wanted in ((3, "proved"), (4, "refuted")):
        before = function(arguments, f"affine.store %x, %a[{place + 2}] : memref<8xf32>")
        assert compared(before, function(arguments, inside.format(place))).status.value == wanted


def test_outside_of_the_view_that_a_view_is_of() -> None:
    """Nor is an access outside of the view that a view is a part of, though it is inside the memory and the part."""
    arguments, outer = "%a: memref<8xf32>, %x: f32", "memref<4xf32, strided<[1], offset: 2>>"
    inner = "memref<4xf32, strided<[1], offset: ?>>"
    parts = f"""
    %k = arith.constant 2 : index
    %p = memref.subview %a[2] [4] [1] : memref<8xf32> to {outer}
    %v = memref.subview %p[%k] [4] [1] : {outer} to {inner}
    %c = arith.constant {{}} : index
    memref.store %x, %v[%c] : {inner}
    """
    for place, wanted in ((1, "proved"), (2, "refuted")):
        before = function(arguments, f"affine.store %x, %a[{place + 4}] : memref<8xf32>")
        assert compared(before, function(arguments, parts.format(place))).status.value == wanted


def test_vectors_at_the_edge() -> None:
    """Lanes outside of memory read the padding and are not stored; `in_bounds` says that there are none."""
    body = """
    %c4 = arith.constant 4 : index
    %z = arith.constant 0.0 : f32
    %v = vector.transfer_read %a[%c4], %z {} : memref<6xf32>, vector<4xf32>
    vector.transfer_write %v, %b[%c4] {} : vector<4xf32>, memref<6xf32>
    """
    plain = """
    affine.for %i = 4 to 6 {
      %x = affine.load %a[%i] : memref<6xf32>
      affine.store %x, %b[%i] : memref<6xf32>
    }
    """
    arguments, sure = "%a: memref<6xf32>, %b: memref<6xf32>", "{in_bounds = [true]}"
    before = function(arguments, plain)
    assert compared(before, function(arguments, body.format("", ""))).status.value == "proved"
    assert compared(before, function(arguments, body.format(sure, ""))).status.value == "refuted"


def test_fresh_memory_holds_anything() -> None:
    """A result may be more defined than before, not less."""
    body = """
    %m = memref.alloc() : memref<4xf32>
    {}
    affine.for %i = 0 to 4 {{
      %x = affine.load %m[%i] : memref<4xf32>
      affine.store %x, %a[%i] : memref<4xf32>
    }}
    """
    store = "affine.for %j = 0 to 4 {\n affine.store %x0, %m[%j] : memref<4xf32>\n }"
    arguments = "%a: memref<4xf32>, %x0: f32"
    stored, fresh = function(arguments, body.format(store)), function(arguments, body.format(""))
    assert compared(stored, fresh).status.value == "refuted"
    assert compared(fresh, fresh).status.value in ("proved", "vacuous")


def test_sizes_that_must_fit() -> None:
    """A run in which the program before is out of bounds need not be preserved; a smaller bound is a difference."""
    assert compared(each(COPY), each(COPY + COPY.replace("%x", "%y"))).status.value == "proved"
    half = each(COPY).replace("0 to %n", "0 to affine_map<(d0) -> (d0 floordiv 2)>(%n)")
    assert compared(each(COPY), half).status.value == "refuted"


NOTHING = {
    "loop": ("affine.for %i = 0 to 8 {\n}", ""),
    "loops": ("affine.for %i = 0 to 8 {\naffine.for %j = 2 to 6 {\n}\n}", ""),
    "loop of any size": ("affine.for %i = 0 to %n {\n}", "for i in range"),
    "branch": ("scf.if %c {\n}", ""),
    "branch with another": ("scf.if %c {\n} else {\n}", ""),
    "branch on a quotient": (
        "%q = arith.divsi %n, %n : index\n%d = arith.cmpi eq, %q, %n : index\nscf.if %d {\n}",
        "truncdiv(n, n)",
    ),
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_does_nothing(name: str) -> None:
    """It is no part of the program, but what its bounds or its condition compute is."""
    body, kept = NOTHING[name]
    text = function(
        "%c: i1, %n: index, %a: memref<1xf32>",
        f"{body}\n{constant('z', '0.0', 'f32')}affine.store %z, %a[0] : memref<1xf32>",
    )
    program = print_func(pair_of_texts((("a.mlir", text), ("a.mlir", text)), ("f", "f")).after.program)
    assert kept in program
    assert ("for " in program, "if " in program) == (kept.startswith("for "), False)


def test_parallel_loops() -> None:
    """Iterations of a parallel loop must be independent."""
    arguments = "%a: memref<8xf32>"
    body = "%x = affine.load %a[%i - {0}] : memref<8xf32>\n affine.store %x, %a[%i] : memref<8xf32>"
    serial = f"affine.for %i = 1 to 8 {{{{\n {body}\n}}}}"
    parallel = serial.replace("affine.for %i = 1 to 8", "affine.parallel (%i) = (1) to (8)")
    apart = function(arguments, serial.format(0))
    assert compared(apart, function(arguments, parallel.format(0))).status.value == "proved"
    chained = function(arguments, serial.format(1))
    assert compared(chained, function(arguments, parallel.format(1))).status.value != "proved"


WHILE = """
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%n = memref.dim %a, %c0 : memref<?xf32>
%r = scf.while (%i = %c0) : (index) -> index {{
  %t = arith.cmpi {} : index
  scf.condition(%t) %i : index
}} do {{
^bb0(%i: index):
  %x = memref.load %a[%i] : memref<?xf32>
  memref.store %x, %b[%i] : memref<?xf32>
  %next = arith.addi {} : index
  scf.yield %next : index
}}
"""


@pytest.mark.parametrize("advance", ["%i, %c1", "%c1, %i"])
@pytest.mark.parametrize(
    ("test", "wanted"),
    [("slt, %i, %n", "proved"), ("sgt, %n, %i", "proved"), ("sge, %n, %i", "refuted"), ("sle, %i, %n", "refuted")],
)
def test_counting(test: str, advance: str, wanted: str) -> None:
    """A while loop that counts is the loop over these numbers, whichever way it is written."""
    assert compared(each(COPY), function(A, WHILE.format(test, advance))).status.value == wanted


@pytest.mark.parametrize(
    ("test", "advance"), [("slt, %n, %i", "%i, %c1"), ("ne, %i, %n", "%i, %c1"), ("slt, %i, %n", "%c1, %c1")]
)
def test_not_counting(test: str, advance: str) -> None:
    """Other while loops are refused."""
    with pytest.raises(LayoutproofError, match="does not count up"):
        compared(each(COPY), function(A, WHILE.format(test, advance)))


LANES_THAT_WRAP = """
%v = vector.broadcast %k : index to vector<4xindex>
%h = arith.constant dense<2000000000> : vector<4xi32>
%i = "arith.index_cast"(%v) : (vector<4xindex>) -> vector<4xi32>
%s = arith.addi %i, %h : vector<4xi32>
%q = "arith.cmpi"(%s, %i) {predicate = 4 : i64} : (vector<4xi32>, vector<4xi32>) -> vector<4xi1>
%r = "arith.extui"(%q) : (vector<4xi1>) -> vector<4xi64>
vector.store %r, %m[%c] : memref<4xi64>, vector<4xi64>
"""


def test_lanes_of_integers_wrap() -> None:
    """As numbers do, also where they are made of indices, whose arithmetic does not: a sum may be less than a part."""
    zero = "%c = arith.constant 0 : index\n"
    ones = zero + "%r = arith.constant dense<1> : vector<4xi64>\nvector.store %r, %m[%c] : memref<4xi64>, vector<4xi64>"
    arguments = "%m: memref<4xi64>, %k: index"
    before = function(arguments, zero + LANES_THAT_WRAP)
    assert compared(before, function(arguments, ones)).status.value != "proved"
    assert compared(before, before).status.value == "proved"
