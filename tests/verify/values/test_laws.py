"""The laws: matched with care, proved in `proofs/laws`, and what is committed there is what the code relies on."""

from __future__ import annotations

import math

import pytest
from tests.shares import one_in
from tests.tree import ROOT
from tests.verify.values.asking import make_question

from layoutproof.ir.dtype import BOOL, FLOAT16, FLOAT32, INT8, UINT8
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, FloatImm, IntImm, Select, Var, equal, logical_and
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.verify.certificate.lawbook import FILES, Unexpected, ask_z3, lemma_file, rule_lemmas, without_each
from layoutproof.verify.certificate.lemmas import LemmaFile
from layoutproof.verify.program.questions import SmtQuery
from layoutproof.verify.values.fast_math import ALL, IEEE, FastMath
from layoutproof.verify.values.knowledge import ANY, INFINITE, NAN, NEG_ZERO, POS, POS_INF, POS_ZERO, ZERO, Knowledge
from layoutproof.verify.values.law_table import laws, match
from layoutproof.verify.values.laws import satisfies_by_laws, simplified
from layoutproof.verify.values.question import (
    AtLeast,
    AtMost,
    Given,
    Holds,
    Identical,
    NotInfinite,
    NotNan,
    NotNegativeZero,
    placeholder,
)
from layoutproof.verify.verdict.verdict import Status

FOLDER = ROOT / "proofs" / "laws"
F = FLOAT32
x, y, z = (Var(name, F) for name in "xyz")
ZERO_F, ONE_F, INF = FloatImm(0.0, F), FloatImm(1.0, F), FloatImm(math.inf, F)


@one_in(4)
@pytest.mark.parametrize("name", FILES)
def test_the_committed_proofs_are_of_these_laws(name: str) -> None:
    """Every lemma of the file has the claim, the verdict and the very questions that the code makes today."""
    committed, made = LemmaFile.load(FOLDER / name), lemma_file(name, lambda name, query: None)
    assert [lemma.name for lemma in committed.lemmas] == [lemma.name for lemma in made.lemmas]
    for there, here in zip(committed.lemmas, made.lemmas, strict=True):
        assert (there.claim, there.status, there.strictness, there.queries) == (
            here.claim,
            here.status,
            here.strictness,
            here.queries,
        )
        assert (there.counterexample is None) == (there.status is Status.PROVED)


def test_both_ways() -> None:
    """About as much is refuted as is proved: every side condition of every law of floats, every bad pad value."""
    statuses = [lemma.status for name in FILES for lemma in LemmaFile.load(FOLDER / name).lemmas]
    assert statuses.count(Status.REFUTED) > len(statuses) // 4
    conditions = sum(1 for law in laws() if law.of in ("float", "number") for _ in without_each(law))
    assert conditions >= 25


def test_a_wrong_law_is_caught() -> None:
    """A claim that does not come out as it must stops the making of the file."""
    wrong = SmtQuery("(set-logic QF_BV)\n(assert true)\n(check-sat)\n", "QF_BV")
    with pytest.raises(Unexpected, match="z3 says sat"):
        ask_z3("wrong", wrong)


def test_some_laws_anew() -> None:
    """Those of bytes and halves are proved again here; the others when `proofs/laws` is rechecked."""
    asked: list[str] = []

    def ask(name: str, query: SmtQuery) -> None:
        if "(int8)" in name or "(uint8)" in name or ("(float16)" in name and "fma" not in name):
            asked.append(name)
            ask_z3(name, query)

    assert len(list(rule_lemmas(ask))) > len(asked) > 80


def test_matching() -> None:
    """A letter stands for one expression throughout; types and operations must agree."""
    same = next(law for law in laws() if law.name == "max(x, x) = x")
    pattern = same.left(F)
    assert match(pattern, Binary(BinaryOp.MAX, y + z, y + z)) == {"x": y + z}
    assert match(pattern, Binary(BinaryOp.MAX, y, z)) is None and match(pattern, Binary(BinaryOp.MIN, y, y)) is None
    assert match(pattern, y) is None
    n = Var("n", UINT8)
    ones = next(law for law in laws() if law.name == "x & ones = x")
    assert (
        match(ones.left(UINT8), n & IntImm(255, UINT8)) == {"x": n}
        and match(ones.left(UINT8), n & IntImm(1, UINT8)) is None
    )
    assert not ones.holds_for(F) and ones.holds_for(INT8) and not same.holds_for(BOOL)


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        (NotNan(), ANY & ~NAN),
        (NotInfinite(), ANY & ~INFINITE),
        (NotNegativeZero(), ANY & ~NEG_ZERO),
        (AtLeast(ONE_F), NAN | POS | POS_INF),
        (AtLeast(ZERO_F), NAN | ZERO | POS | POS_INF),
        (AtMost(FloatImm(-0.0, F)), ANY & ~(POS | POS_INF)),
        (AtLeast(FloatImm(math.nan, F)), ANY),
        (Identical(ZERO_F), POS_ZERO),
        (Identical(FloatImm(math.nan, F)), NAN),
        (Holds(placeholder(F) < INF), ANY & ~(NAN | POS_INF)),
        (Holds(placeholder(F) > ZERO_F), POS | POS_INF),
        (Holds(equal(placeholder(F), ZERO_F)), ZERO),
        (Holds(equal(placeholder(F), placeholder(F))), ANY & ~NAN),
        (Holds(Call("abs", (placeholder(F),)) < INF), ANY & ~(NAN | INFINITE)),
        (Holds(logical_and(placeholder(F) > ZERO_F, placeholder(F) < INF)), POS),
        (Holds(Compare(CompareOp.NE, placeholder(F), ZERO_F)), ANY),
    ],
)
def test_kinds_by_facts(given: object, kinds: int) -> None:
    """What each fact says of the kinds of a value."""
    question = make_question(x, x, [Given(x, given)])  # type: ignore[arg-type]  # parametrized
    assert Knowledge(question, IEEE).known(x).kinds == kinds


def test_kinds_by_fast_math() -> None:
    """A fast-math assumption speaks of computed variables and of what the old side always computes; a NaN or infinity
    would have shown in the result.
    """
    old = Select(x > ZERO_F, x + y, z)
    question = make_question(x, old, computed=[x])
    under = Knowledge(question, ALL)
    assert under.known(x).kinds == ANY & ~(NAN | INFINITE) == under.known(y).kinds == under.known(x + y).kinds
    assert under.known(z).kinds == ANY and under.known(y + z).kinds == ANY
    assert Knowledge(question, frozenset({FastMath.NINF})).known(y).kinds == ANY
    assert Knowledge(make_question(x, old, computed=[x], old_is_computed=False), ALL).known(y).kinds == ANY


def test_rewriting_names_its_laws() -> None:
    """Each law that was used is named, with the exact points of library functions; literals are computed."""
    value = Cast(F, Cast(FLOAT16, FloatImm(2.0, F))) * Call("cos", (ZERO_F,)) + x * FloatImm(1.0, F)
    found = simplified(make_question(value, FloatImm(2.0, F) + x), IEEE)
    assert found is not None and found.new == found.old
    assert set(found.laws) == {"arithmetic on literals", "cos(0.0) = 1.0", "x * 1.0 = x"}


def test_a_part_that_may_trap_is_not_dropped() -> None:
    """No law is used where the new side may trap and the old one does not."""
    n = Var("n")
    assert simplified(make_question(n // n * 0, IntImm(0)), IEEE) is None
    assert simplified(make_question((n // n) * 1, n // n), IEEE) is not None


def test_goals_read_off() -> None:
    """Properties of results by their kinds."""

    def goal(value: Expr, known: object, *given: Given) -> bool:
        question = make_question(value, value, given)
        object.__setattr__(question, "goal", known)
        return satisfies_by_laws(question, IEEE) is not None

    assert goal(x + y, NotNegativeZero(), Given(x, NotNegativeZero())) and not goal(x + y, NotNegativeZero())
    assert goal(Binary(BinaryOp.MAX, y, x), AtLeast(ONE_F), Given(x, AtLeast(ONE_F)))
    assert not goal(Binary(BinaryOp.MAX, x, y), AtLeast(ONE_F), Given(x, AtLeast(ONE_F)))
    assert goal(Binary(BinaryOp.MIN, y, x), AtMost(ONE_F), Given(x, AtMost(ONE_F)))
    assert goal(x * ZERO_F, Identical(ZERO_F), Given(x, Holds(placeholder(F) > ONE_F)), Given(x, NotInfinite()))
    assert not goal(x, Identical(ZERO_F)) and not goal(x, Holds(equal(placeholder(F), ZERO_F)))
    assert goal(x, NotInfinite(), Given(x, NotInfinite())) and goal(x, NotNan(), Given(x, NotNan()))
