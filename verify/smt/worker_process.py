"""A solver's worker process: SMT-LIB 2 text in, answers out, one JSON object a line.

It imports nothing of this package, so that it starts fast, and loads a solver when it is first asked for. It may hang
or crash as its solvers do; the process that started it kills it then.

Request: `{"id": n, "engine": "z3"|"bitwuzla", "text": script, "logic": logic, "units": limit}`. Answer: `{"id": n,
"answer": "sat"|"unsat"|"unknown", "model": {name: bits}, "reason": text|null, "spent": units}`, with `"stopped": true`
where the budget was spent, or `"answer": "missing"` where the engine is not installed. Bits of a model are unsigned
integers; truth values 0 and 1. Units are the engine's own and do not depend on the clock: z3's `rlimit`, and for
bitwuzla how often it asks whether to stop.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import resource
import sys
from collections.abc import Callable
from typing import Any

SEED = 0
# The process must not exhaust the machine's memory.
MEMORY_BYTES = 8 << 30
_WITHOUT_FUNCTIONS = ("simplify", "propagate-values", "fpa2bv", "ackermannize_bv", "simplify", "qfbv")
_BITS = re.compile(r"#b([01]+)|#x([0-9a-fA-F]+)")


def _z3(request: dict[str, Any]) -> dict[str, Any]:
    import z3

    # A fresh context: in a shared one the same query takes different amounts of work from run to run.
    context = z3.Context()
    logic = request["logic"]
    if logic == "QF_UFBVFP":
        # z3's general solver undercounts the work for floats with functions: seconds pass within a small budget.
        solver = z3.Then(*(z3.Tactic(name, ctx=context) for name in _WITHOUT_FUNCTIONS), ctx=context).solver()
    else:
        solver = z3.SolverFor(logic, ctx=context) if logic in ("QF_BV", "QF_BVFP", "QF_NRA") else z3.Solver(ctx=context)
    solver.set("random_seed", SEED)
    solver.set("rlimit", request["units"])
    solver.from_string(request["text"])
    result = solver.check()
    spent = _z3_spent(solver.statistics(), request["units"])
    if result == z3.unsat:
        return {"answer": "unsat", "model": {}, "reason": None, "spent": spent}
    if result == z3.sat:
        model = solver.model()
        values = {d.name(): _z3_bits(z3, model[d]) for d in model.decls() if d.arity() == 0}
        found = {name: bits for name, bits in values.items() if bits is not None}
        return {"answer": "sat", "model": found, "reason": None, "spent": spent}
    word = solver.reason_unknown()
    stopped = word in ("canceled", "max. resource limit exceeded", "interrupted from keyboard")
    reason = f"z3 spent its budget of {request['units']} units" if stopped else f"z3: {word}"
    return {"answer": "unknown", "model": {}, "reason": reason, "stopped": stopped, "spent": spent}


def _z3_spent(statistics: Any, limit: int) -> int:
    found = (statistics.get_key_value(key) for key in statistics.keys() if key == "rlimit count")
    return int(next(found, limit))


def _z3_bits(z3: Any, value: Any) -> int | None:
    if z3.is_bv_value(value):
        return int(value.as_long())
    if z3.is_true(value) or z3.is_false(value):
        return int(z3.is_true(value))
    return None


def _bitwuzla(request: dict[str, Any]) -> dict[str, Any]:
    import bitwuzla

    terms = bitwuzla.TermManager()
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_MODELS, True)
    options.set(bitwuzla.Option.SEED, SEED)
    parser = bitwuzla.Parser(terms, options)
    parser.parse(request["text"].replace("(check-sat)", ""), True, False)
    solver = parser.bitwuzla()
    polls, limit = 0, request["units"]

    def is_over() -> bool:
        nonlocal polls
        polls += 1
        return bool(polls > limit)

    # Its search polls at fixed places: the count is deterministic, a time limit is not.
    solver.configure_terminator(is_over)
    result = solver.check_sat()
    if result == bitwuzla.Result.UNSAT:
        return {"answer": "unsat", "model": {}, "reason": None, "spent": polls}
    if result != bitwuzla.Result.SAT:
        reason = f"bitwuzla spent its budget of {limit} units" if polls > limit else "bitwuzla does not know"
        return {"answer": "unknown", "model": {}, "reason": reason, "stopped": polls > limit, "spent": polls}
    solver.configure_terminator(lambda: False)
    model: dict[str, int] = {}
    for term in parser.get_declared_funs():
        if term.sort().is_bv() or term.sort().is_bool():
            bits = _bitwuzla_bits(str(solver.get_value(term)))
            if bits is not None:
                model[str(term.symbol()).strip("|")] = bits
    return {"answer": "sat", "model": model, "reason": None, "spent": polls}


def _bitwuzla_bits(text: str) -> int | None:
    if text in ("true", "false"):
        return int(text == "true")
    match = _BITS.fullmatch(text)
    if match is None:
        return None
    return int(match[1], 2) if match[1] else int(match[2], 16)


_ENGINES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"z3": _z3, "bitwuzla": _bitwuzla}


def main() -> None:
    """Answer until standard input ends."""
    # A solver's own output must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if sys.platform == "linux":
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(
            resource.RLIMIT_AS, (MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard), hard)
        )
    for line in sys.stdin:
        request = json.loads(line)
        if importlib.util.find_spec(request["engine"]) is None:
            reply: dict[str, Any] = {
                "answer": "missing",
                "model": {},
                "reason": f"{request['engine']} is not installed",
                "spent": 0,
            }
        else:
            reply = _ENGINES[request["engine"]](request)
        answers.write(json.dumps({"id": request["id"], **reply}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
