"""That sources correspond is asked of other solvers: right pairings are confirmed, wrong ones contradicted."""

from __future__ import annotations

import islpy as isl
import pytest
from tests.proof.litmus import litmus
from tests.tree import ROOT

from layoutproof.ir.expr import Expr, Var
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.isl.isl_evidence import note_agreement, note_contributions, note_function
from layoutproof.verify.program.evidence import Gathered, Several
from layoutproof.verify.smt.engines import ask
from layoutproof.verify.smt.smtlib import queries_of
from layoutproof.verify.smt.solver import Answer

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
    gathered = Gathered()
    note(gathered, "sources", relations[0], relations[1], relations[2], isl.Set.read_from_str(CONTEXT, POINTS))
    (piece,) = gathered.taken()
    assert isinstance(piece, Several)
    queries, missing = queries_of(piece.make())
    assert missing == () and queries
    return {ask(engine, query.text, 20.0).answer for query in queries for engine in ("z3", "cvc5")}


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


def test_no_contributions_ask_nothing() -> None:
    """Points from which neither relation leads anywhere have the same contributions, and leave no question."""
    gathered, points = Gathered(), isl.Set.read_from_str(CONTEXT, POINTS)
    nothing, carry = (isl.UnionMap.read_from_str(CONTEXT, text) for text in ("[n] -> { }", CARRY))
    note_contributions(gathered, "sources", nothing, carry, nothing, points)
    assert queries_of(gathered.taken()) == ((), ())


def answers_on_function(outputs: tuple[Expr, ...], points: str = POINTS) -> set[Answer]:
    """What two solvers say of the claim that the sources are where expressions say."""
    gathered, link = Gathered(), isl.Map.read_from_str(CONTEXT, FOUND)
    note_function(gathered, "where", link, (Var("i"), Var("j")), outputs, isl.Set.read_from_str(CONTEXT, points))
    (piece,) = gathered.taken()
    assert isinstance(piece, Several)
    queries, missing = queries_of(piece.make())
    assert missing == () and queries
    return {ask(engine, query.text, 20.0).answer for query in queries for engine in ("z3", "cvc5")}


def test_expressions_for_sources() -> None:
    """Expressions that say a relation are confirmed; others, and points from which it does not lead, are found by a
    solver.
    """
    i, j = Var("i"), Var("j")
    assert answers_on_function((i, j // 4, j % 4)) == {Answer.UNSAT}
    assert Answer.SAT in answers_on_function((i, j // 4, 3 - j % 4))
    assert Answer.SAT in answers_on_function((i, j // 4, j % 4), POINTS.replace("j < 8", "j < 9"))


@pytest.mark.parametrize("name", ["inlined_by_parts", "inlined_terms_of_a_sum"])
def test_what_stands_for_loads_is_confirmed(name: str) -> None:
    """Where a value was stored that stands for a load, and what its loads found then, is said for each, and two solvers
    agree.
    """
    case = litmus(ROOT / "proofs" / "accepted" / f"{name}.py")
    verdicts = prove_rewrite(case.rewrite, gathered=Gathered()).verdicts
    evidence = [piece for verdict in verdicts for piece in verdict.evidence]
    told = [piece for piece in evidence if isinstance(piece, Several) and "in the place of" in piece.what]
    assert {piece.what.partition(" ")[0] for piece in told} >= {"where", "what"}
    queries, missing = queries_of(told)
    assert missing == ()
    assert {ask(engine, query.text, 20.0).answer for query in queries for engine in ("z3", "cvc5")} == {Answer.UNSAT}
