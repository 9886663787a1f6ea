"""What is easily read as something else: each pair has the verdict that MLIR's definition gives."""

from __future__ import annotations

import numpy as np
import pytest
from tests.importers.mlir.programs import compared, function

from layoutproof.importers.mlir import read_functions
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp.run import run

INDEX = "%c0 = arith.constant 0 : index\n%c3 = arith.constant 3 : index\n"
SEVEN = "%s = arith.constant 7 : i32\n"
TENSOR = f"""{INDEX}{SEVEN}%e = tensor.empty() : tensor<4xi32>
%t = linalg.fill ins(%x : i32) outs(%e : tensor<4xi32>) -> tensor<4xi32>
"""
BOTH = "(tensor<4xi32>, tensor<4xi32>)"
CHANGED = f"{TENSOR}%v = tensor.insert %s into %t[%c0] : tensor<4xi32>\nreturn %v, %v : tensor<4xi32>, tensor<4xi32>"


def _of_tensor(body: str) -> str:
    return function("%x: i32", TENSOR + body, BOTH)


ALIASES = {
    "region": """%u = scf.execute_region -> tensor<4xi32> { scf.yield %t : tensor<4xi32> }
        %v = tensor.insert %s into %u[%c0] : tensor<4xi32>
        return %t, %v : tensor<4xi32>, tensor<4xi32>""",
    "cast": """%u = tensor.cast %t : tensor<4xi32> to tensor<?xi32>
        %w = tensor.insert %s into %u[%c0] : tensor<?xi32>
        %v = tensor.generate {
        ^bb0(%i: index):
          %k = tensor.extract %w[%i] : tensor<?xi32>
          tensor.yield %k : i32
        } : tensor<4xi32>
        return %t, %v : tensor<4xi32>, tensor<4xi32>""",
}


@pytest.mark.parametrize("name", ALIASES)
def test_another_name_of_a_tensor(name: str) -> None:
    """A tensor that has a second name keeps its elements when an element is inserted under that name."""
    text = "\n".join(line.strip() for line in ALIASES[name].splitlines())
    found = compared(_of_tensor(text), function("%x: i32", CHANGED, BOTH))
    assert found.status.value == "refuted", found.verdicts[0].reason


SIZE = "%a: memref<1xindex>, %o: memref<8xi32>"
SETS = "memref.store %c3, %a[%c0] : memref<1xindex>\n"
READS = "%x = memref.load %a[%c0] : memref<1xindex>\n"
ONES = "%y = arith.constant dense<1> : vector<8xi32>\n"
WRITE = "vector.transfer_write %y, %o[%c0], %m {in_bounds = [true]} : vector<8xi32>, memref<8xi32>"
REGION = "%x = scf.execute_region -> index {\n%l = memref.load %a[%c0] : memref<1xindex>\nscf.yield %l : index\n}\n"
EARLY = {
    "mask": (f"{ONES}{READS}%m = vector.create_mask %x : vector<8xi1>\n", WRITE),
    "region": (REGION, "memref.store %s, %o[%x] : memref<8xi32>"),
    "slice": (
        f"{READS}%v = memref.subview %o[%x][1][1] : memref<8xi32> to memref<1xi32, strided<[1], offset: ?>>\n",
        "memref.store %s, %v[%c0] : memref<1xi32, strided<[1], offset: ?>>",
    ),
    "extent": (
        f"{READS}%v = memref.alloc(%x) : memref<?xi32>\n",
        "%d = memref.dim %v, %c0 : memref<?xi32>\n%i = arith.index_cast %d : index to i32\n"
        "memref.store %i, %o[%c0] : memref<8xi32>",
    ),
}


@pytest.mark.parametrize("name", EARLY)
def test_what_is_read_early(name: str) -> None:
    """A number that was read before a write is not the one that is there afterwards, whatever it became a part of."""
    first, then = EARLY[name]
    before = function(SIZE, f"{INDEX}{SEVEN}{first}{SETS}{then}")
    after = function(SIZE, f"{INDEX}{SEVEN}{SETS}{first}{then}")
    assert compared(before, before).status.value == "proved"
    assert compared(before, after).status.value == "refuted"


NUMBERS = "%a: memref<8xi32>, %b: memref<8xi32>"
GUARDED = """affine.for %i = 0 to 8 {
  %z = arith.constant 0 : i32
  %x = affine.load %a[%i] : memref<8xi32>
  %y = affine.load %b[%i] : memref<8xi32>
  %c = arith.cmpi ne, %x, %z : i32
  """
IN_BRANCH = """%r = scf.if %c -> (i32) {
    %d = arith.divui %y, %x : i32
    scf.yield %d : i32
  } else {
    scf.yield %y : i32
  }
  affine.store %r, %b[%i] : memref<8xi32>
}"""
CHOSEN = """%d = arith.divui %y, %x : i32
  %r = arith.select %c, %d, %y : i32
  affine.store %r, %b[%i] : memref<8xi32>
}"""


def test_a_division_is_not_part_of_a_choice() -> None:
    """A division by zero is undefined where it stands, also if its result is not chosen."""
    branch, chosen = (function(NUMBERS, GUARDED + text) for text in (IN_BRANCH, CHOSEN))
    assert compared(branch, chosen).status.value == "refuted"
    assert compared(chosen, branch).status.value != "refuted"


SQUARE = "%a: memref<4x4xf32>, %o: memref<4x4xf32>"
MASKED = """%c2 = arith.constant 2 : index
%p = arith.constant 0.0 : f32
%m = vector.create_mask MASK : vector<SHAPExi1>
%v = vector.transfer_read %a[%c0, %c0], %p, %m
  {in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (MAP)>} : memref<4x4xf32>, vector<4x4xf32>
vector.transfer_write %v, %o[%c0, %c0] {in_bounds = [true, true]} : vector<4x4xf32>, memref<4x4xf32>"""
BY_HAND = """%p = arith.constant 0.0 : f32
affine.for %i = 0 to 4 {
  affine.for %j = 0 to 4 {
    %x = affine.load %a[LOADED] : memref<4x4xf32>
    %e = affine.apply affine_map<(d0, d1) -> (ROW)>(%i, %j)
    %c2 = arith.constant 2 : index
    %c = arith.cmpi slt, %e, %c2 : index
    %y = arith.select %c, %x, %p : f32
    affine.store %y, %o[%i, %j] : memref<4x4xf32>
  }
}"""
MASKS = {
    # A mask of memory's rows; lanes go along memory's columns first.
    "transposed": ("%c2, %c4", "4x4", "d1, d0", "%j, %i", ("d1", "d0")),
    "broadcast": ("%c2", "4", "d0, 0", "%i, 0", ("d0", "d1")),
}


@pytest.mark.parametrize("name", MASKS)
def test_axes_of_a_mask(name: str) -> None:
    """A mask has the axes of memory, not those of the vector."""
    mask, shape, transfer, loaded, rows = MASKS[name]
    body = MASKED.replace("MASK", mask).replace("SHAPE", shape).replace("MAP", transfer)
    before = function(SQUARE, f"{INDEX}%c4 = arith.constant 4 : index\n{body}")
    for row, wanted in zip(rows, ("proved", "refuted"), strict=True):
        after = function(SQUARE, BY_HAND.replace("LOADED", loaded).replace("ROW", row))
        assert compared(before, after).status.value == wanted


BITS = "%a: memref<2x2xi1>, %b: memref<2x2xi1>, %o: memref<2x2xi1>"
PRODUCT = "linalg.matmul ins(%a, %b : memref<2x2xi1>, memref<2x2xi1>) outs(%o : memref<2x2xi1>)"
BITS_BY_HAND = """affine.for %i = 0 to 2 {
  affine.for %j = 0 to 2 {
    affine.for %k = 0 to 2 {
      %x = affine.load %a[%i, %k] : memref<2x2xi1>
      %y = affine.load %b[%k, %j] : memref<2x2xi1>
      %z = affine.load %o[%i, %j] : memref<2x2xi1>
      %p = arith.andi %x, %y : i1
      %q = arith.SUM %z, %p : i1
      affine.store %q, %o[%i, %j] : memref<2x2xi1>
    }
  }
}"""


def test_sums_of_bits() -> None:
    """A named operation's sum of integers of one bit is their disjunction, as mlir-opt generalises it."""
    for operation, wanted in (("ori", "proved"), ("xori", "refuted")):
        after = function(BITS, BITS_BY_HAND.replace("SUM", operation))
        assert compared(function(BITS, PRODUCT), after).status.value == wanted


STRIDES = """%b, %off, %s:2, %st:2 = memref.extract_strided_metadata %a
  : TYPE -> memref<i32>, index, index, index, index, index
%v = arith.index_cast %st#0 : index to i64
memref.store %v, %o[%c0] : memref<1xi64>"""


def test_strides_of_an_argument() -> None:
    """Strides of an argument are those of its type; ones that are dynamic are not known."""
    kind = "memref<4x4xi32, strided<[8, 1]>>"
    for number, wanted in ((8, "proved"), (4, "refuted")):
        constant = f"{INDEX}%v = arith.constant {number} : i64\nmemref.store %v, %o[%c0] : memref<1xi64>"
        texts = [INDEX + STRIDES.replace("TYPE", kind), constant]
        before, after = (function(f"%a: {kind}, %o: memref<1xi64>", text) for text in texts)
        found = compared(before, after)
        assert found.status.value == wanted
    kind = "memref<4x4xi32, strided<[?, 1]>>"
    with pytest.raises(LayoutproofError, match="this view is not translated"):
        read_functions(function(f"%a: {kind}, %o: memref<1xi64>", INDEX + STRIDES.replace("TYPE", kind)), "file.mlir")


SPACED = "memref<4x4xi32, strided<[8, 1]>>"
OVERLAPPING = "memref<4x4xi32, strided<[1, 1]>>"
REFUSED = {
    "overlapping strides": (
        function(f"%a: {OVERLAPPING}", f"{INDEX}{SEVEN}memref.store %s, %a[%c0, %c3] : {OVERLAPPING}"),
        "two elements in one cell",
    ),
    "memory with gaps as one axis": (
        function(
            f"%a: {SPACED}",
            f"%r = memref.reinterpret_cast %a to offset: [0], sizes: [16], strides: [1] : {SPACED} to memref<16xi32>",
        ),
        "memory with a layout",
    ),
    "one of two memories": (
        function(
            f"%c: i1, {NUMBERS}",
            f"{INDEX}{SEVEN}%m = arith.select %c, %a, %b : memref<8xi32>\nmemref.store %s, %m[%c0] : memref<8xi32>",
        ),
        "of memrefs is not translated",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_memory_that_is_not_told_apart(name: str) -> None:
    """What would need the addresses of elements is refused."""
    text, message = REFUSED[name]
    with pytest.raises(LayoutproofError, match=message):
        read_functions(text, "file.mlir")


SUM = "%x = affine.load %a[0] : memref<8xi32>\n%y = affine.load %b[0] : memref<8xi32>\n"
DETOUR = """%k = arith.constant 2147483647 : i32
%t = arith.addi %x, %k overflow<nsw> : i32
%u = arith.subi %t, %k : i32
%r = arith.addi %u, %y overflow<nsw> : i32
affine.store %r, %b[0] : memref<8xi32>"""
DIRECT = "%r = arith.addi %x, %y overflow<nsw> : i32\naffine.store %r, %b[0] : memref<8xi32>"


def test_flags_of_other_operands() -> None:
    """`nsw` of the program after is an obligation, also if the program before has it on other sums."""
    direct, detour = (function(NUMBERS, SUM + text) for text in (DIRECT, DETOUR))
    assert compared(direct, detour).status.value == "unknown"
    assert compared(direct, direct).status.value == "proved"


ZEROS = (
    "%x = affine.load %a[0] : memref<1xf32>\n%z = arith.constant 0.0 : f32\n{}\naffine.store %y, %a[0] : memref<1xf32>"
)
NUMBER = "%c = arith.cmpf uno, %x, %x : f32\n%n = arith.select %c, %z, %x : f32\n"


def test_either_of_two_zeros() -> None:
    """`maxnumf` of two zeros may be either, so that it takes no other maximum's place."""
    maximum, either, swapped = (
        function("%a: memref<1xf32>", ZEROS.format(NUMBER + text))
        for text in (
            "%y = arith.maximumf %n, %z : f32",
            "%y = arith.maxnumf %n, %z : f32",
            "%y = arith.maxnumf %z, %n : f32",
        )
    )
    found = compared(maximum, either)
    assert found.status.value == "unknown"
    assert "arith.maxnumf of zeros" in str(found.verdicts[0].reason)
    assert compared(either, swapped).status.value == "proved"
    assert compared(either, maximum).status.value != "refuted"


HUGE = f"{INDEX}{SEVEN}{READS}%m = memref.alloc(%x) : memref<?xi32>\nmemref.store %s, %m[%c0] : memref<?xi32>"


def test_memory_of_any_size() -> None:
    """A run that asks for more memory than there is is stopped, and says what asked for it."""
    program = read_functions(function(SIZE, HUGE), "file.mlir")["f"].program
    for number in (1 << 62, 1 << 40):
        with pytest.raises(LayoutproofError, match=f"`m_data` has {4 * number} bytes"):
            run(program, [np.array([number]), np.zeros(8, np.int32)])


BOUNDS = "%lo: index, %n: index, %s: index, %o: memref<1xi32>"
COUNTING = """%r = scf.while (%i = %lo) : (index) -> index {
  %c = arith.cmpi slt, %i, %n : index
  scf.condition(%c) %i : index
} do {
^bb0(%i: index):
  %j = arith.addi %i, %s : index
  scf.yield %j : index
}
%c0 = arith.constant 0 : index
%x = arith.constant 1 : i32
memref.store %x, %o[%c0] : memref<1xi32>"""
IF_POSITIVE = """%c0 = arith.constant 0 : index
%x = arith.constant 1 : i32
%c = arith.cmpi sgt, %s, %c0 : index
scf.if %c {
  memref.store %x, %o[%c0] : memref<1xi32>
}"""


def test_a_loop_that_is_not_entered() -> None:
    """A while loop that is not entered asks nothing of its step."""
    assert compared(function(BOUNDS, COUNTING), function(BOUNDS, IF_POSITIVE)).status.value == "refuted"


MATRICES = "%a: memref<2x2xi32>, %b: memref<2x2xi32>, %o: memref<1xi32>"
TRANSPOSED = "linalg.transpose ins(%a : memref<2x2xi32>) outs(%b : memref<2x2xi32>) permutation = [1, 0]\n"
GENERIC = """"linalg.transpose"(%a, %b) <{permutation = array<i64: 1, 0>}> ({
^bb0(%p: i32, %q: i32):
  "linalg.yield"(%p) : (i32) -> ()
}) : (memref<2x2xi32>, memref<2x2xi32>) -> ()
"""
FIRST = "%x = memref.load %b[%c0, %c0] : memref<2x2xi32>\n"
KEPT = "memref.store %x, %o[%c0] : memref<1xi32>"


def test_groups_that_the_generic_form_leaves_out() -> None:
    """A generic form without the sizes of its groups of operands is read as its custom form, and writes as it does."""
    custom, generic = (function(MATRICES, f"{INDEX}{FIRST}{text}{KEPT}") for text in (TRANSPOSED, GENERIC))
    late = function(MATRICES, f"{INDEX}{GENERIC}{FIRST}{KEPT}")
    assert compared(custom, generic).status.value == compared(generic, custom).status.value == "proved"
    assert compared(generic, late).status.value == "refuted"


SIZE_AND_CELL = "%n: index, %o: memref<8xi32>"
BELOW = "{}%c3 = arith.constant 3 : index\n%c0 = arith.constant 0 : index\n{}"
STORED = "scf.if %c {\n  memref.store %s, %o[%c0] : memref<8xi32>\n}"
UNSIGNED_INDICES = {
    "ult": ("%c = arith.cmpi ult, %n, %c3 : index\n", "%c = arith.cmpi slt, %n, %c3 : index\n"),
    "ule": ("%c = arith.cmpi ule, %n, %c3 : index\n", "%c = arith.cmpi sle, %n, %c3 : index\n"),
    "ugt": ("%c = arith.cmpi ugt, %n, %c3 : index\n", "%c = arith.cmpi sgt, %n, %c3 : index\n"),
    "uge": ("%c = arith.cmpi uge, %c3, %n : index\n", "%c = arith.cmpi sge, %c3, %n : index\n"),
    "remui": (
        "%r = arith.remui %n, %c3 : index\n%c = arith.cmpi eq, %r, %c0 : index\n",
        "%q = arith.floordivsi %n, %c3 : index\n%p = arith.muli %q, %c3 : index\n"
        "%c = arith.cmpi eq, %n, %p : index\n%r = arith.subi %n, %p : index\n",
    ),
}


@pytest.mark.parametrize("name", UNSIGNED_INDICES)
def test_unsigned_indices(name: str) -> None:
    """A negative index is a large number where it is unsigned, and no fault; one that is not negative is what it is."""
    place = "memref.store %s, %o[%r] : memref<8xi32>" if name == "remui" else STORED
    pair = [BELOW.format(SEVEN, text) + place for text in UNSIGNED_INDICES[name]]
    before, after = (function(SIZE_AND_CELL, text) for text in pair)
    assert compared(before, after).status.value == "refuted"
    inside = "affine.for %n = 0 to 6 {{\n{}\n}}".format
    before, after = (function("%o: memref<8xi32>", inside(text)) for text in pair)
    assert compared(before, after).status.value == "proved"


def test_an_output_that_is_an_input() -> None:
    """What a structured operation computes of an element is computed before that element is stored."""
    whole = "affine_map<(d0) -> (d0)>"
    both = f"""linalg.generic {{indexing_maps = [{whole}, {whole}, {whole}], iterator_types = ["parallel"]}}
    ins(%a : memref<8xi32>) outs(%a, %b : memref<8xi32>, memref<8xi32>) {{
    ^bb0(%x: i32, %y: i32, %z: i32):
      linalg.yield %s, %x : i32, i32
    }}"""
    loop = """affine.for %i = 0 to 8 {{
      %x = affine.load %a[%i] : memref<8xi32>
      affine.store %s, %a[%i] : memref<8xi32>
      affine.store {}, %b[%i] : memref<8xi32>
    }}"""
    arguments = "%a: memref<8xi32>, %b: memref<8xi32>, %s: i32"
    for value, wanted in (("%x", "proved"), ("%s", "refuted")):
        assert compared(function(arguments, both), function(arguments, loop.format(value))).status.value == wanted


def test_a_bound_that_is_a_truth_value() -> None:
    """`true` is -1 as the bound of a loop, as which nothing means it."""
    body = "affine.for %i = 0 to true {\n  affine.store %s, %a[%i] : memref<8xi32>\n}"
    with pytest.raises(LayoutproofError, match="expected an affine map or an integer"):
        read_functions(function("%a: memref<8xi32>, %s: i32", body), "f.mlir")


def test_iterations_that_overlap_in_memory() -> None:
    """Parallel iterations of a structured operation have no order: where one reads what another stores, it is none."""
    shift = """affine.for %i = 0 to {0} {{
      %x = affine.load %a[%i] : memref<8xi32>
      affine.store %x, %a[%i + {0}] : memref<8xi32>
    }}"""
    copy = """%p = memref.subview %a[0] [{0}] [1] : memref<8xi32> to memref<{0}xi32, strided<[1]>>
    %q = memref.subview %a[{0}] [{0}] [1] : memref<8xi32> to memref<{0}xi32, strided<[1], offset: {0}>>
    linalg.copy ins(%p : memref<{0}xi32, strided<[1]>>) outs(%q : memref<{0}xi32, strided<[1], offset: {0}>>)"""
    arguments = "%a: memref<8xi32>"
    apart = function(arguments, shift.format(4)), function(arguments, copy.format(4))
    assert compared(apart[0], apart[1]).status.value == compared(apart[1], apart[0]).status.value == "proved"
    before, after = (
        text.replace("[%i + 4]", "[%i + 1]").replace("%a[4]", "%a[1]").replace("offset: 4", "offset: 1")
        for text in apart
    )
    assert compared(before, after).status.value == "refuted"
    assert compared(after, before).status.value == "unknown"


def test_iterations_that_store_to_one_element() -> None:
    """Of parallel iterations that store to one element none is the last one; of a reduction's it is."""
    maps = "indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>]"
    generic = f"""linalg.generic {{{{{maps}, iterator_types = ["parallel", "{{}}"]}}}}
    ins(%a : memref<4x4xf32>) outs(%b : memref<4xf32>) {{{{
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    }}}}"""
    loop = """affine.for %i = 0 to 4 {
      affine.for %j = 0 to 4 {
        %x = affine.load %a[%i, %j] : memref<4x4xf32>
        affine.store %x, %b[%i] : memref<4xf32>
      }
    }"""
    arguments = "%a: memref<4x4xf32>, %b: memref<4xf32>"
    for kind, proved in (("parallel", False), ("reduction", True)):
        after = function(arguments, generic.format(kind))
        assert (compared(function(arguments, loop), after).status.value == "proved") is proved


def test_memory_in_the_region_of_an_operation() -> None:
    """Parallel iterations have no order, either, where the region reads what they store, or stores itself."""
    kind = "memref<7xi32, strided<[1], offset: 1>>"
    head = """linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}"""
    reads = f"""%v = memref.subview %a[1] [7] [1] : memref<8xi32> to {kind}
    {head} outs(%v : {kind}) {{
    ^bb0(%o: i32):
      %i = linalg.index 0 : index
      %x = memref.load %a[%i] : memref<8xi32>
      linalg.yield %x : i32
    }}"""
    writes = f"""{INDEX}{head} outs(%a : memref<8xi32>) {{
    ^bb0(%o: i32):
      memref.store %o, %b[%c0] : memref<8xi32>
      linalg.yield %o : i32
    }}"""
    shift = """affine.for %i = 0 to 7 {
      %x = affine.load %a[%i] : memref<8xi32>
      affine.store %x, %a[%i + 1] : memref<8xi32>
    }"""
    last = "%x = affine.load %a[7] : memref<8xi32>\naffine.store %x, %b[0] : memref<8xi32>"
    for serial, text in ((shift, reads), (last, writes)):
        assert compared(function(NUMBERS, serial), function(NUMBERS, text)).status.value == "refuted"


def test_iterations_on_arguments_that_overlap() -> None:
    """Where arguments may overlap, a copy by a structured operation is not one in order."""
    loop = (
        "affine.for %i = 0 to 8 {\n%x = affine.load %a[%i] : memref<8xi32>\naffine.store %x, %b[%i] : memref<8xi32>\n}"
    )
    before, after = (
        function(NUMBERS, text) for text in (loop, "linalg.copy ins(%a : memref<8xi32>) outs(%b : memref<8xi32>)")
    )
    assert compared(before, after).status.value == "proved"
    assert compared(before, after, may_alias=True).status.value != "proved"
