"""A representative set of questions, asked in a process of its own with all messages as they are, or with a hash for
every sentence.

`python -m tests.verify.rewording QUESTION [hashed]` prints what came of one, free of words.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import io
import json
import re
import sys
from collections.abc import Callable
from typing import Any

from tests.tree import ROOT

from layoutproof.ir.diagnostic import Diagnostic
from layoutproof.verify.lockstep.domains import Mismatch
from layoutproof.verify.program.location import Place
from layoutproof.verify.program.questions import Search
from layoutproof.verify.program.statement import NotModelled
from layoutproof.verify.smt.solver import Outcome, WorkerAnswer
from layoutproof.verify.values.question import ValueAnswer
from layoutproof.verify.verdict.verdict import Claim, Verdict

SENTENCES: tuple[tuple[type, tuple[str, ...]], ...] = (
    (Claim, ("head", "tail")),
    (Place, ("words",)),
    (Verdict, ("reason",)),
    (Diagnostic, ("message", "help")),
    (Search, ("reason",)),
    (ValueAnswer, ("reason",)),
    (Outcome, ("reason",)),
    (WorkerAnswer, ("reason",)),
    (Mismatch, ("reason",)),
    (NotModelled, ("reason",)),
)
"""What holds sentences, and in which fields."""
_HASHED = re.compile(r"~[0-9a-f]{64}")

CHECKED = (
    *(f"proofs/refuted/{name}.py" for name in (
        "assumptions_on_sizes", "cells_injective_diagonals", "faults_division_by_zero", "faults_forbidden_padding",
        "faults_index_overflow",
        "faults_out_of_bounds", "faults_uninitialised", "interface_undeclared", "no_ops_plus_one",
        "order_reversed_scan",
        "padding_postcondition_missing", "races_parallel_sum", "races_same_value", "records_missing",
        "vacuity_of_no_output", "vacuity_of_sizes",
        "vacuity_of_a_division_by_zero", "values_constant",
    )),
    *(f"proofs/accepted/{name}.py" for name in (
        "init_of_two_axes", "padding_of_two_layouts", "padded_max_two_in_a_row",
    )),
    "examples/gated-repo",
)  # fmt: skip
RACE = """@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        with T.sblock("last"):
            vi = T.axis.spatial(8, i)
            B[0] = A[vi]
"""
CERTIFIED = ("init_of_two_axes", "padding_of_two_layouts", "padded_max_two_in_a_row")
TOLD = ("init_of_two_axes", "padded_matmul")
PAIRS = (
    "commuted_operands",
    "padding_of_one",
    "relu_of_any_length",
    "rotated_rows",
    "update_in_place_of_a_padded_buffer",
    "stored_twice",
)
"""Pairs of programs, of which some are proved with contracts that are searched for."""


def hashed(text: str) -> str:
    """The hash of a sentence; one that is a hash stays."""
    return text if _HASHED.fullmatch(text) else f"~{hashlib.sha256(text.encode()).hexdigest()}"


def hash_sentences() -> None:
    """Have every object that holds sentences hold their hashes, from now on in this process."""
    for holder, names in SENTENCES:
        holder.__init__ = _hashing(holder.__init__, names)  # type: ignore[misc]  # the class is changed on purpose


def _hashing(init: Callable[..., None], names: tuple[str, ...]) -> Callable[..., None]:
    signature = inspect.signature(init)

    def inner(*given: Any, **named: Any) -> None:
        bound = signature.bind(*given, **named)
        for name in names:
            if bound.arguments.get(name):
                bound.arguments[name] = hashed(bound.arguments[name])
        init(*bound.args, **bound.kwargs)

    return inner


def called(*arguments: str) -> tuple[int, list[str]]:
    """The exit code of the command line, and the lines of its standard output."""
    from layoutproof.cli.main import main

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main(arguments)
    return code, out.getvalue().splitlines()


def checked() -> list[Any]:
    """What checks of files and gates say, without words."""
    code, lines = called(
        "check", *(str(ROOT / path) for path in CHECKED), "--workers", "1", "--no-cache", "--format", "json"
    )
    return [code, [_outcome(json.loads(line)) for line in lines]]


def told() -> list[int]:
    """How many lines a rewrite takes that is told in full, claims of one kind together."""
    return [len(called("check", str(ROOT / "proofs" / "accepted" / f"{name}.py"), "--no-cache")[1]) for name in TOLD]


def _outcome(found: dict[str, Any]) -> list[Any]:
    steps = [
        [(o["status"], o["engine"], o["strictness"], bool(o["reason"])) for o in step["obligations"]]
        for step in found["steps"]
    ]
    findings = [
        (
            f["code"],
            f["status"],
            f["fate"],
            _line(f["place"]),
            [_line(place) for place in f["related"]],
            f["help"] is not None,
            f["obligation"],
        )
        for f in found["findings"]
    ]
    return [found["name"], found["verdict"], steps, findings]


def _line(place: dict[str, Any] | None) -> int | None:
    return place["line"] if place is not None else None


def certified() -> list[Any]:
    """What certificates are known by, and whether they are confirmed as they are, and with other words in them."""
    from layoutproof.ir.notations.rewrite_text import parse_litmus
    from layoutproof.verify.certificate.certificate import Certificate, certify
    from layoutproof.verify.certificate.reading import read_certificate
    from layoutproof.verify.certificate.sealed_files import chained, sealed
    from layoutproof.verify.step_record import StepRecord

    found = list[Any]()
    for name in CERTIFIED:
        litmus = parse_litmus((ROOT / "proofs" / "accepted" / f"{name}.py").read_text(), name)
        made = certify([StepRecord("rewrite", {}, litmus.rewrite, litmus.header.where)], name, None)
        (step,) = made.steps
        obligations = [{**each, "claim": "a claim", "reason": None} for each in step["obligations"]]
        steps = chained([{**step, "obligations": chained(obligations)}])
        other = Certificate.of_document(sealed({**made.document, "steps": steps}), name)
        readings = [read_certificate(name, each) for each in (made, other)]
        said = [(each["identity"], each["status"], each["strictness"]) for each in step["obligations"]]
        found.append([said, step["assumptions"], [(each.status, each.claims, each.problems) for each in readings]])
    return found


def reworded(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of the proof cache that says the same in other words."""
    found: dict[str, Any] = json.loads(json.dumps(entry))
    for each in (*found.get("obligations", ()), *found.get("refused", ())):
        place = each["parts"][1]
        each["parts"] = [head := hashed("a claim"), place, ""]
        each["claim"] = head if place is None else f"{head} ({place[0]})"
    return found


def compared() -> list[Any]:
    """What comparisons find, with layouts and pad values and without."""
    from tests.lowering.compare.pairs import named, pairs

    found = list[Any]()
    for pair in (named(pairs("kinds"), name) for name in PAIRS):
        for given in (True, False):
            answer = pair.compared(given=given)
            layouts = [(layout.index_map, layout.pad_value) for layout in answer.layouts]
            found.append(
                [pair.name, given, answer.status, answer.strictness, [v.code for v in answer.verdicts], layouts]
            )
    return found


def scheduled() -> list[Any]:
    """Proofs that are kept and checked again, and searches for pad values, some of which need wrapped indices."""
    from tests.lowering.loops.cases import CASES
    from tests.lowering.proof_cache.test_remembered import Kept
    from tests.lowering.proof_cache.test_remembered import scheduled as kept_steps

    from layoutproof.lowering.proof_cache.verifying import verify_entries
    from layoutproof.verify.settings import Settings, within

    kept = Kept()
    with within(Settings(memory=kept)):
        kept_steps()
    entries = [(key, json.loads(text)) for key, text in kept.values.items()]
    others = [(key, reworded(entry)) for key, entry in entries]
    again = [(each.found, each.claims) for given in (entries, others) for each in verify_entries(given, {}).entries]
    report = CASES["convolution"].schedule(CASES["convolution"].sizes).pad_value_search("conv", "B")
    outcomes = [
        (str(row.candidate), outcome.status, outcome.wrapped)
        for row in report.rows
        for outcome in row.outcomes.values()
    ]
    return [again, outcomes, refused()]


def refused() -> list[Any]:
    """The code and the lines of a step that is refused for a race."""
    from layoutproof.ir.script.reader import loads
    from layoutproof.lowering.passes.illegal import IllegalTransform
    from layoutproof.lowering.schedule.schedule import Schedule

    try:
        Schedule(loads(RACE, "race.py")).parallel("last", "i")
    except IllegalTransform as problem:
        return [
            (d.code, d.span and d.span.line, [span.line for span, _ in d.related], d.help is not None)
            for d in problem.diagnostics
        ]
    raise AssertionError("it is not refused")


ASKED: dict[str, Callable[[], Any]] = {each.__name__: each for each in (checked, told, compared, scheduled, certified)}


if __name__ == "__main__":
    if "hashed" in sys.argv:
        hash_sentences()
    print(json.dumps(ASKED[sys.argv[1]]()))
