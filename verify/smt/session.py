"""One z3 query: a fresh context, a fixed seed, a budget in z3's own resource units, and one of three answers.

In a shared context the same query takes different amounts of work from run to run; in a fresh one it repeats, as long as no other
context is alive: the search for products depends on where memory lies. z3 is imported when the first query is asked, not before.
Only `unsat` proves anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

from layoutproof.verify.search import Because
from layoutproof.verify.settings import scaled
from layoutproof.verify.smt.interrupts import keep_interrupts

DEFAULT_RLIMIT = 5_000_000
SEED = 0


class Answer(StrEnum):
    """What the solver said."""

    SAT = "sat"
    UNSAT = "unsat"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer; `model` gives integer, bit-vector (unsigned) and boolean constants their values when it is `sat`.

    `reason` says why it is `unknown`, `because` what code asks of that.

    `smtlib` is the query as SMT-LIB 2 text, so that other solvers can be asked.
    """

    answer: Answer
    model: dict[str, int] = field(default_factory=dict)
    reason: str | None = None
    smtlib: str = ""
    because: frozenset[Because] = frozenset()


@cache
def z3_module() -> Any:
    """The z3 module, imported at the first call."""
    import z3

    keep_interrupts()
    return z3


class Query:
    """Assertions over one fresh context. `Query().solve(...)` may be called once; terms belong to `query.ctx`."""

    def __init__(self) -> None:
        self.z3 = z3_module()
        self.ctx = self.z3.Context()
        self._assertions: list[Any] = []

    def integer(self, name: str) -> Any:
        """An integer constant of this query's context."""
        return self.z3.Int(name, self.ctx)

    def number(self, value: int) -> Any:
        """An integer literal of this query's context."""
        return self.z3.IntVal(value, self.ctx)

    def add(self, *assertions: Any) -> None:
        """Assert truth values of this query's context."""
        self._assertions.extend(assertions)

    @property
    def assertions(self) -> tuple[Any, ...]:
        """What was asserted so far."""
        return tuple(self._assertions)

    def text(self, logic: str) -> str:
        """The query as SMT-LIB 2 in a logic, up to its `(check-sat)`; nothing is asked."""
        solver = self.z3.Solver(ctx=self.ctx)
        solver.add(*self._assertions)
        lines = solver.to_smt2().splitlines()
        return "\n".join((f"(set-logic {logic})", *(line for line in lines if not line.startswith((";", "(set-info"))))) + "\n"

    def add_text(self, text: str) -> None:
        """Assert what an SMT-LIB 2 script asserts, its declarations included; other commands of it are ignored."""
        self._assertions.extend(self.z3.parse_smt2_string(text, ctx=self.ctx))

    def solve(self, *, rlimit: int = DEFAULT_RLIMIT, logic: str | None = None, seed: int = SEED) -> Outcome:
        """Ask once, with at most `rlimit` units of work, which the seed sends on another way."""
        z3, rlimit = self.z3, scaled(rlimit)
        solver = z3.SolverFor(logic, ctx=self.ctx) if logic is not None else z3.Solver(ctx=self.ctx)
        solver.set("random_seed", seed)
        solver.set("rlimit", rlimit)
        solver.add(*self._assertions)
        text = solver.to_smt2()
        result = solver.check()
        if result == z3.unsat:
            return Outcome(Answer.UNSAT, smtlib=text)
        if result == z3.sat:
            return Outcome(Answer.SAT, _values(z3, solver.model()), smtlib=text)
        word = solver.reason_unknown()
        stopped = word in ("canceled", "max. resource limit exceeded")
        reason = f"z3 spent its budget of {rlimit} units" if stopped else f"z3: {word}"
        return Outcome(Answer.UNKNOWN, reason=reason, smtlib=text, because=frozenset((Because.BUDGET,) if stopped else ()))


def _values(z3: Any, model: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for declaration in model.decls():
        value = model[declaration]
        if declaration.arity() == 0 and z3.is_int_value(value):
            found[declaration.name()] = value.as_long()
        elif declaration.arity() == 0 and z3.is_bv_value(value):
            found[declaration.name()] = value.as_long()
        elif declaration.arity() == 0 and (z3.is_true(value) or z3.is_false(value)):
            found[declaration.name()] = int(z3.is_true(value))
    return found


def prove_unsatisfiable(build: Callable[[Query], Sequence[Any]], *, rlimit: int = DEFAULT_RLIMIT, logic: str | None = None) -> Outcome:
    """Build the assertions in a fresh query and ask whether they can all hold."""
    query = Query()
    query.add(*build(query))
    return query.solve(rlimit=rlimit, logic=logic)
