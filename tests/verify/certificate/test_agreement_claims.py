"""That sources are carried to sources is said to other solvers: right pairings are confirmed, wrong ones contradicted."""

from __future__ import annotations

import islpy as isl
import pytest

from layoutproof.verify.evidence import Several, recording, taken
from layoutproof.verify.isl.agreement_evidence import note_agreement, note_contributions
from layoutproof.verify.smt.claims import queries_of
from layoutproof.verify.smt.engines import ask
from layoutproof.verify.smt.session import Answer

CONTEXT = isl.Context()
POINTS = "[n] -> { n0[i, j] : 0 <= i < n and 0 <= j < 8 }"
FOUND = "[n] -> { n0[i, j] -> n1[i, floor(j/4), j mod 4] : 0 <= i < n and 0 <= j < 8 }"
CARRY = "[n] -> { n1[i, jo, ji] -> o1[i, 4jo + ji] : 0 <= i < n and 0 <= jo < 2 and 0 <= ji < 4 }"
WANTED = "[n] -> { n0[i, j] -> o1[i, j] : 0 <= i < n and 0 <= j < 8 }"
ALL_FOUND = "[n] -> { n0[i, j] -> n1[i, jo, ji] : 0 <= i < n and 0 <= j < 8 and 0 <= jo < 2 and 0 <= ji < 4 }"
ALL_WANTED = "[n] -> { n0[i, j] -> o1[i, k] : 0 <= i < n and 0 <= j < 8 and 0 <= k < 8 }"


def answers(found: str, carry: str, wanted: str, *, several: bool) -> set[Answer]:
    """What two solvers say of the claims behind an agreement."""
    note = note_contributions if several else note_agreement
    relations = [isl.UnionMap.read_from_str(CONTEXT, text) for text in (found, carry, wanted)]
    with recording():
        note("sources", relations[0], relations[1], relations[2], isl.Set.read_from_str(CONTEXT, POINTS))
        (piece,) = taken()
    assert isinstance(piece, Several)
    queries, missing = queries_of(piece.make())
    assert missing == () and queries
    return {ask(engine, query.text, query.logic, 20.0).answer for query in queries for engine in ("z3", "cvc5")}


@pytest.mark.parametrize(("found", "wanted", "several"), [(FOUND, WANTED, False), (ALL_FOUND, ALL_WANTED, True)])
def test_right_pairings_are_confirmed(found: str, wanted: str, *, several: bool) -> None:
    """Both solvers confirm that every source is carried to the one that it was."""
    assert answers(found, CARRY, wanted, several=several) == {Answer.UNSAT}


@pytest.mark.parametrize(
    ("found", "carry", "wanted", "several"),
    [
        (FOUND, CARRY.replace("4jo + ji", "4jo + 3 - ji"), WANTED, False),
        (FOUND, CARRY.replace("ji < 4", "ji < 3"), WANTED, False),
        (FOUND.replace("j < 8", "j < 7"), CARRY, WANTED, False),
        (FOUND, CARRY, WANTED.replace("i < n", "i < n - 1"), False),
        (FOUND, CARRY, WANTED.replace("o1[i, j]", "o2[i, j]"), False),
        (ALL_FOUND, CARRY, ALL_WANTED.replace("k < 8", "k < 7"), True),
        (ALL_FOUND.replace("ji < 4", "ji < 3"), CARRY, ALL_WANTED, True),
        (ALL_FOUND, CARRY.replace("ji < 4", "ji < 3"), ALL_WANTED, True),
    ],
)
def test_wrong_pairings_show(found: str, carry: str, wanted: str, *, several: bool) -> None:
    """A source that is carried elsewhere, or that is lost on either side, is found by a solver."""
    assert Answer.SAT in answers(found, carry, wanted, several=several)
