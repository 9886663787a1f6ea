"""Solvers in processes of their own: what hangs, dies or talks nonsense costs one answer, in bounded time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.shares import one_in
from tests.verify.certificate.samples import double

from layoutproof.verify.certificate.workers import Pool, Task
from layoutproof.verify.smt.query import SmtQuery
from layoutproof.verify.smt.session import Answer

FALSE = SmtQuery("(set-logic QF_LIA)\n(declare-fun x () Int)\n(assert (< x x))\n(check-sat)\n", "QF_LIA")
TRUE = SmtQuery("(set-logic QF_LIA)\n(declare-fun x () Int)\n(assert (<= x x))\n(check-sat)\n", "QF_LIA")
FLOAT = SmtQuery(
    "(set-logic QF_BVFP)\n(declare-fun x () (_ BitVec 32))\n"
    "(assert (not (= (fp.add RNE ((_ to_fp 8 24) x) (_ -zero 8 24)) ((_ to_fp 8 24) x))))\n(check-sat)\n",
    "QF_BVFP",
)
UNKNOWN, SAT, UNSAT = Answer.UNKNOWN, Answer.SAT, Answer.UNSAT


@pytest.mark.parametrize("engine", ["z3", "cvc5"])
def test_solvers_answer(engine: str) -> None:
    """Both solvers say `unsat` and `sat` where they should, in the order asked, whatever the number of processes."""
    tasks = [Task(query, engine) for query in (FALSE, TRUE, FLOAT, TRUE, FALSE)]
    for jobs in (1, 3):
        assert [reply.answer for reply in Pool(jobs, 20.0).ask(tasks)] == [UNSAT, SAT, UNSAT, SAT, UNSAT]


def test_bitwuzla_answers() -> None:
    """Bitwuzla decides floats."""
    assert Pool(1, 20.0).ask([Task(FLOAT, "bitwuzla")])[0].answer is UNSAT


def test_a_text_that_is_none() -> None:
    """A solver that stops at an error in a text costs that answer, and the next question is answered."""
    wrong = SmtQuery("(set-logic QF_LIA)\n(assert (nonsense))\n(check-sat)\n", "QF_LIA")
    for engine in ("z3", "cvc5", "bitwuzla"):
        good = FLOAT if engine == "bitwuzla" else FALSE
        replies = Pool(1, 20.0).ask([Task(wrong, engine), Task(good, engine)])
        assert [reply.answer for reply in replies] == [UNKNOWN, UNSAT]
        assert replies[0].reason


HANGS = "if 'x x' in question['text'] and question['engine'] == 'hangs':\n    time.sleep(600)\nreturn {'answer': 'unsat', 'reason': None}"
DIES = "if question['engine'] == 'dies':\n    os.kill(os.getpid(), 11)\nreturn {'answer': 'unsat', 'reason': None}"
TALKS = "if question['engine'] == 'talks':\n    print('Segmentation fault, or so')\nreturn {'answer': 'unsat', 'reason': None}"
LAGS = "return {'answer': 'unsat', 'reason': None, 'number': question['number'] - (question['engine'] == 'lags')}"
INVENTS = "return {'answer': 'certainly' if question['engine'] == 'invents' else 'unsat', 'reason': None}"


@one_in(2)
@pytest.mark.parametrize(
    ("bad", "body", "reason"),
    [
        ("hangs", HANGS, "wall"),
        ("dies", DIES, "ended by itself"),
        ("talks", TALKS, "no answer"),
        ("invents", INVENTS, "no answer"),
        ("lags", LAGS, "no answer"),
    ],
)
def test_a_solver_that_misbehaves(tmp_path: Path, bad: str, body: str, reason: str) -> None:
    """Its question is unknown with the reason; the questions before and after it are answered; nothing takes long."""
    start = time.monotonic()
    pool = Pool(1, 0.5, double(tmp_path, body))
    replies = pool.ask([Task(FALSE, "good"), Task(FALSE, bad), Task(FALSE, "good")])
    assert [reply.answer for reply in replies] == [UNSAT, UNKNOWN, UNSAT]
    assert reason in (replies[1].reason or "")
    assert time.monotonic() - start < 30


def test_no_process_is_left(tmp_path: Path) -> None:
    """When the questions are answered, the processes are gone, those that were killed included."""
    body = "with open(os.environ['PIDS'], 'a') as file:\n    print(os.getpid(), file=file)\n" + HANGS
    pids = tmp_path / "pids"
    os.environ["PIDS"] = str(pids)
    try:
        Pool(2, 0.3, double(tmp_path, body)).ask([Task(FALSE, "good"), Task(FALSE, "hangs"), Task(FALSE, "good")])
    finally:
        del os.environ["PIDS"]
    for pid in {int(line) for line in pids.read_text().split()}:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
