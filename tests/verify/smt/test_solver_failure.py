"""A solver that hangs, dies or talks nonsense: the check says `unknown` in bounded time and the tool goes on, as if
nothing had been.
"""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.calling import Caller
from tests.shares import one_in

from layoutproof.ir.notations.rewrite_text import parse_rewrite
from layoutproof.ir.rewrite import Rewrite
from layoutproof.verify.checker import prover_at
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.smt import solver as worker
from layoutproof.verify.smt.solver import Worker, WorkerAnswer
from layoutproof.verify.values.fast_math import ALL
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status, Verdict

# No law says that this is so: a solver does, bit for bit.
DOUBLED = """\
# functions: main, main
# theta: 0 -> 0: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = A[i] * T.float32(FACTOR)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = SUM
"""
PLAIN = DOUBLED.replace("FACTOR", "2").replace("SUM", "A[i] + A[i]")
DISTINCT = DOUBLED.replace("FACTOR", "-2").replace("SUM", "T.float32(0) - A[i] - A[i]")

MISBEHAVIOUR = {
    "hangs": "time.sleep(600)",
    "dies": "os._exit(11)",
    "is killed": "os.kill(os.getpid(), 9)",
    "talks": "print('unsat', flush=True)",
    "half an answer": """sys.stdout.write('{"id": '); sys.stdout.flush(); time.sleep(600)""",
    "another's answer": """print(json.dumps({'id': -1, 'answer': 'unsat', 'model': {}, 'spent': 0}), flush=True)""",
}


class Impatient(Worker):
    """A worker whose wall-clock limit is short, so that the tests are."""

    def ask(self, engine: str, text: str, logic: str, *, units: int, seconds: float) -> WorkerAnswer:
        """As any worker, for half a second."""
        return super().ask(engine, text, logic, units=units, seconds=min(seconds, 0.5))


@pytest.fixture(params=sorted(MISBEHAVIOUR))
def broken(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """The worker of this process, its program replaced by one that misbehaves at every question."""
    program = tmp_path / "double.py"
    body = textwrap.indent(MISBEHAVIOUR[request.param], "    ")
    program.write_text(f"import json, os, sys, time\nfor line in sys.stdin:\n    request = json.loads(line)\n{body}\n")
    double = Impatient((sys.executable, str(program)))
    monkeypatch.setattr(worker, "_shared", double)
    monkeypatch.setattr(worker, "START_SECONDS", 0.5)
    prover_at.cache_clear()
    yield double
    double.close()
    prover_at.cache_clear()


def rewrite(text: str) -> Rewrite:
    """A rewrite in text."""
    return parse_rewrite(text, "doubled")


def status(verdicts: tuple[Verdict, ...]) -> Status:
    """The worst of them."""
    return worst(v.status for v in verdicts)


@one_in(16)
def test_a_check_goes_on(broken: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """`unknown` with the reason `wall`, in seconds; what needs no solver is still decided; and later the answer is the
    right one.
    """
    start = time.monotonic()
    verdicts = check_rewrite(rewrite(PLAIN), allowed=ALL)
    assert time.monotonic() - start < 30
    assert status(verdicts) is Status.UNKNOWN
    assert any("wall" in str(v.reason) for v in verdicts)
    same = rewrite(PLAIN.replace("A[i] + A[i]", "T.float32(2) * A[i]"))
    assert status(check_rewrite(same)) is Status.PROVED
    wrong = rewrite(PLAIN.replace("A[i] + A[i]", "A[i] + T.float32(2)"))
    assert status(check_rewrite(wrong)) is Status.REFUTED
    # The very provers that met the broken solver remember nothing of it.
    monkeypatch.undo()
    assert status(check_rewrite(rewrite(PLAIN), allowed=ALL)) is Status.PROVED


@one_in(10)
def test_the_command_line_goes_on(
    broken: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`layoutproof check` says unknown, leaves no certificate and no traceback, and does the next file as ever."""
    monkeypatch.setenv("LAYOUTPROOF_PROOF_CACHE", str(tmp_path / "proofs.sqlite"))
    call = Caller(capsys)
    path, certificate = tmp_path / "doubled.py", tmp_path / "doubled.lpcert.json"
    path.write_text(PLAIN)
    start = time.monotonic()
    outcome = call("check", str(path), "--certificate", str(certificate), "--format", "json")
    assert time.monotonic() - start < 60
    found = outcome.json()
    assert found["verdict"] == "unknown" and outcome.code not in (0, 2) and "Traceback" not in outcome.err
    assert any("wall" in str(v["reason"]) for v in found["steps"][0]["obligations"]) and not certificate.exists()
    path.write_text(PLAIN.replace("A[i] + A[i]", "T.float32(2) * A[i]"))
    assert call("check", str(path)).code == 0
    monkeypatch.undo()
    path.write_text(PLAIN)
    assert call("check", str(path), "--certificate", str(certificate)).code == 0 and certificate.exists()


def test_with_a_solver_it_is_decided() -> None:
    """The rewrites of these tests are right, and their proofs are a solver's."""
    for text in (PLAIN, DISTINCT):
        verdicts = check_rewrite(rewrite(text))
        assert status(verdicts) is Status.PROVED, [v.reason for v in verdicts if v.status is not Status.PROVED]
    assert any(query.engine in ("z3", "bitwuzla") for v in check_rewrite(rewrite(PLAIN)) for query in v.queries)
