"""Queries as text to z3, cvc5 or bitwuzla, in the worker process `python -m layoutproof.verify.smt.engines`, which
reads and writes one line of JSON for each. A solver may hang or crash there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any

from layoutproof.verify.smt.solver import SEED, Answer, z3_module

Z3, CVC5, BITWUZLA = "z3", "cvc5", "bitwuzla"
ENGINES = (Z3, CVC5, BITWUZLA)
_PACKAGES = {Z3: "z3-solver", CVC5: "cvc5", BITWUZLA: "bitwuzla"}
# The quantifier-free logics of bitwuzla.
_BITWUZLA_LOGIC = re.compile(r"QF_(A|ABV|ABVFP|AUFBV|AUFBVFP|BV|BVFP|FP|UF|UFBV|UFBVFP|UFFP|AUFFP|AFP)")
# Float formats in a text: the exponent and significand of bfloat16 and of half.
_BFLOAT = re.compile(r"\(_ (?:to_fp|to_fp_unsigned|FloatingPoint|NaN|\+oo|-oo|\+zero|-zero) 8 8\)")
_HALF = re.compile(r"\(_ (?:to_fp|to_fp_unsigned|FloatingPoint|NaN|\+oo|-oo|\+zero|-zero) 5 11\)|\bFloat16\b")


@dataclass(frozen=True, slots=True)
class Reply:
    """An engine's answer; `reason` why it is `unknown`."""

    answer: Answer
    reason: str | None = None


def installed() -> dict[str, str]:
    """The installed engines, with their versions."""
    return {engine: metadata.version(package) for engine, package in _PACKAGES.items() if find_spec(engine) is not None}


def formats_of(text: str) -> frozenset[str]:
    """The 16-bit float types in a query, which not every engine has: `float16`, `bfloat16`."""
    return frozenset(
        name for name, form in (("bfloat16", _BFLOAT), ("float16", _HALF)) if form.search(text) is not None
    )


def takes(engine: str, logic: str, text: str) -> bool:
    """Whether an engine can be asked a query: bitwuzla has no integers and no bfloat16."""
    if engine != BITWUZLA:
        return True
    return _BITWUZLA_LOGIC.fullmatch(logic) is not None and "bfloat16" not in formats_of(text)


def ask(engine: str, text: str, seconds: float) -> Reply:
    """Ask an engine, with a time limit of its own. May hang or crash; see `verify.certificate.recheck`."""
    return _ASK[engine](text, seconds)


def _ask_z3(text: str, seconds: float) -> Reply:
    z3 = z3_module()
    context = z3.Context()
    solver = z3.Solver(ctx=context)
    solver.set("random_seed", SEED)
    solver.set("timeout", int(seconds * 1000))
    solver.from_string(text)
    result = solver.check()
    if result == z3.unknown:
        return Reply(Answer.UNKNOWN, solver.reason_unknown())
    return Reply(Answer.SAT if result == z3.sat else Answer.UNSAT)


def _ask_cvc5(text: str, seconds: float) -> Reply:
    cvc5 = import_module("cvc5")
    solver = cvc5.Solver(cvc5.TermManager())
    solver.setOption("tlimit-per", str(int(seconds * 1000)))
    solver.setOption("seed", str(SEED))
    if formats_of(text):
        solver.setOption("fp-exp", "true")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "query")
    symbols = parser.getSymbolManager()
    answer = ""
    while True:
        command = parser.nextCommand()
        if command.isNull():
            break
        output = str(command.invoke(solver, symbols)).strip()
        if output.startswith("(error"):
            return Reply(Answer.UNKNOWN, output)
        if output in ("sat", "unsat", "unknown"):
            answer = output
    return _reply(answer, "it gave up")


def _ask_bitwuzla(text: str, seconds: float) -> Reply:
    bitwuzla = import_module("bitwuzla")
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.TIME_LIMIT_PER, int(seconds * 1000))
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    parser.parse(text, True, False)
    result: Any = parser.bitwuzla().check_sat()
    return _reply(str(result.name).lower(), "it gave up")


def _reply(answer: str, reason: str) -> Reply:
    match answer:
        case "sat":
            return Reply(Answer.SAT)
        case "unsat":
            return Reply(Answer.UNSAT)
        case _:
            return Reply(Answer.UNKNOWN, reason)


_ASK: dict[str, Callable[[str, float], Reply]] = {Z3: _ask_z3, CVC5: _ask_cvc5, BITWUZLA: _ask_bitwuzla}
