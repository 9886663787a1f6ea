"""Solvers run in a process that may hang, die or talk nonsense; the caller gets `unknown` in bounded time."""

from __future__ import annotations

import multiprocessing
import sys
import textwrap
import time
from pathlib import Path

import pytest

from layoutproof.ir.dtype import FLOAT32
from layoutproof.ir.expr import FloatImm, Var
from layoutproof.verify.smt.solver import COMMAND, Answer, Worker, WorkerAnswer, shared_worker
from layoutproof.verify.values import prover as prove
from layoutproof.verify.values.fast_math import IEEE, FastMathSet
from layoutproof.verify.values.fast_math_search import Search, search_with
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.values.question import Question, ValueAnswer
from layoutproof.verify.values.solving import Solving, ValueBudget
from layoutproof.verify.verdict.verdict import Status

UNSAT = "(set-logic QF_BV)\n(declare-const v_x (_ BitVec 8))\n(assert (not (= (bvadd v_x #x00) v_x)))\n(check-sat)\n"
SAT = "(set-logic QF_BV)\n(declare-const v_x (_ BitVec 8))\n(assert (= (bvadd v_x #x01) #x00))\n(check-sat)\n"
HARD = "(set-logic QF_BV)\n" + textwrap.dedent("""\
    (declare-const a (_ BitVec 64))
    (declare-const b (_ BitVec 64))
    (assert (= (bvmul a b) #x0fc94e1d2b3a5977))
    (assert (bvugt a #x0000000000000001))
    (assert (bvugt b #x0000000000000001))
    (assert (bvult a #x0000000100000000))
    (assert (bvult b #x0000000100000000))
    (check-sat)
    """)


def double(tmp_path: Path, body: str) -> tuple[str, ...]:
    """The command of a worker that does something else; `request` is each line that it gets."""
    program = tmp_path / "double.py"
    indented = textwrap.indent(textwrap.dedent(body), "    ")
    program.write_text(
        f"import json, os, sys, time\nfor line in sys.stdin:\n    request = json.loads(line)\n{indented}\n"
    )
    return (sys.executable, str(program))


def ask(
    worker: Worker, text: str = UNSAT, seconds: float = 20.0, engine: str = "z3", units: int = 1_000_000
) -> WorkerAnswer:
    """One question about 8-bit numbers."""
    return worker.ask(engine, text, "QF_BV", units=units, seconds=seconds)


def test_three_answers() -> None:
    """A worker says unsat, sat with a model, and unknown when the budget is spent; the same every time."""
    worker = Worker()
    assert ask(worker).answer is Answer.UNSAT
    found = ask(worker, SAT)
    assert found.answer is Answer.SAT and found.model == {"v_x": 255}
    spent = [ask(worker, HARD, units=20_000) for _ in range(2)]
    assert (
        spent[0] == spent[1]
        and spent[0].answer is Answer.UNKNOWN
        and "20000" in str(spent[0].reason)
        and not spent[0].wall
    )
    worker.close()


def test_a_solver_that_is_not_installed() -> None:
    """An engine without a module is reported as missing, and the worker lives on."""
    worker = Worker()
    said = ask(worker, engine="missing_solver")
    assert said.missing and said.answer is Answer.UNKNOWN and not said.wall
    assert ask(worker).answer is Answer.UNSAT
    worker.close()


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("time.sleep(60)", "no answer"),
        ("os._exit(11)", "died"),
        ("os.kill(os.getpid(), 9)", "died"),
        ("print('Segmentation fault', flush=True)", "nonsense"),
        ("print(json.dumps({'id': request['id'], 'answer': 'maybe', 'model': {}}), flush=True)", "nonsense"),
        ("print(json.dumps({'id': request['id'] + 1, 'answer': 'unsat', 'model': {}}), flush=True)", "nonsense"),
        ("print(json.dumps({'id': request['id'], 'answer': 'unsat', 'model': [1]}), flush=True)", "nonsense"),
        ("sys.stdout.write('{' * 100000); sys.stdout.flush(); time.sleep(60)", "no answer"),
    ],
)
def test_misbehaviour_gives_unknown_in_bounded_time(
    tmp_path: Path, body: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that hangs, dies, or says something else is killed; the answer is unknown, with the reason `wall`."""
    monkeypatch.setattr("layoutproof.verify.smt.solver.START_SECONDS", 0.5)
    worker = Worker(double(tmp_path, body))
    start = time.monotonic()
    said = ask(worker, seconds=0.5)
    assert time.monotonic() - start < 10
    assert (
        said.answer is Answer.UNKNOWN and said.wall and str(said.reason).startswith("wall") and word in str(said.reason)
    )
    worker.close()


def test_after_a_crash_the_next_question_is_answered(tmp_path: Path) -> None:
    """A worker that died is started again."""
    mark = tmp_path / "died"
    body = f"""
        if not os.path.exists({str(mark)!r}):
            open({str(mark)!r}, "w").close()
            os._exit(1)
        print(json.dumps({{"id": request["id"], "answer": "unsat", "model": {{}}, "reason": None}}), flush=True)
    """
    worker = Worker(double(tmp_path, body))
    assert ask(worker).wall
    assert ask(worker).answer is Answer.UNSAT
    worker.close()


def test_an_interrupt_leaves_no_worker_out_of_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that is interrupted does not leave its answer for the next one."""
    worker = Worker()
    assert ask(worker).answer is Answer.UNSAT
    exchange = worker._exchange

    def interrupted(*arguments: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(worker, "_exchange", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ask(worker)
    assert worker._process is None
    monkeypatch.setattr(worker, "_exchange", exchange)
    assert ask(worker, SAT).answer is Answer.SAT
    worker.close()


def test_no_zombie_stays() -> None:
    """Closing a worker ends and reaps its process; closing it twice is fine."""
    worker = Worker()
    ask(worker)
    assert worker._process is not None
    number = worker._process.pid
    worker.close()
    worker.close()
    assert not Path(f"/proc/{number}").exists() or sys.platform != "linux"


def _in_child(connection: object) -> None:
    assert hasattr(connection, "send")
    connection.send(shared_worker().ask("z3", UNSAT, "QF_BV", units=1_000_000, seconds=20.0).answer.value)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_starts_its_own() -> None:
    """After a fork, parent and child ask different processes, and both get answers."""
    assert ask(shared_worker()).answer is Answer.UNSAT
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_in_child, args=(there,))
    child.start()
    assert here.poll(60) and here.recv() == "unsat"
    child.join(30)
    assert ask(shared_worker(), SAT).answer is Answer.SAT


def test_a_hanging_solver_makes_the_claim_unknown_and_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proof that needs a solver is unknown while it hangs, and is found once it answers."""
    monkeypatch.setattr("layoutproof.verify.smt.solver.START_SECONDS", 0.2)
    x = Var("x", FLOAT32)
    question = Question(x * FloatImm(2.0, FLOAT32), x + x)
    solving = Solving(ValueBudget(seconds=0.3), Worker(double(tmp_path, "time.sleep(60)")))
    answer = Search(question, IEEE, solving).answer()
    assert answer.status is Status.UNKNOWN and answer.depends_on_clock and str(answer.reason).startswith("wall")

    prover, calls = ValueProver(), [answer]

    def search(solving: Solving, asked: Question, allowed: FastMathSet) -> ValueAnswer:
        return calls.pop() if calls else search_with(solving, asked, allowed)

    monkeypatch.setattr(prove, "search_with", search)
    assert prover.answer(question).status is Status.UNKNOWN
    assert prover.answer(question).status is Status.PROVED
    assert prover.answer(question).status is Status.PROVED and prover.hits == 1


def test_the_worker_process_stands_alone() -> None:
    """The worker's program imports nothing of this package, so that it starts fast."""
    assert "layoutproof" not in Path(COMMAND[-1]).read_text(encoding="utf-8")
