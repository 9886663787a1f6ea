"""Reductions of parallel loops are reductions of loops, where their order makes no difference; and values that nothing
changes or uses.
"""

from __future__ import annotations

import pytest
from tests.importers.mlir.programs import compared, function
from tests.shares import one_in

from layoutproof.importers.mlir import read_functions
from layoutproof.ir.diagnostic import LayoutproofError

ARGUMENTS = "%m: memref<10xi32>, %r: memref<1xi32>"


def _loop(start: str, operation: str, element: str = "i32") -> str:
    return f"""
        %z = arith.constant {start} : {element}
        %0 = affine.for %i = 0 to 10 iter_args(%c = %z) -> ({element}) {{
          %2 = affine.load %m[%i] : memref<10x{element}>
          %s = arith.{operation} %c, %2 : {element}
          affine.yield %s : {element}
        }}
        affine.store %0, %r[0] : memref<1x{element}>
        """


def _affine(word: str, element: str = "i32") -> str:
    return f"""
        %0 = affine.parallel (%i) = (0) to (10) reduce ("{word}") -> ({element}) {{
          %2 = affine.load %m[%i] : memref<10x{element}>
          affine.yield %2 : {element}
        }}
        affine.store %0, %r[0] : memref<1x{element}>
        """


def _scf(start: str, operation: str) -> str:
    return f"""
        %a = arith.constant 0 : index
        %b = arith.constant 10 : index
        %d = arith.constant 1 : index
        %z = arith.constant {start} : i32
        %0 = scf.parallel (%i) = (%a) to (%b) step (%d) init (%z) -> i32 {{
          %1 = memref.load %m[%i] : memref<10xi32>
          scf.reduce(%1 : i32) {{
          ^bb0(%x: i32, %y: i32):
            %2 = arith.{operation} %x, %y : i32
            scf.reduce.return %2 : i32
          }}
        }}
        affine.store %0, %r[0] : memref<1xi32>
        """


CASES = {
    "addi": ("0", "addi"), "muli": ("1", "muli"), "andi": ("-1", "andi"), "ori": ("0", "ori"),
    "maxs": ("-2147483648", "maxsi"), "mins": ("2147483647", "minsi"), "maxu": ("0", "maxui"), "minu": ("-1", "minui"),
}  # fmt: skip


@one_in(4)
@pytest.mark.parametrize("word", CASES)
def test_identities(word: str) -> None:
    """A reduction of `affine.parallel` starts with the identity of its operation, that of `scf.parallel` as it says."""
    start, operation = CASES[word]
    before = function(ARGUMENTS, _loop(start, operation))
    assert compared(before, function(ARGUMENTS, _affine(word))).status.value == "proved"
    assert compared(before, function(ARGUMENTS, _scf(start, operation))).status.value == "proved"


def test_another_start_is_refuted() -> None:
    """A loop that starts with something else is not the reduction."""
    before, after = function(ARGUMENTS, _loop("1", "addi")), function(ARGUMENTS, _affine("addi"))
    assert compared(before, after).status.value == "refuted"


def test_maxima_of_floats() -> None:
    """A maximum that keeps NaN and the signs of zeros is the same in each order; a sum is not, and is refused."""
    arguments = ARGUMENTS.replace("i32", "f32")
    before = function(arguments, _loop("0xFF800000", "maximumf", "f32"))
    assert compared(before, function(arguments, _affine("maximumf", "f32"))).status.value == "proved"
    with pytest.raises(LayoutproofError, match="depends on the order"):
        read_functions(function(arguments, _affine("addf", "f32")), "f.mlir")


def test_iterations_are_independent() -> None:
    """A parallel loop with a reduction still may not write what another of its iterations reads."""
    body = _affine("addi").replace(
        "affine.yield", "affine.store %2, %m[9 - %i] : memref<10xi32>\n          affine.yield"
    )
    text = function(ARGUMENTS, body)
    assert compared(text.replace("9 - %i", "%i"), text).status.value != "proved"
    assert compared(text, text.replace("affine.store %2, %m[9 - %i] : memref<10xi32>", "")).status.value != "proved"


def test_values_that_are_passed_on() -> None:
    """A value that each iteration of a loop passes on is the one before the loop, whatever the number of iterations."""
    loop = """
        %z = arith.constant 3 : i32
        %0:2 = affine.for %i = 0 to %n iter_args(%c = %z, %d = %z) -> (i32, i32) {
          %s = arith.addi %d, %c : i32
          affine.yield %c, %s : i32, i32
        }
        affine.store %0#0, %r[0] : memref<1xi32>
        """
    arguments = f"{ARGUMENTS}, %n: index"
    short = "%z = arith.constant 3 : i32\naffine.store %z, %r[0] : memref<1xi32>"
    assert compared(function(arguments, loop), function(arguments, short)).status.value == "proved"
    other = function(arguments, loop.replace("%0#0", "%0#1"))
    assert compared(other, function(arguments, short)).status.value == "refuted"


def test_what_nothing_uses() -> None:
    """Operations whose results nothing uses are left out, but for divisions, which may be undefined."""
    body = "%x = affine.load %m[0] : memref<10xi32>\n%y = arith.{} %x, %x : i32\naffine.store %x, %r[0] : memref<1xi32>"
    plain = function(ARGUMENTS, body.replace("%y = arith.{} %x, %x : i32\n", ""))
    assert compared(plain, function(ARGUMENTS, body.format("addi"))).status.value == "proved"
    assert compared(plain, function(ARGUMENTS, body.format("divsi"))).status.value == "refuted"


def test_flags_of_a_sum_in_any_order() -> None:
    """A sum in any order may overflow where one in order does not: its flag is an obligation that is not translated."""
    flagged = _scf("0", "addi").replace("%x, %y :", "%x, %y overflow<nsw> :")
    plain, after = (function(ARGUMENTS, text) for text in (_scf("0", "addi"), flagged))
    with pytest.raises(LayoutproofError, match="a sum in any order"):
        compared(plain, after)
    assert compared(after, plain).status.value == "proved"
