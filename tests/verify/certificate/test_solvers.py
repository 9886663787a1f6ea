"""Solvers in processes of their own: what hangs, dies or talks costs one answer, in bounded time."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from tests.shares import one_in

from layoutproof.verify.certificate import recheck as checking
from layoutproof.verify.certificate.recheck import Task, ask_engines
from layoutproof.verify.program.questions import SmtQuery
from layoutproof.verify.smt.engines import Reply
from layoutproof.verify.smt.solver import Answer

FALSE = SmtQuery("(set-logic QF_LIA)\n(declare-fun x () Int)\n(assert (< x x))\n(check-sat)\n", "QF_LIA")
TRUE = SmtQuery("(set-logic QF_LIA)\n(declare-fun x () Int)\n(assert (<= x x))\n(check-sat)\n", "QF_LIA")
FLOAT = SmtQuery(
    "(set-logic QF_BVFP)\n(declare-fun x () (_ BitVec 32))\n"
    "(assert (not (= (fp.add RNE ((_ to_fp 8 24) x) (_ -zero 8 24)) ((_ to_fp 8 24) x))))\n(check-sat)\n",
    "QF_BVFP",
)
UNKNOWN, SAT, UNSAT = Answer.UNKNOWN, Answer.SAT, Answer.UNSAT


@one_in(10)
@pytest.mark.parametrize("engine", ["z3", "cvc5"])
def test_solvers_answer(engine: str) -> None:
    """Both solvers say `unsat` and `sat` where they should, in the order asked, whatever the number of processes."""
    tasks = [Task(query, engine) for query in (FALSE, TRUE, FLOAT, TRUE, FALSE)]
    for jobs in (1, 3):
        assert [reply.answer for reply in ask_engines(tasks, jobs, 20.0)] == [UNSAT, SAT, UNSAT, SAT, UNSAT]


def test_bitwuzla_answers() -> None:
    """Bitwuzla decides floats."""
    assert ask_engines([Task(FLOAT, "bitwuzla")], 1, 20.0)[0].answer is UNSAT


@one_in(4)
def test_a_text_that_is_none() -> None:
    """A solver that stops at an error in a text costs that answer, and the next question is answered."""
    wrong = SmtQuery("(set-logic QF_LIA)\n(assert (nonsense))\n(check-sat)\n", "QF_LIA")
    for engine in ("z3", "cvc5", "bitwuzla"):
        good = FLOAT if engine == "bitwuzla" else FALSE
        replies = ask_engines([Task(wrong, engine), Task(good, engine)], 1, 20.0)
        assert [reply.answer for reply in replies] == [UNKNOWN, UNSAT]
        assert replies[0].reason


def misbehaves(seconds: float, task: Task) -> Reply:
    """A double for the solvers, which does what the engine's name says."""
    if "PIDS" in os.environ:
        with open(os.environ["PIDS"], "a") as file:
            print(os.getpid(), file=file)
    match task.engine:
        case "hangs":
            time.sleep(600)
        case "dies":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "leaves":
            os._exit(3)
        case "talks":
            print("Segmentation fault, or so", flush=True)
        case _:
            pass
    return Reply(UNSAT)


def asked_of_doubles(tasks: list[Task], jobs: int, seconds: float) -> list[Reply]:
    """What the double says, in workers as solvers are asked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checking, "ask_engine", misbehaves)
        return ask_engines(tasks, jobs, seconds)


@one_in(10)
@pytest.mark.parametrize(
    ("bad", "reason"), [("hangs", "wall: no answer in 2.5 s"), ("dies", "SIGSEGV"), ("leaves", "exit status 3")]
)
def test_a_solver_that_misbehaves(bad: str, reason: str) -> None:
    """Its question is unknown with the reason; the questions before and after it are answered; nothing takes long."""
    start = time.monotonic()
    replies = asked_of_doubles([Task(FALSE, "good"), Task(FALSE, bad), Task(FALSE, "good")], 1, 0.5)
    assert [reply.answer for reply in replies] == [UNSAT, UNKNOWN, UNSAT]
    assert reason in (replies[1].reason or "")
    assert time.monotonic() - start < 30


def test_what_a_solver_prints() -> None:
    """What a solver prints is not taken for an answer."""
    assert asked_of_doubles([Task(FALSE, "talks"), Task(FALSE, "good")], 1, 0.5) == [
        Reply(UNSAT),
        Reply(UNSAT),
    ]


@one_in(4)
def test_no_process_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the questions are answered, the processes are gone, those that were killed included."""
    pids = tmp_path / "pids"
    monkeypatch.setenv("PIDS", str(pids))
    asked_of_doubles([Task(FALSE, "good"), Task(FALSE, "hangs"), Task(FALSE, "good")], 2, 0.3)
    for pid in {int(line) for line in pids.read_text().split()}:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
