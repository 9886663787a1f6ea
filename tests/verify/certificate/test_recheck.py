"""Checking again: two solvers to a question, contradictions loud, nothing passes because somebody was silent."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from tests.shares import one_in
from tests.verify.certificate.samples import certificate

from layoutproof.verify.certificate import recheck as checking
from layoutproof.verify.certificate.lemmas import Lemma, LemmaFile
from layoutproof.verify.certificate.reading import Kind, read_file
from layoutproof.verify.certificate.recheck import Agreement, Asked, Report, Task, recheck
from layoutproof.verify.certificate.sealed_files import find_files
from layoutproof.verify.program.questions import SAT, SmtQuery
from layoutproof.verify.smt.engines import Reply
from layoutproof.verify.smt.solver import Answer
from layoutproof.verify.verdict.verdict import Status

ENGINES = {"z3": "1", "cvc5": "2"}
LINEAR = SmtQuery("(set-logic QF_LIA)\n(assert false)\n(check-sat)\n", "QF_LIA")
PRODUCTS = SmtQuery("(set-logic QF_NIA)\n(assert false)\n(check-sat)\n", "QF_NIA")
HALF = SmtQuery("(set-logic QF_FP)\n(declare-fun x () (_ FloatingPoint 5 11))\n(assert false)\n(check-sat)\n", "QF_FP")


def lemmas(folder: Path, *queries: SmtQuery) -> Path:
    """A file of lemmas with one question each."""
    path = folder / "some.lplemmas.json"
    LemmaFile("a test", tuple(Lemma(f"l{k}", "it holds", Status.PROVED, (q,)) for k, q in enumerate(queries))).save(
        path
    )
    return path


def answered(z3: str, cvc5: str, seconds: float, task: Task) -> Reply:
    """A double for the solvers."""
    return Reply(Answer(cvc5 if task.engine == "cvc5" else z3))


def said(path: Path, z3: str, cvc5: str) -> Report:
    """What rechecking finds where the two solvers answer so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checking, "ask_engine", partial(answered, z3, cvc5))
        return recheck([path], ENGINES, seconds=1.0)


@one_in(4)
def test_two_solvers_confirm(tmp_path: Path) -> None:
    """Where both say what is expected, the file is proved and each engine's answers are counted."""
    report = said(lemmas(tmp_path, LINEAR, PRODUCTS), "unsat", "unsat")
    assert (report.status, report.disagreements) == (Status.PROVED, ())
    assert [(f.claims, f.questions, f.confirmed) for f in report.files] == [(2, 2, 2)]
    assert [(e.name, e.asked, e.confirmed, e.unknown, e.contradicted) for e in report.engines] == [
        ("z3", 2, 2, 0, 0),
        ("cvc5", 2, 2, 0, 0),
    ]


@one_in(4)
def test_solvers_that_contradict_each_other(tmp_path: Path) -> None:
    """One `sat` beside one `unsat` is the loudest error: refuted, with the claim and what each said."""
    report = said(lemmas(tmp_path, LINEAR), "unsat", "sat")
    assert report.status is Status.REFUTED
    (loud,) = report.disagreements
    assert "z3 unsat" in loud and "cvc5 sat" in loud and "l0" in loud
    assert report.engines[1].contradicted == 1


@one_in(4)
def test_solvers_that_refute(tmp_path: Path) -> None:
    """Where both say otherwise, the claim is refuted, and nobody contradicts anybody."""
    report = said(lemmas(tmp_path, LINEAR), "sat", "sat")
    assert (report.status, report.disagreements) == (Status.REFUTED, ())


@one_in(9)
def test_a_question_that_must_have_a_model(tmp_path: Path) -> None:
    """What is expected to be `sat` is confirmed by `sat`, and refuted by `unsat`."""
    path = lemmas(tmp_path, SmtQuery(LINEAR.text, LINEAR.logic, SAT))
    assert said(path, "sat", "sat").status is Status.PROVED
    assert said(path, "unsat", "unsat").status is Status.REFUTED


@one_in(10)
@pytest.mark.parametrize(
    ("query", "status"), [(LINEAR, Status.UNKNOWN), (PRODUCTS, Status.PROVED), (HALF, Status.PROVED)]
)
def test_one_solver_is_not_enough(tmp_path: Path, query: SmtQuery, status: Status) -> None:
    """One answer is unknown, except for products of variables and 16-bit floats, where it is named."""
    report = said(lemmas(tmp_path, query), "unsat", "unknown")
    assert report.status is status
    named = report.files[0].exceptions if status is Status.PROVED else report.files[0].problems
    assert len(named) == 1 and "l0" in named[0]


@one_in(10)
@pytest.mark.parametrize("query", [LINEAR, PRODUCTS, HALF])
def test_no_answer_is_unknown(tmp_path: Path, query: SmtQuery) -> None:
    """Where no solver knows, nothing is confirmed, whatever the question is."""
    assert said(lemmas(tmp_path, query), "unknown", "unknown").status is Status.UNKNOWN


def test_a_lemma_without_a_question(tmp_path: Path) -> None:
    """A claim of which nothing is asked is unknown unless the reason stands there."""
    path = tmp_path / "some.lplemmas.json"
    LemmaFile("a test", (Lemma("l", "it holds", Status.PROVED, ()),)).save(path)
    assert said(path, "unsat", "unsat").status is Status.UNKNOWN
    LemmaFile(
        "a test", (Lemma("l", "it holds", Status.PROVED, (), exceptions=(("enumeration", "all 65536 values"),)),)
    ).save(path)
    report = said(path, "unsat", "unsat")
    assert report.status is Status.PROVED and "65536" in report.files[0].exceptions[0]


def test_agreement_of_three() -> None:
    """From best to worst: two or more agree, one knows, none knows, all say otherwise, they contradict each other."""
    right, wrong, open_one = (Reply(a) for a in (Answer.UNSAT, Answer.SAT, Answer.UNKNOWN))
    cases = {
        (right, right, right): Agreement.CONFIRMED,
        (right, right, open_one): Agreement.CONFIRMED,
        (right, open_one, open_one): Agreement.SINGLE,
        (open_one, open_one, open_one): Agreement.OPEN,
        (wrong, wrong, open_one): Agreement.WRONG,
        (right, right, wrong): Agreement.DISAGREEMENT,
    }
    for replies, expected in cases.items():
        assert Asked(LINEAR, dict(zip("abc", replies, strict=True))).agreement is expected


@one_in(9)
def test_a_certificate_with_real_solvers(tmp_path: Path) -> None:
    """The certificate of a schedule over any number of rows is confirmed, question by question, by z3 and by cvc5."""
    path = tmp_path / "row_sum.lpcert.json"
    certificate().save(path)
    report = recheck([path], ENGINES, jobs=2, seconds=20)
    assert report.status is Status.PROVED, report.files[0].problems
    assert report.files[0].questions == report.files[0].confirmed >= 10


REWRITE = """
# expect: {expect}
# strictness: ieee
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for i in range(8):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for i in range(8):
        B[i] = {value}
"""


@pytest.mark.parametrize(
    ("expect", "value", "status"),
    [
        ("proved", "A[i]", Status.PROVED),
        ("refuted", "A[i] + T.float32(0)", Status.PROVED),
        ("refuted", "A[i]", Status.REFUTED),
        ("proved", "A[i] + T.float32(0)", Status.REFUTED),
        ("unknown", "A[i]", Status.UNKNOWN),
    ],
)
def test_expectations(tmp_path: Path, expect: str, value: str, status: Status) -> None:
    """A rewrite must get the verdict that its header says: right programs proved, wrong ones refuted by a run, and
    never the other.
    """
    path = tmp_path / "case.py"
    path.write_text(REWRITE.format(expect=expect, value=value).lstrip())
    reading = read_file(path)
    assert (reading.kind, reading.status) == (Kind.REWRITE, status), reading.problems
    assert bool(reading.problems) is (status is not Status.PROVED)


def test_files_in_folders(tmp_path: Path) -> None:
    """Folders are searched by ending and header, other programs and JSON are passed over; named files never are."""
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    (folder / "case.py").write_text(REWRITE.format(expect="proved", value="A[i]").lstrip())
    (folder / "program.py").write_text("def f(): ...\n")
    (folder / "notes.json").write_text("{}")
    path = lemmas(folder, LINEAR)
    assert find_files([tmp_path]) == [folder / "case.py", path]
    assert find_files([folder / "program.py", tmp_path, path])[0] == folder / "program.py"
    assert read_file(folder / "program.py").kind is Kind.BROKEN
