"""What a kernel's proofs took for granted, who sees to it, and the check of what can be checked at a call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from layoutproof.ir.diagnostic import error
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.requirements import Contract, Requirement
from layoutproof.lowering.runtime.symbols import Symbols


class Duty(StrEnum):
    """Who sees to it that an assumption holds."""

    CHECKED = "checked at every call"
    PACKED = "made so by kernel(...), the caller's word in kernel.raw(...)"
    PROMISED = "the caller's word"


@dataclass(frozen=True, slots=True)
class Assumption:
    """One thing that is taken for granted, in words; `requirement` where it is a condition on symbols."""

    duty: Duty
    text: str
    requirement: Requirement | None = None

    def __str__(self) -> str:
        return f"{self.text} ({self.duty})"


def contract_of(assumptions: Iterable[Assumption]) -> Contract:
    """The same for generated C, whose callers pack nothing."""
    given = tuple(assumptions)
    requirements = tuple(a.requirement for a in given if a.requirement is not None)
    return Contract(requirements, tuple(a.text for a in given if a.duty is not Duty.CHECKED))


def check_requirements(kernel: str, assumptions: Iterable[Assumption], symbols: Symbols) -> None:
    """Raise LayoutproofError (LP431) for the first requirement that the symbols of a call do not meet, over the integers.

    LP426 where a symbol that one speaks of is not known.
    """
    for assumption in assumptions:
        requirement = assumption.requirement
        if requirement is None:
            continue
        for name in requirement.symbols:
            symbols.value(name, kernel)
        why = requirement.failure(symbols.values)
        if why is not None:
            told = ", ".join(symbols.told(name) for name in requirement.symbols)
            raise error(
                codes.ASSUMPTION,
                f"{kernel} assumes {requirement.text}{requirement.place}, and {why} for {told}",
                help="the proofs say nothing about such a call: another schedule, or index types that are wider, may allow it",
            )
