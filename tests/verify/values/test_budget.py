"""Budgets count work, not time: the answers of a check depend on its own questions, in their order, only."""

from __future__ import annotations

from random import Random

import pytest
from tests.shares import one_in

from layoutproof.ir.dtype import FLOAT32, INT64
from layoutproof.ir.expr import Binary, Expr, FloatImm, Var
from layoutproof.ir.operators import BinaryOp
from layoutproof.verify.smt.solver import Answer, Worker, WorkerAnswer, shared_worker
from layoutproof.verify.values import prover as prove
from layoutproof.verify.values.fast_math import ALL
from layoutproof.verify.values.prover import StoredValue, ValueProver
from layoutproof.verify.values.question import AtLeast, NotNan, Question, ValueAnswer
from layoutproof.verify.values.solving import DEFAULT, QUICK, ValueBudget
from layoutproof.verify.verdict.verdict import Status

F = FLOAT32
x, y, z = (Var(name, F) for name in "xyz")
n, m, k = (Var(name, INT64) for name in "nmk")
LITTLE = ValueBudget(rlimit=60_000, polls=150, question=150_000, check=500_000)
Claim = tuple[Expr, Expr]


def remainder(a: Expr, b: Expr) -> Claim:
    """The remainder, and what it is by definition: hard for solvers at 64 bits."""
    return Binary(BinaryOp.FLOORMOD, a, b), a - Binary(BinaryOp.FLOORDIV, a, b) * b


CLAIMS: tuple[Claim, ...] = (
    remainder(n, m),
    (x + y, y + x),
    remainder(n + k, m),
    (x * FloatImm(2.0, F), x + x),
    (Binary(BinaryOp.MAX, x, y), Binary(BinaryOp.MAX, y, x)),
    remainder(n, m * k),
    (x + FloatImm(0.0, F), x),
    remainder(n * n, m),
    (x * y * FloatImm(2.0, F), x * y + x * y),
    (x - x, FloatImm(0.0, F)),
)


def asked(prover: ValueProver, claims: list[Claim]) -> list[tuple[Status, frozenset[str], str | None]]:
    """What a prover says of claims, one after another."""
    answers = [prover.answer(Question(new, old, computed=frozenset({x, y, z}))) for new, old in claims]
    return [(a.status, frozenset(map(str, a.fast_math)), a.reason) for a in answers]


@one_in(7)
def test_what_was_asked_before_changes_no_answer() -> None:
    """Checks that share a memory answer as checks that have none, whatever other checks asked, in every order, and
    every time.
    """
    shared = ValueProver(budget=LITTLE)
    rng = Random(7)
    for _ in range(3):
        claims = [*rng.sample(CLAIMS, rng.randint(3, len(CLAIMS))), rng.choice(CLAIMS)]
        alone = asked(ValueProver(budget=LITTLE).for_check(), claims)
        assert asked(shared.for_check(), claims) == alone
        assert asked(shared.for_check(), claims) == alone
    assert shared.hits == 0 and shared.spent == 0


def test_a_check_whose_budget_is_spent_asks_no_solver() -> None:
    """Later questions get what laws and trials say at once; a question that was answered before keeps its answer."""
    prover = ValueProver(budget=LITTLE).for_check()
    first = prover.answer(Question(*CLAIMS[3]))
    assert first.is_proved
    hard = [prover.answer(Question(*remainder(n + k + i, m))) for i in range(12)]
    assert all(a.status is Status.UNKNOWN for a in hard)
    assert "budget of this check" in str(hard[-1].reason) and "budget of this check" not in str(hard[0].reason)
    spent = prover.spent
    assert LITTLE.check <= spent <= LITTLE.check + 4 * LITTLE.question
    assert prover.answer(Question(*CLAIMS[3])) == first
    assert prover.answer(Question(y * FloatImm(2.0, F) * x, y * x + x * y)).status is Status.UNKNOWN
    assert prover.answer(Question(x + y, y + x)).is_proved
    assert prover.answer(Question(x - x, FloatImm(1.0, F))).status is Status.REFUTED
    assert prover.spent == spent


def test_names_do_not_matter() -> None:
    """The same claim about other variables costs and says the same."""
    found = set()
    for names in (("x", "y"), ("acc", "w"), ("v1", "v0"), ("zeta", "alpha'")):
        a, b = (Var(name, INT64) for name in names)
        prover = ValueProver(budget=LITTLE).for_check()
        found.add((prover.answer(Question(*remainder(a, b))).status, prover.spent))
    assert len(found) == 1


def test_queries_say_what_their_variables_are() -> None:
    """A query is written in canonical names, and tells which they are."""
    acc = Var("acc", F)
    answer = ValueProver().answer(Question(acc * FloatImm(2.0, F), acc + acc))
    assert answer.is_proved and answer.queries[0].text.startswith("; v0 is acc\n")


def test_candidates_get_little() -> None:
    """Properties that are only tried have a smaller budget than questions that must be answered."""
    assert QUICK.question < DEFAULT.question and QUICK.rlimit < DEFAULT.rlimit
    prover = ValueProver().for_check()
    hard = x * y * z - z * y * x * FloatImm(1.5, F)
    prover.prove_invariant(AtLeast(FloatImm(-1024.0, F)), [StoredValue(hard, computed=frozenset({x, y, z}))])
    prover.prove_invariant(NotNan(), [StoredValue(hard, computed=frozenset({x, y, z}))])
    assert prover.spent <= 8 * QUICK.question


@pytest.mark.parametrize("engine", DEFAULT.solvers)
def test_units_repeat(engine: str) -> None:
    """An engine that is stopped was stopped by its own count of work: the same each time, and in a process of its own
    too.
    """
    text = (
        "(set-logic QF_BV)(declare-const a (_ BitVec 64))(declare-const b (_ BitVec 64))"
        "(assert (= (bvmul a b) #x0fc94e1d2b3a5977))(assert (bvult #x1 #x2))"
        "(assert (and (bvugt a #x0000000000000001) (bvugt b #x0000000000000001)"
        " (bvult a #x0000000100000000) (bvult b #x0000000100000000)))(check-sat)"
    ).replace("(assert (bvult #x1 #x2))", "")
    other = Worker()
    units = 200 if engine == "bitwuzla" else 50_000
    found = [
        worker.ask(engine, text, "QF_BV", units=units, seconds=60.0)
        for worker in (shared_worker(), shared_worker(), other)
    ]
    other.close()
    if found[0].missing:
        return
    assert len({(said.answer, said.spent, said.reason) for said in found}) == 1
    assert (
        found[0].answer is Answer.UNKNOWN
        and not found[0].wall
        and "budget" in str(found[0].reason)
        and found[0].spent >= units
    )


class Mute(Worker):
    """A worker whose engines never answer; `asked` are those that were waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def ask(self, engine: str, text: str, logic: str, *, units: int, seconds: float) -> WorkerAnswer:
        """As one that was killed."""
        self.asked.append(engine)
        return WorkerAnswer(Answer.UNKNOWN, reason="wall: no answer", wall=True, hung=True, spent=units)


def test_an_engine_that_hangs_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one check, its parts included; the next check tries again, and nothing of it is remembered."""
    mute = Mute()
    monkeypatch.setattr("layoutproof.verify.smt.solver._shared", mute)
    prover = ValueProver()
    check = prover.for_check(QUICK)
    answers: list[ValueAnswer] = [check.answer(Question(*claim)) for claim in (CLAIMS[3], CLAIMS[8], CLAIMS[3])]
    answers.append(check.for_check(DEFAULT).answer(Question(*CLAIMS[3])))
    assert all(a.status is Status.UNKNOWN and a.depends_on_clock and "wall" in str(a.reason) for a in answers)
    assert mute.asked == list(DEFAULT.solvers)
    monkeypatch.undo()
    assert prover.for_check().answer(Question(*CLAIMS[3])).is_proved
    assert prover.allowed == ALL


def test_what_is_remembered_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest answer makes room, and asked again it is what it was."""
    monkeypatch.setattr(prove, "MOST_REMEMBERED", 2)
    prover = ValueProver()
    claims = [(x * FloatImm(float(k), F), FloatImm(float(k), F) * x) for k in range(2, 6)]
    first = [prover.answer(Question(new, old)) for new, old in claims]
    assert prover.hits == 0
    assert [prover.answer(Question(new, old)) for new, old in claims] == first
    assert prover.hits == 0
    assert prover.answer(Question(*claims[-1])) == first[-1] and prover.hits == 1
