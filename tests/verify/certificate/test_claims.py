"""What engines answered, as questions for other solvers: `unsat` exactly where the engines said that there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.shares import one_in
from tests.verify.programs import OPERATORS, program

from layoutproof.ir.expr import TRUE, Binary, Expr, Var, const, equal
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.script.reader import load
from layoutproof.ir.stmt import ForKind
from layoutproof.verify.certificate.lemmas import Layout, Lemma, LemmaFile, layout_lemmas
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.no_faults import check_facts
from layoutproof.verify.isl.instance_search import Model
from layoutproof.verify.program.evidence import (
    Covered,
    Digits,
    Gathered,
    NoInstance,
    OneToOne,
    Setting,
    Unstated,
    Unwritten,
)
from layoutproof.verify.program.instances import Dim, Guard, IterationDomain
from layoutproof.verify.program.questions import Cover, SmtQuery
from layoutproof.verify.smt.engines import ask
from layoutproof.verify.smt.smtlib import Writer, legal, queries_of
from layoutproof.verify.smt.solver import Answer, Query
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

i, j, k, n, m = (Var(name) for name in "ijknm")


def dim(var: Var, extent: Expr | int) -> Dim:
    """A loop from 0."""
    return Dim(var, const(0), const(extent) if isinstance(extent, int) else extent, ForKind.SERIAL)


def answers(query: SmtQuery) -> set[Answer]:
    """What z3 and cvc5 say."""
    return {ask(engine, query.text, 20.0).answer for engine in ("z3", "cvc5")}


def only(*evidence: NoInstance | Covered | OneToOne | Digits) -> SmtQuery:
    """The one question for the evidence."""
    (query,), missing = queries_of(evidence)
    assert missing == ()
    return query


NOTHING, SOMETHING = {Answer.UNSAT}, {Answer.SAT}
SWIZZLE = Binary(BinaryOp.BITXOR, j, i % 8)


@one_in(4)
@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((4 * i + j >= 4 * n,), NOTHING),
        ((4 * i + j >= 4 * n - 1,), SOMETHING),
        ((i * m + j >= n * m, m >= 4), NOTHING),
        ((equal(i // m, n), m >= 1), NOTHING),
        ((equal(i // m, n), m >= 0), SOMETHING),  # a quotient by 0 may be anything
        ((equal(i // m, i), m < -1, i >= 1), NOTHING),
        ((equal(i // m, -1), m < -1, i >= 1), SOMETHING),
        ((Binary(BinaryOp.BITXOR, j, const(3)) > 3,), NOTHING),
        ((Binary(BinaryOp.BITXOR, j, const(3)) > 2,), SOMETHING),
    ],
)
def test_instances(conditions: tuple[Expr, ...], expected: set[Answer]) -> None:
    """A iteration domain without such an instance makes a text without a model, one with such an instance one with a
    model.
    """
    domain = IterationDomain((dim(i, n), dim(j, 4)))
    assert answers(only(NoInstance(Setting((n >= 0,), (("n", 0, None),)), domain, (conditions,), "isl"))) == expected


def test_what_is_said_of_one_scene_becomes_one_question() -> None:
    """Several answers about a iteration domain are one text, which has a model as soon as one of them is wrong."""
    domain = IterationDomain((dim(i, 8),), (Guard(i < 4),))
    setting = Setting()
    right = [NoInstance(setting, domain, ((i > bound,),), "isl") for bound in (3, 5)]
    assert answers(only(*right)) == NOTHING
    assert answers(only(*right, NoInstance(setting, domain, ((i > 2,),), "isl"))) == SOMETHING


def covered(*covers: Cover, extent: Expr | int = 8, conditions: tuple[Expr, ...] = ()) -> Covered:
    """That the covers reach all of a loop over `i`, as isl says it; the answer must be that they do."""
    domain = IterationDomain((dim(i, extent),))
    gathered = Gathered()
    found = Model((n,), (), {n: (0, None)}, gathered=gathered).uncovered(domain, covers, *conditions)
    assert found.is_empty, found
    (evidence,) = gathered.taken()
    assert isinstance(evidence, Covered)
    return evidence


def cover(condition: Expr, extent: Expr | int, *without: Cover) -> Cover:
    """Instances of `i` that some `j` below an extent reaches."""
    return Cover(IterationDomain((dim(i, 8), dim(j, extent))), (condition,), without)


def test_covers() -> None:
    """Every instance is reached, with the witness that isl gives; a cover that is taken away leaves a model."""
    halves = [cover(equal(i, 2 * j), 4), cover(equal(i, 2 * j + 1), 4)]
    evidence = covered(*halves)
    assert answers(only(evidence)) == NOTHING
    partial = Covered(
        evidence.setting, evidence.domain, (), evidence.covers,
        lambda: [w for w in evidence.witnesses() if w[0] == 0], "isl",
    )  # fmt: skip
    assert answers(only(partial)) == SOMETHING


def test_a_wrong_witness_proves_nothing() -> None:
    """A witness that does not reach what it should leaves a model: the text does not trust isl."""
    evidence = covered(cover(equal(i, 7 - j), 8))
    assert answers(only(evidence)) == NOTHING
    wrong = Covered(evidence.setting, evidence.domain, (), evidence.covers, lambda: [(0, {"j": i})], "isl")
    assert answers(only(wrong)) == SOMETHING


def test_covers_that_leave_out_others() -> None:
    """A cover may leave out what another reaches; the text says so, and is not fooled when the other reaches more."""
    inner = Cover(IterationDomain((dim(i, 8), dim(j, 8), dim(k, 8))), (equal(k, j), j > 3))
    evidence = covered(cover(i < 8, 8, inner))
    assert answers(only(evidence)) == NOTHING
    everything = Cover(inner.domain, (equal(k, j),))
    wrong = Covered(evidence.setting, evidence.domain, (), (cover(i < 8, 8, everything),), evidence.witnesses, "isl")
    assert answers(only(wrong)) == SOMETHING


def test_what_cannot_be_said_is_named() -> None:
    """Evidence without a text is listed with the reason, never dropped."""

    def no_witness() -> list[tuple[int, dict[str, Expr]]]:
        raise Unstated("it is too hard")

    call = Binary(BinaryOp.BITXOR, n, m)
    for piece, reason in (
        (Covered(Setting(), IterationDomain((dim(i, 8),)), (), (), no_witness, "isl"), "too hard"),
        (NoInstance(Setting(), IterationDomain(), ((equal(call, 0),),), "z3"), "bits"),
        (Unwritten("a flow", "nobody wrote it"), "nobody"),
    ):
        queries, (missing,) = queries_of([piece])
        assert queries == () and reason in missing.reason


@one_in(10)
@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ((i // 4, j, i % 4), NOTHING),
        ((i // 4, j), SOMETHING),
        ((i + j,), SOMETHING),
        ((i, SWIZZLE), NOTHING),
        ((i % 8, SWIZZLE), SOMETHING),
    ],
)
def test_one_to_one(outputs: tuple[Expr, ...], expected: set[Answer]) -> None:
    """Maps that send two points to one place have a model, for symbolic extents and swizzles too."""
    assert answers(only(OneToOne((i, j), (n, const(8)), outputs, TRUE, "isl"))) == expected


def test_digits() -> None:
    """The lemma of mixed radices holds, and so do the identities that its use needs; digits of another number have a
    model.
    """
    index = (i * n + j) * m + k
    right, missing = queries_of([Digits(index, (i, j, k), (Var("l"), n, m), Var("l") * n * m)])
    assert missing == () and len(right) == 3
    assert all(answers(query) == NOTHING for query in right)
    wrong, _ = queries_of([Digits(index + 1, (i, j, k), (Var("l"), n, m), Var("l") * n)])
    assert [answers(query) for query in wrong] == [NOTHING, SOMETHING, SOMETHING]


@pytest.mark.parametrize("name", ["x", "x'", "i_1'", "let", "größe", "div", "abs"])
def test_names_are_legal(name: str) -> None:
    """Any name of a program becomes one that solvers read, and different names stay different."""
    query = Query()
    encoder = Writer(query)
    query.add(
        encoder.variable(name) < encoder.variable(f"{name}_"), encoder.variable(name) > encoder.variable(f"{name}_")
    )
    text = SmtQuery(query.text("QF_LIA"), "QF_LIA")
    assert answers(text) == NOTHING
    names = ["x", "x'", "x.27.", "let", "let!", "ä", "äb"]
    assert len({legal(each) for each in names}) == len(names)


@one_in(10)
@pytest.mark.parametrize("path", OPERATORS, ids=lambda path: path.stem)
def test_obligations_of_operators(path: Path) -> None:
    """Every obligation that engines decided becomes questions, and z3 confirms each."""
    verdicts = check_facts(Facts.of(load(path), gathered=Gathered()))
    assert all(verdict.status is Status.PROVED for verdict in verdicts)
    for verdict in verdicts:
        queries, missing = queries_of(verdict.evidence)
        assert missing == ()
        assert queries or verdict.engine in ("symbolic", "intervals")
        assert [ask("z3", query.text, 20.0).answer for query in queries] == [Answer.UNSAT] * len(queries)


def test_nothing_is_kept_unless_somebody_records() -> None:
    """Outside of recording, verdicts carry no evidence, and proving goes the same way."""
    function = program(
        """
        from tvm.script import tirx as T
        @T.prim_func(s_tir=True)
        def main(A: T.Buffer((8,), "float32")):
            for i in range(8):
                A[(i * 3) % 8] = T.float32(1)
        """
    )
    plain = check_facts(Facts.of(function))
    assert all(verdict.evidence == () for verdict in plain)
    recorded = check_facts(Facts.of(function, gathered=Gathered()))
    told = [[(v.status, v.claim, v.engine) for v in verdicts] for verdicts in (plain, recorded)]
    assert told[0] == told[1]
    assert any(verdict.evidence for verdict in recorded)


def test_verdicts_compare_without_their_evidence() -> None:
    """Evidence is no part of what a verdict says."""
    bare = Verdict(Status.PROVED, Claim(ClaimKind.OTHER, "c"), "isl")
    assert bare == Verdict(Status.PROVED, Claim(ClaimKind.OTHER, "c"), "isl", evidence=(Unwritten("a", "b"),))
    assert "evidence" not in bare.to_dict()


def test_a_layout_that_is_none_is_no_lemma(tmp_path: Path) -> None:
    """A map that loses data makes a lemma that is not proved, in a file that reads back equal."""
    (lemma,) = layout_lemmas(Layout("halves", "lambda i: [i // 2]", "n"))
    assert lemma.status is not Status.PROVED and lemma.queries == ()
    file = LemmaFile("a test", (lemma, Lemma("one", "1 is 1", Status.PROVED, ())))
    file.save(tmp_path / "a.lplemmas.json")
    assert LemmaFile.load(tmp_path / "a.lplemmas.json") == file
