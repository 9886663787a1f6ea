"""One question to a solver as text, kept apart from the solver so that a verdict can carry it without loading one."""

from __future__ import annotations

from dataclasses import dataclass

SAT, UNSAT = "sat", "unsat"


@dataclass(frozen=True, slots=True)
class SmtQuery:
    """A self-contained SMT-LIB 2 script up to its one `(check-sat)`, and the answer that the claim needs.

    `logic` is the script's logic (`QF_NIA`, `QF_BVFP`, ...); `engine` names what decided the claim first (`z3`, `isl`, `intervals`,
    `enumeration`, ...): whoever asks again may choose another.
    """

    text: str
    logic: str
    expected: str = UNSAT
    engine: str = "z3"
