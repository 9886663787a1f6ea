"""What compilers do to programs, kind by kind: hand-made pairs with the expected verdict in their header."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.lowering.compare.pairs import Pair, case_name, cases, check, named, pairs, told
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.certificate.recheck import recheck
from layoutproof.verify.verdict.verdict import Status


@one_in(10)
@pytest.mark.parametrize(("pair", "given"), cases("hand"), ids=case_name)
def test_hand(pair: Pair, given: bool) -> None:
    """Guards, inits, loops, blocks, temporaries, dialects: what its header announces is what is found."""
    check(pair, given)


@one_in(7)
@pytest.mark.parametrize(("pair", "given"), cases("kinds"), ids=case_name)
def test_kinds(pair: Pair, given: bool) -> None:
    """More of the same: parameters and outputs, choices, strides, types of loops, vectors, updates in place, sizes of
    any number.
    """
    check(pair, given)


BACK = [
    pair
    for folder in ("hand", "kinds", "must")
    for pair in pairs(folder)
    if pair.expect == "proved" and not pair.layouts and not pair.match
]


@one_in(14)
@pytest.mark.parametrize("pair", BACK, ids=case_name)
def test_the_other_way(pair: Pair) -> None:
    """Whatever keeps its layouts is proved in the other direction too: inlined where something was introduced, rolled
    up again.
    """
    found = compare(pair.after, pair.before)
    assert found.status is Status.PROVED and found.strictness == pair.strictness, told(found)


CERTIFIED = [
    "padding_filled_in_an_epilogue",
    "overcompute_cut_at_the_copy_out",
    "halves_of_the_reduction_swapped",
    "computed_temporary_inlined",
]


@one_in(14)
@pytest.mark.parametrize("name", CERTIFIED)
def test_certificates_are_confirmed(name: str, tmp_path: Path) -> None:
    """What was proved of a pair is confirmed by other solvers."""
    path = tmp_path / "pair.lpcert.json"
    named(pairs("hand"), name).compared().certificate.save(path)
    report = recheck([path], {"z3": "1", "cvc5": "2"}, seconds=20)
    assert report.status is Status.PROVED, report.files[0].problems


def test_parameters_in_another_order_without_being_told() -> None:
    """Names that stand at other places are no reason to guess: it is refused, or what is found at each place is
    compared and refuted.
    """
    pair = named(pairs("kinds"), "parameters_in_another_order")
    assert compare(pair.before, pair.after).status is Status.REFUTED


def test_names_at_other_places_are_not_guessed() -> None:
    """The same names in another order, without `match`, are an error that asks which is meant."""
    pair = named(pairs("kinds"), "commuted_operands")
    a, b, c = pair.after.params
    swapped = replace(pair.after, params=(b, a, c))
    with pytest.raises(LayoutproofError, match="match"):
        compare(pair.before, swapped)


def test_caches_of_our_own_schedule() -> None:
    """A matmul with a cached input and result, split and reordered by a schedule, is proved from the two programs
    alone.
    """
    before = named(pairs("must"), "matmul_tiled").before
    schedule = Schedule(before)
    schedule.cache_read("C", "A")
    schedule.cache_write("C", "C", "local")
    schedule.split("C", "j", [None, 8])
    found = compare(before, schedule.func)
    assert found.status is Status.PROVED and found.strictness == (), told(found)
